//! Random numbers from the system.

use crate::sys;

/// An unpredictable number (getrandom(2)).
#[must_use]
pub fn seed() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: eight valid bytes. Reads of up to 256 bytes are never short.
    let read = sys::retry(|| unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) });
    debug_assert_eq!(read.ok(), Some(8));
    u64::from_ne_bytes(bytes)
}
