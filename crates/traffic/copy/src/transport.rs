//! What carries messages between the ends: a UDT connection in native mode, or TCP
//! connections with TLS. Both are encrypted, and both ends are authenticated by pinned keys.
//!
//! A [`Session`] is the queues between the threads that read and write files and those of
//! the connections. Control messages keep their order, since one connection carries them;
//! data goes to whichever connection has room.

mod data_path;
pub(crate) mod in_memory;
mod pump;
pub(crate) mod tls;
pub(crate) mod udt;

use crate::CopyError;
use crate::protocol::frame;
use crate::protocol::message::Message;
use crate::queue::Queue;
use data_path::DataPath;
use host::lock::lock;
use host::{clock, stop::StopFlag};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Memory of each queue of data, bytes.
const DATA_BYTES: usize = 8 << 20;
const CONTROL_BYTES: usize = 1 << 20;
const INCOMING_BYTES: usize = 16 << 20;
/// Both ends report twice a second; one that is silent for so long is gone.
const QUIET: Duration = Duration::from_secs(60);
/// The interval of both ends' reports.
pub(crate) const REPORT: Duration = Duration::from_millis(500);
/// The time that sending the reason of a failure may take.
const REFUSAL: Duration = Duration::from_secs(2);
/// The amount that a rate limit may catch up after a pause.
const BURST: Duration = Duration::from_millis(20);

/// The transport that carried a copy.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// UDT's native mode: encrypted, over UDP.
    UdtNative,
    /// TLS over parallel TCP connections.
    Tcp,
}

/// The queues of one copy, and why it failed.
#[derive(Debug)]
pub(crate) struct Session {
    control: Queue<Vec<u8>>,
    data: Queue<Vec<u8>>,
    incoming: Queue<Message>,
    failure: Mutex<Option<CopyError>>,
    limiter: Mutex<Option<Limiter>>,
    data_path: DataPath,
    has_begun: AtomicBool,
    is_closed: AtomicBool,
    is_answered: AtomicBool,
    last_received: Mutex<Instant>,
    stop: StopFlag,
}

impl Session {
    /// A session that ends early with `stop`.
    pub(crate) fn new(stop: StopFlag) -> Self {
        Session {
            control: Queue::new(CONTROL_BYTES),
            data: Queue::new(DATA_BYTES),
            incoming: Queue::new(INCOMING_BYTES),
            failure: Mutex::new(None),
            limiter: Mutex::new(None),
            data_path: DataPath::default(),
            has_begun: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            is_answered: AtomicBool::new(false),
            last_received: Mutex::new(clock::now()),
            stop,
        }
    }

    /// Sends file data at so many bits a second at most; zero: without a limit.
    pub(crate) fn limit(&self, bps: u64) {
        *lock(&self.limiter) = (bps > 0).then(|| Limiter { bps, next: clock::now() });
    }

    /// The connections that carry data.
    pub(crate) const fn data_path(&self) -> &DataPath {
        &self.data_path
    }

    /// Sends a control message.
    pub(crate) fn send(&self, message: &Message) -> Result<(), CopyError> {
        self.push(&self.control, frame::encode(message))
    }

    /// Sends a block.
    pub(crate) fn send_data(&self, message: &Message) -> Result<(), CopyError> {
        self.push(&self.data, frame::encode(message))
    }

    fn push(&self, queue: &Queue<Vec<u8>>, frame: Vec<u8>) -> Result<(), CopyError> {
        let bytes = frame.len();
        queue.push(frame, bytes).map_err(|_| self.ended())
    }

