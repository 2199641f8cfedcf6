//! The way to a host: rounds of probes that expire one hop after the other.

use crate::ReachError;
use crate::connect::{self, Connects};
use crate::datagram::Datagrams;
use crate::echo::Echoes;
use crate::hops::{Hops, Next};
use crate::place::Places;
use crate::prober::{Aim, Prober};
use crate::resolve::{Family, resolve};
use host::{clock, names, wait};
use record::{TRACE_SCHEMA, TraceReport};
use socket2::{Protocol, Type};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How soon an interruption is seen, and how often the view is drawn at most.
const GLANCE: Duration = Duration::from_millis(50);
const VIEW: Duration = Duration::from_millis(200);
/// Between probes while the way is not known.
const GAP: Duration = Duration::from_millis(20);
/// How long names are waited for at the end.
const NAMES: Duration = Duration::from_secs(2);
/// Threads that wait for the resolver, at most.
const RESOLVERS: usize = 64;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceMethod {
    /// UDP: needs no privilege.
    Udp,
    /// ICMP echoes.
    Icmp,
    /// TCP connects: need no privilege since Linux 5.9.
    Tcp,
}

/// What is asked of [`trace()`].
#[derive(Debug, Clone)]
pub struct TraceConfig {
    /// The host's name or address.
    pub host: String,
    /// Which IP version.
    pub family: Family,
    /// What is sent.
    pub method: TraceMethod,
    /// UDP's or TCP's port; 33434 or 443 by default.
    pub port: Option<u16>,
    /// Rounds; 0 for as long as nobody stops it.
    pub rounds: u64,
    /// Hops at most.
    pub most_hops: u8,
    /// Time between rounds, 10 ms or more.
    pub interval: Duration,
    /// An answer after more than this counts for nothing.
    pub timeout: Duration,
    /// Local address to send from.
    pub bind: Option<IpAddr>,
    /// Whether to ask for the addresses' names.
    pub names: bool,
    /// Databases of networks and places.
    pub databases: Vec<PathBuf>,
}

/// Asks each hop on the way to a host, again and again. `tell` is shown what
/// is known whenever that grows, at most five times a second; where `stop`
/// says so, it ends with what was heard until then.
///
/// # Errors
/// [`ReachError`]: a name without address, no privilege, no route.
pub fn trace(
    config: &TraceConfig,
    tell: &mut dyn FnMut(&TraceReport),
    stop: &dyn Fn() -> bool,
) -> Result<TraceReport, ReachError> {
    check(config)?;
    let places = Places::open(&config.databases)?;
    let port = match config.method {
        TraceMethod::Udp => config.port.unwrap_or(33_434),
        TraceMethod::Tcp => config.port.unwrap_or(443),
        TraceMethod::Icmp => 0,
    };
    let to = resolve(&config.host, port, config.family, config.bind, stop)?;
    let aim = Aim { to, bind: config.bind, tos: None, ttl: None };
    let mut timeout = config.timeout;
    let mut prober: Box<dyn Prober> = match config.method {
        TraceMethod::Udp => Box::new(datagrams(aim)?),
        TraceMethod::Icmp => Box::new(Echoes::open(aim, 24)?),
        TraceMethod::Tcp => {
            timeout = timeout.min(connect::PATIENCE);
            Box::new(connects(aim)?)
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
        notes: Vec::new(),
    };
    let mut run = Run {
        hops: Hops::new(to.ip(), config.most_hops, timeout),
        names: config.names.then(Names::new),
        places,
        report,
        seq: 0,
        changed: true,
        shown: None,
        failure: None,
        tell,
        stop,
    };
    let done = run.carry_out(config, prober.as_mut());
    done.map_err(|source| ReachError::System {
        operation: "wait for answers",
        address: to.ip(),
        source,
    })?;
    run.wait_for_names();
    Ok(run.concluded())
}

fn check(config: &TraceConfig) -> Result<(), ReachError> {
    let wrong = |what: String, remedy| Err(ReachError::Setting { what, remedy });
    if config.interval < Duration::from_millis(10) {
        return wrong(format!("an interval of {:?}", config.interval), "give 10 ms or more");
    }
    if config.timeout.is_zero() {
        return wrong("a timeout of 0".to_owned(), "give a time above 0, such as 1s");
    }
    if config.most_hops == 0 {
        return wrong("0 hops".to_owned(), "give 1 to 255");
    }
    if config.port == Some(0) {
        return wrong("port 0".to_owned(), "ports are 1 to 65535");
    }
    if config.port.is_some() && config.method == TraceMethod::Icmp {
        return wrong("a port for ICMP".to_owned(), "ICMP has none: use --udp or --tcp");
    }
    Ok(())
}

/// What is wrong with one socket is wrong with all: one is tried first.
fn datagrams(aim: Aim) -> Result<Datagrams, ReachError> {
    let socket = aim.socket(Type::DGRAM, Protocol::UDP).map_err(|error| aim.refusal(error))?;
    socket.connect(&aim.to.into()).map_err(|error| aim.refusal(error))?;
    Datagrams::new(aim).map_err(|error| aim.refusal(error))
}

fn connects(aim: Aim) -> Result<Connects, ReachError> {
    aim.socket(Type::STREAM, Protocol::TCP).map_err(|error| aim.refusal(error))?;
    Connects::new(aim).map_err(|error| aim.refusal(error))
}

struct Run<'a> {
    hops: Hops,
    names: Option<Names>,
    places: Places,
    report: TraceReport,
    seq: u16,
    /// Whether there is something to show.
    changed: bool,
    shown: Option<Instant>,
    /// The last reason why a probe could not be sent.
    failure: Option<io::Error>,
    tell: &'a mut dyn FnMut(&TraceReport),
    stop: &'a dyn Fn() -> bool,
}

