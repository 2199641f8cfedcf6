//! Levels of rate and queue from block to block: what changes together tells a link whose
//! rate changes from one that others share.
//!
//! A drop-tail queue of B bytes delays by B / C at most. If the link's rate C falls, its delay
//! rises as much; if others take a part of the link, this flow's rate falls and the delay
//! stays.

use super::{Part, Statistic, Statistics};
use crate::series::Step;
use model::statistics::{mean, percentile};

/// The length of a block, in seconds and in RTTs.
const BLOCK_S: f64 = 0.5;
const BLOCK_RTTS: f64 = 4.0;

/// Fewest blocks of which levels are compared.
const MIN_BLOCKS: usize = 4;

/// A standing queue of less, in seconds, is the links' own variation.
const MIN_QUEUE_S: f64 = 3e-4;

/// ln of the rate varies by at least this much where a slope over it says something.
const MIN_SPREAD: f64 = 0.05;

/// A stall counts as this share of the peak rate, or it would outweigh all other changes.
const STALLED: f64 = 0.02;

/// One block.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// Delivered payload of all streams, bit/s.
    rate: f64,
    /// High and low RTT: the 90th and the 10th percentile, s.
    high: f64,
    low: f64,
    /// Congestion events.
    events: f64,
}

pub(super) fn add(part: &Part<'_>, all: &mut Statistics) {
    let blocks = blocks(part);
    all.add(Statistic::DelayByRate, delay_by_rate(part, &blocks));
    let split = split(&blocks);
    all.add(Statistic::StepFit, split.map(|split| split.fit));
    all.add(Statistic::StepSize, split.map(|split| split.size));
    all.add(Statistic::StepRtt, split.map(|split| split.rtt));
    all.add(Statistic::StepQueue, split.map(|split| split.queue));
    all.add(Statistic::StepEvents, split.map(|split| split.events));
    let least = percentile(&part.queueing(), 0.95).unwrap_or(0.0) / 2.0;
    let queued = |step: &Step| {
        let queue = step.rtt().map_or(0.0, |rtt| rtt - part.test.min_rtt);
        queue > least.max(MIN_QUEUE_S)
    };
    let of = |read: fn(&Step) -> Option<f64>| {
        super::network::slope(part, |step| read(step).filter(|_| queued(step)))
    };
    all.add(Statistic::RateByWindowQueued, of(|step| Some(step.rate).filter(|rate| *rate > 0.0)));
    all.add(Statistic::RttByWindowQueued, of(Step::rtt));
}

fn blocks(part: &Part<'_>) -> Vec<Block> {
    let length = BLOCK_S.max(BLOCK_RTTS * part.test.min_rtt);
    let count = (part.seconds() / length).floor();
    if count.is_nan() || count < MIN_BLOCKS as f64 {
        return Vec::new();
    }
    let count = (count as usize).min(1_000);
    let length = part.seconds() / count as f64;
    let block = |index: usize| {
        let from = part.from + index as f64 * length;
        let inside = |at: f64| at > from + 1e-9 && at <= from + length + 1e-9;
        let steps = part.streams.iter().flat_map(|steps| {
            let first = steps.partition_point(|step| step.to <= from + 1e-9);
            steps.iter().skip(first).take_while(|step| inside(step.to))
        });
        let rtts: Vec<f64> = steps.filter_map(Step::rtt).collect();
        let events = part.events.iter().flatten().filter(|event| inside(event.at)).count();
        Some(Block {
            rate: part.test.rate(from, from + length).max(STALLED * part.test.peak()).max(1.0),
            high: percentile(&rtts, 0.9)?,
            low: percentile(&rtts, 0.1)?,
            events: events as f64,
        })
    };
    (0..count).filter_map(block).collect()
}

/// The slope of ln(highest queueing delay) over ln(rate): -1 where the link's rate changes.
fn delay_by_rate(part: &Part<'_>, blocks: &[Block]) -> Option<f64> {
    let queue = |block: &Block| block.high - part.test.min_rtt;
    let points: Vec<(f64, f64)> = blocks
        .iter()
        .filter(|block| queue(block) > MIN_QUEUE_S)
        .map(|block| (block.rate.ln(), queue(block).ln()))
        .collect();
    let x = mean(&points.iter().map(|point| point.0).collect::<Vec<f64>>())?;
    let y = mean(&points.iter().map(|point| point.1).collect::<Vec<f64>>())?;
    let squares: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let products: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let varies = squares / points.len() as f64 > MIN_SPREAD.powi(2);
    (points.len() >= MIN_BLOCKS && varies).then(|| (products / squares).clamp(-2.0, 2.0))
}

/// Two levels of the rate, the one split that explains most of its variation.
#[derive(Debug, Clone, Copy)]
struct Split {
    /// The share of the variance of ln(rate) that it explains.
    fit: f64,
    /// ln of later over earlier: rate, lowest RTT, and the queue above it.
    size: f64,
    rtt: f64,
    queue: f64,
    /// Difference of the congestion events per block, in standard deviations of a Poisson
    /// count.
    events: f64,
}

