//! Two captures of one transfer, made at both ends or at any two points of its path.
//!
//! Pure: no files, no clock, no threads. Packets are kept in 64 bytes each and compared
//! flow by flow by sorting, so that time is n log n and memory linear whatever the
//! captures contain.
//!
//! ```text
//!  A ─> CapturedPackets ─┐                ┌─> Transit: which capture comes first
//!                        ├─> FlowPair ─> Translation ─> unmistakable packets ─> Clock
//!  B ─> CapturedPackets ─┘     NAT        constants                              │
//!                                                                                v
//!          rows, summaries <── outcome <── matching: copies, ranges, damaged packets
//!                    changes <──┘
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `packet`, `captured` | what is kept of a packet and of a capture |
//! | `flow_pairs` | flows that are in both, also behind NAT |
//! | `translation` | numbers that a middlebox adds to, fields that it does not keep |
//! | `transit` | which capture a packet passed first |
//! | `clock` | offset, drift and steps of the clocks |
//! | `matching`, `ranges`, `copies` | the same packets; super-segments; copies of one packet |
//! | `outcome` | delivered, lost, duplicated, outside of what both captures cover |
//! | `summary`, `reordering` | figures of a direction |
//! | `changes` | what a middlebox changed |

mod captured;
mod changes;
mod clock;
mod copies;
mod flow_pairs;
mod join;
mod matching;
mod merge;
mod outcome;
mod packet;
mod ranges;
mod reordering;
mod summary;
mod transit;
mod translation;

pub use captured::{CapturedPackets, MAX_PACKETS};
pub use changes::{Change, Changes, HandshakeChange, MAX_HANDSHAKE_CHANGES};
pub use clock::{Clock, ClockBasis, ClockSegment};
pub use merge::{CaptureCounts, Merge, PairedStream, merge};
pub use outcome::{PacketFate, PacketRow};
pub use reordering::Reordering;
pub use summary::{DelaySummary, LossBursts, TransitSummary};
pub use transit::Transit;
