//! Sends and receives the datagrams of one stream.

use crate::context::{Context, TICK};
use crate::credit::Budget;
use crate::event::Event;
use crate::meter::Meter;
use crate::tcp::{Plan, is_retryable, pattern};
use host::{clock, packet_info, udp, wait};
use iperf2_proto::{Datagram, ReceiveStats, ServerReport, datagram, header};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of last datagrams that are sent until the report arrives.
const REPORT_ATTEMPTS: u32 = 10;

/// Interval between them.
const REPORT_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum delay that a sender catches up on.
const MAX_CATCH_UP: Duration = Duration::from_millis(100);

/// How long the peer's port may be closed at first.
const REFUSAL_GRACE: Duration = Duration::from_secs(1);

/// Minimum number of ICMP errors from a closed port.
const MIN_REFUSALS: u64 = 20;

fn is_refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

/// Maximum UDP payload over IPv4, bytes.
pub(crate) const MAX_PAYLOAD: u32 = 65_507;

/// Where datagrams go.
pub(crate) enum UdpPath<'a> {
    /// Over the stream's connected socket.
    Connected(&'a UdpSocket),
    /// From a shared socket, and that address of it.
    To(&'a UdpSocket, SocketAddr, Option<IpAddr>),
}

impl UdpPath<'_> {
    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            UdpPath::Connected(socket) => socket.send(bytes),
            UdpPath::To(socket, peer, from) => packet_info::send(socket, bytes, *peer, *from),
        }
    }
}

/// What a stream has sent.
pub(crate) struct Sent {
    /// The last datagram's number.
    pub(crate) number: u64,
    /// Whether it was marked as the last.
    pub(crate) ended: bool,
    /// Whether the stream is reported.
    pub(crate) reported: bool,
}

/// Maximum sleep of a sender without credit, so that its reports are on time.
const CREDIT_WAIT: Duration = Duration::from_secs(1);

/// Sends one stream, the last datagram included.
pub(crate) fn send(
    context: &Context<'_>,
    path: &UdpPath<'_>,
    plan: &Plan,
    head: Option<&[u8; header::LENGTH]>,
    budget: &Budget,
    mut meter: Meter<'_>,
) -> io::Result<Sent> {
    wait::precise_timers();
    let mut buffer = pattern(plan.length as usize);
    if let (Some(head), Some(field)) =
        (head, buffer.get_mut(datagram::LENGTH..datagram::LENGTH + header::LENGTH))
    {
        field.copy_from_slice(head);
    }
    let rate =
        plan.pace.map_or(iperf2_proto::DEFAULT_RATE, |pace| pace.bits_per_second(plan.length));
    let period = Duration::from_secs_f64(f64::from(plan.length) * 8.0 / rate.max(1) as f64);
    let begun = clock::now();
    meter.sends(begun);
    let (until, length) = (plan.until(begun), u64::from(plan.length));
    let (mut number, mut due, mut refused, mut last_sent) = (1u64, begun, 0u64, begun);
    let result = loop {
        let now = clock::now();
        meter.tick(now);
        if now >= until || (number - 1).saturating_mul(length) >= plan.bytes() || context.is_over()
        {
            break Ok(());
        }
        if budget.is_over(length, now, due, last_sent) {
            break Ok(());
        }
        if due > now {
            thread::sleep((due.min(until) - now).min(TICK));
            continue;
        }
        if !budget.pay(length) {
            budget.wait(length, until.min(now + CREDIT_WAIT));
            continue;
        }
        Datagram { number, last: false, sent: clock::unix_time() }.encode(&mut buffer);
        let sent = path.send(&buffer);
        if sent.is_err() {
            budget.refund(length);
        }
        match sent {
            Ok(sent) => {
                meter.add(sent);
                number += 1;
                last_sent = now;
                due = due.max(now.checked_sub(MAX_CATCH_UP).unwrap_or(now)) + period;
            }
            Err(error) if udp::is_full(&error) => thread::sleep(Duration::from_micros(100)),
            Err(error) if is_retryable(&error) => {}
            // iperf 2 servers open a new socket for each stream, and the port is closed for
            // a moment. Only persistent errors mean that there is no server.
            Err(error) if is_refused(&error) => {
                refused += 1;
                let late = now.saturating_duration_since(begun) >= REFUSAL_GRACE;
                if late && refused >= MIN_REFUSALS && refused * 2 >= number {
                    break Err(error);
                }
            }
            Err(error) => break Err(error),
        }
    };
    let ended = clock::now();
    Datagram { number, last: true, sent: clock::unix_time() }.encode(&mut buffer);
    let last = result.is_ok() && budget.pay_for_last(length) && path.send(&buffer).is_ok();
    if last {
        meter.add(buffer.len());
    } else {
        number -= 1;
    }
    meter.tick(ended);
    let (label, reported) = (meter.label(), meter.is_reported());
    meter.finish(ended);
    if reported {
        (context.on_event)(Event::Sent { label, datagrams: number });
    }
    result.map(|()| Sent { number, ended: last, reported })
}

