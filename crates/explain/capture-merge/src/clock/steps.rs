//! Steps of a clock: it was set while the captures ran (NTP, or by hand).
//!
//! A step moves the bounds of both directions by the same amount at the same time, and
//! the RTT stays what it was. A change of the route or a queue changes the RTT.

use super::hull::{Bounds, Point};

/// Steps that are told apart; a clock that is set more often is unsuitable.
const MAX: usize = 16;

/// Smallest step in ns. ntpd steps from 128 ms on, chrony by its configuration.
const SMALLEST: f64 = 1e6;

/// Intervals that are compared with each other.
const INTERVALS: usize = 256;

/// Packets of each direction that an interval should have.
const PACKETS: usize = 10;

/// Intervals of one RTT that are looked across.
const MAX_UNCLEAR: usize = 32;

/// The bounds of the clock in an interval.
#[derive(Debug, Clone, Copy)]
struct Interval {
    from: f64,
    to: f64,
    above: f64,
    below: f64,
}

impl Interval {
    fn middle(&self) -> f64 {
        f64::midpoint(self.above, self.below)
    }

    /// The least RTT.
    fn rtt(&self) -> f64 {
        self.above - self.below
    }
}

/// A step: when, and by how much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) at: f64,
    pub(super) by: f64,
    /// While packets of one direction are from before it and those of the other from after
    /// it: about an RTT, where the step is backwards.
    unclear: (f64, f64),
}

impl Step {
    /// Whether a time is too near to say which side of the step a packet is on.
    pub(super) fn is_unclear(&self, at: f64) -> bool {
        self.unclear.0 <= at && at <= self.unclear.1
    }
}

/// The steps, and whether there were too many. Both lists are sorted; that of packets from
/// B to A is upside down.
pub(super) fn find(there: &[Point], back: &[Point]) -> (Vec<Step>, bool) {
    let intervals = intervals(there, back);
    let moves: Vec<f64> =
        intervals.windows(2).map(|pair| (pair[1].middle() - pair[0].middle()).abs()).collect();
    let rtts: Vec<f64> = intervals.iter().map(Interval::rtt).collect();
    let (Some(usual), Some(rtt)) = (median(moves), median(rtts.clone())) else {
        return (Vec::new(), false);
    };
    let deviation = median(rtts.iter().map(|it| (it - rtt).abs()).collect()).unwrap_or(0.0);
    // Opposite queues in both directions, one after the other, look like a step; where one
    // clock explains all packets, only a sharp change of a steady path counts.
    let is_certain = Bounds::of(there, back).is_some_and(|bounds| bounds.contradict());
    let smallest = SMALLEST.max(8.0 * usual).max(if is_certain { 0.0 } else { 10.0 * deviation });
    // An interval with the step inside of it has half of it, and so have those in which
    // packets of one direction are from before it and packets of the other from after it.
    let width = intervals.first().map_or(1.0, |it| it.to - it.from);
    let unclear = ((rtt / width).ceil() as usize).min(MAX_UNCLEAR) + 2;
    let mut steps = Vec::new();
    let mut place = 0;
    while let Some(old) = intervals.get(place) {
        let after = (1..=unclear).find_map(|next| {
            let new = intervals.get(place + next)?;
            let by = new.middle() - old.middle();
            let is_step = by.abs() > smallest && (new.rtt() - old.rtt()).abs() < by.abs() / 2.0;
            is_step.then_some((next, new, by))
        });
        let Some((next, new, by)) = after else {
            place += 1;
            continue;
        };
        if steps.len() == MAX {
            return (Vec::new(), true);
        }
        steps.push(step(there, back, [old, new], by));
        place += next;
    }
    (steps, false)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The bounds in intervals of equal length in which both directions have packets.
fn intervals(there: &[Point], back: &[Point]) -> Vec<Interval> {
    let (Some(first), Some(last)) = (
        there.first().zip(back.first()).map(|(a, b)| a.x.min(b.x)),
        there.last().zip(back.last()).map(|(a, b)| a.x.max(b.x)),
    ) else {
        return Vec::new();
    };
    let count = (there.len().min(back.len()) / PACKETS).clamp(4, INTERVALS);
    let width = ((last - first) / count as f64).max(1.0);
    let mut lows = vec![[f64::INFINITY; 2]; count];
    for (side, points) in [there, back].into_iter().enumerate() {
        for point in points {
            let place = ((point.x - first) / width) as usize;
            if let Some(low) = lows.get_mut(place.min(count - 1)) {
                low[side] = low[side].min(point.y);
            }
        }
    }
    let with_both =
        lows.into_iter().enumerate().filter(|(_, low)| low.iter().all(|it| it.is_finite()));
    with_both
        .map(|(place, [above, below])| {
            let from = first + place as f64 * width;
            Interval { from, to: from + width, above, below: -below }
        })
        .collect()
}

/// When the step was: packets that the clock before it cannot explain were after it, and
/// the other way round.
fn step(there: &[Point], back: &[Point], [old, new]: [&Interval; 2], by: f64) -> Step {
    let tolerance = by.abs() / 4.0;
    let within = |points: &[Point]| -> Vec<Point> {
        points.iter().copied().filter(|it| it.x >= old.from && it.x <= new.to).collect()
    };
    let (there, back) = (within(there), within(back));
    let below = |points: &[Point], bound: f64| -> Vec<f64> {
        points.iter().filter(|it| it.y < bound - tolerance).map(|it| it.x).collect()
    };
    let (before, after) = if by > 0.0 {
        (below(&there, new.above), below(&back, -old.below))
    } else {
        (below(&back, -new.below), below(&there, old.above))
    };
    let latest = before.into_iter().fold(old.from, f64::max);
    let earliest = after.into_iter().fold(new.to, f64::min);
    Step { at: f64::midpoint(latest, earliest), by, unclear: (earliest, latest) }
}
