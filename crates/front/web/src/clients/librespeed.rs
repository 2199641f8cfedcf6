//! LibreSpeed's page and command line (librespeed/speedtest): every path with and without `.php`,
//! and with and without `backend/`.

mod telemetry;

use super::transfer::{Download, receive};
use super::{Clients, form, json_body};
use crate::connection::Connection;
use crate::{id, query};
use axum::Router;
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{self, MethodRouter};
use host::lock::lock;
use http_body_util::LengthLimitError;
use serde_json::json;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use telemetry::{Report, Reports};

/// Bytes of one unit of `ckSize`.
const UNIT: u64 = 1 << 20;
/// Units of a download that asks for none, and the most.
const DEFAULT_UNITS: u64 = 4;
const MAX_UNITS: u64 = 1024;

/// Most bytes of a reported result: a page sends its log.
const MAX_REPORT: usize = 256 << 10;

/// The time in which it arrives.
const REPORT_TIME: Duration = Duration::from_secs(10);

/// What LibreSpeed's pages reported.
#[derive(Debug, Default)]
pub(super) struct Results(Mutex<Reports>);

pub(super) fn router(clients: Arc<Clients>) -> Router {
    let mut router = Router::new()
        .route("/.well-known/librespeed", routing::get(servers))
        .route("/results/", routing::get(share_page));
    let at = |router: Router<Arc<Clients>>,
              base: &str,
              name: &str,
              to: MethodRouter<Arc<Clients>>| {
        router.route(&format!("{base}/{name}"), to.clone()).route(&format!("{base}/{name}.php"), to)
    };
    for base in ["", "/backend"] {
        router = at(router, base, "garbage", routing::get(garbage).options(preflight));
        router = at(router, base, "empty", routing::get(empty).post(upload).options(preflight));
        router = at(router, base, "getIP", routing::get(address).options(preflight));
    }
    router = at(router, "/results", "telemetry", routing::post(report).options(preflight));
    router = at(router, "/results", "json", routing::get(share_json));
    router.with_state(clients)
}

/// Headers of every response: never cached, and for other origins where `cors` is asked for.
fn headers(request: &Request) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let no_store = HeaderValue::from_static("no-store, no-cache, must-revalidate");
    headers.insert(header::CACHE_CONTROL, no_store);
    let query = query::pairs(request.uri().query().unwrap_or_default().as_bytes());
    if query::first(&query, "cors") == Some("true") {
        allow_all(&mut headers);
    }
    headers
}

