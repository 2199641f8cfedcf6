//! Which limit it was, when, and with what probability: the one place where the causes
//! meet.
//!
//! 1. The fitted terms of `posterior` judge the statistics of a part of the test.
//! 2. What is known beyond the samples is applied: what was measured directly, and of a
//!    lab's path its counters; and what is missing in another tool's result.
//! 3. `segments` chooses the parts.
//! 4. The limit named first is the one that cost the most goodput.

use crate::{
    deciding, direct_evidence,
    evidence::Evidence,
    known_path::KnownPath,
    mechanisms::Mechanisms,
    missing_evidence,
    outages::Outages,
    posterior::Posterior,
    segments,
    statistics::{Prepared, Statistics},
};
use record::{Confidence, Limit, Measurement, Probability, Segment, Unavailable};
use units::BitRate;

/// The probabilities from which a limit is *sure*, or *likely*; below, it is unknown. From
/// the calibration in docs/design/diagnosis.md: of the findings at 0.99 and above at most
/// 0.5 % are wrong.
const SURE: f64 = 0.99;
const LIKELY: f64 = 0.4;

/// Samples further apart than this, in seconds, blur what the terms were fitted to: the losses
/// between two look like one event. Log-likelihoods then count less, at least this much of
/// them.
const FITTED_STEP: f64 = 1.1;
const MIN_TEMPER: f64 = 0.3;

/// The probability from which a limit is named at the receiver of a connection of another
/// program, whose sender may be idle at times: the terms were fitted to tests.
const LIKELY_RECEIVER: f64 = 0.95;

/// Links are compared with one of twice the rate seen: a saturated bottleneck costs
/// goodput as well, or the shortest stall would outweigh it (docs/design/ground-truth.md).
const REFERENCE: f64 = 2.0;

/// The share of what a policer and a shallow queue have together that a train leaves to the one
/// that it shows: of 114 trains in labs none was wrong (docs/design/diagnosis.md).
const TRAIN: f64 = 0.999;

/// What limited a test.
#[derive(Debug, Clone)]
pub(crate) struct Combined {
    /// The limit that cost the most goodput.
    pub(crate) limit: Limit,
    pub(crate) confidence: Option<Confidence>,
    pub(crate) posterior: Vec<Probability>,
    pub(crate) segments: Vec<Segment>,
}

impl Combined {
    /// The longest segment with the limit, if there are other segments.
    pub(crate) fn costliest(&self) -> Option<&Segment> {
        let with = self.segments.iter().filter(|segment| segment.limit == self.limit);
        let length = |segment: &&Segment| segment.to_s - segment.from_s;
        with.max_by(|a, b| length(a).total_cmp(&length(b))).filter(|_| self.segments.len() > 1)
    }

    /// A limit that was seen rather than judged: that of the outages, and of the parts that they
    /// fill for the most.
    fn seen(limit: Limit, probability: f64, outages: &Outages, rest: Self) -> Self {
        let posterior = vec![Probability { limit, probability }];
        let confidence = confidence(limit, probability);
        let of_outage = |part: Segment| {
            let is_filled =
                outages.seconds_in(part.from_s, part.to_s) > 0.5 * (part.to_s - part.from_s);
            let posterior = posterior.clone();
            if is_filled { Segment { limit, confidence, posterior, ..part } } else { part }
        };
        let segments = rest.segments.into_iter().map(of_outage).collect();
        Combined { limit, confidence, posterior, segments }
    }
}

/// The probability of a limit that was seen; at a receiver, which sees no retransmission in vain.
const SEEN: f64 = 0.99;
const SEEN_AT_RECEIVER: f64 = 0.9;

/// The confidence in a limit of that probability.
fn confidence(limit: Limit, probability: f64) -> Option<Confidence> {
    if limit == Limit::Unknown {
        None
    } else if probability >= SURE {
        Some(Confidence::Sure)
    } else {
        (probability >= LIKELY).then_some(Confidence::Likely)
    }
}

