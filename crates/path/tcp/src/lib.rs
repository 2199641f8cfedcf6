//! TCP's two ends without I/O: a bulk sender with SACK, and a receiver.
//!
//! Pure: no system clock, no socket, no thread. A driver passes what arrives and the
//! time to [`Sender`] and [`Receiver`], and carries what they return over a network,
//! real or simulated:
//!
//! ```text
//!            transmit -> Segments                    on_segments
//!   Sender ────────────────────────────> network ─────────────────> Receiver
//!      ^      on_acknowledgement                      acknowledge      │
//!      └──────────────────────────────── network <─────────────────────┘
//! ```
//!
//! Packets are counted, not bytes: every one has the maximum segment size. A connection
//! is established from the beginning; it is never closed.
//!
//! | module | what |
//! |---|---|
//! | `sender` | what may be sent when; recovery (RFC 6675, RFC 9937), timers (RFC 6298, RFC 8985) |
//! | `scoreboard` | which packets are in flight, delivered, lost or retransmitted |
//! | `rack` | loss detection by time (RFC 8985) |
//! | `prr` | Proportional Rate Reduction (RFC 9937) |
//! | `application`, `send_buffer` | what there is to send |
//! | `limits` | what the sender waits for, and Linux's `TCP_INFO` timers |
//! | `receiver`, `receive_window` | acknowledgements, the advertised window |
//! | `sack_compression` | acknowledgements of out-of-order data that are held back |
//! | `kernel_version` | where versions of Linux differ |

mod application;
mod kernel_version;
mod limits;
mod pacer;
mod prr;
mod rack;
mod receive_window;
mod receiver;
mod rtt;
mod sack_compression;
mod scoreboard;
mod send_buffer;
mod sender;
mod wire;

pub use application::{Application, Reader, WriteLimit};
pub use kernel_version::KernelVersion;
pub use limits::{Limit, LimitTimes};
pub use receive_window::WindowSize;
pub use receiver::{Receiver, ReceiverConfig};
pub use runs::PacketRun;
pub use send_buffer::{BufferCheck, BufferSize};
pub use sender::{Feedback, Reductions, Sender, SenderConfig, SenderInfo};
pub use wire::{Acknowledgement, MAX_SACK_BLOCKS, SackBlocks, Segments};
