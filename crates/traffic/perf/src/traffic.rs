//! The data path: threads that carry streams, large blocks, no allocation while it runs.
//!
//! A stream has a thread, but TCP senders whose congestion control paces share some: see
//! [`shared_sender`].

mod bytes;
mod chunks;
mod datagram_pacer;
mod datagrams;
mod gather;
mod low_water_mark;
mod reads;
mod receive_polling;
mod received;
mod shared_sender;
mod train;
mod udt;
mod zerocopy_trial;

use crate::{
    PerfError, pacing,
    plan::Plan,
    quota::{Exceeded, Grant, Quota},
    stream::Stream,
};
use host::stop::StopFlag;
use host::{clock, slice};
use reads::Reads;
use record::Protocol;
use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
pub(crate) use train::TrainLog;

/// Timeout for sending threads after the end.
const SENDER_TIMEOUT: Duration = Duration::from_secs(2);

/// Memory of one stream's socket structures, and of a thread.
const STREAM_MEMORY: u64 = 32 * 1024;
const THREAD_MEMORY: u64 = 32 * 1024;

/// Maximum memory that a test's threads allocate, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferMemory {
    /// For all streams together.
    pub(crate) shared: u64,
    /// For each stream that this end sends on.
    pub(crate) sender: u64,
    /// For each stream that this end receives on.
    pub(crate) receiver: u64,
}

impl BufferMemory {
    /// The memory of a test with so many streams in each direction.
    pub(crate) fn of(plan: &Plan, sending: u32, receiving: u32) -> Self {
        let (to_send, to_receive) = match plan.protocol {
            Protocol::Tcp => (0, Reads::memory(receiving as usize, sending as usize)),
            Protocol::Udp => (datagrams::MAX_TRAIN_BYTES, datagrams::inbox_memory(plan)),
            Protocol::Udt => (udt::memory(plan), udt::memory(plan)),
        };
        // A thread reads each stream's part.
        let of_file = THREAD_MEMORY + (chunks::CHUNKS * plan.chunk) as u64;
        let from_file = if plan.file.is_some() { of_file } else { 0 };
        let stream = |buffer: usize| (buffer as u64).saturating_add(STREAM_MEMORY + THREAD_MEMORY);
        // A block, and its copy in a file for zero copy.
        let blocks = if plan.protocol == Protocol::Tcp { 2 } else { 1 };
        BufferMemory {
            shared: if sending > 0 { blocks * plan.block as u64 } else { 0 },
            sender: stream(to_send).saturating_add(from_file),
            receiver: stream(to_receive),
        }
    }
}

/// State shared by a test's threads.
pub(crate) struct Traffic {
    /// Sending has ended.
    sent: AtomicBool,
    /// The test has ended: received bytes no longer count.
    ended: AtomicBool,
    /// Streams that still send parts of the file; none have begun in a test without one.
    sending_file: AtomicUsize,
    /// A stream has sent the end of the file.
    file_ended: AtomicBool,
    /// A train has lost enough datagrams.
    train_ended: AtomicBool,
    /// Bytes left to write over all streams in a test that bytes end; otherwise
    /// practically unlimited.
    budget: AtomicI64,
    /// Running sending and receiving threads.
    senders: AtomicUsize,
    receivers: AtomicUsize,
    /// The client's quota, on a server with limits.
    quota: Option<Quota>,
    /// Data source and sink, once the streams have started.
    load: OnceLock<Arc<bytes::Load>>,
}

impl Traffic {
    pub(crate) fn new(quota: Option<Quota>) -> Self {
        Traffic {
            sent: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            sending_file: AtomicUsize::new(0),
            file_ended: AtomicBool::new(false),
            train_ended: AtomicBool::new(false),
            budget: AtomicI64::new(i64::MAX),
            senders: AtomicUsize::new(0),
            receivers: AtomicUsize::new(0),
            quota,
            load: OnceLock::new(),
        }
    }

    /// Limits the bytes written from now on, over all streams.
    pub(crate) fn limit(&self, bytes: u64) {
        self.budget.store(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Ends sending. Where the time ends with it, its end is taken afterwards: a thread
    /// that is held up in between must not send without time passing.
    pub(crate) fn stop_sending(&self) {
        self.sent.store(true, Ordering::Relaxed);
    }

    /// Waits for the sending threads: each returns from the kernel within
    /// [`crate::stream`]'s socket timeout.
    pub(crate) fn wait_for_senders(&self) {
        let until = clock::now() + SENDER_TIMEOUT;
        wait_for_none(&self.senders, || clock::now() >= until);
    }

    /// Ends sending and receiving.
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

    /// Whether the file was sent completely: by all streams, as each has a part of it.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.file_ended.load(Ordering::Relaxed) && self.sending_file.load(Ordering::Acquire) == 0
    }

    /// Whether no more is read of the file: a terminal tells one of its readers alone that it has
    /// ended.
    fn has_read_file(&self) -> bool {
        self.has_sent() || self.file_ended.load(Ordering::Relaxed)
    }

    /// A stream has written all that it read of the file, which has ended.
    fn file_is_sent(&self) {
        // A reader stops at the end of the test as at the end of the file.
        if !self.has_sent() {
            self.file_ended.store(true, Ordering::Relaxed);
            self.sending_file.fetch_sub(1, Ordering::Release);
        }
    }

    /// The limit of its quota that the test has exceeded.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.quota.as_ref()?.exceeded()
    }

