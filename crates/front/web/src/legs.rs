//! Wi-Fi, line or far away? The page measures the way to this server and to its peer in turns, and
//! this module says which of the two legs limits.

mod verdict;
mod words;

use crate::Shared;
use crate::guard::{json, refused};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};
use record::Limit;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Most bytes of what a page posts.
const MAX_BODY: usize = 64 << 10;
/// The time in which it arrives.
const BODY_TIME: Duration = Duration::from_secs(10);
/// Most rounds, and highest figures, that a page may say: bit/s and ms.
const MAX_ROUNDS: usize = 16;
const MAX_RATE: f64 = 1e12;
const MAX_MS: f64 = 60_000.0;

/// A transfer of a leg.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
struct Transfer {
    /// Goodput, bit/s.
    rate: Option<f64>,
    /// RTT under this load, ms.
    rtt_loaded: Option<f64>,
    /// What limited it.
    limit: Option<Limit>,
    /// Whether nothing disturbed it.
    #[serde(default)]
    valid: bool,
}

/// A leg in a round.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
struct Leg {
    /// RTT without load, ms.
    rtt_idle: Option<f64>,
    /// A download with one flow.
    #[serde(default)]
    single: Option<Transfer>,
    download: Option<Transfer>,
    upload: Option<Transfer>,
}

/// Both legs, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
struct Round {
    near: Leg,
    far: Leg,
}

/// What the page measured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Rounds {
    rounds: Vec<Round>,
}

impl Rounds {
    /// Reads them; their numbers are then within their ranges.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let all: Rounds =
            serde_json::from_slice(bytes).map_err(|error| format!("malformed rounds: {error}"))?;
        if !(1..=MAX_ROUNDS).contains(&all.rounds.len()) {
            return Err(format!("give 1 to {MAX_ROUNDS} rounds"));
        }
        let is_ms = |ms: Option<f64>| ms.is_none_or(|ms| (0.0..=MAX_MS).contains(&ms));
        let is_transfer = |transfer: Option<Transfer>| {
            transfer.is_none_or(|transfer| {
                is_ms(transfer.rtt_loaded)
                    && transfer.rate.is_none_or(|rate| (1.0..=MAX_RATE).contains(&rate))
            })
        };
        let mut legs = all.rounds.iter().flat_map(|round| [round.near, round.far]);
        let fits = legs.all(|leg| {
            let transfers = [leg.single, leg.download, leg.upload];
            is_ms(leg.rtt_idle) && transfers.into_iter().all(is_transfer)
        });
        if fits { Ok(all) } else { Err("a number is out of range".to_owned()) }
    }
}

/// The routes of this module.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/api/peer", get(peer)).route("/api/legs", post(legs))
}

#[derive(Serialize)]
struct ShownPeer<'a> {
    /// The origin of the peer; null without one.
    peer: Option<String>,
    token: Option<&'a str>,
}

async fn peer(State(shared): State<Arc<Shared>>) -> Response<Body> {
    let peer = shared.request.peer.as_ref();
    let origin = peer.map(|peer| peer.origin.to_string());
    json(&ShownPeer { peer: origin, token: peer.and_then(|peer| peer.token.as_deref()) })
}

async fn legs(request: Request) -> Response<Body> {
    let Ok(body) = timeout(BODY_TIME, to_bytes(request.into_body(), MAX_BODY)).await else {
        return refused(StatusCode::REQUEST_TIMEOUT, "the rounds did not arrive in time");
    };
    let Ok(body) = body else {
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "the rounds are too long");
    };
    match Rounds::parse(&body) {
        Ok(rounds) => json(&verdict::of(&rounds.rounds)),
        Err(why) => refused(StatusCode::BAD_REQUEST, &why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forged_rounds_are_refused() {
        let leg = r#"{"rtt_idle":1,"download":{"rate":1e6,"limit":"loss","valid":true}}"#;
        let rounds = |leg: &str, count: usize| {
            let round = format!(r#"{{"near":{leg},"far":{leg}}}"#);
            format!(r#"{{"rounds":[{}]}}"#, vec![round; count].join(","))
        };
        assert!(Rounds::parse(rounds(leg, 3).as_bytes()).is_ok());
        for text in [
            String::new(),
            "[]".to_owned(),
            rounds(leg, 0),
            rounds(leg, 17),
            rounds(&leg.replace("1e6", "-1"), 1),
            rounds(&leg.replace("1e6", "0"), 1),
            rounds(&leg.replace("1e6", "1e300"), 1),
            rounds(&leg.replace("1e6", "NaN"), 1),
            rounds(&leg.replace("\"loss\"", "\"<b>\""), 1),
            rounds(&leg.replace(":1,", ":-1,"), 1),
            rounds(&leg.replace(":1,", ":1e9,"), 1),
            rounds(&leg.replace("\"download\"", "\"single\"").replace("1e6", "0"), 1),
        ] {
            assert!(Rounds::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
