//! The parts of a test, each with one limit.
//!
//! A dynamic program over (segment, limit) chooses the segments and their limits together:
//! a segment costs its length times -ln p(limit | its statistics), and each change of the
//! limit a fixed penalty. A sawtooth therefore costs nothing, as every part of it has the
//! same cause; change-point methods on the rate alone report it as 2 to 18 changes a test
//! (docs/design/diagnosis.md). This is a segmental hidden Markov model (Ostendorf,
//! Digalakis, Kimball 1996) with the posterior of `posterior` in place of its emissions.

use crate::{
    posterior::Posterior,
    slow_start,
    statistics::{Prepared, Statistics},
};
use record::Limit;

/// The shortest segment, in seconds and in RTTs.
const MIN_S: f64 = 0.5;
const MIN_RTTS: f64 = 4.0;

/// Most boundaries that are considered; more of them would only cost time.
const BOUNDARIES: usize = 32;

/// What a second of a segment weighs: about the time after which evidence is new.
const WEIGHT: f64 = 1.0;

/// The penalty of a change of the limit, in units of ln p.
const CHANGE: f64 = 3.0;

/// The weight of the shortest segments' own evidence within a longer one. With none, a test
/// with two causes is explained by the costlier one: its statistics show in the whole too.
const CELLS: f64 = 0.6;

/// Tests longer than this, in seconds, are judged between neighbouring boundaries alone, so
/// that each sample is judged once: the terms were fitted to tests of 4 to 20 s.
pub(crate) const LONG_S: f64 = 60.0;

/// The most that a stretch of a long test weighs, in seconds: it is one judgement.
const LONG_WEIGHT_S: f64 = 4.0;

/// The probability at which ln p is cut off: a limit is never ruled out by one segment.
const FLOOR: f64 = 1e-4;

/// A part of a test with one limit.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) limit: Limit,
    pub(crate) posterior: Posterior,
}

/// The probability of *ramp* within the first slow start: its end is seen, not judged.
const RAMP: f64 = 0.95;

/// The parts from the start to `to` seconds, in the order of time. `posterior` judges the
/// statistics of a part; the first slow start is a part of its own.
pub(crate) fn find(
    test: &Prepared<'_>,
    to: f64,
    posterior: impl Fn(&Statistics) -> Posterior,
) -> Vec<Part> {
    let least = MIN_S.max(MIN_RTTS * test.min_rtt);
    match slow_start::end(test).filter(|end| *end < to) {
        Some(end) => {
            let end = if to - end < least { to } else { end };
            let seen = posterior(&test.over(0.0, end));
            let seen = seen.at_least(RAMP, |limit| limit == Limit::Ramp);
            let mut parts = between(test, end, to, posterior);
            match parts.first_mut() {
                Some(next) if next.limit == Limit::Ramp => next.from = 0.0,
                _ => parts
                    .insert(0, Part { from: 0.0, to: end, limit: Limit::Ramp, posterior: seen }),
            }
            parts
        }
        None => between(test, 0.0, to, posterior),
    }
}

