//! The server, from its start to its end.

use crate::clients::{self, Clients, TransferLog};
use crate::counters::Counters;
use crate::datagrams::{self, Datagrams};
use crate::families::Resolved;
use crate::guard::Guard;
use crate::history::History;
use crate::limits::Admission;
use crate::listener::{self, Port, Serving};
use crate::run::Runs;
use crate::tls::{Certificate, Protocols};
use crate::{WebEvent, WebRequest, guard, router};
use longhaul::metrics::{MetricsServer, Page};
use longhaul::{Fault, Field, Problem, StopFlag};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// Events that wait for the caller; further ones are dropped.
const MAX_WAITING: usize = 4096;
/// The interval at which the flags are looked at.
const POLL: Duration = Duration::from_millis(100);
/// The time in which what is left ends with the server.
const FAREWELL: Duration = Duration::from_millis(500);

/// What the parts of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) request: WebRequest,
    pub(crate) admission: Arc<Admission>,
    pub(crate) runs: Runs,
    /// The results that visitors keep here, if the operator permits it.
    pub(crate) history: Option<Arc<History>>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) families: Resolved,
    /// Set where the server has WebTransport.
    pub(crate) datagrams: OnceLock<Datagrams>,
    /// Raised when new runs are refused.
    pub(crate) drain: StopFlag,
    counters: Arc<Counters>,
    events: SyncSender<WebEvent>,
}

impl Shared {
    /// Tells the caller, unless it is far behind.
    pub(crate) fn tell(&self, event: WebEvent) {
        self.counters.take(&event);
        let _ = self.events.try_send(event);
    }
}

/// Serves until `stop` is raised, or until the last run has ended once `drain` is.
///
/// # Errors
/// An invalid field, a certificate that cannot be read, an address that is in use.
pub fn serve(
    request: &WebRequest,
    on_event: &mut dyn FnMut(WebEvent),
    drain: &StopFlag,
    stop: &StopFlag,
) -> Result<(), Problem> {
    serve_counted(request, &Counters::new(), on_event, drain, stop)
}

/// The same with counters that others read as well.
pub(crate) fn serve_counted(
    request: &WebRequest,
    counters: &Arc<Counters>,
    on_event: &mut dyn FnMut(WebEvent),
    drain: &StopFlag,
    stop: &StopFlag,
) -> Result<(), Problem> {
    request.check()?;
    // Each connection has two descriptors. Best effort: with fewer, fewer are accepted at a time.
    let _ = host::limits::raise_open_files();
    let certificate = Certificate::of(&request.tls, &request.own_names(), request.listen)?;
    let history = history(request)?;
    let runtime = Builder::new_multi_thread().enable_all().thread_name("web").build();
    let runtime = runtime.map_err(|error| {
        Problem::new(Fault::Host, format!("cannot start the server's threads: {error}"))
    })?;
    let (events, waiting) = sync_channel(MAX_WAITING);
    let log = match request.log_transfers {
        true => TransferLog::to(events.clone()),
        false => TransferLog::default(),
    };
    let shared = Arc::new(Shared {
        request: request.clone(),
        admission: Admission::new(&request.limits),
        runs: Runs::default(),
        history,
        clients: Clients::new(&request.limits, drain.clone(), log),
        families: Resolved::default(),
        datagrams: OnceLock::new(),
        drain: drain.clone(),
        counters: Arc::clone(counters),
        events,
    });
    let (ending, end) = watch::channel(());
    let mut serving = Serving {
        router: router::router(Arc::clone(&shared)),
        guard: Arc::new(Guard::new(request)),
        admission: Arc::clone(&shared.admission),
        counters: Arc::clone(counters),
        trusted_proxies: request.trusted_proxies.clone().into(),
        header_time: request.limits.header,
        end,
    };
    let certificate = certificate.as_ref();
    let address = listen(&runtime, request.listen, certificate, Protocols::Http1, serving.clone())?;
    on_event(WebEvent::Listening { address, url: url(request, address, "") });
    if let Some(event) = serve_datagrams(&runtime, &shared, address, &serving) {
        on_event(event);
    }
    if let Some(address) = request.responsiveness {
        serving.router = clients::responsiveness_router(Arc::clone(&shared.clients));
        let address = listen(&runtime, address, certificate, Protocols::Http2, serving)?;
        let url = url(request, address, clients::RESPONSIVENESS_PATH);
        on_event(WebEvent::ListeningForResponsiveness { address, url });
    }
    let metrics = request.metrics.map(|at| serve_metrics(at, request, counters)).transpose()?;
    if let Some(metrics) = &metrics {
        on_event(WebEvent::ListeningForMetrics { address: metrics.address() });
    }
    pass_events(&shared, &waiting, on_event, drain, stop);
    drop(ending);
    runtime.shutdown_timeout(FAREWELL);
    waiting.try_iter().for_each(&mut *on_event);
    on_event(WebEvent::Stopped);
    Ok(())
}

