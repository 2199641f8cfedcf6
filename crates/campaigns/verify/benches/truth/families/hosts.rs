//! Limits that the hosts set: windows, buffers and applications.

use crate::case::Case;
use crate::draws::{Base, Draws, bytes};

/// A path where windows of some packets are smaller than the BDP.
fn fat(draws: &mut Draws) -> Base {
    let rtt = draws.log(1.0, 300.0);
    // At least 24 packets of BDP.
    draws.base_within(((290.0 / rtt).max(2.0), 2000.0), (rtt, rtt))
}

fn on(draws: &mut Draws, base: &Base) -> Case {
    let path = format!("{},{}", base.path(), draws.any_queue(base));
    Case {
        congestion: draws.congestion(),
        streams: draws.streams(),
        reverse: draws.reverse(0.4),
        ..Case::new("", 0, path, base.seconds)
    }
}

/// Share of the BDP for each stream: mostly less than it.
fn part(draws: &mut Draws, base: &Base, streams: u32) -> f64 {
    (draws.log(0.05, 1.4) * base.bdp() / f64::from(streams)).max(4.0 * 1448.0)
}

pub(super) fn receive_window(draws: &mut Draws) -> Case {
    let base = fat(draws);
    let case = on(draws, &base);
    let window = part(draws, &base, case.streams);
    Case { receive_window: Some(bytes(window)), ..case }
}

/// Window scaling removed: windows of at most 65 535 bytes.
pub(super) fn window_scaling(draws: &mut Draws) -> Case {
    let rtt = draws.log(3.0, 300.0);
    let base = draws.base_within(((400.0 / rtt).max(2.0), 1000.0), (rtt, rtt));
    let case = on(draws, &base);
    // Twice the BDP in all windows leaves the path's limits to show.
    let most = (2.0 * base.bdp() / 65_535.0).ceil().clamp(1.0, 8.0);
    Case {
        path: format!("{},window-scale=strip", case.path),
        streams: f64::from(case.streams).min(most) as u32,
        ..case
    }
}

pub(super) fn slow_receiver(draws: &mut Draws) -> Case {
    let base = draws.base();
    let case = on(draws, &base);
    let rate = base.share(draws.log(0.05, 1.1) / f64::from(case.streams));
    // The receive buffer must fill within the test: it holds what arrives in the first second.
    let window = (base.rate * 125_000.0 * draws.log(0.05, 0.5)).max(2.0 * base.bdp());
    let window = (window / f64::from(case.streams)).clamp(65_536.0, 6e6);
    Case { reader: Some(rate), receive_window: Some(bytes(window)), ..case }
}

pub(super) fn send_buffer(draws: &mut Draws) -> Case {
    let base = fat(draws);
    let case = on(draws, &base);
    let buffer = part(draws, &base, case.streams);
    Case { send_buffer: Some(bytes(buffer)), ..case }
}

pub(super) fn application(draws: &mut Draws) -> Case {
    let base = draws.base();
    let case = on(draws, &base);
    let rate = base.share(draws.log(0.05, 1.1) / f64::from(case.streams));
    let block = draws.one(&[131_072.0, 131_072.0, 16_384.0]);
    Case { rate: Some(rate), block: Some(bytes(block)), ..case }
}

pub(super) fn pacing(draws: &mut Draws) -> Case {
    let base = draws.base();
    let case = on(draws, &base);
    let rate = base.share(draws.log(0.05, 1.1) / f64::from(case.streams));
    Case { pacing: Some(rate), ..case }
}

/// Writes so small that a core is busy with them before the path is full, or nearly so.
pub(super) fn cpu(draws: &mut Draws) -> Case {
    let base = draws.base_within((50.0, 2000.0), (0.2, 50.0));
    let block = draws.log(8.0, 512.0);
    Case { block: Some(bytes(block)), ..on(draws, &base) }
}
