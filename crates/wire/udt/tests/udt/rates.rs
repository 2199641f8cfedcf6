//! Rates under loss and with other connections, against the equations.

use crate::path::{NATIVE, PAYLOAD, Path, bottleneck, config};
use control::{Algorithm, UdtRules};
use link::{LinkConfig, Loss};
use std::time::Duration;
use units::BitRate;

/// Mean rate of payload on a path with random loss, Mbit/s, after the first `warm_up`.
fn rate_under_loss(
    algorithm: Algorithm,
    (mbit, rtt_ms, loss): (u64, u64, &str),
    (warm_up, seconds): (u64, u64),
) -> f64 {
    let [forward, reverse] = bottleneck(mbit, rtt_ms, 1.0);
    let lossy = LinkConfig { loss: Loss::Bernoulli(loss.parse().unwrap()), seed: 3, ..forward };
    let mut path = Path::established([lossy, reverse], config(1, algorithm));
    path.saturate(Duration::from_secs(warm_up));
    let rate = path.saturate(Duration::from_secs(seconds));
    rate * PAYLOAD as f64 * 8.0 / 1e6
}

/// Gu, Grossman 2007: the increase of a SYN balances the decrease by losses. It holds
/// where a congestion period has one loss, and few of the SYNs have one: in those the rate
/// does not rise.
#[test]
fn udt_under_random_loss_is_as_the_equation_says_at_any_rtt() {
    for (mbit, rtt_ms, loss, seconds) in [
        (100, 5, "0.1%", 300),
        (100, 20, "0.1%", 300),
        (100, 50, "0.03%", 300),
        (1_000, 5, "0.03%", 100),
        (1_000, 5, "0.01%", 60),
        (1_000, 20, "0.01%", 60),
    ] {
        let measured = rate_under_loss(NATIVE, (mbit, rtt_ms, loss), (30, seconds));
        let link = BitRate::from_bps(mbit * 1_000_000);
        let expected = model::udt_under_loss(link, 1_500, loss.parse().unwrap()).unwrap();
        let expected = expected.as_f64() / 1e6 * PAYLOAD as f64 / 1_500.0;
        let error = measured / expected - 1.0;
        let case = format!("{mbit} Mbit/s x {rtt_ms} ms, {loss}");
        println!("{case}: {measured:.1} Mbit/s, expected {expected:.1}, {:+.1} %", error * 100.0);
        assert!(error.abs() <= 0.05, "{case}: {measured:.1}, expected {expected:.1} Mbit/s");
    }
}

/// SRT ignores loss under 2 % of what is in flight: its rate still rises, only not in the
/// SYNs with a loss. Where 2 % are less than a packet, each loss counts.
#[test]
fn srt_is_slowed_less_by_loss_than_udt() {
    let loss = "0.1%";
    let udt = rate_under_loss(NATIVE, (100, 50, loss), (100, 100));
    let srt = rate_under_loss(Algorithm::Udt(UdtRules::Srt), (100, 50, loss), (100, 100));
    assert!(srt > 2.0 * udt, "{loss}: udt {udt:.1}, srt {srt:.1} Mbit/s");
}