/// Opens the file of kept results.
fn history(request: &WebRequest) -> Result<Option<Arc<History>>, Problem> {
    let Some(file) = &request.history else { return Ok(None) };
    let history = History::open(file, &request.limits).map_err(|error| {
        Problem::field(Field::History, error, "a new or former file in a directory of your own")
    })?;
    Ok(Some(Arc::new(history)))
}

/// Serves metrics on a separate port.
fn serve_metrics(
    at: SocketAddr,
    request: &WebRequest,
    counters: &Arc<Counters>,
) -> Result<MetricsServer, Problem> {
    let (counters, began) = (Arc::clone(counters), host::clock::unix_time().as_secs_f64());
    let page = move || {
        let mut page = Page::default();
        counters.add(&mut page);
        page.process(began);
        page.into_text()
    };
    MetricsServer::start(at, &request.own_names(), &format!("{}\n", guard::FOREIGN_HOST), page)
}

/// Starts a listener.
fn listen(
    runtime: &Runtime,
    address: SocketAddr,
    certificate: Option<&Certificate>,
    protocols: Protocols,
    serving: Serving,
) -> Result<SocketAddr, Problem> {
    let wrong = |error: std::io::Error| {
        let message = format!("cannot listen on {address}: {error}");
        Problem::field(Field::Listen, message, "another address or port")
    };
    let tls = certificate.map(|certificate| certificate.server(protocols)).transpose()?;
    let _inside = runtime.enter();
    let listener = listener::bind(address).map_err(wrong)?;
    let bound = listener.local_addr().map_err(wrong)?;
    runtime.spawn(listener::accept(listener, Port { tls, protocols }, serving));
    Ok(bound)
}

/// Starts the server of datagrams, where it is wanted; without it loss is estimated.
fn serve_datagrams(
    runtime: &Runtime,
    shared: &Arc<Shared>,
    main: SocketAddr,
    serving: &Serving,
) -> Option<WebEvent> {
    let address = shared.request.datagram_address(main)?;
    let _inside = runtime.enter();
    let datagrams = match Datagrams::bind(address) {
        Ok(datagrams) => datagrams,
        // The number may be in use for something else.
        Err(problem) => return Some(WebEvent::WithoutDatagrams { why: problem.message }),
    };
    let address = datagrams.address();
    let _ = shared.datagrams.set(datagrams);
    runtime.spawn(datagrams::accept(Arc::clone(shared), serving.end.clone()));
    Some(WebEvent::ListeningForDatagrams { address })
}

fn url(request: &WebRequest, address: SocketAddr, path: &str) -> String {
    let scheme = if request.tls == crate::Tls::None { "http" } else { "https" };
    let token = request.token.as_ref().map(|token| format!("?token={token}")).unwrap_or_default();
    match request.names.first() {
        Some(name) => format!("{scheme}://{name}:{}/{path}{token}", address.port()),
        None if address.ip().is_unspecified() => {
            format!("{scheme}://localhost:{}/{path}{token}", address.port())
        }
        None => format!("{scheme}://{address}/{path}{token}"),
    }
}

fn pass_events(
    shared: &Shared,
    waiting: &Receiver<WebEvent>,
    on_event: &mut dyn FnMut(WebEvent),
    drain: &StopFlag,
    stop: &StopFlag,
) {
    let mut has_told = false;
    loop {
        match waiting.recv_timeout(POLL) {
            Ok(event) => on_event(event),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let is_draining = drain.is_raised();
        let runs = shared.runs.conducting() + shared.clients.running();
        if stop.is_raised() || is_draining && runs == 0 {
            return;
        }
        if is_draining && !has_told {
            has_told = true;
            on_event(WebEvent::Draining { runs });
        }
    }
}
