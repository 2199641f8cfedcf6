//! A front end over HTTP: `POST /test` and `POST /lab` take a request as JSON and answer with a
//! line of JSON for each event, then one for the document or the problem. Whoever reaches it may run
//! programs as this user, so it belongs on the loopback, and on machines without other users.
//!
//! ```sh
//! cargo run -p longhaul --example http -- 127.0.0.1:8080
//! curl -N localhost:8080/test -H 'content-type: application/json' -d '{"transfer": {"host": "192.0.2.1"}}'
//! ```

use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing::post};
use longhaul::{Fault, Problem, Request, StopFlag};
use serde::{Serialize, de::DeserializeOwned};
use std::convert::Infallible;
use std::error::Error;
use std::net::IpAddr;
use tokio::sync::mpsc;
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

/// Longest request, bytes.
const MAX_REQUEST: usize = 64 << 10;
/// Lines that wait for a slow reader before the run does.
const MAX_LINES: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    // Before any thread: a lab runs in a process of its own.
    longhaul::init();
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind(&address).await?;
        println!("listening on http://{}", listener.local_addr()?);
        axum::serve(listener, router()).await?;
        Ok(())
    })
}

pub(crate) fn router() -> Router {
    Router::new()
        .route("/test", post(|headers: HeaderMap, body: Bytes| async move { answer(&headers, &body, |request| Request::Test(Box::new(request))) }))
        .route("/lab", post(|headers: HeaderMap, body: Bytes| async move { answer(&headers, &body, Request::Lab) }))
        .layer(DefaultBodyLimit::max(MAX_REQUEST))
}

fn answer<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: &Bytes,
    request: impl FnOnce(T) -> Request,
) -> Response {
    // A page of another site whose name was bound to this address (DNS rebinding) sends that name.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    if !is_address && name != "localhost" {
        return refused(StatusCode::MISDIRECTED_REQUEST, "give this server's address");
    }
    // A page of another site can send forms and text, but no JSON, without asking first.
    if headers.get(header::CONTENT_TYPE).is_none_or(|kind| kind != "application/json") {
        return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/json");
    }
    match serde_json::from_slice(body).map(request) {
        Ok(request) => match request.check() {
            Ok(()) => run(request),
            Err(problem) => (StatusCode::UNPROCESSABLE_ENTITY, Json(problem)).into_response(),
        },
        Err(error) => refused(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

fn refused(status: StatusCode, why: &str) -> Response {
    (status, Json(Problem::new(Fault::Request, why))).into_response()
}

/// Runs a request in a thread of its own; a reader that goes away stops it.
fn run(request: Request) -> Response {
    let (lines, waiting) = mpsc::channel(MAX_LINES);
    std::thread::spawn(move || {
        let stop = StopFlag::new();
        let send = |line: String| {
            if lines.blocking_send(line).is_err() {
                stop.raise();
            }
        };
        let on_event = &mut |event| send(line("event", &event));
        match longhaul::run(request, on_event, &stop) {
            Ok(document) => send(line("document", &document)),
            Err(problem) => send(line("problem", &problem)),
        }
    });
    let lines = ReceiverStream::new(waiting).map(Ok::<_, Infallible>);
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

fn line(kind: &str, what: &impl Serialize) -> String {
    serde_json::json!({ kind: what }).to_string() + "\n"
}
