//! Limits that the kernel's clocks, the program or the processor show.

use crate::build::{Flow, flow, path};
use diagnose::{explain, shares_between};
use record::{Limit, Sample};
use units::BitRate;

fn limit(flow: &Flow) -> Option<Limit> {
    explain(&flow.measurement()).limit
}

/// Frankfurt to Las Vegas, as published: 64 KiB over 173 ms.
fn small_window() -> Flow {
    Flow {
        rwnd: 0.97,
        window: 64 << 10,
        in_flight: 64 << 10,
        path: Some(path(100, 173, "0")),
        ..flow(3.03, 173.0)
    }
}

#[test]
fn a_small_window_of_the_receiver() {
    let finding = explain(&small_window().measurement());
    assert_eq!(finding.limit, Some(Limit::ReceiveWindow));
    assert_eq!(
        finding.equation.as_deref(),
        Some("window / RTT = 64 KiB / 173 ms = 3.03 Mbit/s of TCP payload")
    );
    assert_eq!(
        finding.sentence,
        "Receiver limited 97 % of the time: a window of 64 KiB over 173 ms carries at most \
         3.03 Mbit/s; the path's 100 Mbit/s needs a window of 2.16 MB."
    );
    assert_eq!(finding.predicted_bps, Some(BitRate::from_bps(3_030_566)));
    let shares = finding.shares.unwrap();
    assert!((shares.receive_window - 0.97).abs() < 1e-6 && shares.application < 1e-6);
}

#[test]
fn ten_small_windows_add_up() {
    let ten = Flow { streams: 10, window: 128 << 10, ..small_window() };
    let finding = explain(&Flow { bps: Box::new(|_| 60.6e6), ..ten }.measurement());
    assert_eq!(finding.limit, Some(Limit::ReceiveWindow));
    assert_eq!(
        finding.equation.as_deref(),
        Some("streams x window / RTT = 10 x 128 KiB / 173 ms = 60.6 Mbit/s of TCP payload")
    );
    assert!(finding.sentence.contains("216 kB for each of 10 streams"), "{}", finding.sentence);
}

#[test]
fn windows_beyond_the_path_are_cut_to_it() {
    let wide = Flow { window: 8 << 20, bps: Box::new(|_| 80e6), ..small_window() };
    let finding = explain(&wide.measurement());
    assert_eq!(finding.limit, Some(Limit::ReceiveWindow));
    assert_eq!(finding.predicted_bps, Some(BitRate::from_bps(96_533_333)));
}

#[test]
fn the_window_counts_from_two_fifths_of_the_time() {
    let held = |rwnd: f64, busy: f64| Flow {
        rwnd,
        busy,
        in_flight: 40 << 10,
        path: None,
        ..small_window()
    };
    assert_eq!(limit(&held(0.41, 0.75)), Some(Limit::ReceiveWindow));
    assert_ne!(limit(&held(0.38, 0.75)), Some(Limit::ReceiveWindow));
    // And never beside a longer one.
    assert_ne!(limit(&held(0.45, 1.0)), Some(Limit::ReceiveWindow));
    // A paced sender is at the window whenever it may send, though the clock says a third.
    let filled = Flow { in_flight: 64 << 10, ..held(0.35, 1.0) };
    assert_eq!(limit(&filled), Some(Limit::ReceiveWindow));
    assert_ne!(limit(&Flow { rwnd: 0.1, ..filled }), Some(Limit::ReceiveWindow));
}

#[test]
fn a_full_path_is_no_windows_fault() {
    let full = |mbit: f64| Flow {
        bps: Box::new(move |_| mbit * 1e6),
        window: 3 << 20,
        rtt_ms: 250.0,
        ..small_window()
    };
    assert_eq!(limit(&full(96.4)), Some(Limit::PathRate));
    assert_eq!(limit(&full(92.0)), Some(Limit::ReceiveWindow));
}

#[test]
fn a_small_send_buffer() {
    let small = |sndbuf: f64| Flow {
        sndbuf,
        held: 1 << 20,
        unsent: 0,
        in_flight: 1 << 20,
        app_limited: true,
        path: Some(path(100, 173, "0")),
        ..flow(48.0, 173.0)
    };
    let finding = explain(&small(0.8).measurement());
    assert_eq!(finding.limit, Some(Limit::SendBuffer));
    assert_eq!(
        finding.equation.as_deref(),
        Some("send buffer / RTT = 1 MiB / 173 ms = 48.5 Mbit/s of TCP payload")
    );
    assert!(finding.sentence.contains("tcp_wmem"), "{}", finding.sentence);
    // The clock may miss it: a program without a rate always has more to write.
    assert_eq!(limit(&small(0.0)), Some(Limit::SendBuffer));
    let sentence = explain(&small(0.0).measurement()).sentence;
    assert!(sentence.contains("48.5 Mbit/s") && !sentence.contains("0 %"), "{sentence}");
    // Held to a rate it may just as well have been idle.
    let paced = |sndbuf| Flow { asked: Some(BitRate::from_bps(90_000_000)), ..small(sndbuf) };
    assert_eq!(limit(&paced(0.16)), Some(Limit::SendBuffer));
    assert_eq!(limit(&paced(0.14)), Some(Limit::Application));
}

