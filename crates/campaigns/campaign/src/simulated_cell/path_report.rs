//! The report on a simulated path: what was asked for, and the links' counters.

use link::Counters;
use record::{Achieved, Drops, PathDriver, PathReport, RequestedDirection, RequestedPath};
use study::Test;
use topology::PathDirection;
use twin::Outcome;

/// The report on a test's path after its run.
pub(super) fn of(test: &Test, seed: u64, outcome: &Outcome) -> PathReport {
    let path = &test.spec;
    let [up, down] = path.directions();
    let [asked_up, asked_down] = [up, down].map(requested);
    PathReport {
        rate_bps: path.rate(),
        rtt: path.rtt(),
        loss: up.mean_loss(),
        queue: up.queue_in_words(),
        queue_bytes: Some(up)
            .filter(|up| !up.counts_packets() && up.rate().is_some())
            .map(PathDirection::queue_bytes),
        overhead_bytes: path.overhead(),
        mtu_bytes: path.mtu(),
        seed,
        valid: true,
        reasons: Vec::new(),
        asked: RequestedPath {
            link: path.to_spec(),
            up: asked_up,
            down: asked_down,
            driver: PathDriver::Simulator,
            driver_reason: "the study runs in the simulator".to_owned(),
            mean_rtt_ms: path.mean_rtt().as_secs_f64() * 1e3,
            ..RequestedPath::default()
        },
        achieved: achieved(&outcome.forward, &outcome.reverse),
        cpu: 0.0,
    }
}

fn requested(direction: &PathDirection) -> RequestedDirection {
    RequestedDirection {
        rate_bps: direction.rate(),
        delay_ms: direction.delay().millis_f64(),
        queue: direction.queue_in_words(),
        effects: direction.effects(),
    }
}

/// The sums of both directions, as a lab reports them.
fn achieved(forward: &Counters, reverse: &Counters) -> Achieved {
    let mut sum = Achieved::default();
    let (mut expected, mut sent) = (0.0, 0);
    for counters in [forward, reverse] {
        let gone = counters.lost + counters.burst_lost + counters.blackhole_lost;
        sum.packets += counters.sent - gone;
        sum.bytes += counters.sent_bytes;
        sum.lost += counters.lost;
        sum.drops = Drops {
            queue: sum.drops.queue + counters.queue_drops,
            aqm: sum.drops.aqm + counters.aqm_drops,
            policer: sum.drops.policer + counters.policed,
            too_long: sum.drops.too_long + counters.too_long,
            bursts: sum.drops.bursts + counters.burst_lost,
            blackhole: sum.drops.blackhole + counters.blackhole_lost,
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
