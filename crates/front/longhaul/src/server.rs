//! A server for tests of longhaul and iperf3 clients, and for copies.
//!
//! ```no_run
//! use longhaul::{StopFlag, server::{self, ServerRequest}};
//!
//! let request = ServerRequest { one_off: true, ..ServerRequest::default() };
//! server::run(&request, &mut |event| eprintln!("{event:?}"), &StopFlag::new())?;
//! # Ok::<(), longhaul::Problem>(())
//! ```

mod admission;
mod copies;
mod counters;
mod event;
mod observer;

pub use event::{
    DatagramTotals, HeldBack, Listening, SERVER_EVENT_SCHEMA, ServerEvent, ServerLine,
    TestFinished, TestLimits, TestStarted,
};
pub use perf::client::Family;
pub use perf::server::Limits;

use crate::copy::PORT;
use crate::http_host;
use crate::metrics::{MetricsServer, Page};
use crate::{Fault, Field, Problem, StopFlag};
use ::copy::CopyServer;
use counters::Counters;
use host::lock::lock;
use host::{address, clock};
use observer::{EventLog, SessionObserver};
use perf::PerfError;
use perf::server::{Server, ServerConfig};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Events that wait for the caller; with more the sessions wait, too.
const MAX_WAITING: usize = 4096;

/// A server's addresses, the clients that it admits, and their limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerRequest {
    /// The address, whose port is not used; `None` for all.
    pub bind: Option<SocketAddr>,
    /// The network interface.
    pub device: Option<String>,
    /// The IP versions, where there is no address.
    pub family: Family,
    /// The TCP and UDP port; 0 for any.
    pub port: u16,
    /// Serve one test.
    pub one_off: bool,
    /// The time that a one-off server waits for its test, in seconds.
    pub idle_timeout_s: Option<u64>,
    /// The file that received data is written to.
    pub file: Option<PathBuf>,
    /// The CPU of the threads of data, where a client names none.
    pub core: Option<u32>,
    /// The limits of tests.
    pub limits: Limits,
    /// The interval of interval reports.
    #[serde(with = "units::seconds")]
    pub interval: Duration,
    /// Report the intervals of every test as events.
    pub reports_intervals: bool,
    /// A file with tokens, one a line: only clients with one of them are served.
    pub tokens: Option<PathBuf>,
    /// Names of this server behind NAT, for clients with tokens.
    pub token_names: Vec<String>,
    /// A file with the RSA key for iperf3's logins.
    pub private_key: Option<PathBuf>,
    /// A file with the users of iperf3's logins.
    pub users: Option<PathBuf>,
    /// PKCS #1 v1.5 padding of logins, as iperf3 did before 3.17.
    pub pkcs1: bool,
    /// The largest difference of clocks at a login.
    #[serde(with = "units::seconds")]
    pub time_skew: Duration,
    /// The address of the page of metrics.
    pub metrics: Option<SocketAddr>,
    /// Names of this host for which the page is served, beside addresses and localhost.
    pub metrics_hosts: Vec<String>,
    /// The directory whose files are served to copies; needs tokens.
    pub root: Option<PathBuf>,
    /// Copies may write there.
    pub writable: bool,
    /// The TCP port of copies.
    pub copy_port: u16,
    /// Maximum concurrent copies.
    pub max_copies: u32,
}

impl Default for ServerRequest {
    /// Tests for everybody at every address, iperf3's port; no copies and no metrics.
    fn default() -> Self {
        let config = ServerConfig::default();
        ServerRequest {
            bind: None,
            device: None,
            family: config.family,
            port: config.port,
            one_off: false,
            idle_timeout_s: None,
            file: None,
            core: None,
            limits: config.limits,
            interval: config.report_every,
            reports_intervals: false,
            tokens: None,
            token_names: Vec::new(),
            private_key: None,
            users: None,
            pkcs1: false,
            time_skew: Duration::from_secs(10),
            metrics: None,
            metrics_hosts: Vec::new(),
            root: None,
            writable: false,
            copy_port: PORT,
            max_copies: 16,
        }
    }
}