impl Run<'_> {
    fn carry_out(&mut self, config: &TraceConfig, prober: &mut dyn Prober) -> io::Result<()> {
        let mut round_at = clock::now();
        self.report.rounds = 1;
        while !(self.stop)() {
            match self.hops.ask_next(clock::now()) {
                Next::Ask(ttl) => {
                    self.send(prober, ttl);
                    self.listen(prober, clock::now() + GAP)?;
                }
                Next::Wait => self.listen(prober, clock::now() + GAP)?,
                Next::Done => break,
            }
        }
        while !(self.stop)() && (config.rounds == 0 || self.report.rounds < config.rounds) {
            // Where the search took longer than an interval, rounds begin anew.
            round_at = (round_at + config.interval).max(clock::now());
            self.listen(prober, round_at)?;
            self.report.rounds += 1;
            let gap = config.interval / u32::from(self.hops.worth_asking().max(1));
            for ttl in 1..=self.hops.worth_asking() {
                if (self.stop)() || ttl > self.hops.worth_asking() {
                    break;
                }
                self.send(prober, ttl);
                self.listen(prober, round_at + gap * u32::from(ttl))?;
            }
        }
        while !(self.stop)() && self.hops.waiting(clock::now()) > 0 {
            self.listen(prober, clock::now() + GAP / 4)?;
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

    /// Hears what comes until then.
    fn listen(&mut self, prober: &mut dyn Prober, until: Instant) -> io::Result<()> {
        let mut heard = Vec::new();
        loop {
            prober.hear(&mut heard)?;
            for heard in heard.drain(..) {
                self.changed = true;
                let new = self.hops.hear(&heard);
                if let (Some(address), Some(names)) = (new, &mut self.names) {
                    names.ask(address);
                }
            }
            self.show();
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() || (self.stop)() {
                return Ok(());
            }
            prober.wait(left.min(GLANCE))?;
        }
    }

    fn show(&mut self) {
        let now = clock::now();
        self.changed |= self.names.as_mut().is_some_and(Names::hear);
        let due = self.shown.is_none_or(|shown| now.saturating_duration_since(shown) >= VIEW);
        if self.changed && due {
            (self.changed, self.shown) = (false, Some(now));
            self.hops.forget(now);
            self.fill(now);
            (self.tell)(&self.report);
        }
    }

    fn fill(&mut self, now: Instant) {
        self.report.reached = self.hops.is_reached();
        self.report.hops = self.hops.hops(now);
        for hop in &mut self.report.hops {
            self.places.tell(hop);
            let address = hop.address.as_deref().and_then(|text| text.parse().ok());
            hop.name = address
                .and_then(|address| self.names.as_ref()?.known.get(&address).cloned())
                .flatten();
        }
    }

    fn wait_for_names(&mut self) {
        let until = clock::now() + NAMES;
        while let Some(names) = &mut self.names {
            names.hear();
            if names.open == 0 || (self.stop)() || clock::now() >= until {
                break;
            }
            let nothing: [std::os::fd::BorrowedFd<'_>; 0] = [];
            let _ = wait::readable(nothing, Some(GLANCE / 5));
        }
    }

    fn concluded(mut self) -> TraceReport {
        self.fill(clock::now());
        let last = self.report.hops.iter().rev().find(|hop| hop.address.is_some());
        let note = match (last, self.failure) {
            _ if self.report.reached => None,
            (Some(hop), _) if self.hops.is_refused() => Some(format!(
                "hop {} carries no further: {}",
                hop.ttl,
                hop.refusal.as_deref().unwrap_or("it gave no reason")
            )),
            (Some(hop), _) => Some(format!("nothing answers beyond hop {}", hop.ttl)),
            (None, Some(error)) => Some(format!("nothing could be sent: {error}")),
            (None, None) => Some("nothing answered".to_owned()),
        };
        self.report.notes.extend(note);
        self.report
    }
}

/// Asks the resolver for names, which may take its time.
struct Names {
    known: HashMap<IpAddr, Option<String>>,
    /// Questions without an answer.
    open: usize,
    tell: mpsc::Sender<(IpAddr, Option<String>)>,
    told: mpsc::Receiver<(IpAddr, Option<String>)>,
}

impl Names {
    fn new() -> Self {
        let (tell, told) = mpsc::channel();
        Names { known: HashMap::new(), open: 0, tell, told }
    }

    fn ask(&mut self, address: IpAddr) {
        if self.open >= RESOLVERS || self.known.contains_key(&address) {
            return;
        }
        self.known.insert(address, None);
        let tell = self.tell.clone();
        let work = move || {
            let _ = tell.send((address, names::of(address)));
        };
        // Without a thread there is no name.
        let thread = thread::Builder::new().name("names".to_owned()).spawn(work);
        self.open += usize::from(thread.is_ok());
    }

    /// Takes the answers that have come; tells whether there were any.
    fn hear(&mut self) -> bool {
        let mut any = false;
        while let Ok((address, name)) = self.told.try_recv() {
            self.open = self.open.saturating_sub(1);
            self.known.insert(address, name);
            any = true;
        }
        any
    }
}