    /// Charges received bytes to the quota; false if nothing more may be read.
    fn charge(&self, bytes: usize) -> bool {
        self.quota.as_ref().is_none_or(|quota| quota.charge(bytes, clock::now()))
    }

    /// How many of the bytes the quota allows to be sent now; they are charged.
    fn may_send(&self, bytes: usize, now: Instant) -> usize {
        match self.quota.as_ref().map(|quota| quota.take(bytes, 1, now)) {
            None => bytes,
            Some(Grant::Now(granted)) => granted,
            Some(Grant::After(_) | Grant::Never) => 0,
        }
    }

    /// Waits until the quota allows sending `bytes`, or as many parts of them as its limit leaves;
    /// how many bytes, or none if the test ends first.
    fn wait_for_quota(&self, bytes: usize, part: usize) -> usize {
        let Some(quota) = self.quota.as_ref().filter(|_| bytes > 0) else { return bytes };
        loop {
            let now = clock::now();
            match quota.take(bytes, part, now) {
                Grant::Now(granted) => return granted,
                Grant::Never => return 0,
                Grant::After(wait) => {
                    if !pacing::sleep_until(now + wait, false, || self.has_sent()) {
                        return 0;
                    }
                }
            }
        }
    }

    /// Returns to the quota and to the budget what was taken for bytes that were not sent.
    fn was_not_sent(&self, bytes: usize) {
        self.give_back(bytes);
        if let Some(quota) = self.quota.as_ref().filter(|_| bytes > 0) {
            quota.give_back(bytes);
        }
    }

    /// Waits for the receiving threads to end, at most `until`, or until `stop` is raised.
    pub(crate) fn wait_for_receivers(&self, until: Instant, stop: &StopFlag) {
        wait_for_none(&self.receivers, || clock::now() >= until || stop.is_raised());
    }

    /// Whether every receiving thread has read to the end of its stream, or failed.
    pub(crate) fn has_received_all(&self) -> bool {
        self.receivers.load(Ordering::Acquire) == 0
    }

    /// Whether received data is written to a file of its own, rather than to a device.
    pub(crate) fn keeps_file(&self) -> bool {
        self.load.get().is_some_and(|load| load.keeps_file())
    }

    /// The test has completed: moves the received file to its path.
    pub(crate) fn keep_received(&self, plan: &Plan) -> Result<(), PerfError> {
        self.load.get().map_or(Ok(()), |load| load.keep_received(plan))
    }

