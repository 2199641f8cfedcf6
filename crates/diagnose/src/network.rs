//! The causes that the kernel's clocks count as one: the network and its
//! congestion control.
//!
//! | cause | its signs |
//! |---|---|
//! | ramp | at speed late or never, congestion window growing, nothing lost |
//! | path rate | flat rate and a standing queue that loses where it is longest, if anywhere; or the known path's payload rate |
//! | loss | segments sent again, no such queue, a rate that Mathis or CUBIC predicts |
//! | policer | no such queue, and losses unevenly spread where a token bucket would be empty; or often and in clumps at a flat rate; or in bursts, yet a flat rate above that prediction |
//! | pacing | delivered at the most the socket may be paced at; or at the pacing rate, congestion window not filled |
//! | congestion | held by the congestion window without any of these |

use crate::{bucket::AtLosses, evidence::Evidence, predict};
use record::{Limit, Measurement};

/// Within 8 % of the known path's payload rate, the path is full.
const NEAR_FULL: f64 = 0.92;

/// A flat rate over a standing queue is the known path's from here.
const QUEUE_AND: f64 = 0.8;

/// Loss equations speak of averages: this factor either way agrees with them.
const AGREES: f64 = 2.5;

/// So much loss leaves timeouts, of which these equations know nothing (Padhye et
/// al. do), and no queue loses as much for long.
const HEAVY: f64 = 0.02;

/// A congestion window that grew so much over the second half was still opening.
const GROWING: f64 = 1.1;

/// The same where the rate came close to its last for longer.
pub(crate) const STILL_OPENING: f64 = 1.25;

/// In flight over congestion window, from which the window is what holds.
const FILLED: f64 = 0.8;

/// Segments sent again for each interval with any, from which they come in bursts.
const BURST: f64 = 5.0;

/// So many lost tell how they are spread; chance spreads them by 1, and by 1.2 where
/// the rate saws.
const OFTEN: f64 = 60.0;
const CLUMPS: f64 = 1.8;

/// The same where other signs speak for a policer: labelled ones began at 1.37, chance
/// ended at 1.14.
const UNEVEN: f64 = 1.25;

/// How low a policer's bucket is at most, where other signs speak for one.
const LOW: f64 = 0.4;

/// Segments lost at once where slow start overshoots, and the round trip over the
/// least one up to which no queue of a bottleneck filled: those hold half of what
/// the path does, or more.
const OVERSHOOT: u64 = 20;
const HALF_A_QUEUE: f64 = 1.6;

/// The limit, where the clocks say network.
pub(crate) fn limit(m: &Measurement, e: &Evidence) -> Limit {
    if is_at_the_most_it_may(e) {
        Limit::Pacing
    } else if is_ramp(m, e) {
        Limit::Ramp
    } else if is_path_rate(m, e) {
        Limit::PathRate
    } else if drops_where_a_bucket_is_empty(m, e) || drops_in_clumps_at_one_rate(m, e) {
        Limit::Policer
    } else if is_loss(m, e) {
        Limit::Loss
    } else if drops_in_bursts(m, e) {
        Limit::Policer
    } else if is_heavy_loss(m, e) {
        Limit::Loss
    } else if is_pacing(e) {
        Limit::Pacing
    } else if is_congestion(e) {
        Limit::Congestion
    } else {
        Limit::Unknown
    }
}

fn is_ramp(m: &Measurement, e: &Evidence) -> bool {
    if e.retransmits > 0 {
        return false;
    }
    let growth = e.cwnd_growth.unwrap_or(GROWING);
    let opening = !e.is_flat() && !e.has_standing_queue() && growth >= STILL_OPENING;
    (e.late && growth >= GROWING) || opening || ends_in_slow_start(m, e)
}

/// On a known path: shorter than slow start takes to fill it.
fn ends_in_slow_start(m: &Measurement, e: &Evidence) -> bool {
    let Some((path, mss)) = m.path.as_ref().zip(e.mss) else {
        return false;
    };
    let Some(rate) = path.rate_bps else {
        return false;
    };
    let window =
        model::per_stream(model::bdp(rate, path.rtt), u32::try_from(e.streams).unwrap_or(u32::MAX));
    model::slow_start_time(window, mss, path.rtt)
        .is_some_and(|needed| e.steady.to_s < needed.as_secs_f64())
}

fn is_path_rate(m: &Measurement, e: &Evidence) -> bool {
    match predict::path_payload(m, e) {
        Some(path) => {
            let used = e.goodput.as_f64() / path.goodput.as_f64().max(1.0);
            used >= NEAR_FULL || (used >= QUEUE_AND && e.is_flat() && e.has_standing_queue())
        }
        None if is_bbr(m) => {
            let queue = e.has_standing_queue() && e.is_flat();
            queue || delivers_as_paced(e)
        }
        None => e.is_flat() && e.has_filling_queue(),
    }
}

