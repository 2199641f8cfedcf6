//! The captures of the corpus, made by a simulated connection.

use super::compressed;
use crate::conversation::{App, Conversation, Packet, mirrored, mirrored_at, snapped, stepped};

/// Bytes of each packet: all headers.
const SNAPLEN: usize = 96;

/// Points of the path.
const POINTS: [(&str, u64); 3] = [("sender", 0), ("middle", 40), ("receiver", 100)];

type File = (String, Vec<u8>);

fn file(name: &str, packets: &[Packet]) -> File {
    (format!("{name}.pcap.gz"), compressed(&snapped(packets, SNAPLEN)))
}

/// Without the first packets, and so without a handshake.
fn later(packets: &[Packet]) -> Vec<Packet> {
    packets[40.min(packets.len() / 4)..].to_vec()
}

fn one_way(packets: &[Packet], from_sender: bool) -> Vec<Packet> {
    packets.iter().filter(|packet| packet.from_sender == from_sender).cloned().collect()
}

/// The last packet is a reset, which acknowledges nothing.
fn reset(mut packets: Vec<Packet>) -> Vec<Packet> {
    if let Some(last) = packets.last_mut() {
        last.bytes.truncate(52);
        last.bytes[2..4].copy_from_slice(&[0, 52]);
        last.bytes[28..32].fill(0);
        last.bytes[33] = 0x04;
    }
    packets
}

/// 20 Mbit/s x 60 ms.
fn path(app: App, seconds: u64) -> Conversation {
    Conversation { app, seconds, ns_per_byte: 400, ..Conversation::default() }
}

/// A receive window of 20 kB over 100 ms: 1.6 Mbit/s.
fn window() -> Conversation {
    Conversation { window: 20_000, scale: 7, rtt_ms: 100, ..path(App::Bulk, 3) }
}

/// One of 60 segments lost, of 3 Mbit/s at most.
fn losses() -> Conversation {
    Conversation { lose_every: 60, ns_per_byte: 2_700, ..path(App::Bulk, 4) }
}

/// Every file.
pub(super) fn all() -> Vec<File> {
    let mut files = applications();
    files.extend(windows());
    files.extend(networks());
    files.extend(capture_faults());
    files.extend(hangs());
    files.extend(ecn());
    files
}

fn applications() -> Vec<File> {
    let apps = [
        ("cbr", App::Every(5_000, 100), 4),
        ("small-writes", App::Every(200, 70), 4),
        ("messages", App::Uneven(400, 60), 3),
        ("on-off", App::Every(60_000, 1500), 8),
        ("server-thinks", App::Answers(60_000, 2500, 0), 6),
        ("requests", App::Answers(3_000, 0, 0), 3),
        ("user-reads", App::Answers(40_000, 10, 700), 5),
        ("both-think", App::Answers(20_000, 300, 400), 5),
        ("idle-tail", App::Every(80_000, 100_000), 8),
    ];
    let mut files = Vec::new();
    for (name, app, seconds) in apps {
        for (point, position) in POINTS {
            // Two of three points of the slower ones, to stay small.
            if position == 40 && seconds > 4 {
                continue;
            }
            let closes = name == "idle-tail";
            let packets = Conversation { position, closes, ..path(app, seconds) }.packets();
            files.push(file(&format!("app-{name}-{point}"), &packets));
            if position == 0 {
                files.push(file(&format!("app-{name}-mid-stream"), &later(&packets)));
            }
        }
    }
    files
}

fn windows() -> Vec<File> {
    let mut files = Vec::new();
    for (point, position) in POINTS {
        let packets = Conversation { position, ..window() }.packets();
        files.push(file(&format!("window-{point}"), &packets));
        files.push(file(&format!("window-{point}-mid-stream"), &later(&packets)));
    }
    let small = Conversation { window: 8_000, rtt_ms: 40, ..window() };
    files.push(file("window-8k", &small.packets()));
    let shift = Conversation { window: 65_536, scale: 14, rtt_ms: 250, ..window() };
    files.push(file("window-scale-14-mid-stream", &later(&shift.packets())));
    files
}

fn networks() -> Vec<File> {
    let slow = Conversation { ns_per_byte: 8_000, rtt_ms: 40, ..path(App::Bulk, 6) };
    let mut files = vec![file("link-1-mbit", &slow.packets())];
    for (point, position) in POINTS {
        files
            .push(file(&format!("loss-{point}"), &Conversation { position, ..losses() }.packets()));
    }
    for (name, plan) in
        [("loss", losses()), ("window", window()), ("cbr", path(App::Every(5_000, 100), 4))]
    {
        let packets = plan.packets();
        files.push(file(&format!("{name}-data-only"), &one_way(&packets, true)));
        files.push(file(&format!("{name}-acks-only"), &later(&one_way(&packets, false))));
        files.push(file(&format!("{name}-data-only-reset"), &reset(one_way(&packets, true))));
    }
    files
}

fn capture_faults() -> Vec<File> {
    let mut files = Vec::new();
    let once = window().packets();
    let copies: [(&str, Vec<Packet>); 5] = [
        ("4us", mirrored(&once, 4, |_| true)),
        ("900us", mirrored(&once, 900, |_| true)),
        ("data", mirrored(&once, 50, |packet| packet.from_sender)),
        ("acks", mirrored(&once, 20, |packet| !packet.from_sender)),
        ("uneven", mirrored_at(&once, |number| 3 + 57 * (number % 7))),
    ];
    for (name, packets) in copies {
        files.push(file(&format!("mirror-{name}"), &packets));
    }
    let lossy = losses().packets();
    files.push(file("mirror-loss", &mirrored(&lossy, 9, |_| true)));
    let writes = path(App::Every(5_000, 100), 4).packets();
    for (name, packets, by_ms) in [
        ("back-2s", &once, -2000),
        ("back-50ms", &once, -50),
        ("forward-400ms", &once, 400),
        ("forward-1h", &once, 3_600_000),
        ("cbr-back-2s", &writes, -2000),
    ] {
        files.push(file(&format!("clock-{name}"), &stepped(packets, packets.len() / 2, by_ms)));
    }
    files
}

fn hangs() -> Vec<File> {
    let hang = |from_ms, longest, app| Conversation {
        black_hole: Some((from_ms, longest)),
        rtt_ms: 40,
        ..Conversation { ns_per_byte: 4_000, ..path(app, 8) }
    };
    let middle = Conversation { black_hole_to: 3000, ..hang(1000, 0, App::Bulk) };
    let brief = Conversation { black_hole_to: 3500, ..hang(1500, 0, App::Every(5_000, 100)) };
    [
        ("black-hole-1400", hang(0, 1400, App::Bulk)),
        ("black-hole-1280", hang(0, 1280, App::Answers(30_000, 50, 0))),
        ("outage-at-the-end", hang(1000, 0, App::Bulk)),
        ("outage-small-writes", hang(1000, 0, App::Every(300, 100))),
        ("outage-in-the-middle", middle),
        ("outage-cbr", brief),
    ]
    .map(|(name, plan)| file(name, &plan.packets()))
    .into()
}

fn ecn() -> Vec<File> {
    let with = |every, plan| Conversation { accurate_ecn: Some(every), ..plan };
    let writes = || path(App::Every(5_000, 100), 4);
    [
        ("accecn-window", with(0, window())),
        ("accecn-cbr", with(0, writes())),
        ("accecn-cbr-marks", with(10, writes())),
        ("accecn-cbr-marks-receiver", with(10, Conversation { position: 100, ..writes() })),
    ]
    .map(|(name, plan)| file(name, &plan.packets()))
    .into()
}
