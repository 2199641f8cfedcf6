//! The data path: one thread for each stream, large blocks, nothing allocated
//! while it runs.

mod bytes;
mod cadence;
mod copying;
mod datagrams;

use crate::{ProbeError, flow::Flow, plan::Plan};
use host::clock;
use record::Protocol;
use std::{
    io,
    sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Longest wait for senders after the end.
const SENDERS: Duration = Duration::from_secs(2);

/// What a test's threads share.
pub(crate) struct Traffic {
    /// Nothing more is sent.
    sent: AtomicBool,
    /// No byte that arrives counts from here on.
    ended: AtomicBool,
    /// What there was to send has been sent: the file, or the bytes asked.
    exhausted: AtomicBool,
    /// Bytes that may still be written over all streams, where bytes end the
    /// test; so many that it never matters otherwise.
    budget: AtomicI64,
    /// Threads that have not ended: those that send, and those that receive.
    senders: AtomicUsize,
    receivers: AtomicUsize,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        Traffic {
            sent: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            exhausted: AtomicBool::new(false),
            budget: AtomicI64::new(i64::MAX),
            senders: AtomicUsize::new(0),
            receivers: AtomicUsize::new(0),
        }
    }

    /// Lets so many bytes be written from now on, over all streams.
    pub(crate) fn limit(&self, bytes: u64) {
        self.budget.store(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Ends the sending, and waits for the threads that do it: each comes back
    /// from the kernel soon, unless the machine is stalled.
    pub(crate) fn end_sending(&self) {
        self.sent.store(true, Ordering::Relaxed);
        wait_for_none(&self.senders, SENDERS);
    }

    /// Ends everything.
    pub(crate) fn end(&self) {
        self.sent.store(true, Ordering::Relaxed);
        self.ended.store(true, Ordering::Relaxed);
    }

    fn has_sent(&self) -> bool {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Whether the file that was to be sent is at its end.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed)
    }

    /// Waits for the receiving threads to end, at most `patience`.
    pub(crate) fn wait_for_receivers(&self, patience: Duration) {
        wait_for_none(&self.receivers, patience);
    }

    /// Starts a thread for each flow, and lets it carry data as planned.
    pub(crate) fn start_all<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        flows: &'scope [Flow],
        plan: &'scope Plan,
        began: Instant,
    ) -> Result<(), ProbeError> {
        let senders = flows.iter().filter(|flow| flow.sending).count();
        let load = bytes::Load::prepare(plan, flows.len(), senders)?;
        let load = std::sync::Arc::new(load);
        // A sender that waits with its eyes open needs a core of its own.
        let precise = senders <= (host::cpu::cores() as usize / 2).max(1);
        for flow in flows {
            let load = load.clone();
            let started = match (plan.protocol, flow.sending) {
                (Protocol::Tcp, true) => {
                    self.start(scope, flow, plan, move || self.write(flow, plan, &load, began))
                }
                (Protocol::Tcp, false) => {
                    self.start(scope, flow, plan, move || self.read(flow, plan, &load))
                }
                (Protocol::Udp, true) => self.start(scope, flow, plan, move || {
                    self.send_datagrams(flow, plan, &load, began, precise)
                }),
                (Protocol::Udp, false) => {
                    self.start(scope, flow, plan, move || self.receive_datagrams(flow, plan, began))
                }
            };
            started.map_err(|source| ProbeError::System {
                operation: "start a thread for a stream",
                address: flow.peer,
                source,
            })?;
        }
        Ok(())
    }

    fn start<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        flow: &'scope Flow,
        plan: &'scope Plan,
        work: impl FnOnce() -> io::Result<()> + Send + 'scope,
    ) -> io::Result<()> {
        let running = if flow.sending { &self.senders } else { &self.receivers };
        running.fetch_add(1, Ordering::Relaxed);
        let body = move || {
            flow.thread_begins();
            if let Some(core) = plan.core {
                // A core that is not there was refused before; on a peer's word it is a wish.
                let _ = host::cpu::pin_to(core);
            }
            let result = work();
            let over = if flow.sending { self.has_sent() } else { self.has_ended() };
            flow.thread_ends(result.as_ref().err().filter(|_| !over));
            running.fetch_sub(1, Ordering::Release);
        };
        let name = format!("stream {}", flow.id);
        // 128 streams at the default of 2 MiB would reserve 256 MiB for nothing.
        let started =
            thread::Builder::new().name(name).stack_size(256 * 1024).spawn_scoped(scope, body);
        if started.is_err() {
            running.fetch_sub(1, Ordering::Relaxed);
        }
        started.map(drop)
    }

    /// Takes up to `most` bytes of the budget.
    fn draw(&self, most: usize) -> usize {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let left = self.budget.fetch_sub(most, Ordering::Relaxed);
        let granted = left.clamp(0, most);
        self.give_back(usize::try_from(most - granted).unwrap_or(0));
        usize::try_from(granted).unwrap_or(0)
    }

    fn give_back(&self, bytes: usize) {
        if bytes > 0 {
            self.budget.fetch_add(i64::try_from(bytes).unwrap_or(0), Ordering::Relaxed);
        }
    }
}

fn wait_for_none(running: &AtomicUsize, patience: Duration) {
    let until = clock::now() + patience;
    while running.load(Ordering::Acquire) > 0 && clock::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Ends the traffic and wakes every thread when it goes out of scope, by
/// whatever way: no thread outlives its test.
pub(crate) struct Closer<'a> {
    traffic: &'a Traffic,
    flows: &'a [Flow],
}

impl<'a> Closer<'a> {
    pub(crate) fn new(traffic: &'a Traffic, flows: &'a [Flow]) -> Self {
        Closer { traffic, flows }
    }
}

impl Drop for Closer<'_> {
    fn drop(&mut self) {
        self.traffic.end();
        self.flows.iter().for_each(Flow::close);
    }
}

/// The socket is full, empty, or was interrupted: nothing is wrong.
fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
