//! Random numbers from the system. Secrets and seeds have functions of their own: a secret that
//! the system does not give is an error, and a seed has a fallback.

use crate::clock;
use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// Returns bytes that nobody can predict, for keys, secrets and cookies (getrandom(2)): at
/// most 256.
///
/// # Errors
/// The system refuses getrandom(2), as a seccomp filter can. Whatever needs a secret must not
/// go on without one.
pub fn secret<const N: usize>() -> io::Result<[u8; N]> {
    const { assert!(N <= 256, "reads of up to 256 bytes are never short") }
    let mut bytes = [0u8; N];
    match retry_on_intr(|| getrandom(&mut bytes[..], GetRandomFlags::empty())) {
        Ok(length) if length == N => Ok(bytes),
        Ok(_) => Err(refused(&io::ErrorKind::UnexpectedEof.into())),
        Err(error) => Err(refused(&error.into())),
    }
}

/// Checks that the system gives random numbers: a server that makes a secret for each session
/// does not start without.
///
/// # Errors
/// As [`secret`].
pub fn check() -> io::Result<()> {
    secret::<1>().map(drop)
}

/// Returns a number that differs from run to run, for draws, orders and identifiers that need
/// not be secret: where the system gives no random number, it is made from the clock and the
/// process ID.
#[must_use]
pub fn seed() -> u64 {
    secret().map_or_else(
        |_| {
            let nanos = clock::unix_time().as_nanos() as u64;
            nanos ^ u64::from(std::process::id()).rotate_left(40)
        },
        u64::from_ne_bytes,
    )
}

/// Returns bytes that nothing on the path compresses, for payload: no secret. Rounded down to
/// whole words; xorshift64 (Marsaglia 2003).
#[must_use]
pub fn incompressible(bytes: usize) -> Vec<u8> {
    let mut state = seed() | 1;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    });
    words.take(bytes / 8).flat_map(u64::to_le_bytes).collect()
}

fn refused(error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!(
            "the system gives no random numbers for keys and cookies (getrandom: {error}); allow getrandom in the seccomp filter"
        ),
    )
}
