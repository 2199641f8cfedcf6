//! Servers for the clients that people already have. Each speaks its own protocol on the port of
//! the page, responsiveness tests on one of their own.
//!
//! | module | clients |
//! |---|---|
//! | [`ndt7`] | M-Lab's: ndt7-client, `@m-lab/ndt7`; Locate v2 |
//! | [`librespeed`] | LibreSpeed's page and command line |
//! | [`cloudflare`] | `@cloudflare/speedtest` |
//! | [`responsiveness`] | `networkQuality`, `mach rpm`, goresponsiveness |
//!
//! Whatever they transfer is bounded in time, and in bytes and number per address and in all
//! ([`transfer`]).

mod budget;
mod cloudflare;
mod form;
mod librespeed;
mod ndt7;
mod responsiveness;
mod transfer;
mod transfer_log;

use crate::WebLimits;
use crate::connection::Connection;
use axum::Router;
use axum::extract::Request;
use axum::http::header;
use axum::http::uri::Authority;
use axum::response::IntoResponse;
use longhaul::StopFlag;
use serde::Serialize;
use std::sync::Arc;

pub(crate) use transfer_log::TransferLog;

pub(crate) use responsiveness::{PATH as RESPONSIVENESS_PATH, router as responsiveness_router};

/// What the servers share.
#[derive(Debug)]
pub(crate) struct Clients {
    transfers: Arc<transfer::Transfers>,
    log: TransferLog,
    librespeed: librespeed::Results,
}

impl Clients {
    pub(crate) fn new(limits: &WebLimits, drain: StopFlag, log: TransferLog) -> Arc<Self> {
        let transfers = transfer::Transfers::new(limits, drain);
        Arc::new(Clients { transfers, log, librespeed: librespeed::Results::default() })
    }

    /// Transfers that run.
    pub(crate) fn running(&self) -> usize {
        self.transfers.running()
    }
}

/// The routes on the port of the page.
pub(crate) fn router(clients: &Arc<Clients>) -> Router {
    Router::new()
        .merge(ndt7::router(clients.clone()))
        .merge(librespeed::router(clients.clone()))
        .merge(cloudflare::router(clients.clone()))
}

/// A document as the body of a response.
fn json_body(document: &impl Serialize) -> impl IntoResponse {
    let text = serde_json::to_string(document).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text)
}

/// The name and port by which the client reached this server; HTTP/2 has it in the target.
fn host(request: &Request) -> Option<&str> {
    let header = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    header.or_else(|| request.uri().authority().map(Authority::as_str))
}

/// The beginning of this server's URLs: `scheme` with an `s` over TLS.
fn base_url(connection: &Connection, request: &Request, scheme: &str) -> Option<String> {
    let secure = if connection.is_encrypted() { "s" } else { "" };
    Some(format!("{scheme}{secure}://{}", host(request)?))
}

/// What the paths of these URLs end with: the token of the request, where it has one.
fn token_query(request: &Request) -> String {
    let mut pairs = request.uri().query().unwrap_or_default().split('&');
    let token = pairs.find(|pair| pair.starts_with("token="));
    token.map(|token| format!("?{token}")).unwrap_or_default()
}
