//! Evenly spaced probes to one host, and statistics of the replies.

use crate::connect::{self, ConnectProber};
use crate::echo::EchoProber;
use crate::error::check_pace;
use crate::prober::{Outcome, Prober, Response, Target};
use crate::resolve::{Family, resolve};
use crate::rtt_stats::{ReplyKind, RttStats};
use crate::{ProbeError, icmp};
use host::address::{host_text, with_port};
use host::{clock, wait};
use problem::Field;
use record::{PING_SCHEMA, PingError, PingReport};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// Maximum payload of an ICMP echo request over IPv4, bytes.
const MAX_PAYLOAD: usize = 65_535 - 20 - icmp::HEADER;

/// Maximum delay until an interruption is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The type of probes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PingMethod {
    /// ICMP echo requests; TCP connections to port 443 if they are not permitted.
    #[default]
    IcmpOrTcp,
    /// TCP connections to this port.
    Tcp(u16),
}

/// A router gives up a neighbour that does not answer three requests, one each second (RFC 4861
/// section 10; Linux does so for ARP as well).
const NEIGHBOUR: Duration = Duration::from_millis(3_500);
/// Kinds of errors that are listed.
const MAX_ERRORS: usize = 16;

/// The configuration of [`ping()`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PingConfig {
    /// Host name or address.
    pub host: String,
    /// Which IP version.
    pub family: Family,
    /// The type of probes.
    pub method: PingMethod,
    /// Number of probes; 0 for no limit.
    pub count: u64,
    /// Interval between probes, at least 1 ms.
    #[serde(with = "units::seconds")]
    pub interval: Duration,
    /// Payload of each echo request, bytes.
    pub payload: usize,
    /// A reply after more than this is late.
    #[serde(with = "units::seconds")]
    pub timeout: Duration,
    /// Whether a run without any reply waits for what routers say of its probes: they take 3 s to find
    /// out that a host is missing.
    pub waits_for_errors: bool,
    /// Source address.
    pub bind: Option<IpAddr>,
    /// The TOS byte: DSCP and ECN; `None` for the system's default.
    pub tos: Option<u8>,
    /// TTL or hop limit; `None` for the system's default.
    pub ttl: Option<u8>,
}

impl Default for PingConfig {
    /// Ten probes, one per second, as ping(8) sends them. The host is missing.
    fn default() -> Self {
        PingConfig {
            host: String::new(),
            family: Family::Any,
            method: PingMethod::IcmpOrTcp,
            count: 10,
            interval: Duration::from_secs(1),
            payload: 56,
            timeout: Duration::from_secs(2),
            waits_for_errors: true,
            bind: None,
            tos: None,
            ttl: None,
        }
    }
}

impl PingConfig {
    /// Ten probes to a host, one per second.
    #[must_use]
    pub fn new(host: &str) -> Self {
        PingConfig { host: host.to_owned(), ..PingConfig::default() }
    }

    /// Some probes to an address, by ICMP where that is permitted, with the system's defaults.
    #[must_use]
    pub fn plain(address: SocketAddr, count: u64, interval: Duration, timeout: Duration) -> Self {
        PingConfig {
            host: host_text(address),
            count,
            interval,
            timeout,
            waits_for_errors: false,
            ..PingConfig::default()
        }
    }

    /// Checks the fields.
    ///
    /// # Errors
    /// [`ProbeError::Setting`]: the field, and what it accepts.
    pub fn check(&self) -> Result<(), ProbeError> {
        let wrong =
            |field, what: String, accepted| Err(ProbeError::Setting { field, what, accepted });
        check_pace(&self.host, self.interval, (1, "at least 1 ms"), self.timeout)?;
        if self.payload > MAX_PAYLOAD {
            let what = format!("payload of {} bytes", self.payload);
            return wrong(Field::Payload, what, "at most 65507 bytes");
        }
        if self.method == PingMethod::Tcp(0) {
            let what = "TCP port 0: ports are 1 to 65535".to_owned();
            return wrong(Field::Port, what, "");
        }
        if self.ttl == Some(0) {
            return wrong(Field::Ttl, "TTL 0".to_owned(), "1 to 255");
        }
        Ok(())
    }
}