#[test]
fn a_program_with_nothing_to_send() {
    let idle = |busy: f64| Flow { busy, in_flight: 0, ..flow(10.0, 50.0) };
    let finding = explain(&idle(0.3).measurement());
    assert_eq!(finding.limit, Some(Limit::Application));
    assert!(finding.sentence.contains("70 % of the time"), "{}", finding.sentence);
    assert_eq!(finding.predicted_bps, None);
    assert_eq!(limit(&idle(0.59)), Some(Limit::Application));
    assert_ne!(limit(&idle(0.61)), Some(Limit::Application));
}

#[test]
fn a_slow_program_that_always_has_data_in_flight() {
    let slow = |in_flight: u64| Flow {
        busy: 0.98,
        app_limited: true,
        unsent: 0,
        in_flight,
        asked: Some(BitRate::from_bps(50_000_000)),
        ..flow(20.0, 50.0)
    };
    assert_eq!(limit(&slow(1 << 20)), Some(Limit::Application));
    assert_ne!(limit(&slow(2 << 20)), Some(Limit::Application));
    let waiting = Flow { unsent: 1, ..slow(1 << 20) };
    assert_ne!(limit(&waiting), Some(Limit::Application));
}

#[test]
fn a_rate_that_was_asked_for_and_reached() {
    let asked = |mbit: f64| Flow {
        streams: 2,
        asked: Some(BitRate::from_bps(10_000_000)),
        ..flow(mbit, 50.0)
    };
    let finding = explain(&asked(19.9).measurement());
    assert_eq!(finding.limit, Some(Limit::Application));
    assert_eq!(finding.predicted_bps, Some(BitRate::from_bps(20_000_000)));
    assert!(finding.sentence.contains("asked for 20 Mbit/s"), "{}", finding.sentence);
    assert_ne!(limit(&asked(18.9)), Some(Limit::Application));
}

#[test]
fn a_core_at_its_end() {
    let busy = |sender, receiver| Flow { cpu: (sender, receiver), ..flow(9_000.0, 1.0) };
    let finding = explain(&busy(0.96, 0.3).measurement());
    assert_eq!(finding.limit, Some(Limit::Cpu));
    assert!(finding.sentence.starts_with("The sending thread used 96 %"), "{}", finding.sentence);
    assert_eq!(limit(&busy(0.3, 0.95)), Some(Limit::Cpu));
    assert_ne!(limit(&busy(0.94, 0.94)), Some(Limit::Cpu));
    // A window that held it for most of the time is the nearer cause.
    assert_eq!(limit(&Flow { rwnd: 0.9, ..busy(0.99, 0.3) }), Some(Limit::ReceiveWindow));
}

#[test]
fn a_core_that_others_use() {
    let mut m = Flow { cpu: (0.52, 0.3), ..flow(9_000.0, 1.0) }.measurement();
    assert_ne!(explain(&m).limit, Some(Limit::Cpu));
    m.sender_core_wait = Some(0.45);
    let finding = explain(&m);
    assert_eq!(finding.limit, Some(Limit::Cpu));
    let waits = "The sending thread used 52 % of a core to move 9 Gbit/s and waited 45 %";
    assert!(finding.sentence.starts_with(waits), "{}", finding.sentence);
    // Who waits for data and not for a core has time to spare.
    (m.sender_core_wait, m.receiver_core_wait) = (Some(0.3), Some(0.3));
    assert_ne!(explain(&m).limit, Some(Limit::Cpu));
}

#[test]
fn a_receiver_that_falls_behind_closes_its_own_window() {
    let behind = Flow { rwnd: 0.9, cpu: (0.3, 0.99), ..flow(9_000.0, 1.0) };
    assert_eq!(limit(&behind), Some(Limit::ReceiveWindow));
    let mut m = behind.measurement();
    for sample in m.streams[0].sender.iter_mut().step_by(3) {
        sample.peer_window_bytes = Some(0);
    }
    assert_eq!(explain(&m).limit, Some(Limit::Cpu));
}

