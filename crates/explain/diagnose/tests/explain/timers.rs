//! Figures of the steady part, and shares of time by the kernel's timers.

use crate::build::{TestFlow, flow};
use diagnose::{explain, shares_between};
use record::{EndCondition, Measurement, Sample};
use units::ByteCount;

/// The kernel's floor of 1 µs is no RTT: a window over it would allow 792 Tbit/s.
#[test]
fn a_receivers_rtt_of_a_microsecond_is_ignored() {
    let mut m = TestFlow { streams: 8, window: 99_000_000 / 8, ..flow(9_000.0, 1.0) }.measurement();
    for stream in &mut m.streams {
        stream.sender.clear();
        stream.receiver.iter_mut().for_each(|sample| sample.min_rtt_us = Some(1));
    }
    let finding = explain(&m);
    assert_eq!((finding.shares, finding.min_rtt), (None, None));
    assert!(!finding.sentence.contains("Tbit/s"), "{}", finding.sentence);
}

#[test]
fn two_samples_give_the_shares_between_them() {
    let at = |t_s: f64, busy_us: u64, rwnd_limited_us: u64, sndbuf_limited_us: u64| Sample {
        t_s,
        busy_us,
        rwnd_limited_us,
        sndbuf_limited_us,
        ..Sample::default()
    };
    let shares =
        shares_between(&at(1.0, 5_000_000, 0, 7), &at(3.0, 6_500_000, 500_000, 200_007)).unwrap();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    close(shares.receive_window, 0.25);
    close(shares.send_buffer, 0.1);
    close(shares.network, 0.4);
    close(shares.application, 0.25);
    assert_eq!(shares_between(&at(1.0, 0, 0, 0), &at(1.0, 9, 9, 9)), None);
    // Counters that fall or run faster than time give shares all the same.
    let wild = shares_between(&at(0.0, 9, u64::MAX, 0), &at(1.0, u64::MAX, 0, u64::MAX)).unwrap();
    close(wild.application + wild.network + wild.send_buffer + wild.receive_window, 1.0);
}

/// 30 s of a transfer that runs at 10 Mbit/s for 12 s and at 40 Mbit/s after that. Losses in the first
/// second end slow start, which would otherwise last until the rate rises.
fn thirty_seconds(end: EndCondition) -> Measurement {
    let faster_later = |t: f64| if t < 12.0 { 10e6 } else { 40e6 };
    let lost = Box::new(|t: f64| if t < 1.0 { 10.0 } else { 0.0 });
    let flow = TestFlow { seconds: 30.0, bps: Box::new(faster_later), lost, ..flow(40.0, 20.0) };
    let mut m = flow.measurement();
    // What `-n` leaves of the default duration.
    m.spec.seconds = 10.0;
    m.spec.end = end;
    m
}

#[test]
fn a_test_that_bytes_end_is_judged_on_its_whole_duration() {
    for end in [EndCondition::Bytes(ByteCount::from_bytes(105_000_000)), EndCondition::Blocks(801)]
    {
        let finding = explain(&thirty_seconds(end));
        assert!((finding.steady.to_s - 30.0).abs() < 0.2, "{:?}", finding.steady);
        let mbit = finding.throughput_bps.bps() as f64 / 1e6;
        assert!((38.0..=41.0).contains(&mbit), "{mbit}");
    }
    let timed = explain(&thirty_seconds(EndCondition::Time));
    assert!((timed.steady.to_s - 10.0).abs() < 0.2, "{:?}", timed.steady);
}
