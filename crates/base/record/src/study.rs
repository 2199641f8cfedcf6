//! Studies: what a plan comes to, and the figures of its runs.

use crate::{LevelComparison, Limit, PublishedValue, StudyPlot, StudySource, StudyTestbed};
use serde::{Deserialize, Serialize};

/// The version of [`StudyPlanReport`] in JSON.
pub const STUDY_PLAN_SCHEMA: &str = "longhaul.study-plan/1";

/// A plan, checked: what would run, and for how long.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyPlanReport {
    /// [`STUDY_PLAN_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that checked it.
    pub version: String,
    /// The question.
    pub question: String,
    /// What varies, in the order of the plan.
    pub factors: Vec<StudyFactor>,
    /// What is fixed: keys of the path, and settings of the test.
    pub fixed: Vec<StudyFactor>,
    /// The number of combinations of the factors' values.
    pub cells: usize,
    /// Tests of each cell.
    pub repeats: u32,
    /// Cells times repeats.
    pub tests: usize,
    /// The order of the tests: `random`, `blocked` or `plan`.
    pub order: String,
    /// Of the draws of the order and of the paths.
    pub seed: u64,
    /// When tests are added to a cell.
    #[serde(default)]
    pub until: Option<StudyUntil>,
    /// About how long all tests take, in seconds, without those that are added.
    pub estimated_s: f64,
    /// Sysctls that are set where a lab has them.
    #[serde(default)]
    pub optional: Vec<StudyFactor>,
    /// The programs that its tests run.
    #[serde(default)]
    pub programs: Vec<StudyProgram>,
    /// What its page shows; empty: what its factors suggest.
    #[serde(default)]
    pub plots: Vec<StudyPlot>,
    /// The real hosts that begin the connections; empty: it runs in labs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<String>,
    /// The real hosts that accept them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// The document whose experiment it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<StudySource>,
    /// How it would run, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<PlannedRun>,
}

/// Until when tests are added to a cell.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StudyUntil {
    /// Half the 95 % confidence interval of its mean goodput, over the mean.
    pub within: f64,
    /// Tests of it in all.
    pub most: u32,
}

/// A program that transfers data in the place of longhaul, with placeholders for what a test
/// fills in.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyProgram {
    /// Its name in the plan.
    pub name: String,
    /// What runs at the server, as a shell would take it; `None`: nothing.
    pub server: Option<String>,
    /// What runs at the client.
    pub client: String,
    /// How the client's output is read.
    pub output: String,
    /// The text files in its directory.
    #[serde(default)]
    pub files: Vec<StudyProgramFile>,
    /// Whether it keeps the privileges of the user who runs the study.
    pub privileged: bool,
    /// Whether it comes with longhaul.
    pub built_in: bool,
}

/// A setting with its values.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyFactor {
    /// Its name in the plan.
    pub name: String,
    /// Its values as text, as in the plan or as a range gives them.
    pub values: Vec<String>,
    /// The same as numbers in `unit`; empty unless all are numbers of one unit.
    pub numbers: Vec<f64>,
    /// `bytes`, `bit/s`, `s`, `ratio`, `BDP`; empty for a count or for words.
    pub unit: String,
    /// Whether it varies together with the one before it, value by value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paired: bool,
}

/// A text file of a program.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyProgramFile {
    /// Its name in the program's directory.
    pub name: String,
    /// What is in it, with placeholders.
    pub text: String,
}

/// How a run of a study ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// The lab emulated the plan's path throughout.
    Valid,
    /// It was measured, but the lab did not emulate the plan's path.
    Invalid,
    /// There is no result.
    Failed,
}

impl RunStatus {
    /// Every status.
    pub const ALL: [RunStatus; 3] = [RunStatus::Valid, RunStatus::Invalid, RunStatus::Failed];

    /// The name in JSON, in the store and in exports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RunStatus::Valid => "valid",
            RunStatus::Invalid => "invalid",
            RunStatus::Failed => "failed",
        }
    }
}

