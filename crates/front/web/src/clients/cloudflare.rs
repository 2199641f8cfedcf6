//! Cloudflare's speed test (`@cloudflare/speedtest`): `__down?bytes=N` and `__up`. Its client may be
//! a page of another origin, so its timings are shared with all.

use super::Clients;
use super::transfer::{Download, receive};
use crate::connection::Connection;
use crate::query;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use std::sync::Arc;

/// The most bytes of a download; the client's largest is 250 MB.
const MAX_BYTES: u64 = 1_000_000_000;

pub(super) fn router(clients: Arc<Clients>) -> Router {
    Router::new()
        .route("/__down", routing::get(down).options(preflight))
        .route("/__up", routing::post(up).options(preflight))
        .with_state(clients)
}

/// What lets a page of another origin read the response, and when its bytes arrived.
fn shared() -> HeaderMap {
    const SHARED: [(HeaderName, &str); 4] = [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (HeaderName::from_static("timing-allow-origin"), "*"),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, "Server-Timing"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    SHARED.map(|(name, value)| (name, HeaderValue::from_static(value))).into_iter().collect()
}

async fn preflight() -> Response {
    let methods = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "Content-Type"),
    ];
    (StatusCode::NO_CONTENT, shared(), methods).into_response()
}

async fn down(
    State(clients): State<Arc<Clients>>,
    Extension(connection): Extension<Connection>,
    request: Request,
) -> Response {
    let began = host::clock::now();
    let query = query::pairs(request.uri().query().unwrap_or_default().as_bytes());
    let bytes = match query::first(&query, "bytes").map_or(Ok(0), str::parse) {
        Ok(bytes @ ..=MAX_BYTES) => bytes,
        _ => {
            let why = format!("bytes must be a number up to {MAX_BYTES}\n");
            return (StatusCode::BAD_REQUEST, shared(), why).into_response();
        }
    };
    let body = if bytes == 0 {
        Body::empty()
    } else {
        match clients.transfers.begin(&connection) {
            Ok(transfer) => {
                let longest = clients.transfers.longest();
                clients.log.download(&connection, bytes, began, longest);
                Body::new(Download::of_text(bytes, transfer))
            }
            Err(refused) => return (shared(), refused).into_response(),
        }
    };
    let milliseconds = host::clock::now().duration_since(began).as_secs_f64() * 1e3;
    let timing = format!("cfReqDur;dur={milliseconds:.3}");
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (HeaderName::from_static("server-timing"), timing.as_str()),
    ];
    (shared(), headers, body).into_response()
}

/// Answers only when the whole body is here: the client takes the time until the answer.
async fn up(
    State(clients): State<Arc<Clients>>,
    Extension(connection): Extension<Connection>,
    request: Request,
) -> Response {
    let began = host::clock::now();
    match receive(&clients.transfers, &connection, request.into_body()).await {
        Ok(bytes) => {
            clients.log.upload(&connection, bytes, began);
            (shared(), "ok").into_response()
        }
        Err(refused) => (shared(), refused).into_response(),
    }
}
