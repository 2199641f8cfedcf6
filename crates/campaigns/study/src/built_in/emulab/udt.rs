//! Of UDT: what loss costs, how it is acknowledged, and how its rate rises.

use super::super::Measured;
use super::super::runs::{Runs, mbit};
use model::statistics;
use record::FlowFigures;

/// UDT's throughput collapses where loss leaves less than this share of it.
const COLLAPSED: f64 = 0.2;

/// Full acknowledgements per packet in a slow network: about one. They come each 10 ms at most,
/// and a packet of 100 kbit/s takes 120 ms; the last one of a window is acknowledged twice.
const NEAR_ONE: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// The most of them at 1 Gbit/s, where 850 packets arrive in 10 ms.
const FEW: f64 = 1.0 / 500.0;

/// A light acknowledgement after this many packets, within this share.
const LIGHT_EVERY: f64 = 64.0;
const ABOUT: f64 = 0.15;

/// Intervals that are enough to speak of how the rate rises.
const ENOUGH: u64 = 20;

/// The share of them in which it rises as alpha(x) has it.
const MOSTLY: f64 = 0.9;

/// The total rise of the rate, over alpha(x): no more, and not less than where every second
/// acknowledgement comes too early to count.
const GROWN: std::ops::RangeInclusive<f64> = 0.45..=1.1;

/// The share of the link's rate that counts as almost all of it, and in which time it is reached:
/// alpha(x) raises the rate by some 0.12 of 100 Mbit/s or of 1 Gbit/s each second.
const ALMOST_ALL: f64 = 0.8;
const RAPID_S: usize = 12;
/// The share that is left in the mean after that.
const STAYS: f64 = 0.75;
/// A second after NAKs has a drop where its goodput is less than this share of the one before.
const DROPPED: f64 = 0.9;

/// UDT's flow over the path of figure 6 with that RTT and loss, and the link's rate in bit/s.
fn flow_of<'a>(runs: &Runs<'a>, rtt: &str, loss: &str) -> Option<(&'a FlowFigures, f64)> {
    let run = runs.valid("series-udt", &[("rtt", rtt), ("loss", loss)]).into_iter().next()?;
    Some((run.flows.first()?, runs.link_bps("series-udt", run)?))
}

/// When UDT has almost all of the link, and what it has from then on.
pub(super) fn rapid(runs: &Runs<'_>) -> Option<Measured> {
    let mut holds = true;
    let mut words = Vec::new();
    for (rtt, path) in [("1ms", "without delay"), ("101ms", "with 50 ms each way")] {
        let (flow, link) = flow_of(runs, rtt, "0%")?;
        let (lossy, _) = flow_of(runs, rtt, "1%")?;
        let reached = flow.series_bps.iter().position(|second| *second >= link * ALMOST_ALL);
        let after = reached.and_then(|at| statistics::mean(&flow.series_bps[at..]));
        holds &= reached.is_some_and(|at| at < RAPID_S)
            && after.is_some_and(|mean| mean >= link * STAYS)
            && lossy.throughput_bps < flow.throughput_bps * COLLAPSED;
        let stays = match reached.zip(after) {
            Some((at, mean)) => format!("after {at} s, and {} from then on", mbit(mean)),
            None => format!("at no time, {} in the mean", mbit(flow.throughput_bps)),
        };
        let lossy = mbit(lossy.throughput_bps);
        words.push(format!("{path} 80 % of the link {stays}; {lossy} with 1 % loss"));
    }
    Some(Measured { text: words.join("; "), holds })
}

