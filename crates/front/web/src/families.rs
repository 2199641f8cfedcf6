//! IPv4 beside IPv6: the names under which a page reaches this server over one family alone. A page
//! cannot choose the family of a name that has both.

use crate::Shared;
use crate::connection::Connection;
use crate::guard::{json, refused};
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{Response, StatusCode};
use axum::routing::get;
use host::clock;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// The time in which the system's resolver answers, and how long its answer is used.
const RESOLVE_TIME: Duration = Duration::from_secs(2);
const RESOLVED_FOR: Duration = Duration::from_secs(60);

/// The addresses of the names, as this host resolves them.
#[derive(Debug, Default)]
pub(crate) struct Resolved(Arc<Mutex<Option<(Instant, Names)>>>);

impl Resolved {
    /// The names, looked up if they were not of late. A look-up has a task of its own, which goes on
    /// when whoever asked for it has left: there is one at a time, and its answer is used.
    async fn names(&self, look_up: impl Future<Output = Names> + Send + 'static) -> Option<Names> {
        let mut resolved = Arc::clone(&self.0).lock_owned().await;
        if let Some((at, names)) = &*resolved
            && at.elapsed() < RESOLVED_FOR
        {
            return Some(names.clone());
        }
        let looking = tokio::spawn(async move {
            let names = look_up.await;
            *resolved = Some((clock::now(), names.clone()));
            names
        });
        looking.await.ok()
    }
}

/// The name of a family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Name {
    name: String,
    /// Whether it has an address of the family, by this host's resolver; null if that does not say.
    has_address: Option<bool>,
}

/// The names of both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Names {
    ipv4: Option<Name>,
    ipv6: Option<Name>,
}

/// The routes of this module. Pages of this server's other names may use the second one.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/api/families", get(families)).route("/api/run/reach", get(reach))
}

async fn families(State(shared): State<Arc<Shared>>) -> Response<Body> {
    let asked = Arc::clone(&shared);
    let look_up = async move {
        let request = &asked.request;
        let (ipv4, ipv6) = tokio::join!(
            resolve(request.ipv4_name.as_deref(), SocketAddr::is_ipv4),
            resolve(request.ipv6_name.as_deref(), SocketAddr::is_ipv6)
        );
        Names { ipv4, ipv6 }
    };
    match shared.families.names(look_up).await {
        Some(names) => json(&names),
        None => refused(StatusCode::INTERNAL_SERVER_ERROR, "the names are unknown"),
    }
}

async fn resolve(name: Option<&str>, is_of: impl Fn(&SocketAddr) -> bool) -> Option<Name> {
    let name = name?;
    let found = timeout(RESOLVE_TIME, tokio::net::lookup_host((name, 0))).await;
    // An error may be a name without addresses, or a resolver that does not answer.
    let has_address =
        found.ok().and_then(Result::ok).map(|mut found| found.any(|address| is_of(&address)));
    Some(Name { name: name.to_owned(), has_address })
}

#[derive(Serialize)]
struct Reached {
    ip_version: u8,
}

/// Says over which family the request came.
async fn reach(Extension(connection): Extension<Connection>) -> Response<Body> {
    json(&Reached { ip_version: if connection.client().is_ipv4() { 4 } else { 6 } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Notify;

    #[test]
    fn a_look_up_outlives_whoever_asked_for_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (resolved, count) = (Resolved::default(), Arc::new(AtomicUsize::new(0)));
            let release = Arc::new(Notify::new());
            let names = Names { ipv4: None, ipv6: None };
            let look_up = || {
                let (count, release) = (Arc::clone(&count), Arc::clone(&release));
                let names = names.clone();
                async move {
                    count.fetch_add(1, Ordering::Relaxed);
                    release.notified().await;
                    names
                }
            };
            let short = Duration::from_millis(20);
            for _ in 0..5 {
                assert!(timeout(short, resolved.names(look_up())).await.is_err());
            }
            assert_eq!(count.load(Ordering::Relaxed), 1);
            release.notify_one();
            assert_eq!(resolved.names(look_up()).await, Some(names.clone()));
            assert_eq!(resolved.names(look_up()).await, Some(names));
            assert_eq!(count.load(Ordering::Relaxed), 1);
        });
    }

    #[test]
    fn a_name_has_addresses_of_a_family() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let has = |name: &'static str, is_of: fn(&SocketAddr) -> bool| {
            runtime.block_on(resolve(Some(name), is_of)).unwrap().has_address
        };
        assert_eq!(has("127.0.0.1", SocketAddr::is_ipv4), Some(true));
        assert_eq!(has("127.0.0.1", SocketAddr::is_ipv6), Some(false));
        assert_eq!(runtime.block_on(resolve(None, SocketAddr::is_ipv6)), None);
    }
}
