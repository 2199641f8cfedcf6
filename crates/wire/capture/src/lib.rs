//! Captures: pcap and pcapng files, written and read; their packets dissected and counted.
//!
//! Pure: no files, no clock, no threads. The input is a [`std::io::Read`], seeds of
//! hash tables are arguments. Nothing is allocated for a packet, and memory is bounded
//! whatever the input says: a buffer for the file, and a budget for the tables of flows.
//!
//! ```text
//!  bytes ─> file::Reader ─> Packet ─> dissect::Layers ─┬─> hierarchy::Hierarchy
//!                                                      ├─> conversations::Conversations
//!                                                      └─> dissect::tcp::TcpSegment ─> analysis
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`mod@file`] | pcap and pcapng, gzip and zstd; where a file breaks off and why |
//! | [`dissect`] | from link type and bytes to layers; TCP segments |
//! | [`reassembly`] | IP packets out of their fragments |
//! | [`hierarchy`] | frames and bytes of each protocol, counted in both ways |
//! | [`conversations`] | flows of Ethernet, IP, TCP and UDP; numbers of TCP streams |
//! | [`endpoints`] | the same by address |
//! | [`overview`] | totals |
//! | [`mod@memory_budget`] | the memory of all tables that grow with flows |
//! | [`batch`] | several packets at a time, for speed |
//! | [`mod@write`] | pcapng and pcap, for captures |

pub mod batch;
pub mod conversations;
pub mod dissect;
mod distinct;
pub mod endpoints;
pub mod file;
pub mod hierarchy;
pub mod link_type;
pub mod memory_budget;
pub mod overview;
pub mod reassembly;
mod table;
pub mod write;

pub use link_type::LinkType;
pub use memory_budget::{ChunkedList, MemoryBudget, TABLE_BYTES};
pub use table::{Conversation, Counts, LeftOut, Seed, Traffic};
