//! The time from one loss at the full window back to the full rate, from goodput second by second.
//!
//! The receiver's window is just below the BDP, so that no queue overflows, and two data packets are
//! lost: the first in slow start when the window is full, so that it is nowhere larger; the second
//! when those that recover within a minute have long been back at the full rate.

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

/// A flow has recovered at this share of the rate before the loss: what CUBIC lacks at the end of
/// its concave region is below the resolution of a second.
const BACK: f64 = 0.999;

/// CUBIC's share of K by then: the rest of its reduction by 0.3 falls with the cube of the time
/// left (RFC 9438, section 4.2), so 1 - cbrt(0.001 / 0.3).
const CUBIC_BACK: f64 = 0.850_6;

/// The full rate, as a share of the link's payload: the window is just below the BDP.
const FULL: f64 = 0.98;

/// A second has a loss if its goodput is below this share of the one before.
const DROP: f64 = 0.97;

/// Of the equation; but goodput is per second, and a loss falls anywhere within one.
const TOLERANCE: f64 = 0.1;
const TOLERANCE_S: f64 = 1.5;

/// The controls whose recovery is long enough to be seen.
pub(super) fn measure(runs: &Runs<'_>) -> Option<Measured> {
    let mut texts = Vec::new();
    let mut all_near = true;
    let link = link_bps(runs, PART)? / PAYLOAD;
    for control in runs.values(PART, "congestion") {
        let Some((equation, note)) = expected(&control, link) else { continue };
        let run = runs.valid(PART, &[("congestion", &control)]).into_iter().next()?;
        let seconds = recovery(&run.flows.first()?.series_bps, link * PAYLOAD);
        // Linux counts HighSpeed's acknowledgements, not what they acknowledge.
        let by_its_paper = control != "highspeed";
        all_near &= !by_its_paper || seconds.is_some_and(|seconds| is_near(seconds, equation));
        let seconds = match seconds {
            Some(seconds) => format!("{seconds:.0} s"),
            None => {
                format!("no loss at the full rate and no growth, {}", mbit(run.throughput_bps()))
            }
        };
        texts.push(format!("{control} {seconds} (equation: {equation:.1} s{note})"));
    }
    (!texts.is_empty()).then(|| Measured { text: texts.join(", "), holds: all_near })
}

fn is_near(seconds: f64, equation: f64) -> bool {
    (seconds - equation).abs() <= (TOLERANCE * equation).max(TOLERANCE_S)
}

/// The seconds that a control's equation gives at a rate of the link, in bit/s, and what to know
/// about them.
fn expected(control: &str, link_bps: f64) -> Option<(f64, String)> {
    let is_ten_gbit = near(link_bps, TEN_GBIT, 0.01);
    match control {
        // In proportion to the window.
        "reno" => Some((RENO_S * link_bps / TEN_GBIT, String::new())),
        "cubic" => {
            let whole = cubic_recovery(MSS, RTT, BitRate::from_bps_f64(link_bps * PAYLOAD));
            Some((CUBIC_BACK * whole, format!(" to 99.9 %, {whole:.1} s to the whole")))
        }
        "htcp" if is_ten_gbit => Some((HTCP_S, String::new())),
        "highspeed" if is_ten_gbit => {
            let note = " with an acknowledgement for each packet; Linux adds for each \
                        acknowledgement, and those of receive offload have dozens of packets";
            Some((HIGHSPEED_S, note.to_owned()))
        }
        _ => None,
    }
}

/// The median time from a loss at the full rate to the rate before it; without one, the time in
/// which the growth over the longest time without a loss would be half of the full rate, which is
/// what Reno has to regain. `None` without growth.
fn recovery(series: &[f64], full_bps: f64) -> Option<f64> {
    let mut times = Vec::new();
    // Where a time without losses begins: slow start and the first recovery take two seconds.
    let mut begins = vec![2];
    for (second, pair) in (1usize..).zip(series.windows(2)) {
        if pair[1] >= DROP * pair[0] {
            continue;
        }
        // A loss within a second shows in that one and in the next; late in a second it hardly
        // shows there, so the rate before it is that of the second before as well.
        begins.push(second + 2);
        let before = pair[0].max(series[second.saturating_sub(2)]);
        if before >= FULL * full_bps && pair[0] >= DROP * before {
            let regained = series[second..].iter().position(|rate| *rate >= BACK * before);
            times.extend(regained.map(|seconds| seconds as f64));
        }
    }
    times.sort_by(f64::total_cmp);
    if let Some(median) = model::statistics::median(&times) {
        return Some(median);
    }
    let ends = begins.iter().skip(1).map(|begin| begin.saturating_sub(3)).chain([series.len()]);
    let grown = begins.iter().zip(ends).filter_map(|(from, to)| series.get(*from..to));
    let grown = grown.max_by_key(|part| part.len())?;
    let slope = (grown.last()? - grown.first()?) / (grown.len() as f64 - 1.0).max(1.0);
    (slope > 0.0).then(|| full_bps / 2.0 / slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_at_the_full_rate_has_its_recovery_and_a_ramp_its_extrapolation() {
        let ramp = |second: u32| f64::from(second.min(25)) * 2.0;
        let dips: Vec<f64> = (0..100).map(|second| 50.0 + ramp(second % 50)).collect();
        assert_eq!(recovery(&dips, 101.0), Some(25.0));
        // A loss at 95 % of a second takes 1.5 % of it.
        let late: Vec<f64> = (0..100)
            .map(|second| if second % 50 == 49 { 98.5 } else { 50.0 + ramp(second % 50) })
            .collect();
        assert_eq!(recovery(&late, 100.0), Some(25.0));
        let slow: Vec<f64> = (0..50).map(|second| 50.0 + f64::from(second) * 0.1).collect();
        assert!((recovery(&slow, 100.0).unwrap() - 500.0).abs() < 1.0);
        // A loss on the way does not count, and the longest time of growth does.
        let dipped: Vec<f64> = slow.iter().chain(&slow[..20]).copied().collect();
        assert!((recovery(&dipped, 100.0).unwrap() - 500.0).abs() < 1.0);
        assert_eq!(recovery(&[5.0; 20], 100.0), None);
        assert!((0..4).all(|seconds| recovery(&vec![5.0; seconds], 100.0).is_none()));
    }

    #[test]
    fn equations_are_those_of_the_path() {
        let seconds = |control, link_bps: f64| Some(expected(control, link_bps)?.0);
        assert!((seconds("cubic", 1e10).unwrap() - 0.85 * 39.4).abs() < 0.5);
        assert_eq!(seconds("reno", 1e9), Some(416.7));
        assert_eq!((seconds("htcp", 1e9), seconds("bbr", 1e10)), (None, None));
    }
}
