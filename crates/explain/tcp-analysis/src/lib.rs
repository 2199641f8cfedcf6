//! TCP connections seen in a capture. Pure: no I/O, no clock.
//!
//! One pass, packet by packet: [`Streams`] keeps a [`Connection`] for each stream and
//! returns a [`PacketAnalysis`] for each packet. Nothing is allocated for a packet in the
//! steady state; a connection takes less than 500 bytes and 24 for each outstanding
//! segment, of which it keeps at most 10,000 in each direction.
//!
//! | module | contents |
//! |---|---|
//! | `wireshark` | the flags of a packet by Wireshark's rules |
//! | `rules` | what differs between its versions |
//! | `outstanding` | segments that were not yet acknowledged |
//! | `connection` | the order of the steps, handshake, completeness |
//! | `recovery`, `retransmissions` | kinds of retransmission; losses before and behind the capture point |
//! | `handshake` | SYN, SYN-ACK and ACK as sent; window scaling that was stripped |
//! | `window_edges` | the least window scale where no SYN was captured |
//! | `ecn` | ECN and AccECN: what was negotiated, marks and their reports |
//! | `faults` | copies by a mirror port and steps of the clock |
//! | `mptcp` | the subflows of MPTCP connections |
//! | `vantage` | where the capture was made |
//! | `sampler`, `measurement` | a connection as a `record::Measurement` from there |
//! | `scoreboard`, `rounds`, `slow_start`, `echo_order` | the sender's state, which the samples show |
//! | `activity`, `segment_sizes` | when the application had nothing to send; the sizes that arrive |
//! | `one_way` | the delay of one direction, by timestamps |
//! | `time_by_cause` | what the sender waited for, from packet to packet |
//! | `congestion_family` | the family of congestion control, from the round trips |
//! | [`iperf3`] | iperf3's tests: cookie, states, parameters and results |

mod activity;
mod congestion_family;
mod connection;
mod echo_order;
mod ecn;
mod faults;
mod flags;
mod handshake;
pub mod iperf3;
mod measurement;
mod mptcp;
mod one_way;
mod outstanding;
mod recovery;
mod retransmissions;
mod rounds;
mod rules;
mod sampler;
mod scoreboard;
mod segment_sizes;
mod sequence;
mod side;
mod slow_start;
mod streams;
mod time_by_cause;
mod vantage;
mod window_edges;
mod wireshark;

pub use congestion_family::{CongestionEvidence, CongestionFamily};
pub use connection::{Connection, PacketPosition, completeness};
pub use ecn::{EcnCounts, EcnMode};
pub use faults::{FaultFinder, Faults};
pub use flags::{FLAG_COUNT, FlagCounts, Flags};
pub use handshake::{Handshake, HandshakePacket, Handshakes, MAX_HANDSHAKES};
pub use measurement::{Requested, Sampled, caveats, measurement};
pub use mptcp::{MptcpConnections, Subflow};
pub use record::CapturePoint;
pub use retransmissions::{KIND_COUNT, RetransmissionKind, Retransmissions};
pub use rules::Rules;
pub use sampler::Sampler;
pub use side::WindowScale;
pub use streams::Streams;
pub use time_by_cause::{Span, TimeCause, TimeShare};
pub use vantage::Vantage;
pub use wireshark::PacketAnalysis;
