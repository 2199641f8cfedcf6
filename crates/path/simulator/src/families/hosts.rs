//! Limits that the hosts set: windows, buffers and applications.

use crate::Scenario;
use crate::draws::{BasePath, Draws, bytes};

/// A path where windows of some packets are smaller than the BDP.
fn fat(draws: &mut Draws) -> BasePath {
    let rtt = draws.log(1.0, 300.0);
    // At least 24 packets of BDP.
    draws.base_within(((290.0 / rtt).max(2.0), 2000.0), (rtt, rtt))
}

fn on(draws: &mut Draws, base: &BasePath) -> Scenario {
    let path = format!("{},{}", base.path(), draws.any_queue(base));
    Scenario {
        congestion: draws.congestion(),
        streams: draws.streams(),
        reverse: draws.reverse(0.4),
        ..Scenario::new(path, base.seconds)
    }
}

/// Share of the BDP for each stream: mostly less than it.
fn part(draws: &mut Draws, base: &BasePath, streams: u32) -> f64 {
    (draws.log(0.05, 1.4) * base.bdp() / f64::from(streams)).max(4.0 * 1448.0)
}

pub(super) fn receive_window(draws: &mut Draws) -> Scenario {
    let base = fat(draws);
    let scenario = on(draws, &base);
    let window = part(draws, &base, scenario.streams);
    Scenario { receive_window: Some(bytes(window)), ..scenario }
}

/// Window scaling removed: windows of at most 65 535 bytes.
pub(super) fn window_scaling(draws: &mut Draws) -> Scenario {
    let rtt = draws.log(3.0, 300.0);
    let base = draws.base_within(((400.0 / rtt).max(2.0), 1000.0), (rtt, rtt));
    let scenario = on(draws, &base);
    // Twice the BDP in all windows leaves the path's limits to show.
    let most = (2.0 * base.bdp() / 65_535.0).ceil().clamp(1.0, 8.0);
    Scenario {
        path: format!("{},window-scale=strip", scenario.path),
        streams: f64::from(scenario.streams).min(most) as u32,
        ..scenario
    }
}

pub(super) fn slow_receiver(draws: &mut Draws) -> Scenario {
    let base = draws.base();
    let scenario = on(draws, &base);
    let rate = base.share(draws.log(0.05, 1.1) / f64::from(scenario.streams));
    // The receive buffer must fill within the test: it holds what arrives in the first second.
    let window = (base.rate * 125_000.0 * draws.log(0.05, 0.5)).max(2.0 * base.bdp());
    let window = (window / f64::from(scenario.streams)).clamp(65_536.0, 6e6);
    Scenario { reader: Some(rate), receive_window: Some(bytes(window)), ..scenario }
}

pub(super) fn send_buffer(draws: &mut Draws) -> Scenario {
    let base = fat(draws);
    let scenario = on(draws, &base);
    let buffer = part(draws, &base, scenario.streams);
    Scenario { send_buffer: Some(bytes(buffer)), ..scenario }
}

pub(super) fn application(draws: &mut Draws) -> Scenario {
    let base = draws.base();
    let scenario = on(draws, &base);
    let rate = base.share(draws.log(0.05, 1.1) / f64::from(scenario.streams));
    let block = draws.one(&[131_072.0, 131_072.0, 16_384.0]);
    Scenario { rate: Some(rate), block: Some(bytes(block)), ..scenario }
}

pub(super) fn pacing(draws: &mut Draws) -> Scenario {
    let base = draws.base();
    let scenario = on(draws, &base);
    let rate = base.share(draws.log(0.05, 1.1) / f64::from(scenario.streams));
    Scenario { pacing: Some(rate), ..scenario }
}

/// Writes so small that a core is busy with them before the bottleneck is saturated, or nearly so.
pub(super) fn cpu(draws: &mut Draws) -> Scenario {
    let base = draws.base_within((50.0, 2000.0), (0.2, 50.0));
    let block = draws.log(8.0, 512.0);
    Scenario { block: Some(bytes(block)), ..on(draws, &base) }
}