    /// Whoever reads files for [`Session::send_data`] does so until it is dropped.
    pub(crate) fn reading(&self) -> Reading<'_> {
        self.data.begin_producing();
        Reading(self)
    }

    /// Tells the peer that this end is alive, and what it did. It never waits: a peer that
    /// takes nothing is told nothing.
    pub(crate) fn report(&self, written: u64, waited: Duration) {
        if self.control.is_full() {
            return;
        }
        let waited = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        let frame = frame::encode(&Message::Progress { written, waited });
        let bytes = frame.len();
        let _ = self.control.force(frame, bytes);
    }

    /// Checks that the session goes on; long loops call it.
    pub(crate) fn check(&self) -> Result<(), CopyError> {
        if self.stop.is_raised() {
            self.fail(CopyError::Interrupted);
        }
        self.failure().map_or(Ok(()), Err)
    }

    /// The next message of the peer; `None` once there will be none.
    pub(crate) fn receive(&self) -> Result<Option<Message>, CopyError> {
        loop {
            let message = self.receive_within(Duration::from_millis(100))?;
            if message.is_some() || self.is_over() {
                return Ok(message);
            }
        }
    }

    /// The next message of the peer, if it comes within that time.
    pub(crate) fn receive_within(&self, time: Duration) -> Result<Option<Message>, CopyError> {
        self.check()?;
        if let Some(message) = self.incoming.pop(time) {
            *lock(&self.last_received) = clock::now();
            return Ok(Some(message));
        }
        self.check()?;
        if !self.incoming.has_ended() && lock(&self.last_received).elapsed() > QUIET {
            self.fail(CopyError::Connection("nothing arrived from the peer for 60 s".into()));
            self.check()?;
        }
        Ok(None)
    }

    /// Returns true if the peer sends nothing more, and all of it was received.
    pub(crate) fn is_over(&self) -> bool {
        self.incoming.is_over()
    }

    /// Ends the session with an error, of which the peer is told if it is this end's.
    pub(crate) fn give_up(&self, error: CopyError) {
        let first = lock(&self.failure).get_or_insert_with(|| error.clone()).clone();
        if first == error && matches!(error, CopyError::Local(_) | CopyError::Protocol(_)) {
            self.refuse(&error.to_string());
        }
        self.fail(error);
    }

    fn refuse(&self, reason: &str) {
        let frame = frame::encode(&Message::Refused(reason.to_owned()));
        let bytes = frame.len();
        self.data.close();
        if self.control.force(frame, bytes).is_err() {
            return;
        }
        self.control.finish();
        let until = clock::now() + REFUSAL;
        // The connections close once it is delivered.
        while !self.incoming.has_ended() && clock::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends the session with an error, the first of which counts.
    pub(crate) fn fail(&self, error: CopyError) {
        lock(&self.failure).get_or_insert(error);
        self.is_closed.store(true, Ordering::Relaxed);
        self.control.close();
        self.data.close();
        self.incoming.close();
    }

    pub(crate) fn failure(&self) -> Option<CopyError> {
        lock(&self.failure).clone()
    }

    /// The peer has answered everything: it needs nothing more of this end.
    pub(crate) fn finish_answered(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
        self.finish();
    }

    /// Returns true if the connections can be closed without waiting for the peer.
    pub(crate) fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Relaxed)
    }

    /// Sends the queued data, then closes the connections.
    pub(crate) fn finish(&self) {
        self.data.finish();
        self.control.finish();
    }

    /// Sends the last message. The session counts as finished before the peer has it.
    pub(crate) fn finish_with(&self, message: &Message) -> Result<(), CopyError> {
        self.data.finish();
        self.send(message)?;
        self.control.finish();
        Ok(())
    }

    /// Returns true if the peer has used one of the connections.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// How long the data's queue was full (the network was the limit), and empty (the disk
    /// was).
    pub(crate) fn waits(&self) -> (Duration, Duration) {
        self.data.waits()
    }

    /// How long the connections waited for this end to take what came (the disk was the
    /// limit).
    pub(crate) fn receiver_wait(&self) -> Duration {
        self.incoming.filled()
    }

    /// The reason nothing more can be sent.
    pub(crate) fn ended(&self) -> CopyError {
        self.failure().unwrap_or_else(|| CopyError::Connection("it was closed".into()))
    }
}

/// A file is read.
pub(crate) struct Reading<'a>(&'a Session);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.data.end_producing();
    }
}

/// Spaces data so that its mean rate is at most the limit.
#[derive(Debug)]
struct Limiter {
    bps: u64,
    next: Instant,
}

impl Limiter {
    fn is_open(&self, now: Instant) -> bool {
        now >= self.next
    }

    fn sent(&mut self, now: Instant, bytes: usize) {
        let takes = Duration::from_secs_f64(bytes as f64 * 8.0 / self.bps as f64);
        self.next = self.next.max(now.checked_sub(BURST).unwrap_or(now)) + takes;
    }
}
