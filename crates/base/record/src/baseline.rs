//! The baseline of a path: every combination of IP version, direction and number of streams,
//! measured several times, and its comparison with an earlier one.

use crate::{Check, Comparison, Direction, Finding, HostFacts, Limit, RepeatSummary, RunFigures};
use serde::{Deserialize, Serialize};
use std::fmt;
use units::BitRate;

/// The version of [`BaselineReport`] in JSON.
pub const BASELINE_SCHEMA: &str = "longhaul.baseline/1";

/// What an RTT was measured with.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttSource {
    /// ICMP echo requests.
    Icmp,
    /// The SYN and SYN-ACK of a TCP handshake.
    Handshake,
}

/// The address family of a test's connections.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressFamily {
    /// `AF_INET`.
    Ipv4,
    /// `AF_INET6`.
    Ipv6,
}

impl AddressFamily {
    /// The name on the terminal and the page.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            AddressFamily::Ipv4 => "IPv4",
            AddressFamily::Ipv6 => "IPv6",
        }
    }
}

/// What one test of a baseline measures: `IPv4 upload, 4 streams`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCondition {
    /// IPv4 or IPv6.
    pub family: AddressFamily,
    /// Forward (upload) or reverse (download).
    pub direction: Direction,
    /// Parallel streams.
    pub streams: u32,
}

impl TestCondition {
    /// `upload` or `download`.
    #[must_use]
    pub const fn direction_name(&self) -> &'static str {
        match self.direction {
            Direction::Forward => "upload",
            Direction::Reverse => "download",
            Direction::Both => "both directions",
        }
    }

    /// `1 stream`, `4 streams`.
    #[must_use]
    pub fn streams_name(&self) -> String {
        format!("{} {}", self.streams, if self.streams == 1 { "stream" } else { "streams" })
    }
}

impl fmt::Display for TestCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (family, direction) = (self.family.name(), self.direction_name());
        write!(f, "{family} {direction}, {}", self.streams_name())
    }
}

/// What `longhaul baseline` measured.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineReport {
    /// [`BASELINE_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that measured.
    pub version: String,
    /// Start time: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// How long everything took.
    pub took_s: f64,
    /// The client's host.
    pub host: HostFacts,
    /// The link rate of the client's network device, if known.
    pub link_bps: Option<BitRate>,
    /// The server as requested, or as chosen from a list.
    pub target: String,
    /// The first port that was tried.
    pub port: u16,
    /// The server's name and version: `longhaul 0.1.0`, or `iperf3` if it sends none.
    pub peer: String,
    /// The seed of the order of the tests.
    pub seed: u64,
    /// The time in which the tests had to fit.
    pub within_s: f64,
    /// The length of each test.
    pub duration_s: f64,
    /// Rounds begun: in each, every condition is tested once, in random order.
    pub rounds: u32,
    /// Whether the user interrupted it.
    pub interrupted: bool,
    /// Parts of the path as the user names them.
    #[serde(default)]
    pub architecture: Vec<ArchitectureNote>,
    /// Power saving and other traffic before the tests.
    pub checks: Vec<Check>,
    /// Each IP version, or why it was not tested.
    pub paths: Vec<BaselinePath>,
    /// Each condition that was tested.
    pub conditions: Vec<BaselineCondition>,
    /// Pairs of conditions that differ in one respect.
    pub differences: Vec<BaselineDifference>,
    /// Links that a median goodput identifies.
    pub links: Vec<BaselineLink>,
    /// What to do, the most effective first.
    pub steps: Vec<BaselineStep>,
    /// The comparison with an earlier baseline, if one was given.
    #[serde(default)]
    pub comparison: Option<BaselineComparison>,
    /// How the server was chosen, if a list was given.
    #[serde(default)]
    pub choice: Option<ServerChoice>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A part of the path as the user describes it: the router, the provider.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchitectureNote {
    /// Its name: `router`.
    pub part: String,
    /// The description.
    pub text: String,
}

/// One IP version's path to the server.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselinePath {
    /// IPv4 or IPv6.
    pub family: AddressFamily,
    /// The server's address, the same for all tests.
    pub address: Option<String>,
    /// Why it was not tested; `None` if it was.
    pub skipped: Option<String>,
    /// Shortest RTT of the ICMP echo requests; `None` without a reply.
    pub icmp_rtt_ms: Option<f64>,
    /// RTT of the TCP handshake.
    pub handshake_rtt_ms: Option<f64>,
    /// The RTT that counts.
    pub rtt_ms: Option<f64>,
    /// Its source.
    pub rtt_from: Option<RttSource>,
    /// The largest packet that arrives, bytes.
    pub mtu_bytes: Option<u32>,
    /// The content delivery network that the address belongs to.
    pub cdn: Option<String>,
    /// What makes the RTT or the address doubtful, a sentence each.
    pub warnings: Vec<String>,
}

