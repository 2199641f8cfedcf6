//! Running connections: the table, one followed, a recording; at any width.

use crate::assertions::{fits, golden};
use record::{
    BbrView, ConnectionId, ConnectionSample, CounterChange, Limit, Sample, Shares, WATCH_SCHEMA,
    WatchReport, WatchedConnection,
};
use report::terminal::{self, ConnectionSummary, Style, Viewport};
use units::BitRate;

fn connection(
    program: Option<&str>,
    remote: &str,
    rates: Option<(u64, u64)>,
    limit: Option<(Limit, &str)>,
) -> WatchedConnection {
    let shares = limit.map(|(limit, _)| match limit {
        Limit::ReceiveWindow => Shares { receive_window: 0.97, network: 0.03, ..Shares::default() },
        _ => Shares { network: 0.8, application: 0.2, ..Shares::default() },
    });
    WatchedConnection {
        who: ConnectionId {
            id: "1f".to_owned(),
            local: "10.0.0.1:40000".to_owned(),
            remote: remote.to_owned(),
            pid: program.map(|_| 4242),
            program: program.map(str::to_owned),
            uid: 1000,
            congestion: Some("cubic".to_owned()),
        },
        state: "established".to_owned(),
        sends_bps: rates.map(|rates| BitRate::from_bps(rates.0)),
        receives_bps: rates.map(|rates| BitRate::from_bps(rates.1)),
        rtt_ms: Some(173.25),
        min_rtt_ms: Some(173.0),
        cwnd_bytes: 1_448_000,
        in_flight_bytes: 65_160,
        unsent_bytes: 2_500_000,
        unread_bytes: 0,
        peer_window_bytes: Some(65_536),
        own_window_bytes: Some(65_536),
        retransmits: if rates.is_some() { 12 } else { 0 },
        retransmits_total: 1234,
        shares,
        bbr: limit.map(|_| BbrView {
            bandwidth_bps: BitRate::from_bps(94_000_000),
            min_rtt_ms: 173.0,
            pacing_gain: 1.25,
            cwnd_gain: 2.0,
        }),
        idle_s: 42.0,
        limit: limit.map(|(limit, _)| limit),
        why: limit.map(|(_, why)| why.to_owned()),
    }
}

fn report() -> WatchReport {
    let rwnd_limited = "receive window 97 % of the time (64 KiB over 173 ms), at most 3.03 Mbit/s: the \
                receiver's tcp_rmem, or a slow receiving application";
    let change = |name: &str, delta, remedy: Option<&str>| CounterChange {
        name: name.to_owned(),
        delta,
        per_s: delta as f64,
        meaning: "segments retransmitted for any reason".to_owned(),
        remedy: remedy.map(str::to_owned),
    };
    let mut closing = connection(Some("a\u{1b}[31mb"), "[2001:db8::1]:443", None, None);
    closing.state = "fin-wait-1".to_owned();
    WatchReport {
        schema: WATCH_SCHEMA.to_owned(),
        t_s: 12.0,
        interval_s: 1.0,
        sockets: 5050,
        matching: 50,
        busy: 3,
        sends_bps: BitRate::from_bps(97_130_000),
        receives_bps: BitRate::from_bps(1_250_000_000),
        connections: vec![
            connection(
                Some("rsync-of-a-long-name"),
                "203.0.113.250:65535",
                Some((3_030_000, 64)),
                Some((Limit::ReceiveWindow, rwnd_limited)),
            ),
            connection(
                Some("iperf3"),
                "[2001:db8:ffff:eeee:dddd:cccc:bbbb:aaaa]:5201",
                Some((94_100_000, 0)),
                Some((
                    Limit::PathRate,
                    "bottleneck saturated at 94.1 Mbit/s, standing queue of 20 ms",
                )),
            ),
            connection(None, "192.0.2.7:443", Some((0, 1_250_000_000)), None),
            closing,
            connection(Some("sshd"), "192.0.2.9:22", None, None),
        ],
        counters: vec![
            change("TcpExt.TCPOFOQueue", 12, None),
            change("Tcp.RetransSegs", 1_200_000, Some("look for loss on the path")),
        ],
        notes: vec!["programs of other users are hidden; run as root to see them".to_owned()],
    }
}

fn samples() -> Vec<ConnectionSample> {
    (0..300u32)
        .map(|second| ConnectionSample {
            sent: Sample {
                t_s: f64::from(second),
                acked_bytes: u64::from(second * second) * 100,
                rtt_us: 173_000 + 100 * (second % 7),
                cwnd_bytes: u64::from(second) * 1448,
                busy_us: u64::from(second) * 1_000_000,
                rwnd_limited_us: u64::from(second) * 970_000,
                ..Sample::default()
            },
            ..ConnectionSample::default()
        })
        .collect()
}

fn everything(style: &Style) -> String {
    let report = report();
    let selected = Viewport { lines: 16, selected: Some(1) };
    let shares = |_: &ConnectionSample, _: &ConnectionSample| {
        Some(Shares { receive_window: 0.97, network: 0.03, ..Shares::default() })
    };
    let first = &report.connections[0];
    let finding = crate::synthetic::before().1;
    let watched = ConnectionSummary {
        who: &first.who,
        seconds: (0.0, 12.0),
        bytes: 123_456_789,
        sends: true,
        retransmits: 1_234_567,
        finding: &finding,
    };
    [
        terminal::watch(&report, "rate", Viewport::ALL, style),
        terminal::watch(&report, "limit", selected, style),
        terminal::follow(first, &samples(), shares, style),
        terminal::follow(&report.connections[4], &[], shares, style),
        terminal::recorded_connections(&[watched.clone(), watched], style),
    ]
    .join("\n")
}

#[test]
fn golden_at_80_and_200_columns() {
    for (name, width, unicode) in [
        ("watch-80.txt", 80, true),
        ("watch-200.txt", 200, true),
        ("watch-80-ascii.txt", 80, false),
    ] {
        let text = everything(&Style { colour: false, width, unicode });
        fits(&text, width);
        assert!(unicode || text.is_ascii(), "{text}");
        assert!(!text.contains('\u{1b}'));
        golden(name, &text);
    }
}

#[test]
fn output_fits_any_size() {
    let report = report();
    for width in 1..260 {
        let style = Style { colour: false, width, unicode: width % 2 == 0 };
        fits(&everything(&style), width);
        for lines in [0, 1, 2, 5, 9, 24] {
            let text =
                terminal::watch(&report, "rtt", Viewport { lines, selected: Some(9) }, &style);
            // A summary, notes, a header and the counters are there whatever the room.
            assert!(text.lines().count() <= lines.max(11), "{width} {lines}: {text}");
        }
    }
    let none = WatchReport { sockets: 0, connections: Vec::new(), ..report };
    let style = Style { colour: true, width: 80, unicode: true };
    let text = terminal::watch(&none, "rate", Viewport::ALL, &style);
    assert!(text.contains("no connections"), "{text}");
}
