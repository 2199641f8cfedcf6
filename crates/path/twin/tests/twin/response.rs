//! Mean windows under loss against the response functions.

use crate::arrange::{evenly, packet_rate, scenario, unlimited};
use control::Algorithm;
use link::{LinkConfig, Loss};

/// Mean window in packets over a path without a bottleneck, the first quarter left out.
fn mean_window(algorithm: Algorithm, rtt_ms: u64, loss: Loss, seconds: u64) -> f64 {
    let (forward, reverse) = unlimited(rtt_ms);
    let forward = LinkConfig { loss, seed: 1, ..forward };
    let outcome = twin::run(&scenario((forward, reverse), algorithm, seconds));
    let to = seconds as f64;
    packet_rate(&outcome, 0, to / 4.0, to) * rtt_ms as f64 / 1e3
}

fn within(name: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    println!("{name:44} {measured:8.1} {expected:8.1} {:+6.1} %", error * 100.0);
    assert!(error.abs() <= tolerance, "{name}: {measured:.1}, expected {expected:.1}");
}

#[test]
fn reno_under_evenly_spaced_losses_is_1_22_over_the_root_of_the_loss() {
    for (p, rtt_ms, seconds) in [(1e-3, 100, 400), (1e-3, 10, 60), (1e-4, 100, 1_000)] {
        let window = mean_window(Algorithm::NewReno, rtt_ms, evenly((1.0 / p) as u64), seconds);
        within(&format!("reno, even {p}, {rtt_ms} ms"), window, 1.2247 / f64::sqrt(p), 0.1);
    }
}

#[test]
fn reno_under_random_losses_is_1_31_over_the_root_of_the_loss() {
    for (p, loss, seconds) in [(1e-3, "0.1%", 1_000), (1e-4, "0.01%", 4_000)] {
        let loss = Loss::Bernoulli(loss.parse().unwrap());
        let window = mean_window(Algorithm::NewReno, 100, loss, seconds);
        within(&format!("reno, random {p}, 100 ms"), window, 1.31 / f64::sqrt(p), 0.1);
    }
}

/// CUBIC as RFC 9438 has it, a round trip at a time, with the whole packets of Linux:
/// a target is at least a packet above the window until it reaches the plateau, so that
/// windows below some 300 packets are up to a fifth above 1.054 (R/p)^0.75.
fn cubic_rounds(rtt_s: f64, gaps: impl Iterator<Item = f64>) -> f64 {
    let (mut window, mut before) = (20_u64, 0);
    let (mut packets, mut rounds) = (0.0, 0.0);
    for (cycle, gap) in gaps.enumerate() {
        let plateau = if window < before { window * 1_741 / 2_048 } else { window };
        before = plateau;
        window = window * 717 / 1_024;
        let k = libm::cbrt(plateau.saturating_sub(window) as f64 / 0.4);
        let (mut t, mut sent) = (0.0, 0.0);
        let (mut friendly, mut counted, mut credit) = (window, 0, 0);
        while sent < gap {
            sent += window as f64;
            if cycle >= 100 {
                packets += window as f64;
                rounds += 1.0;
            }
            let distance = (0.4 * libm::pow(f64::abs(t + rtt_s - k), 3.0)) as u64;
            let target =
                if t + rtt_s < k { plateau - distance.min(plateau) } else { plateau + distance };
            let mut per = if target > window { window / (target - window) } else { 100 * window };
            counted += window;
            friendly += counted / (window * 15 / 8);
            counted %= window * 15 / 8;
            if friendly > window {
                per = per.min(window / (friendly - window));
            }
            let per = per.max(2);
            if credit >= per {
                credit = 0;
                window += 1;
            }
            credit += window;
            window += credit / per;
            credit %= per;
            t += rtt_s;
        }
    }
    packets / rounds
}

/// Packets between random losses.
fn random_gaps(p: f64) -> impl Iterator<Item = f64> {
    let mut state = 1_u64;
    (0..5_000).map(move |_| {
        // Knuth's MMIX generator; the upper bits are good enough for a mean.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
        -libm::log(1.0 - uniform) / p
    })
}

#[test]
fn cubic_under_losses_follows_its_equations() {
    for (p, rtt_ms, seconds) in [(1e-4, 100, 1_000), (1e-4, 10, 100)] {
        let window = mean_window(Algorithm::Cubic, rtt_ms, evenly((1.0 / p) as u64), seconds);
        let gaps = std::iter::repeat_n(1.0 / p, 1_000);
        let expected = cubic_rounds(rtt_ms as f64 / 1e3, gaps);
        within(&format!("cubic, even {p}, {rtt_ms} ms"), window, expected, 0.1);
    }
    for (p, loss, seconds) in [(1e-3, "0.1%", 1_000), (1e-4, "0.01%", 4_000)] {
        let loss = Loss::Bernoulli(loss.parse().unwrap());
        let window = mean_window(Algorithm::Cubic, 100, loss, seconds);
        let expected = cubic_rounds(0.1, random_gaps(p));
        within(&format!("cubic, random {p}, 100 ms"), window, expected, 0.1);
    }
}

#[test]
fn where_reno_is_faster_cubic_has_its_window() {
    let window = mean_window(Algorithm::Cubic, 10, evenly(10_000), 100);
    within("cubic, even 0.0001, 10 ms", window, 122.5, 0.1);
}
