//! The protocol of `longhaul copy`, without I/O: messages and their frames, the names that
//! a receiver accepts, and the hash of a file that arrives in any order.
//!
//! One end sends files, the other receives them; which of them is the client is decided by
//! the [`Request`](message::Message::Request). For each file:
//!
//! ```text
//!   sender                                      receiver
//!   Entry (name, size, times) ────────────────>
//!          <──────────────────────── Have (hashes of the blocks it has), or none
//!   Data, Hole, Kept for each block ──────────>
//!   End (hash of the whole file) ─────────────>
//!          <──────────────────────── Stored, or NotStored with the reason
//! ```
//!
//! Entries run ahead of the data, so small files cost no round trip each. What was received
//! before an interruption is found by its hashes; no file records it.

pub mod frame;
pub mod hash;
pub mod message;
pub mod path;

/// Bytes of a block: what one [`Data`](message::Message::Data) carries, and what hashes are
/// compared of. A power of two of BLAKE3's chunks (1024 bytes), so that a block is a subtree.
pub const BLOCK_BYTES: usize = 1 << 18;

/// Version of the protocol.
pub const VERSION: u32 = 1;

/// Blocks of a file of `bytes`.
#[must_use]
pub const fn block_count(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES as u64)
}

/// Bytes of block `index` of a file of `bytes`; zero behind its end.
#[must_use]
pub fn block_bytes(bytes: u64, index: u64) -> usize {
    let begin = index.saturating_mul(BLOCK_BYTES as u64);
    let left = bytes.saturating_sub(begin);
    usize::try_from(left).unwrap_or(usize::MAX).min(BLOCK_BYTES)
}
