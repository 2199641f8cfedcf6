//! Runs of the speed test: the server conducts, the page carries out (docs/design/web.md).

mod advice;
pub(crate) mod bulk;
mod conductor;
mod differs;
mod ecn;
mod families;
mod gaps;
mod hops;
mod interval;
mod kept;
mod loss;
mod message;
mod queue_place;
mod requests;
mod result;
mod series;
mod settings;
mod step;
mod validity;

use crate::connection::Connection;
use crate::datagrams::Session;
use crate::guard::{refused, too_many};
use crate::limits::Admitted;
use crate::websocket::{self as upgrade, Parts, WebSocket};
use crate::{Shared, WebEvent};
use ::websocket::{CloseCode, Limits};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, header};
use axum::routing::get;
use bulk::Budget;
use hops::HopProbes;
use host::clock;
use host::lock::lock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use step::Stage;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// When a client with too many runs may try again, in seconds: about what a run takes.
const RETRY_AFTER: u32 = 30;
/// Probes a second of a probe connection, over [`PROBE_SECONDS`].
const MAX_PROBE_RATE: u32 = 50;
const PROBE_SECONDS: u32 = 2;
/// Most bytes of a probe.
const MAX_PROBE: usize = 64;
/// Probe connections of a run.
const MAX_PROBE_CONNECTIONS: u32 = 2;

/// The runs in progress.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    by_id: Mutex<HashMap<String, Arc<Run>>>,
    conducting: Arc<AtomicUsize>,
}

impl Runs {
    fn of(&self, id: &str) -> Option<Arc<Run>> {
        lock(&self.by_id).get(id).cloned()
    }

    /// Runs whose end the caller has not been told. The place of a run is free earlier.
    pub(crate) fn conducting(&self) -> usize {
        self.conducting.load(Ordering::SeqCst)
    }

    fn conduct(&self) -> Conducting {
        self.conducting.fetch_add(1, Ordering::SeqCst);
        Conducting(Arc::clone(&self.conducting))
    }

    /// What takes the session of datagrams of a run that waits for it; the first one has it.
    pub(crate) fn take_datagrams(&self, id: &str) -> Option<oneshot::Sender<Session>> {
        lock(&self.of(id)?.datagrams).take()
    }
}

/// A run that counts as conducted until this is dropped.
struct Conducting(Arc<AtomicUsize>);

impl Drop for Conducting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A run in progress, for the requests of its flows.
#[derive(Debug)]
struct Run {
    arrivals: mpsc::Sender<Arrival>,
    expected: Mutex<Expected>,
    probes: Mutex<u32>,
    /// Takes the session of datagrams, while a step waits for it.
    datagrams: Mutex<Option<oneshot::Sender<Session>>>,
    hops: HopProbes,
}

/// The flows that may be opened now.
#[derive(Debug, Default)]
struct Expected {
    step: u32,
    is_taken: Vec<bool>,
}

/// A flow that the page has opened.
struct Arrival {
    step: u32,
    number: u32,
    carrier: Carrier,
    connection: Connection,
}

/// What carries a flow.
enum Carrier {
    Socket(Parts),
    Request(requests::Waiting),
}

impl Run {
    fn expect(&self, step: u32, flows: u32) {
        *lock(&self.expected) = Expected { step, is_taken: vec![false; flows as usize] };
    }

    /// Takes the place of a flow; false if there is none, or it is taken.
    fn claim(&self, step: u32, number: u32) -> bool {
        let mut expected = lock(&self.expected);
        let is_current = expected.step == step;
        let place = expected.is_taken.get_mut(number as usize).filter(|_| is_current);
        place.is_some_and(|taken| !std::mem::replace(taken, true))
    }
}

/// The routes below `/api/run`.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/run", get(control))
        .route("/api/run/{run}/flow/{step}/{number}", get(flow).post(flow))
        .route("/api/run/{run}/probe", get(probe))
}

/// A run's place and name, which end with it.
struct Registered {
    shared: Arc<Shared>,
    id: String,
    _ticket: Admitted,
}

impl Drop for Registered {
    fn drop(&mut self) {
        lock(&self.shared.runs.by_id).remove(&self.id);
    }
}

/// Headers that a reverse proxy adds (RFC 7239, and what came before it).
fn is_proxied(headers: &HeaderMap) -> bool {
    ["forwarded", "x-forwarded-for", "via"].iter().any(|name| headers.contains_key(*name))
}

async fn control(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let Some(connection) = request.extensions().get::<Connection>().cloned() else {
        return refused(StatusCode::INTERNAL_SERVER_ERROR, "the connection is unknown");
    };
    // Counted before the flag is read: a server that drains then waits for this run.
    let conducting = shared.runs.conduct();
    if shared.drain.is_raised() {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "the server is about to stop");
    }
    let Ok(ticket) = shared.admission.run(connection.key()) else {
        let why = "too many runs of this address, or of all; try again later";
        shared.tell(WebEvent::Refused { client: connection.client(), why: why.to_owned() });
        return too_many(why, RETRY_AFTER);
    };
    let Ok(random) = host::random::secret::<16>() else {
        return refused(StatusCode::INTERNAL_SERVER_ERROR, "the system gives no random numbers");
    };
    let id = crate::id::hexadecimal(&random);
    let proxied = is_proxied(request.headers());
    let limits = Limits { text_bytes: message::MAX_PAGE_MESSAGE, binary_frame_bytes: 0 };
    upgrade::accept(request, None, limits, move |socket, connection| async move {
        let (sender, arrivals) = mpsc::channel(message::MAX_FLOWS as usize);
        let run = Arc::new(Run {
            arrivals: sender,
            expected: Mutex::new(Expected::default()),
            probes: Mutex::new(0),
            datagrams: Mutex::new(None),
            hops: HopProbes::new(),
        });
        lock(&shared.runs.by_id).insert(id.clone(), Arc::clone(&run));
        let place = Registered { shared: Arc::clone(&shared), id: id.clone(), _ticket: ticket };
        let stage = Stage {
            control: socket,
            place: Some(place),
            client: connection.client(),
            run,
            arrivals,
            admission: Arc::clone(&shared.admission),
            budget: Budget::new(shared.request.max_bytes_per_run.bytes()),
            next: 0,
            by_requests: false,
            rtt_idle: None,
            ecn: ecn::Observed::default(),
        };
        conductor::conduct(&shared, stage, &id, proxied).await;
        drop(conducting);
    })
}

