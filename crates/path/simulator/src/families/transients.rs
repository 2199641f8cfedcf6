//! What changes within a test: ramp-up, overshoot, routes, rates, one cause after another.

use super::losses::random_loss;
use crate::draws::{BasePath, Draws};
use crate::{CrossFlow, Scenario};
use control::Algorithm;

/// Tests that end within slow start, or soon after it.
pub(super) fn ramp(draws: &mut Draws) -> Scenario {
    let base = draws.base_within((50.0, 2000.0), (40.0, 300.0));
    let path = format!("{},{}", base.path(), draws.any_queue(&base));
    let seconds = (base.rtt * draws.log(4.0, 16.0) / 1e3).max(0.5);
    Scenario {
        congestion: draws.congestion(),
        streams: draws.mostly_one_stream(0.8),
        reverse: draws.reverse(0.4),
        ..Scenario::new(path, seconds)
    }
}

/// Long fat paths: slow start overshoots, leaves early, or is ended by a single loss, and
/// the window then grows for the rest of the test.
pub(super) fn overshoot(draws: &mut Draws) -> Scenario {
    let base = draws.base_within((50.0, 2000.0), (60.0, 300.0));
    let mut path = base.path();
    let (congestion, reverse) = match draws.between(0.0, 3.0) as u32 {
        // Reno has no early exit: it fills the queue and halves.
        0 => {
            path += &format!(",{}", draws.drop_tail(&base, (0.3, 0.9), 64.0));
            (draws.about(Algorithm::NewReno), draws.reverse(0.0))
        }
        // Delay variation ends CUBIC's slow start (HyStart).
        1 => {
            path += &format!(",{}", draws.any_queue(&base));
            path += &format!(",jitter=uniform:{:.0}us", base.rtt * draws.log(0.01, 0.15) * 1e3);
            (draws.about(Algorithm::Cubic), draws.reverse(0.0))
        }
        _ => {
            let first = draws.log(20.0, 2_000.0);
            let packets = draws.log(1.0, 30.0);
            let reverse = draws.reverse(0.5);
            let data = if reverse { "down" } else { "up" };
            path += &format!(",{},{data}.loss=", draws.drop_tail(&base, (0.3, 4.0), 64.0));
            path += &format!("list:{first:.0}-{:.0}", first + packets);
            (draws.loss_based(), reverse)
        }
    };
    let streams = draws.mostly_one_stream(1.0);
    Scenario { congestion, streams, reverse, ..Scenario::new(path, base.seconds) }
}

/// The rate or the delay changes once or several times.
pub(super) fn path_change(draws: &mut Draws) -> Scenario {
    let base = draws.base_within((4.0, 1000.0), (4.0, 200.0));
    // The queue keeps its size, as a device's does.
    let mut path = format!("{},{}", base.path(), draws.drop_tail(&base, (0.3, 4.0), 20.0));
    let changes = if draws.chance(0.5) { 1 } else { draws.between(2.0, 9.0) as u32 };
    for index in 1..=changes {
        let spread = draws.between(-0.3, 0.3);
        let at = base.seconds * (f64::from(index) + spread) / f64::from(changes + 1);
        let prefix = format!("@{:.0}ms.", at * 1e3);
        let route = draws.chance(0.35);
        if !route || draws.chance(0.3) {
            path += &format!(",{prefix}rate={:.0}kbit", base.rate * 1e3 * draws.log(0.1, 1.3));
        }
        if route {
            path += &format!(",{prefix}rtt={:.0}us", base.rtt * 1e3 * draws.log(0.4, 4.0));
        }
    }
    Scenario {
        congestion: draws.congestion(),
        streams: draws.mostly_one_stream(0.7),
        reverse: draws.reverse(0.4),
        ..Scenario::new(path, base.seconds)
    }
}

