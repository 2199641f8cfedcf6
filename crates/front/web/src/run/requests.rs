//! Flows that are HTTP requests. Browsers move several times as many bytes a second through them
//! as through WebSockets (docs/design/web.md); they carry no probes.

use super::bulk::{Budget, BulkFlow, FlowState, block};
use crate::connection::Connection;
use crate::guard::refused;
use axum::body::{Body, Bytes};
use axum::http::header::{self, HeaderValue};
use axum::http::{Response, StatusCode};
use hyper::body::Frame;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use tokio::sync::{oneshot, watch};

/// The most requests that a browser has in progress with one host.
pub(super) const MAX_REQUESTS: u32 = 6;
/// The largest and the smallest part of a body, and the time that a part takes: at the step's end
/// what is queued is still sent.
const MAX_PART: usize = 256 << 10;
const MIN_PART: usize = 4 << 10;
const PART_SECONDS: f64 = 0.002;

/// What a flow has once its step has begun.
struct Begun {
    state: Arc<FlowState>,
    stop: watch::Receiver<bool>,
    budget: Arc<Budget>,
    /// Dropped at the end.
    _ended: oneshot::Sender<()>,
}

impl Begun {
    /// Whether the step, or its run, is over.
    fn is_over(&self) -> bool {
        *self.stop.borrow() || self.stop.has_changed().is_err()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.is_over() {
            self.state.broken.store(true, Ordering::Relaxed);
        }
    }
}

/// A request that waits for its step to begin.
pub(super) struct Waiting {
    begin: oneshot::Sender<Begun>,
    /// True for a download.
    pub(super) sends: bool,
}

impl Waiting {
    /// Begins the transfer. It ends when `stop` says so, or its sender is dropped, or the budget is
    /// used up.
    pub(super) fn start(
        self,
        connection: Connection,
        stop: watch::Receiver<bool>,
        budget: Arc<Budget>,
    ) -> BulkFlow {
        let state = Arc::new(FlowState::new(connection));
        let (ended, done) = oneshot::channel();
        // Of a request that has gone, what is dropped here says that its flow is broken.
        let _ = self.begin.send(Begun { state: Arc::clone(&state), stop, budget, _ended: ended });
        BulkFlow { state, done }
    }
}

fn answer(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    // The next step has connections of its own.
    fields.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A download, whose body begins and ends with its step.
pub(super) fn download() -> (Waiting, Response<Body>) {
    let (begin, beginning) = oneshot::channel();
    (Waiting { begin, sends: true }, answer(Body::new(Download::Waiting(beginning))))
}

/// An upload, which is answered at its step's end.
pub(super) fn upload(body: Body) -> (Waiting, impl Future<Output = Response<Body>>) {
    let (begin, beginning) = oneshot::channel();
    (Waiting { begin, sends: false }, receive(beginning, body))
}

enum Download {
    Waiting(oneshot::Receiver<Begun>),
    Running(Begun),
    Over,
}

impl hyper::body::Body for Download {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Download::Waiting(beginning) = &mut *self {
            let begun = ready!(Pin::new(beginning).poll(cx));
            *self = begun.map_or(Download::Over, Download::Running);
        }
        let part = match &*self {
            Download::Running(begun) if !begun.is_over() => begun.next(),
            _ => None,
        };
        if part.is_none() {
            *self = Download::Over;
        }
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }
}

impl Begun {
    /// The next part of a download; `None` once the budget is used up.
    fn next(&self) -> Option<Bytes> {
        let rate = self.state.rate.load(Ordering::Relaxed) as f64;
        let size = ((rate / 8.0 * PART_SECONDS) as usize).clamp(MIN_PART, MAX_PART);
        if !self.budget.take(size) {
            return None;
        }
        self.state.written.fetch_add(size as u64, Ordering::Relaxed);
        block().get(..size).map(Bytes::from_static)
    }
}

async fn receive(beginning: oneshot::Receiver<Begun>, mut body: Body) -> Response<Body> {
    let Ok(mut begun) = beginning.await else {
        return refused(StatusCode::CONFLICT, "the run has ended");
    };
    loop {
        let next = poll_fn(|cx| hyper::body::Body::poll_frame(Pin::new(&mut body), cx));
        let frame = tokio::select! {
            frame = next => frame,
            _ = begun.stop.changed() => break,
        };
        let Some(Ok(frame)) = frame else { break };
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        begun.state.received.fetch_add(bytes as u64, Ordering::Relaxed);
        if begun.is_over() || !begun.budget.take(bytes) {
            break;
        }
    }
    answer(Body::empty())
}