/// One run of a study: a cell, measured once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyRun {
    /// The cell's number, from 0.
    pub cell: usize,
    /// Which of the cell's repeats, from 1.
    pub repeat: u32,
    /// How it ended.
    pub status: RunStatus,
    /// How often it was tried.
    pub attempts: u32,
    /// Seconds since 1970-01-01 UTC. Virtual time begins at 0, and so does every simulated run.
    pub started_unix_s: u64,
    /// Time that it took in all, with every attempt, in seconds; of a simulated run, virtual time.
    pub took_s: f64,
    /// Of that, the last attempt's traffic, from the first packet of a flow's handshake to the
    /// last one's result, in seconds.
    pub test_s: f64,
    /// Why it is not valid; empty if it is.
    pub reason: String,
    /// How precisely the flows of several real hosts began together; `None` with one client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_skew: Option<StartSkew>,
    /// The figures of its flows, in the order of the plan.
    pub flows: Vec<FlowFigures>,
}

/// How precisely flows that were to begin together did.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StartSkew {
    /// How much later the data of the last client's flow began than that of the first one's, in
    /// ms: of several flows the most.
    pub ms: f64,
    /// The most by which that can be wrong, from comparing the hosts' clocks, in ms.
    pub uncertainty_ms: f64,
}

/// A real host of a study.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyHost {
    /// As the plan names it.
    pub name: String,
    /// `client` or `server`.
    pub role: String,
    /// Its version of longhaul; `None` for a server that ran already.
    pub version: Option<String>,
    /// `uname -r`.
    pub kernel: Option<String>,
    /// CPU cores.
    pub cores: Option<u32>,
    /// By how much its wall clock is ahead of that of the host that ran the study, in ms.
    pub clock_offset_ms: Option<f64>,
    /// The most by which that can be wrong, in ms: half the shortest round trip over ssh.
    pub clock_uncertainty_ms: Option<f64>,
}

impl StudyRun {
    /// Goodput of all flows: of several, what they received in all over the time from the
    /// beginning of the first to the end of the last one.
    #[must_use]
    pub fn throughput_bps(&self) -> f64 {
        if let [only] = self.flows.as_slice() {
            return only.throughput_bps;
        }
        let bits: f64 = self.flows.iter().map(|flow| flow.throughput_bps * flow.seconds).sum();
        let end = self.flows.iter().map(|flow| flow.began_s + flow.seconds).fold(0.0, f64::max);
        if end > 0.0 { bits / end } else { 0.0 }
    }

    /// Share of the datagrams of all flows that were lost; `None` unless every flow counts them.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let sent = |flow: &FlowFigures| flow.sent_bps * flow.seconds;
        let all: f64 = self.flows.iter().map(sent).sum();
        let lost = |flow: &FlowFigures| Some(flow.loss? * sent(flow));
        let lost = self.flows.iter().map(lost).sum::<Option<f64>>()?;
        (all > 0.0).then(|| lost / all)
    }

    /// The figures of a flow.
    #[must_use]
    pub fn flow(&self, name: &str) -> Option<&FlowFigures> {
        self.flows.iter().find(|flow| flow.name == name)
    }
}

