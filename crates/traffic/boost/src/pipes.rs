//! The pipes of one thread: a flow has one only while there are bytes in it.

use crate::counters::Counters;
use host::splice::Pipe;
use std::sync::Arc;

/// Bytes that a pipe is to hold: 128 pages, one for each fragment of a packet.
pub(crate) const PIPE_BYTES: usize = 512 << 10;
/// Pipes of a thread. Flows beyond that copy: those whose receivers have stalled keep theirs.
const MAX_PIPES: usize = 96;
/// Empty pipes that are kept.
const MAX_IDLE: usize = 16;

/// Pipes in use and empty ones.
pub(crate) struct PipePool {
    idle: Vec<Pipe>,
    /// In use or idle.
    all: usize,
    counters: Arc<Counters>,
}

impl PipePool {
    pub(crate) const fn new(counters: Arc<Counters>) -> Self {
        PipePool { idle: Vec::new(), all: 0, counters }
    }

    /// An empty pipe; `None` if all are in use or descriptors have run out.
    pub(crate) fn take(&mut self) -> Option<Pipe> {
        if let Some(pipe) = self.idle.pop() {
            return Some(pipe);
        }
        if self.all >= MAX_PIPES {
            return None;
        }
        let pipe = Pipe::new(PIPE_BYTES).ok()?;
        self.all += 1;
        self.counters.pipes.increment();
        Some(pipe)
    }

    /// Takes a pipe back. One with bytes of a flow that was reset is closed.
    pub(crate) fn put(&mut self, pipe: Pipe) {
        if pipe.is_empty() && self.idle.len() < MAX_IDLE {
            self.idle.push(pipe);
        } else {
            self.all = self.all.saturating_sub(1);
            self.counters.pipes.decrement();
        }
    }
}