/// Satellites in a low orbit: every few seconds another route, with an outage before it.
pub(super) fn handovers(draws: &mut Draws) -> Scenario {
    let base = draws.base_within((20.0, 400.0), (20.0, 120.0));
    let mut path = format!("{},{}", base.path(), draws.drop_tail(&base, (0.5, 4.0), 20.0));
    let every = draws.log(1.5, 8.0);
    let mut at = draws.between(0.5, every);
    while at < base.seconds - 0.3 {
        let outage = draws.log(0.02, 0.3);
        // All is lost for the outage; what comes after has its own delay and rate.
        path += &format!(",@{:.0}ms.loss=99.9%", at * 1e3);
        let again = format!("@{:.0}ms.", (at + outage) * 1e3);
        path +=
            &format!(",{again}loss=none,{again}rtt={:.0}us", base.rtt * 1e3 * draws.log(0.6, 1.7));
        path += &format!(",{again}rate={:.0}kbit", base.rate * 1e3 * draws.log(0.4, 1.2));
        at += every.max(outage + 0.2);
    }
    Scenario {
        congestion: draws.congestion(),
        streams: draws.mostly_one_stream(0.7),
        reverse: draws.reverse(0.4),
        ..Scenario::new(path, base.seconds)
    }
}

/// Wireless: jitter with heavy tails, frames sent together, some loss.
pub(super) fn wifi(draws: &mut Draws) -> Scenario {
    let base = draws.base_within((5.0, 600.0), (2.0, 80.0));
    let kind = draws.one(&["pareto", "exponential", "normal"]);
    // A Pareto tail in order holds back what follows for a hundred times its mean.
    let jitter = draws.log(0.2, if kind == "pareto" { 2.0 } else { 8.0 });
    let mut path =
        format!("{},{},jitter={kind}:{:.0}us", base.path(), draws.any_queue(&base), jitter * 1e3);
    if draws.chance(0.6) {
        // An aggregate of 2 to 8 ms of the rate.
        path += &format!(",burst={:.0}", (base.rate * 125.0 * draws.log(2.0, 8.0)).max(3_000.0));
    }
    if draws.chance(0.4) {
        let loss = random_loss(draws, &base, Algorithm::Cubic, 1) * 0.3;
        path += &format!(",loss={:.6}%", loss.max(1e-6) * 100.0);
    }
    Scenario {
        congestion: draws.congestion(),
        streams: draws.streams(),
        reverse: draws.reverse(0.4),
        ..Scenario::new(path, base.seconds)
    }
}

/// Two causes, one after the other.
pub(super) fn succession(draws: &mut Draws) -> Scenario {
    let base = draws.base_within((5.0, 1000.0), (4.0, 150.0));
    let base = BasePath { seconds: base.seconds.clamp(6.0, 20.0), ..base };
    let queue = draws.any_queue(&base);
    let at = base.seconds * draws.between(0.25, 0.7);
    let scenario = Scenario {
        congestion: draws.mostly_loss_based(0.85),
        streams: draws.mostly_one_stream(0.7),
        reverse: draws.reverse(0.4),
        ..Scenario::new(format!("{},{queue}", base.path()), base.seconds)
    };
    let prefix = format!("@{:.0}ms.", at * 1e3);
    let loss = random_loss(draws, &base, Algorithm::Cubic, scenario.streams) * 1e2;
    let police = format!(
        "police={:.0}kbit:{:.0}",
        base.rate * 1e3 * draws.between(0.1, 0.7),
        (base.rate * 125.0 * draws.log(1.0, 200.0)).max(3_000.0)
    );
    match draws.between(0.0, 7.0) as u32 {
        0 => Scenario { path: format!("{},{prefix}loss={loss:.6}%", scenario.path), ..scenario },
        1 => Scenario {
            path: format!("{},loss={loss:.6}%,{prefix}loss=none", scenario.path),
            ..scenario
        },
        2 => Scenario {
            path: format!(
                "{},{prefix}loss=ge:{loss:.6}%:{:.0}%",
                scenario.path,
                draws.log(5.0, 50.0)
            ),
            ..scenario
        },
        3 => Scenario { path: format!("{},{prefix}{police}", scenario.path), ..scenario },
        4 => {
            Scenario { path: format!("{},{police},{prefix}police=none", scenario.path), ..scenario }
        }
        5 => {
            let flows = draws.between(1.0, 5.0) as usize;
            let cross = CrossFlow::Tcp {
                congestion: draws.one(&[Algorithm::Cubic, Algorithm::Bbr]),
                start_s: at,
            };
            Scenario { cross: vec![cross; flows], ..scenario }
        }
        _ => {
            let shallow = draws.drop_tail(&base, (0.03, 0.2), 3.0);
            let deep = draws.drop_tail(&base, (0.5, 4.0), 10.0);
            let path = format!("{},{deep},{prefix}{shallow}", base.path());
            Scenario { path, ..scenario }
        }
    }
}
