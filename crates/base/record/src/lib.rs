//! The documents that the crates exchange and store as JSON, first of all the
//! [`Measurement`].
//!
//! Traffic endpoints write a [`Measurement`]; diagnosis, storage and reports read it,
//! also from files of earlier versions. It holds the request, the hosts, the path, the
//! kernel's samples of every stream and, for a lab, whether the emulation was valid.
//! Pure: no I/O, no clock.
//!
//! JSON keys name their unit (`_bps`, `_ms`, `_us`, `_bytes`, `_s`); an unavailable
//! value is `null`, never a guess.

mod activity;
mod baseline;
mod boost_plan;
mod boost_status;
mod boost_verify;
mod capture_point;
mod caveat;
mod check;
mod closed_loop;
mod comparison;
mod counter_docs;
mod datagrams;
mod decided;
mod find_rate;
mod finding;
mod interval;
mod latency;
mod level_comparison;
mod live_capture;
mod millis;
mod next_command;
pub mod nic;
mod path;
mod probe;
mod remedy;
mod route_map;
mod route_metrics;
mod sample;
mod segment_sizes;
mod shell;
mod sim;
mod sim_advice;
mod sim_comparison;
mod sim_trace;
mod spec;
mod study;
mod study_comparison;
mod study_plot;
mod study_source;
mod study_testbed;
mod tool_result;
mod tuned_route;
mod tuned_sysctl;
mod tuning;
mod verified;
mod watch;

pub use activity::Activity;
pub use baseline::{
    AddressFamily, ArchitectureNote, BASELINE_SCHEMA, BaselineComparison, BaselineCondition,
    BaselineDifference, BaselineLatency, BaselineLink, BaselinePath, BaselineReport, BaselineStep,
    ComparedCondition, ComparedRise, ConditionFactor, RttSource, ServerCandidate, ServerChoice,
    TestCondition,
};
pub use boost_plan::{
    BOOST_PLAN_SCHEMA, BOOST_WORTH, BoostKind, BoostObject, BoostOption, BoostPath, BoostPlan,
    BoostProgram, BoostReason, BoostSendBuffer, BoostSource, BoostTransfer, PredictionInterval,
    TrafficShares,
};
pub use boost_status::{
    BOOST_STATUS_SCHEMA, BoostStatus, BoxRole, BoxStatus, NotBoostedCount, SilentBox,
};
pub use boost_verify::{
    BOOST_VERIFY_SCHEMA, BoostGain, BoostMeasure, BoostRun, BoostVerdict, BoostVerification,
    BoostWay, BoostWaySummary, CubicHarm,
};
pub use capture_point::CapturePoint;
pub use caveat::Caveat;
pub use check::{Area, Check, CheckCommand, Verdict};
pub use closed_loop::{LOOP_SCHEMA, LoopReport, PlanItem};
pub use comparison::{
    Comparison, LimitCount, REPEAT_SCHEMA, RepeatReport, RepeatSummary, RunFigures,
};
pub use counter_docs::{COUNTERS, CounterDoc, counter_doc};
pub use datagrams::{Datagrams, Fragmentation, LossBurst, TimedDatagram};
pub use decided::Decided;
pub use find_rate::{FIND_RATE_SCHEMA, FindRateReport, RateTry, TryFailure};
pub use finding::{Confidence, Finding, Limit, Probability, RateEstimate, Segment, Shares, Steady};
pub use interval::{DatagramInterval, Interval};
pub use latency::{LatencyPhase, LatencyProbe, LatencyUnderLoad};
pub use level_comparison::LevelComparison;
pub use live_capture::{
    CAPTURE_SCHEMA, CaptureReport, INTERFACES_SCHEMA, InterfaceTraffic, InterfacesReport,
};
pub use next_command::{Action, AlsoShows, CommandHost, NextCommand, path_flags};
pub use path::{
    Achieved, Drops, Lateness, PathChange, PathDriver, PathReport, RequestedDirection,
    RequestedPath,
};
pub use probe::{
    Hop, PING_SCHEMA, Ping, PingError, PingReport, RoundTrips, TRACE_SCHEMA, TraceReport,
};
pub use remedy::{Remedy, RemedyCommand, RemedyPlace};
pub use route_map::{HopPosition, PositionSource, RouteMap, RoutePoint};
pub use route_metrics::{RouteMetrics, RoutePrefix, RoutePrefixError};
pub use sample::{ReceiverSample, Sample};
pub use segment_sizes::SegmentSizes;
pub use shell::{command_line, shell_word};
pub use sim::{SIM_SCHEMA, SenderLimit, SimBottleneck, SimEnd, SimFlow, SimReport};
pub use sim_advice::{AdvisedControl, RunRange, SIM_ADVICE_SCHEMA, SimAdvice};
pub use sim_comparison::{
    SIM_COMPARISON_SCHEMA, SimAgreement, SimComparison, SimRunFigures, SimVerdict,
};
pub use sim_trace::{SenderState, SimMoment};
pub use spec::{EndCondition, TestSpec};
pub use study::{
    FlowFigures, PlannedRun, PlannedShard, RunStatus, STUDY_PLAN_SCHEMA, STUDY_SCHEMA, StartSkew,
    StudyCell, StudyFactor, StudyHost, StudyPart, StudyPlanReport, StudyProgram, StudyProgramFile,
    StudyReport, StudyRun, StudyTrend, StudyUntil,
};
pub use study_comparison::{
    ComparedCell, DifferingSetting, STUDY_COMPARISON_SCHEMA, StudyComparison,
};
pub use study_plot::{Figure, PlotKind, Quantity, Reference, StudyPlot};
pub use study_source::{AssumedSettings, PublishedSetting, PublishedValue, StudySource, places};
pub use study_testbed::StudyTestbed;
pub use tool_result::{ToolResult, Unavailable};
pub use tuned_route::{
    AppliedRoute, PlannedMetric, RevertedRoute, RouteChange, RouteMetric, RoutePrediction,
    SkippedMetric, TUNE_ROUTE_APPLY_SCHEMA, TUNE_ROUTE_PLAN_SCHEMA, TuneRouteApplied,
    TuneRoutePlan, WrittenRoute,
};
pub use tuned_sysctl::{TUNED_SYSCTLS, is_tuned_sysctl, is_tuned_value, tuned_sysctls};
pub use tuning::{
    AppliedFile, AppliedPlan, AppliedSetting, MemoryCost, OtherNetwork, Outcome, PlannedSetting,
    RevertOutcome, RevertedSetting, SettingStatus, SkippedSetting, TUNE_APPLY_SCHEMA,
    TUNE_PLAN_SCHEMA, TUNE_ROLLBACK_SCHEMA, TUNE_STATUS_SCHEMA, TuneApplied, TunePlan,
    TuneRollback, TuneStatus, Written,
};
pub use verified::{
    FarEndChange, StepDirection, StepVerdict, VERIFY_SCHEMA, VerifyGoal, VerifyReport, VerifyStep,
};
pub use watch::{
    BbrView, ConnectionId, ConnectionSample, CounterChange, RECORDING_SCHEMA, RecordingHead,
    RecordingLine, WATCH_SCHEMA, WatchReport, WatchedConnection,
};