fn allow_all(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "Content-Encoding, Content-Type"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

async fn preflight() -> Response {
    let mut headers = HeaderMap::new();
    allow_all(&mut headers);
    (StatusCode::NO_CONTENT, headers).into_response()
}

async fn garbage(
    State(clients): State<Arc<Clients>>,
    Extension(connection): Extension<Connection>,
    request: Request,
) -> Response {
    let headers = headers(&request);
    let query = query::pairs(request.uri().query().unwrap_or_default().as_bytes());
    // As the original does: what is no number is the default, and what is too much the most.
    let units = query::first(&query, "ckSize").and_then(|text| text.parse().ok());
    let bytes = units.filter(|units| *units > 0).unwrap_or(DEFAULT_UNITS).min(MAX_UNITS) * UNIT;
    match clients.transfers.begin(&connection) {
        Ok(transfer) => {
            let kind = [
                (header::CONTENT_TYPE, "application/octet-stream"),
                (header::CONTENT_DISPOSITION, "attachment; filename=random.dat"),
            ];
            (headers, kind, Body::new(Download::new(bytes, transfer))).into_response()
        }
        Err(refused) => (headers, refused).into_response(),
    }
}

/// A ping: its body is empty, or the command line takes the server for down.
async fn empty(request: Request) -> Response {
    headers(&request).into_response()
}

async fn upload(
    State(clients): State<Arc<Clients>>,
    Extension(connection): Extension<Connection>,
    request: Request,
) -> Response {
    let headers = headers(&request);
    match receive(&clients.transfers, &connection, request.into_body()).await {
        Ok(_) => headers.into_response(),
        Err(refused) => (headers, refused).into_response(),
    }
}

/// The visitor's address. The provider is not looked up: nothing is asked elsewhere.
async fn address(Extension(connection): Extension<Connection>, request: Request) -> Response {
    let address = connection.client().ip().to_string();
    (headers(&request), json_body(&json!({"processedString": address, "rawIspInfo": ""})))
        .into_response()
}

async fn report(
    State(clients): State<Arc<Clients>>,
    Extension(connection): Extension<Connection>,
    request: Request,
) -> Response {
    let headers = headers(&request);
    let transfer = match clients.transfers.begin(&connection) {
        Ok(transfer) => transfer,
        Err(refused) => return (headers, refused).into_response(),
    };
    let refused = |status: StatusCode, why: String| (status, headers.clone(), why).into_response();
    let content_type = request.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = content_type.to_owned();
    if request.headers().contains_key(header::CONTENT_ENCODING) {
        let why = "a compressed result is not unpacked\n".to_owned();
        return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
    }
    let body = request.into_body();
    let is_short = body.size_hint().lower() <= MAX_REPORT as u64;
    let body = match is_short {
        true => tokio::time::timeout(REPORT_TIME, to_bytes(body, MAX_REPORT)).await,
        false => Ok(Ok(Bytes::new())),
    };
    let is_too_long = |error: axum::Error| error.into_inner().is::<LengthLimitError>();
    let body = body.map(|body| body.map_err(is_too_long));
    let body = match body {
        Ok(Ok(body)) if is_short && transfer.take(body.len() as u64) => body,
        Ok(Err(false)) => {
            return refused(StatusCode::BAD_REQUEST, "the result broke off\n".to_owned());
        }
        Ok(_) => {
            let why = format!("a result has at most {MAX_REPORT} bytes\n");
            return refused(StatusCode::PAYLOAD_TOO_LARGE, why);
        }
        Err(_) => return refused(StatusCode::REQUEST_TIMEOUT, "the result is late\n".to_owned()),
    };
    let fields = match form::boundary(&content_type) {
        Some(boundary) => form::multipart(&body, boundary),
        None => std::str::from_utf8(&body).ok().map(|text| query::pairs(text.as_bytes())),
    };
    let Some(fields) = fields else {
        return refused(StatusCode::BAD_REQUEST, "the form is malformed\n".to_owned());
    };
    match Report::of(&fields, host::clock::unix_seconds()) {
        Ok(report) => match host::random::secret() {
            Ok(id) => {
                clients.librespeed.lock().add(connection.key(), id, report);
                (headers, format!("id {}", id::hexadecimal(&id))).into_response()
            }
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        },
        Err(name) => refused(StatusCode::BAD_REQUEST, format!("{name} is not a number\n")),
    }
}

impl Results {
    fn lock(&self) -> MutexGuard<'_, Reports> {
        lock(&self.0)
    }

    /// The result that a query names.
    fn of(&self, request: &Request) -> Option<Report> {
        let query = query::pairs(request.uri().query().unwrap_or_default().as_bytes());
        let id = query::first(&query, "id").and_then(id::of_text)?;
        self.lock().get(id).cloned()
    }
}

async fn share_page(State(clients): State<Arc<Clients>>, request: Request) -> Response {
    match clients.librespeed.of(&request) {
        Some(report) => (headers(&request), Html(report.page())).into_response(),
        None => (StatusCode::NOT_FOUND, "there is no such result\n").into_response(),
    }
}

async fn share_json(State(clients): State<Arc<Clients>>, request: Request) -> Response {
    match clients.librespeed.of(&request) {
        Some(report) => (headers(&request), json_body(&report)).into_response(),
        None => (StatusCode::NOT_FOUND, json_body(&json!({}))).into_response(),
    }
}

/// The list of servers: this one.
async fn servers(Extension(connection): Extension<Connection>, request: Request) -> Response {
    let Some(base) = super::base_url(&connection, &request, "http") else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let mut headers = headers(&request);
    allow_all(&mut headers);
    let query = super::token_query(&request);
    let at = |name| format!("{name}{query}");
    let list = json!([{
        "id": 1,
        "name": super::host(&request).unwrap_or_default(),
        "server": format!("{base}/"),
        "dlURL": at("garbage"),
        "ulURL": at("empty"),
        "pingURL": at("empty"),
        "getIpURL": at("getIP"),
        "sponsorName": "",
        "sponsorURL": "",
    }]);
    (headers, json_body(&list)).into_response()
}