/// What [`ping()`] reports while it runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The address is resolved and the socket open.
    Started {
        /// The host's address.
        address: IpAddr,
        /// The TCP port; `None` for ICMP.
        port: Option<u16>,
        /// Notes for the user.
        notes: Vec<String>,
    },
    /// The host replied.
    Reply {
        /// The probe's number, from 1.
        number: u64,
        /// The sender of the reply.
        from: IpAddr,
        /// Length of the ICMP message, bytes; 0 for TCP.
        bytes: usize,
        /// The remaining TTL of the reply.
        ttl: Option<u8>,
        /// The RTT.
        #[serde(with = "units::seconds")]
        rtt: Duration,
        /// Whether it came after the timeout.
        late: bool,
        /// Whether the probe had an earlier reply.
        duplicate: bool,
        /// TCP: whether the port is closed.
        refused: bool,
    },
    /// A router or this host reported an error.
    Unreachable {
        /// The probe's number.
        number: u64,
        /// The sender of the error; `None` for this host.
        from: Option<IpAddr>,
        /// The error.
        reason: String,
    },
}

/// Probes a host and returns statistics. `on_event` is called for each reply and error;
/// `stop` ends the run with the results so far.
///
/// # Errors
/// [`ProbeError`]: a name without address, no privilege, no route.
pub fn ping(
    config: &PingConfig,
    on_event: &mut dyn FnMut(Event),
    stop: &dyn Fn() -> bool,
) -> Result<PingReport, ProbeError> {
    config.check()?;
    let port = match config.method {
        PingMethod::IcmpOrTcp => 0,
        PingMethod::Tcp(port) => port,
    };
    let to = resolve(&config.host, port, config.family, config.bind, stop)?;
    let mut target = Target { to, bind: config.bind, tos: config.tos, ttl: config.ttl };
    let mut notes = Vec::new();
    let mut prober: Box<dyn Prober> = match config.method {
        PingMethod::Tcp(_) => Box::new(connect_prober(target)?),
        PingMethod::IcmpOrTcp => match EchoProber::open(target, config.payload) {
            Ok(prober) => Box::new(prober),
            Err(ProbeError::Privileges) => {
                target.to = with_port(to, 443);
                notes.push(
                    "using TCP connections: this user may not send ICMP; run as root, setcap \
                     cap_net_raw+ep on the program, or widen net.ipv4.ping_group_range"
                        .to_owned(),
                );
                Box::new(connect_prober(target)?)
            }
            Err(error) => return Err(error),
        },
    };
    let port = Some(target.to.port()).filter(|port| *port != 0);
    let timeout = if port.is_some() && config.timeout > connect::MAX_TIMEOUT {
        connect::MAX_TIMEOUT
    } else {
        config.timeout
    };
    on_event(Event::Started { address: to.ip(), port, notes: notes.clone() });
    let started_unix_s = clock::unix_seconds();
    let stats = RttStats::new(timeout);
    let mut run = Run { config, stats, errors: Vec::new(), on_event };
    run.run(prober.as_mut(), stop).map_err(|source| ProbeError::System {
        operation: "wait for replies",
        address: to.ip(),
        source,
    })?;
    let (stats, unreachable) = (run.stats, run.errors);
    let waiting = if stop() { stats.waiting(clock::now()) } else { 0 };
    let lost = stats.sent.saturating_sub(stats.received + stats.late + waiting);
    let settled = stats.sent - waiting;
    Ok(PingReport {
        schema: PING_SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s,
        target: config.host.clone(),
        address: to.ip().to_string(),
        method: if port.is_some() { "tcp" } else { "icmp" },
        port,
        payload_bytes: if port.is_some() { 0 } else { config.payload },
        interval_ms: config.interval.as_secs_f64() * 1e3,
        timeout_ms: timeout.as_secs_f64() * 1e3,
        sent: stats.sent,
        received: stats.received,
        late: stats.late,
        lost,
        waiting,
        loss: if settled == 0 { 0.0 } else { lost as f64 / settled as f64 },
        duplicates: stats.duplicates,
        reordered: stats.reordered,
        errors: stats.errors,
        unreachable,
        round_trips: stats.round_trips(),
        probes: stats.probes(),
        notes,
    })
}