/// A limit and its confidence; unknown where no limit is probable enough.
fn named(limit: Limit, probability: f64) -> (Limit, Option<Confidence>) {
    match confidence(limit, probability) {
        Some(confidence) => (limit, Some(confidence)),
        None => (Limit::Unknown, None),
    }
}

fn at_most_likely((limit, confidence): (Limit, Option<Confidence>)) -> (Limit, Option<Confidence>) {
    (limit, confidence.map(|_| Confidence::Likely))
}

/// Judges a TCP test; `None` if no part of it was sampled.
pub(crate) fn combine(e: &Evidence, test: &Prepared<'_>) -> Option<Combined> {
    let (m, facts) = (test.facts.m, &test.facts);
    let end = m.spec.duration_s().filter(|planned| *planned > 0.0);
    let end = end.map_or(test.end(), |planned| test.end().min(planned));
    if end <= 0.0 || facts.has_one_direction {
        return None;
    }
    let path = KnownPath::of(m, e);
    let train = deciding::told_by_train(m);
    let told_apart =
        train.is_some() || path.as_ref().is_some_and(KnownPath::tells_policer_from_queue);
    let named = |limit: Limit, probability: f64| {
        let shows = facts.shows_network
            || (limit == Limit::Application && facts.is_mostly_idle())
            || (facts.shows_at_receiver(limit) && probability >= LIKELY_RECEIVER);
        let found = named(limit, if shows { probability } else { 0.0 });
        // The terms were fitted to samples with timers.
        if m.lacks(Unavailable::SenderTimers) || (deciding::is_dropping_alike(limit) && !told_apart)
        {
            at_most_likely(found)
        } else {
            found
        }
    };
    let sender = facts.sender();
    let limits_unsent = m.unsent_limit().is_some();
    let temper = test.step().map_or(1.0, |step| (FITTED_STEP / step).clamp(MIN_TEMPER, 1.0));
    let mechanisms = Mechanisms::of(m);
    let judge = |statistics: &Statistics| {
        let fitted = Posterior::of(statistics).tempered(temper);
        let fitted = fitted.without(|limit| !mechanisms.can_act(limit));
        let known = match &path {
            Some(path) => fitted.without(|limit| path.excludes(limit, statistics)),
            None => fitted,
        };
        let measured = direct_evidence::apply(known, statistics, sender, limits_unsent);
        let judged = missing_evidence::apply(measured, facts, statistics);
        match train {
            Some((shown, other)) => judged.split(shown, other, TRAIN),
            None => judged,
        }
    };
    // An application that is idle for most of the time is idle between its bursts, too: they are
    // no parts with limits of their own.
    let whole = || judge(&test.over(0.0, end));
    let parts = if facts.is_mostly_idle() {
        vec![segments::Part { from: 0.0, to: end, limit: Limit::Application, posterior: whole() }]
    } else {
        segments::find(test, end, judge)
    };
    let lengths: Vec<(f64, &Posterior)> =
        parts.iter().map(|part| (part.to - part.from, &part.posterior)).collect();
    let long =
        if end > segments::LONG_S && parts.len() > 1 { Posterior::mean(&lengths) } else { None };
    let whole = long.unwrap_or_else(whole);
    let lost = |part: &segments::Part| {
        let rate = test.rate(part.from, part.to);
        (REFERENCE * test.peak() - rate).max(0.0) * (part.to - part.from)
    };
    let all: f64 = parts.iter().map(lost).sum::<f64>().max(1e-9);
    // What is reported is what a reader can check: the path's payload rate, or the highest that
    // was seen, less what arrived.
    let carried = path.as_ref().and_then(KnownPath::payload).unwrap_or(test.peak());
    let missed = |part: &segments::Part| {
        (carried - test.rate(part.from, part.to)).max(0.0) * (part.to - part.from)
    };
    let all_missed: f64 = parts.iter().map(missed).sum::<f64>().max(1e-9);
    let segments: Vec<Segment> = parts
        .iter()
        .map(|part| {
            let (limit, confidence) = named(part.limit, part.posterior.probability(part.limit));
            Segment {
                from_s: part.from,
                to_s: part.to,
                limit,
                confidence,
                throughput_bps: BitRate::from_bps_f64(test.rate(part.from, part.to)),
                lost_share: missed(part) / all_missed,
                posterior: part.posterior.reported(),
            }
        })
        .collect();
    // The parts' posteriors by what each cost, and the whole test's. What the ramp-up cost is
    // known, as its end is seen: it is not the limit where another limit cost more.
    let share = |part: &segments::Part| lost(part) / all;
    let cost = |limit: Limit| parts.iter().filter(|part| part.limit == limit).map(share).sum();
    let ramp: f64 = cost(Limit::Ramp);
    let costlier = Limit::ALL.into_iter().any(|limit| limit != Limit::Ramp && cost(limit) > ramp);
    let counts = |part: &&segments::Part| part.limit != Limit::Ramp || !costlier;
    let weighted: Vec<(f64, &Posterior)> =
        parts.iter().filter(counts).map(|part| (share(part), &part.posterior)).collect();
    let posterior = whole.pooled(&weighted);
    let first = posterior.most_probable();
    let (limit, confidence) = named(first, posterior.probability(first));
    let judged = Combined { limit, confidence, posterior: posterior.reported(), segments };
    Some(match Outages::limiting(test) {
        Some(outages) if is_black_hole(m) => {
            Combined::seen(Limit::PmtuBlackHole, SEEN, &outages, judged)
        }
        Some(outages) => {
            let probability = if facts.is_received_only() { SEEN_AT_RECEIVER } else { SEEN };
            Combined::seen(Limit::Outage, probability, &outages, judged)
        }
        None => judged,
    })
}