#[test]
fn without_the_senders_clocks_there_is_no_verdict_but_the_facts() {
    let mut m = Flow { window: 64 << 10, ..flow(1.5, 173.0) }.measurement();
    m.streams[0].sender.clear();
    let finding = explain(&m);
    assert_eq!((finding.limit, finding.shares, finding.predicted_bps), (None, None, None));
    assert!((finding.throughput_bps.as_f64() / 1.5e6 - 1.0).abs() < 1e-3);
    assert!(finding.sentence.contains("clocks cannot be had"), "{}", finding.sentence);
    assert!(
        finding.sentence.contains("a window of 64 KiB, which over 173 ms carries at most 3.03"),
        "{}",
        finding.sentence
    );
}

/// What a receiver knows by itself: its window, its core, and that the rate asked came.
#[test]
fn the_receiver_alone_tells_what_it_can() {
    let alone = |flow: Flow| {
        let mut m = flow.measurement();
        m.streams.iter_mut().for_each(|stream| stream.sender.clear());
        explain(&m)
    };
    // 64 KiB over 173 ms are 3.03 Mbit/s.
    let small = alone(Flow { window: 1 << 16, ..flow(3.0, 173.0) });
    assert_eq!((small.limit, small.shares), (Some(Limit::ReceiveWindow), None));
    assert!(small.sentence.contains("by its own account"), "{}", small.sentence);
    assert!(small.predicted_bps.is_some());
    // A window that adapts itself is twice what arrives.
    assert_eq!(alone(Flow { window: 1 << 17, ..flow(3.0, 173.0) }).limit, None);
    assert_eq!(alone(Flow { cpu: (0.2, 0.99), ..flow(3.0, 173.0) }).limit, Some(Limit::Cpu));
    let asked = Some("3mbit".parse().unwrap());
    let kept = alone(Flow { asked, ..flow(3.0, 173.0) });
    assert_eq!(kept.limit, Some(Limit::Application));
    assert!(kept.sentence.contains("asked for"), "{}", kept.sentence);
}

/// The same samples of a connection that was only watched: its program may have
/// nothing more to send, and nothing is advised that only a test has.
#[test]
fn what_was_only_watched_is_judged_as_a_stranger() {
    let seen = |flow: &Flow| {
        let mut m = flow.measurement();
        m.streams.iter_mut().for_each(|stream| stream.watched = true);
        explain(&m)
    };
    let slow =
        Flow { busy: 0.98, app_limited: true, unsent: 0, in_flight: 1 << 20, ..flow(20.0, 50.0) };
    assert_eq!(limit(&slow), Some(Limit::SendBuffer), "our own always has more");
    let finding = seen(&slow);
    assert_eq!(finding.limit, Some(Limit::Application));
    assert!(finding.sentence.contains("writes less"), "{}", finding.sentence);
    let window = Flow { rwnd: 0.97, window: 1 << 16, ..flow(3.0, 173.0) };
    let finding = seen(&window);
    assert_eq!(finding.limit, Some(Limit::ReceiveWindow));
    for word in ["receive window 97 % of the time", "64 KiB over 173 ms", "at most 3.03 Mbit/s"] {
        assert!(finding.sentence.contains(word), "{}", finding.sentence);
    }
    for flow in [slow, window, flow(90.0, 20.0), Flow { sndbuf: 0.9, ..flow(3.0, 173.0) }] {
        let sentence = seen(&flow).sentence;
        for option in ["-w", "-b", "-C"] {
            assert!(!sentence.contains(&format!("{option} ")), "{sentence}");
        }
        assert!(!sentence.contains("test") && sentence.len() < 160, "{sentence}");
    }
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

/// A sender that paces itself meets its small buffer for a part of the time only.
#[test]
fn a_paced_sender_empties_its_buffer() {
    let paced = |sndbuf: f64| Flow { sndbuf, in_flight: 1 << 20, ..flow(30.0, 80.0) };
    assert_eq!(limit(&paced(0.3)), Some(Limit::SendBuffer));
    assert_ne!(limit(&paced(0.1)), Some(Limit::SendBuffer));
    assert_ne!(limit(&Flow { in_flight: 2 << 20, ..paced(0.3) }), Some(Limit::SendBuffer));
}

/// Five round trips are no time for a window to open.
#[test]
fn a_window_of_a_few_round_trips_is_a_ramp() {
    let held = |seconds: f64| Flow { seconds, rwnd: 0.9, window: 84 << 10, ..flow(7.3, 88.0) };
    assert_eq!(limit(&held(0.4)), Some(Limit::Ramp));
    assert_eq!(limit(&held(20.0)), Some(Limit::ReceiveWindow));
}
