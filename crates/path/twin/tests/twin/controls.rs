//! Every congestion control over one path without loss of its own.

use crate::arrange::{bottleneck, goodput_share, peak_queue, scenario};
use control::{Algorithm, PathShare};
use twin::Outcome;
use units::{BitRate, Rtt};

const MBIT: u64 = 100;
const RTT_MS: u64 = 50;
const SECONDS: u64 = 16;
/// From when on figures count: after slow start and what it cost.
const FROM_S: f64 = 6.0;

fn run(algorithm: Algorithm) -> Outcome {
    twin::run(&scenario(bottleneck(MBIT, RTT_MS, 1.0), algorithm, SECONDS))
}

/// The largest queue in packets of 1500 bytes.
fn queue(outcome: &Outcome) -> u64 {
    peak_queue(outcome, FROM_S) / 1_500
}

#[test]
fn every_control_carries_most_of_the_bottleneck() {
    for algorithm in Algorithm::ALL {
        let outcome = run(algorithm);
        let share = goodput_share(&outcome, MBIT, FROM_S, SECONDS as f64);
        println!("{:10} {share:.3}, queue {} packets", algorithm.name(), queue(&outcome));
        assert!(share > 0.8, "{algorithm:?}: {share:.3}");
        assert!(share <= 1.005, "{algorithm:?}: {share:.3}");
    }
}

#[test]
fn controls_by_delay_keep_the_queue_short() {
    // Of 417 packets. What a sender's bursts queue comes on top of the few packets aimed at.
    for (algorithm, most) in [(Algorithm::Vegas, 60), (Algorithm::Fast(20), 80)] {
        let outcome = run(algorithm);
        assert!(queue(&outcome) <= most, "{algorithm:?}: {} packets", queue(&outcome));
    }
}

#[test]
fn the_oracle_fills_the_bottleneck_without_a_queue() {
    let share = PathShare {
        rate: BitRate::from_bps(MBIT * 1_000_000),
        rtt: Rtt::from_micros(RTT_MS * 1_000),
    };
    let outcome = run(Algorithm::Oracle(share));
    assert!(goodput_share(&outcome, MBIT, FROM_S, SECONDS as f64) > 0.98);
    assert!(queue(&outcome) <= 4, "{} packets", queue(&outcome));
}
