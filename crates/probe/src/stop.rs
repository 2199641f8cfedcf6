//! A request to stop that threads and signal handlers can share.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Raised once, seen by everyone who holds a clone: Ctrl-C ends a test with
/// what was measured so far, and a server with a word to its clients.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// A flag that is not raised.
    #[must_use]
    pub fn new() -> Self {
        StopFlag::default()
    }

    /// Shares a flag that something else raises, a signal handler for instance.
    #[must_use]
    pub fn from_shared(flag: Arc<AtomicBool>) -> Self {
        StopFlag(flag)
    }

    /// Asks for the end. Safe inside a signal handler: one atomic store.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was asked for.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
