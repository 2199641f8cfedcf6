//! Limits that the clocks count as one: the network.

use crate::build::{Flow, MSS, flow, path};
use diagnose::explain;
use record::{Finding, Limit};
use units::BitRate;

fn found(flow: &Flow) -> Finding {
    explain(&flow.measurement())
}

fn limit(flow: &Flow) -> Option<Limit> {
    found(flow).limit
}

/// Payload rate of slow start that ends at `most` Mbit/s.
fn slow_start(rtt_ms: f64, most: f64) -> impl Fn(f64) -> f64 {
    let first = 10.0 * f64::from(MSS) * 8.0 / (rtt_ms / 1e3);
    move |t| (first * 2f64.powf(t * 1e3 / rtt_ms)).min(most * 1e6)
}

#[test]
fn a_known_path_that_is_full() {
    let full = Flow {
        bps: Box::new(slow_start(173.0, 96.4)),
        rtt_ms: 344.0,
        path: Some(path(100, 173, "0")),
        ..flow(96.4, 173.0)
    };
    let finding = found(&full);
    assert_eq!(finding.limit, Some(Limit::PathRate));
    assert_eq!(
        finding.sentence,
        "The path is full: 96.4 of at most 96.5 Mbit/s of TCP payload, with 171 ms of standing \
         queue; only a faster link would help."
    );
    assert_eq!(
        finding.equation.as_deref(),
        Some("rate x payload / packet = 100 Mbit/s x 1448 / 1500 = 96.5 Mbit/s of TCP payload")
    );
    assert!((1.0..2.5).contains(&finding.steady.from_s), "{:?}", finding.steady);
    assert!(finding.throughput_bps > finding.average_bps);
}

#[test]
fn overshoot_of_slow_start_leaves_the_rate_smooth_and_the_goodput_below_the_link() {
    let recovering = Flow {
        bps: Box::new(slow_start(173.0, 96.4)),
        lost: Box::new(|t| if (1.5..2.5).contains(&t) { 2_000.0 } else { 0.0 }),
        hole: (1.5, 3.5),
        rtt_ms: 300.0,
        path: Some(path(100, 173, "0")),
        ..flow(96.4, 173.0)
    };
    let finding = found(&recovering);
    assert_eq!(finding.limit, Some(Limit::PathRate));
    assert!((1.0..2.5).contains(&finding.steady.from_s), "{:?}", finding.steady);
    assert!((finding.throughput_bps.as_f64() / 96.4e6 - 1.0).abs() < 5e-3, "{finding:?}");
}

#[test]
fn a_known_path_is_full_from_nine_tenths() {
    let at = |mbit: f64| Flow {
        lost: Box::new(|_| 1.0),
        cwnd: Box::new(|_| 600_000),
        in_flight: 560_000,
        path: Some(path(100, 50, "0")),
        ..flow(mbit, 50.0)
    };
    assert_eq!(limit(&at(89.5)), Some(Limit::PathRate));
    assert_eq!(limit(&at(88.0)), Some(Limit::Congestion));
    // With a queue standing, a little less will do.
    assert_eq!(limit(&Flow { rtt_ms: 60.0, ..at(80.0) }), Some(Limit::PathRate));
    assert_eq!(limit(&Flow { rtt_ms: 60.0, ..at(75.0) }), Some(Limit::Congestion));
}

#[test]
fn an_unknown_path_shows_its_queue() {
    let with = |rtt_ms: f64| Flow { rtt_ms, delivery_bps: 48.2e6, ..flow(48.0, 100.0) };
    let finding = found(&with(110.0));
    assert_eq!(finding.limit, Some(Limit::PathRate));
    assert_eq!(finding.predicted_bps, Some(BitRate::from_bps(48_200_000)));
    assert!(finding.sentence.contains("10 ms of standing queue"), "{}", finding.sentence);
    assert_eq!(limit(&with(105.1)), Some(Limit::PathRate));
    assert_ne!(limit(&with(104.9)), Some(Limit::PathRate));
}

#[test]
fn bbr_keeps_the_bottleneck_full_without_a_queue() {
    let bbr = Flow { congestion: "bbr", pacing_bps: Some(48_000_000), ..flow(48.0, 100.0) };
    assert_eq!(limit(&bbr), Some(Limit::PathRate));
}

/// One percent at 100 ms: Mathis gives 1.42 Mbit/s.
fn lossy(mbit: f64) -> Flow {
    let segments = mbit * 1e6 / 8.0 / f64::from(MSS);
    Flow {
        bps: Box::new(move |t| mbit * 1e6 * (1.0 + 0.4 * (t * 2.0).sin())),
        lost: Box::new(move |_| segments / 99.0),
        cwnd: Box::new(|_| 18_000),
        in_flight: 17_000,
        ..flow(mbit, 100.0)
    }
}

