//! Parts of a run with one limit, and what they cost.

use super::facts::Facts;
use super::windows::{measured, start_of};
use super::{TrueSegment, Truth};
use record::Limit;
use std::collections::BTreeMap;
use twin::TruthInterval;

/// A boundary is found within this at least, s: the ground truth's intervals are 0.1 s.
const MIN_NEAR_S: f64 = 0.31;

/// Maximal spans of one limit; a span shorter than `shortest_s` of its limit belongs to the
/// longer of its neighbours, the shortest first.
pub(super) fn merged(
    limits: &[Limit],
    intervals: &[TruthInterval],
    shortest_s: impl Fn(Limit) -> f64,
) -> Vec<TrueSegment> {
    let mut segments: Vec<TrueSegment> = Vec::new();
    for (index, limit) in limits.iter().enumerate() {
        let (from_s, to_s) = (start_of(intervals, index), intervals[index].to_s);
        segments.push(TrueSegment { from_s, to_s, limit: *limit });
    }
    join(&mut segments);
    while segments.len() > 1 {
        let length = |segment: &TrueSegment| segment.to_s - segment.from_s;
        let shortest = (0..segments.len())
            .filter(|at| length(&segments[*at]) < shortest_s(segments[*at].limit) - 1e-9)
            .min_by(|one, other| length(&segments[*one]).total_cmp(&length(&segments[*other])));
        let Some(shortest) = shortest else { break };
        let before = shortest.checked_sub(1).map(|at| segments[at]);
        let after = segments.get(shortest + 1).copied();
        let longer = match (before, after) {
            (Some(before), Some(after)) if length(&after) > length(&before) => after,
            (Some(neighbour), _) | (None, Some(neighbour)) => neighbour,
            (None, None) => break,
        };
        segments[shortest].limit = longer.limit;
        join(&mut segments);
    }
    segments
}

/// Joins neighbours of the same limit.
fn join(segments: &mut Vec<TrueSegment>) {
    segments.dedup_by(|next, before| {
        let same = next.limit == before.limit;
        if same {
            before.to_s = next.to_s;
        }
        same
    });
}

/// Each limit's cost: (2 C - goodput) x time, with C the payload that the path's best rate
/// carries.
pub(super) fn costs(
    facts: &Facts,
    segments: Vec<TrueSegment>,
    intervals: &[TruthInterval],
) -> Truth {
    let most = facts.payload_rate();
    let mut costs: BTreeMap<Limit, f64> = BTreeMap::new();
    for (index, interval) in intervals.iter().enumerate() {
        let from_s = start_of(intervals, index);
        let seconds = interval.to_s - from_s;
        let bits: f64 = measured(interval).map(|c| c.read as f64 * 1448.0 * 8.0).sum();
        let cost = (2.0 * most * seconds - bits).max(0.0);
        let middle = (from_s + interval.to_s) / 2.0;
        let segment = segments.iter().find(|s| s.from_s <= middle && middle < s.to_s);
        if let Some(segment) = segment {
            *costs.entry(segment.limit).or_default() += cost;
        }
    }
    let total: f64 = costs.values().sum::<f64>().max(f64::MIN_POSITIVE);
    let mut shares: Vec<(Limit, f64)> =
        costs.into_iter().map(|(limit, cost)| (limit, cost / total)).collect();
    shares.sort_by(|one, other| other.1.total_cmp(&one.1));
    let limit = shares.first().map_or(Limit::Unknown, |(limit, _)| *limit);
    let near_s = (2.0 * facts.at(0.0).rtt_s).max(MIN_NEAR_S);
    Truth { limit, segments, shares, near_s }
}