/// The tests of one condition.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineCondition {
    /// The condition.
    #[serde(flatten)]
    pub condition: TestCondition,
    /// Its tests, oldest first, without the single latency probes.
    pub runs: Vec<RunFigures>,
    /// Tests that failed.
    pub failed: u32,
    /// The statistics of their goodput.
    pub summary: RepeatSummary,
    /// Lower end of the confidence interval of the median.
    pub median_low_bps: Option<f64>,
    /// Upper end of it.
    pub median_high_bps: Option<f64>,
    /// Its confidence level: at least 0.95 from 6 tests on, less below.
    pub median_confidence: Option<f64>,
    /// The most frequent limit.
    pub limit: Option<Limit>,
    /// In how many of the tests it was found.
    pub limit_runs: u32,
    /// The finding of the test with that limit whose goodput is nearest to the median.
    pub finding: Option<Finding>,
    /// RTT under load, where it was measured.
    pub latency: Option<BaselineLatency>,
}

/// RTT before and during the tests of a condition: medians over its tests.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineLatency {
    /// Tests that measured it.
    pub count: u64,
    /// Median of the median RTTs before the load.
    pub before_ms: Option<f64>,
    /// Median of the median RTTs under load.
    pub during_ms: Option<f64>,
    /// Median of the 95th percentiles under load.
    pub during_p95_ms: Option<f64>,
    /// Median of the rise of the mean RTT.
    pub rise_ms: Option<f64>,
    /// Lower end of the confidence interval of that median.
    pub rise_low_ms: Option<f64>,
    /// Upper end of it.
    pub rise_high_ms: Option<f64>,
    /// The bufferbloat grade of the rise, A+ to F.
    pub grade: Option<String>,
    /// Median responsiveness: TCP handshakes per minute under load.
    pub rpm_tcp: Option<f64>,
}

/// In what two conditions differ.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConditionFactor {
    /// IPv6 against IPv4.
    Family,
    /// Download against upload.
    Direction,
    /// Several streams against one.
    Streams,
}

/// Two conditions that differ in one respect.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineDifference {
    /// In what they differ.
    pub factor: ConditionFactor,
    /// The first condition.
    pub first: TestCondition,
    /// The second one.
    pub second: TestCondition,
    /// The second against the first.
    pub comparison: Comparison,
    /// Whether the difference is significant among all differences of the report (Holm's
    /// correction); `None` with too few tests.
    pub significant: Option<bool>,
    /// Whether it is large enough to act on: significant, and not explained by header sizes.
    pub matters: bool,
}

/// A link whose payload rate is a condition's median goodput.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineLink {
    /// The condition.
    #[serde(flatten)]
    pub condition: TestCondition,
    /// Its median goodput.
    pub median_bps: BitRate,
    /// The link's rate, or the provisioned one.
    pub link_bps: BitRate,
    /// TCP's payload of it.
    pub goodput_bps: BitRate,
    /// What usually has that rate.
    pub means: String,
}

/// Something to do.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineStep {
    /// What to do and why.
    pub text: String,
    /// The same as a command, if there is one.
    pub command: Option<String>,
}

/// A baseline against an earlier one.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineComparison {
    /// The server of the earlier one.
    pub target: String,
    /// Start time of the earlier one: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// The conditions of both.
    pub conditions: Vec<ComparedCondition>,
    /// Conditions of one of them only.
    pub unmatched: u32,
    /// What differs between the settings of the two, a sentence each.
    pub warnings: Vec<String>,
    /// The result in one sentence.
    pub sentence: String,
}

/// A condition in two baselines.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedCondition {
    /// The condition.
    #[serde(flatten)]
    pub condition: TestCondition,
    /// Its goodput now against then.
    pub comparison: Comparison,
    /// Whether that difference is significant among all of the comparison (Holm's correction);
    /// `None` with too few tests.
    pub significant: Option<bool>,
    /// The rise of the RTT under load, where both measured it.
    pub rise: Option<ComparedRise>,
}

/// The rise of the RTT under load in two baselines: means over the tests.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ComparedRise {
    /// The earlier one.
    pub baseline_ms: f64,
    /// The present one.
    pub now_ms: f64,
    /// Lower end of the 95 % confidence interval of the difference (Welch).
    pub low_ms: Option<f64>,
    /// Upper end of it.
    pub high_ms: Option<f64>,
    /// The p-value of Welch's t-test.
    pub p: Option<f64>,
    /// Whether it is significant, as the goodput's.
    pub significant: Option<bool>,
}

/// The choice of a server from a list.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerChoice {
    /// The list.
    pub list: String,
    /// The rate that the server must have.
    pub needed_bps: BitRate,
    /// Where that rate is from, in words.
    pub needed_from: String,
    /// The servers: the chosen one first, then by RTT.
    pub servers: Vec<ServerCandidate>,
}

/// A server of a list.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerCandidate {
    /// Name or address.
    pub host: String,
    /// First and last port.
    pub ports: (u16, u16),
    /// Its rate, if the list has it.
    pub rate_bps: Option<BitRate>,
    /// Site, country, provider.
    pub location: String,
    /// Its RTT; `None` if it was not measured or did not answer.
    pub rtt_ms: Option<f64>,
    /// The source of the RTT.
    pub rtt_from: Option<RttSource>,
    /// Why it was not chosen; `None` if it was.
    pub rejected: Option<String>,
}