/// Waits for the server report and repeats the last datagram until it arrives. It is reported
/// for the `stream`, if that was.
pub(crate) fn await_report(
    context: &Context<'_>,
    socket: &UdpSocket,
    plan: &Plan,
    head: Option<&[u8; header::LENGTH]>,
    budget: &Budget,
    number: u64,
    stream: Option<(crate::Label, (SocketAddr, SocketAddr))>,
) -> io::Result<()> {
    let mut last = pattern(plan.length as usize);
    if let (Some(head), Some(field)) =
        (head, last.get_mut(datagram::LENGTH..datagram::LENGTH + header::LENGTH))
    {
        field.copy_from_slice(head);
    }
    let mut buffer = [0; 2048];
    socket.set_read_timeout(Some(TICK))?;
    let report = |event: &dyn Fn(crate::Label, (SocketAddr, SocketAddr)) -> Event| {
        if let Some((label, ends)) = stream {
            (context.on_event)(event(label, ends));
        }
    };
    let mut refused = None;
    for attempt in 0..REPORT_ATTEMPTS {
        if attempt > 0 && budget.pay_for_last(u64::from(plan.length)) {
            Datagram { number, last: true, sent: clock::unix_time() }.encode(&mut last);
            let _ = socket.send(&last);
        }
        let until = clock::now() + REPORT_INTERVAL;
        while clock::now() < until {
            match socket.recv(&mut buffer) {
                Ok(length) => {
                    let Some(told) = ServerReport::decode(&buffer[..length]) else { continue };
                    report(&|label, ends| Event::Report { label, ends, report: told });
                    return Ok(());
                }
                Err(error) if is_retryable(&error) => {}
                Err(error) if is_refused(&error) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        if context.stop.is_raised() && attempt > 1 {
            break;
        }
    }
    report(&|label, _| Event::NoReport { label, attempts: REPORT_ATTEMPTS });
    refused.map_or(Ok(()), Err)
}

/// Receives the stream of a connected socket, until its last datagram, `until`, or
/// `idle_timeout` without datagrams.
pub(crate) fn receive(
    context: &Context<'_>,
    socket: &UdpSocket,
    until: Instant,
    idle_timeout: Duration,
    meter: Meter<'_>,
) -> io::Result<()> {
    socket.set_read_timeout(Some(TICK))?;
    let mut meter = meter.with_stats(ReceiveStats::default());
    let mut buffer = vec![0; MAX_PAYLOAD as usize];
    let (mut started, mut last_received) = (false, clock::now());
    let grace = last_received + REFUSAL_GRACE;
    let result = loop {
        let read = socket.recv(&mut buffer);
        let now = clock::now();
        match read {
            Ok(length) => {
                if let Some(datagram) = Datagram::decode(&buffer[..length]) {
                    if !started {
                        started = true;
                        meter.begin(now);
                    }
                    meter.arrive(&datagram, length, clock::unix_time());
                    last_received = now;
                    if datagram.last {
                        break Ok(());
                    }
                }
            }
            Err(error) if is_retryable(&error) => {}
            Err(error) if is_refused(&error) && (started || now < grace) => {}
            Err(error) => break Err(error),
        }
        meter.tick(now);
        // The last datagram may be lost.
        if now >= until || now >= last_received + idle_timeout || context.is_over() {
            break Ok(());
        }
    };
    meter.finish(last_received);
    match result {
        Ok(()) if !started && !context.stop.is_raised() => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "received no datagrams from the peer"))
        }
        result => result,
    }
}
