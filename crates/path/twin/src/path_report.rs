//! The report on a simulated path, as measurements in a lab have it.

use crate::Outcome;
use link::Counters;
use record::{Achieved, Drops, PathDriver, PathReport, RequestedDirection, RequestedPath};
use topology::{PathDirection, PathSpec};

/// The path that was asked for, with the seed of its draws, and what both links counted.
#[must_use]
pub fn path_report(path: &PathSpec, seed: u64, outcome: &Outcome) -> PathReport {
    let [forward, _] = path.directions();
    let [up, down] = path.directions().map(|direction| RequestedDirection {
        rate_bps: direction.rate(),
        delay_ms: direction.delay().millis_f64(),
        queue: direction.queue_in_words(),
        effects: direction.effects(),
    });
    PathReport {
        rate_bps: path.rate(),
        rtt: path.rtt(),
        loss: forward.mean_loss(),
        queue: forward.queue_in_words(),
        queue_bytes: Some(forward)
            .filter(|up| !up.counts_packets() && up.rate().is_some())
            .map(PathDirection::queue_bytes),
        overhead_bytes: path.overhead(),
        mtu_bytes: path.mtu(),
        seed,
        valid: true,
        reasons: Vec::new(),
        asked: RequestedPath {
            link: path.to_spec(),
            up,
            down,
            driver: PathDriver::Simulator,
            driver_reason: "in virtual time".to_owned(),
            mean_rtt_ms: path.mean_rtt().as_secs_f64() * 1e3,
            ..RequestedPath::default()
        },
        achieved: achieved(outcome),
        cpu: 0.0,
    }
}

/// The sums of both directions.
fn achieved(outcome: &Outcome) -> Achieved {
    let mut sum = Achieved::default();
    let (mut expected, mut sent) = (0.0, 0);
    for counters in [&outcome.forward, &outcome.reverse] {
        let gone = counters.lost + counters.burst_lost + counters.blackhole_lost;
        sum.packets += counters.sent - gone;
        sum.bytes += counters.sent_bytes;
        sum.lost += counters.lost;
        let drops = link_drops(counters);
        sum.drops = Drops {
            queue: sum.drops.queue + drops.queue,
            aqm: sum.drops.aqm + drops.aqm,
            policer: sum.drops.policer + drops.policer,
            too_long: sum.drops.too_long + drops.too_long,
            bursts: sum.drops.bursts + drops.bursts,
            blackhole: sum.drops.blackhole + drops.blackhole,
            unintended: 0,
        };
        sum.marked += counters.marked;
        sum.duplicated += counters.duplicated;
        sum.corrupted += counters.corrupted;
        sum.reordered += counters.reordered;
        expected += counters.loss_expected;
        sent += counters.sent;
    }
    let share = |count: f64| (sent > 0).then(|| count / sent as f64);
    Achieved { loss: share(sum.lost as f64), loss_expected: share(expected), ..sum }
}

/// Packets that a link dropped, by cause.
#[must_use]
pub fn link_drops(counters: &Counters) -> Drops {
    Drops {
        queue: counters.queue_drops,
        aqm: counters.aqm_drops,
        policer: counters.policed,
        too_long: counters.too_long,
        bursts: counters.burst_lost,
        blackhole: counters.blackhole_lost,
        unintended: 0,
    }
}
