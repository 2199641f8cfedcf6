//! What the server answers.

use crate::{Shared, assets, clients, families, guard, history, legs, pages, run};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, Response, StatusCode};
use std::sync::Arc;

/// The routes of the main port.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let clients = clients::router(&shared.clients);
    Router::new()
        .merge(run::routes())
        .merge(families::routes())
        .merge(legs::routes())
        .merge(history::routes())
        .merge(pages::routes())
        .fallback(asset)
        .with_state(shared)
        .merge(clients)
}

/// The page, or 404.
async fn asset(State(_): State<Arc<Shared>>, request: Request) -> Response<Body> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return guard::refused(StatusCode::METHOD_NOT_ALLOWED, "only GET is possible here");
    }
    assets::answer(request.uri().path(), request.headers())
        .unwrap_or_else(|| guard::refused(StatusCode::NOT_FOUND, "there is no such page"))
}
