//! Applications at both ends of a connection: one list of steps that both follow.

use bench_harness::Fallible;
use host::clock;
use host::tcp_info::TcpInfo;
use perf::StopFlag;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What the applications do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    /// The receiver waits, and then sends a request of so many bytes.
    Request { after: Duration, bytes: usize },
    /// The sender waits.
    Wait(Duration),
    /// The sender waits for the next multiple of a period.
    Tick(Duration),
    /// The sender writes so many bytes.
    Data(usize),
}

/// Longest blocking of a read or a write, and so of the end.
const BLOCKING: Duration = Duration::from_millis(20);

/// Time between two looks at what is unsent.
const EVERY: Duration = Duration::from_millis(1);

/// Bytes of a write.
const BLOCK: usize = 64 * 1024;

/// The end of a connection whose application sends the data.
struct Sender<'a> {
    socket: &'a TcpStream,
    began: Instant,
    end: Instant,
    /// Whether the application has data that the socket has not taken yet.
    is_writing: &'a AtomicBool,
}

/// Follows the steps, again and again, until `seconds` have passed; returns the share of the time in
/// which the sender had nothing to send: neither in its socket nor beyond. Up to `held` bytes that the
/// socket holds back until they fill a segment are not sent because the application wrote no more.
pub(crate) fn run(
    steps: &[Step],
    seconds: f64,
    held: u32,
    sender: &TcpStream,
    receiver: &TcpStream,
) -> Fallible<f64> {
    for socket in [sender, receiver] {
        socket.set_read_timeout(Some(BLOCKING))?;
        socket.set_write_timeout(Some(BLOCKING))?;
    }
    let began = clock::now();
    let end = began + Duration::try_from_secs_f64(seconds)?;
    let (is_writing, ended) = (AtomicBool::new(false), StopFlag::new());
    let sending = Sender { socket: sender, began, end, is_writing: &is_writing };
    thread::scope(|scope| {
        scope.spawn(|| receive(steps, receiver, &ended));
        let idle = scope.spawn(|| idle_share(sender, held, &is_writing, &ended));
        let sent = sending.run(steps);
        ended.raise();
        let idle = idle.join().map_err(|_| "the sampling thread panicked")??;
        sent?;
        Ok(idle)
    })
}

/// The share of the time until the end in which nothing was unsent.
fn idle_share(
    socket: &TcpStream,
    held: u32,
    is_writing: &AtomicBool,
    ended: &StopFlag,
) -> io::Result<f64> {
    let began = clock::now();
    let (mut last, mut idle) = (began, Duration::ZERO);
    while !ended.is_raised() {
        thread::sleep(EVERY);
        let now = clock::now();
        let is_busy = is_writing.load(Ordering::Relaxed) || unsent(socket)? > held;
        idle += if is_busy { Duration::ZERO } else { now - last };
        last = now;
    }
    Ok(idle.as_secs_f64() / (last - began).as_secs_f64().max(1e-9))
}

fn unsent(socket: &TcpStream) -> io::Result<u32> {
    Ok(TcpInfo::of(socket)?.notsent_bytes.unwrap_or(0))
}

fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

impl Sender<'_> {
    fn is_over(&self) -> bool {
        clock::now() >= self.end
    }

    fn run(&self, steps: &[Step]) -> io::Result<()> {
        for step in steps.iter().cycle() {
            match *step {
                Step::Request { bytes, .. } => self.read(bytes)?,
                Step::Wait(time) => self.wait_until(clock::now() + time),
                Step::Tick(period) => {
                    let passed = clock::now() - self.began;
                    let ticks = passed.as_nanos() / period.as_nanos().max(1) + 1;
                    self.wait_until(self.began + period * u32::try_from(ticks).unwrap_or(u32::MAX));
                }
                Step::Data(bytes) => {
                    self.is_writing.store(true, Ordering::Relaxed);
                    self.write(bytes)?;
                    self.is_writing.store(false, Ordering::Relaxed);
                }
            }
            if self.is_over() {
                break;
            }
        }
        self.is_writing.store(false, Ordering::Relaxed);
        if unsent(self.socket)? > 0 {
            // What is queued is discarded: it could take longer than the run.
            return socket2::SockRef::from(self.socket).set_linger(Some(Duration::ZERO));
        }
        self.socket.shutdown(Shutdown::Write)
    }

    fn wait_until(&self, due: Instant) {
        thread::sleep(due.min(self.end).saturating_duration_since(clock::now()));
    }

    fn read(&self, bytes: usize) -> io::Result<()> {
        let mut left = bytes;
        let mut buffer = vec![0; bytes.clamp(1, BLOCK)];
        while left > 0 && !self.is_over() {
            let most = left.min(buffer.len());
            match (&mut &*self.socket).read(&mut buffer[..most]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => left -= read,
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write(&self, bytes: usize) -> io::Result<()> {
        let block = vec![0x5a; bytes.min(BLOCK)];
        let mut left = bytes;
        while left > 0 && !self.is_over() {
            match (&mut &*self.socket).write(&block[..left.min(BLOCK)]) {
                Ok(written) => left -= written,
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The receiver's part of the steps, until the sender has ended.
fn receive(steps: &[Step], socket: &TcpStream, ended: &StopFlag) {
    for step in steps.iter().cycle() {
        let done = match *step {
            Step::Request { after, bytes } => {
                sleep(after, ended);
                ended.is_raised() || (&mut &*socket).write_all(&vec![0x5a; bytes]).is_err()
            }
            Step::Data(bytes) => !drain(socket, bytes, ended),
            Step::Wait(_) | Step::Tick(_) => ended.is_raised(),
        };
        if done {
            return;
        }
    }
}

fn sleep(time: Duration, ended: &StopFlag) {
    let due = clock::now() + time;
    while !ended.is_raised() && clock::now() < due {
        thread::sleep(due.saturating_duration_since(clock::now()).min(BLOCKING));
    }
}

/// Reads so many bytes; false at the end.
fn drain(mut socket: &TcpStream, bytes: usize, ended: &StopFlag) -> bool {
    let mut buffer = vec![0; bytes.clamp(1, BLOCK)];
    let mut left = bytes;
    while left > 0 {
        let most = left.min(buffer.len());
        match socket.read(&mut buffer[..most]) {
            Ok(0) => return false,
            Ok(read) => left -= read,
            Err(error) if is_pause(&error) && !ended.is_raised() => {}
            Err(_) => return false,
        }
    }
    true
}