use serde::{Deserialize, Serialize};
use units::ByteCount;

/// The schema id of a stored [`Measurement`]; its number grows when a reader of the
/// older version would misread a file. Version 2 added UDP and tests in both
/// directions; a file of version 1 reads as TCP in one direction. Version 3 samples the
/// start of a test more often: samples count by their times, not by their number.
pub const MEASUREMENT_SCHEMA: &str = "longhaul.measurement/3";

/// The direction of the test data, seen from the client.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The client sends.
    #[default]
    Forward,
    /// The server sends (`-R`).
    Reverse,
    /// Both at the same time (`--bidir`), each over its own streams.
    Both,
}

/// The transport protocol of the test data.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// TCP: connections with congestion control.
    #[default]
    Tcp,
    /// UDP: datagrams at a fixed rate (`-u`).
    Udp,
    /// UDT: connections with congestion control over UDP (`--udt`).
    Udt,
}

/// The measuring host at the time of the test.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// `uname -r`.
    pub kernel: String,
    /// CPU cores available to this process.
    pub cores: u32,
    /// `net.ipv4.tcp_rmem`: minimum, initial and maximum receive buffer in bytes.
    pub tcp_rmem: Option<[u64; 3]>,
    /// `net.ipv4.tcp_wmem`: minimum, initial and maximum send buffer in bytes.
    pub tcp_wmem: Option<[u64; 3]>,
    /// CPU utilisation of the host before the test, 0 to 1.
    pub busy_before: Option<f64>,
}

/// One TCP connection or UDP stream of a test.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// iperf3's stream id (1, 3, 4, …).
    pub id: u32,
    /// Whether the server sends on it.
    #[serde(default)]
    pub reverse: bool,
    /// Whether longhaul only watched it: the connection of another application, which
    /// may have nothing more to send; a test's own sender always has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watched: bool,
    /// Where its packets were captured; `None` if the samples are the hosts' own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured: Option<CapturePoint>,
    /// What the source of its figures cannot show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Caveat>,
    /// When its applications had nothing to send; `None` if the source does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// Sizes of segments that arrived and that did not; `None` where nothing was lost repeatedly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_sizes: Option<SegmentSizes>,
    /// The sender's congestion control, if known.
    pub congestion: Option<String>,
    /// Bytes written to the socket by the sender.
    pub sent_bytes: u64,
    /// Bytes read by the receiving application.
    pub received_bytes: u64,
    /// Seconds in which the sender sent them.
    pub sent_seconds: f64,
    /// Seconds in which the receiver received them.
    pub received_seconds: f64,
    /// Retransmitted segments, by the sender's kernel.
    pub retransmits: Option<u64>,
    /// The most written and unsent bytes that the test allowed at last; `None` if it left that to
    /// the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsent_limit_bytes: Option<u64>,
    /// Datagrams sent, received and lost; `None` for TCP.
    #[serde(default)]
    pub datagrams: Option<Datagrams>,
    /// When the datagrams of a train were sent and arrived, in order of arrival; empty in other
    /// tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub train: Vec<TimedDatagram>,
    /// The sending kernel's samples, oldest first; empty if the sender does not share
    /// them (a real iperf3).
    pub sender: Vec<Sample>,
    /// The receiving kernel's samples, oldest first; empty likewise.
    pub receiver: Vec<ReceiverSample>,
}

