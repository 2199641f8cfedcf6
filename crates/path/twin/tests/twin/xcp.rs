//! XCP over a router that has it: full links, short queues and equal shares (Katabi, Handley,
//! Rohrs, SIGCOMM 2002).

use crate::arrange::{bottleneck, goodput_share, ms, packet_rate, scenario};
use control::Algorithm;
use link::{LinkConfig, Queue, Xcp};
use std::time::Duration;
use twin::{ConnectionConfig, Outcome, Scenario};

/// A bottleneck with an XCP router and a queue of one BDP.
fn router(mbit: u64, rtt_ms: u64) -> (LinkConfig, LinkConfig) {
    let (forward, reverse) = bottleneck(mbit, rtt_ms, 1.0);
    let queue = Queue::Xcp(Xcp { limit: forward.queue.limit() });
    (LinkConfig { queue, ..forward }, reverse)
}

fn flow(start_ms: u64, access_ms: u64) -> ConnectionConfig {
    ConnectionConfig {
        start: ms(start_ms),
        access_delay: ms(access_ms),
        algorithm: Algorithm::Xcp,
        ..ConnectionConfig::default()
    }
}

fn run(path: (LinkConfig, LinkConfig), flows: Vec<ConnectionConfig>, seconds: u64) -> Outcome {
    let (forward, reverse) = path;
    let scenario = Scenario::new(forward, reverse, Duration::from_secs(seconds));
    twin::run(&Scenario { connections: flows, ..scenario })
}

/// Median and peak of the queue from a moment on, in packets.
fn queue(outcome: &Outcome, from_s: f64) -> (u64, u64) {
    let later = || outcome.truth.iter().filter(|interval| interval.to_s > from_s);
    let mut lengths: Vec<u64> = later().map(|interval| interval.queue_bytes / 1_500).collect();
    lengths.sort_unstable();
    let peak = later().map(|interval| interval.peak_queue_bytes / 1_500).max().unwrap();
    (lengths[lengths.len() / 2], peak)
}

fn utilization(outcome: &Outcome, from_s: f64) -> f64 {
    let later: Vec<f64> = outcome
        .truth
        .iter()
        .filter(|interval| interval.to_s > from_s)
        .map(|interval| interval.utilization)
        .collect();
    later.iter().sum::<f64>() / later.len() as f64
}

fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    sum * sum / (rates.len() as f64 * squares)
}

#[test]
fn one_flow_fills_the_link_with_a_short_queue_and_no_drops() {
    for (mbit, rtt_ms) in [(20, 20), (100, 100), (500, 50), (100, 330)] {
        let outcome = run(router(mbit, rtt_ms), vec![flow(0, 0)], 20);
        let share = goodput_share(&outcome, mbit, 5.0, 20.0);
        let ((median, peak), start) = (queue(&outcome, 5.0), queue(&outcome, 0.0).1);
        println!(
            "{mbit} Mbit/s x {rtt_ms} ms: {share:.3}, queue {median} and {peak} packets, at the start {start}"
        );
        assert_eq!((outcome.forward.queue_drops, outcome.senders[0].retransmits), (0, 0));
        assert!(share > 0.95, "{mbit} Mbit/s x {rtt_ms} ms: {share:.3}");
        let bdp = mbit * rtt_ms * 1_000 / 8 / 1_500;
        assert!(median <= bdp / 20 && peak <= bdp / 5, "{median}, {peak} of {bdp}");
    }
}

#[test]
fn a_flow_without_a_router_keeps_its_initial_window() {
    let outcome = twin::run(&scenario(bottleneck(100, 100, 1.0), Algorithm::Xcp, 5));
    assert_eq!(outcome.senders[0].cwnd, control::INITIAL_WINDOW);
}

#[test]
fn flows_that_start_one_after_the_other_converge_to_equal_shares() {
    let flows: Vec<_> = (0..10).map(|number| flow(2_000 * number, 0)).collect();
    let outcome = run(router(100, 40), flows, 40);
    let rates: Vec<f64> = (0..10).map(|one| packet_rate(&outcome, one, 25.0, 40.0)).collect();
    let (median, peak) = queue(&outcome, 1.0);
    let counters = outcome.forward;
    println!(
        "Jain {:.5}, utilization {:.3}, queue {median} and {peak} packets, {} of {} dropped",
        jain(&rates),
        utilization(&outcome, 1.0),
        counters.queue_drops,
        counters.arrived
    );
    assert!(jain(&rates) > 0.99, "{rates:?}");
    assert!(utilization(&outcome, 1.0) > 0.95);
    assert!(counters.queue_drops * 100_000 <= counters.arrived, "{counters:?}");
}

/// The same with a queue of one BDP of a longer round trip.
fn router_for(mbit: u64, rtt_ms: u64, mean_rtt_ms: u64) -> (LinkConfig, LinkConfig) {
    let (forward, reverse) = router(mbit, rtt_ms);
    let queue = router(mbit, mean_rtt_ms).0.queue;
    (LinkConfig { queue, ..forward }, reverse)
}

#[test]
fn shares_do_not_depend_on_the_round_trip() {
    let outcome = run(router_for(45, 40, 185), vec![flow(0, 0), flow(0, 290)], 60);
    let [short, long] = [0, 1].map(|one| packet_rate(&outcome, one, 20.0, 60.0));
    println!("40 ms: {short:.0} packets/s, 330 ms: {long:.0}");
    assert!((short / long - 1.0).abs() < 0.1, "{short:.0} {long:.0}");
    assert_eq!(outcome.forward.queue_drops, 0);
    // Reno's shares differ by more than the ratio of the round trips.
    let reno = |access_ms| ConnectionConfig { algorithm: Algorithm::NewReno, ..flow(0, access_ms) };
    let outcome = run(bottleneck(45, 40, 1.0), vec![reno(0), reno(290)], 60);
    let [short, long] = [0, 1].map(|one| packet_rate(&outcome, one, 20.0, 60.0));
    println!("Reno: 40 ms: {short:.0} packets/s, 330 ms: {long:.0}");
    assert!(short > 4.0 * long, "{short:.0} {long:.0}");
}

/// The paper's scenario (section 5.4): 30 long flows over 30 Mbit/s, with round trips of 40 to
/// 330 ms.
#[test]
fn thirty_flows_with_round_trips_of_40_to_330_ms_have_equal_shares() {
    let flows = (0..30).map(|number| flow(0, 10 * number)).collect();
    let outcome = run(router_for(30, 40, 185), flows, 60);
    let rates: Vec<f64> = (0..30).map(|one| packet_rate(&outcome, one, 30.0, 60.0)).collect();
    let counters = outcome.forward;
    let (median, peak) = queue(&outcome, 30.0);
    println!(
        "Jain {:.5}, utilization {:.3}, queue {median} and {peak} packets, {} of {} dropped",
        jain(&rates),
        utilization(&outcome, 30.0),
        counters.queue_drops,
        counters.arrived
    );
    assert!(jain(&rates) > 0.99, "{rates:?}");
    assert!(utilization(&outcome, 30.0) > 0.95);
    assert!(counters.queue_drops * 1_000 <= counters.arrived, "{counters:?}");
}
