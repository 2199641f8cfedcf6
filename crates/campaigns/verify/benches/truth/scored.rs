//! A finding beside the truth.

use crate::case::Case;
use crate::families;
use crate::label::{TrueSegment, Truth};
use record::{Confidence, Finding, Limit};

/// What was true of a run, and what the diagnosis found.
#[derive(Debug, Clone)]
pub(crate) struct Scored {
    pub(crate) family: &'static str,
    pub(crate) congestion: &'static str,
    pub(crate) several: bool,
    pub(crate) reverse: bool,
    pub(crate) default_buffers: bool,
    pub(crate) truth: Limit,
    /// The truth's share of the cost: near a half, two limits cost about the same.
    pub(crate) truth_share: f64,
    pub(crate) found: Limit,
    pub(crate) sure: bool,
    /// The probabilities of the finding, the most probable first.
    pub(crate) posterior: Vec<(Limit, f64)>,
    pub(crate) segments: Vec<TrueSegment>,
    /// A boundary is found within this, s.
    pub(crate) near_s: f64,
    /// The segments of the finding.
    pub(crate) found_segments: Vec<TrueSegment>,
    pub(crate) sentence: String,
    /// What the samples of TCP_INFO of the same run give, where a capture was explained.
    pub(crate) from_tcp_info: Option<Limit>,
}

/// Counts of boundaries between segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Boundaries {
    pub(crate) true_ones: usize,
    /// Of the true ones, those that are reported.
    pub(crate) found: usize,
    pub(crate) reported: usize,
    /// Of those reported, the true ones.
    pub(crate) right: usize,
    /// The same of the true ones between segments that both last [`LASTING_S`].
    pub(crate) lasting: usize,
    pub(crate) lasting_found: usize,
}

/// A segment that is longer than this is seen by whoever looks at the graph, s.
pub(crate) const LASTING_S: f64 = 1.0;

impl Scored {
    pub(crate) fn new(case: &Case, truth: &Truth, finding: Option<Finding>) -> Self {
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
            family: case.family,
            congestion: case.congestion,
            several: case.streams > 1,
            reverse: case.reverse,
            default_buffers: families::has_default_buffers(case),
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

    pub(crate) fn is_right(&self) -> bool {
        self.found == self.truth
    }

    /// The share of the time for which the segments name the true limit.
    pub(crate) fn time_right(&self) -> f64 {
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
    pub(crate) fn boundaries(&self) -> Boundaries {
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

    /// Prints a finding that is wrong, or with `labels` the truth.
    pub(crate) fn tell(&self, case: &str, labels: bool) {
        let (truth, share) = (self.truth.name(), self.truth_share * 100.0);
        if labels {
            let segments = self.segments.iter();
            let segments = segments.map(|s| format!("{:.1} s {}", s.from_s, s.limit.name()));
            let segments = segments.collect::<Vec<_>>().join(", ");
            println!("{truth:<20} {share:3.0} %  {case}\n    from {segments}");
        } else if !self.is_right() {
            let sure = if self.sure { "SURE" } else { "" };
            let other = self.from_tcp_info.map_or("", Limit::name);
            println!(
                "{truth:<20} {share:3.0} % found {:<20} {sure:<4} {other} {case}",
                self.found.name()
            );
            println!("    {}", self.sentence);
        }
    }
}
