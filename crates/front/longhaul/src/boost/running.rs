//! A box that runs: its listeners, its events, its totals.

use super::event::BoostEvent;
use super::ingress::{self, Ingresses};
use super::problem;
use super::reduction::Reduction;
use super::request::{FarRequest, NearRequest, far_address};
use super::settings::{warn, warn_plaintext};
use super::status::{BoxRole, Serving};
use crate::{Fault, Problem, StopFlag};
use ::boost::{
    BoostError, Destinations, Ending, Event, Far, FarConfig, FarKeys, Near, NearConfig, PairKey,
    Target, TargetHost, Totals, sockets,
};
use host::log_limit::LogLimit;
use host::resolve::{Family, resolve};
use host::{clock, cpu};
use serde::Serialize;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// The version of [`BoostDocument`] in JSON.
pub const BOOST_SCHEMA: &str = "longhaul.boost/1";
/// Events that wait for the caller; further ones are only counted.
const MAX_WAITING: usize = 4096;
/// Refusals and resets that are reported in a second; further ones are only counted.
const MAX_REPORTED: u32 = 20;
/// Interval at which the end is noticed.
const POLL: Duration = Duration::from_millis(200);

/// What a box has carried.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BoostDocument {
    /// [`BOOST_SCHEMA`].
    pub schema: &'static str,
    /// `near`, `far` or `run`.
    pub role: &'static str,
    /// Seconds from its start.
    pub seconds: f64,
    /// The program of `run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<BoostedProgram>,
    /// Flows.
    pub flows: u64,
    /// Flows that were refused.
    pub refused: u64,
    /// Flows that ended with an RST.
    pub reset: u64,
    /// Connections between the boxes.
    pub lanes: u64,
    /// Flows on a connection that had carried another one.
    pub reused: u64,
    /// Bytes from applications (near) or targets (far).
    pub in_bytes: u64,
    /// Bytes to them.
    pub out_bytes: u64,
    /// Bytes sent to the other box, with headers and encryption, without those of TCP and IP.
    pub wan_sent_bytes: u64,
    /// Bytes received from the other box.
    pub wan_received_bytes: u64,
    /// Data reduction, if this box compresses.
    pub reduction: Option<Reduction>,
    /// CPU time of the process.
    pub cpu_s: f64,
}

/// A program that has run behind a near box.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BoostedProgram {
    /// Its exit code, or 128 plus the number of the signal that ended it.
    pub exit_code: i32,
    /// Seconds until far was reached and the program was started.
    pub setup_s: f64,
    /// Seconds from its start to its end.
    pub seconds: f64,
    /// Seconds from its start until it had ended, and near had delivered what it sent.
    pub delivered_s: f64,
}

impl BoostDocument {
    pub(super) fn new(
        role: &'static str,
        totals: &Totals,
        began: &Began,
        compresses: bool,
    ) -> Self {
        let cpu = cpu::this_process().map(cpu::ProcessCpu::total).unwrap_or_default();
        BoostDocument {
            schema: BOOST_SCHEMA,
            role,
            seconds: clock::now().saturating_duration_since(began.at).as_secs_f64(),
            program: None,
            flows: totals.flows,
            refused: totals.refused,
            reset: totals.reset,
            lanes: totals.lanes,
            reused: totals.reused,
            in_bytes: totals.bytes_in,
            out_bytes: totals.bytes_out,
            wan_sent_bytes: totals.wan_sent,
            wan_received_bytes: totals.wan_received,
            reduction: compresses.then(|| Reduction::new(totals)),
            cpu_s: cpu.saturating_sub(began.cpu).as_secs_f64(),
        }
    }
}

