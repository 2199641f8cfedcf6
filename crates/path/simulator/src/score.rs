//! Findings beside the truth: how often they are right, and how well their probabilities
//! are calibrated.

mod calibration;
mod confusion;
mod reliability_diagram;

pub use calibration::{Calibration, bootstrap, errors};
pub use confusion::{Confusion, agreement, labels, segments};
pub use reliability_diagram::reliability_diagram;

use crate::{Scenario, TrueSegment, Truth};
use record::{Confidence, Finding, Limit};

/// What was true of a run, and what the diagnosis found.
#[derive(Debug, Clone)]
pub struct Scored {
    /// The family of the scenario.
    pub family: &'static str,
    /// The name of its congestion control.
    pub congestion: &'static str,
    /// It has several streams.
    pub several: bool,
    /// The server sends.
    pub reverse: bool,
    /// A buffer has Linux's default size.
    pub default_buffers: bool,
    /// The limit that cost the most.
    pub truth: Limit,
    /// The truth's share of the cost: near a half, two limits cost about the same.
    pub truth_share: f64,
    /// The limit of the finding.
    pub found: Limit,
    /// The finding's confidence is "sure".
    pub sure: bool,
    /// The probabilities of the finding, the most probable first.
    pub posterior: Vec<(Limit, f64)>,
    /// The true segments.
    pub segments: Vec<TrueSegment>,
    /// A boundary is found within this, s.
    pub near_s: f64,
    /// The segments of the finding.
    pub found_segments: Vec<TrueSegment>,
    /// The finding in words.
    pub sentence: String,
    /// What the samples of TCP_INFO of the same run give, where a capture was explained.
    pub from_tcp_info: Option<Limit>,
}

/// Counts of boundaries between segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Boundaries {
    /// True boundaries.
    pub true_ones: usize,
    /// Of the true ones, those that are reported.
    pub found: usize,
    /// Boundaries of the findings.
    pub reported: usize,
    /// Of those reported, the true ones.
    pub right: usize,
    /// The same of the true ones between segments that both last [`LASTING_S`].
    pub lasting: usize,
    /// Of these, those that are reported.
    pub lasting_found: usize,
}

/// A segment that is longer than this is seen by whoever looks at the graph, s.
pub const LASTING_S: f64 = 1.0;

impl Scored {
    /// A finding beside the truth of its run; `None`: nothing was explained.
    #[must_use]
    pub fn new(scenario: &Scenario, truth: &Truth, finding: Option<Finding>) -> Self {
        let found = finding.as_ref().and_then(|finding| finding.limit).unwrap_or(Limit::Unknown);
        let confidence = finding.as_ref().and_then(|finding| finding.confidence);
        let segments = finding.iter().flat_map(|finding| &finding.segments);
        let found_segments =
            segments.map(|s| TrueSegment { from_s: s.from_s, to_s: s.to_s, limit: s.limit });
        let found_segments = found_segments.collect();
        let (posterior, sentence) = finding.map_or((Vec::new(), String::new()), |finding| {
            let entries = finding.posterior.iter().map(|entry| (entry.limit, entry.probability));
            (entries.collect(), finding.sentence)
        });
        Scored {
            family: scenario.family,
            congestion: scenario.congestion.name(),
            several: scenario.streams > 1,
            reverse: scenario.reverse,
            default_buffers: scenario.has_default_buffers(),
            truth: truth.limit,
            truth_share: truth.shares.first().map_or(0.0, |(_, share)| *share),
            found,
            sure: confidence == Some(Confidence::Sure),
            posterior,
            segments: truth.segments.clone(),
            near_s: truth.near_s,
            found_segments,
            sentence,
            from_tcp_info: None,
        }
    }

    /// True if the finding names the true limit.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.found == self.truth
    }

    /// The share of the time for which the segments name the true limit.
    #[must_use]
    pub fn time_right(&self) -> f64 {
        let mut right = 0.0;
        for (one, other) in self
            .segments
            .iter()
            .flat_map(|one| self.found_segments.iter().map(move |two| (one, two)))
        {
            if one.limit == other.limit {
                right += (one.to_s.min(other.to_s) - one.from_s.max(other.from_s)).max(0.0);
            }
        }
        right / self.segments.last().map_or(1.0, |last| last.to_s).max(0.1)
    }

    /// How many of the true boundaries the finding has, and how many of its own are true.
    #[must_use]
    pub fn boundaries(&self) -> Boundaries {
        let edges = |segments: &[TrueSegment]| -> Vec<f64> {
            segments.iter().skip(1).map(|segment| segment.from_s).collect()
        };
        let (truth, found) = (edges(&self.segments), edges(&self.found_segments));
        let near = |at: &f64, all: &[f64]| all.iter().any(|x| (at - x).abs() <= self.near_s);
        let length = |segment: &TrueSegment| segment.to_s - segment.from_s;
        let lasts = |pair: &&[TrueSegment]| pair.iter().all(|one| length(one) >= LASTING_S);
        let lasting: Vec<f64> =
            self.segments.windows(2).filter(lasts).map(|pair| pair[1].from_s).collect();
        Boundaries {
            lasting: lasting.len(),
            lasting_found: lasting.iter().filter(|at| near(at, &found)).count(),
            true_ones: truth.len(),
            found: truth.iter().filter(|at| near(at, &found)).count(),
            reported: found.len(),
            right: found.iter().filter(|at| near(at, &truth)).count(),
        }
    }

    /// The truth in words, beside what was simulated.
    #[must_use]
    pub fn label(&self, scenario: &str) -> String {
        let (truth, share) = (self.truth.name(), self.truth_share * 100.0);
        let segments = self.segments.iter();
        let segments = segments.map(|s| format!("{:.1} s {}", s.from_s, s.limit.name()));
        let segments = segments.collect::<Vec<_>>().join(", ");
        format!("{truth:<20} {share:3.0} %  {scenario}\n    from {segments}")
    }

    /// The finding in words, beside what was simulated; `None` if it is right.
    #[must_use]
    pub fn mistake(&self, scenario: &str) -> Option<String> {
        if self.is_right() {
            return None;
        }
        let (truth, share) = (self.truth.name(), self.truth_share * 100.0);
        let sure = if self.sure { "SURE" } else { "" };
        let other = self.from_tcp_info.map_or("", Limit::name);
        let found = self.found.name();
        let sentence = &self.sentence;
        Some(format!(
            "{truth:<20} {share:3.0} % found {found:<20} {sure:<4} {other} {scenario}\n    \
             {sentence}"
        ))
    }
}
