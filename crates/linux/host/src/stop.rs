//! A stop request that threads and signal handlers can share.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Set once and visible to all clones: on Ctrl-C a test ends with the results so
/// far, and a server notifies its clients.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        StopFlag::default()
    }

    /// Requests to stop. Async-signal-safe: one atomic store.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was requested.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Requests to stop when the guard goes, also where a thread panics or cannot be started: whoever
    /// waits for the request does not wait for ever.
    #[must_use]
    pub fn raised_on_drop(&self) -> RaisedOnDrop<'_> {
        RaisedOnDrop(self)
    }
}

/// Raises a flag when it is dropped.
#[derive(Debug)]
pub struct RaisedOnDrop<'a>(&'a StopFlag);

impl Drop for RaisedOnDrop<'_> {
    fn drop(&mut self) {
        self.0.raise();
    }
}