/// One test, with everything that a diagnosis needs.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// [`MEASUREMENT_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that measured.
    pub version: String,
    /// Start time: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// The request.
    pub spec: TestSpec,
    /// The client's host.
    pub host: HostFacts,
    /// The peer's name and version: `longhaul 0.1.0`, or `iperf3` if it sends none.
    pub peer: String,
    /// The path, if a lab emulated it.
    pub path: Option<PathReport>,
    /// The streams, by id.
    pub streams: Vec<Stream>,
    /// CPU time of the busiest sending thread, as a share of one core.
    pub sender_cpu: Option<f64>,
    /// Time that this thread was runnable and waited for a core, likewise.
    #[serde(default)]
    pub sender_core_wait: Option<f64>,
    /// CPU time of the busiest receiving thread, as a share of one core.
    pub receiver_cpu: Option<f64>,
    /// Time that this thread was runnable and waited for a core, likewise.
    #[serde(default)]
    pub receiver_core_wait: Option<f64>,
    /// Notes for the user: a clamped window, a busy host, an interruption.
    pub notes: Vec<String>,
    /// RTTs before, during and after it, if requested.
    #[serde(default)]
    pub latency: Option<LatencyUnderLoad>,
    /// What a second test showed (`test --decide`), if one ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decided>,
    /// The other tool whose result it is; `None` for a test of longhaul's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolResult>,
}

impl Default for Measurement {
    /// A test without streams, of which nothing is known.
    fn default() -> Self {
        Measurement {
            schema: MEASUREMENT_SCHEMA.to_owned(),
            version: String::new(),
            started_unix_s: 0,
            spec: TestSpec::default(),
            host: HostFacts::default(),
            peer: String::new(),
            path: None,
            streams: Vec::new(),
            sender_cpu: None,
            sender_core_wait: None,
            receiver_cpu: None,
            receiver_core_wait: None,
            notes: Vec::new(),
            latency: None,
            decided: None,
            tool: None,
        }
    }
}

impl Measurement {
    /// CPU demand of the busiest sending thread: its CPU time and its wait for a core,
    /// as a share of one core.
    #[must_use]
    pub fn sender_core(&self) -> Option<f64> {
        Some(self.sender_cpu? + self.sender_core_wait.unwrap_or(0.0))
    }

    /// The same for the receiving threads.
    #[must_use]
    pub fn receiver_core(&self) -> Option<f64> {
        Some(self.receiver_cpu? + self.receiver_core_wait.unwrap_or(0.0))
    }

    /// Bytes received over all streams.
    #[must_use]
    pub fn received(&self) -> ByteCount {
        self.streams
            .iter()
            .map(|stream| ByteCount::from_bytes(stream.received_bytes))
            .fold(ByteCount::ZERO, ByteCount::plus)
    }

    /// One direction as a measurement of its own: a test in both directions is
    /// diagnosed one direction at a time.
    #[must_use]
    pub fn one_direction(&self, reverse: bool) -> Self {
        let mut part = self.clone();
        part.streams.retain(|stream| stream.reverse == reverse);
        if self.spec.direction == Direction::Both {
            part.spec.direction = if reverse { Direction::Reverse } else { Direction::Forward };
            part.spec.is_part_of_both = true;
        }
        part
    }

    /// The most unsent bytes that the test allowed at last; `None` where it left that of a stream
    /// to the kernel.
    #[must_use]
    pub fn unsent_limit(&self) -> Option<ByteCount> {
        let limits = self.streams.iter().map(|stream| stream.unsent_limit_bytes);
        limits.collect::<Option<Vec<u64>>>()?.into_iter().max().map(ByteCount::from_bytes)
    }

    /// The longest receiving time of a stream, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.streams.iter().map(|s| s.received_seconds).fold(0.0, f64::max)
    }

    /// Whether another tool measured it and did not report that figure, or the kernel did not.
    #[must_use]
    pub fn lacks(&self, figure: Unavailable) -> bool {
        self.tool.as_ref().is_some_and(|tool| tool.unavailable.contains(&figure))
            || figure == Unavailable::SenderTimers
                && self.streams.iter().any(|stream| sample::have_no_timers(&stream.sender))
    }

    /// Whether every stream has samples of the sender's `TCP_INFO` timers.
    #[must_use]
    pub fn has_sender_timers(&self) -> bool {
        !self.lacks(Unavailable::SenderTimers)
            && !self.streams.is_empty()
            && self.streams.iter().all(|s| s.sender.len() >= 2)
    }
}
