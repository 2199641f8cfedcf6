//! Blocks at 80 and 200 columns, in Unicode and ASCII.

use crate::reading::{fits, golden};
use crate::synthetic;
use report::terminal::{self, Interval, RowId, Style, Trace};
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
    unknown.sentence = "The peer is an iperf3 server that sends, and does not share its \
                        kernel's samples: only the rate is known."
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
    let row = |id, second: f64, bytes, retransmits| {
        let row = Interval {
            id,
            way: None,
            datagrams: None,
            from_s: second,
            to_s: second + 1.0,
            bytes: ByteCount::from_bytes(bytes),
            rate: BitRate::from_bps(bytes * 8),
            retransmits,
            cwnd: retransmits.map(|_| ByteCount::from_bytes(1_413_000)),
            rtt: Some(Rtt::from_micros(173_120)),
        };
        terminal::interval_row(&row, style) + "\n"
    };
    terminal::interval_header(record::Protocol::Tcp, style)
        + "\n"
        + &row(RowId::Stream(1), 0.0, 372_700, Some(0))
        + &row(RowId::Stream(3), 0.0, 12_041_200, Some(1205))
        + &row(RowId::Sum, 999.0, 1_254_300_000, None)
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
fn colour_changes_nothing_but_colour() {
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
    // For a look: cat target/tmp/report.ansi
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("report.ansi");
    assert!(std::fs::write(path, coloured).is_ok());
}

#[test]
fn rows_line_up_whatever_they_hold() {
    let text = rows(&Style { colour: false, width: 80, unicode: true });
    let widths: Vec<_> = text.lines().map(|l| l.chars().count()).collect();
    assert!(widths.iter().all(|w| *w == widths[0] && *w <= 80), "{widths:?}\n{text}");
}

#[test]
fn an_invalid_path_is_not_overlooked() {
    let mut report = synthetic::report();
    report.path.valid = false;
    report.path.reasons = vec!["64 packets were lost that nobody asked for".to_owned()];
    let text = terminal::summary(&report, &Style { colour: false, width: 80, unicode: true });
    assert!(text.lines().next().is_some_and(|l| l.contains("not valid")), "{text}");
    assert!(text.contains("NOT VALID") && text.contains("nobody asked for"), "{text}");
}

#[test]
fn every_width_is_kept() {
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
