//! Mean windows at evenly spaced losses against the response functions.

use crate::path::{Connection, Path, within};
use control::{
    Arithmetic, Bic, CubicPaper, FastConvergence, HighSpeed, Htcp, Hybla, Illinois, Law, NewReno,
    Scalable, Yeah,
};

const RTT_S: f64 = 0.1;

fn paper<L: Law + Copy>(law: L, expected: f64) -> Connection<L> {
    Connection::new(law, Arithmetic::Paper, Path::of(RTT_S), expected as u64)
}

/// At its fixed point a further cycle changes the mean by less than a millionth.
fn settles<L: Law + Copy>(connection: &mut Connection<L>, p: f64) {
    let packets = (1.0 / p).round() as u64;
    let (one, other) = (connection.cycle(packets), connection.cycle(packets));
    assert!((one / other - 1.0).abs() < 1e-6, "{one} and {other}");
}

#[test]
fn reno_is_1_22_over_the_root_of_the_loss() {
    for p in [1e-4, 1e-5, 1e-6] {
        let expected = f64::sqrt(1.5 / p);
        let mut reno = paper(NewReno, expected);
        within(&format!("reno, {p}"), reno.mean_window(p, 60), expected, 0.02);
        settles(&mut reno, p);
        let mut kernel =
            Connection::new(NewReno, Arithmetic::Kernel, Path::of(RTT_S), expected as u64);
        within(&format!("reno, kernel, {p}"), kernel.mean_window(p, 40), expected, 0.03);
    }
}

#[test]
fn highspeed_follows_rfc_3649() {
    for (p, expected) in [(1e-4, 263.0), (1e-5, 1_795.0), (1e-6, 12_280.0)] {
        let mut highspeed = paper(HighSpeed::default(), expected);
        let mean = highspeed.mean_window(p, 120);
        within(&format!("highspeed, {p}"), mean, expected, 0.02);
        settles(&mut highspeed, p);
    }
}

#[test]
fn scalable_is_0_0749_over_the_loss() {
    for p in [1e-3, 1e-4, 1e-5, 1e-6] {
        let expected = 0.0749 / p;
        let mut scalable = paper(Scalable, expected);
        within(&format!("scalable, {p}"), scalable.mean_window(p, 240), expected, 0.02);
        settles(&mut scalable, p);
        let path = Path::of(RTT_S);
        let mut kernel = Connection::new(Scalable, Arithmetic::Kernel, path, expected as u64);
        // Below 100 packets the kernel's is Reno, with an eighth of reduction.
        let expected = if expected < 100.0 { f64::sqrt(7.5 / p) } else { expected };
        within(&format!("scalable, kernel, {p}"), kernel.mean_window(p, 240), expected, 0.05);
    }
}

#[test]
fn cubic_stays_at_its_fixed_point_without_fast_convergence() {
    for p in [1e-4, 1e-5, 1e-6] {
        let expected = 1.054 * libm::pow(RTT_S / p, 0.75);
        // The mean of a cycle is 0.925 of its peak.
        for (convergence, tolerance) in [(FastConvergence::Off, 0.02), (FastConvergence::On, 0.1)] {
            let law = CubicPaper::new(convergence);
            let mut cubic = paper(law, expected / 0.925);
            cubic.lose();
            let mean = cubic.mean_window(p, 40);
            within(
                &format!("cubic, {p}, fast convergence {convergence:?}"),
                mean,
                expected,
                tolerance,
            );
        }
    }
}

/// H-TCP's mean window with b = 0.8 by its equation dw/dt = a(t) / R: packets of a cycle of T
/// seconds, its peak P and F = the integral of f:
/// (1 - b) P = 2 (1 - b) F(T) / R, 1/p = (b P T + 2 (1 - b) / R * integral of F) / R.
fn htcp(p: f64) -> f64 {
    let beyond = |t: f64| (t - 1.0).max(0.0);
    let f = |t: f64| t + 5.0 * libm::pow(beyond(t), 2.0) + libm::pow(beyond(t), 3.0) / 12.0;
    let ff = |t: f64| {
        t * t / 2.0 + 5.0 / 3.0 * libm::pow(beyond(t), 3.0) + libm::pow(beyond(t), 4.0) / 48.0
    };
    let packets = |t: f64| (0.8 * 2.0 * f(t) / RTT_S * t + 0.4 / RTT_S * ff(t)) / RTT_S;
    let (mut low, mut high) = (0.0, 1_000.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if packets(middle) < 1.0 / p { low = middle } else { high = middle }
    }
    RTT_S / p / low
}

#[test]
fn htcp_follows_its_equation() {
    for p in [1e-4, 1e-5, 1e-6] {
        let expected = htcp(p);
        let mut control = paper(Htcp::default(), expected);
        within(&format!("htcp, {p}"), control.mean_window(p, 80), expected, 0.05);
    }
}

#[test]
fn hybla_has_the_rate_of_a_reno_of_25_ms() {
    for p in [1e-4, 1e-5] {
        // Packets a second: four times the window of 25 ms over 100 ms.
        let expected = 4.0 * f64::sqrt(1.5 / p);
        let mut hybla = paper(Hybla::default(), expected);
        within(&format!("hybla, {p}"), hybla.mean_window(p, 60), expected, 0.02);
    }
}

#[test]
fn illinois_without_delay_grows_by_ten_and_loses_an_eighth() {
    for p in [1e-4, 1e-5, 1e-6] {
        // sqrt(a (2 - b) / (2 b p)).
        let expected = f64::sqrt(75.0 / p);
        let mut illinois = paper(Illinois::default(), expected);
        within(&format!("illinois, {p}"), illinois.mean_window(p, 120), expected, 0.02);
    }
}

#[test]
fn yeah_without_a_queue_is_scalable() {
    for p in [1e-4, 1e-5] {
        let expected = 0.0749 / p;
        let mut yeah = paper(Yeah::default(), expected);
        within(&format!("yeah, {p}"), yeah.mean_window(p, 240), expected, 0.02);
    }
}

#[test]
fn bic_at_large_windows_grows_by_smax_and_loses_an_eighth() {
    // The binary search takes 14 of 660 round trips.
    let p = 1e-8;
    let expected = f64::sqrt(32.0 * 1.875 / (0.25 * p));
    let mut bic = paper(Bic::default(), expected);
    within(&format!("bic, {p}"), bic.mean_window(p, 40), expected, 0.05);
}
