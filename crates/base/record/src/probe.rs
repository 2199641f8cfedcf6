//! The results of ping and trace: RTTs to one host, and the hops of a route.

use crate::{HopPosition, RouteMap};
use serde::Serialize;

/// The version of [`PingReport`] in JSON.
pub const PING_SCHEMA: &str = "longhaul.ping/1";
/// The version of [`TraceReport`] in JSON.
pub const TRACE_SCHEMA: &str = "longhaul.trace/1";

/// Probes to one host. Each probe sent is received, late, lost or waiting.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PingReport {
    /// [`PING_SCHEMA`].
    pub schema: &'static str,
    /// The version of longhaul that measured.
    pub version: String,
    /// Start time: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// The host as named on the command line.
    pub target: String,
    /// Its address.
    pub address: String,
    /// The probe: `icmp`, or `tcp` for TCP handshakes.
    pub method: &'static str,
    /// The TCP port; `None` for ICMP.
    pub port: Option<u16>,
    /// Payload bytes per probe; 0 for TCP.
    pub payload_bytes: usize,
    /// Probe interval.
    pub interval_ms: f64,
    /// A reply after this time is late.
    pub timeout_ms: f64,
    /// Probes sent.
    pub sent: u64,
    /// Replies in time.
    pub received: u64,
    /// Late replies.
    pub late: u64,
    /// Probes without a reply, including those answered by an ICMP error.
    pub lost: u64,
    /// Probes that had not timed out when the run was interrupted.
    pub waiting: u64,
    /// Lost over sent less waiting, 0 to 1.
    pub loss: f64,
    /// Duplicate replies.
    pub duplicates: u64,
    /// Replies that arrived after the reply to a later probe (RFC 4737, section 3.3).
    pub reordered: u64,
    /// Probes answered by an ICMP error, or not sent.
    pub errors: u64,
    /// What routers and this host said of them, with how often: the first kinds.
    pub unreachable: Vec<PingError>,
    /// RTT statistics, including late replies; `None` without a reply.
    pub round_trips: Option<RoundTrips>,
    /// The latest 65 536 probes, in sending order.
    pub probes: Vec<Ping>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// An error that probes met.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PingError {
    /// The router or host that sent it; `None` for this host.
    pub from: Option<String>,
    /// What it says.
    pub reason: String,
    /// Probes that met it.
    pub count: u64,
}

/// One probe.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ping {
    /// Its number, from 1.
    pub number: u64,
    /// Sending time in seconds since the first probe.
    pub sent_s: f64,
    /// The RTT; `None` without a reply.
    pub rtt_ms: Option<f64>,
}

/// RTT statistics.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RoundTrips {
    /// Number of RTTs.
    pub count: u64,
    /// Minimum.
    pub min_ms: f64,
    /// Their mean.
    pub avg_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// Their standard deviation, which ping(8) calls mdev.
    pub mdev_ms: f64,
    /// Median of the latest 65 536, by nearest rank.
    pub p50_ms: f64,
    /// 90th percentile, likewise.
    pub p90_ms: f64,
    /// 95th percentile, likewise.
    pub p95_ms: f64,
    /// 99th percentile, likewise.
    pub p99_ms: f64,
    /// Mean absolute difference of consecutive RTTs, in order of arrival: D of RFC 3550
    /// section 6.4.1, averaged instead of smoothed. `None` for a single RTT.
    pub jitter_ms: Option<f64>,
}

/// The route to a host, hop by hop.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceReport {
    /// [`TRACE_SCHEMA`].
    pub schema: &'static str,
    /// The version of longhaul that measured.
    pub version: String,
    /// Start time: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// The host as named on the command line.
    pub target: String,
    /// Its address.
    pub address: String,
    /// The probe: `udp`, `icmp` or `tcp`.
    pub method: &'static str,
    /// The UDP or TCP port.
    pub port: Option<u16>,
    /// Rounds started; each sends one probe to each hop.
    pub rounds: u64,
    /// Round interval.
    pub interval_ms: f64,
    /// A reply after this time is late.
    pub timeout_ms: f64,
    /// Whether the host itself replied.
    pub reached: bool,
    /// The hops in order, from the first.
    pub hops: Vec<Hop>,
    /// The route over the ground; `None` with fewer than two places.
    pub map: Option<RouteMap>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// One hop. Names, networks and places are untrusted third-party data.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Hop {
    /// The hop number, from 1.
    pub ttl: u8,
    /// The address with the most replies; `None` without a reply.
    pub address: Option<String>,
    /// Other addresses that replied at this hop.
    pub others: Vec<String>,
    /// Its name, by reverse DNS.
    pub name: Option<String>,
    /// Its autonomous system number.
    pub asn: Option<u32>,
    /// That system's name.
    pub as_name: Option<String>,
    /// Its location, by the GeoIP database.
    pub place: Option<String>,
    /// Where it is: by the database, or as its name hints.
    pub position: Option<HopPosition>,
    /// Probes sent.
    pub sent: u64,
    /// Replies in time.
    pub received: u64,
    /// Replies after the timeout; they count as lost.
    pub late: u64,
    /// Lost over sent less pending, 0 to 1.
    pub loss: f64,
    /// Latest RTT.
    pub last_ms: Option<f64>,
    /// The shortest.
    pub best_ms: Option<f64>,
    /// Their mean.
    pub avg_ms: Option<f64>,
    /// The longest.
    pub worst_ms: Option<f64>,
    /// Their standard deviation.
    pub stdev_ms: Option<f64>,
    /// The ICMP error with which this hop rejects the probes; `None` if it forwards them,
    /// and for the host itself.
    pub refusal: Option<String>,
}