/// The figures of one flow of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowFigures {
    /// Its name in the plan.
    pub name: String,
    /// When its measured data began, after any warm-up, since the first flow's, in seconds.
    pub began_s: f64,
    /// How long it received, in seconds.
    pub seconds: f64,
    /// Bytes received by the application over that time, in bit/s.
    pub throughput_bps: f64,
    /// The same in the steady state; `None` for UDP.
    pub steady_bps: Option<f64>,
    /// Bytes written by the application over the time of sending, in bit/s.
    pub sent_bps: f64,
    /// Retransmitted segments.
    pub retransmits: Option<u64>,
    /// The lowest RTT, in ms.
    pub min_rtt_ms: Option<f64>,
    /// The mean smoothed RTT, in ms.
    pub mean_rtt_ms: Option<f64>,
    /// The highest window that the receiver advertised to a stream, in bytes.
    pub window_bytes: Option<u64>,
    /// Share of datagrams lost.
    pub loss: Option<f64>,
    /// Datagrams received after one that was sent later.
    pub out_of_order: Option<u64>,
    /// Interarrival jitter (RFC 3550), in ms.
    pub jitter_ms: Option<f64>,
    /// The finding's limit.
    pub limit: Option<Limit>,
    /// Its probability.
    pub probability: Option<f64>,
    /// The slow-start threshold after a loss or an ECN mark as a share of the congestion window
    /// before it, in the median over those after slow start: the multiplicative decrease factor (0.5 of
    /// Reno, RFC 5681; 0.7 of CUBIC, RFC 9438). `None` of UDP, without such losses, and of
    /// algorithms without a threshold.
    pub decrease_factor: Option<f64>,
    /// UDT: full acknowledgements per data packet that was acknowledged.
    #[serde(default)]
    pub acks_per_packet: Option<f64>,
    /// UDT: light acknowledgements likewise.
    #[serde(default)]
    pub light_acks_per_packet: Option<f64>,
    /// UDT: NAKs that the sender received.
    #[serde(default)]
    pub naks: Option<u64>,
    /// UDT's own control: times between two samples without a NAK in which the sending rate rose.
    #[serde(default)]
    pub increases: Option<u64>,
    /// Of those, the ones in which it rose as alpha(x) has it (Gu, Grossman 2007).
    #[serde(default)]
    pub increases_by_alpha: Option<u64>,
    /// What the rate rose by in all of them, over what alpha(x) is in each SYN of that time.
    #[serde(default)]
    pub growth_over_alpha: Option<f64>,
    /// The rate at which the file that is sent was read, in bit/s; `None` if it is not a file.
    #[serde(default)]
    pub disk_bps: Option<f64>,
    /// The same in each whole second since it began; empty likewise.
    #[serde(default)]
    pub disk_series_bps: Vec<f64>,
    /// UDT: NAKs received in each whole second since it began; empty without any.
    #[serde(default)]
    pub nak_series: Vec<u64>,
    /// Goodput in each whole second since it began, in bit/s.
    pub series_bps: Vec<f64>,
}

/// The version of [`StudyReport`] in JSON.
pub const STUDY_SCHEMA: &str = "longhaul.study/1";

/// The results of a study, finished or not.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyReport {
    /// [`STUDY_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that reports.
    pub version: String,
    /// The study's name.
    pub name: String,
    /// The question.
    pub question: String,
    /// The answer, in a few sentences.
    pub answer: Vec<String>,
    /// Whether it is the short form.
    pub quick: bool,
    /// Runs of the plan.
    pub runs: usize,
    /// Runs that are stored, whatever their status.
    pub done: usize,
    /// Of those, the valid ones.
    pub valid: usize,
    /// Of those, the invalid ones, which are in no figure.
    pub invalid: usize,
    /// Of those, the failed ones.
    pub failed: usize,
    /// Time that the runs took in all, in seconds.
    pub took_s: f64,
    /// Of that, the traffic of the runs' last attempts, handshakes and results included, in
    /// seconds; the rest is the runner's overhead.
    pub test_s: f64,
    /// Optional sysctls that the labs do not have, so that they were not set: those of the
    /// whole machine, and those that are read-only in a network namespace.
    #[serde(default)]
    pub not_set: Vec<String>,
    /// Where it ran. Files of earlier versions have none: `hosts` tells labs from real hosts there.
    #[serde(default)]
    pub testbed: StudyTestbed,
    /// The real hosts that it ran between; empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<StudyHost>,
    /// The largest start skew of its valid runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_skew: Option<StartSkew>,
    /// What a built-in study checks against published results; empty otherwise.
    pub trends: Vec<StudyTrend>,
    /// The plans, with the figures of their cells.
    pub parts: Vec<StudyPart>,
}