/// NAKs of a delayed path on which no loss is injected, and the deepest drop after them.
pub(super) fn delay_naks(runs: &Runs<'_>) -> Option<Measured> {
    let (flow, _) = flow_of(runs, "101ms", "0%")?;
    let count = flow.naks.unwrap_or(0);
    let with_naks: Vec<usize> =
        flow.nak_series.iter().enumerate().filter(|(_, n)| **n > 0).map(|(at, _)| at).collect();
    let series = &flow.series_bps;
    // What is in flight, and in the queue, still arrives.
    let drops = with_naks.iter().filter_map(|at| {
        let before = series.get(at.checked_sub(1)?)?;
        let after = series.get(*at..series.len().min(at + 3))?;
        Some((*before, after.iter().copied().reduce(f64::min)?))
    });
    let deepest = drops.min_by(|a, b| (a.1 / a.0.max(1.0)).total_cmp(&(b.1 / b.0.max(1.0))));
    let fell = deepest.map_or("no drop after them".to_owned(), |(before, after)| {
        format!("the deepest drop after them is from {} to {}", mbit(before), mbit(after))
    });
    Some(Measured {
        text: format!(
            "{count} NAKs in {} of {} s without injected loss, as the rate rises until the queue is \
             full; {fell}",
            with_naks.len(),
            series.len()
        ),
        holds: count > 0 && deepest.is_some_and(|(before, after)| after < before * DROPPED),
    })
}

/// Loss costs UDT's own control more than delay.
pub(super) fn loss(runs: &Runs<'_>) -> Option<Measured> {
    let mut holds = true;
    let mut words = Vec::new();
    for rate in runs.values("grid-udt", "rate") {
        let at = |congestion, rtt, loss| {
            let cell =
                [("rate", &rate[..]), ("congestion", congestion), ("rtt", rtt), ("loss", loss)];
            runs.goodput("grid-udt", &cell)
        };
        let udt = |rtt, loss| at("udt", rtt, loss);
        let (plain, delayed, lossy) = (udt("1ms", "0%")?, udt("101ms", "0%")?, udt("1ms", "1%")?);
        holds &= lossy < delayed && lossy < plain * COLLAPSED;
        words.push(format!(
            "{rate}: {} plain, {} with 50 ms each way, {} with 1 % loss, {} with that loss and BBR",
            mbit(plain),
            mbit(delayed),
            mbit(lossy),
            mbit(at("bbr", "1ms", "1%")?)
        ));
    }
    Some(Measured { text: words.join("; "), holds: holds && !words.is_empty() })
}

/// Full and light acknowledgements per data packet.
pub(super) fn acknowledgements(runs: &Runs<'_>) -> Option<Measured> {
    let mut words = Vec::new();
    let mut at = Vec::new();
    for rate in runs.values("acks", "rate") {
        let cell = [("rate", &rate[..])];
        let full = runs.mean("acks", &cell, |run| run.flows.first()?.acks_per_packet)?;
        let light = runs.mean("acks", &cell, |run| run.flows.first()?.light_acks_per_packet)?;
        words.push(format!("{rate}: {} full and {} light per packet", ratio(full), ratio(light)));
        at.push((full, light));
    }
    let (slowest, fastest) = (at.first()?, at.last()?);
    Some(Measured {
        text: words.join("; "),
        holds: NEAR_ONE.contains(&slowest.0)
            && fastest.0 < FEW
            && (fastest.1 * LIGHT_EVERY - 1.0).abs() <= ABOUT,
    })
}

/// Few as a fraction, as they are thought of: 1/64.
fn ratio(count: f64) -> String {
    if count > 0.0 && count < 0.1 { format!("1/{:.0}", 1.0 / count) } else { format!("{count:.2}") }
}

/// The increases of UDT's own control against alpha(x), over every run.
pub(super) fn increase(runs: &Runs<'_>) -> Option<Measured> {
    let (mut count, mut by_alpha, mut grown) = (0, 0, 0.0);
    let all = runs.valid("grid-udt", &[("congestion", "udt")]);
    for flow in all.iter().flat_map(|run| &run.flows) {
        let increases = flow.increases?;
        count += increases;
        by_alpha += flow.increases_by_alpha?;
        grown += flow.growth_over_alpha.unwrap_or(0.0) * increases as f64;
    }
    let each = count.max(1) as f64;
    let (share, grown) = (by_alpha as f64 / each, grown / each);
    (!all.is_empty()).then(|| Measured {
        text: format!(
            "the rate rose in {count} intervals without a NAK between two samples, {by_alpha} of \
             them as alpha(x) predicts; {grown:.2} times alpha(x) in each SYN in the mean of {} \
             runs",
            all.len()
        ),
        holds: count >= ENOUGH && share >= MOSTLY && GROWN.contains(&grown),
    })
}
