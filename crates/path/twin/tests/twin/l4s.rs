//! L4S: Prague over `DualPI2`, beside classic flows, and where there is no L4S queue.

use crate::arrange::{bottleneck, goodput_share, ms, packet_rate, scenario};
use control::Algorithm;
use link::{DualPi2, Limit, LinkConfig, Queue};
use std::time::Duration;
use twin::{ConnectionConfig, Ecn, Outcome, Scenario};

/// A bottleneck with coupled queues of the RFC's settings.
fn dual(mbit: u64, rtt_ms: u64) -> (LinkConfig, LinkConfig) {
    let (forward, reverse) = bottleneck(mbit, rtt_ms, 1.0);
    let queue = Queue::DualPi2(DualPi2 {
        target: ms(15),
        update: ms(16),
        step: ms(1),
        coupling: 2,
        classic_share: "10%".parse().unwrap(),
        limit: Limit::Packets(10_000),
    });
    (LinkConfig { queue, ..forward }, reverse)
}

fn together(
    (forward, reverse): (LinkConfig, LinkConfig),
    flows: &[(Algorithm, Ecn)],
    seconds: u64,
) -> Outcome {
    let connections = flows.iter().map(|(algorithm, ecn)| ConnectionConfig {
        algorithm: *algorithm,
        ecn: *ecn,
        ..ConnectionConfig::default()
    });
    twin::run(&Scenario {
        connections: connections.collect(),
        ..Scenario::new(forward, reverse, Duration::from_secs(seconds))
    })
}

/// Median and 95th percentile of a flow's smoothed RTT from a moment on, ms.
fn rtts(outcome: &Outcome, stream: usize, from_s: f64) -> (f64, f64) {
    let samples = &outcome.measurement.streams[stream].sender;
    let mut rtts: Vec<f64> = samples
        .iter()
        .filter(|sample| sample.t_s > from_s)
        .map(|sample| f64::from(sample.rtt_us) / 1e3)
        .collect();
    rtts.sort_by(f64::total_cmp);
    (rtts[rtts.len() / 2], rtts[rtts.len() * 95 / 100])
}

#[test]
fn prague_alone_fills_the_link_with_a_queue_of_about_a_millisecond() {
    for (mbit, rtt_ms) in [(10, 20), (50, 40), (100, 20), (300, 10)] {
        let outcome = together(dual(mbit, rtt_ms), &[(Algorithm::Prague, Ecn::L4s)], 20);
        let share = goodput_share(&outcome, mbit, 5.0, 20.0);
        let (median, p95) = rtts(&outcome, 0, 5.0);
        let (queue, tail) = (median - rtt_ms as f64, p95 - rtt_ms as f64);
        println!("{mbit} Mbit/s x {rtt_ms} ms: {share:.3}, queue {queue:.2} ms, 95 % {tail:.2} ms");
        let counters = outcome.forward;
        println!("{} marked, {} retransmits", counters.marked, outcome.senders[0].retransmits);
        assert!(share > 0.9 && counters.marked > 0, "{share}");
        assert_eq!(outcome.senders[0].retransmits, 0);
        assert!(queue < 3.0, "{queue} ms");
    }
}

#[test]
fn prague_and_cubic_share_the_link() {
    for (mbit, rtt_ms, classic) in
        [(20, 20, Ecn::Off), (20, 20, Ecn::Classic), (50, 10, Ecn::Off), (50, 20, Ecn::Classic)]
    {
        let flows = [(Algorithm::Prague, Ecn::L4s), (Algorithm::Cubic, classic)];
        let outcome = together(dual(mbit, rtt_ms), &flows, 60);
        let rates = [0, 1].map(|stream| packet_rate(&outcome, stream, 20.0, 60.0));
        let ratio = rates[0] / rates[1];
        let used = (rates[0] + rates[1]) * 1500.0 * 8.0 / 1e6 / mbit as f64;
        let queue = rtts(&outcome, 0, 20.0).0 - rtt_ms as f64;
        let classic_queue = rtts(&outcome, 1, 20.0).0 - rtt_ms as f64;
        println!(
            "{mbit} Mbit/s x {rtt_ms} ms, {classic:?}: Prague / CUBIC {ratio:.2}, {used:.2} used, \
                 queue {queue:.1} and {classic_queue:.1} ms"
        );
        assert!((0.5..2.0).contains(&ratio), "{ratio}");
        assert!(used > 0.9, "{used}");
        assert!(queue < 3.0 && classic_queue > 2.0 * queue, "{queue} {classic_queue}");
    }
}

#[test]
fn prague_is_reno_where_nothing_marks() {
    let outcome = twin::run(&Scenario {
        connections: vec![ConnectionConfig {
            algorithm: Algorithm::Prague,
            ecn: Ecn::L4s,
            ..ConnectionConfig::default()
        }],
        ..scenario(bottleneck(50, 40, 1.0), Algorithm::Prague, 60)
    });
    let share = goodput_share(&outcome, 50, 10.0, 60.0);
    println!("{share:.3}, {} retransmits", outcome.senders[0].retransmits);
    assert!(share > 0.9 && outcome.senders[0].retransmits > 0, "{share}");
    // Beside Reno over drop-tail.
    let flows = [(Algorithm::Prague, Ecn::L4s), (Algorithm::NewReno, Ecn::Off)];
    let outcome = together(bottleneck(50, 40, 1.0), &flows, 120);
    let rates = [0, 1].map(|stream| packet_rate(&outcome, stream, 20.0, 120.0));
    println!("Prague {:.0}, Reno {:.0} packets/s", rates[0], rates[1]);
    let ratio = rates[0] / rates[1];
    assert!((0.4..2.5).contains(&ratio), "{ratio}");
}

#[test]
fn a_classic_flow_reduces_once_a_round_trip_however_many_packets_are_marked() {
    // The step marks nearly all packets of a Reno flow that claims to be L4S.
    let outcome = together(dual(100, 80), &[(Algorithm::NewReno, Ecn::L4s)], 60);
    let info = &outcome.senders[0];
    let rounds = 60_000.0 / 80.0;
    println!("{} marks, {:?}", outcome.forward.marked, info.reductions);
    assert!(outcome.forward.marked > 3 * info.reductions.begun);
    assert!((info.reductions.begun as f64) < rounds, "{:?}", info.reductions);
}
