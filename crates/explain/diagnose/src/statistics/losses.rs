//! Losses: how many, in what clusters, and the state just before them.

use super::{Part, Statistic, Statistics, ln, share, variation};
use crate::{events::Event, policer_evidence, series::Step};
use model::statistics::{mean, median, percentile};
use units::{ByteCount, Rtt};

pub(super) fn add(part: &Part<'_>, all: &mut Statistics) {
    let test = part.test;
    let events: Vec<&Event> = part.events.iter().flatten().collect();
    let lost: f64 = part.steps().map(|step| step.lost).sum();
    let sampled = !part.streams.iter().all(|steps| steps.is_empty());
    let count = events.len() as f64;
    all.add(Statistic::LnEvents, sampled.then(|| ln(count, 0.5)));
    all.add(Statistic::LnLost, sampled.then(|| ln(lost, 0.5)));
    let rtts = part.seconds() / test.min_rtt;
    let streams = part.streams.len().max(1) as f64;
    all.add(Statistic::LnEventsPerRtt, sampled.then(|| ln(count / streams / rtts, 1e-4)));
    let segments: f64 =
        part.steps().map(|step| step.rate * step.seconds() / 8.0 / step.mss()).sum();
    let ratio = (segments > 0.0).then(|| lost / (segments + lost));
    all.add(Statistic::LnLoss, ratio.filter(|_| sampled).map(|ratio| ln(ratio, 1e-7)));
    all.add(Statistic::OfLossEquation, ratio.and_then(|ratio| of_equation(part, ratio)));
    let of = |read: fn(&Event) -> f64| events.iter().map(|e| read(e)).collect::<Vec<f64>>();
    let sizes = of(|event| event.lost);
    all.add(Statistic::LostPerEvent, median(&sizes).map(|size| ln(size, 0.0)));
    all.add(Statistic::MostLost, percentile(&sizes, 1.0).map(|size| ln(size, 0.0)));
    all.add(Statistic::MeanLost, mean(&sizes).map(|size| ln(size, 0.0)));
    all.add(Statistic::Clusters, share(&sizes, |size| size >= 4.0));
    all.add(Statistic::Singles, share(&sizes, |size| size <= 2.0));
    all.add(Statistic::Dispersion, dispersion(part).map(|index| ln(index, 0.1)));

    let queueing = of(|event| event.queueing);
    all.add(Statistic::QAtLossMs, median(&queueing).map(|q| ln(q * 1e3, 0.02)));
    all.add(Statistic::QAtLossPerRtt, median(&queueing).map(|q| ln(q / test.min_rtt, 1e-3)));
    all.add(Statistic::QAtLossVariation, variation(&queueing).map(|cv| ln(cv, 1e-2)));
    all.add(Statistic::QAtLossRank, rank(part.queueing(), &queueing));
    let backlog: Vec<f64> = events.iter().map(|event| event.backlog(test.min_rtt)).collect();
    all.add(Statistic::LnBacklog, median(&backlog).map(|packets| ln(packets, 0.3)));
    all.add(Statistic::LnLeastBacklog, percentile(&backlog, 0.1).map(|packets| ln(packets, 0.3)));

    // Each stream's rates against its own ceiling.
    let mut rates = Vec::new();
    for (events, steps) in part.events.iter().zip(&part.streams) {
        let all: Vec<f64> = steps.iter().map(|step| step.rate).collect();
        if let Some(ceiling) = percentile(&all, 0.97).filter(|rate| *rate > 0.0) {
            rates.extend(events.iter().map(|event| (event.rate / ceiling).min(1.5)));
        }
    }
    all.add(Statistic::RateAtLoss, median(&rates));
    all.add(Statistic::RateAtLossLeast, percentile(&rates, 0.1));
    all.add(Statistic::RateAtLossVariation, variation(&rates).map(|cv| ln(cv, 1e-2)));
    windows(part, all);

    // An unshared queue drains by the reduction: the share of the delay that is left.
    let left: Vec<f64> = events
        .iter()
        .filter(|event| event.queueing > 1e-4)
        .map(|event| event.drained / event.queueing)
        .collect();
    all.add(Statistic::QAfterLoss, median(&left));
    let gaps: Vec<f64> = part
        .events
        .iter()
        .flat_map(|events| events.windows(2))
        .filter_map(|pair| Some(pair.get(1)?.at - pair.first()?.at))
        .collect();
    all.add(Statistic::GapVariation, variation(&gaps).filter(|_| gaps.len() >= 3));
    all.add(Statistic::LnGapRtts, mean(&gaps).map(|gap| ln(gap / test.min_rtt, 0.1)));
    let last = events.iter().map(|event| event.at).fold(part.from, f64::max);
    let since = (part.to - last) / part.seconds();
    all.add(Statistic::SinceLoss, (!events.is_empty()).then_some(since));

    let bucket = policer_evidence::at_losses(test.facts.m, part.from, part.to);
    all.add(Statistic::BucketRank, bucket.map(|at| at.rank));
    all.add(Statistic::BucketSpread, bucket.map(|at| at.spread));
}

