//! What a finding says of a transfer: figures, equation, sentence, steady part.

use crate::{build::path, transfer::over};
use diagnose::explain;
use record::Limit;

/// 128 KiB over 173 ms, on a path of 100 Mbit/s.
fn small_window() -> record::Measurement {
    let transfer = over(100.0, 173.0, "queue=1bdp");
    let share = f64::from(128 << 10) / transfer.bdp();
    let mut m = transfer.receive_window(share).run(0);
    m.path = Some(path(100, 173, "0"));
    m
}

#[test]
fn a_window_has_an_equation_a_share_of_time_and_a_remedy() {
    let finding = explain(&small_window());
    assert_eq!(finding.limit, Some(Limit::ReceiveWindow));
    let (predicted, reached) = (finding.predicted_bps.unwrap(), finding.throughput_bps);
    let ratio = reached.as_f64() / predicted.as_f64();
    assert!((0.9..1.05).contains(&ratio), "{reached} of {predicted}");
    let equation = finding.equation.unwrap();
    assert!(equation.starts_with("window / RTT = "), "{equation}");
    let sentence = finding.sentence;
    for part in ["Rwnd-limited", "over 173 ms allows at most", "a window of 2.16 MB", "tcp_rmem"] {
        assert!(sentence.contains(part), "{sentence}");
    }
    assert!(finding.shares.unwrap().receive_window > 0.8);
}

#[test]
fn a_saturated_path_has_a_ceiling_and_a_queue() {
    let mut m = over(100.0, 40.0, "queue=2bdp").run(0);
    m.path = Some(path(100, 40, "0"));
    let finding = explain(&m);
    assert_eq!(finding.limit, Some(Limit::PathRate), "{:?}", finding.posterior);
    assert_eq!(
        finding.equation.as_deref(),
        Some("rate x payload / packet = 100 Mbit/s x 1448 / 1500 = 96.5 Mbit/s of TCP payload")
    );
    assert!(finding.sentence.contains("ms of queueing delay"), "{}", finding.sentence);
    assert!(finding.throughput_bps > finding.average_bps, "slow start is not part of it");
    assert!((0.05..2.0).contains(&finding.steady.from_s), "{:?}", finding.steady);
    assert!(finding.loaded_rtt.unwrap() > finding.min_rtt.unwrap());
    let bottleneck = finding.bottleneck.unwrap();
    let mbit = bottleneck.rate_bps.as_f64() / 1e6;
    assert!((95.0..98.0).contains(&mbit) && bottleneck.high_bps.is_some(), "{bottleneck:?}");
}

#[test]
fn predictions_are_capped_at_the_paths_rate() {
    let transfer = over(100.0, 80.0, "queue=1bdp").receive_window(0.25);
    let mut m = transfer.run(0);
    m.path = Some(path(20, 80, "0"));
    let finding = explain(&m);
    assert!(finding.predicted_bps.is_none_or(|rate| rate.as_f64() <= 19.4e6), "{finding:?}");
}

#[test]
fn a_known_path_without_loss_has_no_random_loss() {
    let lossy = over(100.0, 30.0, "queue=1bdp,loss=0.2%").run(0);
    let probability = |m: &record::Measurement, limit| {
        let posterior = explain(m).posterior;
        posterior.iter().find(|p| p.limit == limit).map_or(0.0, |p| p.probability)
    };
    assert!(probability(&lossy, Limit::Loss) > 0.6);
    let mut known = lossy.clone();
    known.path = Some(path(100, 30, "0"));
    assert_eq!(probability(&known, Limit::Loss), 0.0);
    known.path = Some(path(100, 30, "0.2%"));
    let finding = explain(&known);
    assert_eq!(finding.limit, Some(Limit::Loss), "{:?}", finding.posterior);
    assert!(finding.sentence.starts_with("Random loss of 0.2 %"), "{}", finding.sentence);
    assert!(finding.equation.unwrap().starts_with("sqrt(3/2) x MSS / (RTT x sqrt(p))"));
}

#[test]
fn a_saturated_core_is_named_whatever_the_samples_show() {
    let mut m = over(100.0, 20.0, "queue=2bdp").run(0);
    (m.sender_cpu, m.receiver_cpu) = (Some(0.52), Some(0.3));
    assert_eq!(explain(&m).limit, Some(Limit::PathRate));
    m.sender_core_wait = Some(0.45);
    let finding = explain(&m);
    assert_eq!(finding.limit, Some(Limit::Cpu));
    let waits = "CPU-limited: the sending thread used 52 % of a core";
    assert!(finding.sentence.starts_with(waits), "{}", finding.sentence);
    let mut waits = over(40.0, 40.0, "queue=1bdp").receive_window(0.25).run(0);
    waits.sender_cpu = Some(0.99);
    assert_eq!(explain(&waits).limit, Some(Limit::ReceiveWindow), "it waits for the window");
}
