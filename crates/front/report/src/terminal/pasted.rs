//! Counters and connections read from the text of other tools.

use super::{
    Style,
    line::{Line, block, labelled},
    style,
};
use crate::wording;
use ::doctor::{PastedConnection, PastedCounter, PastedReport};
use units::percent;

/// Column of the texts.
const COLUMN: usize = 10;

/// Connections shown; JSON has all.
const CONNECTIONS: usize = 20;

/// Counters with value, share and meaning, then the connections.
#[must_use]
pub fn pasted(report: &PastedReport, style: &Style) -> String {
    let row = |label: &str, text: &str| {
        labelled(style, 0, (style::STRONG, label), COLUMN, (style::PLAIN, text))
    };
    let mut lines = row("Read", &report.format);
    lines.push(Line::new(style));
    let shown = |one: &&PastedCounter| one.value > 0;
    for one in report.counters.iter().filter(shown) {
        lines.extend(counter(one, style));
    }
    for one in report.connections.iter().take(CONNECTIONS) {
        lines.push(Line::new(style));
        lines.extend(connection(one, style));
    }
    lines.push(Line::new(style));
    let zeros = report.counters.len() - report.counters.iter().filter(shown).count();
    if zeros > 0 {
        lines.extend(row("Zero", &format!("{} at zero", wording::counted(zeros, "more counter"))));
    }
    if report.connections.len() > CONNECTIONS {
        let rest = report.connections.len() - CONNECTIONS;
        lines.extend(row(
            "Note",
            &format!("{}: --json shows all", wording::counted(rest, "more connection")),
        ));
    }
    if report.unread_lines > 0 {
        let text = format!("{} not explained", wording::counted(report.unread_lines, "more line"));
        lines.extend(row("Note", &text));
    }
    for note in &report.notes {
        lines.extend(row("Note", note));
    }
    block(lines)
}

fn counter(one: &PastedCounter, style: &Style) -> Vec<Line> {
    let mut head = format!("{}: {}", one.name, one.value);
    if let (Some(share), Some(of)) = (one.share, &one.of) {
        head += &format!(", {} of {of}", percent(share));
    }
    let mut lines = labelled(style, 0, (style::PLAIN, ""), 0, (style::STRONG, &head));
    lines.extend(labelled(style, 4, (style::DIM, ""), 4, (style::DIM, &one.meaning)));
    if let Some(remedy) = &one.remedy {
        lines.extend(labelled(style, 4, (style::PLAIN, ""), 4, (style::PLAIN, remedy)));
    }
    lines
}

fn connection(one: &PastedConnection, style: &Style) -> Vec<Line> {
    let head = format!("{} -> {}", one.local, one.peer);
    let mut lines = labelled(style, 0, (style::PLAIN, ""), 0, (style::STRONG, &head));
    let values: Vec<String> = [
        one.congestion.clone(),
        one.rtt_ms.map(|rtt| format!("RTT {rtt:.1} ms")),
        one.min_rtt_ms.map(|rtt| format!("minimum {rtt:.1} ms")),
        one.cwnd_segments.map(|cwnd| format!("cwnd {cwnd} segments")),
        one.cwnd_rate_bps.map(|rate| format!("which allow {rate}")),
        one.delivery_rate_bps.map(|rate| format!("delivery rate {rate}")),
        one.sent_bytes.map(|sent| format!("{sent} sent")),
        one.received_bytes.map(|received| format!("{received} received")),
    ]
    .into_iter()
    .flatten()
    .collect();
    lines.extend(labelled(style, 4, (style::DIM, ""), 4, (style::DIM, &values.join(", "))));
    for finding in &one.findings {
        lines.extend(labelled(style, 4, (style::WARN, "!"), 6, (style::PLAIN, finding)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::fit::{assert_fits, styles};
    use super::*;
    use doctor::PASTED_SCHEMA;
    use units::{BitRate, ByteCount};

    fn report() -> PastedReport {
        let counter = |name: &str, value, share| PastedCounter {
            name: name.to_owned(),
            value,
            of: Some("Tcp.OutSegs".to_owned()),
            share,
            meaning: "segments retransmitted, for any reason\u{1b}[2J".to_owned(),
            remedy: Some("find the lossy hop: longhaul trace HOST".to_owned()),
        };
        let connection = PastedConnection {
            local: "10.0.0.1:43376".to_owned(),
            peer: "[2001:db8::1234:5678:9abc:def0]:5201".to_owned(),
            congestion: Some("cubic".to_owned()),
            rtt_ms: Some(61.73),
            delivery_rate_bps: Some(BitRate::from_bps(15_045_840)),
            sent_bytes: Some(ByteCount::from_bytes(5_693_573)),
            findings: vec!["rwnd-limited 93 % of the busy time: raise it".to_owned()],
            ..PastedConnection::default()
        };
        PastedReport {
            schema: PASTED_SCHEMA.to_owned(),
            version: "1".to_owned(),
            format: "netstat of Linux".to_owned(),
            counters: vec![
                counter("Tcp.RetransSegs", 9_313, Some(0.000_25)),
                counter("Tcp.InErrs", 0, Some(0.0)),
            ],
            connections: vec![connection; 21],
            unread_lines: 3,
            notes: vec!["counters cover all connections since boot".to_owned()],
        }
    }

    #[test]
    fn counters_with_shares_and_connections_fit() {
        for style in styles() {
            assert_fits(&pasted(&report(), &style), &style);
        }
        let text = pasted(&report(), &Style { colour: false, width: 80, unicode: true });
        assert!(text.contains("Tcp.RetransSegs: 9313, 0.025 % of Tcp.OutSegs"), "{text}");
        assert!(!text.contains("InErrs") && text.contains("1 more counter at zero"), "{text}");
        assert_eq!(text.matches("10.0.0.1:43376").count(), CONNECTIONS, "{text}");
        assert!(text.contains("! rwnd-limited 93 %") && !text.contains('\u{1b}'), "{text}");
    }
}
