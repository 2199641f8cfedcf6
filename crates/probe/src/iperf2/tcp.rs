//! The data of a TCP stream, either way.

use super::desk::{Desk, TICK};
use super::meter::Meter;
use host::clock;
use iperf2::{Amount, Pace};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// How long the other end may take to close after us.
const CLOSING: Duration = Duration::from_secs(2);

/// What a stream sends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Bytes of a write or datagram.
    pub(crate) length: u32,
    pub(crate) pace: Option<Pace>,
    pub(crate) amount: Amount,
    /// The longest it may take, whatever the amount.
    pub(crate) most: Duration,
}

impl Plan {
    pub(crate) fn until(&self, begun: Instant) -> Instant {
        let time = match self.amount {
            Amount::Time(time) => time.min(self.most),
            Amount::Bytes(_) => self.most,
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

/// The digits in turn, as the real program fills its buffers: no header begins so.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (b'0'..=b'9').cycle().take(length).collect()
}

/// Sends, then says that it is done and waits for the other end to close.
pub(crate) fn send(
    desk: &Desk<'_>,
    stream: &TcpStream,
    plan: &Plan,
    mut meter: Meter<'_>,
    silence: Duration,
) -> io::Result<()> {
    let sent = write_all(desk, stream, plan, &mut meter, silence);
    meter.finish(clock::now());
    let _ = stream.shutdown(Shutdown::Write);
    sent
}

/// Reads what is left until the other end closes, so that it gets everything.
pub(crate) fn drain(desk: &Desk<'_>, stream: &TcpStream) {
    let until = clock::now() + CLOSING;
    let mut buffer = [0; 4096];
    let _ = stream.set_read_timeout(Some(TICK));
    while clock::now() < until && !desk.stop.is_raised() {
        match (&*stream).read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if may_go_on(&error) => {}
            Err(_) => return,
        }
    }
}

fn write_all(
    desk: &Desk<'_>,
    mut stream: &TcpStream,
    plan: &Plan,
    meter: &mut Meter<'_>,
    silence: Duration,
) -> io::Result<()> {
    stream.set_write_timeout(Some(TICK))?;
    let buffer = pattern(plan.length as usize);
    let begun = clock::now();
    meter.sends(begun);
    let until = plan.until(begun);
    let rate = plan.pace.map(|pace| pace.bits_per_second(plan.length) as f64);
    let (mut sent, mut moved) = (0u64, begun);
    loop {
        let now = clock::now();
        meter.tick(now);
        let left = plan.bytes() - sent.min(plan.bytes());
        if left == 0 || now >= until || desk.is_over() {
            return Ok(());
        }
        if let Some(rate) = rate {
            let due = begun + Duration::from_secs_f64(sent as f64 * 8.0 / rate);
            if due > now {
                thread::sleep((due.min(until) - now).min(TICK));
                moved = now;
                continue;
            }
        }
        let size = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match stream.write(&buffer[..size]) {
            Ok(written) => {
                meter.add(written);
                sent += written as u64;
                moved = now;
            }
            Err(error) if may_go_on(&error) => {
                if now.saturating_duration_since(moved) > silence {
                    return Err(io::Error::new(ErrorKind::TimedOut, "the other end reads nothing"));
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Receives until the other end is done, or `until`.
pub(crate) fn receive(
    desk: &Desk<'_>,
    mut stream: &TcpStream,
    length: u32,
    until: Option<Instant>,
    mut meter: Meter<'_>,
    silence: Duration,
) -> io::Result<()> {
    stream.set_read_timeout(Some(TICK))?;
    let mut buffer = vec![0; length as usize];
    let mut moved = clock::now();
    let mut result = Ok(());
    let mut ended = moved;
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
                (moved, ended) = (now, now);
            }
            Err(error) if may_go_on(&error) => {
                if now.saturating_duration_since(moved) > silence {
                    result =
                        Err(io::Error::new(ErrorKind::TimedOut, "the other end sends nothing"));
                    break;
                }
            }
            Err(error) => {
                result = Err(error);
                break;
            }
        }
        if desk.is_over() || until.is_some_and(|until| now >= until) {
            break;
        }
    }
    meter.finish(ended);
    result
}

/// A timeout of ours, or a signal.
pub(crate) fn may_go_on(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
