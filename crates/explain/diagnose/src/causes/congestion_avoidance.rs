//! Congestion avoidance: after slow start's overshoot or an earlier loss, the congestion
//! window grows slowly, below the bottleneck rate.
//!
//! > goodput = cwnd / RTT under load
//!
//! After a loss at a window of W segments, CUBIC is back at W after K = cbrt(W (1 - b) / C)
//! seconds, b = 0.7 and C = 0.4 (RFC 9438, section 4.2), whatever the RTT; Reno adds a
//! segment per RTT and takes W / 2 RTTs (RFC 5681, section 3.1).

use crate::{
    causes::{Cause, Observed},
    next_limit::{NextLimit, unpromised},
    phrases,
    predict::{self, Prediction},
};
use model::{CUBIC_BETA, CUBIC_C};
use record::{Limit, Remedy};
use units::ByteCount;

/// A shorter time to grow back is not worth a remark.
const SLOW_S: f64 = 1.0;

pub(super) struct CongestionAvoidance;

impl Cause for CongestionAvoidance {
    fn limit(&self) -> Limit {
        Limit::CongestionAvoidance
    }

    fn noun(&self) -> &'static str {
        "slow growth of the congestion window"
    }

    /// The median window over the median RTT, which includes queueing delay.
    /// BBR's window is twice what it has in flight.
    fn prediction(&self, o: &Observed<'_>) -> Option<Prediction> {
        let cwnd = o.e.cwnd.filter(|_| !o.facts.is_bbr())?;
        predict::over_rtt(
            &format!("congestion window / RTT = {cwnd}"),
            Some(cwnd),
            o.e.loaded_rtt,
            o,
        )
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let e = o.e;
        let name = o.facts.congestion_control;
        let mut text = "Cwnd-limited".to_owned();
        if let Some(name) = name {
            text += &format!(" by {name}");
        }
        text += &format!(" at {}", e.goodput);
        if let Some((bytes, rtt, _)) = predict::window_rate(in_flight(o), e.loaded_rtt, e) {
            text += &format!(": {bytes} in flight over {rtt}");
        }
        if e.retransmits > 0 {
            text += &format!(", {} retransmitted segments", e.retransmits);
        }
        if let Some((window, time)) = regrowth(o) {
            let name = if o.facts.is_reno() { "Reno" } else { "CUBIC" };
            let time = phrases::seconds(time);
            text += &format!("; after a loss, {name} takes {time} to grow back to {window}");
        }
        let other = if o.facts.is_bbr() { "" } else { " or use BBR (-C bbr)" };
        format!("{text}; run a longer test (-t){other}.")
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        let name = o.facts.congestion_control.map_or(String::new(), |name| format!(" by {name}"));
        let retransmits = match o.e.retransmits {
            0 => String::new(),
            count => format!(", {count} retransmitted segments"),
        };
        format!("cwnd-limited{name}{}{retransmits}", phrases::over_rtt(in_flight(o), o.e))
    }

    /// BBR, without a promise: its model has no queue, and behind one of 20 packets
    /// (100 Mbit/s x 100 ms) it may gain nothing. Then the time to grow.
    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        let why = "no equation covers BBR's burst losses in a shallow queue";
        let bbr = next.bbr().map(|remedy| unpromised(remedy, why));
        let longer = next.longer().filter(|_| regrowth(&next.o).is_some());
        let longer = longer.map(|remedy| {
            unpromised(remedy, "a later loss would reduce the congestion window again")
        });
        bbr.into_iter().chain(longer).collect()
    }
}

/// Bytes in flight; where they were not sampled, the congestion window, but for BBR's.
fn in_flight(o: &Observed<'_>) -> Option<ByteCount> {
    let sampled = o.e.in_flight.filter(|bytes| *bytes > ByteCount::ZERO);
    sampled.or(o.e.cwnd.filter(|_| !o.facts.is_bbr()))
}

/// The window that each stream lost, or would need for the known path, and the seconds
/// to grow back to it after one loss there; `None` where that is quick.
fn regrowth(o: &Observed<'_>) -> Option<(ByteCount, f64)> {
    if o.facts.is_bbr() {
        return None;
    }
    let beta = if o.facts.is_reno() { 0.5 } else { CUBIC_BETA };
    // ssthresh is the window after the latest reduction.
    let before = o.e.ssthresh.map(|after| ByteCount::from_f64(after.as_f64() / beta));
    let window = phrases::needed(o.m, o.e).map(|(_, window)| window).or(before)?;
    let segments = window.as_f64() / o.e.mss.filter(|mss| *mss > ByteCount::ZERO)?.as_f64();
    let seconds = if o.facts.is_reno() {
        segments * (1.0 - beta) * o.e.loaded_rtt?.secs_f64()
    } else {
        (segments * (1.0 - beta) / CUBIC_C).cbrt()
    };
    (seconds.is_finite() && seconds >= SLOW_S).then_some((window, seconds))
}

#[cfg(test)]
mod tests {
    use super::{CongestionAvoidance, regrowth};
    use crate::{causes::Cause, example::Example};
    use units::ByteCount;

    /// K for 10 Gbit/s over 100 ms: 83 333 segments of 1500 B take CUBIC 39.7 s, and Reno
    /// 4 167 s (both published for this path).
    #[test]
    fn the_time_to_grow_back() {
        let mut example = Example::new(4_000.0, 100.0).on_path(10_000);
        example.e.mss = Some(ByteCount::from_bytes(1500));
        let (window, seconds) = regrowth(&example.observed()).unwrap();
        assert!((seconds - 39.7).abs() < 0.05, "{window} {seconds}");
        example.m.streams[0].congestion = Some("reno".to_owned());
        let (_, seconds) = regrowth(&example.observed()).unwrap();
        assert!((seconds - 4_167.0).abs() < 1.0, "{seconds}");
        let sentence = CongestionAvoidance.sentence(&example.observed());
        assert!(sentence.contains("Reno takes 4167 s to grow back to 125 MB"), "{sentence}");
        example.m.streams[0].congestion = Some("bbr".to_owned());
        assert_eq!(regrowth(&example.observed()), None);
    }

    /// Without a known path, the window that was lost counts: ssthresh / 0.7.
    #[test]
    fn ssthresh_gives_the_window_that_was_lost() {
        let mut example = Example::new(40.0, 100.0);
        assert_eq!(regrowth(&example.observed()), None);
        example.e.ssthresh = Some(ByteCount::from_bytes(1448 * 700));
        let (window, seconds) = regrowth(&example.observed()).unwrap();
        assert_eq!(window.bytes(), 1_448_000);
        assert!((seconds - 9.09).abs() < 0.01, "{seconds}");
        // 20 segments are back within a second or so.
        example.e.ssthresh = Some(ByteCount::from_bytes(1448));
        assert!(regrowth(&example.observed()).is_some_and(|(_, s)| s < 1.1));
    }

    #[test]
    fn the_window_over_the_rtt_is_the_prediction() {
        let example = Example::new(40.0, 100.0);
        let p = CongestionAvoidance.prediction(&example.observed()).unwrap();
        assert_eq!(p.rate.bps(), 40_000_000, "{}", p.equation);
        assert!(example.remedies(&CongestionAvoidance)[0].expects_bps.is_none());
    }
}
