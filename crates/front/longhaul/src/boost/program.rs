//! A program whose connections are boosted: it runs in a network of its own, without root.

use super::event::BoostEvent;
use super::request::{BoxSettings, check_connections, check_direct_rate, check_udt, far_address};
use super::running::{Began, BoostDocument, BoostedProgram, observe, resolve_far};
use super::status::{BoxRole, Serving};
use super::{PORT, problem};
use crate::{Fault, Field, Problem, StopFlag};
use ::boost::program::{NameServer as Side, Ports, Program, ProgramError, Ran, Signals};
use ::boost::{
    BoostError, Destinations, Ending, Event, Far, FarConfig, FarKeys, LaneOptions, Near,
    NearConfig, PairKey, keys, sockets,
};
use host::clock;
use host::lock::lock;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use units::BitRate;

/// Most ports that are named.
const MAX_PORTS: usize = 256;

/// Threads of each box, which one program seldom keeps busy.
const THREADS: usize = 2;

/// Who answers the program's DNS queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameServer {
    /// Far's name server; without a far box, those of this host.
    #[default]
    Far,
    /// The name servers of this host.
    Near,
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProgramRequest {
    /// The far box: `HOST` or `HOST:PORT`. `None`: this host connects to the targets itself, where
    /// only the program's window is short.
    pub far: Option<String>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Who answers its DNS queries.
    pub name_server: NameServer,
    /// The ports that are boosted; connections to others are refused. None: all of them.
    pub ports: Vec<u16>,
    /// Connections to far that are kept ready.
    pub lanes: u32,
    /// Carry all flows over one session with far, which is resumed when its connections break.
    pub mux: bool,
    /// Carry that over UDT where UDP reaches far, or else over TCP.
    pub udt: bool,
    /// Goodput of a direct transfer: what the saved time of the status compares with.
    pub direct_rate: Option<BitRate>,
    /// Connections that carry the session; see [`NearRequest::connections`](super::NearRequest).
    pub connections: Option<usize>,
    /// Settings of the near box.
    pub settings: BoxSettings,
}

impl Default for ProgramRequest {
    fn default() -> Self {
        ProgramRequest {
            far: None,
            command: Vec::new(),
            name_server: NameServer::default(),
            ports: Vec::new(),
            lanes: 4,
            mux: false,
            udt: false,
            direct_rate: None,
            connections: None,
            settings: BoxSettings::default(),
        }
    }
}

impl ProgramRequest {
    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        if let Some(far) = &self.far {
            self.settings.check()?;
            far_address(far)?;
            check_udt(self.udt, self.mux, &self.settings)?;
            check_connections(self.mux, self.connections)?;
        }
        check_direct_rate(self.direct_rate)?;
        if self.command.is_empty() {
            return Err(Problem::field(Field::Programs, "there is no program to run", ""));
        }
        if self.ports.len() > MAX_PORTS || self.ports.contains(&0) {
            let accepted = format!("at most {MAX_PORTS} ports from 1 to 65535");
            return Err(Problem::field(Field::Ports, "the list of ports is invalid", accepted));
        }
        Ok(())
    }
}

