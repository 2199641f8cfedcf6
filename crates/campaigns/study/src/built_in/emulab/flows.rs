//! Flows that start one after the other: their total, and how they share the link.

use super::super::Measured;
use super::super::runs::{Runs, Where, mbit, near, seconds};
use crate::results::jain;
use record::{FlowFigures, StudyRun};

/// Each TCP flow that starts adds at least this share of what the first one had alone.
const ADDED: f64 = 0.5;

/// The total of UDT flows stays within this share of what the first one had alone.
const CONSTANT: f64 = 0.15;

/// Jain's index from which shares count as fair. The library UDT 4.11 had 0.70, 0.98, 0.99 and 1.00
/// in four runs over 100 Mbit/s and 50 ms: alpha(x) is ten times less where the receiver's estimate
/// of the capacity is less than 0.9 of 100 Mbit/s or 1 Gbit/s, and a flow with such an estimate
/// takes that much longer to get its share.
pub(super) const FAIR: f64 = 0.8;

/// A flow that is alone again reaches this share of what it had in the last seconds before the
/// others: in some second, as alone it falls to half of the link now and then.
const BACK: f64 = 0.8;
const BACK_S: f64 = 3.0;

/// Beside the others it has at most this share of it.
const GIVEN: f64 = 0.7;

/// Shares are those of the last seconds in which all flows run, at most half that time.
const LAST_S: f64 = 15.0;

/// The goodput of all flows while the first one, two and three of them ran, after `settled` of
/// each phase's length in seconds.
fn phases(run: &StudyRun, settled: impl Fn(f64) -> f64) -> Option<[f64; 3]> {
    let [first, second, third] = ["first", "second", "third"].map(|name| run.flow(name));
    let (first, second, third) = (first?, second?, third?);
    let spans = [
        (first.began_s, second.began_s),
        (second.began_s, third.began_s),
        (third.began_s, end(third)),
    ];
    let spans = spans.map(|(from, to)| (from + settled(to - from), to));
    let sum = |(from, to): (f64, f64)| -> Option<f64> {
        let each = [first, second, third].map(|flow| seconds(flow, from, to));
        each[0]?;
        Some(each.into_iter().flatten().sum())
    };
    let [one, two, three] = spans.map(sum);
    Some([one?, two?, three?])
}

/// The total of TCP flows rises with each one.
pub(super) fn tcp_total(runs: &Runs<'_>) -> Option<Measured> {
    let run = runs.valid("fairness", &[]).into_iter().next()?;
    // A second for slow start.
    let totals @ [one, two, three] = phases(run, |_| 1.0)?;
    let risen = |less: f64, more: f64| more > less + one * ADDED;
    Some(Measured { text: words(totals), holds: risen(one, two) && risen(two, three) })
}

/// That of UDT flows stays what the first one has.
pub(super) fn udt_total(runs: &Runs<'_>) -> Option<Measured> {
    let run = runs.valid("fairness-udt", &[("congestion", "udt")]).into_iter().next()?;
    // UDT takes some 10 s to reach the link rate.
    let totals @ [one, two, three] = phases(run, |length| length * 0.7)?;
    let same = |total: f64| near(total, one, CONSTANT);
    Some(Measured { text: words(totals), holds: same(two) && same(three) })
}

/// The first UDT flow alone, beside the two others, and alone again.
pub(super) fn share_back(runs: &Runs<'_>) -> Option<Measured> {
    let run = runs.valid("fairness-udt", &[("congestion", "udt")]).into_iter().next()?;
    let [first, second, third] = ["first", "second", "third"].map(|name| run.flow(name));
    let (first, second, third) = (first?, second?, third?);
    let before = seconds(first, second.began_s - BACK_S, second.began_s)?;
    let beside = seconds(first, third.began_s, end(third))?;
    let alone = (end(first) - end(second)).max(0.0) as usize;
    let after = first.series_bps.iter().rev().take(alone).copied().fold(0.0, f64::max);
    Some(Measured {
        text: format!(
            "the first flow has {} before the second one begins, {} while three run, and up to {} in \
             the {alone} s after the last of the others ended",
            mbit(before),
            mbit(beside),
            mbit(after)
        ),
        holds: after >= before * BACK && beside <= before * GIVEN,
    })
}

fn words([one, two, three]: [f64; 3]) -> String {
    format!("{} with one flow, {} with two, {} with three", mbit(one), mbit(two), mbit(three))
}

/// When a flow's last whole second ends, since the first flow began.
fn end(flow: &FlowFigures) -> f64 {
    flow.began_s + flow.series_bps.len() as f64
}

/// Jain's index over the flows in the last seconds in which all three run.
pub(super) fn fair_shares(
    runs: &Runs<'_>,
    part: &str,
    cell: Where<'_>,
    fair: f64,
) -> Option<Measured> {
    let run = runs.valid(part, cell).into_iter().next()?;
    let from = run.flows.iter().map(|flow| flow.began_s).fold(0.0, f64::max);
    let to = run.flows.iter().map(end).fold(f64::INFINITY, f64::min);
    let last = LAST_S.min((to - from) / 2.0);
    // Whole seconds of each flow, whose seconds begin at different times.
    let shares: Option<Vec<f64>> =
        run.flows.iter().map(|flow| seconds(flow, to - last - 1.0, to)).collect();
    let shares = shares?;
    let index = jain(&shares)?;
    let words: Vec<String> = shares.iter().map(|share| mbit(*share).to_string()).collect();
    Some(Measured {
        text: format!(
            "Jain's index {index:.3} over the last {last:.0} s in which all three run ({})",
            words.join(", ")
        ),
        holds: index >= fair,
    })
}
