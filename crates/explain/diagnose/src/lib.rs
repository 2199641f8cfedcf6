//! What limited a transfer: samples in, a finding out.
//!
//! [`explain`] turns one [`Measurement`] into one [`Finding`]: the limit, the share of
//! time by the sender's `TCP_INFO` timers, the goodput that the limit's equation
//! predicts, and one sentence with the remedy. Pure: no I/O, no clock. It does not
//! depend on the source of the samples, and skips invalid ones.
//!
//! | step | module |
//! |---|---|
//! | counters over time, of all streams | `curve`; CPU time per byte, `cpu_cost` |
//! | where the ramp-up ends | `steady` |
//! | time by cause | `shares` |
//! | RTTs, windows, loss, variation over the steady part | `evidence` |
//! | what changed from sample to sample, and the congestion events | `series`, `events` |
//! | the statistics of a part of the test | `statistics`, with `policer_evidence` |
//! | where the first slow start ends | `slow_start` |
//! | each limit's likelihood, given them | `fitted_terms` |
//! | which limits could act at all | `mechanisms` |
//! | and its probability | `posterior`, `direct_evidence`, `missing_evidence`, `known_path` |
//! | windows that stay as they are, in results without timers | `fixed_window` |
//! | spans without any delivery | `outages` |
//! | the parts of the test by limit | `segments` |
//! | the limit that is named first, and the confidence in it | `combine` |
//! | the bottleneck's rate | `rate_estimate` |
//! | prediction, sentence and remedies of each limit | `causes`, one file each |
//! | transfers of nothing, or within a round trip | `too_little` |
//! | limits that their own evidence contradicts | `consistency` |
//! | the sentence without a limit | `sentence`; for watched connections, `one_line` |
//! | the second test that tells two limits apart | `deciding` |
//! | remedies, also for several likely limits | `remedy` |
//! | the command to run next | `next_command` |
//! | the goodput expected with a remedy | `next_limit` |
//! | UDP, which has no timers | `datagrams` |
//! | the window of a finding that names one | `window_in_flight` |
//!
//! Also: latency under load ([`latency`]), and summaries and comparisons of repeated
//! tests ([`repeats`]).

mod boxes;
mod causes;
mod combine;
mod consistency;
mod cpu_cost;
mod curve;
mod datagrams;
pub mod deciding;
mod direct_evidence;
mod events;
mod evidence;
#[cfg(test)]
mod example;
mod facts;
mod fitted_terms;
mod fixed_window;
mod known_path;
pub mod latency;
mod mechanisms;
mod missing_evidence;
mod next_command;
mod next_limit;
mod one_line;
mod outages;
mod phrases;
mod policer_evidence;
mod posterior;
mod predict;
mod rate_estimate;
mod remedy;
pub mod repeats;
mod segments;
mod sentence;
mod series;
mod shares;
mod slow_start;
mod statistics;
mod steady;
mod too_little;
mod udt;
mod unlike;
mod window_in_flight;
mod window_scale;

pub use consistency::{Contradiction, contradiction};
pub use next_command::next_command;
pub use remedy::Goal;
pub use shares::shares_between;
pub use statistics::Statistics;
pub use window_in_flight::window_in_flight;

use causes::Observed;
use evidence::Evidence;
use facts::Facts;
use record::{Confidence, Direction, Finding, Limit, Measurement, Protocol};
use statistics::Prepared;
use unlike::Flows;

/// Identifies what limited the transfer.
///
/// For a test in both directions it explains what the client sent; select the other
/// direction with [`Measurement::one_direction`].
///
/// `shares` are `None` if a stream has no sender timers, and `limit` is `None` if the
/// receiver cannot identify it either; throughput and sentence are always present.
#[must_use]
pub fn explain(m: &Measurement) -> Finding {
    explain_for(m, Goal::of_path(m))
}

/// The same, with remedies for a path of the given rate and RTT instead of a known path.
#[must_use]
pub fn explain_for(m: &Measurement, goal: Option<Goal>) -> Finding {
    let forward;
    let m = if m.spec.direction == Direction::Both {
        forward = m.one_direction(false);
        &forward
    } else {
        m
    };
    let later;
    let m = match unlike::flows(m) {
        Flows::Alike => m,
        Flows::Later(measurement) => {
            later = measurement;
            &later
        }
        Flows::Unlike => {
            let evidence = Evidence::steady(&Facts::of(m), &evidence::arrived(m));
            return unlike::unlike(unexplained(m, &evidence), m);
        }
    };
    let facts = Facts::of(m);
    let finding = found(facts, goal.as_ref());
    Finding { next: Some(next_command::of(&finding, facts, goal.as_ref())), ..finding }
}