impl ServerRequest {
    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        let needs = |holds: bool, field: Field, what: &str, other: &str| match holds {
            true => Ok(()),
            false => Err(Problem::field(field, format!("{what} need {other}"), "")),
        };
        self.check_ranges()?;
        needs(self.root.is_none() || self.tokens.is_some(), Field::Tokens, "copies", "tokens")?;
        needs(!self.writable || self.root.is_some(), Field::Root, "copies", "a directory")?;
        let names = &self.token_names;
        needs(names.is_empty() || self.tokens.is_some(), Field::Tokens, "names", "tokens")?;
        let (key, users) = (self.private_key.is_some(), self.users.is_some());
        needs(key || !(users || self.pkcs1), Field::PrivateKey, "logins", "a key")?;
        needs(users || !key, Field::Users, "logins", "users")?;
        let hosts = &self.metrics_hosts;
        needs(hosts.is_empty() || self.metrics.is_some(), Field::Metrics, "names", "metrics")?;
        match hosts.iter().find(|name| !http_host::is_name(name)) {
            None => Ok(()),
            Some(name) => {
                let accepted = "a host name without a port, such as server.example";
                let message = format!("'{name}' is not a host name");
                Err(Problem::field(Field::MetricsHosts, message, accepted))
            }
        }
    }

    fn check_ranges(&self) -> Result<(), Problem> {
        let limits = &self.limits;
        let size = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let in_range = |field: Field, what: &str, value: u64, range: RangeInclusive<u64>| {
            if range.contains(&value) {
                return Ok(());
            }
            let accepted = format!("{} to {}", range.start(), range.end());
            Err(Problem::field(field, format!("{what}: {value} is out of range"), accepted))
        };
        for (what, value, most) in [
            ("tests", u64::from(limits.sessions), 1024),
            ("tests of an address", limits.sessions_per_address().into(), 1024),
            ("streams of a test", limits.streams.into(), 128),
            ("streams", limits.total_streams.into(), 65_536),
            ("connections without handshake", size(limits.half_open), 65_536),
            ("seconds of a test", limits.duration.as_secs(), 86_400),
            ("seconds of a handshake", limits.handshake.as_secs(), 600),
            ("seconds without data", limits.receive.as_secs(), 86_400),
            ("bytes of memory", limits.memory.bytes(), u64::MAX),
            ("bytes of a test", limits.bytes.map_or(1, units::ByteCount::bytes), u64::MAX),
            ("rate of a test", limits.rate.map_or(1, units::BitRate::bps), u64::MAX),
        ] {
            in_range(Field::Limits, what, value, 1..=most)?;
        }
        in_range(Field::Interval, "seconds", self.interval.as_secs(), 1..=3600)?;
        in_range(Field::MaxCopies, "copies", self.max_copies.into(), 1..=1024)?;
        in_range(Field::IdleTimeout, "seconds", self.idle_timeout_s.unwrap_or(1), 1..=86_400)
    }

    /// Everything but authentication.
    fn config(&self) -> ServerConfig {
        ServerConfig {
            bind: self.bind.map(|bind| bind.ip()),
            // The interface of a link-local address.
            device: self.device.clone().or_else(|| address::zone_name(self.bind?)),
            family: self.family,
            port: self.port,
            one_off: self.one_off,
            idle_timeout: self.idle_timeout_s.map(Duration::from_secs),
            limits: self.limits,
            file: self.file.clone(),
            core: self.core,
            report_every: self.interval,
            ..ServerConfig::default()
        }
    }
}

/// Makes the lines of one test that its client gets, from the events of this test.
pub type ClientLines = Box<dyn FnMut(&ServerEvent) -> Option<String> + Send>;

/// Additions of a front end to a server.
#[derive(Clone, Copy)]
pub struct Front<'a> {
    /// Once raised, new clients are refused, and the server ends with its last test.
    pub drain: Option<&'a StopFlag>,
    /// Lines for clients that ask for the server's output (`--get-server-output`).
    pub client_lines: Option<&'a (dyn Fn() -> ClientLines + Sync)>,
    /// The answer to a request for metrics of another host name.
    pub misdirected: &'a str,
    /// Metrics of what else the process serves, added to the page.
    pub more_metrics: Option<&'a MoreMetrics>,
}

/// Adds metrics to a page.
pub type MoreMetrics = Arc<dyn Fn(&mut Page) + Send + Sync>;

impl Front<'_> {
    /// Nothing.
    pub const PLAIN: Front<'static> = Front {
        drain: None,
        client_lines: None,
        misdirected: "This host name is not allowed. Use the server's IP address.\n",
        more_metrics: None,
    };
}

/// Serves until `stop` is raised, or one test is done with [`ServerRequest::one_off`].
///
/// # Errors
/// An invalid field, a file that cannot be read, an address that is in use.
pub fn run(
    request: &ServerRequest,
    on_event: &mut dyn FnMut(ServerEvent),
    stop: &StopFlag,
) -> Result<(), Problem> {
    serve(request, &Front::PLAIN, on_event, stop)
}

/// The same for a front end with more to add. `on_event` must not wait: with 4096 events waiting
/// for it, tests wait.
///
/// # Errors
/// As [`run`].
pub fn serve(
    request: &ServerRequest,
    front: &Front<'_>,
    on_event: &mut dyn FnMut(ServerEvent),
    stop: &StopFlag,
) -> Result<(), Problem> {
    request.check()?;
    let mut config = request.config();
    if let Some(drain) = front.drain {
        config.drain = drain.clone();
    }
    let tokens = admission::read(request, &mut config, on_event)?;
    let copies = copies::start(request, tokens.as_deref(), on_event)?;
    let server = Arc::new(Server::bind(&config).map_err(problem)?);
    let counters = Arc::new(Mutex::new(Counters::new(clock::unix_time().as_secs_f64())));
    let metrics = match request.metrics {
        Some(at) => Some(serve_metrics(at, request, front, &server, &counters)?),
        None => None,
    };
    let address = metrics.as_ref().map(MetricsServer::address);
    on_event(ServerEvent::Listening(Listening::new(&server, &config.limits, address)));
    let (sender, events) = sync_channel(MAX_WAITING);
    let log = EventLog::new(request.reports_intervals, front);
    let observer = SessionObserver::new(log, sender, counters);
    thread::scope(|scope| {
        let serving = thread::Builder::new().name("server".to_owned()).spawn_scoped(scope, || {
            let observer = observer;
            let served = serve_all(&server, copies.as_ref(), &config.drain, &observer, stop);
            observer.stopped();
            served
        });
        let serving = serving.map_err(|error| {
            Problem::new(Fault::Host, format!("cannot start the server's thread: {error}"))
        })?;
        // Until the observer is gone.
        for event in events {
            on_event(event);
        }
        serving
            .join()
            .unwrap_or_else(|_| Err(Problem::new(Fault::Internal, "the server's thread failed")))
    })?;
    on_event(ServerEvent::Stopped);
    Ok(())
}

