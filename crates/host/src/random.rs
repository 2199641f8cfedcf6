//! Random numbers from the system.

use crate::sys;

/// An unpredictable number (getrandom(2)).
#[must_use]
pub fn seed() -> u64 {
    u64::from_ne_bytes(bytes())
}

/// Bytes that nobody can predict, for keys and names: at most 256.
#[must_use]
pub fn bytes<const N: usize>() -> [u8; N] {
    const { assert!(N <= 256, "reads of up to 256 bytes are never short") }
    let mut bytes = [0u8; N];
    // SAFETY: N valid bytes.
    let read = sys::retry(|| unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) });
    debug_assert_eq!(read.ok(), Some(N));
    bytes
}