/// Whether what was lost in a stream was lost because of its size.
fn is_black_hole(m: &Measurement) -> bool {
    m.streams.iter().any(|stream| stream.segment_sizes.is_some_and(|sizes| sizes.is_black_hole()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        example::{sampled, samples},
        prepared,
    };

    #[test]
    fn probabilities_give_the_confidence() {
        for (probability, expected) in [
            (SURE, Some(Confidence::Sure)),
            (SURE - 1e-9, Some(Confidence::Likely)),
            (LIKELY, Some(Confidence::Likely)),
            (LIKELY - 1e-9, None),
            (f64::NAN, None),
        ] {
            let found = named(Limit::Loss, probability);
            assert_eq!(found.1, expected, "{probability}");
            assert_eq!(found.0 == Limit::Unknown, expected.is_none(), "{probability}");
        }
        assert_eq!(named(Limit::Unknown, 1.0), (Limit::Unknown, None));
    }

    #[test]
    fn the_costliest_segment_is_the_longest_with_the_limit() {
        let segment = |from_s, to_s, limit| Segment {
            from_s,
            to_s,
            limit,
            confidence: None,
            throughput_bps: BitRate::ZERO,
            lost_share: 0.0,
            posterior: Vec::new(),
        };
        let mut judged = Combined {
            limit: Limit::Loss,
            confidence: None,
            posterior: Vec::new(),
            segments: vec![
                segment(0.0, 2.0, Limit::Loss),
                segment(2.0, 7.0, Limit::PathRate),
                segment(7.0, 10.0, Limit::Loss),
            ],
        };
        assert_eq!(judged.costliest().map(|segment| segment.from_s), Some(7.0));
        judged.limit = Limit::Aqm;
        assert!(judged.costliest().is_none());
        judged.segments.truncate(1);
        judged.limit = Limit::Loss;
        assert!(judged.costliest().is_none(), "the whole test");
    }

    #[test]
    fn without_samples_nothing_is_judged() {
        for sender in [Vec::new(), samples(0.0, 10.0, |_, _| {})] {
            let m = sampled(sender);
            let judged = combine(&Evidence::gather(&m), &prepared(&m));
            assert!(judged.is_none(), "{judged:?}");
        }
    }

    #[test]
    fn the_parts_cost_what_they_lost_of_the_whole() {
        let m = sampled(samples(10.0, 10.0, |_, _| {}));
        let judged = combine(&Evidence::gather(&m), &prepared(&m)).unwrap();
        let shares: f64 = judged.segments.iter().map(|segment| segment.lost_share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{judged:?}");
    }
}
