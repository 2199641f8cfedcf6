//! Slow start, and the use of a bottleneck.

use crate::arrange::{bottleneck, goodput_share, packet_rate, scenario, unlimited};
use control::Algorithm;

#[test]
fn slow_start_doubles_the_window_each_round_trip() {
    let outcome = twin::run(&scenario(unlimited(100), Algorithm::NewReno, 1));
    let samples = &outcome.measurement.streams[0].sender;
    // Between the acknowledgements of two rounds, from 10 packets on.
    for round in 0..8_u32 {
        let middle = 0.05 + 0.1 * f64::from(round);
        let sample = samples.iter().find(|sample| sample.t_s >= middle).unwrap();
        assert_eq!(sample.cwnd_bytes / 1448, 10 << round, "round {round}");
    }
}

#[test]
fn hystart_leaves_slow_start_before_the_queue_overflows() {
    for (mbit, rtt_ms) in [(50, 50), (100, 100), (500, 20)] {
        let outcome = twin::run(&scenario(bottleneck(mbit, rtt_ms, 1.0), Algorithm::Cubic, 3));
        let samples = &outcome.measurement.streams[0].sender;
        let left = samples.iter().find(|sample| sample.ssthresh_bytes.is_some()).unwrap();
        let bdp = (mbit * 1_000_000 / 8 * rtt_ms / 1_000) as f64;
        let share = left.ssthresh_bytes.unwrap() as f64 / bdp;
        assert_eq!(left.retransmits, 0, "{mbit} Mbit/s: {left:?}");
        assert!((0.3..=1.5).contains(&share), "{mbit} Mbit/s x {rtt_ms} ms: {share:.2} BDP");
    }
}

#[test]
fn reno_overshoots_the_queue_in_slow_start_and_recovers() {
    let outcome = twin::run(&scenario(bottleneck(50, 50, 1.0), Algorithm::NewReno, 10));
    let drops: u64 = outcome.truth.iter().map(|interval| interval.drops.queue).sum();
    assert!(drops > 100, "{drops}");
    let share = goodput_share(&outcome, 50, 5.0, 10.0);
    assert!(share > 0.95 * 1448.0 / 1500.0, "{share}");
}

#[test]
fn a_drop_tail_queue_of_one_bdp_keeps_the_bottleneck_saturated() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
        for (mbit, rtt_ms) in [(10, 20), (50, 50), (200, 20)] {
            let path = bottleneck(mbit, rtt_ms, 1.0);
            let outcome = twin::run(&scenario(path, algorithm, 60));
            let share = goodput_share(&outcome, mbit, 20.0, 60.0);
            assert!(share > 0.95, "{algorithm:?}, {mbit} Mbit/s x {rtt_ms} ms: {share:.3}");
            assert!(share <= 1.005, "{algorithm:?}, {mbit} Mbit/s: {share:.3}");
        }
    }
}

#[test]
fn two_connections_share_a_bottleneck() {
    let mut two = scenario(bottleneck(50, 20, 1.0), Algorithm::NewReno, 120);
    two.connections.push(two.connections[0]);
    let outcome = twin::run(&two);
    let rates = [0, 1].map(|stream| packet_rate(&outcome, stream, 20.0, 120.0));
    let share = rates[0] / (rates[0] + rates[1]);
    assert!((0.35..0.65).contains(&share), "{rates:?}");
}
