//! ndt7 (m-lab/ndt-server, `spec/ndt7-protocol.md`): a download and an upload of 10 s, each over a
//! WebSocket. In both, the server says what its kernel knows of the connection.

mod measurement;
mod session;

use super::Clients;
use crate::connection::Connection;
use crate::websocket::accept;
use crate::{guard, query};
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use serde_json::json;
use session::{Session, Test};
use std::sync::Arc;
use websocket::Limits;

/// The subprotocol.
const SUBPROTOCOL: &str = "net.measurementlab.ndt.v7";

/// Most bytes of a query: the client's metadata.
const MAX_QUERY: usize = 4096;

const DOWNLOAD_PATH: &str = "/ndt/v7/download";
const UPLOAD_PATH: &str = "/ndt/v7/upload";

/// The congestion control that the specification asks for; others do as well.
const CONGESTION: &str = "bbr";

pub(super) fn router(clients: Arc<Clients>) -> Router {
    let test = |test| {
        routing::get(move |State(clients), Extension(connection), request| async move {
            begin(test, &clients, &connection, request)
        })
    };
    Router::new()
        .route(DOWNLOAD_PATH, test(Test::Download))
        .route(UPLOAD_PATH, test(Test::Upload))
        .route("/ndt/ndt7", routing::get(locate))
        .route("/v2/nearest/ndt/ndt7", routing::get(locate))
        .with_state(clients)
}

/// What a query asks for: to end early or not.
fn early_exit(query: &str) -> Result<bool, &'static str> {
    if query.len() > MAX_QUERY {
        return Err("the query is longer than 4096 bytes");
    }
    match query::first(&query::pairs(query.as_bytes()), "early_exit") {
        None => Ok(false),
        Some("250") => Ok(true),
        Some(_) => Err("early_exit must be 250"),
    }
}

fn begin(
    test: Test,
    clients: &Arc<Clients>,
    connection: &Connection,
    request: Request,
) -> Response {
    let early_exit = match early_exit(request.uri().query().unwrap_or_default()) {
        Ok(early_exit) => early_exit,
        Err(why) => return guard::refused(StatusCode::BAD_REQUEST, why),
    };
    match clients.transfers.begin(connection) {
        Ok(transfer) => {
            accept(request, Some(SUBPROTOCOL), Limits::default(), move |socket, connection| {
                // The specification forgives a kernel without it; BBRInfo is zero then.
                let _ = connection.set_congestion(CONGESTION);
                Session::new(test, connection, transfer, early_exit).run(socket)
            })
        }
        Err(refused) => refused.into_response(),
    }
}

/// Locate v2: the nearest server is this one.
async fn locate(Extension(connection): Extension<Connection>, request: Request) -> Response {
    let Some(base) = super::base_url(&connection, &request, "ws") else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let scheme = base.split(':').next().unwrap_or_default();
    let host = super::host(&request).unwrap_or_default();
    let query = super::token_query(&request);
    let urls: serde_json::Map<_, _> = [DOWNLOAD_PATH, UPLOAD_PATH]
        .into_iter()
        .map(|path| (format!("{scheme}://{path}"), json!(format!("{base}{path}{query}"))))
        .collect();
    let document = json!({"results": [{
        "machine": host,
        "hostname": host,
        "location": {"city": "", "country": ""},
        "urls": urls,
    }]});
    // M-Lab's page asks from another origin.
    let headers: [(HeaderName, &str); 2] =
        [(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"), (header::CACHE_CONTROL, "no-store")];
    (headers, super::json_body(&document)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_metadata_and_one_early_exit() {
        assert_eq!(early_exit(""), Ok(false));
        assert_eq!(early_exit("client_name=x&client_name=y&server_z=1"), Ok(false));
        assert_eq!(early_exit("a=b&early_exit=250"), Ok(true));
        for query in ["early_exit=", "early_exit=251", "early_exit=250.0"] {
            assert!(early_exit(query).is_err(), "{query}");
        }
        assert!(early_exit(&"x".repeat(MAX_QUERY)).is_ok());
        assert!(early_exit(&"x".repeat(MAX_QUERY + 1)).is_err());
    }
}
