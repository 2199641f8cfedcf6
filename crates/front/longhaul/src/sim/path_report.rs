//! The path of a simulation, as measurements in a lab have it.

use super::prepared::Prepared;
use record::{Achieved, Drops, PathDriver, PathReport, RequestedDirection, RequestedPath};
use topology::{PathDirection, PathSpec};
use twin::Outcome;

/// The path that was asked for, and what both links counted.
pub(super) fn of(path: &PathSpec, prepared: &Prepared, outcome: &Outcome) -> PathReport {
    let [up, down] = path.directions();
    let [up, down] = [up, down].map(|direction| RequestedDirection {
        rate_bps: direction.rate(),
        delay_ms: direction.delay().millis_f64(),
        queue: direction.queue_in_words(),
        effects: direction.effects(),
    });
    let forward = path.directions()[0];
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
        seed: prepared.seed,
        valid: true,
        reasons: Vec::new(),
        asked: RequestedPath {
            link: path.to_spec(),
            up,
            down,
            driver: PathDriver::Simulator,
            driver_reason: "in virtual time".to_owned(),
            mean_rtt_ms: path.mean_rtt().as_secs_f64() * 1e3,
            changes: prepared.changes.clone(),
            ..RequestedPath::default()
        },
        achieved: achieved(outcome),
        cpu: 0.0,
    }
}

fn achieved(outcome: &Outcome) -> Achieved {
    let mut did = Achieved::default();
    let (mut expected, mut sent) = (0.0, 0);
    for counted in [&outcome.forward, &outcome.reverse] {
        did.packets += counted.sent - counted.lost - counted.burst_lost - counted.blackhole_lost;
        did.bytes += counted.sent_bytes;
        did.lost += counted.lost;
        did.marked += counted.marked;
        did.duplicated += counted.duplicated;
        did.corrupted += counted.corrupted;
        did.reordered += counted.reordered;
        let drops = drops(counted);
        did.drops.queue += drops.queue;
        did.drops.aqm += drops.aqm;
        did.drops.policer += drops.policer;
        did.drops.too_long += drops.too_long;
        did.drops.bursts += drops.bursts;
        did.drops.blackhole += drops.blackhole;
        expected += counted.loss_expected;
        sent += counted.sent;
    }
    did.loss = (sent > 0).then(|| did.lost as f64 / sent as f64);
    did.loss_expected = (sent > 0).then(|| expected / sent as f64);
    did
}

/// Packets that a link dropped.
pub(super) fn drops(counted: &link::Counters) -> Drops {
    Drops {
        queue: counted.queue_drops,
        aqm: counted.aqm_drops,
        policer: counted.policed,
        too_long: counted.too_long,
        bursts: counted.burst_lost,
        blackhole: counted.blackhole_lost,
        unintended: 0,
    }
}