/// A published or expected result, beside the study's own.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyTrend {
    /// Its name, as for `--only`.
    pub name: String,
    /// The document's statement, in words and figures; `None`: it makes none.
    pub published: Option<String>,
    /// The values of `published`, and where the document has them.
    #[serde(default)]
    pub cited: Vec<PublishedValue>,
    /// What is expected beyond that; `None`: nothing.
    #[serde(default)]
    pub expected: Option<String>,
    /// The source of `expected`: another publication, an inference, an assumption.
    #[serde(default)]
    pub expected_by: Option<String>,
    /// What this study measured; `None`: its runs are not done or not valid.
    pub measured: Option<String>,
    /// Whether it holds; `None` likewise.
    pub holds: Option<bool>,
    /// Of one that does not hold, why a lab need not show it: then it is not reproduced, which is
    /// no failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_reproduced: Option<String>,
}

/// One plan of a study.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyPart {
    /// Empty in a study of one plan.
    pub name: String,
    /// Its plan.
    pub plan: StudyPlanReport,
    /// Its cells, in the order of the plan.
    pub cells: Vec<StudyCell>,
    /// Each pair of levels of each factor: of a factor the most important pair first.
    #[serde(default)]
    pub comparisons: Vec<LevelComparison>,
    /// Further pairs, with smaller ratios than those of their factor in `comparisons`.
    #[serde(default)]
    pub more_comparisons: u64,
}

impl StudyPart {
    /// The values of a cell, such as `window=64KiB streams=2`.
    #[must_use]
    pub fn label(&self, cell: &StudyCell) -> String {
        let pairs = self.values(cell).map(|(factor, value)| format!("{}={value}", factor.name));
        pairs.collect::<Vec<_>>().join(" ")
    }

    /// The values that tell a cell from others: of paired factors the first one's.
    pub fn values<'a>(
        &'a self,
        cell: &'a StudyCell,
    ) -> impl Iterator<Item = (&'a StudyFactor, &'a str)> {
        let pairs = self.plan.factors.iter().zip(&cell.values);
        pairs.filter(|(factor, _)| !factor.paired).map(|(factor, value)| (factor, value.as_str()))
    }
}

/// The figures of one cell.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyCell {
    /// Its number, from 0.
    pub cell: usize,
    /// The values of the factors, in the order of the plan.
    pub values: Vec<String>,
    /// Valid runs.
    pub valid: u32,
    /// Runs that are stored.
    pub done: u32,
    /// Mean goodput of the valid runs, over all flows; `None` without any.
    pub throughput_bps: Option<f64>,
    /// Lower end of the mean's 95 % confidence interval (Student's t); `None` below two runs.
    pub low_bps: Option<f64>,
    /// Its upper end.
    pub high_bps: Option<f64>,
    /// What the equations predict; `None` for several flows, or where none applies.
    pub predicted_bps: Option<f64>,
    /// The equation, with its numbers.
    pub equation: Option<String>,
    /// The limit that most valid runs name.
    pub limit: Option<Limit>,
    /// Jain's fairness index over the flows; `None` for a single one.
    pub fairness: Option<f64>,
    /// Streams of all flows and clients together.
    #[serde(default)]
    pub streams: u32,
    /// The receive window asked for, of each stream; `None`: none is set.
    #[serde(default)]
    pub window_bytes: Option<u64>,
    /// Buffer at the hosts: the sum of the windows of all streams; `None` likewise.
    #[serde(default)]
    pub host_memory_bytes: Option<u64>,
    /// Buffer at the router: the capacity of the queue in the direction of the data; `None` between
    /// real hosts.
    #[serde(default)]
    pub router_memory_bytes: Option<u64>,
    /// Why runs were not valid, each reason once.
    pub reasons: Vec<String>,
}

/// How a plan would run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// In virtual time: how long it takes is not known before.
    pub is_simulated: bool,
    /// `None`: every cell.
    pub shard: Option<PlannedShard>,
}

/// The cells of a plan that belong to a shard.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedShard {
    /// `2/8`.
    pub name: String,
    /// Their labels, in the order of the plan.
    pub cells: Vec<String>,
}
