//! Delivered rate and RTT over time.

use super::{Part, Statistic, Statistics, ln, share, variation};
use crate::series::Step;
use model::statistics::{median, percentile};

/// A rate within this share of the ceiling is at the ceiling.
const AT_CEILING: f64 = 0.95;

/// A rate below this share of the median is a stall.
const STALL: f64 = 0.3;

/// Blocks of rates for their variation: a second, or two RTTs.
const BLOCK_S: f64 = 1.0;

pub(super) fn add(part: &Part<'_>, all: &mut Statistics) {
    rates(part, all);
    rtts(part, all);
    acknowledgements(part, all);
}

fn rates(part: &Part<'_>, all: &mut Statistics) {
    let test = part.test;
    let rates = test.rates(part.from, part.to);
    let ceiling = percentile(&rates, 0.97).unwrap_or(0.0).max(1.0);
    let middle = median(&rates).unwrap_or(0.0);
    all.add(Statistic::LnMbps, Some(ln(test.rate(part.from, part.to) / 1e6, 1e-3)));
    let enough = rates.len() >= 5;
    all.add(Statistic::MedianOfCeiling, enough.then_some(middle / ceiling));
    all.add(
        Statistic::AtCeiling,
        share(&rates, |rate| rate >= AT_CEILING * ceiling).filter(|_| enough),
    );
    all.add(Statistic::Stalled, share(&rates, |rate| rate < STALL * middle).filter(|_| enough));
    all.add(Statistic::OfPeak, (test.peak() > 0.0).then(|| (middle / test.peak()).min(1.5)));
    let width = BLOCK_S.max(2.0 * test.min_rtt);
    let per_block = ((width / test.grid).round() as usize).max(1);
    let blocks: Vec<f64> =
        rates.chunks_exact(per_block).filter_map(model::statistics::mean).collect();
    all.add(Statistic::BlockVariation, variation(&blocks).map(|cv| ln(cv, 1e-3)));
    let lowest = blocks.iter().copied().fold(f64::INFINITY, f64::min);
    all.add(Statistic::LowestBlock, (blocks.len() >= 2).then(|| (lowest / ceiling).min(1.0)));
    let third = (rates.len() / 3).max(1);
    let mean = |rates: Option<&[f64]>| model::statistics::mean(rates?);
    let (first, last) =
        (mean(rates.get(..third)), mean(rates.get(rates.len() - third.min(rates.len())..)));
    let trend = first.zip(last).filter(|_| rates.len() >= 6);
    all.add(
        Statistic::RateTrend,
        trend.map(|(a, b)| (ln(b, ceiling * 1e-3) - ln(a, ceiling * 1e-3)).clamp(-4.0, 4.0)),
    );
    let changes: Vec<f64> =
        rates.windows(2).filter_map(|w| Some((w.get(1)? - w.first()?).abs() / ceiling)).collect();
    all.add(Statistic::RateSteps, median(&changes).map(|change| ln(change, 1e-3)));
    // Streams of one test that share a bottleneck alone sum to a flat rate.
    all.add(Statistic::Uneven, uneven(part));
}

/// Coefficient of variation of the streams' rates.
fn uneven(part: &Part<'_>) -> Option<f64> {
    let of = |steps: &&[Step]| {
        let rates: Vec<f64> = steps.iter().map(|step| step.rate).collect();
        model::statistics::mean(&rates)
    };
    let rates: Vec<f64> = part.streams.iter().filter_map(of).collect();
    variation(&rates)
}

