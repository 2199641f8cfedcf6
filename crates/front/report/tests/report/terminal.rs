//! Blocks at 80 and 200 columns, in Unicode and ASCII.

use crate::assertions::{fits, golden};
use crate::synthetic;
use record::Interval;
use report::terminal::{self, IntervalTable, Rows, Style, Trace};
use units::{BitRate, ByteCount, Rtt};

/// Everything one after the other, as `longhaul demo` would print it.
fn everything(style: &Style) -> String {
    let (before, verdict) = synthetic::before();
    let (after, _) = synthetic::after();
    let link = before.path.as_ref().and_then(|p| p.rate_bps);
    let mut unknown = verdict.clone();
    unknown.limit = None;
    unknown.shares = None;
    unknown.predicted_bps = None;
    unknown.equation = None;
    unknown.sentence = "The sender is an iperf3 server, which does not report TCP_INFO \
                        samples: only the rate is known."
        .to_owned();
    let rates: Vec<BitRate> = (1..=24u64).map(|i| BitRate::from_bps(i * i * 170_000)).collect();
    let traces = [
        Trace { label: "before", measurement: &before },
        Trace { label: "after", measurement: &after },
    ];
    let mut out = rows(style);
    out += "\n";
    out += &terminal::progress(4.8, Some(10.0), &rates, style);
    out += "\n\n";
    out += &terminal::finding(&verdict, style);
    out += "\n";
    out += &terminal::finding(&unknown, style);
    out += "\n";
    out += &terminal::finding(&synthetic::in_segments().1, style);
    out += "\n";
    out += &terminal::notes(&["the server clamped the window to 128 KiB".to_owned()], style);
    out += "\n";
    out += &terminal::plot(&traces, link, style);
    out += "\n";
    out += &terminal::summary(&synthetic::report(), style);
    out += "\n";
    out += &terminal::plan(&synthetic::report().plan, style);
    out
}

fn rows(style: &Style) -> String {
    let mut table = IntervalTable::new(record::Protocol::Tcp, vec![1, 3], false, Rows::Brief);
    let mut text = table.header(style) + "\n";
    for (stream, second, bytes, retransmits) in [
        (Some(1), 0.0, 372_700, Some(0)),
        (Some(3), 0.0, 12_041_200, Some(1205)),
        (None, 999.0, 1_254_300_000, None),
    ] {
        let interval = Interval {
            stream,
            sending: true,
            from_s: second,
            to_s: second + 1.0,
            bytes: ByteCount::from_bytes(bytes),
            rate: BitRate::from_bps(bytes * 8),
            arrival_rate: None,
            retransmits,
            cwnd: retransmits.map(|_| ByteCount::from_bytes(1_413_000)),
            peer_window: None,
            rtt: Some(Rtt::from_micros(173_120)),
            rttvar: None,
            pmtu: None,
            datagrams: None,
            omitted: false,
        };
        text += &table.row(&interval, style).unwrap_or_default();
        text += "\n";
    }
    text
}

#[test]
fn golden_at_80_and_200_columns() {
    for (name, width, unicode) in
        [("80.txt", 80, true), ("200.txt", 200, true), ("80-ascii.txt", 80, false)]
    {
        let text = everything(&Style { colour: false, width, unicode });
        fits(&text, width.min(100));
        assert!(unicode || text.is_ascii());
        golden(name, &text);
    }
}

#[test]
fn colour_changes_only_colour() {
    let style = Style { colour: true, width: 80, unicode: true };
    let coloured = everything(&style);
    assert!(coloured.contains('\u{1b}'));
    let plain = everything(&Style { colour: false, ..style });
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((text, code)) = rest.split_once('\u{1b}') {
        stripped += text;
        rest = code.split_once('m').map_or("", |(_, after)| after);
    }
    assert_eq!(stripped + rest, plain);
    // To inspect it: cat target/tmp/report.ansi
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("report.ansi");
    assert!(std::fs::write(path, coloured).is_ok());
}

#[test]
fn rows_line_up() {
    let text = rows(&Style { colour: false, width: 80, unicode: true });
    let widths: Vec<_> = text.lines().map(|l| l.chars().count()).collect();
    assert!(widths.iter().all(|w| *w == widths[0] && *w <= 80), "{widths:?}\n{text}");
}

#[test]
fn an_invalid_path_is_not_overlooked() {
    let mut report = synthetic::report();
    report.path.valid = false;
    report.path.reasons = vec!["64 packets were dropped unintentionally".to_owned()];
    let text = terminal::summary(&report, &Style { colour: false, width: 80, unicode: true });
    assert!(text.lines().next().is_some_and(|l| l.contains("not valid")), "{text}");
    assert_eq!(text.matches("not valid").count(), 2, "{text}");
    assert!(text.contains("dropped unintentionally"), "{text}");
}

#[test]
fn output_fits_every_width() {
    for width in 1..=120 {
        for unicode in [false, true] {
            fits(&everything(&Style { colour: false, width, unicode }), width);
        }
    }
}

#[test]
fn a_peer_cannot_drive_the_terminal() {
    let style = Style { colour: false, width: 80, unicode: true };
    let note = "\u{1b}]0;owned\u{7}\u{9b}2J\r\u{202e}x".to_owned();
    assert_eq!(terminal::notes(&[note], &style), "note: ]0;owned2J x\n");
}

#[test]
fn a_brief_result_fits_a_screen_whatever_was_found() {
    let (mut measurement, mut finding) = synthetic::before();
    let fix = terminal::Fix {
        text: "on the server; expected: 96 Mbit/s".to_owned(),
        command: Some("sudo sysctl -w net.ipv4.tcp_rmem=\"4096 131072 6291456\"".to_owned()),
    };
    let style = Style { colour: false, width: 80, unicode: true };
    let few = terminal::one_screen(&measurement, &finding, &fix, &["a note".to_owned()], &style);
    fits(&few, 80);
    for part in ["Rate  ", "RTT idle  ", "RTT loaded  ", "Grade  ", "Cause  ", "Fix  ", "Note  "] {
        assert!(few.lines().any(|line| line.starts_with(part)), "{part}: {few}");
    }
    assert!(few.contains("\n      sudo sysctl -w net.ipv4.tcp_rmem="), "{few}");
    assert!(few.contains("unknown: the RTT under load was not measured"), "{few}");
    finding.sentence = "A long sentence that goes on. ".repeat(60);
    measurement.spec.target = "h".repeat(300);
    let notes = vec![
        "a note of some length that takes more than a line of the screen, or two"
            .to_owned();
        40
    ];
    let many = terminal::one_screen(&measurement, &finding, &fix, &notes, &style);
    fits(&many, 80);
    assert!(many.lines().count() <= 22, "{many}");
    assert!(many.contains("without --brief") && many.contains("sudo sysctl"), "{many}");
    let narrow = Style { colour: false, width: 30, unicode: false };
    fits(&terminal::one_screen(&measurement, &finding, &fix, &notes, &narrow), 30);
}