/// Runs the near box until `stop` is raised, which resets its flows, or until its last flow has
/// ended once `drain` is raised.
///
/// # Errors
/// An invalid field, a name that does not resolve, a key file that cannot be read, an address that
/// is in use.
pub fn near(
    request: &NearRequest,
    on_event: &mut dyn FnMut(BoostEvent),
    stop: &StopFlag,
    drain: &StopFlag,
) -> Result<BoostDocument, Problem> {
    request.check()?;
    let settings = &request.settings;
    let options = settings.lane_options(on_event)?;
    let key = settings.keys(PairKey::of_near, on_event)?.pop();
    let far = resolve_far(&far_address(&request.far)?, stop)?;
    let Ingresses { listeners, mut addresses, diversion } = ingress::open(request, on_event)?;
    let encrypted = key.is_some();
    let near = Arc::new(Near::new(NearConfig {
        far,
        key,
        lanes: usize::try_from(request.lanes).unwrap_or(usize::MAX),
        mux: request.mux,
        udt: request.udt.then(|| settings.udt_congestion()),
        connections: request.connections,
        compresses: settings.compress,
        options,
        timeouts: settings.timeouts(),
        max_flows: settings.max_flows,
        direct_rate: request.direct_rate,
        threads: threads(),
    }));
    let serving = Serving::start(BoxRole::Near, Arc::clone(&near), settings.metrics)?;
    addresses.extend(serving.address());
    let congestion = settings.congestion_name();
    on_event(BoostEvent::Listening { role: "near", addresses, encrypted, congestion });
    let began = Began::now();
    let serve =
        |ending: Ending<'_>, report: &(dyn Fn(Event) + Sync)| near.serve(listeners, ending, report);
    let active = || near.totals().active_flows;
    let ending = Ending { stop, drain };
    observe(serve, active, ending, settings.reports_flows, on_event)?;
    drop((serving, diversion));
    Ok(BoostDocument::new("near", &near.totals(), &began, settings.compress))
}

/// Runs the far box; see [`near`].
///
/// # Errors
/// As for [`near`].
pub fn far(
    request: &FarRequest,
    on_event: &mut dyn FnMut(BoostEvent),
    stop: &StopFlag,
    drain: &StopFlag,
) -> Result<BoostDocument, Problem> {
    request.check()?;
    let settings = &request.settings;
    let options = settings.lane_options(on_event)?;
    let keys = settings.keys(PairKey::of_far, on_event)?;
    let encrypted = !keys.is_empty();
    let keys = FarKeys::new(keys).map_err(|error| problem(BoostError::Key(error)))?;
    let rules = request.rules()?;
    let listener = sockets::lane_listener(request.listen, &options).map_err(problem)?;
    let listen = listener.local_addr().unwrap_or(request.listen);
    // A connection to this box itself would go round in circles.
    let is_own = move |target: SocketAddr| {
        target.port() == listen.port() && !is_foreign(UdpSocket::bind((target.ip(), 0)))
    };
    warn_plaintext(listen, settings.insecure, on_event);
    let far = Arc::new(Far::new(FarConfig {
        keys: encrypted.then_some(keys),
        policy: Arc::new(Destinations::new(rules, Box::new(is_own))),
        compresses: settings.compress,
        udt: settings.udt_congestion(),
        udt_ports: request.udt_ports.clone(),
        timeouts: settings.timeouts(),
        max_lanes: settings.max_flows,
        threads: threads(),
    }));
    let serving = Serving::start(BoxRole::Far, Arc::clone(&far), settings.metrics)?;
    let addresses = std::iter::once(listen.to_string()).chain(serving.address()).collect();
    let congestion = settings.congestion_name();
    on_event(BoostEvent::Listening { role: "far", addresses, encrypted, congestion });
    if request.allow.is_empty() {
        let text = "without a list of targets, every program of this host can connect to \
            public addresses through this box";
        warn(on_event, text.to_owned());
    }
    let began = Began::now();
    let serve = |ending: Ending<'_>, report: &(dyn Fn(Event) + Sync)| {
        far.serve(vec![listener], ending, report)
    };
    let active = || far.totals().active_flows;
    let ending = Ending { stop, drain };
    observe(serve, active, ending, settings.reports_flows, on_event)?;
    drop(serving);
    Ok(BoostDocument::new("far", &far.totals(), &began, settings.compress))
}

