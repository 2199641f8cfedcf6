//! Captures the packets of network interfaces to files.
//!
//! ```text
//!  kernel: filter ─> ring of blocks ─> framing ─> buffer ─> file, files in turn, or a pipe
//!          (bpf)     (host)            VLAN tag,  whole
//!                    drops counted     cooked     records
//! ```
//!
//! [`LiveCapture::open`] opens the socket and every file, so that [`LiveCapture::run`] needs no
//! privilege. One thread reads and writes: while it waits for a disk, the ring holds packets;
//! what the ring has no room for is counted.

mod error;
mod framing;
mod naming;
mod output;
mod report;
mod running;
mod source;

pub use error::CaptureError;
pub use output::Output;
pub use report::report;
pub use running::{Ending, Event, Limits, LiveCapture, Totals};
pub use source::{CaptureConfig, DEFAULT_BUFFER, DEFAULT_SNAPLEN, MAX_SNAPLEN};

pub use capture::write::WriteFormat;
