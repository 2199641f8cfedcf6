//! Captures: packets out of pcap and pcapng files, dissected and counted.
//!
//! Pure: no files, no clock, no threads. The input is a [`std::io::Read`], seeds of
//! hash tables are arguments. Nothing is allocated for a packet, and memory is bounded
//! whatever the input says: a buffer for the file, a fixed size for each flow.
//!
//! ```text
//!  bytes ─> file::Reader ─> Packet ─> dissect::Layers ─┬─> hierarchy::Hierarchy
//!                                                      ├─> conversations::Conversations
//!                                                      └─> dissect::tcp::TcpSegment ─> analysis
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`file`] | pcap and pcapng, gzip and zstd; where a file breaks off and why |
//! | [`dissect`] | from link type and bytes to layers; TCP segments |

pub mod dissect;
pub mod file;
pub mod link_type;

pub use link_type::LinkType;