/// The finding of one direction, without the command to run next.
fn found(facts: Facts<'_>, goal: Option<&Goal>) -> Finding {
    let (m, delivered) = (facts.m, evidence::arrived(facts.m));
    let evidence = Evidence::steady(&facts, &delivered);
    if m.spec.protocol == Protocol::Udt {
        return explain_udt(&facts, &evidence);
    }
    if m.spec.protocol == Protocol::Udp {
        let (limit, sentence) = datagrams::explain(&facts, &evidence);
        let confidence = limit.filter(|limit| *limit != Limit::Unknown);
        let confidence = confidence.map(|_| Confidence::Likely);
        return Finding { limit, confidence, sentence, ..unexplained(m, &evidence) };
    }
    let test = Prepared::new(facts, delivered);
    let combined = combine::combine(&evidence, &test);
    // With several segments, the figures are those of the one that the finding names.
    let evidence = match combined.as_ref().and_then(combine::Combined::costliest) {
        // What the application was idle counts.
        _ if facts.is_mostly_idle() => Evidence::over(&facts, 0.0, test.end()),
        Some(segment) => Evidence::over(&facts, segment.from_s, segment.to_s),
        None => evidence,
    };
    let limit = combined.as_ref().map(|combined| combined.limit);
    if let Some(sentence) = too_little::sentence(&facts, limit, &evidence) {
        return Finding { sentence, ..unexplained(m, &evidence) };
    }
    let steady = evidence.steady;
    let shares = shares::over(m, steady.from_s, steady.to_s);
    let shares = shares
        .map(|shares| shares::attributed(shares, limit, &test.over(steady.from_s, steady.to_s)));
    // A receiver alone names a limit or none.
    let limit = limit.filter(|limit| shares.is_some() || *limit != Limit::Unknown);
    let observed = Observed { m, facts, e: &evidence, shares };
    let prediction = limit.and_then(|limit| causes::of(limit).prediction(&observed));
    let confidence = combined.as_ref().and_then(|combined| combined.confidence);
    let (posterior, segments) =
        combined.map_or_else(Default::default, |combined| (combined.posterior, combined.segments));
    let sentence = if facts.is_watched {
        one_line::of(limit, confidence, &posterior, &observed)
    } else {
        sentence::of(limit, confidence, &posterior, &observed)
    };
    let (predicted_bps, equation) = prediction.map(|p| (p.rate, p.equation)).unzip();
    // Below a limit that is not known nothing is advised.
    let is_known = limit.is_some_and(|limit| limit != Limit::Unknown);
    let remedies = if is_known {
        remedy::of_posterior(&posterior, confidence, goal, &observed)
    } else {
        Vec::new()
    };
    let finding = Finding {
        predicted_bps,
        equation,
        limit,
        confidence,
        shares,
        sentence,
        remedies,
        posterior,
        segments,
        bottleneck: rate_estimate::of(&test, evidence.has_standing_queue()),
        ..unexplained(m, &evidence)
    };
    consistency::consistent(finding, m)
}

/// The figures of a test, without a limit.
fn unexplained(m: &Measurement, e: &Evidence) -> Finding {
    let mut caveats: Vec<record::Caveat> = Vec::new();
    for caveat in m.streams.iter().flat_map(|stream| &stream.caveats) {
        if !caveats.contains(caveat) {
            caveats.push(*caveat);
        }
    }
    Finding {
        throughput_bps: e.goodput,
        average_bps: e.average,
        steady: e.steady,
        predicted_bps: None,
        equation: None,
        limit: None,
        confidence: None,
        shares: None,
        min_rtt: e.min_rtt,
        loaded_rtt: e.loaded_rtt,
        sentence: String::new(),
        remedies: Vec::new(),
        posterior: Vec::new(),
        segments: Vec::new(),
        bottleneck: None,
        caveats,
        next: None,
    }
}

fn explain_udt(facts: &Facts<'_>, e: &Evidence) -> Finding {
    let udt::Explanation { limit, sentence, prediction, shares } = udt::explain(facts, e);
    let (predicted_bps, equation) = prediction.unzip();
    Finding {
        predicted_bps,
        equation,
        limit,
        confidence: limit.filter(|limit| *limit != Limit::Unknown).map(|_| Confidence::Likely),
        shares,
        sentence,
        ..unexplained(facts.m, e)
    }
}

/// The statistics of a part of a test, from and to in seconds: what the posterior rests
/// on, and what its weights are fitted to.
#[must_use]
pub fn statistics(m: &Measurement, from: f64, to: f64) -> Statistics {
    prepared(m).over(from, to)
}

fn prepared(m: &Measurement) -> Prepared<'_> {
    Prepared::new(Facts::of(m), evidence::arrived(m))
}
