//! The time from a loss back to the full rate, from goodput second by second: the time between losses
//! over a queue that is too short to matter.

use super::super::Measured;
use super::super::runs::{Runs, mbit, near};
use super::{MSS, PAYLOAD, link_bps};
use model::cubic_recovery;
use units::{BitRate, Rtt};

const PART: &str = "recovery";
const RTT: Rtt = Rtt::from_micros(100_000);

/// Seconds at 10 Gbit/s over 100 ms, a BDP of 83 333 packets, by the controls' equations: Reno (RFC
/// 5681), H-TCP (Leith, Shorten 2004), HighSpeed (RFC 3649).
const RENO_S: f64 = 4_167.0;
const HTCP_S: f64 = 25.3;
const HIGHSPEED_S: f64 = 12.0;
const TEN_GBIT: f64 = 1e10;

/// By how much longer CUBIC takes if the last loss was at the same window or above (RFC 9438, section
/// 4.7): it then aims at `(1 + b)/2` of the window, so that half of the way up comes before the
/// plateau, and half after it: 2 cbrt(1/2).
const FAST_CONVERGENCE: f64 = 1.587_401;

/// A second is the one after a loss if its goodput is below this share of the one before.
const DROP: f64 = 0.97;

/// Goodput is per second, and a cycle begins anywhere within one.
const TOLERANCE: f64 = 0.15;

/// The controls whose cycle is long enough to be seen.
pub(super) fn measure(runs: &Runs<'_>) -> Option<Measured> {
    let rate = link_bps(runs, PART)? / PAYLOAD;
    let mut texts = Vec::new();
    let mut all_near = true;
    for control in runs.values(PART, "congestion") {
        let Some(equation) = expected(&control, rate) else { continue };
        let run = runs.valid(PART, &[("congestion", &control)]).into_iter().next()?;
        let seconds = recovery(&run.flows.first()?.series_bps, rate * PAYLOAD);
        let repeated = (control == "cubic").then_some(FAST_CONVERGENCE * equation);
        let is_near = |seconds| {
            let mut all = [Some(equation), repeated].into_iter().flatten();
            all.any(|expected| near(seconds, expected, TOLERANCE))
        };
        all_near &= seconds.is_some_and(is_near);
        let seconds = match seconds {
            Some(seconds) => format!("{seconds:.1} s"),
            None => format!("no loss and no growth at {}", mbit(run.throughput_bps())),
        };
        let repeated = repeated.map_or(String::new(), |seconds| {
            format!(", {seconds:.1} s where the loss before was at the same window")
        });
        texts.push(format!("{control} {seconds} (equation: {equation:.1} s{repeated})"));
    }
    (!texts.is_empty()).then(|| Measured { text: texts.join(", "), holds: all_near })
}

/// The seconds that a control's equation gives at a rate of the link, in bit/s.
fn expected(control: &str, rate_bps: f64) -> Option<f64> {
    match control {
        // In proportion to the window.
        "reno" => Some(RENO_S * rate_bps / TEN_GBIT),
        "cubic" => Some(cubic_recovery(MSS, RTT, BitRate::from_bps_f64(rate_bps * PAYLOAD))),
        "htcp" if near(rate_bps, TEN_GBIT, 0.01) => Some(HTCP_S),
        "highspeed" if near(rate_bps, TEN_GBIT, 0.01) => Some(HIGHSPEED_S),
        _ => None,
    }
}

/// The median time between losses; with one loss at most, the time by which the growth since would
/// fill the link. `None` without growth.
fn recovery(series: &[f64], full_bps: f64) -> Option<f64> {
    let dips: Vec<f64> = (1..)
        .zip(series.windows(2))
        .filter(|(_, pair)| pair[1] < DROP * pair[0])
        .map(|(second, _)| f64::from(second))
        .collect();
    // A loss within a second shows in that one and in the next.
    let mut begins: Vec<f64> = Vec::new();
    for dip in dips {
        if begins.last().is_none_or(|last| dip - last > 1.5) {
            begins.push(dip);
        }
    }
    let mut gaps: Vec<f64> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_by(f64::total_cmp);
    if let Some(median) = model::statistics::median(&gaps) {
        return Some(median);
    }
    let from = begins.last().map_or(0, |second| *second as usize + 1);
    let grown = series.get(from..)?;
    let (first, last) = (grown.first()?, grown.last()?);
    let slope = (last - first) / (grown.len() as f64 - 1.0).max(1.0);
    // Reno falls to half of the full rate.
    (slope > 0.0).then(|| full_bps / 2.0 / slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sawtooth_has_its_period_and_a_ramp_its_extrapolation() {
        let saw: Vec<f64> = (0..100).map(|second| 70.0 + f64::from(second % 20) * 1.5).collect();
        assert_eq!(recovery(&saw, 100.0), Some(20.0));
        let ramp: Vec<f64> = (0..50).map(|second| 50.0 + f64::from(second) * 0.1).collect();
        assert!((recovery(&ramp, 100.0).unwrap() - 500.0).abs() < 1.0);
        assert_eq!(recovery(&[5.0; 20], 100.0), None);
        assert_eq!(recovery(&[], 100.0), None);
    }

    #[test]
    fn equations_are_those_of_the_path() {
        assert!((expected("cubic", 1e10).unwrap() - 39.4).abs() < 0.5);
        assert_eq!(expected("reno", 1e9), Some(416.7));
        assert_eq!((expected("htcp", 1e9), expected("bbr", 1e10)), (None, None));
    }
}
