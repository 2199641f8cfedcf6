//! The segments of a finding, checked and bounded for drawing: a file may hold any number
//! of them, in any order, with any times.

use crate::wording::whole_percent;
use record::{Finding, Limit, Probability, RateEstimate, Segment};
use units::BitRate;

/// Most segments drawn or listed; the others are counted.
const MAX_PARTS: usize = 60;
/// Most segments read; a diagnosis has a few dozen.
const MAX_READ: usize = 1_000;
/// Segments with a later time than this (30 years) are damaged.
const MAX_T_S: f64 = 1e9;
/// Least probability of an alternative that is printed.
const MIN_PROBABILITY: f64 = 0.1;

/// A valid segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Part {
    /// Start, in seconds since the test began.
    pub(crate) from_s: f64,
    /// End, after its start and not after the next part's start.
    pub(crate) to_s: f64,
    pub(crate) limit: Limit,
    /// The probability of that limit, 0 to 1.
    pub(crate) probability: Option<f64>,
    /// Goodput.
    pub(crate) rate: BitRate,
    /// Share of the lost goodput, 0 to 1.
    pub(crate) lost: f64,
}

/// One limit over all segments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Total {
    pub(crate) limit: Limit,
    /// Share of the time of all segments, 0 to 1.
    pub(crate) time: f64,
    /// Share of the lost goodput, 0 to 1.
    pub(crate) lost: f64,
}

/// The segments of a finding with at least two of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Timeline {
    /// In the order of time.
    pub(crate) parts: Vec<Part>,
    /// Further segments.
    pub(crate) left_out: usize,
    /// The finding's limit, then the others, those that cost the most goodput first.
    pub(crate) totals: Vec<Total>,
}

impl Timeline {
    /// `None` for a finding with fewer than two valid segments.
    pub(crate) fn of(finding: &Finding) -> Option<Self> {
        let mut parts: Vec<Part> = Vec::new();
        for segment in finding.segments.iter().take(MAX_READ) {
            let from_s = parts.last().map_or(0.0, |last| last.to_s).max(segment.from_s);
            // False for NaN as well.
            if segment.from_s >= 0.0 && segment.to_s > from_s && segment.to_s <= MAX_T_S {
                parts.push(Part::of(segment, from_s));
            }
        }
        if parts.len() < 2 {
            return None;
        }
        let lost: f64 = parts.iter().map(|part| part.lost).sum();
        if lost > 1.0 {
            parts.iter_mut().for_each(|part| part.lost /= lost);
        }
        let totals = totals(&parts, finding.limit);
        let unread = finding.segments.len().saturating_sub(MAX_READ);
        let left_out = parts.len().saturating_sub(MAX_PARTS) + unread;
        parts.truncate(MAX_PARTS);
        Some(Timeline { parts, left_out, totals })
    }

    /// Start of the first part, in seconds.
    pub(crate) fn start_s(&self) -> f64 {
        self.parts.first().map_or(0.0, |part| part.from_s)
    }

    /// End of the last part, in seconds.
    pub(crate) fn end_s(&self) -> f64 {
        self.parts.last().map_or(0.0, |part| part.to_s)
    }

    /// The place of a limit in [`Timeline::totals`]: its colour and texture.
    pub(crate) fn rank(&self, limit: Limit) -> usize {
        self.totals.iter().position(|total| total.limit == limit).unwrap_or(self.totals.len())
    }
}

impl Part {
    fn of(segment: &Segment, from_s: f64) -> Self {
        let probability = segment.posterior.iter().find(|one| one.limit == segment.limit);
        Part {
            from_s,
            to_s: segment.to_s,
            limit: segment.limit,
            probability: probability.map(|one| fraction(one.probability)),
            rate: segment.throughput_bps,
            lost: fraction(segment.lost_share),
        }
    }

    fn seconds(&self) -> f64 {
        self.to_s - self.from_s
    }
}

/// A share between 0 and 1, whatever the file holds.
fn fraction(value: f64) -> f64 {
    if value.is_finite() { value.clamp(0.0, 1.0) } else { 0.0 }
}

fn totals(parts: &[Part], first: Option<Limit>) -> Vec<Total> {
    let whole: f64 = parts.iter().map(Part::seconds).sum();
    let mut totals: Vec<Total> = Vec::new();
    for part in parts {
        let time = part.seconds() / whole;
        match totals.iter_mut().find(|total| total.limit == part.limit) {
            Some(total) => (total.time, total.lost) = (total.time + time, total.lost + part.lost),
            None => totals.push(Total { limit: part.limit, time, lost: part.lost }),
        }
    }
    let order = |total: &Total| (Some(total.limit) == first, total.lost, total.time);
    totals.sort_by(|a, b| {
        let ((first_a, lost_a, time_a), (first_b, lost_b, time_b)) = (order(a), order(b));
        first_b
            .cmp(&first_a)
            .then(lost_b.total_cmp(&lost_a))
            .then(time_b.total_cmp(&time_a))
            .then(a.limit.cmp(&b.limit))
    });
    totals
}

/// `69 % of the time, 88 % of the lost goodput`.
pub(crate) fn cost(total: &Total) -> String {
    let time = format!("{} of the time", whole_percent(total.time));
    if total.lost > 0.0 {
        format!("{time}, {} of the lost goodput", whole_percent(total.lost))
    } else {
        time
    }
}

/// `aqm 72 %, shared-bottleneck 20 %`: the most probable limit and the alternatives above
/// 10 %; `None` without probabilities.
pub(crate) fn probabilities(posterior: &[Probability]) -> Option<String> {
    let mut shown: Vec<(Limit, f64)> = Vec::new();
    for one in posterior.iter().take(Limit::ALL.len()) {
        let probability = fraction(one.probability);
        match shown.iter_mut().find(|(limit, _)| *limit == one.limit) {
            Some((_, most)) => *most = most.max(probability),
            None => shown.push((one.limit, probability)),
        }
    }
    shown.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut first = true;
    shown.retain(|(_, probability)| {
        std::mem::take(&mut first) && *probability > 0.0 || *probability > MIN_PROBABILITY
    });
    // A damaged file may claim more than all of it.
    let sum = shown.iter().map(|(_, probability)| probability).sum::<f64>().max(1.0);
    let each = shown.iter().map(|(limit, p)| format!("{} {}", limit.name(), certainty(p / sum)));
    (!shown.is_empty()).then(|| each.collect::<Vec<_>>().join(", "))
}

/// `72 %`; no estimate is certain: `>99 %`.
pub(crate) fn certainty(probability: f64) -> String {
    if probability >= 0.995 { ">99 %".to_owned() } else { whole_percent(probability) }
}

/// `96.1 Mbit/s of payload (90 % interval: 94.0 to 97.2 Mbit/s)`.
pub(crate) fn bottleneck(estimate: &RateEstimate) -> String {
    let RateEstimate { rate_bps, low_bps, high_bps } = *estimate;
    let low = low_bps.min(rate_bps);
    match high_bps {
        Some(high) => {
            let high = high.max(rate_bps);
            format!("{rate_bps} of payload (90 % interval: {})", range(low, high))
        }
        None => format!("at least {low} of payload"),
    }
}

/// `94.0 to 97.2 Mbit/s`: a shared unit is written once.
fn range(low: BitRate, high: BitRate) -> String {
    let (low, high) = (low.to_string(), high.to_string());
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

#[cfg(test)]
mod tests;
