//! The remedies for a finding, and the goodput expected with them.

use crate::{
    build::path,
    transfer::{Transfer, over},
};
use diagnose::{Goal, explain, explain_for};
use record::{HostFacts, Limit, Measurement, Remedy, RemedyCommand, RemedyPlace};
use units::{BitRate, ByteCount, Rtt};

fn sysctl(key: &str, value: &str) -> RemedyCommand {
    RemedyCommand::Sysctl { key: key.to_owned(), value: value.to_owned() }
}

/// The expected goodput in kbit/s.
fn expects(remedy: &Remedy) -> Option<u64> {
    remedy.expects_bps.map(|rate| rate.bps() / 1_000)
}

/// On a path of 100 Mbit/s and 173 ms that the measurement does not name.
fn fat() -> Transfer {
    over(100.0, 173.0, "queue=1bdp")
}

/// A receive window of 128 KiB: 6 Mbit/s.
fn small_window() -> Measurement {
    let share = f64::from(128 << 10) / fat().bdp();
    fat().receive_window(share).run(0)
}

fn known(m: Measurement, loss: &str) -> Measurement {
    Measurement { path: Some(path(100, 173, loss)), ..m }
}

fn remedies(m: &Measurement, limit: Limit) -> Vec<Remedy> {
    let finding = explain(m);
    assert_eq!(finding.limit, Some(limit), "{}", finding.sentence);
    finding.remedies
}

#[test]
fn the_buffer_covers_path_and_queue() {
    let found = remedies(&known(small_window(), "0"), Limit::ReceiveWindow);
    // 2 x 2.1625 MB in flight, half of a buffer, and head room: 16.5 MiB.
    assert_eq!(found[0].command, sysctl("net.ipv4.tcp_rmem", "4096 131072 17825792"));
    assert_eq!((found.len(), found[0].place), (2, RemedyPlace::Receiver));
    // For hosts that cannot be tuned, and last.
    assert_eq!(found[1].place, RemedyPlace::Boxes);
    assert_eq!(expects(&found[0]), Some(96_533), "{}", found[0].why);
    let found = remedies(&known(fat().send_buffer(0.125).run(0), "0"), Limit::SendBuffer);
    assert_eq!(found[0].setting.as_deref(), Some("net.ipv4.tcp_wmem"));
    assert_eq!((found[0].place, expects(&found[0])), (RemedyPlace::Sender, Some(96_533)));
}

#[test]
fn the_next_limit_bounds_the_expected_goodput() {
    let mut m = known(small_window(), "0");
    m.host = HostFacts { tcp_wmem: Some([4096, 16_384, 1 << 20]), ..HostFacts::default() };
    let found = explain(&m).remedies.remove(0);
    // Half of 1 MiB in flight over 173 ms.
    assert_eq!(expects(&found), Some(24_244), "{}", found.why);
    assert!(found.why.contains("tcp_wmem"), "{}", found.why);
    // With a send buffer that limits as much, a larger window alone gains nothing.
    m.host.tcp_wmem = Some([4096, 16_384, 128 << 10]);
    let found = explain(&m).remedies;
    let alone = &found[0];
    assert!(alone.expects_bps.is_none() && alone.why.starts_with("no gain: "), "{}", alone.why);
    let both = &found[1];
    assert_eq!((found.len(), both.place, expects(both)), (3, RemedyPlace::Sender, Some(96_533)));
    assert_eq!(both.command, sysctl("net.ipv4.tcp_wmem", "4096 16384 17825792"));
    assert!(both.why.starts_with("combined with the remedy above"), "{}", both.why);
    let found = remedies(&known(small_window(), "1%"), Limit::ReceiveWindow).remove(0);
    assert!(found.expects_bps.is_none() && found.why.contains("a loss of 1 %"), "{}", found.why);
}

#[test]
fn without_a_path_a_goal_replaces_it() {
    let unknown = small_window();
    assert!(remedies(&unknown, Limit::ReceiveWindow).is_empty());
    let goal = Goal {
        rate: BitRate::from_bps(100_000_000),
        rtt: Rtt::from_micros(173_000),
        queue: ByteCount::ZERO,
    };
    let found = explain_for(&unknown, Some(goal)).remedies;
    assert_eq!(found[0].command, sysctl("net.ipv4.tcp_rmem", "4096 131072 9437184"));
    // 1448 of 1500 bytes.
    assert_eq!(expects(&found[0]), Some(96_533));
    let mut fixed = unknown.clone();
    fixed.spec.window_bytes = Some(ByteCount::from_bytes(128 << 10));
    let found = explain_for(&fixed, Some(goal)).remedies;
    assert_eq!(found[0].command, RemedyCommand::SocketBufferMib(9));
    assert_eq!(expects(&found[0]), None);
}

#[test]
fn loss_calls_for_bbr_or_more_streams() {
    let transfer = over(100.0, 30.0, "queue=1bdp,loss=0.2%").seconds(10.0);
    let m = Measurement { path: Some(path(100, 30, "0.2%")), ..transfer.run(0) };
    let found = remedies(&m, Limit::Loss);
    let bbr = RemedyCommand::CongestionControl("bbr".to_owned());
    assert!(found.iter().any(|one| one.command == bbr), "{found:?}");
    assert!(found.iter().any(|one| matches!(one.command, RemedyCommand::Streams(_))), "{found:?}");
}

#[test]
fn options_that_limited_the_test_are_removed() {
    let mut asked = over(100.0, 50.0, "queue=1bdp").requested(0.2).run(0);
    asked.spec.rate_bps = Some(BitRate::from_bps(20_000_000));
    asked.path = Some(path(100, 50, "0"));
    let found = remedies(&asked, Limit::Application);
    assert_eq!(found[0].command, RemedyCommand::NoRateLimit);
    assert_eq!(expects(&found[0]), Some(96_533));
    let full = over(100.0, 20.0, "queue=2bdp").run(0);
    let full = Measurement { path: Some(path(100, 20, "0")), ..full };
    assert!(remedies(&full, Limit::PathRate).is_empty());
}
