//! What an edge reports.

use ::edge::{CacheStatus, Connections, Totals};
use serde::Serialize;

/// The version of [`EdgeDocument`] in JSON.
pub const EDGE_SCHEMA: &str = "longhaul.edge/1";
/// The version of [`EdgeLine`] in JSON.
pub const EDGE_EVENT_SCHEMA: &str = "longhaul.edge-event/1";

/// An event of an edge. Texts of nginx are not printable as they are.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EdgeEvent {
    /// nginx listens.
    Listening {
        /// Where clients connect.
        address: String,
        /// The origin's URL.
        origin: String,
    },
    /// A setting that costs safety.
    Warning {
        /// What to do about it.
        text: String,
    },
    /// What was served since the start.
    Report {
        /// Seconds since the start.
        seconds: f64,
        /// The figures.
        #[serde(flatten)]
        figures: EdgeFigures,
    },
    /// A line of nginx's error log.
    Message {
        /// Its text.
        text: String,
    },
    /// Lines of nginx's error log that were not reported, as there were too many.
    HeldBack {
        /// Their number.
        count: u64,
    },
}

/// What an edge has served, and from where.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EdgeFigures {
    /// Requests that have ended.
    pub requests: u64,
    /// Those whose first bytes came from the cache.
    pub from_cache: u64,
    /// Those that were answered with a status of 500 or more.
    pub failed: u64,
    /// Requests by the cache's part in them.
    pub by_status: EdgeStatuses,
    /// Further slices of requests by the same.
    pub slices_by_status: EdgeStatuses,
    /// Body bytes sent to clients.
    pub sent_bytes: u64,
    /// Bytes received from the origin, with headers.
    pub origin_bytes: u64,
    /// Body bytes that were sent beyond those that were received.
    pub cached_bytes: u64,
    /// Open connections of clients; `None` where nginx does not say.
    pub connections: Option<u64>,
    /// Connections of clients that a limit of nginx has closed.
    pub dropped_connections: Option<u64>,
}

/// Counts by nginx's names of the cache's part.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct EdgeStatuses {
    /// Fresh, from the cache.
    pub hit: u64,
    /// Expired, confirmed by the origin, from the cache.
    pub revalidated: u64,
    /// Expired, from the cache while another request renews it.
    pub updating: u64,
    /// Expired, from the cache: the origin fails, or it is renewed in the background.
    pub stale: u64,
    /// Not in the cache: never asked for before, evicted, or not to be stored.
    pub miss: u64,
    /// Expired, and changed at the origin.
    pub expired: u64,
    /// With credentials or a cookie.
    pub bypass: u64,
    /// Refused, before the cache was asked.
    pub refused: u64,
}

/// What an edge has served in all.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EdgeDocument {
    /// [`EDGE_SCHEMA`].
    pub schema: &'static str,
    /// Seconds from its start.
    pub seconds: f64,
    /// The figures.
    #[serde(flatten)]
    pub figures: EdgeFigures,
}

/// A line of the log: an event with its time.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct EdgeLine<'a> {
    /// [`EDGE_EVENT_SCHEMA`].
    pub schema: &'static str,
    /// Seconds since 1970-01-01 UTC.
    pub time: f64,
    /// The event.
    #[serde(flatten)]
    pub event: &'a EdgeEvent,
}

impl<'a> EdgeLine<'a> {
    /// A line of now.
    #[must_use]
    pub fn now(event: &'a EdgeEvent) -> Self {
        let time = host::clock::unix_time().as_secs_f64();
        EdgeLine { schema: EDGE_EVENT_SCHEMA, time, event }
    }
}

impl EdgeStatuses {
    fn of(count: impl Fn(Option<CacheStatus>) -> u64) -> Self {
        EdgeStatuses {
            hit: count(Some(CacheStatus::Hit)),
            revalidated: count(Some(CacheStatus::Revalidated)),
            updating: count(Some(CacheStatus::Updating)),
            stale: count(Some(CacheStatus::Stale)),
            miss: count(Some(CacheStatus::Miss)),
            expired: count(Some(CacheStatus::Expired)),
            bypass: count(Some(CacheStatus::Bypass)),
            refused: count(None),
        }
    }
}

impl EdgeFigures {
    pub(super) fn of(totals: &Totals, connections: Option<Connections>) -> Self {
        let requests = |status| totals.requests.get(&status).copied().unwrap_or(0);
        let slices = |status: Option<CacheStatus>| {
            status.and_then(|status| totals.slices.get(&status).copied()).unwrap_or(0)
        };
        EdgeFigures {
            requests: totals.all(),
            from_cache: totals.from_cache(),
            failed: totals.failed,
            by_status: EdgeStatuses::of(requests),
            slices_by_status: EdgeStatuses::of(slices),
            sent_bytes: totals.sent.bytes(),
            origin_bytes: totals.fetched.bytes(),
            cached_bytes: totals.cached_bytes().bytes(),
            // That of the status page is none of a client.
            connections: connections.map(|all| all.active.saturating_sub(1)),
            dropped_connections: connections.map(|all| all.accepted.saturating_sub(all.handled)),
        }
    }
}
