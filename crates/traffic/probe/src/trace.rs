//! Traces the route to a host: rounds of probes that expire at each hop.

use crate::ProbeError;
use crate::connect::{self, ConnectProber};
use crate::datagram::UdpProber;
use crate::echo::EchoProber;
use crate::error::check_pace;
use crate::geoip::GeoIp;
use crate::hops::{Hops, Next};
use crate::prober::{Prober, Target};
use crate::resolve::{Family, resolve};
use crate::route_map;
use host::{clock, names, wait};
use places::Location;
use problem::Field;
use record::{TRACE_SCHEMA, TraceReport};
use serde::{Deserialize, Serialize};
use socket2::{Protocol, Type};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum delay until an interruption is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Minimum interval between updates.
const UPDATE_INTERVAL: Duration = Duration::from_millis(200);
/// Interval between probes during the search for the route.
const PROBE_GAP: Duration = Duration::from_millis(20);
/// How long the end of a trace waits for names.
const NAME_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of concurrent resolver threads.
const MAX_RESOLVERS: usize = 64;

/// The type of probes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceMethod {
    #[default]
    /// UDP: needs no privilege.
    Udp,
    /// ICMP echo requests.
    Icmp,
    /// TCP SYNs: need no privilege since Linux 5.9.
    Tcp,
}

/// The configuration of [`trace()`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceConfig {
    /// Host name or address.
    pub host: String,
    /// Which IP version.
    pub family: Family,
    /// The type of probes.
    pub method: TraceMethod,
    /// Destination port; by default 33434 for UDP, 443 for TCP.
    pub port: Option<u16>,
    /// Number of rounds; 0 for no limit.
    pub rounds: u64,
    /// Maximum number of hops.
    pub max_hops: u8,
    /// Interval between rounds, at least 10 ms.
    #[serde(with = "units::seconds")]
    pub interval: Duration,
    /// A later reply counts as lost.
    #[serde(with = "units::seconds")]
    pub timeout: Duration,
    /// Source address.
    pub bind: Option<IpAddr>,
    /// Whether to resolve addresses to names.
    pub resolve_names: bool,
    /// MaxMind databases of AS numbers and locations.
    pub databases: Vec<PathBuf>,
    /// Where this host is: the first point of the map.
    pub from: Option<Location>,
}

/// Probes each hop on the route to a host in rounds. `on_update` gets the report so far
/// when it has changed, at most five times a second; `stop` ends the trace with the
/// results so far.
///
/// # Errors
/// [`ProbeError`]: a name without address, no privilege, no route.
pub fn trace(
    config: &TraceConfig,
    on_update: &mut dyn FnMut(&TraceReport),
    stop: &dyn Fn() -> bool,
) -> Result<TraceReport, ProbeError> {
    config.check()?;
    let geoip = GeoIp::open(&config.databases)?;
    let port = match config.method {
        TraceMethod::Udp => config.port.unwrap_or(33_434),
        TraceMethod::Tcp => config.port.unwrap_or(443),
        TraceMethod::Icmp => 0,
    };
    let to = resolve(&config.host, port, config.family, config.bind, stop)?;
    let target = Target { to, bind: config.bind, tos: None, ttl: None };
    let mut timeout = config.timeout;
    let mut prober: Box<dyn Prober> = match config.method {
        TraceMethod::Udp => Box::new(udp_prober(target)?),
        TraceMethod::Icmp => Box::new(EchoProber::open(target, 24)?),
        TraceMethod::Tcp => {
            timeout = timeout.min(connect::MAX_TIMEOUT);
            Box::new(connect_prober(target)?)
        }
    };
    let report = TraceReport {
        schema: TRACE_SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s: clock::unix_seconds(),
        target: config.host.clone(),
        address: to.ip().to_string(),
        method: match config.method {
            TraceMethod::Udp => "udp",
            TraceMethod::Icmp => "icmp",
            TraceMethod::Tcp => "tcp",
        },
        port: Some(port).filter(|port| *port != 0),
        rounds: 0,
        interval_ms: config.interval.as_secs_f64() * 1e3,
        timeout_ms: timeout.as_secs_f64() * 1e3,
        reached: false,
        hops: Vec::new(),
        map: None,
        notes: Vec::new(),
    };
    let mut run = Run {
        hops: Hops::new(to.ip(), config.max_hops, timeout),
        names: config.resolve_names.then(Names::new),
        geoip,
        report,
        seq: 0,
        changed: true,
        updated: None,
        failure: None,
        on_update,
        stop,
    };
    let done = run.run(config, prober.as_mut());
    done.map_err(|source| ProbeError::System {
        operation: "wait for replies",
        address: to.ip(),
        source,
    })?;
    run.wait_for_names();
    let mut report = run.finish();
    let from = config.from.as_ref();
    let notes = route_map::locate(&mut report.hops, from);
    report.notes.extend(notes);
    report.map = route_map::route_map(&report.hops, from);
    Ok(report)
}