fn split(blocks: &[Block]) -> Option<Split> {
    if blocks.len() < MIN_BLOCKS {
        return None;
    }
    let rates: Vec<f64> = blocks.iter().map(|block| block.rate.ln()).collect();
    let all = mean(&rates)?;
    let variance: f64 = rates.iter().map(|rate| (rate - all).powi(2)).sum();
    let n = rates.len() as f64;
    let mut best: Option<(usize, f64)> = None;
    let (mut sum, total): (f64, f64) = (0.0, rates.iter().sum());
    for (index, rate) in rates.iter().enumerate().take(rates.len() - 1) {
        sum += rate;
        let left = index as f64 + 1.0;
        let between = left * (sum / left - all).powi(2)
            + (n - left) * ((total - sum) / (n - left) - all).powi(2);
        if best.is_none_or(|(_, most)| between > most) {
            best = Some((index + 1, between));
        }
    }
    let (at, between) = best?;
    let (before, after) = blocks.split_at_checked(at)?;
    let level = |read: fn(&Block) -> f64| {
        let of = |blocks: &[Block]| mean(&blocks.iter().map(read).collect::<Vec<f64>>());
        of(before).zip(of(after))
    };
    let ratio = |(a, b): (f64, f64)| (b / a).ln().clamp(-4.0, 4.0);
    let (before_events, after_events) = level(|block| block.events)?;
    let deviation =
        (before_events / before.len() as f64 + after_events / after.len() as f64).sqrt();
    Some(Split {
        fit: if variance > 1e-9 { between / variance } else { 0.0 },
        size: ratio(level(|block| block.rate)?),
        rtt: ratio(level(|block| block.low)?),
        queue: ratio(level(|block| (block.high - block.low) + 1e-4)?),
        events: (after_events - before_events) / deviation.max(1e-3).max(1.0 / n),
    })
}

#[cfg(test)]
mod tests {
    use crate::statistics::Statistic;
    use crate::{
        example::{sampled, samples, statistic as of},
        prepared,
    };
    use record::Sample;

    /// The rate falls to a fifth at 5 s; the queue's delay is then `later_ms`.
    fn falls(later_ms: u32) -> impl Fn(u64, &mut Sample) {
        move |index, s| {
            let less = 100_000 * index.saturating_sub(50);
            s.delivered_bytes -= less;
            s.acked_bytes -= less;
            s.rtt_us = if index <= 50 { 30_000 } else { 20_000 + later_ms * 1_000 };
        }
    }

    #[test]
    fn a_slower_link_delays_more_and_a_shared_one_does_not() {
        let slope = |later_ms| of("delay_by_rate", falls(later_ms)).unwrap();
        assert!((slope(50) + 1.0).abs() < 0.05, "{}", slope(50));
        assert!(slope(10).abs() < 0.05, "{}", slope(10));
        assert_eq!(of("delay_by_rate", |_, _| {}), None, "neither varies");
    }

    #[test]
    fn a_step_is_found_with_what_changed_in_it() {
        let near = |name, expected: f64| {
            let value = of(name, falls(50)).unwrap();
            assert!((value - expected).abs() < 0.05, "{name}: {value}");
        };
        near("step_fit", 1.0);
        near("step_size", 0.2f64.ln());
        near("step_rtt", (70.0f64 / 30.0).ln());
        let lossy = |index: u64, s: &mut Sample| {
            falls(50)(index, s);
            s.retransmits = index.saturating_sub(50) / 5;
        };
        assert!(of("step_events", lossy).unwrap() > 1.0);
        // Oscillation is no step.
        let saw = |index: u64, s: &mut Sample| {
            let more = 50_000 * u64::from(index % 20 < 10) * (index % 10);
            s.delivered_bytes += more;
            s.acked_bytes += more;
        };
        assert!(of("step_fit", saw).unwrap() < 0.5);
    }

    /// Alone in a standing queue, a larger window brings no rate.
    #[test]
    fn in_a_standing_queue_only_a_shared_link_gives_a_larger_window_more() {
        let window = |index: u64| 60_000 + 1_000 * (index % 50);
        let alone = |index: u64, s: &mut Sample| {
            s.cwnd_bytes = window(index);
            s.rtt_us = (window(index) / 2) as u32;
        };
        assert!(of("rate_by_window_queued", alone).unwrap().abs() < 0.05);
        assert!((of("rtt_by_window_queued", alone).unwrap() - 1.0).abs() < 0.05);
        let short = |index: u64, s: &mut Sample| s.cwnd_bytes = window(index);
        assert_eq!(of("rate_by_window_queued", short), None, "no queue");
    }

    #[test]
    fn a_short_part_has_no_levels() {
        let short = prepared(&sampled(samples(1.0, 10.0, |_, _| {}))).over(0.0, 1.0);
        assert_eq!(short.get(Statistic::StepFit), None);
    }
}
