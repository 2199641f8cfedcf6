//! The datagrams of one stream, either way.

use super::desk::{Desk, TICK};
use super::event::Event;
use super::meter::Meter;
use super::tcp::{Plan, may_go_on, pattern};
use host::{clock, udp, wait};
use iperf2::{Account, Datagram, ServerReport, datagram, header};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::thread;
use std::time::{Duration, Instant};

/// How often the last datagram is sent until there is a report.
const TRIES: u32 = 10;

/// Between two of those.
const RETRY: Duration = Duration::from_millis(250);

/// How far behind its pace a sender may fall and still catch up.
const BEHIND: Duration = Duration::from_millis(100);

/// How long a port may be closed at first.
const PATIENCE: Duration = Duration::from_secs(1);

/// Refusals of a port that is closed.
const MANY: u64 = 20;

fn is_refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

/// The longest datagram of IPv4.
pub(crate) const LONGEST: u32 = 65_507;

/// Where datagrams go.
pub(crate) enum Way<'a> {
    /// Over a socket of the stream's own.
    Connected(&'a UdpSocket),
    /// From a socket that serves others too.
    To(&'a UdpSocket, SocketAddr),
}

impl Way<'_> {
    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Way::Connected(socket) => socket.send(bytes),
            Way::To(socket, peer) => socket.send_to(bytes, peer),
        }
    }
}

/// What a stream may send at most: what has come from there, in bytes. Whoever
/// forges an address gets its owner no more than it has sent.
#[derive(Debug, Clone)]
pub(crate) enum Budget {
    /// No limit: we began ourselves, or the peer is trusted.
    Unlimited,
    /// What has come so far; another thread counts on.
    Came(Arc<AtomicU64>),
}

impl Budget {
    fn allows(&self, bytes: u64) -> bool {
        match self {
            Budget::Unlimited => true,
            Budget::Came(came) => bytes <= came.load(Ordering::Relaxed),
        }
    }
}

/// Sends one stream, the last datagram included; gives that one's number.
pub(crate) fn send(
    desk: &Desk<'_>,
    way: &Way<'_>,
    plan: &Plan,
    head: Option<&[u8; header::LENGTH]>,
    budget: &Budget,
    mut meter: Meter<'_>,
) -> io::Result<u64> {
    wait::precise_timers();
    let mut buffer = pattern(plan.length as usize);
    if let (Some(head), Some(room)) =
        (head, buffer.get_mut(datagram::WRITTEN..datagram::WRITTEN + header::LENGTH))
    {
        room.copy_from_slice(head);
    }
    let rate = plan.pace.map_or(iperf2::DEFAULT_RATE, |pace| pace.bits_per_second(plan.length));
    let period = Duration::from_secs_f64(f64::from(plan.length) * 8.0 / rate.max(1) as f64);
    let begun = clock::now();
    meter.sends(begun);
    let (until, length) = (plan.until(begun), u64::from(plan.length));
    let (mut number, mut due, mut refused) = (1u64, begun, 0u64);
    let result = loop {
        let now = clock::now();
        meter.tick(now);
        if now >= until || (number - 1).saturating_mul(length) >= plan.bytes() || desk.is_over() {
            break Ok(());
        }
        if due > now {
            thread::sleep((due.min(until) - now).min(TICK));
            continue;
        }
        if !budget.allows(number * length) {
            thread::sleep(Duration::from_millis(1));
            continue;
        }
        Datagram { number, last: false, sent: clock::unix_time() }.encode(&mut buffer);
        match way.send(&buffer) {
            Ok(sent) => {
                meter.add(sent);
                number += 1;
                due = due.max(now.checked_sub(BEHIND).unwrap_or(now)) + period;
            }
            Err(error) if udp::is_full(&error) => thread::sleep(Duration::from_micros(100)),
            Err(error) if may_go_on(&error) => {}
            // The real server makes a new socket for each stream, and for a moment
            // has none for the others. Only where it stays so is nobody there.
            Err(error) if is_refused(&error) => {
                refused += 1;
                let late = now.saturating_duration_since(begun) >= PATIENCE;
                if late && refused >= MANY && refused * 2 >= number {
                    break Err(error);
                }
            }
            Err(error) => break Err(error),
        }
    };
    let ended = clock::now();
    // Without the last datagram the other end waits for more.
    while result.is_ok()
        && !budget.allows(number * length)
        && clock::now() < ended + PATIENCE
        && !desk.stop.is_raised()
    {
        thread::sleep(Duration::from_millis(1));
    }
    Datagram { number, last: true, sent: clock::unix_time() }.encode(&mut buffer);
    if result.is_ok() && budget.allows(number * length) && way.send(&buffer).is_ok() {
        meter.add(buffer.len());
    } else {
        number -= 1;
    }
    let label = meter.label();
    meter.finish(ended);
    (desk.tell)(Event::Sent { label, datagrams: number });
    result.map(|()| number)
}

