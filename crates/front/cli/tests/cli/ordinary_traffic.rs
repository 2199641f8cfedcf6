//! What `explain`, `pcap streams` and the page say of captures of ordinary traffic, and of captures
//! with faults of their own, beside a bulk transfer over the same path.

use crate::conversation::{App, Conversation, Packet, file, mirrored, stepped};
use crate::program::{printed, run};
use serde_json::Value;
use std::path::PathBuf;

struct Saved {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn saved(packets: &[Packet]) -> Saved {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture.pcap");
    std::fs::write(&path, file(packets)).unwrap();
    Saved { _folder: folder, path }
}

/// The finding of `explain`.
fn explained(packets: &[Packet]) -> Value {
    let saved = saved(packets);
    let text = printed(&["explain", saved.path.to_str().unwrap(), "--json"]);
    serde_json::from_str(&text).unwrap()
}

/// The first stream of `pcap streams`.
fn stream(packets: &[Packet]) -> Value {
    let saved = saved(packets);
    let text = printed(&["pcap", "streams", saved.path.to_str().unwrap(), "--json"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    document["files"][0]["streams"][0].clone()
}

fn limit(found: &Value) -> &str {
    found["limit"].as_str().unwrap_or("none")
}

/// Without the first packets, and so without a handshake.
fn later(packets: &[Packet]) -> Vec<Packet> {
    packets[60.min(packets.len() / 4)..].to_vec()
}

fn one_way(packets: &[Packet], from_sender: bool) -> Vec<Packet> {
    packets.iter().filter(|packet| packet.from_sender == from_sender).cloned().collect()
}

const POSITIONS: [u64; 3] = [0, 40, 100];

#[test]
fn applications_are_named_from_every_point_of_the_path() {
    let apps = [
        ("constant rate", App::Every(25_000, 100)),
        ("faster than the RTT", App::Every(9_000, 25)),
        ("small writes", App::Every(200, 70)),
        ("batches", App::Every(600_000, 1500)),
        ("a server that thinks", App::Answers(100_000, 900, 0)),
        ("requests", App::Answers(3_000, 0, 0)),
        ("a user that reads", App::Answers(60_000, 10, 700)),
    ];
    for (name, app) in apps {
        for position in POSITIONS {
            let packets = Conversation { app, position, ..Conversation::default() }.packets();
            for (cut, packets) in [(false, packets.clone()), (true, later(&packets))] {
                let found = explained(&packets);
                let sentence = &found["sentence"];
                // Without a handshake, and with an ACK at the same time before each burst, the
                // sender may be as far away.
                if cut && name == "faster than the RTT" && limit(&found) == "unknown" {
                    continue;
                }
                assert_eq!(limit(&found), "application", "{name} {position} {cut}: {sentence}");
                let idle = found["shares"]["application"].as_f64();
                assert!(idle.is_none_or(|share| share > 0.5), "{name} {position} {cut}: {idle:?}");
            }
        }
    }
}

#[test]
fn bulk_transfers_are_not_idle_from_any_point() {
    let plans = [
        ("a window", Conversation { window: 60_000, ..Conversation::default() }),
        ("a congestion window", Conversation { most_cwnd: 80_000, ..Conversation::default() }),
        ("losses", Conversation { lose_every: 150, ..Conversation::default() }),
        ("a slow link", Conversation { ns_per_byte: 4_000, ..Conversation::default() }),
        ("marks", Conversation { accurate_ecn: Some(40), ..Conversation::default() }),
    ];
    for (name, plan) in plans {
        for position in POSITIONS {
            let packets = Conversation { position, seconds: 3, ..plan.clone() }.packets();
            for (cut, packets) in [(false, packets.clone()), (true, later(&packets))] {
                let found = explained(&packets);
                let sentence = &found["sentence"];
                assert_ne!(limit(&found), "application", "{name} {position} {cut}: {sentence}");
            }
        }
    }
}

#[test]
fn the_time_and_the_rate_of_an_application_cover_its_whole_life() {
    let app = App::Answers(200_000, 3000, 0);
    for position in POSITIONS {
        let packets = Conversation { app, position, rtt_ms: 40, ..Conversation::default() };
        let packets = Conversation { seconds: 4, ..packets }.packets();
        let found = explained(&packets);
        let sentence = found["sentence"].as_str().unwrap();
        assert!(sentence.contains("the sender took 3 s to answer"), "{position}: {sentence}");
        assert!(sentence.contains("1 response of 200 kB"), "{position}: {sentence}");
        let bits = found["throughput_bps"].as_f64().unwrap();
        assert!((300e3..600e3).contains(&bits), "{position}: {bits}");
        // The same time in the causes.
        let times = stream(&packets)["time_by_cause"].clone();
        assert_eq!(times[0]["cause"], "application", "{times}");
        assert!(times[0]["share"].as_f64().unwrap() > 0.8, "{times}");
    }
    let every = Conversation { app: App::Every(25_000, 100), ..Conversation::default() };
    let sentence = explained(&every.packets())["sentence"].as_str().unwrap().to_owned();
    assert!(sentence.contains("bursts of 25 kB, one every 100 ms"), "{sentence}");
}

#[test]
fn a_window_without_its_scale_is_a_lower_bound() {
    let plan = Conversation { window: 60_000, scale: 7, rtt_ms: 100, ..Conversation::default() };
    let whole = plan.packets();
    let found = explained(&whole);
    assert_eq!(limit(&found), "receive-window", "{}", found["sentence"]);
    let packets = later(&whole);
    let found = explained(&packets);
    assert_eq!(limit(&found), "receive-window", "{}", found["sentence"]);
    let caveat = &found["caveats"][0];
    assert_eq!((&caveat["kind"], &caveat["scale_at_least"]), (&"no-handshake".into(), &7.into()));
    let window = &stream(&packets)["receive_window"];
    let raw = 60_000 >> 7 << 7;
    assert_eq!((&window["largest_bytes"], &window["is_lower_bound"]), (&raw.into(), &true.into()));
    // Little in flight proves little, and a window is not full or closed because it looks small.
    let little = Conversation { window: 4_000_000, scale: 14, most_cwnd: 3000, ..plan };
    let packets = later(&little.packets());
    let found = stream(&packets);
    let window = &found["receive_window"];
    assert!(window.is_null() || window["largest_bytes"].as_u64().unwrap() < 8000, "{window}");
    let times = found["time_by_cause"].as_array().unwrap();
    let of_window = |time: &&Value| time["cause"].as_str().unwrap().contains("window");
    let of_receiver =
        times.iter().filter(of_window).filter(|it| it["cause"] != "congestion_window");
    assert_eq!(of_receiver.count(), 0, "{times:?}");
    let found = explained(&packets);
    assert!(!["receive-window", "window-scaling", "slow-receiver"].contains(&limit(&found)));
}

#[test]
fn copies_of_a_mirror_port_change_nothing_but_their_count() {
    let plan = Conversation { lose_every: 200, seconds: 3, ..Conversation::default() };
    for has_id in [true, false] {
        let once = Conversation { has_id, ..plan.clone() }.packets();
        let expected = stream(&once);
        assert!(expected["caveats"].as_array().unwrap().is_empty(), "{has_id}: {expected}");
        for of in [|_: &Packet| true, |p: &Packet| p.from_sender, |p: &Packet| !p.from_sender] {
            let packets = mirrored(&once, 9, of);
            let found = stream(&packets);
            let copies = packets.len() - once.len();
            assert_eq!(found["caveats"][0]["kind"], "mirror-copies", "{has_id}: {found}");
            let counted = found["caveats"][0]["packets"].as_u64().unwrap() as usize;
            // Acknowledgements that the receiver itself repeats are alike without identification.
            assert!(counted == copies || (!has_id && counted.abs_diff(copies) * 50 < copies));
            for key in ["retransmissions", "payload_bytes", "limit"] {
                assert_eq!(found[key], expected[key], "{has_id}: {key}");
            }
        }
    }
}

#[test]
fn retransmissions_and_a_network_that_duplicates_are_no_mirror() {
    let plan = Conversation { lose_every: 30, rtt_ms: 2, seconds: 1, ..Conversation::default() };
    let packets = plan.packets();
    assert!(stream(&packets)["caveats"].as_array().unwrap().is_empty());
    let mut number = 0_u32;
    let mut some = |_: &Packet| {
        number += 1;
        number.is_multiple_of(20)
    };
    let chosen: Vec<bool> = packets.iter().map(&mut some).collect();
    let first = packets[0].time_ns;
    let few = mirrored(&packets, 9, |packet| {
        let at = packets.partition_point(|other| other.time_ns < packet.time_ns);
        packet.time_ns != first && chosen[at]
    });
    assert!(few.len() > packets.len());
    assert!(stream(&few)["caveats"].as_array().unwrap().is_empty());
}

#[test]
fn one_direction_has_a_rate_and_no_limit() {
    let plan = Conversation { lose_every: 100, seconds: 3, ..Conversation::default() };
    let both = plan.packets();
    let rate = |found: &Value| found["goodput_bps"].as_f64().unwrap();
    let expected = stream(&both);
    for (from_sender, caveat) in [(true, "data-only"), (false, "acknowledgements-only")] {
        for packets in [both.clone(), later(&both)] {
            let packets = one_way(&packets, from_sender);
            let found = explained(&packets);
            assert!(matches!(limit(&found), "none" | "unknown"), "{}", found["sentence"]);
            assert_eq!(found["caveats"][0]["kind"], caveat, "{found}");
            assert!(found["posterior"].as_array().unwrap().is_empty(), "{}", found["posterior"]);
            let row = stream(&packets);
            assert!((rate(&row) / rate(&expected) - 1.0).abs() < 0.1, "{caveat}: {row}");
            assert!(row["time_by_cause"].is_null() && row["congestion_control"].is_null());
            let timeouts = |found: &Value| found["retransmissions"]["timeout"].as_u64().unwrap();
            assert!(timeouts(&row) <= timeouts(&expected), "{caveat}: {row}");
        }
    }
}

#[test]
fn steps_of_the_clock_are_bridged() {
    let plan = Conversation { lose_every: 150, seconds: 3, ..Conversation::default() };
    for position in POSITIONS {
        let packets = Conversation { position, ..plan.clone() }.packets();
        let (expected, middle) = (stream(&packets), packets.len() / 2);
        for by_ms in [-2000, -50, 3_600_000, 400] {
            let found = stream(&stepped(&packets, middle, by_ms));
            let caveat = &found["caveats"][0];
            assert_eq!(caveat["kind"], "clock-steps", "{position} {by_ms}: {found}");
            assert_eq!(caveat["steps"], 1);
            let seconds = caveat["largest_s"].as_f64().unwrap();
            assert!((seconds - by_ms as f64 / 1e3).abs() < 0.005, "{position} {by_ms}: {seconds}");
            assert_eq!(found["retransmissions"], expected["retransmissions"], "{by_ms}");
            for key in ["duration_s", "min_rtt_ms"] {
                let [now, then] = [&found[key], &expected[key]].map(|it| it.as_f64().unwrap());
                assert!((now / then - 1.0).abs() < 0.05, "{position} {by_ms} {key}: {now} {then}");
            }
        }
    }
    // An application that pauses is no step.
    let idle = Conversation { app: App::Every(30_000, 900), ..Conversation::default() }.packets();
    assert!(stream(&idle)["caveats"].as_array().unwrap().is_empty());
}

#[test]
fn a_hang_is_explained_however_little_it_sent() {
    let hang = |black_hole, app| Conversation {
        app,
        black_hole: Some(black_hole),
        seconds: 9,
        rtt_ms: 40,
        ..Conversation::default()
    };
    // From the start, all that is full-size.
    let found = explained(&hang((0, 1400), App::Bulk).packets());
    assert_eq!(limit(&found), "pmtu-black-hole", "{}", found["sentence"]);
    // Everything, in the middle.
    let found = explained(&hang((1000, 0), App::Bulk).packets());
    assert_eq!(limit(&found), "outage", "{}", found["sentence"]);
    // Everything, of small messages: no size is to blame.
    let found = explained(&hang((300, 0), App::Every(300, 100)).packets());
    assert_eq!(limit(&found), "outage", "{}", found["sentence"]);
    // A request and its answer.
    let small = Conversation { app: App::Answers(500, 20, 100_000), ..Conversation::default() };
    let found = explained(&small.packets());
    assert!(["application", "unknown", "none"].contains(&limit(&found)), "{}", found["sentence"]);
}

#[test]
fn marks_are_counted_by_accurate_ecn() {
    let plan = |every| Conversation {
        accurate_ecn: Some(every),
        seconds: 2,
        most_cwnd: 100_000,
        ..Conversation::default()
    };
    for position in POSITIONS {
        let quiet = Conversation { position, ..plan(0) }.packets();
        let (found, row) = (explained(&quiet), stream(&quiet));
        assert_ne!(limit(&found), "ecn-marks", "{position}: {}", found["sentence"]);
        assert_eq!(row["ecn"]["mode"], "accurate");
        assert_eq!(row["ecn"]["receiver"]["ace"], 0, "{position}: {}", row["ecn"]);
        assert_eq!(row["ecn"]["receiver"]["ece"], 0, "{position}: {}", row["ecn"]);
        let marked = Conversation { position, ..plan(25) }.packets();
        let row = stream(&marked);
        let data = marked.iter().filter(|packet| packet.from_sender && packet.bytes.len() > 100);
        let (ace, expected) = (row["ecn"]["receiver"]["ace"].as_u64().unwrap(), data.count() / 25);
        assert!(ace.abs_diff(expected as u64) <= 4, "{position}: {ace} of {expected}");
        let ce = row["ecn"]["sender"]["ce"].as_u64().unwrap();
        assert_eq!(ce > 0, position > 0, "marks are set behind the sender");
    }
}

#[test]
fn explain_streams_and_the_page_agree() {
    let plans = [
        Conversation { lose_every: 150, seconds: 3, ..Conversation::default() },
        Conversation { window: 60_000, seconds: 3, ..Conversation::default() },
        Conversation { app: App::Every(25_000, 100), ..Conversation::default() },
    ];
    for plan in plans {
        let packets = plan.packets();
        let (found, row) = (explained(&packets), stream(&packets));
        assert_eq!(found["sentence"], row["limit"]);
        let saved = saved(&packets);
        let page = saved.path.with_extension("html");
        let (path, html) = (saved.path.to_str().unwrap(), page.to_str().unwrap());
        assert!(run(&["pcap", path, "--html", html]).status.success());
        let shown = std::fs::read_to_string(&page).unwrap();
        let listed = printed(&["pcap", "streams", path]);
        // The lines of the stream, without their wrapping.
        let mut about = String::new();
        for line in listed.lines().skip(3) {
            about += &format!("{} ", line.trim());
        }
        for part in about.split(", captured ").next().unwrap().split(", ").take(3) {
            assert!(shown.contains(part), "{part}");
        }
        let prediction = row["limit"].as_str().unwrap().get(1..40).unwrap();
        assert!(shown.contains(prediction), "{prediction}");
    }
}
