//! The cap in virtual time, against paths that need so much and no more.

use super::*;

const KIB: u64 = 1 << 10;

/// A path: the rate of a stream whose window is `window`, at a time in seconds.
type Path<'a> = &'a dyn Fn(f64, u64) -> f64;

/// Runs a cap for `seconds` over a path with ticks of 10 ms, noise of `noise` on each, and
/// returns it with the bytes transferred.
fn run(end: End, rtt_us: u64, seconds: f64, noise: f64, path: Path<'_>) -> (WindowCap, f64) {
    let mut cap = WindowCap::new(end, Some(Rtt::from_micros(rtt_us)), 1).unwrap();
    let (mut bytes, mut random) = (0.0, 1u64);
    for tick in 1..=(seconds * 100.0) as u64 {
        let window = cap.bytes().map_or(64 << 20, ByteCount::bytes);
        // A linear congruential generator (Knuth): uniform from -1 to 1.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let off = (random >> 33) as f64 / f64::from(1u32 << 30) - 1.0;
        bytes += path(tick as f64 / 100.0, window) * (1.0 + noise * off) / 8.0 * 0.01;
        cap.tick(Duration::from_millis(10 * tick), [bytes as u64]);
    }
    (cap, bytes)
}

/// A path of `gbit` at most, with an RTT of `rtt_us` under load.
fn limited(gbit: f64, rtt_us: f64) -> impl Fn(f64, u64) -> f64 {
    move |_, window| (gbit * 1e9).min(window as f64 * 8e6 / rtt_us)
}

#[test]
fn only_short_paths_are_capped() {
    for (rtt, capped) in [(None, false), (Some(1_999), true), (Some(2_000), false), (Some(9), true)]
    {
        let cap = WindowCap::new(End::Receiver, rtt.map(Rtt::from_micros), 1);
        assert_eq!(cap.is_some(), capped, "{rtt:?}");
    }
    let first = |end| WindowCap::new(end, Some(Rtt::from_micros(9)), 1).unwrap().bytes();
    assert_eq!(first(End::Receiver), Some(WINDOW_FLOOR), "before any data");
    assert_eq!(first(End::Sender), None, "not fast");
}

#[test]
fn a_local_path_keeps_the_floor() {
    // 20 Gbit/s at 20 µs: a BDP of 50 kB.
    let (cap, bytes) = run(End::Receiver, 20, 10.0, 0.0, &limited(20.0, 40.0));
    assert_eq!(cap.settled(), Some(WINDOW_FLOOR));
    assert!(bytes > 0.999 * 25e9, "{bytes}");
}

#[test]
fn unsent_data_is_limited_at_high_rates_only() {
    let slow = run(End::Sender, 20, 10.0, 0.1, &|_, _| 4.5e9).0;
    assert_eq!((slow.bytes(), slow.settled(), slow.raises), (None, None, 0));
    let fast = run(End::Sender, 20, 10.0, 0.1, &|_, _| 10e9).0;
    assert!(fast.settled().unwrap() >= UNSENT_FLOOR && !fast.is_lifted());
}

#[test]
fn the_cap_follows_the_rate_within_a_few_ticks() {
    // 40 Gbit/s at 1 ms: a BDP of 5 MB.
    let (cap, bytes) = run(End::Receiver, 1_000, 10.0, 0.0, &limited(40.0, 1_000.0));
    assert_eq!(cap.settled(), Some(ByteCount::from_bytes(20_000_000)));
    assert!(bytes > 0.99 * 50e9, "{bytes}");
}

#[test]
fn a_cap_that_limits_the_rate_is_raised() {
    // A queue of other traffic: 0.1 ms idle, 20 ms under load: 4 Gbit/s need 10 MB.
    let (cap, bytes) = run(End::Receiver, 100, 10.0, 0.05, &limited(4.0, 20_000.0));
    assert!(cap.settled().is_none_or(|cap| cap.bytes() >= 10_000_000), "{cap:?}");
    assert!(bytes > 0.9 * 5e9, "{bytes}");
    let (cap, _) = run(End::Sender, 10, 10.0, 0.05, &limited(20.0, 400.0));
    assert!(cap.settled().unwrap().bytes() >= 1_000_000, "{cap:?}");
}

#[test]
fn windows_far_above_the_need_are_not_reached() {
    // Slower with larger windows, as from memory.
    let memory: Path<'_> = &|_, window| if window > 16 << 20 { 25e9 } else { 45e9 };
    let (cap, bytes) = run(End::Receiver, 20, 10.0, 0.05, memory);
    assert_eq!(cap.settled(), Some(WINDOW_FLOOR));
    assert!(bytes > 0.97 * 45e9 / 8.0 * 10.0, "{bytes}");
}

#[test]
fn noise_and_a_rising_rate_gain_nothing() {
    let level = |_: f64, _: u64| 20e9;
    for seconds in [1.0, 10.0, 60.0] {
        let (cap, _) = run(End::Receiver, 20, seconds, 0.2, &level);
        assert!(cap.raises <= 1, "{seconds} {cap:?}");
    }
    let rising = |t: f64, _: u64| 1e9 * (1.0 + t);
    assert_eq!(run(End::Receiver, 20, 10.0, 0.0, &rising).0.raises, 0);
    let idle = |_: f64, _: u64| 0.0;
    assert_eq!(run(End::Sender, 20, 10.0, 0.0, &idle).0.raises, 0);
}

#[test]
fn trials_become_rare_and_those_of_both_ends_do_not_overlap() {
    let trials = |end| {
        let mut cap = WindowCap::new(end, Some(Rtt::from_micros(20)), 2).unwrap();
        let (mut in_trial, mut started) = (Vec::new(), 0);
        for tick in 1..3_000u64 {
            let was = cap.trial.is_some();
            cap.tick(Duration::from_millis(10 * tick), [tick * 10_000_000, tick * 10 * KIB]);
            started += usize::from(!was && cap.trial.is_some());
            in_trial.push(cap.trial.is_some());
        }
        (in_trial, started)
    };
    let (ours, theirs) = (trials(End::Receiver), trials(End::Sender));
    assert!(ours.0.iter().zip(&theirs.0).all(|(ours, theirs)| !(ours & theirs)));
    assert!((5..=12).contains(&ours.1), "{}", ours.1);
}

#[test]
fn odd_ticks_do_no_harm() {
    let mut cap = WindowCap::new(End::Receiver, Some(Rtt::from_micros(20)), 1).unwrap();
    for (ms, count) in [(0, 0), (0, 5), (20, u64::MAX), (10, 7), (5_000, 3), (90_000, u64::MAX)] {
        cap.tick(Duration::from_millis(ms), [count]);
        assert!(cap.bytes().is_none_or(|cap| cap >= WINDOW_FLOOR));
    }
}