/// Runs the program to its end, with this process's standard streams, and returns what was carried,
/// with its exit code.
///
/// To be called in a sandbox ([`host::sandbox::run`]) whose process has one thread.
///
/// # Errors
/// An invalid field, no privilege for namespaces, far cannot be reached, or the program cannot be
/// started.
pub fn run(
    request: &ProgramRequest,
    on_event: &mut dyn FnMut(BoostEvent),
) -> Result<BoostDocument, Problem> {
    request.check()?;
    let box_began = Began::now();
    let settings = &request.settings;
    let options = settings.lane_options(on_event)?;
    let signals = Signals::watch();
    let stop = signals.stop();
    let (far, key) = match &request.far {
        Some(far) => {
            let key = settings.keys(PairKey::of_near, on_event)?.pop();
            (resolve_far(&far_address(far)?, stop)?, key)
        }
        None => start_solo(settings).map(|(far, key)| (vec![far], Some(key)))?,
    };
    let near = Arc::new(Near::new(NearConfig {
        far,
        key,
        lanes: usize::try_from(request.lanes).unwrap_or(usize::MAX),
        mux: request.mux && request.far.is_some(),
        udt: (request.udt && request.far.is_some()).then(|| settings.udt_congestion()),
        connections: request.connections,
        compresses: settings.compress && request.far.is_some(),
        options,
        timeouts: settings.timeouts(),
        max_flows: settings.max_flows,
        direct_rate: request.direct_rate,
        threads: THREADS,
    }));
    let _serving = Serving::start(BoxRole::Run, Arc::clone(&near), settings.metrics)?;
    let program = Program {
        command: request.command.clone(),
        name_server: match (request.name_server, &request.far) {
            (NameServer::Far, Some(_)) => Side::Far,
            (NameServer::Near, _) | (_, None) => Side::Near,
        },
        ports: match request.ports.as_slice() {
            [] => Ports::All,
            ports => Ports::Listed(ports.to_vec()),
        },
    };
    let mut ended = None;
    let last_flow = Mutex::new(None);
    let serve = |_: Ending<'_>, report: &(dyn Fn(Event) + Sync)| {
        let report = |event: Event| {
            if matches!(event, Event::FlowEnded(_)) {
                *lock(&last_flow) = Some(clock::now());
            }
            report(event);
        };
        ended = Some(program.run(&near, &signals, &report));
        Ok(())
    };
    // The program's own end is the end.
    let ending = Ending { stop, drain: stop };
    observe(serve, || 0, ending, settings.reports_flows, on_event)?;
    let interrupted = || Problem::new(Fault::Internal, "the program was not run");
    let ran = ended.ok_or_else(interrupted)?.map_err(of_program)?;
    let delivered = lock(&last_flow).unwrap_or(ran.ended);
    let program = Some(times(&ran, box_began.at, delivered));
    let document = BoostDocument::new("run", &near.totals(), &box_began, settings.compress);
    Ok(BoostDocument { program, ..document })
}

fn times(ran: &Ran, box_began: Instant, delivered: Instant) -> BoostedProgram {
    let between = |from: Instant, to: Instant| to.saturating_duration_since(from).as_secs_f64();
    BoostedProgram {
        exit_code: ran.code,
        setup_s: between(box_began, ran.began),
        seconds: between(ran.began, ran.ended),
        delivered_s: between(ran.began, ran.ended.max(delivered)),
    }
}

/// A far box in this process, on a port of the loopback, whose key nobody else has.
fn start_solo(settings: &BoxSettings) -> Result<(SocketAddr, PairKey), Problem> {
    let system = |error: std::io::Error| problem(BoostError::Socket(error));
    let key = |error: keys::KeyError| problem(error.into());
    let [near_key, far_key] = keys::generate().map_err(key)?;
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = sockets::lane_listener(any, &LaneOptions::default()).map_err(problem)?;
    let own = listener.local_addr().map_err(system)?;
    // What the program could reach without us.
    let all = ["0.0.0.0/0:*", "[::/0]:*"].iter().filter_map(|rule| rule.parse().ok()).collect();
    let far_keys = FarKeys::new(vec![PairKey::of_far(&far_key).map_err(key)?]).map_err(key)?;
    let far = Far::new(FarConfig {
        keys: Some(far_keys),
        policy: Arc::new(Destinations::new(all, Box::new(move |target| target == own))),
        compresses: false,
        udt: settings.udt_congestion(),
        udt_ports: None,
        timeouts: settings.timeouts(),
        max_lanes: settings.max_flows,
        threads: THREADS,
    });
    let thread = std::thread::Builder::new().name("far".to_owned());
    thread.spawn(move || serve_solo(&far, listener)).map_err(system)?;
    Ok((own, PairKey::of_near(&near_key).map_err(key)?))
}

/// Ends with the process.
fn serve_solo(far: &Far, listener: TcpListener) {
    let (stop, drain) = (StopFlag::new(), StopFlag::new());
    // Near reports that far cannot be reached.
    let _ = far.serve(vec![listener], Ending { stop: &stop, drain: &drain }, &|_| {});
}

fn of_program(error: ProgramError) -> Problem {
    match error {
        ProgramError::Boost(error) => problem(error),
        ProgramError::Network(_) => Problem::new(Fault::Host, error),
        ProgramError::Unreachable(_) => {
            let hint = format!(
                "check that longhaul boost far listens there (port {PORT} by default) with the key \
                 of this pair"
            );
            Problem::new(Fault::Peer, format!("{error}; {hint}"))
        }
        ProgramError::Interrupted => Problem::new(Fault::Interrupted, error),
        ProgramError::Start { .. } => Problem::new(Fault::Request, error),
    }
}
