//! The data path: one thread for each stream, large blocks, nothing allocated
//! while it runs.

use crate::pacing::Pacer;
use host::{clock, cpu::ThreadClock};
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use units::BitRate;

/// Longest a writer stays in the kernel with a full send buffer, and so the
/// longest it takes to notice the end.
const LONGEST_WRITE: Duration = Duration::from_millis(50);
/// Longest a paced writer sleeps without looking for the end.
const LONGEST_NAP: Duration = Duration::from_millis(20);
/// Bytes of a read, as of iperf3's default write.
const READ_BLOCK: usize = 128 * 1024;

/// One stream of a running test.
pub(crate) struct Flow {
    pub(crate) id: u32,
    pub(crate) socket: TcpStream,
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    /// Bytes written or read since the traffic began.
    bytes: AtomicU64,
    clock: OnceLock<ThreadClock>,
    /// CPU the thread used in all, once it has ended.
    cpu: OnceLock<Duration>,
    broke: OnceLock<String>,
}

impl Flow {
    pub(crate) fn new(id: u32, socket: TcpStream) -> io::Result<Self> {
        // Only writers are held by it; see LONGEST_WRITE.
        socket.set_write_timeout(Some(LONGEST_WRITE))?;
        Ok(Flow {
            id,
            local: unmapped(socket.local_addr()?),
            peer: unmapped(socket.peer_addr()?),
            socket,
            bytes: AtomicU64::new(0),
            clock: OnceLock::new(),
            cpu: OnceLock::new(),
            broke: OnceLock::new(),
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What the kernel answered when the stream failed before its end.
    pub(crate) fn broke(&self) -> Option<&str> {
        self.broke.get().map(String::as_str)
    }

    /// CPU its thread has used so far.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        self.cpu.get().copied().or_else(|| self.clock.get()?.read())
    }
}

/// What a test's threads share.
pub(crate) struct Traffic {
    /// No byte counts from here on.
    ended: AtomicBool,
    /// Bytes that may still be written over all streams, where bytes end the
    /// test; so many that it never matters otherwise.
    budget: AtomicI64,
    running: AtomicUsize,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        Traffic {
            ended: AtomicBool::new(false),
            budget: AtomicI64::new(i64::MAX),
            running: AtomicUsize::new(0),
        }
    }

    /// Lets so many bytes be written from now on, over all streams.
    pub(crate) fn limit(&self, bytes: u64) {
        self.budget.store(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Waits for the threads to end, at most `patience`; tells whether they have.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let until = clock::now() + patience;
        while self.running.load(Ordering::Acquire) > 0 {
            if clock::now() >= until {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Waits for writers after the end: each comes back from the kernel within
    /// [`LONGEST_WRITE`], unless the machine is stalled.
    pub(crate) fn wait_for_writers(&self) {
        self.wait(Duration::from_secs(2));
    }

    /// Starts a flow's reader in `scope`.
    pub(crate) fn start_reader<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        flow: &'scope Flow,
    ) -> io::Result<()> {
        let mut buffer = vec![0; READ_BLOCK];
        self.start(scope, flow, move || self.read_until_end(flow, &mut buffer))
    }

    /// Starts a flow's writer in `scope`.
    pub(crate) fn start_writer<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        flow: &'scope Flow,
        block: &'scope [u8],
        rate: Option<BitRate>,
        start: Instant,
    ) -> io::Result<()> {
        let pacer = rate.map(|rate| Pacer::new(rate, start));
        self.start(scope, flow, move || self.write_until_end(flow, block, pacer))
    }

    fn start<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        flow: &'scope Flow,
        work: impl FnOnce() -> io::Result<()> + Send + 'scope,
    ) -> io::Result<()> {
        self.running.fetch_add(1, Ordering::Relaxed);
        let body = move || {
            if let Ok(clock) = ThreadClock::of_this_thread() {
                let _ = flow.clock.set(clock);
            }
            if let Err(error) = work()
                && !self.has_ended()
            {
                let _ = flow.broke.set(error.to_string());
            }
            if let Ok(used) = host::cpu::this_thread() {
                let _ = flow.cpu.set(used);
            }
            self.running.fetch_sub(1, Ordering::Release);
        };
        let name = format!("stream {}", flow.id);
        // 128 streams at the default of 2 MiB would reserve 256 MiB for nothing.
        let started =
            thread::Builder::new().name(name).stack_size(256 * 1024).spawn_scoped(scope, body);
        if started.is_err() {
            self.running.fetch_sub(1, Ordering::Relaxed);
        }
        started.map(drop)
    }

    /// Reads until the other end closes or this end shuts the socket. What
    /// comes after the end is taken off the network and not counted: a sender
    /// with full buffers could not hear that it is over.
    fn read_until_end(&self, flow: &Flow, buffer: &mut [u8]) -> io::Result<()> {
        loop {
            match (&flow.socket).read(buffer) {
                Ok(0) => return Ok(()),
                Ok(got) if !self.has_ended() => {
                    flow.bytes.fetch_add(got as u64, Ordering::Relaxed);
                }
                Ok(_) => {}
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn write_until_end(&self, flow: &Flow, block: &[u8], pacer: Option<Pacer>) -> io::Result<()> {
        let most = pacer.map_or(block.len(), |pacer| pacer.block(block.len()));
        while !self.has_ended() {
            if let Some(pacer) = pacer {
                let wait = pacer.wait(flow.bytes(), clock::now());
                if !wait.is_zero() {
                    thread::sleep(wait.min(LONGEST_NAP));
                    continue;
                }
            }
            let granted = self.draw(most);
            if granted == 0 {
                return Ok(());
            }
            let wrote = match (&flow.socket).write(&block[..granted]) {
                Ok(wrote) => wrote,
                Err(error) if is_pause(&error) => 0,
                Err(error) => return Err(error),
            };
            flow.bytes.fetch_add(wrote as u64, Ordering::Relaxed);
            self.give_back(granted - wrote);
        }
        Ok(())
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
        for flow in self.flows {
            let _ = flow.socket.shutdown(Shutdown::Both);
        }
    }
}

/// A block to send: random, so that nothing on the path can compress it.
pub(crate) fn payload(length: usize) -> Vec<u8> {
    let mut block = vec![0; length];
    Pcg64Mcg::new(0x006c_6f6e_6768_6175_6c21_2121).fill_bytes(&mut block);
    block
}

/// The IPv4 address behind a dual-stack socket's `::ffff:192.0.2.1`.
pub(crate) fn unmapped(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
