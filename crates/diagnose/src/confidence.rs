//! How sure a limit is.
//!
//! A limit is *sure* where the evidence for it is far from its threshold and no
//! other cause leaves the same traces. `verify/benches/truth` counts how many of
//! those are wrong, over paths that these figures were not fitted to.

use crate::{evidence::Evidence, judge, network};
use record::{Confidence, Limit, Measurement, Shares};

/// Shorter steady parts speak for nothing: in round trips, and in seconds.
const ROUND_TRIPS: f64 = 10.0;
const SECONDS: f64 = 1.0;

/// A clock that ran for so much of the time leaves no doubt.
const CLEARLY_HELD: f64 = 0.7;

/// A window over a round trip that explains the goodput this well is what held it.
const EXPLAINS: std::ops::RangeInclusive<f64> = 0.75..=1.2;

/// A rate that varies no more than this stands still.
const STILL: f64 = 0.05;

/// `None` where the limit is not known.
pub(crate) fn of(
    limit: Limit,
    m: &Measurement,
    e: &Evidence,
    shares: Option<&Shares>,
) -> Option<Confidence> {
    let sure = match limit {
        Limit::Unknown => return None,
        Limit::Application => {
            judge::asked_for_no_more(m, e)
                || shares.is_some_and(|shares| shares.application >= CLEARLY_HELD)
        }
        Limit::ReceiveWindow => {
            let held = shares.is_none_or(|shares| shares.receive_window >= CLEARLY_HELD);
            let filled = e.window_filled.is_some_and(|filled| filled >= 0.9);
            (held || filled) && explains(e.window_sum(), e)
        }
        Limit::SendBuffer => shares.is_some_and(|shares| shares.send_buffer >= CLEARLY_HELD),
        Limit::PathRate => {
            let still = e.variation.is_some_and(|variation| variation <= STILL);
            still && (e.has_standing_queue() || network::is_bbr(m))
        }
        Limit::Cpu => true,
        Limit::Pacing => e.is_flat() && e.max_pacing.is_some(),
        Limit::Ramp => e.cwnd_growth.is_some_and(|growth| growth >= 1.5),
        Limit::Loss => {
            let anywhere = e.bucket.is_some_and(|bucket| bucket.rank >= 0.35);
            anywhere && network::is_scattered(e)
        }
        Limit::Policer | Limit::Congestion => false,
    };
    // A ramp is short by its nature.
    let long = limit == Limit::Ramp || is_long(e);
    Some(if sure && long { Confidence::Sure } else { Confidence::Likely })
}

fn is_long(e: &Evidence) -> bool {
    let seconds = e.steady.to_s - e.steady.from_s;
    let rtt = e.min_rtt.map_or(0.0, units::Rtt::secs_f64);
    seconds >= SECONDS && seconds >= ROUND_TRIPS * rtt
}

fn explains(bytes: Option<units::ByteCount>, e: &Evidence) -> bool {
    let rate = bytes.zip(e.min_rtt).and_then(|(bytes, rtt)| model::window_rate(bytes, rtt));
    rate.is_some_and(|rate| EXPLAINS.contains(&(e.goodput.as_f64() / rate.as_f64().max(1.0))))
}
