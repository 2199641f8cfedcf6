//! Sends and receives the data of a TCP stream.

use crate::context::{Context, TICK};
use crate::meter::Meter;
use host::clock;
use iperf2_proto::{Amount, Pace};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Timeout for the peer to close the connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What a stream sends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Bytes per write or datagram.
    pub(crate) length: u32,
    pub(crate) pace: Option<Pace>,
    pub(crate) amount: Amount,
    /// Maximum duration, whatever the amount.
    pub(crate) max_duration: Duration,
}

impl Plan {
    pub(crate) fn until(&self, begun: Instant) -> Instant {
        let time = match self.amount {
            Amount::Time(time) => time.min(self.max_duration),
            Amount::Bytes(_) => self.max_duration,
        };
        begun + time
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self.amount {
            Amount::Time(_) => u64::MAX,
            Amount::Bytes(bytes) => bytes,
        }
    }
}

/// When a stream counts as idle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Idle {
    /// Timeout for the transfer of `bytes`.
    pub(crate) timeout: Duration,
    /// Bytes that must be transferred within `timeout`.
    pub(crate) bytes: u64,
}

/// Detects an idle stream.
struct Progress {
    idle: Idle,
    since: Instant,
    bytes: u64,
}

impl Progress {
    fn new(idle: Idle, now: Instant) -> Self {
        Progress { idle, since: now, bytes: 0 }
    }

    /// Counts transferred bytes.
    fn add(&mut self, bytes: usize, now: Instant) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.bytes >= self.idle.bytes {
            (self.since, self.bytes) = (now, 0);
        }
    }

    /// Fails if the stream is idle.
    fn check(&self, now: Instant, verb: &str) -> io::Result<()> {
        if now.saturating_duration_since(self.since) <= self.idle.timeout {
            return Ok(());
        }
        let seconds = self.idle.timeout.as_secs_f64();
        let amount = match self.idle.bytes {
            ..=1 => "nothing".to_owned(),
            bytes => format!("less than {bytes} bytes"),
        };
        let reason = format!("idle timeout: the peer {verb} {amount} within {seconds} s");
        Err(io::Error::new(ErrorKind::TimedOut, reason))
    }
}

/// Repeated digits, as in iperf 2: no header starts like this.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (b'0'..=b'9').cycle().take(length).collect()
}

/// Sends the stream, then closes the sending direction.
pub(crate) fn send(
    context: &Context<'_>,
    stream: &TcpStream,
    plan: &Plan,
    mut meter: Meter<'_>,
    idle: Idle,
) -> io::Result<()> {
    let sent = write_all(context, stream, plan, &mut meter, idle);
    meter.finish(clock::now());
    let _ = stream.shutdown(Shutdown::Write);
    sent
}

/// Reads until the peer closes, so that no data is lost to a reset.
pub(crate) fn drain(context: &Context<'_>, stream: &TcpStream) {
    let until = clock::now() + CLOSE_TIMEOUT;
    let mut buffer = [0; 4096];
    let _ = stream.set_read_timeout(Some(TICK));
    while clock::now() < until && !context.stop.is_raised() {
        match (&*stream).read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if is_retryable(&error) => {}
            Err(_) => return,
        }
    }
}

fn write_all(
    context: &Context<'_>,
    mut stream: &TcpStream,
    plan: &Plan,
    meter: &mut Meter<'_>,
    idle: Idle,
) -> io::Result<()> {
    stream.set_write_timeout(Some(TICK))?;
    let buffer = pattern(plan.length as usize);
    let begun = clock::now();
    meter.sends(begun);
    let until = plan.until(begun);
    let pace = plan.pace.map(|pace| pace.bits_per_second(plan.length));
    let rate = pace.map(|pace| pace as f64);
    // At most one second of data per write: only writes detect a closed connection.
    let max_write =
        pace.and_then(|pace| usize::try_from(pace / 8).ok()).unwrap_or(usize::MAX).max(1);
    let (mut sent, mut progress) = (0u64, Progress::new(idle, begun));
    loop {
        let now = clock::now();
        meter.tick(now);
        let left = plan.bytes() - sent.min(plan.bytes());
        if left == 0 || now >= until || context.is_over() {
            return Ok(());
        }
        if let Some(rate) = rate {
            let due = begun + Duration::from_secs_f64(sent as f64 * 8.0 / rate);
            if due > now {
                // Without a write, a reset shows only here.
                if let Some(error) = stream.take_error()? {
                    return Err(error);
                }
                thread::sleep((due.min(until) - now).min(TICK));
                progress = Progress::new(idle, now);
                continue;
            }
        }
        let size = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX)).min(max_write);
        match stream.write(&buffer[..size]) {
            Ok(written) => {
                meter.add(written);
                sent += written as u64;
                progress.add(written, now);
            }
            Err(error) if is_retryable(&error) => {}
            Err(error) => return Err(error),
        }
        progress.check(now, "read")?;
    }
}

/// Receives until the peer closes, or `until`.
pub(crate) fn receive(
    context: &Context<'_>,
    mut stream: &TcpStream,
    length: u32,
    until: Option<Instant>,
    mut meter: Meter<'_>,
    idle: Idle,
) -> io::Result<()> {
    stream.set_read_timeout(Some(TICK))?;
    let mut buffer = vec![0; length as usize];
    let mut ended = clock::now();
    let mut progress = Progress::new(idle, ended);
    let mut result = Ok(());
    loop {
        let read = stream.read(&mut buffer);
        let now = clock::now();
        meter.tick(now);
        match read {
            Ok(0) => {
                ended = now;
                break;
            }
            Ok(read) => {
                meter.add(read);
                progress.add(read, now);
                ended = now;
            }
            Err(error) if is_retryable(&error) => {}
            Err(error) => {
                result = Err(error);
                break;
            }
        }
        if let Err(error) = progress.check(now, "sent") {
            result = Err(error);
            break;
        }
        if context.is_over() || until.is_some_and(|until| now >= until) {
            break;
        }
    }
    meter.finish(ended);
    result
}

/// A read timeout, or a signal.
pub(crate) fn is_retryable(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
