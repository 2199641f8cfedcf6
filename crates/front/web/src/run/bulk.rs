//! A flow's transfer: bulk frames in one direction, and probes, which are echoed.
//!
//! Each flow has a thread, whose CPU time is the sender's or the receiver's. Frames are a header
//! and a block of random bytes, which is made once; received payload is dropped still masked.

use crate::connection::Connection;
use crate::websocket::Parts;
use host::cpu::ThreadClock;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use websocket::{CloseCode, Event, Opcode, Reader, frame};

/// The largest frame: clients of other tests read at most this.
const MAX_FRAME: usize = 1 << 20;
/// The smallest one.
const MIN_FRAME: usize = 4 << 10;
/// A frame takes this long: a probe's echo waits for the one before it.
const FRAME_SECONDS: f64 = 0.005;
/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;
/// Probes that wait to be echoed; more end the flow.
const MAX_ECHOES: usize = 64;
/// Longest probe.
const MAX_PROBE: usize = 64;
/// The time in which a frame is completed, and the flow closed.
const END_TIME: Duration = Duration::from_secs(3);
/// A thread's stack.
const STACK: usize = 512 << 10;

/// Bytes that a run may take.
#[derive(Debug)]
pub(super) struct Budget {
    whole: u64,
    left: AtomicU64,
}

impl Budget {
    pub(super) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Budget { whole: bytes, left: AtomicU64::new(bytes) })
    }

    pub(super) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// What was taken.
    pub(super) fn used(&self) -> u64 {
        self.whole - self.left()
    }

    /// Takes bytes; false once they are used up.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let less = |left: u64| Some(left.saturating_sub(bytes as u64));
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok_and(|left| left > 0)
    }
}

/// What is known of a flow while it runs.
#[derive(Debug)]
pub(super) struct FlowState {
    pub(super) connection: Connection,
    /// Bytes written to the socket.
    pub(super) written: AtomicU64,
    /// Bytes of payload received.
    pub(super) received: AtomicU64,
    /// Its thread's clock.
    pub(super) clock: OnceLock<ThreadClock>,
    /// Set when it ended before its time.
    pub(super) broken: AtomicBool,
    /// The rate that frames are made for, bit/s.
    pub(super) rate: AtomicU64,
}

impl FlowState {
    pub(super) fn new(connection: Connection) -> Self {
        FlowState {
            connection,
            written: AtomicU64::new(0),
            received: AtomicU64::new(0),
            clock: OnceLock::new(),
            broken: AtomicBool::new(false),
            rate: AtomicU64::new(0),
        }
    }
}

/// A flow that runs.
pub(super) struct BulkFlow {
    pub(super) state: Arc<FlowState>,
    /// Closed once it has ended.
    pub(super) done: oneshot::Receiver<()>,
}

/// Starts a flow. It ends when `stop` says so, or its sender is dropped, or the budget is used up.
///
/// # Errors
/// No thread can be started.
pub(super) fn start(
    parts: Parts,
    connection: Connection,
    sends: bool,
    stop: watch::Receiver<bool>,
    budget: Arc<Budget>,
) -> io::Result<BulkFlow> {
    let state = Arc::new(FlowState::new(connection));
    let (ended, done) = oneshot::channel();
    // Of its own: the server's may have ended while the flow still closes.
    let timers = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let transfer = Transfer {
        io: parts.io,
        reader: parts.reader,
        input: parts.input,
        buffer: vec![0; if sends { MIN_FRAME } else { READ_BYTES }],
        head: Vec::new(),
        body: 0,
        echoes: VecDeque::new(),
        sends,
        stage: Stage::Running,
        state: Arc::clone(&state),
        budget,
    };
    let held = parts.held;
    std::thread::Builder::new().name("flow".to_owned()).stack_size(STACK).spawn(move || {
        if let Ok(clock) = ThreadClock::of_this_thread() {
            let _ = transfer.state.clock.set(clock);
        }
        timers.block_on(run(transfer, stop, ended));
        drop(held);
    })?;
    Ok(BulkFlow { state, done })
}

async fn run(mut transfer: Transfer, mut stop: watch::Receiver<bool>, ended: oneshot::Sender<()>) {
    let stopped = tokio::select! {
        _ = poll_fn(|cx| transfer.poll(cx)) => None,
        told = stop.wait_for(|stop| *stop) => Some(told.is_ok()),
    };
    match stopped {
        // Its run is gone.
        Some(false) => return,
        Some(true) => {
            transfer.stage = Stage::Ending;
            let _ = timeout(END_TIME, poll_fn(|cx| transfer.poll(cx))).await;
        }
        None => transfer.state.broken.store(true, Ordering::Relaxed),
    }
    let closing = async {
        transfer.io.flush().await?;
        transfer.io.shutdown().await
    };
    let _ = timeout(END_TIME, closing).await;
    drop(ended);
    // With unread data the kernel would answer by a reset, before the page has read the end.
    let _ = timeout(END_TIME, async {
        while transfer.io.read(&mut transfer.buffer).await.is_ok_and(|bytes| bytes > 0) {}
    })
    .await;
}

