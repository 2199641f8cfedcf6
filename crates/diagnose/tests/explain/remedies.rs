//! What is printed against each limit, and what is promised of it.

use crate::build::{Flow, flow, path};
use diagnose::{Goal, explain, explain_for};
use record::{HostFacts, Limit, Remedy, RemedyPlace};
use units::{BitRate, ByteCount, Rtt};

fn remedies(flow: &Flow, limit: Limit) -> Vec<Remedy> {
    let finding = explain(&flow.measurement());
    assert_eq!(finding.limit, Some(limit), "{}", finding.sentence);
    finding.remedies
}

fn promises(remedy: &Remedy) -> Option<u64> {
    remedy.expects_bps.map(|rate| rate.bps() / 1_000)
}

/// Frankfurt to Las Vegas: 64 KiB over 173 ms.
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
fn a_window_needs_a_buffer_for_path_and_queue() {
    let found = remedies(&small_window(), Limit::ReceiveWindow);
    // 2 x 2.1625 MB in flight, half of a buffer, and head room: 16.5 MiB.
    assert_eq!(found[0].command, "sysctl -w net.ipv4.tcp_rmem=\"4096 131072 17825792\"");
    assert_eq!((found.len(), found[0].place), (1, RemedyPlace::Receiver));
    assert_eq!(promises(&found[0]), Some(96_533), "{}", found[0].why);
    let held = Flow { rwnd: 0.0, sndbuf: 0.97, window: 64 << 20, ..small_window() };
    let found = remedies(&held, Limit::SendBuffer);
    assert_eq!(found[0].setting.as_deref(), Some("net.ipv4.tcp_wmem"));
    assert_eq!((found[0].place, promises(&found[0])), (RemedyPlace::Sender, Some(96_533)));
}

#[test]
fn what_holds_it_next_bounds_the_promise() {
    let mut measurement = small_window().measurement();
    measurement.host =
        HostFacts { tcp_wmem: Some([4096, 16_384, 1 << 20]), ..HostFacts::default() };
    let found = explain(&measurement).remedies.remove(0);
    // Half of 1 MiB in flight over 173 ms.
    assert_eq!(promises(&found), Some(24_244), "{}", found.why);
    assert!(found.why.contains("tcp_wmem"), "{}", found.why);
    // A window that the send buffer would hold as well promises nothing alone.
    measurement.host.tcp_wmem = Some([4096, 16_384, 128 << 10]);
    let found = explain(&measurement).remedies;
    let alone = &found[0];
    assert!(alone.expects_bps.is_none() && alone.why.ends_with("is no gain"), "{}", alone.why);
    let both = &found[1];
    assert_eq!((found.len(), both.place, promises(both)), (2, RemedyPlace::Sender, Some(96_533)));
    assert_eq!(both.command, "sysctl -w net.ipv4.tcp_wmem=\"4096 16384 17825792\"");
    assert!(both.why.starts_with("with the one above"), "{}", both.why);
    let lossy = Flow { path: Some(path(100, 173, "1%")), ..small_window() };
    let found = remedies(&lossy, Limit::ReceiveWindow).remove(0);
    assert!(found.expects_bps.is_none() && found.why.contains("a loss of 1 %"), "{}", found.why);
}

#[test]
fn without_a_path_nothing_is_promised_and_a_goal_stands_for_one() {
    let unknown = Flow { path: None, ..small_window() };
    assert!(remedies(&unknown, Limit::ReceiveWindow).is_empty());
    let goal = Goal {
        rate: BitRate::from_bps(100_000_000),
        rtt: Rtt::from_micros(173_000),
        queue: ByteCount::ZERO,
    };
    let found = explain_for(&unknown.measurement(), Some(goal)).remedies;
    assert_eq!(found[0].command, "sysctl -w net.ipv4.tcp_rmem=\"4096 131072 9437184\"");
    // 1448 of 1500 bytes.
    assert_eq!(promises(&found[0]), Some(96_533));
    let mut fixed = unknown.measurement();
    fixed.spec.window_bytes = Some(ByteCount::from_bytes(64 << 10));
    let found = explain_for(&fixed, Some(goal)).remedies;
    assert_eq!((found[0].command.as_str(), promises(&found[0])), ("-w 9M", None));
}

#[test]
fn loss_is_borne_by_bbr_or_shared() {
    let lossy =
        Flow { lost: Box::new(|_| 1.2), path: Some(path(100, 100, "1%")), ..flow(1.47, 100.0) };
    let found = remedies(&lossy, Limit::Loss);
    let commands: Vec<&str> = found.iter().map(|one| one.command.as_str()).collect();
    assert_eq!(commands, ["-C bbr", "-P 8"]);
    // 96.53 x 0.99, less 250 ms of each 10 s.
    assert_eq!(promises(&found[0]), Some(93_178), "{}", found[0].why);
    assert_eq!(promises(&found[1]).map(|kbps| kbps / 10), Some(1_176));
}

#[test]
fn a_shallow_queue_has_no_equation() {
    let held = Flow {
        cwnd: Box::new(|_| 1_250_000),
        in_flight: 1_250_000,
        path: Some(path(100, 100, "0")),
        ..flow(60.0, 100.0)
    };
    let found = remedies(&held, Limit::Congestion);
    assert_eq!((found[0].command.as_str(), promises(&found[0])), ("-C bbr", None), "{found:?}");
}

#[test]
fn calls_are_changed_as_they_were_made() {
    let asked = Flow {
        asked: Some(BitRate::from_bps(20_000_000)),
        path: Some(path(100, 50, "0")),
        ..flow(20.0, 50.0)
    };
    let found = remedies(&asked, Limit::Application);
    assert_eq!((found[0].command.as_str(), promises(&found[0])), ("no -b", Some(96_533)));
    let full = Flow { rtt_ms: 344.0, path: Some(path(100, 173, "0")), ..flow(96.4, 173.0) };
    assert!(remedies(&full, Limit::PathRate).is_empty());
    let policed =
        Flow { lost: Box::new(|t| if t % 1.0 < 0.05 { 400.0 } else { 0.0 }), ..flow(50.0, 40.0) };
    let found = remedies(&policed, Limit::Policer);
    assert!(found[0].command.starts_with("-b 47") && found[0].expects_bps.is_none(), "{found:?}");
}
