//! What was learned by asking hosts whether they are there: round trips to
//! one host, and the hops on the way.

use serde::Serialize;

/// The version of [`PingReport`] in JSON.
pub const PING_SCHEMA: &str = "longhaul.ping/1";
/// The version of [`TraceReport`] in JSON.
pub const TRACE_SCHEMA: &str = "longhaul.trace/1";

/// Probes to one host and what became of them. Each probe sent is one of
/// received, late, lost or waiting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PingReport {
    /// [`PING_SCHEMA`].
    pub schema: &'static str,
    /// The version of longhaul that measured.
    pub version: String,
    /// When it began: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// The host as it was named.
    pub target: String,
    /// Its address.
    pub address: String,
    /// What was sent: `icmp`, or `tcp` for TCP connects.
    pub method: &'static str,
    /// TCP's port.
    pub port: Option<u16>,
    /// Bytes of payload in each probe; none in a TCP connect.
    pub payload_bytes: usize,
    /// Time between probes.
    pub interval_ms: f64,
    /// An answer after more than this is late.
    pub timeout_ms: f64,
    /// Probes sent.
    pub sent: u64,
    /// Probes answered in time.
    pub received: u64,
    /// Probes answered, but late.
    pub late: u64,
    /// Probes without an answer, those that a router gave back included.
    pub lost: u64,
    /// Probes that had time left when the run was interrupted.
    pub waiting: u64,
    /// Lost over those that are not waiting, 0 to 1.
    pub loss: f64,
    /// Answers beyond the first to a probe.
    pub duplicates: u64,
    /// Answers to a probe that came after the answer to a later one
    /// (RFC 4737, section 3.3).
    pub reordered: u64,
    /// Probes that a router gave back, or that could not be sent.
    pub errors: u64,
    /// The round trips, late ones included; `None` where nothing answered.
    pub round_trips: Option<RoundTrips>,
    /// The latest 65 536 probes, in the order they were sent.
    pub probes: Vec<Ping>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// One probe.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ping {
    /// Its number, from 1.
    pub number: u64,
    /// When it was sent, in seconds since the first was.
    pub sent_s: f64,
    /// The round trip; `None` while there is no answer.
    pub rtt_ms: Option<f64>,
}

/// How long round trips took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RoundTrips {
    /// How many they were.
    pub count: u64,
    /// The shortest.
    pub min_ms: f64,
    /// Their mean.
    pub avg_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// Their standard deviation, which ping(8) calls mdev.
    pub mdev_ms: f64,
    /// No more than this took half of the latest 65 536, by nearest rank.
    pub p50_ms: f64,
    /// The same for 90 %.
    pub p90_ms: f64,
    /// The same for 95 %.
    pub p95_ms: f64,
    /// The same for 99 %.
    pub p99_ms: f64,
    /// Mean |difference| of consecutive round trips, in the order the answers
    /// came: D of RFC 3550 section 6.4.1, averaged instead of smoothed. `None`
    /// of a single one.
    pub jitter_ms: Option<f64>,
}

/// The way to a host, hop by hop.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceReport {
    /// [`TRACE_SCHEMA`].
    pub schema: &'static str,
    /// The version of longhaul that measured.
    pub version: String,
    /// When it began: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// The host as it was named.
    pub target: String,
    /// Its address.
    pub address: String,
    /// What was sent: `udp`, `icmp` or `tcp`.
    pub method: &'static str,
    /// UDP's or TCP's port.
    pub port: Option<u16>,
    /// Rounds begun: each sends one probe to each hop.
    pub rounds: u64,
    /// Time between rounds.
    pub interval_ms: f64,
    /// An answer after more than this counts for nothing.
    pub timeout_ms: f64,
    /// Whether the host itself answered.
    pub reached: bool,
    /// The hops in order, from the first.
    pub hops: Vec<Hop>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// One hop. Names, networks and places are what others wrote.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Hop {
    /// How many hops away, from 1.
    pub ttl: u8,
    /// Who answered most; `None` where nobody has.
    pub address: Option<String>,
    /// Others that answered at this distance.
    pub others: Vec<String>,
    /// The address's name, by reverse DNS.
    pub name: Option<String>,
    /// The autonomous system that the address belongs to.
    pub asn: Option<u32>,
    /// That system's name.
    pub as_name: Option<String>,
    /// Where the address is said to be.
    pub place: Option<String>,
    /// Probes sent.
    pub sent: u64,
    /// Probes answered in time.
    pub received: u64,
    /// Probes answered after the timeout; they count as lost.
    pub late: u64,
    /// Lost over those whose time is up, 0 to 1.
    pub loss: f64,
    /// The latest round trip.
    pub last_ms: Option<f64>,
    /// The shortest.
    pub best_ms: Option<f64>,
    /// Their mean.
    pub avg_ms: Option<f64>,
    /// The longest.
    pub worst_ms: Option<f64>,
    /// Their standard deviation.
    pub stdev_ms: Option<f64>,
    /// Why this hop carries no further, in ICMP's words; `None` where it does,
    /// and for the host itself.
    pub refusal: Option<String>,
}
