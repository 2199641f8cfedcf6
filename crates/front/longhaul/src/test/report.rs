//! The result of a test: a measurement, its finding, and its notes.

use record::{
    CaptureReport, Comparison, Datagrams, Decided, Direction, Finding, LatencyUnderLoad,
    Measurement, PathReport, TestSpec, ToolResult,
};
use serde::Serialize;
use units::ByteCount;

/// The version of [`TestReport`] in JSON. Version 2 names limits more precisely: what was
/// `congestion` is `congestion-avoidance` or another limit, and `path-rate` and `loss` have
/// become narrower.
const TEST_SCHEMA: &str = "longhaul.test/2";

/// The result of one test; serialised, its report.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct TestResult {
    /// The document.
    #[serde(flatten)]
    pub report: TestReport,
    /// The measurement that the report is about, with every sample.
    #[serde(skip)]
    pub measurement: Measurement,
}

/// A measurement without its samples, and its finding.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct TestReport {
    /// The schema and its version.
    pub schema: &'static str,
    /// The version of Longhaul.
    pub version: &'static str,
    /// The limit of the test.
    #[serde(flatten)]
    pub finding: Finding,
    /// The limit of the reverse direction, in a bidirectional test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse: Option<Finding>,
    /// The start, in seconds since 1970.
    pub started_unix_s: u64,
    /// The peer's name and version.
    pub peer: String,
    /// The request.
    pub spec: TestSpec,
    /// Payload that arrived, in bytes.
    pub received_bytes: ByteCount,
    /// The duration, s.
    pub seconds: f64,
    /// Retransmitted segments; `None` where unknown.
    pub retransmits: Option<u64>,
    /// Of each stream.
    pub streams: Vec<StreamTotal>,
    /// CPU time of the busiest sending thread, as a share of one core.
    pub sender_cpu: Option<f64>,
    /// Time for which it waited for a core, likewise.
    pub sender_core_wait: Option<f64>,
    /// CPU time of the busiest receiving thread, as a share of one core.
    pub receiver_cpu: Option<f64>,
    /// Time for which it waited for a core, likewise.
    pub receiver_core_wait: Option<f64>,
    /// The emulated path.
    pub path: Option<PathReport>,
    /// The RTT under load.
    pub latency: Option<LatencyUnderLoad>,
    /// The comparison with an earlier result.
    pub comparison: Option<Comparison>,
    /// The answer of the second test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decided>,
    /// The capture of its packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureReport>,
    /// The other tool whose result it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolResult>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// One stream without its samples.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct StreamTotal {
    /// iperf3's stream id.
    pub id: u32,
    /// True if the server sent.
    pub reverse: bool,
    /// The sender's congestion control.
    pub congestion: Option<String>,
    /// Payload sent, in bytes.
    pub sent_bytes: u64,
    /// Payload that arrived, in bytes.
    pub received_bytes: u64,
    /// The duration at the sender, s.
    pub sent_seconds: f64,
    /// The duration at the receiver, s.
    pub received_seconds: f64,
    /// Retransmitted segments; `None` where unknown.
    pub retransmits: Option<u64>,
    /// The limit of unsent data, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsent_limit_bytes: Option<u64>,
    /// Of UDP: loss, jitter, reordering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
}

/// The directions of a test: what a plot calls each, and its measurement.
#[must_use]
pub fn directions(measurement: &Measurement) -> Vec<(&'static str, Measurement)> {
    if measurement.spec.direction == Direction::Both {
        let one = |label, reverse| (label, measurement.one_direction(reverse));
        vec![one("sent", false), one("received", true)]
    } else {
        vec![("goodput", measurement.clone())]
    }
}

impl TestResult {
    /// Explains a measurement.
    #[must_use]
    pub fn new(measurement: Measurement) -> Self {
        TestResult { report: TestReport::new(&measurement), measurement }
    }

    /// Adds the answer of the second test, if it `ran` also to the measurement: with a train's
    /// answer the finding is another one.
    pub(super) fn decide(&mut self, decided: Decided, ran: bool) {
        let (comparison, capture) = (self.report.comparison.take(), self.report.capture.take());
        self.measurement.decided = ran.then(|| decided.clone());
        let report = TestReport::new(&self.measurement);
        self.report = TestReport { comparison, capture, decision: Some(decided), ..report };
    }
}

impl TestReport {
    /// Explains a measurement.
    #[must_use]
    pub fn new(measurement: &Measurement) -> Self {
        let is_both = measurement.spec.direction == Direction::Both;
        let retransmits = measurement.streams.iter().map(|stream| stream.retransmits);
        TestReport {
            schema: TEST_SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            finding: diagnose::explain(measurement),
            reverse: is_both.then(|| diagnose::explain(&measurement.one_direction(true))),
            started_unix_s: measurement.started_unix_s,
            peer: measurement.peer.clone(),
            spec: measurement.spec.clone(),
            received_bytes: measurement.received(),
            seconds: measurement.seconds(),
            retransmits: retransmits.sum(),
            streams: measurement.streams.iter().map(StreamTotal::new).collect(),
            sender_cpu: measurement.sender_cpu,
            sender_core_wait: measurement.sender_core_wait,
            receiver_cpu: measurement.receiver_cpu,
            receiver_core_wait: measurement.receiver_core_wait,
            path: measurement.path.clone(),
            latency: measurement.latency.clone(),
            comparison: None,
            decision: None,
            capture: None,
            tool: measurement.tool.clone(),
            notes: measurement.notes.clone(),
        }
    }
}

impl StreamTotal {
    fn new(stream: &record::Stream) -> Self {
        StreamTotal {
            id: stream.id,
            reverse: stream.reverse,
            congestion: stream.congestion.clone(),
            sent_bytes: stream.sent_bytes,
            received_bytes: stream.received_bytes,
            sent_seconds: stream.sent_seconds,
            received_seconds: stream.received_seconds,
            retransmits: stream.retransmits,
            unsent_limit_bytes: stream.unsent_limit_bytes,
            datagrams: stream.datagrams.clone(),
        }
    }
}