    /// Starts a thread for each stream.
    pub(crate) fn start_all<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        streams: &'scope [Stream],
        plan: &'scope Plan,
        began: Instant,
    ) -> Result<(), PerfError> {
        let senders = streams.iter().filter(|stream| stream.sending).count();
        let load = bytes::Load::prepare(plan, streams)?;
        let load = Arc::new(load);
        let _ = self.load.set(load.clone());
        if load.file.is_some() {
            self.sending_file.store(senders, Ordering::Relaxed);
        }
        // A busy-waiting sender needs a core of its own.
        let precise = senders <= half_of_cores();
        let shared = self.shared_senders(streams, plan);
        let failed = |stream: &Stream, source| PerfError::System {
            operation: "start a thread for a stream",
            address: stream.peer,
            source,
        };
        for group in &shared {
            let (load, of_thread) = (load.clone(), group.clone());
            let work = move || {
                self.write_in_turn(&of_thread, plan, &load);
                Ok(())
            };
            self.start(scope, group.clone(), plan, work).map_err(|e| failed(group[0], e))?;
        }
        let alone = streams.iter().filter(|stream| shared.is_empty() || !stream.sending);
        for stream in alone {
            let load = load.clone();
            let started = match (plan.protocol, stream.sending) {
                (Protocol::Tcp, true) => self.start(scope, vec![stream], plan, move || {
                    self.write(stream, plan, &load, began)
                }),
                (Protocol::Tcp, false) => {
                    self.start(scope, vec![stream], plan, move || self.read(stream, plan, &load))
                }
                (Protocol::Udp, true) => self.start(scope, vec![stream], plan, move || {
                    self.send_datagrams(stream, plan, &load, began, precise)
                }),
                (Protocol::Udp, false) => self.start(scope, vec![stream], plan, move || {
                    self.receive_datagrams(stream, plan, began)
                }),
                (Protocol::Udt, _) => self.start(scope, vec![stream], plan, move || {
                    self.carry_udt(stream, plan, &load, began)
                }),
            };
            started.map_err(|source| failed(stream, source))?;
        }
        Ok(())
    }

    /// Starts a thread that does `work` for its streams, which are all of one direction.
    fn start<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        streams: Vec<&'scope Stream>,
        plan: &'scope Plan,
        work: impl FnOnce() -> io::Result<()> + Send + 'scope,
    ) -> io::Result<()> {
        let sending = streams.iter().all(|stream| stream.sending);
        let running = if sending { &self.senders } else { &self.receivers };
        running.fetch_add(1, Ordering::Relaxed);
        let default_slices = self.load.get().is_some_and(|load| load.default_slices);
        let name = format!("stream {}", streams.first().map_or(0, |stream| stream.id));
        let body = move || {
            if default_slices {
                slice::use_default();
            }
            let carried = streams.len();
            streams.iter().for_each(|stream| stream.thread_begins(carried));
            if let Some(core) = plan.core {
                // The client checks its own core; a core that a peer requests may not exist.
                let _ = host::cpu::pin_to(core);
            }
            let result = work();
            let over = if sending { self.has_sent() } else { self.has_ended() };
            for stream in streams {
                if let Err(error) = &result
                    && !over
                {
                    stream.breaks(error);
                }
                stream.thread_ends();
            }
            running.fetch_sub(1, Ordering::Release);
        };
        // 128 streams with the default stack of 2 MiB would reserve 256 MiB.
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

/// How many threads carry sending TCP streams that share them: half of the cores, as the other half
/// receives, or does the network's part of the work. Over loopback all of it is done by the
/// senders' threads: 91 Gbit/s of 16 streams with two threads on two cores, 61 with one; but
/// with both directions 56 and 70.
fn sending_threads(streams: &[Stream]) -> usize {
    let only_sends = streams.iter().all(|stream| stream.sending);
    if only_sends && within_host(streams) { host::cpu::cores() as usize } else { half_of_cores() }
}

/// Whether the threads of streams keep the system's scheduling slices: where each switch between a
/// sender and a receiver that share a core costs more than a stream gains by its turn. With `-R` and 16
/// streams by reference over loopback 74 Gbit/s, 59 with short slices; with 4 streams, or copies, it
/// is less (docs/design/traffic.md).
fn default_slices(streams: &[Stream], plan: &Plan) -> bool {
    let many = streams.len() > 4 * host::cpu::cores() as usize;
    many && plan.zerocopy == Some(true) && within_host(streams)
}

/// Whether the other end of every stream is on this host.
fn within_host(streams: &[Stream]) -> bool {
    streams.iter().all(|stream| stream.peer.ip().is_loopback())
}

fn half_of_cores() -> usize {
    (host::cpu::cores() as usize / 2).max(1)
}

fn wait_for_none(running: &AtomicUsize, is_over: impl Fn() -> bool) {
    while running.load(Ordering::Acquire) > 0 && !is_over() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Ends the traffic and wakes every thread when dropped: no thread outlives its
/// test.
pub(crate) struct Closer<'a> {
    traffic: &'a Traffic,
    streams: &'a [Stream],
}

impl<'a> Closer<'a> {
    pub(crate) fn new(traffic: &'a Traffic, streams: &'a [Stream]) -> Self {
        Closer { traffic, streams }
    }
}

impl Drop for Closer<'_> {
    fn drop(&mut self) {
        self.traffic.end();
        self.streams.iter().for_each(Stream::close);
    }
}

/// Whether the call only has to be repeated: the socket is full, empty, or the
/// call was interrupted. A socket's timeout is `WouldBlock` (socket(7)); `TimedOut` is a peer that
/// acknowledges nothing (tcp(7), `TCP_USER_TIMEOUT` and `tcp_retries2`).
fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn every_copy_of_a_block_and_every_thread_is_counted() {
        let params = serde_json::json!({"tcp": true, "len": 1_000_000, "reverse": true});
        let mut plan = Plan::of(&serde_json::from_value(params).unwrap());
        let memory = BufferMemory::of(&plan, 1, 0);
        assert_eq!(memory.shared, 2_000_000);
        assert_eq!(BufferMemory::of(&plan, 0, 1).shared, 0);
        plan.file = Some("file".into());
        let with_file = BufferMemory::of(&plan, 1, 0).sender - memory.sender;
        assert_eq!(with_file, THREAD_MEMORY + 2_000_000, "two chunks of a block");
    }

    #[test]
    fn a_sockets_timeout_is_a_pause_and_a_dead_connection_is_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        one.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        assert!(is_pause(&one.read(&mut [0]).unwrap_err()));
        assert!(!is_pause(&io::ErrorKind::TimedOut.into()));
    }
}