/// How far a transfer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    /// The frame that has begun is completed, and Close sent.
    Ending,
    /// Close is queued.
    Closing,
}

struct Transfer {
    io: TokioIo<Upgraded>,
    reader: Reader,
    /// Received with the upgrade.
    input: Vec<u8>,
    buffer: Vec<u8>,
    /// Bytes to write before the body.
    head: Vec<u8>,
    /// Bytes of the block still to write.
    body: usize,
    echoes: VecDeque<Vec<u8>>,
    sends: bool,
    stage: Stage,
    state: Arc<FlowState>,
    budget: Arc<Budget>,
}

/// Bytes that no link compresses.
pub(crate) fn block() -> &'static [u8] {
    static BLOCK: OnceLock<Vec<u8>> = OnceLock::new();
    BLOCK.get_or_init(|| host::random::incompressible(MAX_FRAME))
}

impl Transfer {
    /// Goes on until nothing can be read or written; ready at the end.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.poll_read(cx).is_ready() {
            return Poll::Ready(());
        }
        self.poll_write(cx)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.input.is_empty() {
            let input = std::mem::take(&mut self.input);
            if !self.take(&input) {
                return Poll::Ready(());
            }
        }
        loop {
            if self.echoes.len() >= MAX_ECHOES {
                return Poll::Ready(());
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            let mut read = ReadBuf::new(&mut buffer);
            let polled = Pin::new(&mut self.io).poll_read(cx, &mut read);
            let goes_on = match &polled {
                Poll::Ready(Ok(())) if !read.filled().is_empty() => self.take(read.filled()),
                Poll::Ready(_) => false,
                Poll::Pending => true,
            };
            self.buffer = buffer;
            match polled {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(_) if !goes_on => return Poll::Ready(()),
                Poll::Ready(_) => {}
            }
        }
    }

    /// Takes what was received; false at the end.
    fn take(&mut self, mut received: &[u8]) -> bool {
        if !self.sends {
            self.spend(received.len());
        }
        loop {
            match self.reader.next(&mut received) {
                Ok(None) => return true,
                Ok(Some(Event::Binary(bytes))) if !self.sends => {
                    self.state.received.fetch_add(bytes as u64, Ordering::Relaxed);
                }
                Ok(Some(Event::BinaryEnd | Event::Pong(_))) => {}
                Ok(Some(Event::Text(probe))) if probe.len() <= MAX_PROBE => {
                    self.echoes.push_back(frame::message(Opcode::Text, probe.as_bytes(), None));
                }
                Ok(Some(Event::Ping(payload))) => {
                    self.echoes.push_back(frame::message(Opcode::Pong, &payload, None));
                }
                // Data in the wrong direction, a long text, the end.
                Ok(Some(_)) | Err(_) => return false,
            }
        }
    }

    /// Takes bytes of the run's; without any left the flow is closed.
    fn spend(&mut self, bytes: usize) {
        if !self.budget.take(bytes) && self.stage == Stage::Running {
            self.stage = Stage::Ending;
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.head.is_empty() && self.body == 0 {
                if self.stage == Stage::Closing {
                    return Poll::Ready(());
                }
                if !self.next_frame() {
                    // Either way something received goes on with it, or the flush.
                    let _ = Pin::new(&mut self.io).poll_flush(cx);
                    return Poll::Pending;
                }
            }
            let body = block().get(..self.body).unwrap_or_default();
            let slices = [IoSlice::new(&self.head), IoSlice::new(body)];
            let used = if self.head.is_empty() { &slices[1..] } else { &slices[..] };
            let written = match Pin::new(&mut self.io).poll_write_vectored(cx, used) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(written)) if written > 0 => written,
                Poll::Ready(_) => return Poll::Ready(()),
            };
            self.state.written.fetch_add(written as u64, Ordering::Relaxed);
            if self.sends {
                self.spend(written);
            }
            let of_head = written.min(self.head.len());
            self.head.drain(..of_head);
            self.body -= (written - of_head).min(self.body);
        }
    }

    /// Begins what is written next; false if there is nothing.
    fn next_frame(&mut self) -> bool {
        if self.stage == Stage::Ending {
            self.stage = Stage::Closing;
            self.head = frame::close(CloseCode::NORMAL, "", None);
        } else if let Some(echo) = self.echoes.pop_front() {
            self.head = echo;
        } else if self.sends {
            let rate = self.state.rate.load(Ordering::Relaxed) as f64;
            let size = (rate / 8.0 * FRAME_SECONDS) as usize;
            self.body = size.clamp(MIN_FRAME, MAX_FRAME);
            self.head = frame::header(Opcode::Binary, self.body as u64, None).to_vec();
        } else {
            return false;
        }
        true
    }
}
