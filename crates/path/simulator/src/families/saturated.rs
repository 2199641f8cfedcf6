//! Bottlenecks of every queue discipline, alone or shared.

use crate::draws::Draws;
use crate::{CrossFlow, Scenario};
use control::Algorithm;

/// Nothing special: a deep drop-tail queue.
pub(super) fn plain(draws: &mut Draws) -> Scenario {
    let base = draws.base();
    let path = format!("{},{}", base.path(), draws.drop_tail(&base, (0.3, 8.0), 10.0));
    Scenario {
        congestion: draws.congestion(),
        streams: draws.streams(),
        reverse: draws.reverse(0.4),
        ..Scenario::new(path, base.seconds)
    }
}

/// Drop-tail queues far smaller than the BDP, as in switches.
pub(super) fn shallow_queue(draws: &mut Draws) -> Scenario {
    // Below 40 kB of BDP, the smallest queue that passes a burst is no longer shallow.
    let rtt = draws.log(2.0, 300.0);
    let base = draws.base_within(((320.0 / rtt).max(2.0), 2000.0), (rtt, rtt));
    let path = format!("{},{}", base.path(), draws.drop_tail(&base, (0.03, 0.3), 3.0));
    let congestion = draws.mostly_loss_based(0.85);
    Scenario {
        congestion,
        streams: draws.streams(),
        reverse: draws.reverse(0.4),
        ..Scenario::new(path, base.seconds)
    }
}

/// CoDel, FQ-CoDel, PIE and RED.
pub(super) fn aqm(draws: &mut Draws) -> Scenario {
    let base = draws.base();
    let path = format!("{},{}", base.path(), draws.aqm(&base));
    let congestion = draws.mostly_loss_based(0.85);
    Scenario {
        congestion,
        streams: draws.streams(),
        reverse: draws.reverse(0.4),
        ..Scenario::new(path, base.seconds)
    }
}

/// The same with ECN, and drop-tail queues that mark above a threshold.
pub(super) fn ecn_marks(draws: &mut Draws) -> Scenario {
    let base = draws.base();
    let queue = if draws.chance(0.7) {
        let discipline = draws.one(&["fq_codel", "fq_codel", "codel", "pie", "red"]);
        format!("{},ecn=yes", draws.managed(&base, discipline))
    } else {
        let mark = (draws.log(0.05, 0.5) * base.bdp() / 1500.0).max(4.0);
        format!("queue={:.0}p,mark={mark:.0}p", (mark * 4.0).max(64.0))
    };
    Scenario {
        congestion: draws.loss_based(),
        streams: draws.streams(),
        reverse: draws.reverse(0.4),
        ecn: true,
        ..Scenario::new(format!("{},{queue}", base.path()), base.seconds)
    }
}

/// One to five flows beside the measured ones.
pub(super) fn shared_bottleneck(draws: &mut Draws) -> Scenario {
    let base = draws.base_within((2.0, 1000.0), (1.0, 300.0));
    let queue =
        if draws.chance(0.7) { draws.drop_tail(&base, (0.2, 4.0), 10.0) } else { draws.aqm(&base) };
    let flows = draws.between(1.0, 6.0) as usize;
    let cross = (0..flows).map(|_| cross_flow(draws, base.rate, flows)).collect();
    Scenario {
        congestion: draws.congestion(),
        streams: draws.few_streams(),
        reverse: draws.reverse(0.4),
        cross,
        ..Scenario::new(format!("{},{queue}", base.path()), base.seconds)
    }
}

fn cross_flow(draws: &mut Draws, rate: f64, flows: usize) -> CrossFlow {
    if draws.chance(0.7) {
        let congestion = draws.one(&[Algorithm::Cubic, Algorithm::Cubic, Algorithm::Bbr]);
        let start_s = if draws.chance(0.6) { 0.0 } else { draws.between(0.0, 3.0) };
        return CrossFlow::Tcp { congestion, start_s };
    }
    // Together at most 80 % of the bottleneck.
    let share = draws.between(0.15, 0.8) / flows as f64;
    let on_s = draws.log(0.1, 3.0);
    CrossFlow::OnOffUdp {
        rate: units::BitRate::from_bps_f64(rate * 1e6 * share),
        on_s,
        off_s: if draws.chance(0.4) { 0.0 } else { draws.log(0.1, 3.0) },
    }
}
