//! What was seen of the way to the far end, and of a disk.

use crate::fake::{Host, one, seen, target, verdict};
use doctor::{DiskFacts, Fact, Facts, HandshakeFacts, Mtu, PathFacts, Target};
use record::Verdict::{Fail, Pass, Unknown, Warn};
use units::{BitRate, ByteCount};

fn path() -> PathFacts {
    PathFacts {
        host: "server".to_owned(),
        address: "192.0.2.1".to_owned(),
        method: "icmp".to_owned(),
        rtt_ns: seen("100ms".parse().unwrap()),
        echo_rtt_ns: seen("100ms".parse().unwrap()),
        sent: 10,
        lost: 0,
        mtu: seen(Mtu { tried: 9_000, arrived: Some(9_000), told: None, sent: 2 }),
        handshake: seen(HandshakeFacts {
            port: 5201,
            window_scale: true,
            peer_shift: 12,
            own_shift: 13,
            sack: true,
            timestamps: true,
            ecn: false,
            segment_bytes: 8_960,
            rtt_us: 100_200,
        }),
    }
}

/// A server's facts with a path that was changed.
fn with(change: impl Fn(&mut PathFacts, &mut HandshakeFacts)) -> Facts {
    let mut path = path();
    let Fact::Seen(mut shook) = path.handshake.clone() else { unreachable!("as above") };
    change(&mut path, &mut shook);
    if path.handshake.seen().is_some() {
        path.handshake = seen(shook);
    }
    Facts { path: Some(path), ..Host::server().facts() }
}

fn goal() -> Target {
    target("1gbit", "100ms")
}

#[test]
fn a_clean_way_passes() {
    let checks = doctor::examine(&with(|_, _| {}), &goal());
    for id in ["rtt", "loss", "mtu", "window-scale", "sack", "timestamps", "segment"] {
        let check = one(&checks, &format!("path.{id}"));
        assert_eq!(check.verdict, Pass, "{check:?}");
    }
}

#[test]
fn a_stripped_scale_leaves_64_kib_a_round_trip() {
    let facts = with(|_, shook| (shook.window_scale, shook.peer_shift) = (false, 0));
    let checks = doctor::examine(&facts, &goal());
    let scale = one(&checks, "path.window-scale");
    assert_eq!(scale.verdict, Fail);
    assert!(scale.why.contains("middlebox") && scale.why.contains("5.24 Mbit/s"), "{scale:?}");
    assert_eq!(scale.needed, "8 or more");
    // A target within 64 KiB does not need it.
    let slow = doctor::examine(&facts, &target("5mbit", "100ms"));
    assert_eq!(verdict(&slow, "path.window-scale"), Pass);
}

#[test]
fn a_scale_that_is_too_small_fails() {
    // 12.5 MB are in flight: 65 535 x 2^7 is 8.4 MB, x 2^8 16.8 MB.
    let at = |shift| {
        let facts = with(|_, shook| shook.peer_shift = shift);
        one(&doctor::examine(&facts, &goal()), "path.window-scale").clone()
    };
    assert_eq!((at(7).verdict, at(8).verdict), (Fail, Pass));
    assert!(at(7).why.contains("671 Mbit/s"), "{:?}", at(7));
    // Whatever a peer says, a shift is no more than 14.
    assert_eq!(at(255).verdict, Pass);
}

#[test]
fn large_packets_that_vanish_stall_connections() {
    let at = |arrived, told: Option<(&str, u32)>, probing: &str| {
        let told = told.map(|(by, mtu)| (by.to_owned(), mtu));
        let found = Mtu { tried: 9_000, arrived, told, sent: 40 };
        let facts = with(|path, _| path.mtu = seen(found.clone()));
        let mut facts = facts;
        facts.settings.insert("net.ipv4.tcp_mtu_probing".to_owned(), seen(probing.to_owned()));
        one(&doctor::examine(&facts, &goal()), "path.mtu").clone()
    };
    assert_eq!(at(Some(1_500), None, "0").verdict, Fail);
    assert_eq!(at(Some(1_500), None, "1").verdict, Warn);
    let told = at(Some(1_500), Some(("198.51.100.1", 1_500)), "0");
    assert!(told.verdict == Pass && told.seen.contains("198.51.100.1"), "{told:?}");
    // A router that tells one thing and does another.
    assert_eq!(at(Some(1_400), Some(("198.51.100.1", 1_500)), "0").verdict, Fail);
    assert_eq!(at(None, None, "0").verdict, Unknown);
    let facts = with(|path, _| path.mtu = Fact::unread("no permission to send ICMP echoes"));
    assert_eq!(verdict(&doctor::examine(&facts, &goal()), "path.mtu"), Unknown);
}

#[test]
fn options_and_segments_that_were_tampered_with_are_told() {
    let facts = with(|_, shook| {
        (shook.sack, shook.timestamps, shook.segment_bytes) = (false, false, 1_360);
    });
    let checks = doctor::examine(&facts, &goal());
    for id in ["path.sack", "path.timestamps", "path.segment"] {
        assert_eq!(verdict(&checks, id), Warn, "{:?}", one(&checks, id));
    }
}

#[test]
fn what_does_not_answer_is_left_open() {
    let facts = with(|path, _| {
        path.rtt_ns = Fact::unread("no reply");
        path.lost = path.sent;
        path.handshake = Fact::unread("nobody listens at port 5201");
    });
    let checks = doctor::examine(&facts, &goal());
    for id in ["path.rtt", "path.loss", "path.window-scale"] {
        assert_eq!(verdict(&checks, id), Unknown, "{:?}", one(&checks, id));
    }
    // Of a host that never answered nothing is known at all.
    let open = Target { rtt: None, ..goal() };
    assert_eq!(verdict(&doctor::examine(&facts, &open), "path.rtt"), Fail);
    let some = with(|path, _| path.lost = 1);
    assert_eq!(verdict(&doctor::examine(&some, &goal()), "path.loss"), Warn);
    let longer = with(|path, _| path.rtt_ns = seen("150ms".parse().unwrap()));
    assert_eq!(verdict(&doctor::examine(&longer, &goal()), "path.rtt"), Warn);
}

#[test]
fn a_disk_has_to_keep_up() {
    let at = |write: u64, is_memory| {
        let disk = DiskFacts {
            folder: "/data".to_owned(),
            bytes: ByteCount::from_bytes(256 << 20),
            write_bps: BitRate::from_bps(write),
            read_bps: BitRate::from_bps(5_000_000_000),
            method: "past the page cache".to_owned(),
            is_memory,
        };
        let facts = Facts { disk: Some(seen(disk)), ..Host::server().facts() };
        let checks = doctor::examine(&facts, &goal());
        (verdict(&checks, "disk.write"), verdict(&checks, "disk.read"))
    };
    assert_eq!(at(1_000_000_000, false), (Pass, Pass));
    assert_eq!(at(999_999_999, false), (Fail, Pass));
    assert_eq!(at(999_999_999, true), (Unknown, Unknown));
}
