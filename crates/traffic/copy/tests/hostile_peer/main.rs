//! A peer of a copy that has authenticated itself and does not follow the protocol: what it
//! can make the other end hold, open, and create.
//!
//! The allocator counts, so the tests run one after the other.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]
#![expect(unsafe_code, reason = "an allocator is unsafe to implement; this one only counts")]

mod allocator;
mod descriptors;
mod links;
mod memory;
mod messages;
mod order;
mod sender;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test of this program runs.
fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A directory in memory, if possible: what other programs do with the disk is no matter here.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