#[test]
fn random_loss_on_a_known_path() {
    let flow = Flow { path: Some(path(100, 100, "1%")), ..lossy(1.47) };
    let finding = found(&flow);
    assert_eq!(finding.limit, Some(Limit::Loss));
    let predicted = finding.predicted_bps.unwrap().as_f64() / 1e6;
    assert!((predicted - 1.42).abs() < 5e-3, "{predicted}");
    assert_eq!(
        finding.equation.as_deref(),
        Some(
            "sqrt(3/2) x MSS / (RTT x sqrt(p)) = 1.22 x 1448 B / (100 ms x sqrt(1 %)) = \
             1.42 Mbit/s of TCP payload"
        )
    );
    assert!(finding.sentence.starts_with("Random loss of 1 % keeps"), "{}", finding.sentence);
}

#[test]
fn random_loss_on_an_unknown_path_agrees_within_two_and_a_half() {
    assert_eq!(limit(&lossy(1.47)), Some(Limit::Loss));
    assert_eq!(limit(&lossy(3.4)), Some(Limit::Loss));
    assert_eq!(limit(&lossy(3.7)), Some(Limit::Congestion));
    assert_eq!(limit(&Flow { rtt_ms: 110.0, ..lossy(1.47) }), Some(Limit::Congestion));
    // What a known path without random loss lost, its queue dropped.
    let known = Flow { path: Some(path(100, 100, "0")), ..lossy(1.47) };
    assert_eq!(limit(&known), Some(Limit::Congestion));
}

#[test]
fn streams_multiply_what_loss_allows() {
    let four = Flow { streams: 4, path: Some(path(100, 100, "1%")), ..lossy(5.8) };
    let finding = found(&four);
    assert_eq!(finding.limit, Some(Limit::Loss));
    assert!((finding.predicted_bps.unwrap().as_f64() / 5.67e6 - 1.0).abs() < 0.01);
    assert!(finding.equation.unwrap().contains("times 4 streams"));
}

#[test]
fn cubic_at_little_loss_and_long_round_trips_is_its_own() {
    let light = Flow { path: Some(path(1000, 173, "0.001%")), ..lossy(90.0) };
    let finding = found(&Flow { rtt_ms: 173.0, min_rtt_ms: 173.0, ..light });
    assert_eq!(finding.limit, Some(Limit::Loss));
    assert!(finding.equation.unwrap().starts_with("1.054 x (RTT / p)^(3/4)"));
}

#[test]
fn a_policer_drops_in_bursts_and_the_rate_stays_flat() {
    let policed = |burst: f64| Flow {
        lost: Box::new(move |t| if t % 1.0 < 0.05 { burst * 10.0 } else { 0.0 }),
        ..flow(50.0, 40.0)
    };
    let finding = found(&policed(40.0));
    assert_eq!(finding.limit, Some(Limit::Policer));
    assert_eq!(finding.predicted_bps, None);
    assert!(finding.sentence.contains("50 Mbit/s"), "{}", finding.sentence);
    assert_ne!(limit(&policed(1.0)), Some(Limit::Policer));
    let queued = Flow { rtt_ms: 60.0, ..policed(40.0) };
    assert_eq!(limit(&queued), Some(Limit::PathRate));
}

#[test]
fn a_policer_near_by_is_no_queue() {
    // Packets take a while to send over short round trips: these look queued. Every two
    // seconds some are lost, whatever the round trip is then.
    let near = |rtt_ms: Box<dyn Fn(usize) -> f64>| {
        let lost = |t: f64| if (t * 10.0).round() as u64 % 20 < 1 { 180.0 } else { 0.0 };
        let mut m = Flow { lost: Box::new(lost), rtt_ms: 6.0, ..flow(25.0, 5.0) }.measurement();
        for (step, sample) in m.streams[0].sender.iter_mut().enumerate() {
            sample.rtt_us = (rtt_ms(step) * 1e3) as u32;
        }
        m
    };
    let finding = explain(&near(Box::new(|step| 5.8 + 0.1 * (step * 7 % 5) as f64)));
    assert_eq!(finding.limit, Some(Limit::Policer), "{}", finding.sentence);
    // A queue that loses where it is longest.
    let finding = explain(&near(Box::new(|step| 5.6 + 0.05 * ((step + 17) % 20) as f64)));
    assert_ne!(finding.limit, Some(Limit::Policer), "{}", finding.sentence);
}