fn is_loss(m: &Measurement, e: &Evidence) -> bool {
    let asked = m.path.as_ref().map(|path| path.loss.fraction() > 0.0);
    // On a known path without random loss, what was lost fell out of its queue.
    if e.loss.is_none() || asked == Some(false) || is_bbr(m) {
        return false;
    }
    let Some((least, most)) = predict::loss_range(m, e) else {
        return false;
    };
    let rate = e.per_stream().as_f64();
    let agrees = (least.as_f64() / AGREES..=most.as_f64() * AGREES).contains(&rate);
    agrees && (asked == Some(true) || !e.has_filling_queue())
}

/// Whether losses come by ones and twos, as chance has it, not as a queue or a
/// policer overflows.
pub(crate) fn is_scattered(e: &Evidence) -> bool {
    e.burst > 0.0 && e.burst < BURST && !e.has_filling_queue()
}

fn is_heavy_loss(m: &Measurement, e: &Evidence) -> bool {
    let random = m.path.as_ref().is_none_or(|path| path.loss.fraction() > 0.0);
    // Round trips of a few ms look queued where each packet takes half of one to send.
    let least = if e.has_filling_queue() { 2.0 * HEAVY } else { HEAVY };
    random && !is_bbr(m) && e.loss.is_some_and(|loss| loss >= least)
}

fn drops_where_a_bucket_is_empty(m: &Measurement, e: &Evidence) -> bool {
    // By ones and twos chance may lose where a bucket happens to be low.
    let empty = e.bucket.is_some_and(AtLosses::is_empty) && e.dispersion >= UNEVEN;
    empty && may_police(m) && !e.has_filling_queue() && !is_bbr(m)
}

/// Chance that loses so often lets no rate be flat, and never so unevenly.
fn drops_in_clumps_at_one_rate(m: &Measurement, e: &Evidence) -> bool {
    let clumps = e.steady_retransmits >= OFTEN && e.dispersion >= CLUMPS;
    clumps && may_police(m) && e.is_flat() && !e.has_filling_queue() && !is_bbr(m)
}

fn drops_in_bursts(m: &Measurement, e: &Evidence) -> bool {
    let bursts = e.steady_retransmits >= 2.0 * BURST && e.burst >= BURST;
    let bursts = bursts || (overshot_without_a_queue(e) && !is_bbr(m));
    let low = e.bucket.is_none_or(|bucket| bucket.rank <= LOW);
    bursts && low && may_police(m) && e.is_flat() && !e.has_filling_queue()
}

/// Slow start lost many segments at once, and no queue had filled before.
fn overshot_without_a_queue(e: &Evidence) -> bool {
    let queued = e
        .min_rtt
        .zip(e.peak_rtt)
        .is_none_or(|(least, most)| most.nanos() as f64 > HALF_A_QUEUE * least.nanos() as f64);
    e.largest_burst >= OVERSHOOT && !queued
}

/// On a known path it is known.
fn may_police(m: &Measurement) -> bool {
    m.path.as_ref().is_none_or(|path| path.achieved.drops.policer > 0)
}

/// Delivered at the most that the program lets its socket be paced at, headers
/// left out.
fn is_at_the_most_it_may(e: &Evidence) -> bool {
    e.max_pacing
        .is_some_and(|most| (0.88..=1.03).contains(&(e.goodput.as_f64() / most.as_f64().max(1.0))))
}

/// A window that was filled or cut, and that accounts for the rate: one that
/// would carry several times as much held nothing.
fn is_congestion(e: &Evidence) -> bool {
    let window = e.cwnd.zip(e.loaded_rtt).and_then(|(cwnd, rtt)| model::window_rate(cwnd, rtt));
    let accounts = window.is_none_or(|rate| rate.as_f64() <= AGREES * e.goodput.as_f64());
    let filled = e.cwnd_filled.is_some_and(|filled| filled >= FILLED);
    accounts && (filled || e.steady_retransmits > 0.0)
}

fn is_pacing(e: &Evidence) -> bool {
    delivers_as_paced(e) && e.cwnd_filled.is_some_and(|filled| filled < FILLED)
}

/// CUBIC's own pacing runs at 1.2 congestion windows a round trip, so that
/// what it delivers stays a sixth below.
fn delivers_as_paced(e: &Evidence) -> bool {
    let rates = e.delivery.or(Some(e.goodput)).zip(e.pacing);
    rates.is_some_and(|(delivery, pacing)| {
        pacing.bps() > 0 && (delivery.as_f64() / pacing.as_f64() - 1.0).abs() <= 0.05
    })
}

pub(crate) fn is_bbr(m: &Measurement) -> bool {
    predict::congestion(m).is_some_and(|name| name.starts_with("bbr"))
}
