//! The addresses of kept results. A result's link is `/result/ID`.

use super::{History, KeepError, StoreError};
use crate::pages::{self, Readers, RunFile};
use crate::{Connection, Shared, guard};
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::{get, post};
use std::sync::Arc;
use tokio::task::spawn_blocking;

const ROOT: &str = "/result/";
const COMPARE: &str = "/compare";
/// Seconds after which a refused client may try again.
const RETRY_AFTER: u32 = 5;
/// Requests for results at a time, of all and of an address: they have arrived, so each is short.
static READERS: Readers = Readers::new(32, 4);

/// The routes.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/run/{run}/keep", post(keep))
        .route("/result/{name}", get(result).delete(remove))
        .route("/result/{id}/{name}", get(measurement))
        .route(COMPARE, get(compare))
}

/// Whether a path is one of a result, whose ID is its secret, or of a comparison.
pub(crate) fn is_result(path: &str) -> bool {
    path.starts_with(ROOT) || path == COMPARE
}

/// An answer instead of what was asked for.
struct Refusal(StatusCode, String, Option<u32>);

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let status = match error {
            StoreError::Full => StatusCode::INSUFFICIENT_STORAGE,
            StoreError::Busy => StatusCode::SERVICE_UNAVAILABLE,
            StoreError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        // Where the file is, is for the operator.
        let why = match error {
            StoreError::Full | StoreError::Busy | StoreError::TooLarge => error.to_string(),
            _ => "the history cannot be read".to_owned(),
        };
        Refusal(status, why, None)
    }
}

impl From<KeepError> for Refusal {
    fn from(error: KeepError) -> Self {
        let why = error.to_string();
        match error {
            KeepError::Unknown => Refusal(StatusCode::NOT_FOUND, why, None),
            KeepError::TooMany { seconds } => {
                Refusal(StatusCode::TOO_MANY_REQUESTS, why, Some(seconds))
            }
            KeepError::Random => Refusal(StatusCode::INTERNAL_SERVER_ERROR, why, None),
            KeepError::Store(error) => error.into(),
        }
    }
}

impl Refusal {
    fn none() -> Self {
        let why = "there is no such result: it was deleted, or has given way to newer ones";
        Refusal(StatusCode::NOT_FOUND, why.to_owned(), None)
    }

    fn response(self) -> Response<Body> {
        match self.2 {
            Some(seconds) => guard::too_many(&self.1, seconds),
            None => guard::refused(self.0, &self.1),
        }
    }
}

/// Does something with the history where it may block; few at a time of an address.
async fn answered(
    shared: &Shared,
    connection: &Connection,
    work: impl FnOnce(&History) -> Result<Response<Body>, Refusal> + Send + 'static,
) -> Response<Body> {
    let Some(history) = shared.history.clone() else {
        return guard::refused(StatusCode::NOT_FOUND, "this server keeps no results");
    };
    let Some(reading) = READERS.begin(Some(connection.key())) else {
        return guard::too_many("too many requests of this address, or of all", RETRY_AFTER);
    };
    let done = spawn_blocking(move || {
        let _reading = reading;
        work(&history)
    });
    let failed = |_| Refusal(StatusCode::INTERNAL_SERVER_ERROR, "it failed".to_owned(), None);
    let mut response = done.await.map_err(failed).flatten().unwrap_or_else(Refusal::response);
    // A link is for those that have it.
    let name = HeaderName::from_static("x-robots-tag");
    response.headers_mut().insert(name, HeaderValue::from_static("noindex"));
    response
}

async fn keep(
    State(shared): State<Arc<Shared>>,
    Extension(connection): Extension<Connection>,
    Path(run): Path<String>,
) -> Response<Body> {
    let key = connection.key();
    answered(&shared, &connection, move |history| {
        let receipt = history.keep(&run, key)?;
        Ok(file("application/json", serde_json::to_vec(&receipt).unwrap_or_default()))
    })
    .await
}

async fn result(
    State(shared): State<Arc<Shared>>,
    Extension(connection): Extension<Connection>,
    Path(name): Path<String>,
) -> Response<Body> {
    answered(&shared, &connection, move |history| {
        let (id, form) = name.split_once('.').unwrap_or((&name, ""));
        let text = history.document(id)?.ok_or_else(Refusal::none)?;
        let measurement = |step: u32| history.measurement(id, step).ok().flatten();
        match form {
            "" => Ok(pages::result_page(&RunFile::read(id, &text), measurement)),
            "json" => Ok(file("application/json", text)),
            "csv" => {
                let csv = RunFile::read(id, &text).csv(measurement);
                Ok(file("text/csv; charset=utf-8", csv.into_bytes()))
            }
            _ => Err(Refusal::none()),
        }
    })
    .await
}

async fn measurement(
    State(shared): State<Arc<Shared>>,
    Extension(connection): Extension<Connection>,
    Path((id, name)): Path<(String, String)>,
) -> Response<Body> {
    answered(&shared, &connection, move |history| {
        let step = name.strip_prefix("measurement-").and_then(|rest| rest.strip_suffix(".json"));
        let step = step.and_then(|step| step.parse().ok()).ok_or_else(Refusal::none)?;
        let text = history.measurement(&id, step)?.ok_or_else(Refusal::none)?;
        Ok(file("application/json", text))
    })
    .await
}

/// Deletes a result; the secret is `Authorization: Bearer SECRET`, which no page of another site
/// can send.
async fn remove(
    State(shared): State<Arc<Shared>>,
    Extension(connection): Extension<Connection>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response<Body> {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let secret = value.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    let secret = secret.to_owned();
    answered(&shared, &connection, move |history| match history.remove(&id, &secret)? {
        Some(true) => Ok(file("application/json", b"{}".to_vec())),
        Some(false) => Err(Refusal(StatusCode::FORBIDDEN, "the secret is wrong".to_owned(), None)),
        None => Err(Refusal::none()),
    })
    .await
}

async fn compare(
    State(shared): State<Arc<Shared>>,
    Extension(connection): Extension<Connection>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    answered(&shared, &connection, move |history| {
        let query = query.unwrap_or_default();
        Ok(pages::compare_page(&query, |id| history.document(id))?)
    })
    .await
}

fn file(kind: &'static str, bytes: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