/// ln of one stream's rate over what the loss ratio allows it (Mathis, or CUBIC's response
/// function, RFC 9438 4.x: the larger).
fn of_equation(part: &Part<'_>, ratio: f64) -> Option<f64> {
    let p = model::loss_from_fraction(ratio).filter(|_| ratio > 0.0)?;
    let rtts = part.values(Step::rtt);
    let rtt = Rtt::from_micros((median(&rtts)? * 1e6) as u64);
    let mss = ByteCount::from_f64(part.steps().next()?.mss());
    let most = model::mathis(mss, rtt, p)?.max(model::cubic_region(mss, rtt, p)?);
    let streams = part.streams.len().max(1) as f64;
    let each = part.test.rate(part.from, part.to) / streams;
    Some((each / most.as_f64().max(1.0)).max(1e-6).ln().clamp(-6.0, 6.0))
}

/// Index of dispersion (variance over mean) of the losses per step, for the stream with the
/// most: 1 for independent loss.
fn dispersion(part: &Part<'_>) -> Option<f64> {
    let of = |steps: &&[Step]| {
        let lost: f64 = steps.iter().map(|step| step.lost).sum();
        let mean = lost / steps.len().max(1) as f64;
        let squares: f64 = steps.iter().map(|step| (step.lost - mean).powi(2)).sum();
        (lost, squares / lost)
    };
    let all = part.streams.iter().map(of).filter(|(lost, _)| *lost > 0.0);
    all.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, index)| index)
}

/// The mean rank of values among all, 0 to 1: 0.5 by chance.
fn rank(mut all: Vec<f64>, values: &[f64]) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    let below = |value: &f64| all.partition_point(|other| other < value) as f64;
    let sum: f64 = values.iter().map(below).sum();
    (!all.is_empty() && !values.is_empty()).then(|| sum / (values.len() * all.len()) as f64)
}

/// The windows at losses: a ceiling makes them alike, independent loss does not care.
fn windows(part: &Part<'_>, all: &mut Statistics) {
    let mut windows = Vec::new();
    let (mut test, mut n) = (0.0, 0.0);
    for (events, steps) in part.events.iter().zip(&part.streams) {
        let own: Vec<f64> = events.iter().map(|event| event.window).collect();
        let Some(middle) = median(&own).filter(|w| *w > 0.0) else { continue };
        windows.extend(own.iter().map(|w| w / middle));
        // T = -n ln f is Exp(1) under independent loss, f the share of packets sent
        // with a window of at least 97 % of the lowest window at a loss.
        let least = 0.97 * own.iter().copied().fold(f64::INFINITY, f64::min);
        let sent = |step: &Step| step.rate * step.seconds();
        let whole: f64 = steps.iter().map(sent).sum();
        let high = steps.iter().filter(|step| step.before.cwnd_bytes as f64 / step.mss() >= least);
        let high: f64 = high.map(sent).sum();
        if whole > 0.0 {
            test -= own.len() as f64 * (high / whole).clamp(1e-4, 1.0).ln();
            n += 1.0;
        }
    }
    all.add(Statistic::WindowVariation, variation(&windows).map(|cv| ln(cv, 1e-2)));
    all.add(Statistic::LnCeilingTest, (n > 0.0).then(|| ln(test / n, 0.05)));
}

#[cfg(test)]
mod tests {
    use crate::example::{close, statistic as of};
    use record::Sample;

    /// A counter that grows by `lost` each second.
    fn each_second(lost: u64) -> impl Fn(u64, &mut Sample) {
        move |index, s| s.retransmits = lost * ((index + 5) / 10)
    }

    #[test]
    fn events_and_their_sizes_are_counted() {
        close(of("ln_events", each_second(1)), 10.5f64.ln());
        close(of("ln_lost", each_second(20)), 200.5f64.ln());
        close(of("mean_lost", each_second(20)), 20f64.ln());
        assert_eq!(of("clusters", each_second(1)), Some(0.0));
        assert_eq!(of("singles", each_second(20)), Some(0.0));
        // 12,500 segments of 1000 bytes.
        close(of("ln_loss", each_second(1)), (10.0f64 / 12_510.0).ln());
    }

    #[test]
    fn without_losses_their_state_is_absent() {
        for name in ["lost_per_event", "q_at_loss_ms", "rate_at_loss", "since_loss", "clusters"] {
            assert_eq!(of(name, |_, _| {}), None, "{name}");
        }
        close(of("ln_events", |_, _| {}), 0.5f64.ln());
    }

    #[test]
    fn losses_when_the_queue_is_longest_rank_high() {
        let queue = |lost_at: u64| {
            move |index: u64, s: &mut Sample| {
                s.rtt_us = 20_000 + 1_000 * (index % 10) as u32;
                s.retransmits = (index + 10 - lost_at) / 10;
            }
        };
        let (full, any) = (of("q_at_loss_rank", queue(9)), of("q_at_loss_rank", queue(4)));
        assert!(full.unwrap() > 0.8 && any.unwrap() < 0.6, "{full:?} {any:?}");
        close(of("q_at_loss_ms", queue(9)), 9.02f64.ln());
    }

    #[test]
    fn independent_losses_are_not_dispersed() {
        assert!(
            of("dispersion", each_second(20)).unwrap() > of("dispersion", each_second(1)).unwrap()
        );
    }
}