#[test]
fn a_sender_that_paces_itself() {
    let paced = |pacing: u64| Flow {
        pacing_bps: Some(pacing),
        in_flight: 1 << 20,
        delivery_bps: 30e6,
        ..flow(30.0, 80.0)
    };
    let finding = found(&paced(30_600_000));
    assert_eq!(finding.limit, Some(Limit::Pacing));
    assert_eq!(finding.predicted_bps, Some(BitRate::from_bps(30_600_000)));
    // CUBIC's own pacing is a fifth over what it delivers.
    assert_ne!(limit(&paced(36_000_000)), Some(Limit::Pacing));
    // The most the program lets it be, headers counted, whatever else it looks like.
    let held = |most| Flow { max_pacing_bps: Some(most), ..paced(36_000_000) };
    assert_eq!(limit(&held(31_000_000)), Some(Limit::Pacing));
    assert_ne!(limit(&held(60_000_000)), Some(Limit::Pacing));
    let filled = Flow { cwnd: Box::new(|_| 310_000), in_flight: 300_000, ..paced(30_600_000) };
    assert_eq!(limit(&filled), Some(Limit::Congestion));
}

#[test]
fn a_test_that_ends_before_it_is_at_speed() {
    let growing = || Flow {
        seconds: 10.0,
        bps: Box::new(|t| 18e6 * t),
        cwnd: Box::new(|t| 100_000 + (450_000.0 * t) as u64),
        ..flow(180.0, 215.0)
    };
    let finding = found(&growing());
    assert_eq!(finding.limit, Some(Limit::Ramp));
    assert!(finding.sentence.contains("after 10.0 s"), "{}", finding.sentence);
    let lost = Flow { lost: Box::new(|_| 1.0), ..growing() };
    assert_ne!(limit(&lost), Some(Limit::Ramp));
    let halted =
        Flow { bps: Box::new(|t| 18e6 * t.min(5.0)), cwnd: Box::new(|_| 1 << 20), ..growing() };
    assert_ne!(limit(&halted), Some(Limit::Ramp));
}

#[test]
fn a_test_shorter_than_slow_start() {
    // 2.16 MB take 8 round trips of 173 ms, 1.384 s.
    let short =
        |seconds: f64| Flow { seconds, path: Some(path(100, 173, "0")), ..flow(20.0, 173.0) };
    assert_eq!(limit(&short(1.3)), Some(Limit::Ramp));
    assert_ne!(limit(&short(1.5)), Some(Limit::Ramp));
}

#[test]
fn a_congestion_window_that_holds_for_no_other_reason() {
    let held = |cwnd: u64, in_flight| Flow {
        rtt_ms: 104.0,
        cwnd: Box::new(move |_| cwnd),
        in_flight,
        ..flow(40.0, 100.0)
    };
    let finding = found(&held(512 << 10, 512 << 10));
    assert_eq!(finding.limit, Some(Limit::Congestion));
    assert!(finding.equation.unwrap().starts_with("congestion window / RTT = 512 KiB / 104 ms"));
    assert_eq!(limit(&held(512 << 10, 256 << 10)), Some(Limit::Unknown));
    // A window that would carry 2.5 times as much, and one just above.
    assert_eq!(limit(&held(1_290_000, 1_290_000)), Some(Limit::Congestion));
    assert_eq!(limit(&held(1_310_000, 1_310_000)), Some(Limit::Unknown));
}

/// Slow start's overshoot is lost at once, and the round trip never grew.
#[test]
fn an_overshoot_without_a_queue_is_a_policers() {
    // Before the steady part, which has no losses of its own.
    let overshot = || Flow {
        bps: Box::new(|t| if t < 2.0 { 5e6 } else { 50e6 }),
        lost: Box::new(|t| if t < 0.05 { 500.0 } else { 0.0 }),
        ..flow(50.0, 40.0)
    };
    assert_eq!(limit(&overshot()), Some(Limit::Policer));
    let few = Flow { lost: Box::new(|t| if t < 0.05 { 100.0 } else { 0.0 }), ..overshot() };
    assert_ne!(limit(&few), Some(Limit::Policer));
    assert_ne!(limit(&Flow { rtt_ms: 80.0, ..overshot() }), Some(Limit::Policer));
    let bbr = Flow { congestion: "bbr", ..overshot() };
    assert_ne!(limit(&bbr), Some(Limit::Policer));
}

/// 3 % leave timeouts, and less than the equations without them say.
#[test]
fn heavy_loss_is_loss_below_every_equation() {
    let lossy = |share: f64| Flow {
        lost: Box::new(move |_| share * 0.8e6 / 8.0 / 1448.0),
        ..flow(0.8, 10.0)
    };
    assert_eq!(limit(&lossy(0.03)), Some(Limit::Loss));
    assert_ne!(limit(&lossy(0.005)), Some(Limit::Loss));
}