fn serve_all(
    server: &Server,
    copies: Option<&CopyServer>,
    drain: &StopFlag,
    observer: &SessionObserver<'_>,
    stop: &StopFlag,
) -> Result<(), Problem> {
    thread::scope(|scope| {
        if let Some(copies) = copies {
            scope.spawn(|| copies.serve(stop, drain, &|event| observer.copy(event)));
        }
        let served = server.serve(stop, observer).map_err(problem);
        // It ended with its last test, or failed: so do the copies.
        drain.raise();
        served
    })
}

/// Serves metrics on a separate port.
fn serve_metrics(
    at: SocketAddr,
    request: &ServerRequest,
    front: &Front<'_>,
    server: &Arc<Server>,
    counters: &Arc<Mutex<Counters>>,
) -> Result<MetricsServer, Problem> {
    let (server, counters) = (Arc::clone(server), Arc::clone(counters));
    let more = front.more_metrics.cloned();
    let page = move || {
        let mut page = Page::default();
        lock(&counters).add(&mut page, server.half_open());
        if let Some(more) = &more {
            more(&mut page);
        }
        page.into_text()
    };
    MetricsServer::start(at, &request.metrics_hosts, front.misdirected, page)
}

fn problem(error: PerfError) -> Problem {
    let fault = match &error {
        error if error.is_usage() => Fault::Request,
        error if error.is_interruption() => Fault::Interrupted,
        _ => Fault::Internal,
    };
    Problem::new(fault, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_fields_are_named() {
        let good = ServerRequest::default();
        assert_eq!(good.check(), Ok(()));
        let some = || Some(PathBuf::from("file"));
        let limits = |limits: Limits| ServerRequest { limits, ..ServerRequest::default() };
        let none = Duration::ZERO;
        for (request, field) in [
            (limits(Limits { sessions: 0, ..Limits::default() }), Field::Limits),
            (limits(Limits { streams: 129, ..Limits::default() }), Field::Limits),
            (limits(Limits { duration: none, ..Limits::default() }), Field::Limits),
            (ServerRequest { interval: none, ..good.clone() }, Field::Interval),
            (ServerRequest { max_copies: 0, ..good.clone() }, Field::MaxCopies),
            (ServerRequest { idle_timeout_s: Some(0), ..good.clone() }, Field::IdleTimeout),
            (ServerRequest { root: some(), ..good.clone() }, Field::Tokens),
            (ServerRequest { writable: true, ..good.clone() }, Field::Root),
            (ServerRequest { users: some(), ..good.clone() }, Field::PrivateKey),
            (ServerRequest { private_key: some(), ..good.clone() }, Field::Users),
            (ServerRequest { metrics_hosts: vec!["a".to_owned()], ..good.clone() }, Field::Metrics),
            (
                ServerRequest {
                    metrics: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
                    metrics_hosts: vec!["name.example:80".to_owned()],
                    ..good
                },
                Field::MetricsHosts,
            ),
        ] {
            let problem = request.check().unwrap_err();
            assert_eq!(problem.remedy.unwrap().field, field, "{request:?}");
        }
    }

    #[test]
    fn a_request_survives_json() {
        let request = ServerRequest { tokens: Some("a".into()), ..ServerRequest::default() };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<ServerRequest>(&text).unwrap(), request);
        assert!(serde_json::from_str::<ServerRequest>(r#"{"prot": 1}"#).is_err());
    }

    #[test]
    fn a_server_listens_until_it_is_stopped() {
        let request = ServerRequest {
            bind: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            port: 0,
            ..ServerRequest::default()
        };
        let (stop, mut events) = (StopFlag::new(), Vec::new());
        let mut on_event = |event| {
            stop.raise();
            events.push(event);
        };
        run(&request, &mut on_event, &stop).unwrap();
        let [ServerEvent::Listening(listening), ServerEvent::Stopped] = &events[..] else {
            panic!("{events:?}")
        };
        assert!(listening.address.port() > 0 && listening.address.ip().is_loopback());
        let line = serde_json::to_value(ServerLine::now(&events[0])).unwrap();
        assert_eq!(
            (&line["schema"], &line["event"]),
            (&SERVER_EVENT_SCHEMA.into(), &"listening".into())
        );
        assert_eq!(line["limits"]["tests"], 128);
    }
}