async fn flow(
    State(shared): State<Arc<Shared>>,
    Path((id, step, number)): Path<(String, u32, u32)>,
    request: Request,
) -> Response<Body> {
    let Some(run) = shared.runs.of(&id) else {
        return refused(StatusCode::NOT_FOUND, "there is no such run");
    };
    if !run.claim(step, number) {
        return refused(StatusCode::CONFLICT, "this flow is not expected now");
    }
    if !request.headers().contains_key(header::UPGRADE) {
        return flow_by_request(&run, step, number, request).await;
    }
    let limits = Limits { text_bytes: MAX_PROBE, ..Limits::default() };
    upgrade::accept(request, None, limits, move |socket, connection| async move {
        let carrier = Carrier::Socket(socket.into_parts());
        let _ = run.arrivals.send(Arrival { step, number, carrier, connection }).await;
    })
}

/// A flow that is a request: with GET a download, with POST an upload.
async fn flow_by_request(run: &Run, step: u32, number: u32, request: Request) -> Response<Body> {
    let Some(connection) = request.extensions().get::<Connection>().cloned() else {
        return refused(StatusCode::INTERNAL_SERVER_ERROR, "the connection is unknown");
    };
    let arrive = |waiting| {
        let carrier = Carrier::Request(waiting);
        run.arrivals.send(Arrival { step, number, carrier, connection })
    };
    if request.method() == Method::POST {
        let (waiting, response) = requests::upload(request.into_body());
        let _ = arrive(waiting).await;
        return response.await;
    }
    let (waiting, response) = requests::download();
    let _ = arrive(waiting).await;
    response
}

async fn probe(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    request: Request,
) -> Response<Body> {
    let Some(run) = shared.runs.of(&id) else {
        return refused(StatusCode::NOT_FOUND, "there is no such run");
    };
    let proxied = is_proxied(request.headers());
    // The run is held weakly: its end closes the connection at the next probe, or when idle.
    let Some(place) = ProbePlace::take(&run) else {
        return refused(StatusCode::CONFLICT, "the run has its probe connections");
    };
    drop(run);
    let idle = shared.request.limits.idle;
    let limits = Limits { text_bytes: MAX_PROBE, binary_frame_bytes: 0 };
    upgrade::accept(request, None, limits, move |socket, connection| async move {
        if let Some(run) = place.0.upgrade() {
            run.hops.begin(&connection, &shared.admission, proxied);
        }
        echo(socket, idle, || place.0.strong_count() > 0).await;
    })
}

/// A run's place for a probe connection, which is given back with it, also when the upgrade fails.
struct ProbePlace(Weak<Run>);

impl ProbePlace {
    fn take(run: &Arc<Run>) -> Option<Self> {
        let mut probes = lock(&run.probes);
        if *probes >= MAX_PROBE_CONNECTIONS {
            return None;
        }
        *probes += 1;
        Some(ProbePlace(Arc::downgrade(run)))
    }
}

impl Drop for ProbePlace {
    fn drop(&mut self) {
        if let Some(run) = self.0.upgrade() {
            *lock(&run.probes) -= 1;
        }
    }
}

/// Echoes probes while there is a run.
async fn echo(mut socket: WebSocket, idle: Duration, is_running: impl Fn() -> bool) {
    let mut window: (Instant, u32) = (clock::now(), 0);
    while let Ok(Some(text)) = timeout(idle, socket.text()).await {
        if window.0.elapsed() >= Duration::from_secs(PROBE_SECONDS.into()) {
            window = (clock::now(), 0);
        }
        window.1 += 1;
        if window.1 > MAX_PROBE_RATE * PROBE_SECONDS {
            return socket.close(CloseCode::POLICY, "too many probes").await;
        }
        if !is_running() || socket.send_text(&text).await.is_err() {
            break;
        }
    }
    socket.close(CloseCode::GOING_AWAY, "").await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_claimed_once_and_in_its_step() {
        let (arrivals, _kept) = mpsc::channel(1);
        let expected = Mutex::new(Expected::default());
        let (probes, datagrams) = (Mutex::new(0), Mutex::new(None));
        let run = Run { arrivals, expected, probes, datagrams, hops: HopProbes::new() };
        assert!(!run.claim(0, 0));
        run.expect(3, 2);
        assert!(run.claim(3, 1) && run.claim(3, 0));
        assert!(!run.claim(3, 1) && !run.claim(3, 2) && !run.claim(2, 0));
    }
}
