//! A drop-tail queue far smaller than the BDP overflows, and the link is idle while the
//! congestion window grows back.
//!
//! A loss-based control reduces its window to b times the one at the loss, which is BDP
//! plus queue. The link stays busy if that is at least the BDP:
//!
//! > queue / BDP >= (1 - b) / b: 0.43 for CUBIC (b = 0.7), 1 for Reno (b = 0.5)
//!
//! after Appenzeller, Keslassy, McKeown, "Sizing Router Buffers", SIGCOMM 2004, section 2.
//! With a smaller queue of q BDPs, the window follows (1 + q)(1 - (1 - b) u^n), with u
//! falling from 1 to 0 between losses, n = 3 (CUBIC) or 1 (Reno), and the goodput is the
//! link's times the mean of min(1, that).

use crate::{
    causes::{Cause, Observed},
    next_limit::{NextLimit, unpromised},
    predict::{self, Prediction},
};
use model::CUBIC_BETA;
use record::{Limit, Remedy};
use units::{Rtt, percent, percent_with};

pub(super) struct ShallowQueue;

impl Cause for ShallowQueue {
    fn limit(&self) -> Limit {
        Limit::ShallowQueue
    }

    fn noun(&self) -> &'static str {
        "a shallow queue"
    }

    fn prediction(&self, o: &Observed<'_>) -> Option<Prediction> {
        let path = predict::path_payload(o.m, o.e)?;
        let depth = known_depth(o)?;
        let used = Sawtooth::of(o)?.utilization(depth);
        let rate = path.goodput.scaled(used);
        let equation = format!(
            "payload rate x mean sawtooth with a queue of {} of the BDP = {} x {} = {rate}",
            percent(depth),
            path.goodput,
            percent_with(used, 3)
        );
        Some(Prediction { rate, equation })
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let e = o.e;
        let mut text = format!("A shallow queue at the bottleneck overflows at {}", e.goodput);
        if let Some(delay) = deepest(o) {
            text += &format!(": it adds at most {delay} of queueing delay");
        }
        if let Some(sawtooth) = Sawtooth::of(o) {
            let held = known_depth(o).or_else(|| measured_depth(o));
            if let Some(held) = held.filter(|held| *held < sawtooth.sufficient()) {
                text += &format!(
                    "{} {} of the BDP, and {} needs {} to keep the link busy after a loss",
                    if deepest(o).is_some() { ", about" } else { ": it holds about" },
                    percent(held),
                    sawtooth.name,
                    percent(sawtooth.sufficient())
                );
            }
        }
        let bbr = if o.facts.is_bbr() { "" } else { "use BBR (-C bbr), " };
        format!("{text}; {bbr}pace the sender (fq), or enlarge that queue.")
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        let delay = deepest(o).map_or(String::new(), |most| format!(" ({most} at most)"));
        format!("a shallow queue{delay} overflows at {}", o.e.goodput)
    }

    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        let why = "no equation covers BBR's burst losses in a shallow queue";
        let bbr = next.bbr().map(|remedy| unpromised(remedy, why));
        // Streams lose at different times, so that together they need a shallower queue.
        let streams = next
            .more_streams()
            .map(|remedy| unpromised(remedy, "the correlation of the streams' losses is unknown"));
        bbr.into_iter().chain(streams).collect()
    }
}

/// The window between two losses.
struct Sawtooth {
    name: &'static str,
    /// The window after a loss over the one before.
    beta: f64,
    /// The power of time by which it grows.
    power: f64,
}

impl Sawtooth {
    /// `None` for BBR.
    fn of(o: &Observed<'_>) -> Option<Self> {
        match (o.facts.is_bbr(), o.facts.is_reno()) {
            (true, _) => None,
            (_, true) => Some(Sawtooth { name: "Reno", beta: 0.5, power: 1.0 }),
            _ => Some(Sawtooth { name: "CUBIC", beta: CUBIC_BETA, power: 3.0 }),
        }
    }

    /// The smallest queue, in BDPs, that keeps the link busy.
    fn sufficient(&self) -> f64 {
        (1.0 - self.beta) / self.beta
    }

