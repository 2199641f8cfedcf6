//! BBR against the figures of its paper.

use crate::arrange::{MSS, bottleneck, goodput_share, peak_queue, scenario};
use control::Algorithm;
use link::{LinkConfig, Loss, TokenBucket};
use record::Sample;
use units::{BitRate, ByteCount};

#[test]
fn bbr_fills_the_path_up_to_a_loss_of_five_percent_where_cubic_does_not() {
    // ACM Queue 2016, figure 8: 100 Mbit/s x 100 ms.
    let share = |algorithm, loss: &str| {
        let (forward, reverse) = bottleneck(100, 100, 1.0);
        let loss = Loss::Bernoulli(loss.parse().unwrap());
        let forward = LinkConfig { loss, seed: 1, ..forward };
        let outcome = twin::run(&scenario((forward, reverse), algorithm, 60));
        goodput_share(&outcome, 100, 5.0, 60.0)
    };
    for (loss, least) in [("0%", 0.95), ("0.1%", 0.9), ("1%", 0.9), ("5%", 0.85)] {
        let bbr = share(Algorithm::Bbr, loss);
        assert!(bbr > least, "{loss}: {bbr:.3}");
    }
    let cubic = share(Algorithm::Cubic, "0.1%");
    assert!((0.03..0.2).contains(&cubic), "{cubic:.3}");
    let cubic = share(Algorithm::Cubic, "1%");
    assert!(cubic < 0.03, "{cubic:.3}");
}

#[test]
fn bbr_keeps_at_most_about_one_bdp_queued() {
    let outcome = twin::run(&scenario(bottleneck(50, 50, 8.0), Algorithm::Bbr, 60));
    let bdp = 50e6 / 8.0 / 20.0;
    let queue = peak_queue(&outcome, 3.0) as f64 / bdp;
    assert!(queue < 1.1, "{queue:.2} BDP");
    // And most of the time next to none.
    let later: Vec<_> = outcome.truth.iter().filter(|i| i.to_s > 3.0).collect();
    let mean: f64 = later.iter().map(|i| i.queue_bytes as f64).sum::<f64>() / later.len() as f64;
    assert!(mean / bdp < 0.3, "{:.2} BDP", mean / bdp);
    assert!(goodput_share(&outcome, 50, 3.0, 60.0) > 0.9);
}

#[test]
fn startup_ends_after_three_rounds_without_growth() {
    let outcome = twin::run(&scenario(bottleneck(50, 50, 8.0), Algorithm::Bbr, 3));
    let samples = &outcome.measurement.streams[0].sender;
    let left = samples.iter().find(|sample| sample.ssthresh_bytes.is_some()).unwrap();
    // 208 packets a BDP from 10: log2(20.8) rounds, three more, and those of the queue.
    assert!((0.3..1.0).contains(&left.t_s), "{}", left.t_s);
}

#[test]
fn probe_rtt_leaves_four_packets_in_flight_every_ten_seconds() {
    let outcome = twin::run(&scenario(bottleneck(50, 50, 8.0), Algorithm::Bbr, 40));
    let samples = &outcome.measurement.streams[0].sender;
    let few = |sample: &Sample| sample.cwnd_bytes <= 4 * 1448;
    let times: Vec<f64> = samples.iter().filter(|sample| few(sample)).map(|s| s.t_s).collect();
    let mut phases: Vec<f64> = Vec::new();
    for time in times.into_iter().filter(|time| *time > 1.0) {
        if phases.last().is_none_or(|last| time - last > 1.0) {
            phases.push(time);
        }
    }
    assert_eq!(phases.len(), 3, "{phases:?}");
    let gaps: Vec<f64> = phases.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (9.9..10.8).contains(gap)), "{phases:?}");
}

#[test]
fn behind_a_policer_it_holds_the_policers_rate() {
    // A fifth of the link's rate, after a bucket of 1 MiB: without the detection, which needs two
    // intervals of four rounds, 17 % are lost.
    let (forward, reverse) = bottleneck(100, 100, 1.0);
    let policer = Some(TokenBucket {
        rate: BitRate::from_bps(20_000_000),
        burst: ByteCount::from_bytes(1 << 20),
    });
    let forward = LinkConfig { policer, ..forward };
    let outcome = twin::run(&scenario((forward, reverse), Algorithm::Bbr, 60));
    let samples = &outcome.measurement.streams[0].sender;
    let at = |t_s: f64| samples.iter().find(|sample| sample.t_s >= t_s).unwrap();
    let lost = |from: &Sample, to: &Sample| {
        let acked = (to.acked_bytes - from.acked_bytes) / MSS;
        (to.retransmits - from.retransmits) as f64 / acked as f64
    };
    let (began, end) = (at(0.5), samples.last().unwrap());
    assert!(lost(began, end) < 0.13, "{:.3}", lost(began, end));
    let share = goodput_share(&outcome, 20, 10.0, 60.0);
    assert!(share > 0.85, "{share:.3}");
}
