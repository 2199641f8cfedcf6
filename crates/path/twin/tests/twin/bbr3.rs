//! BBR version 3 against the claims of its draft.

use crate::arrange::{bottleneck, goodput_share, ms, packet_rate, peak_queue, scenario};
use control::Algorithm;
use link::{LinkConfig, Loss};
use record::Sample;
use std::time::Duration;
use twin::{ConnectionConfig, Outcome, Scenario};

/// Connections that start at those times, s, on one path.
fn together(
    (forward, reverse): (LinkConfig, LinkConfig),
    starts: &[(Algorithm, u64)],
    seconds: u64,
) -> Outcome {
    let connections = starts.iter().map(|(algorithm, start_s)| ConnectionConfig {
        algorithm: *algorithm,
        start: Duration::from_secs(*start_s),
        ..ConnectionConfig::default()
    });
    twin::run(&Scenario {
        connections: connections.collect(),
        ..Scenario::new(forward, reverse, Duration::from_secs(seconds))
    })
}

#[test]
fn losses_under_two_percent_cost_little() {
    let share = |loss: &str| {
        let (forward, reverse) = bottleneck(100, 100, 1.0);
        let loss = Loss::Bernoulli(loss.parse().unwrap());
        let forward = LinkConfig { loss, seed: 1, ..forward };
        let outcome = twin::run(&scenario((forward, reverse), Algorithm::Bbr3, 60));
        goodput_share(&outcome, 100, 5.0, 60.0)
    };
    for (loss, least) in [("0%", 0.95), ("0.1%", 0.93), ("0.5%", 0.9), ("1%", 0.9)] {
        let bbr = share(loss);
        println!("{loss}: {bbr:.3}");
        assert!(bbr > least, "{loss}: {bbr:.3}");
    }
}

#[test]
fn three_staggered_flows_share_the_path_fairly() {
    let starts = [(Algorithm::Bbr3, 0), (Algorithm::Bbr3, 10), (Algorithm::Bbr3, 20)];
    let outcome = together(bottleneck(100, 50, 1.0), &starts, 60);
    let rates: Vec<f64> = (0..3).map(|stream| packet_rate(&outcome, stream, 45.0, 60.0)).collect();
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let jain = sum * sum / 3.0 / squares;
    println!("{rates:.0?}, Jain's index {jain:.3}");
    assert!(jain >= 0.95, "{rates:.0?}, Jain's index {jain:.3}");
}

/// The first acknowledgement of a flow that starts late is no reason to probe the RTT.
#[test]
fn a_late_start_is_as_fast_as_an_early_one() {
    for control in [Algorithm::Bbr, Algorithm::Bbr3] {
        let [early, late] = [0, 30].map(|start| {
            let outcome = together(bottleneck(50, 50, 1.0), &[(control, start)], start + 2);
            packet_rate(&outcome, 0, start as f64, start as f64 + 1.0)
        });
        assert!((late / early - 1.0).abs() < 0.02, "{control:?}: {early} and {late}");
    }
}

#[test]
fn neither_it_nor_cubic_starves_beside_the_other() {
    for (mbit, rtt_ms) in [(50, 40), (100, 20), (100, 50), (100, 100), (300, 50)] {
        for starts in [[0, 5], [5, 0]] {
            let flows = [(Algorithm::Bbr3, starts[0]), (Algorithm::Cubic, starts[1])];
            let outcome = together(bottleneck(mbit, rtt_ms, 1.0), &flows, 120);
            let [bbr, cubic] = [0, 1].map(|stream| packet_rate(&outcome, stream, 20.0, 120.0));
            let share = bbr / (bbr + cubic);
            println!("{mbit} Mbit/s x {rtt_ms} ms, starts {starts:?}: {share:.2}");
            // SACK compression makes CUBIC's repairs slower, so that it has less than without it.
            assert!((0.2..=0.8).contains(&share), "{mbit} {rtt_ms} {starts:?}: {share:.2}");
        }
    }
}

#[test]
fn it_keeps_the_queue_short() {
    let outcome = twin::run(&scenario(bottleneck(50, 50, 8.0), Algorithm::Bbr3, 60));
    let bdp = 50e6 / 8.0 / 20.0;
    let queue = peak_queue(&outcome, 3.0) as f64 / bdp;
    assert!(queue < 1.3, "{queue:.2} BDP");
    let later: Vec<_> = outcome.truth.iter().filter(|i| i.to_s > 3.0).collect();
    let mean: f64 = later.iter().map(|i| i.queue_bytes as f64).sum::<f64>() / later.len() as f64;
    assert!(mean / bdp < 0.3, "{:.2} BDP", mean / bdp);
    assert!(goodput_share(&outcome, 50, 3.0, 60.0) > 0.9);
}

#[test]
fn probe_rtt_halves_what_is_in_flight_every_five_seconds() {
    let outcome = twin::run(&scenario(bottleneck(50, 50, 8.0), Algorithm::Bbr3, 40));
    let samples = &outcome.measurement.streams[0].sender;
    let bdp = 50_000_000 / 8 / 20;
    let few = |sample: &Sample| sample.cwnd_bytes < bdp * 3 / 4;
    let times: Vec<f64> = samples.iter().filter(|sample| few(sample)).map(|s| s.t_s).collect();
    let mut phases: Vec<f64> = Vec::new();
    for time in times.into_iter().filter(|time| *time > 2.0) {
        if phases.last().is_none_or(|last| time - last > ms(1_000).as_secs_f64()) {
            phases.push(time);
        }
    }
    assert!((6..=8).contains(&phases.len()), "{phases:?}");
    let gaps: Vec<f64> = phases.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (4.9..6.0).contains(gap)), "{phases:?}");
}