/// The parts from `from` to `to` seconds.
fn between(
    test: &Prepared<'_>,
    from: f64,
    to: f64,
    posterior: impl Fn(&Statistics) -> Posterior,
) -> Vec<Part> {
    let least = MIN_S.max(MIN_RTTS * test.min_rtt);
    let edges = boundaries(test, from, to, least);
    let judged = Judged::of(edges, |from, to| posterior(&test.over(from, to)));
    // The limit of a part is what its own statistics show; neighbours with one are one part.
    let mut parts: Vec<(usize, Part)> = Vec::new();
    for (start, end) in judged.divided() {
        let (mut first, mut part) = (start, judged.part(start, end));
        while let Some((before, _)) = parts.last().filter(|(_, last)| last.limit == part.limit) {
            first = *before;
            parts.pop();
            part = judged.part(first, end);
        }
        parts.push((first, part));
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

/// The posteriors of all parts between two boundaries; of a long test, between neighbouring
/// ones alone.
struct Judged {
    edges: Vec<f64>,
    long: bool,
    /// `parts[start][n]`: from edge `start` to edge `start + 1 + n`.
    parts: Vec<Vec<Posterior>>,
}

impl Judged {
    fn of(edges: Vec<f64>, judge: impl Fn(f64, f64) -> Posterior) -> Self {
        let long = edges.first().zip(edges.last()).is_some_and(|(from, to)| to - from > LONG_S);
        let from = |start: usize| {
            let ends = edges.iter().skip(start + 1).take(if long { 1 } else { usize::MAX });
            ends.map(|end| judge(edges[start], *end)).collect()
        };
        let parts = (0..edges.len()).map(from).collect();
        Judged { edges, long, parts }
    }

    fn seconds(&self, start: usize, end: usize) -> f64 {
        self.edges[end] - self.edges[start]
    }

    /// What a part costs with a limit.
    fn cost(&self, start: usize, end: usize, limit: Limit) -> f64 {
        let ln = |part: &Posterior| part.probability(limit).max(FLOOR).ln();
        let own = ln(&self.parts[start][end - start - 1]);
        if self.long {
            return -WEIGHT * self.seconds(start, end).min(LONG_WEIGHT_S) * own;
        }
        let cell = |at: usize| self.seconds(at, at + 1) * ln(&self.parts[at][0]);
        let cells: f64 = (start..end).map(cell).sum();
        -WEIGHT * ((1.0 - CELLS) * self.seconds(start, end) * own + CELLS * cells)
    }

    /// The first and the last edge of the parts that cost the least together.
    fn divided(&self) -> Vec<(usize, usize)> {
        let (count, limits) = (self.edges.len(), Limit::ALL.len());
        if count < 2 {
            return Vec::new();
        }
        // best[end][limit]: the least cost of all up to that edge, with that limit last; and
        // where its last part begins, with the limit before it.
        let mut best = vec![vec![f64::INFINITY; limits]; count];
        let mut back = vec![vec![(0, 0); limits]; count];
        for end in 1..count {
            for start in if self.long { end - 1 } else { 0 }..end {
                let before = best[start].clone();
                let cheapest = least(&before);
                for (place, limit) in Limit::ALL.into_iter().enumerate() {
                    let mut cost = self.cost(start, end, limit);
                    let mut last = place;
                    if start > 0 {
                        let changed = before[cheapest] + CHANGE;
                        last = if before[place] <= changed { place } else { cheapest };
                        cost += before[place].min(changed);
                    }
                    if cost < best[end][place] {
                        best[end][place] = cost;
                        back[end][place] = (start, last);
                    }
                }
            }
        }
        let (mut end, mut place) = (count - 1, least(&best[count - 1]));
        let mut parts: Vec<(usize, usize)> = Vec::new();
        let mut after = None;
        while end > 0 {
            let (start, before) = back[end][place];
            match parts.last_mut() {
                Some(next) if after == Some(place) => next.0 = start,
                _ => parts.push((start, end)),
            }
            after = Some(place);
            (end, place) = (start, before);
        }
        parts.reverse();
        parts
    }

    fn part(&self, start: usize, end: usize) -> Part {
        let piece = |at: usize| (self.seconds(at, at + 1), &self.parts[at][0]);
        let posterior = if self.long {
            Posterior::mean(&(start..end).map(piece).collect::<Vec<(f64, &Posterior)>>())
        } else {
            None
        };
        let posterior = posterior.unwrap_or_else(|| self.parts[start][end - start - 1].clone());
        let (from, to) = (self.edges[start], self.edges[end]);
        Part { from, to, limit: posterior.most_probable(), posterior }
    }
}

/// The place of the least cost.
fn least(costs: &[f64]) -> usize {
    let least = costs.iter().enumerate().min_by(|one, other| one.1.total_cmp(other.1));
    least.map_or(0, |(place, _)| place)
}

/// Candidates for boundaries, `from` and `to` among them: an even grid of the shortest
/// segments, and of a longer test those where rate or RTT change the most.
fn boundaries(test: &Prepared<'_>, from: f64, to: f64, least: f64) -> Vec<f64> {
    let count = ((to - from) / least).floor();
    if count.is_nan() || count < 1.0 {
        return if to > from { vec![from, to] } else { Vec::new() };
    }
    let count = (count as usize).min(40_000);
    let step = (to - from) / count as f64;
    let edge = |index: usize| from + index as f64 * step;
    if count < BOUNDARIES {
        return (0..=count).map(edge).collect();
    }
    let level = |index: usize| {
        let rate = test.rate(edge(index), edge(index + 1)).max(test.peak() * 1e-3).max(1.0);
        (rate.ln(), test.rtt(edge(index), edge(index + 1)).unwrap_or(test.min_rtt).ln())
    };
    let levels: Vec<(f64, f64)> = (0..count).map(level).collect();
    let mut jumps: Vec<(f64, usize)> = levels
        .windows(2)
        .enumerate()
        .filter_map(|(index, pair)| {
            let (a, b) = (pair.first()?, pair.get(1)?);
            Some(((a.0 - b.0).abs() + (a.1 - b.1).abs(), index + 1))
        })
        .collect();
    jumps.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut chosen: Vec<usize> = jumps.iter().take(BOUNDARIES / 2).map(|jump| jump.1).collect();
    chosen.extend((0..=BOUNDARIES / 2).map(|part| part * count / (BOUNDARIES / 2)));
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().map(edge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Statistic;
    use crate::{
        example::{sampled, samples},
        prepared,
    };
    use record::{Measurement, Sample};
    use std::cell::Cell;

    /// A rate that falls from 10 to 2 Mbit/s at `at` tenths of a second.
    fn falls(seconds: f64, at: u64) -> Measurement {
        let slower = move |index, s: &mut Sample| {
            let late = 100_000 * u64::saturating_sub(index, at);
            s.delivered_bytes -= late;
            s.acked_bytes -= late;
        };
        sampled(samples(seconds, 10.0, slower))
    }

    /// A stand-in for the fitted terms: fast is the bottleneck's rate, slow is loss.
    fn by_rate(s: &Statistics) -> Posterior {
        let fast = (s.get(Statistic::LnMbps).unwrap_or(0.0).exp() - 2.0) / 8.0;
        let none = Posterior::of(&Statistics::default()).with(Limit::Loss, 1.0);
        none.with(Limit::PathRate, fast.clamp(0.01, 0.99))
    }

    fn spans(m: &Measurement, to: f64) -> Vec<(f64, f64, Limit)> {
        let parts = find(&prepared(m), to, by_rate);
        parts.iter().map(|part| (part.from, part.to, part.limit)).collect()
    }

    #[test]
    fn a_change_of_the_limit_is_a_boundary() {
        let found = spans(&falls(10.0, 40), 10.0);
        assert_eq!(found, [(0.0, 4.0, Limit::PathRate), (4.0, 10.0, Limit::Loss)]);
    }

    #[test]
    fn one_limit_is_one_part() {
        let all = sampled(samples(10.0, 10.0, |_, _| {}));
        assert_eq!(spans(&all, 10.0), [(0.0, 10.0, Limit::PathRate)]);
        // A fifth of a second is not worth a change.
        assert_eq!(spans(&falls(10.0, 98), 10.0).len(), 1);
    }

    #[test]
    fn a_test_too_short_to_divide_is_one_part() {
        assert_eq!(spans(&falls(0.4, 2), 0.4).len(), 1);
        assert!(spans(&falls(0.4, 2), 0.0).is_empty());
    }

    /// The work is bounded, however long a test is.
    #[test]
    fn boundaries_are_few_and_in_order() {
        for seconds in [0.3, 1.0, 15.0, 100.0, 3_600.0] {
            let m = falls(seconds, (seconds * 4.0) as u64);
            let test = prepared(&m);
            let edges = boundaries(&test, 0.0, seconds, MIN_S);
            assert!(edges.len() <= BOUNDARIES + 1 && edges.is_sorted(), "{seconds}: {edges:?}");
            let ends = (edges[0], edges[edges.len() - 1]);
            assert!(ends.0 == 0.0 && (ends.1 - seconds).abs() < 1e-9, "{seconds}: {ends:?}");
            let change = edges.iter().map(|edge| (edge - seconds * 0.4).abs());
            assert!(seconds < 2.0 || change.fold(f64::INFINITY, f64::min) < 0.6, "{edges:?}");
            let (judged, judged_s) = (Cell::new(0), Cell::new(0.0));
            find(&test, seconds, |s| {
                judged.set(judged.get() + 1);
                judged_s.set(judged_s.get() + s.get(Statistic::LnSeconds).unwrap().exp());
                by_rate(s)
            });
            assert!(judged.get() <= BOUNDARIES * (BOUNDARIES + 1) / 2);
            // `ln_seconds` adds 0.1 s each.
            let once = seconds + 0.1 * f64::from(judged.get() as u32) + 1e-6;
            assert!(seconds <= LONG_S || judged_s.get() <= once, "each sample once");
        }
    }

    #[test]
    fn a_change_within_an_hour_is_a_boundary() {
        let found = spans(&falls(3_600.0, 9_000), 3_600.0);
        let limits: Vec<Limit> = found.iter().map(|part| part.2).collect();
        assert_eq!(limits, [Limit::PathRate, Limit::Loss], "{found:?}");
        assert!((found[0].1 - 900.0).abs() < 1.0, "{found:?}");
    }
}