    /// The share of the link's rate with a queue of `depth` BDPs.
    fn utilization(&self, depth: f64) -> f64 {
        let (most, fall) = (1.0 + depth.max(0.0), 1.0 - self.beta);
        // Where the window is one BDP; from there on the link is busy.
        let full = (depth.max(0.0) / (most * fall)).min(1.0).powf(1.0 / self.power);
        let area = most * fall * (1.0 - full.powf(self.power + 1.0)) / (self.power + 1.0);
        let idle = area - depth.max(0.0) * (1.0 - full);
        (1.0 - idle).clamp(0.0, 1.0)
    }
}

/// The known path's queue in BDPs.
fn known_depth(o: &Observed<'_>) -> Option<f64> {
    let path = o.m.path.as_ref()?;
    let bdp = model::bdp(path.rate_bps?, path.rtt).as_f64();
    (bdp > 0.0).then_some(path.queue_bytes?.as_f64() / bdp)
}

/// The same from the RTTs: the longest queueing delay over the minimum RTT.
fn measured_depth(o: &Observed<'_>) -> Option<f64> {
    let least = o.e.min_rtt.filter(|rtt| *rtt > Rtt::ZERO)?;
    Some(deepest(o)?.secs_f64() / least.secs_f64())
}

fn deepest(o: &Observed<'_>) -> Option<Rtt> {
    let (least, most) = (o.e.min_rtt?, o.e.peak_rtt?);
    let delay = Rtt::from_nanos(most.nanos().saturating_sub(least.nanos()));
    (delay > Rtt::ZERO).then_some(delay)
}

#[cfg(test)]
mod tests {
    use super::{Sawtooth, ShallowQueue};
    use crate::{causes::Cause, example::Example};
    use units::{ByteCount, Rtt};

    const CUBIC: Sawtooth = Sawtooth { name: "CUBIC", beta: 0.7, power: 3.0 };
    const RENO: Sawtooth = Sawtooth { name: "Reno", beta: 0.5, power: 1.0 };

    /// Against the sum over a thousand steps of the sawtooth.
    #[test]
    fn the_integral_of_the_sawtooth() {
        for (sawtooth, queues) in [(&CUBIC, [0.0, 0.1, 0.3]), (&RENO, [0.0, 0.5, 0.9])] {
            for queue in queues {
                let at = |step: u32| {
                    let u = (f64::from(step) + 0.5) / 1000.0;
                    (1.0 + queue) * (1.0 - (1.0 - sawtooth.beta) * u.powf(sawtooth.power))
                };
                let mean = (0..1000).map(|step| at(step).min(1.0)).sum::<f64>() / 1000.0;
                let got = sawtooth.utilization(queue);
                assert!((got - mean).abs() < 1e-4, "{} {queue}: {got} {mean}", sawtooth.name);
            }
        }
    }

    #[test]
    fn a_sufficient_queue_keeps_the_link_busy() {
        assert!((CUBIC.sufficient() - 0.4286).abs() < 1e-4);
        assert!((RENO.sufficient() - 1.0).abs() < 1e-9);
        for sawtooth in [CUBIC, RENO] {
            let enough = sawtooth.sufficient();
            assert!((sawtooth.utilization(enough) - 1.0).abs() < 1e-9);
            assert!(sawtooth.utilization(0.9 * enough) < 1.0);
            assert!((sawtooth.utilization(9.0) - 1.0).abs() < 1e-9);
        }
        assert!((CUBIC.utilization(0.0) - 0.925).abs() < 1e-9);
        assert!((RENO.utilization(0.0) - 0.75).abs() < 1e-9);
    }

    #[test]
    fn the_sentence_states_the_queue_and_what_it_should_be() {
        let mut example = Example::new(85.0, 40.0);
        example.e.peak_rtt = Some(Rtt::from_micros(44_000));
        let sentence = ShallowQueue.sentence(&example.observed());
        for part in ["at most 4 ms", "about 10 % of the BDP", "CUBIC needs 43 %", "-C bbr"] {
            assert!(sentence.contains(part), "{sentence}");
        }
        assert_eq!(ShallowQueue.prediction(&example.observed()), None);
        let mut example = example.on_path(100);
        if let Some(path) = &mut example.m.path {
            path.queue_bytes = Some(ByteCount::from_bytes(50_000));
        }
        let p = ShallowQueue.prediction(&example.observed()).unwrap();
        assert!((p.rate.as_f64() / 96.53e6 - 0.967).abs() < 1e-3, "{}", p.equation);
        assert!(example.remedies(&ShallowQueue).iter().all(|one| one.expects_bps.is_none()));
    }
}
