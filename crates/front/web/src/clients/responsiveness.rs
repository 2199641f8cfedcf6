//! Servers of responsiveness tests (draft-ietf-ippm-responsiveness): `networkQuality`, `mach rpm`,
//! goresponsiveness. They have a port of their own that offers HTTP/2: probes share a loaded
//! connection.

use super::Clients;
use super::transfer::{Download, receive};
use crate::connection::Connection;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use serde_json::json;
use std::sync::Arc;
use units::ByteCount;

/// Bytes of the large download: nobody reads them all (at least 8 GB, section 6 of the draft).
const LARGE: u64 = 8 << 30;

/// Where clients ask for the configuration.
pub(crate) const PATH: &str = ".well-known/nq";

/// Unsent bytes of a loaded connection's socket: what waits there delays probes on it as no queue of
/// the path does.
const UNSENT: ByteCount = ByteCount::from_bytes(128 << 10);

const SMALL_PATH: &str = "/responsiveness/small";
const LARGE_PATH: &str = "/responsiveness/large";
const UPLOAD_PATH: &str = "/responsiveness/upload";

/// The routes of the port.
pub(crate) fn router(clients: Arc<Clients>) -> Router {
    Router::new()
        .route(&format!("/{PATH}"), routing::get(configuration))
        .route(SMALL_PATH, routing::get(small))
        .route(LARGE_PATH, routing::get(large))
        .route(UPLOAD_PATH, routing::post(upload))
        .with_state(clients)
}

/// The addresses of the three others, by the draft's names and by those of its early versions.
async fn configuration(Extension(connection): Extension<Connection>, request: Request) -> Response {
    let Some(base) = super::base_url(&connection, &request, "http") else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let query = super::token_query(&request);
    let [small, large, upload] =
        [SMALL_PATH, LARGE_PATH, UPLOAD_PATH].map(|path| format!("{base}{path}{query}"));
    let document = json!({
        "version": 1,
        "urls": {
            "small_download_url": small,
            "large_download_url": large,
            "upload_url": upload,
            "small_https_download_url": small,
            "large_https_download_url": large,
            "https_upload_url": upload,
        },
    });
    ([(header::CACHE_CONTROL, "no-store")], super::json_body(&document)).into_response()
}

fn octets(body: Body) -> Response {
    let headers =
        [(header::CONTENT_TYPE, "application/octet-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, body).into_response()
}

async fn small() -> Response {
    octets(Body::from("x"))
}

async fn large(
    State(clients): State<Arc<Clients>>,
    Extension(connection): Extension<Connection>,
) -> Response {
    match clients.transfers.begin(&connection) {
        Ok(transfer) => {
            let _ = connection.set_unsent_limit(Some(UNSENT));
            octets(Body::new(Download::new(LARGE, transfer)))
        }
        Err(refused) => refused.into_response(),
    }
}

async fn upload(
    State(clients): State<Arc<Clients>>,
    Extension(connection): Extension<Connection>,
    request: Request,
) -> Response {
    match receive(&clients.transfers, &connection, request.into_body()).await {
        Ok(_) => HeaderMap::new().into_response(),
        Err(refused) => refused.into_response(),
    }
}
