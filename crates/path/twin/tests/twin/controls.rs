//! Every congestion control over one path without loss of its own.

use crate::arrange::{bottleneck, goodput_share, scenario};
use control::{Algorithm, PathShare};
use twin::Outcome;
use units::{BitRate, Rtt};

const MBIT: u64 = 100;
const RTT_MS: u64 = 50;

/// A queue of one BDP, 417 packets.
fn run(algorithm: Algorithm, seconds: u64) -> Outcome {
    twin::run(&scenario(bottleneck(MBIT, RTT_MS, 1.0), algorithm, seconds))
}

/// The mean queue from a moment on, in packets of 1500 bytes.
fn mean_queue(outcome: &Outcome, from_s: f64) -> f64 {
    let later: Vec<_> = outcome.truth.iter().filter(|interval| interval.to_s > from_s).collect();
    let sum: u64 = later.iter().map(|interval| interval.queue_bytes).sum();
    sum as f64 / 1_500.0 / later.len() as f64
}

#[test]
fn every_control_carries_most_of_the_bottleneck() {
    for algorithm in Algorithm::ALL {
        // Westwood+ comes out of slow start with a low estimate, and grows by one packet a
        // round trip from there.
        let (from, to) = if algorithm == Algorithm::Westwood { (20.0, 30) } else { (6.0, 16) };
        let outcome = run(algorithm, to);
        let share = goodput_share(&outcome, MBIT, from, to as f64);
        let queue = mean_queue(&outcome, from);
        println!("{:10} {share:.3}, queue {queue:.0} packets", algorithm.name());
        assert!(share > 0.8, "{algorithm:?}: {share:.3}");
        assert!(share <= 1.005, "{algorithm:?}: {share:.3}");
    }
}

#[test]
fn controls_by_delay_keep_the_queue_short() {
    // Bursts of unpaced senders come on top of the packets aimed at, 2 to 4 and 20.
    for algorithm in [Algorithm::Vegas, Algorithm::Fast(20)] {
        let queue = mean_queue(&run(algorithm, 16), 6.0);
        println!("{:10} queue {queue:.0} packets", algorithm.name());
        assert!(queue < 80.0, "{algorithm:?}: {queue:.0} packets");
    }
}

#[test]
fn the_oracle_fills_the_bottleneck_without_a_queue() {
    let share = PathShare {
        rate: BitRate::from_bps(MBIT * 1_000_000),
        rtt: Rtt::from_micros(RTT_MS * 1_000),
    };
    let outcome = run(Algorithm::Oracle(share), 10);
    let goodput = goodput_share(&outcome, MBIT, 2.0, 10.0);
    let queue = mean_queue(&outcome, 2.0);
    println!("oracle     {goodput:.3}, queue {queue:.0} packets");
    assert!(goodput > 0.98, "{goodput:.3}");
    assert!(queue < 16.0, "{queue:.0} packets");
}