/// True if binding to an address has shown that it is not this host's. Any other error, such as that
/// descriptors have run out, shows nothing.
fn is_foreign<T>(bound: io::Result<T>) -> bool {
    bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

/// When a box began.
pub(super) struct Began {
    pub(super) at: Instant,
    cpu: Duration,
}

impl Began {
    pub(super) fn now() -> Self {
        let cpu = cpu::this_process().map(cpu::ProcessCpu::total).unwrap_or_default();
        Began { at: clock::now(), cpu }
    }
}

fn threads() -> usize {
    usize::try_from(cpu::cores()).unwrap_or(1).clamp(1, 64)
}

pub(super) fn resolve_far(far: &Target, stop: &StopFlag) -> Result<Vec<SocketAddr>, Problem> {
    let host = match &far.host {
        TargetHost::Address(address) => return Ok(vec![SocketAddr::from((*address, far.port))]),
        TargetHost::Name(name) => name.as_str(),
        // No text is read as one.
        TargetHost::NameServer => return Ok(Vec::new()),
    };
    let found = resolve(host, far.port, Family::Any, None, &|| stop.is_raised());
    let found = found.map_err(|error| Problem::new(Fault::Request, error))?;
    found.ok_or_else(|| Problem::new(Fault::Interrupted, "interrupted"))
}

/// Runs a box in a thread, and passes its events on.
pub(super) fn observe(
    serve: impl FnOnce(Ending<'_>, &(dyn Fn(Event) + Sync)) -> Result<(), BoostError> + Send,
    active: impl Fn() -> u64,
    ending: Ending<'_>,
    reports_flows: bool,
    on_event: &mut dyn FnMut(BoostEvent),
) -> Result<(), Problem> {
    let (sender, events) = sync_channel(MAX_WAITING);
    let lost = &AtomicU64::new(0);
    std::thread::scope(|scope| {
        let serving = std::thread::Builder::new().name("boost".to_owned());
        let serving = serving.spawn_scoped(scope, move || {
            let sender: SyncSender<Event> = sender;
            serve(ending, &|event| {
                if sender.try_send(event).is_err() {
                    lost.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        let serving = serving.map_err(|error| problem(BoostError::Socket(error)))?;
        let mut limit = LogLimit::new(MAX_REPORTED, clock::now());
        let mut drains = false;
        loop {
            let next = events.recv_timeout(POLL);
            let now = clock::now();
            if ending.drain.is_raised() && !std::mem::replace(&mut drains, ending.drain.is_raised())
            {
                on_event(BoostEvent::Draining { flows: active() });
            }
            let is_over = matches!(next, Err(RecvTimeoutError::Disconnected));
            let count = limit.suppressed(now, is_over) + lost.swap(0, Ordering::Relaxed);
            if count > 0 {
                on_event(BoostEvent::HeldBack { count });
            }
            match next.map(BoostEvent::from) {
                Ok(BoostEvent::Flow(flow)) if flow.end == "fin" => {
                    if reports_flows {
                        on_event(BoostEvent::Flow(flow));
                    }
                }
                Ok(event @ (BoostEvent::Flow(_) | BoostEvent::Refused { .. })) => {
                    if reports_flows || limit.admits(now, 1) {
                        on_event(event);
                    }
                }
                Ok(event) => on_event(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let failed = |_| Err(BoostError::Socket(io::Error::other("a thread failed")));
        serving.join().unwrap_or_else(failed).map_err(problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_of_another_host_is_foreign() {
        assert!(is_foreign(UdpSocket::bind("192.0.2.1:0")));
        assert!(!is_foreign(UdpSocket::bind("127.0.0.1:0")));
        // EMFILE, ENFILE, ENOBUFS, ENOMEM.
        for exhausted in [24, 23, 105, 12] {
            assert!(!is_foreign::<()>(Err(io::Error::from_raw_os_error(exhausted))));
        }
    }
}