/// Opens one socket first, to report errors that every probe would have.
fn connect_prober(target: Target) -> Result<ConnectProber, ProbeError> {
    use socket2::{Protocol, Type};
    target.socket(Type::STREAM, Protocol::TCP).map_err(|error| target.open_error(error))?;
    ConnectProber::new(target).map_err(|error| target.open_error(error))
}

struct Run<'a> {
    config: &'a PingConfig,
    stats: RttStats,
    errors: Vec<PingError>,
    on_event: &'a mut dyn FnMut(Event),
}

impl Run<'_> {
    fn run(&mut self, prober: &mut dyn Prober, stop: &dyn Fn() -> bool) -> std::io::Result<()> {
        wait::precise_timers();
        let mut responses = Vec::new();
        let mut next = clock::now();
        let mut last = next;
        while !stop() {
            let now = clock::now();
            let all = self.config.count > 0 && self.stats.sent >= self.config.count;
            if all && self.stats.waiting(now) == 0 && !self.waits_for_errors(now, last) {
                break;
            }
            if !all && now >= next {
                self.send(prober, now);
                last = now;
                // After a stall, missed probes are not sent in a burst.
                next = (next + self.config.interval).max(now);
            }
            let until = if all { now + POLL_INTERVAL } else { next };
            let left = until.saturating_duration_since(clock::now());
            // A finer resolution matters only at the last timeout.
            prober.wait(left.min(if all { POLL_INTERVAL / 10 } else { POLL_INTERVAL }))?;
            prober.receive(&mut responses)?;
            for response in responses.drain(..) {
                self.receive(response);
            }
        }
        Ok(())
    }

    /// Whether nothing has come back and a router may still say why.
    fn waits_for_errors(&self, now: Instant, last: Instant) -> bool {
        let is_silent = self.stats.received + self.stats.late + self.stats.errors == 0;
        self.config.waits_for_errors && is_silent && now.duration_since(last) < NEIGHBOUR
    }

    fn send(&mut self, prober: &mut dyn Prober, now: Instant) {
        let number = self.stats.sent + 1;
        // Probes carry the low 16 bits.
        let seq = u16::try_from(number & 0xffff).unwrap_or_default();
        match prober.send(seq, None) {
            Ok(at) => self.stats.send(at),
            Err(error) => {
                self.stats.send(now);
                self.stats.fail(number);
                let reason = format!("cannot send: {error}");
                self.count_error(None, &reason);
                (self.on_event)(Event::Unreachable { number, from: None, reason });
            }
        }
    }

    fn receive(&mut self, response: Response) {
        let Some(number) = self.stats.number(response.seq) else { return };
        match response.outcome {
            Outcome::Reply | Outcome::Closed => {
                let (Some(from), Some((kind, rtt))) =
                    (response.from, self.stats.reply(number, response.at))
                else {
                    return;
                };
                (self.on_event)(Event::Reply {
                    number,
                    from,
                    bytes: response.bytes,
                    ttl: response.ttl,
                    rtt,
                    late: kind == ReplyKind::Late,
                    duplicate: kind == ReplyKind::Duplicate,
                    refused: response.outcome == Outcome::Closed,
                });
            }
            Outcome::Expired => {
                self.fail(number, response.from, "time to live exceeded".to_owned());
            }
            Outcome::Unreachable(reason) => self.fail(number, response.from, reason),
        }
    }

    fn count_error(&mut self, from: Option<IpAddr>, reason: &str) {
        let from = from.map(|from| from.to_string());
        let is_known = |known: &PingError| known.from == from && known.reason == reason;
        if let Some(at) = self.errors.iter().position(is_known) {
            self.errors[at].count += 1;
        } else if self.errors.len() < MAX_ERRORS {
            self.errors.push(PingError { from, reason: reason.to_owned(), count: 1 });
        }
    }

    fn fail(&mut self, number: u64, from: Option<IpAddr>, reason: String) {
        if self.stats.fail(number) {
            self.count_error(from, &reason);
            (self.on_event)(Event::Unreachable { number, from, reason });
        }
    }
}