fn rtts(part: &Part<'_>, all: &mut Statistics) {
    let least = part.test.min_rtt;
    let queueing = part.queueing();
    let at = |share: f64| percentile(&queueing, share);
    let relative = |q: f64| ln(q / least, 1e-3);
    let ms = |q: f64| ln(q * 1e3, 0.02);
    all.add(Statistic::Q10Ms, at(0.1).map(ms));
    all.add(Statistic::Q50Ms, at(0.5).map(ms));
    all.add(Statistic::Q95Ms, at(0.95).map(ms));
    all.add(Statistic::Q50PerRtt, at(0.5).map(relative));
    all.add(Statistic::Q95PerRtt, at(0.95).map(relative));
    let levels = at(0.1).zip(at(0.5)).zip(at(0.9));
    all.add(Statistic::QLow, levels.map(|((low, middle), _)| (low + 1e-5) / (middle + 1e-5)));
    all.add(
        Statistic::QSpread,
        levels.map(|((low, middle), high)| ln((high - low) / (middle + 1e-4), 1e-2)),
    );
    let deviation = part.values(|step| Some(f64::from(step.after.rttvar_us) / 1e6));
    all.add(Statistic::RttvarPerRtt, median(&deviation).map(relative));
    // Packets in the queue, by Little's law with the segment's rate.
    let rate = part.test.rate(part.from, part.to) / 8.0 / 1500.0;
    all.add(Statistic::LnQueued, at(0.5).map(|q| ln(q * rate, 0.1)));
    all.add(Statistic::LnQueuedMost, at(0.95).map(|q| ln(q * rate, 0.1)));
    let half = f64::midpoint(part.from, part.to);
    let low = |from: f64, to: f64| {
        let rtts: Vec<f64> = part
            .steps()
            .filter(|step| step.to > from && step.to <= to)
            .filter_map(Step::rtt)
            .collect();
        percentile(&rtts, 0.1)
    };
    let drift = low(part.from, half).zip(low(half, part.to));
    all.add(Statistic::RttShift, drift.map(|(a, b)| ln((b / a).ln().abs(), 1e-3)));
    let acks = part.mean(|step| step.after.ack_delay_us.map(|us| f64::from(us) / 1e6));
    let queued = model::statistics::mean(&queueing);
    all.add(Statistic::AckQMs, acks.map(ms));
    // Of both directions' queueing delay; timestamps have a resolution of 1 ms.
    all.add(Statistic::AckQShare, acks.zip(queued).map(|(acks, all)| acks / (all + 1e-3)));
    // The rate rises with the window only while the bottleneck is not saturated; the
    // RTT rises with it only once it is.
    all.add(Statistic::RttByWindow, slope(part, Step::rtt));
    all.add(
        Statistic::RateByWindow,
        slope(part, |step| Some(step.rate).filter(|rate| *rate > 0.0)),
    );
}

/// The slope of ln(figure) over ln(window), -1 to 2: 1 where the figure follows the window.
pub(super) fn slope(part: &Part<'_>, read: impl Fn(&Step) -> Option<f64>) -> Option<f64> {
    let mut sums = [0.0; 3];
    let mut all = 0;
    for steps in &part.streams {
        let points: Vec<(f64, f64)> = steps
            .iter()
            .filter(|step| step.lost <= 0.0 && step.after.cwnd_bytes > 0)
            .filter_map(|step| Some((step.cwnd().ln(), read(step)?.ln())))
            .filter(|(x, y)| x.is_finite() && y.is_finite())
            .collect();
        let n = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
        for point in &points {
            sums[0] += (point.0 - x).powi(2);
            sums[1] += (point.0 - x) * (point.1 - y);
        }
        sums[2] += n;
        all += points.len();
    }
    // A window that hardly varies tells nothing: less than 3 %.
    let varies = sums[0] / sums[2].max(1.0) > 0.03f64.powi(2);
    (all >= 8 && varies).then(|| (sums[1] / sums[0]).clamp(-1.0, 2.0))
}

