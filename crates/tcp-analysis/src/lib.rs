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
//! | `recovery` | kinds of retransmission; losses before and behind the capture point |
//! | `handshake` | SYN, SYN-ACK and ACK as sent; window scaling that was stripped |
//! | `vantage` | where the capture was made |
//! | `sampler`, `measurement` | a connection as a `record::Measurement` from there |
//! | `scoreboard`, `rounds`, `slow_start`, `echo_order` | the sender's state, which the samples show |
//! | `one_way` | the delay of one direction, by timestamps |
//! | [`iperf3`] | iperf3's cookie and parameters |

mod connection;
mod echo_order;
mod flags;
mod handshake;
pub mod iperf3;
mod measurement;
mod one_way;
mod outstanding;
mod recovery;
mod rounds;
mod rules;
mod sampler;
mod scoreboard;
mod sequence;
mod side;
mod slow_start;
mod streams;
mod vantage;
mod wireshark;

pub use connection::{Connection, PacketPosition, completeness};
pub use flags::{FLAG_COUNT, FlagCounts, Flags};
pub use handshake::{Handshake, HandshakePacket, Handshakes, MOST_HANDSHAKES};
pub use measurement::{Requested, Sampled, measurement};
pub use record::CapturePoint;
pub use recovery::{KIND_COUNT, Kind, Retransmissions};
pub use rules::Rules;
pub use sampler::Sampler;
pub use side::WindowScale;
pub use streams::Streams;
pub use vantage::Vantage;
pub use wireshark::PacketAnalysis;