impl Default for TraceConfig {
    /// Ten rounds, one per second. The host is missing.
    fn default() -> Self {
        TraceConfig {
            host: String::new(),
            family: Family::Any,
            method: TraceMethod::Udp,
            port: None,
            rounds: 10,
            max_hops: 30,
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            bind: None,
            resolve_names: true,
            databases: Vec::new(),
            from: None,
        }
    }
}

impl TraceConfig {
    /// Ten rounds to a host, one per second.
    #[must_use]
    pub fn new(host: &str) -> Self {
        TraceConfig { host: host.to_owned(), ..TraceConfig::default() }
    }

    /// Checks the fields.
    ///
    /// # Errors
    /// [`ProbeError::Setting`]: the field, and what it accepts.
    pub fn check(&self) -> Result<(), ProbeError> {
        let wrong =
            |field, what: String, accepted| Err(ProbeError::Setting { field, what, accepted });
        check_pace(&self.host, self.interval, (10, "at least 10 ms"), self.timeout)?;
        if self.max_hops == 0 {
            return wrong(Field::MaxHops, "maximum of 0 hops".to_owned(), "1 to 255");
        }
        if self.port == Some(0) {
            return wrong(Field::Port, "port 0".to_owned(), "1 to 65535");
        }
        if self.port.is_some() && self.method == TraceMethod::Icmp {
            let what = "ICMP has no ports".to_owned();
            return wrong(Field::Method, what, "UDP or TCP with a port");
        }
        Ok(())
    }
}

/// Opens one socket first, to report errors that every probe would have.
fn udp_prober(target: Target) -> Result<UdpProber, ProbeError> {
    let socket =
        target.socket(Type::DGRAM, Protocol::UDP).map_err(|error| target.open_error(error))?;
    socket.connect(&target.to.into()).map_err(|error| target.open_error(error))?;
    UdpProber::new(target).map_err(|error| target.open_error(error))
}

fn connect_prober(target: Target) -> Result<ConnectProber, ProbeError> {
    target.socket(Type::STREAM, Protocol::TCP).map_err(|error| target.open_error(error))?;
    ConnectProber::new(target).map_err(|error| target.open_error(error))
}

struct Run<'a> {
    hops: Hops,
    names: Option<Names>,
    geoip: GeoIp,
    report: TraceReport,
    seq: u16,
    /// Whether the report has changed since the last update.
    changed: bool,
    updated: Option<Instant>,
    /// The last error at sending a probe.
    failure: Option<io::Error>,
    on_update: &'a mut dyn FnMut(&TraceReport),
    stop: &'a dyn Fn() -> bool,
}