/// What the acknowledgements show: marks, duplicates, reordering, how many they are.
fn acknowledgements(part: &Part<'_>, all: &mut Statistics) {
    let delivered = part.sum(|step| Some(step.rate * step.seconds() / 8.0 / step.mss()));
    let delivered = delivered.filter(|segments| *segments > 0.0);
    let sum = |read: fn(&record::Sample) -> Option<u32>| part.sum(|step| step.growth32(read));
    // RFC 3168 echoes a mark for an RTT, so the kernel's count exceeds the marks.
    let marked = |step: &Step| step.growth32(|s| s.ce_delivered);
    let marked = part.mean(|step| Some(f64::from(u8::from(marked(step)? > 0.0))));
    all.add(Statistic::Marked, marked.map(|share| ln(share, 1e-3)));
    let lost = part.sum(|step| Some(step.lost)).filter(|lost| *lost > 0.0);
    let spurious = sum(|s| s.dsack_duplicates);
    all.add(Statistic::SpuriousShare, spurious.zip(lost).map(|(dup, lost)| (dup / lost).min(2.0)));
    all.add(Statistic::LnReorderings, sum(|s| s.reorderings).map(|count| ln(count, 1.0)));
    let acks = sum(|s| s.acks).zip(delivered);
    all.add(Statistic::LnSegmentsPerAck, acks.map(|(acks, all)| ln(all / acks.max(1.0), 0.1)));
}

#[cfg(test)]
mod tests {
    use crate::example::{close, statistic as of};
    use record::Sample;

    #[test]
    fn a_constant_rate_is_at_its_ceiling() {
        close(of("ln_mbps", |_, _| {}), 10f64.ln());
        close(of("at_ceiling", |_, _| {}), 1.0);
        close(of("median_of_ceiling", |_, _| {}), 1.0);
        assert!(of("block_variation", |_, _| {}).unwrap() < (2e-3f64).ln());
        close(of("rate_trend", |_, _| {}), 0.0);
    }

    #[test]
    fn stalls_and_trends_show() {
        let stalls = |index: u64, s: &mut Sample| {
            let stalled = 125_000 * (index / 10) + 15_000 * (index % 10).min(8);
            (s.delivered_bytes, s.acked_bytes) = (stalled, stalled);
        };
        close(of("stalled", stalls), 0.1);
        let grows = |index: u64, s: &mut Sample| {
            let grown = 1_250 * index * index;
            (s.delivered_bytes, s.acked_bytes) = (grown, grown);
        };
        assert!(of("rate_trend", grows).unwrap() > 1.0);
    }

    #[test]
    fn queueing_delay_is_above_the_minimum_rtt() {
        close(of("q50_ms", |_, s| s.rtt_us = 25_000), 5.02f64.ln());
        close(of("q50_per_rtt", |_, s| s.rtt_us = 30_000), 0.501f64.ln());
        assert_eq!(of("q50_ms", |_, s| s.rtt_us = 0), None);
    }

    /// A window that fills a queue raises the RTT, one below it the rate.
    #[test]
    fn the_rtt_follows_the_window_at_a_saturated_bottleneck() {
        let window = |index: u64| 100_000 + 2_000 * (index % 50);
        let full = |index: u64, s: &mut Sample| {
            s.cwnd_bytes = window(index);
            s.rtt_us = (window(index) / 5) as u32;
        };
        close(of("rtt_by_window", full), 1.0);
        close(of("rate_by_window", full), 0.0);
        assert_eq!(of("rtt_by_window", |_, _| {}), None, "a constant window tells nothing");
    }

    #[test]
    fn figures_that_a_kernel_does_not_report_are_absent() {
        for name in ["marked", "ln_reorderings", "ln_segments_per_ack", "spurious_share"] {
            assert_eq!(of(name, |_, _| {}), None, "{name}");
        }
        let acks = |index: u64, s: &mut Sample| s.acks = Some(index as u32 * 10);
        // 12,500 segments in 1000 acknowledgements.
        close(of("ln_segments_per_ack", acks), 12.6f64.ln());
        assert_eq!(of("marked", |_, s| s.ce_delivered = Some(7)), Some(1e-3f64.ln()));
    }
}