/// Waits for the receiver's report, and reminds it by the last datagram. What
/// it says is told.
pub(crate) fn await_report(
    desk: &Desk<'_>,
    socket: &UdpSocket,
    plan: &Plan,
    head: Option<&[u8; header::LENGTH]>,
    number: u64,
    told: (super::Label, (SocketAddr, SocketAddr)),
) -> io::Result<()> {
    let mut last = pattern(plan.length as usize);
    if let (Some(head), Some(room)) =
        (head, last.get_mut(datagram::WRITTEN..datagram::WRITTEN + header::LENGTH))
    {
        room.copy_from_slice(head);
    }
    let mut buffer = [0; 2048];
    socket.set_read_timeout(Some(TICK))?;
    let (label, ends) = told;
    let mut refused = None;
    for attempt in 0..TRIES {
        if attempt > 0 {
            Datagram { number, last: true, sent: clock::unix_time() }.encode(&mut last);
            let _ = socket.send(&last);
        }
        let until = clock::now() + RETRY;
        while clock::now() < until {
            match socket.recv(&mut buffer) {
                Ok(length) => {
                    let Some(report) = ServerReport::decode(&buffer[..length]) else { continue };
                    (desk.tell)(Event::Report { label, ends, report });
                    return Ok(());
                }
                Err(error) if may_go_on(&error) => {}
                Err(error) if is_refused(&error) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        if desk.stop.is_raised() && attempt > 1 {
            break;
        }
    }
    (desk.tell)(Event::NoReport { label, tries: TRIES });
    refused.map_or(Ok(()), Err)
}

/// Receives the one stream that comes to a connected socket, until its last
/// datagram, `until`, or nothing came for `silence`.
pub(crate) fn receive(
    desk: &Desk<'_>,
    socket: &UdpSocket,
    until: Instant,
    silence: Duration,
    meter: Meter<'_>,
) -> io::Result<()> {
    socket.set_read_timeout(Some(TICK))?;
    let mut meter = meter.with_account(Account::default());
    let mut buffer = vec![0; LONGEST as usize];
    let (mut begun, mut came) = (false, clock::now());
    let patience = came + PATIENCE;
    let result = loop {
        let read = socket.recv(&mut buffer);
        let now = clock::now();
        match read {
            Ok(length) => {
                if let Some(datagram) = Datagram::decode(&buffer[..length]) {
                    if !begun {
                        begun = true;
                        meter.begin(now);
                    }
                    meter.arrive(&datagram, length, clock::unix_time());
                    came = now;
                    if datagram.last {
                        break Ok(());
                    }
                }
            }
            Err(error) if may_go_on(&error) => {}
            Err(error) if is_refused(&error) && (begun || now < patience) => {}
            Err(error) => break Err(error),
        }
        meter.tick(now);
        // The last datagram can be lost like any other.
        if now >= until || now >= came + silence || desk.is_over() {
            break Ok(());
        }
    };
    meter.finish(came);
    match result {
        Ok(()) if !begun && !desk.stop.is_raised() => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "nothing came from the other end"))
        }
        result => result,
    }
}