impl Run<'_> {
    fn run(&mut self, config: &TraceConfig, prober: &mut dyn Prober) -> io::Result<()> {
        let mut round_at = clock::now();
        self.report.rounds = 1;
        while !(self.stop)() {
            match self.hops.next_step(clock::now()) {
                Next::Probe(ttl) => {
                    self.send(prober, ttl);
                    self.receive_until(prober, clock::now() + PROBE_GAP)?;
                }
                Next::Wait => self.receive_until(prober, clock::now() + PROBE_GAP)?,
                Next::Done => break,
            }
        }
        while !(self.stop)() && (config.rounds == 0 || self.report.rounds < config.rounds) {
            // If the search took longer than an interval, the rounds start after it.
            round_at = (round_at + config.interval).max(clock::now());
            self.receive_until(prober, round_at)?;
            self.report.rounds += 1;
            let gap = config.interval / u32::from(self.hops.probed_hops().max(1));
            for ttl in 1..=self.hops.probed_hops() {
                if (self.stop)() || ttl > self.hops.probed_hops() {
                    break;
                }
                self.send(prober, ttl);
                self.receive_until(prober, round_at + gap * u32::from(ttl))?;
            }
        }
        while !(self.stop)() && self.hops.waiting(clock::now()) > 0 {
            self.receive_until(prober, clock::now() + PROBE_GAP / 4)?;
        }
        Ok(())
    }

    fn send(&mut self, prober: &mut dyn Prober, ttl: u8) {
        self.seq = self.seq.wrapping_add(1);
        match prober.send(self.seq, Some(ttl)) {
            Ok(at) => self.hops.send(self.seq, ttl, at),
            Err(error) => {
                self.hops.send(self.seq, ttl, clock::now());
                self.failure = Some(error);
            }
        }
        self.changed = true;
    }

    /// Receives responses until then.
    fn receive_until(&mut self, prober: &mut dyn Prober, until: Instant) -> io::Result<()> {
        let mut responses = Vec::new();
        loop {
            prober.receive(&mut responses)?;
            for response in responses.drain(..) {
                self.changed = true;
                let new = self.hops.receive(&response);
                if let (Some(address), Some(names)) = (new, &mut self.names) {
                    names.resolve(address);
                }
            }
            self.update();
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() || (self.stop)() {
                return Ok(());
            }
            prober.wait(left.min(POLL_INTERVAL))?;
        }
    }

    fn update(&mut self) {
        let now = clock::now();
        self.changed |= self.names.as_mut().is_some_and(Names::receive);
        let due = self
            .updated
            .is_none_or(|updated| now.saturating_duration_since(updated) >= UPDATE_INTERVAL);
        if self.changed && due {
            (self.changed, self.updated) = (false, Some(now));
            self.hops.forget(now);
            self.fill(now);
            (self.on_update)(&self.report);
        }
    }

    fn fill(&mut self, now: Instant) {
        self.report.reached = self.hops.is_reached();
        self.report.hops = self.hops.hops(now);
        for hop in &mut self.report.hops {
            self.geoip.annotate(hop);
            let address = hop.address.as_deref().and_then(|text| text.parse().ok());
            hop.name = address
                .and_then(|address| self.names.as_ref()?.known.get(&address).cloned())
                .flatten();
        }
    }

    fn wait_for_names(&mut self) {
        let until = clock::now() + NAME_TIMEOUT;
        while let Some(names) = &mut self.names {
            names.receive();
            if names.pending == 0 || (self.stop)() || clock::now() >= until {
                break;
            }
            let no_files: [std::os::fd::BorrowedFd<'_>; 0] = [];
            let _ = wait::readable(no_files, Some(POLL_INTERVAL / 5));
        }
    }

    fn finish(mut self) -> TraceReport {
        self.fill(clock::now());
        let last = self.report.hops.iter().rev().find(|hop| hop.address.is_some());
        let note = match (last, self.failure) {
            _ if self.report.reached => None,
            (Some(hop), _) if self.hops.is_refused() => Some(format!(
                "hop {} reports: {}",
                hop.ttl,
                hop.refusal.as_deref().unwrap_or("no reason given")
            )),
            (Some(hop), _) => Some(format!("no replies beyond hop {}", hop.ttl)),
            (None, Some(error)) => Some(format!("cannot send probes: {error}")),
            (None, None) => Some("no replies".to_owned()),
        };
        self.report.notes.extend(note);
        self.report
    }
}

/// Resolves addresses to names in threads.
struct Names {
    known: HashMap<IpAddr, Option<String>>,
    /// Outstanding requests.
    pending: usize,
    sender: mpsc::Sender<(IpAddr, Option<String>)>,
    receiver: mpsc::Receiver<(IpAddr, Option<String>)>,
}

impl Names {
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel();
        Names { known: HashMap::new(), pending: 0, sender, receiver }
    }

    fn resolve(&mut self, address: IpAddr) {
        if self.pending >= MAX_RESOLVERS || self.known.contains_key(&address) {
            return;
        }
        self.known.insert(address, None);
        let sender = self.sender.clone();
        let work = move || {
            let _ = sender.send((address, names::of(address)));
        };
        // Without a thread the address stays without a name.
        let thread = thread::Builder::new().name("names".to_owned()).spawn(work);
        self.pending += usize::from(thread.is_ok());
    }

    /// Takes the received names; returns whether there were any.
    fn receive(&mut self) -> bool {
        let mut any = false;
        while let Ok((address, name)) = self.receiver.try_recv() {
            self.pending = self.pending.saturating_sub(1);
            self.known.insert(address, name);
            any = true;
        }
        any
    }
}
