//! The TCP streams of a capture: how each went, and what limited it.

use super::{
    Style,
    line::{Line, block, wrap},
    style,
};
use tcp_analysis::{
    CongestionEvidence, CongestionFamily, EcnCounts, EcnMode, TimeCause, TimeShare,
};
use units::{BitRate, ByteCount, Rtt};

/// A stream to show, in the direction that carried more.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamRow {
    /// Wireshark's `tcp.stream`.
    pub stream: u32,
    /// Address and port of the sender of the data, and of the receiver.
    pub ends: [String; 2],
    /// Seconds from the first to the last packet.
    pub seconds: f64,
    /// Payload that was acknowledged, or sent where no ACK was captured.
    pub payload: ByteCount,
    /// That over the seconds.
    pub goodput: Option<BitRate>,
    /// Retransmissions by kind: name and count, without zeros.
    pub retransmits: Vec<(&'static str, u32)>,
    /// Share of the data packets that were retransmitted, 0 to 1.
    pub retransmit_share: f64,
    /// Smallest and smoothed RTT of the path, as seen from here.
    pub rtt: Option<(Rtt, Rtt)>,
    /// Where the capture was made, in words.
    pub point: String,
    /// The gaps in what the capture shows of it, as sentences.
    pub caveats: Vec<String>,
    /// The receiver's largest window, and whether that is a lower bound; `None` if its scale is
    /// unknown.
    pub window: Option<(ByteCount, bool)>,
    /// The negotiated ECN mode, and the marks of the sender's and the receiver's packets.
    pub ecn: (EcnMode, [EcnCounts; 2]),
    /// Its limit, one sentence; `None` for streams that were not explained.
    pub limit: Option<String>,
    /// The causes that its sender waited for, the longest first; empty for streams that were not
    /// explained.
    pub times: Vec<TimeShare>,
    /// The family of its congestion control; `None` for streams that were not explained.
    pub congestion: Option<CongestionEvidence>,
}

/// Column of a stream's lines below its first one.
const INDENT: usize = 8;

/// Share of the time below which a cause is not shown.
const MIN_SHARE: f64 = 0.005;

/// The time of a stream by cause with its longest spans, one sentence.
#[must_use]
pub fn time_by_cause(times: &[TimeShare]) -> String {
    let shown = times.iter().filter(|time| time.share >= MIN_SHARE);
    let each: Vec<String> = shown
        .map(|time| {
            let name = match time.cause {
                TimeCause::Application => "application idle or short of data".to_owned(),
                TimeCause::CongestionWindow => "congestion window or pacing".to_owned(),
                cause => cause.name().replace('_', " "),
            };
            let (from, to) = time.longest.packets;
            format!(
                "{} {name} (longest: {:.3} s, packets {from} to {to})",
                units::percent_with(time.share, 2),
                time.longest.ns as f64 / 1e9,
            )
        })
        .collect();
    format!("waited for: {}", each.join(", "))
}

/// The family of a stream's congestion control with what shows it, one sentence.
#[must_use]
pub fn congestion(found: &CongestionEvidence) -> String {
    let times = |count: u32| format!("{count} time{}", if count == 1 { "" } else { "s" });
    let mut parts = Vec::new();
    if let Some(factor) = found.factor {
        let (from, to) = found.reduction_packets;
        parts.push(format!(
            "{} loss{} reduced the window to {factor:.2} (median; the largest reduction: packets \
             {from} to {to})",
            found.reductions,
            if found.reductions == 1 { "" } else { "es" },
        ));
    }
    if found.linear_growth > 0 {
        let count = times(found.linear_growth);
        parts.push(format!("then it grew by one segment per round trip ({count})"));
    }
    if found.cubic_growth > 0 {
        parts.push(format!("then it grew along CUBIC's curve ({})", times(found.cubic_growth)));
    }
    if found.falls > 0 {
        let (from, to) = found.fall_packets;
        parts.push(format!(
            "bytes in flight fell {} without a loss (last: packets {from} to {to}), {} at the \
             interval of BBR's probes",
            times(found.falls),
            found.cycles,
        ));
    }
    if found.dips > 0 {
        parts.push(format!("{} to a few segments", times(found.dips)));
    }
    if parts.is_empty() {
        parts.push("no loss was measured".to_owned());
    }
    let family = found.family.map_or("unknown", CongestionFamily::name);
    format!("congestion control: {family}; {}", parts.join(", "))
}

/// The marks of a stream, one sentence; `None` without any where ECN is not known to be in use.
fn ecn_marks((mode, [sender, receiver]): &(EcnMode, [EcnCounts; 2])) -> Option<String> {
    let packets = |count: u32, what: &str| {
        let plural = if count == 1 { "" } else { "s" };
        (count > 0).then(|| format!("{count} packet{plural} {what}"))
    };
    let parts = [
        packets(sender.ce, "of the data with CE"),
        packets(receiver.ce, "of the receiver with CE"),
        packets(receiver.ece, "with ECE"),
        packets(sender.cwr, "with CWR"),
        packets(receiver.ace, "with CE reported by ACE"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let name = match mode {
        EcnMode::Accurate => "AccECN",
        EcnMode::Classic => "ECN",
        EcnMode::Off => "ECN not negotiated",
        EcnMode::Unknown => "ECN, if negotiated",
    };
    match (parts.is_empty(), mode) {
        (false, _) => Some(format!("{name}: {}", parts.join(", "))),
        (true, EcnMode::Accurate | EcnMode::Classic) => Some(format!("{name} without a mark")),
        (true, EcnMode::Off | EcnMode::Unknown) => None,
    }
}

/// The streams in the order given, of which there are `all`, and sentences about each iperf3
/// `test` among them.
#[must_use]
pub fn capture_streams(
    rows: &[StreamRow],
    all: usize,
    tests: &[Vec<String>],
    style: &Style,
) -> String {
    let title = if rows.len() < all {
        format!("TCP streams: {all}, the {} worst", rows.len())
    } else {
        format!("TCP streams: {all}")
    };
    let mut lines = vec![Line::new(style).put(style::STRONG, &title)];
    for row in rows {
        let number = Line::new(style).right(style::DIM, &row.stream.to_string(), INDENT - 2);
        let ends = format!("{} > {}", row.ends[0], row.ends[1]);
        lines.push(number.to(INDENT).put(style::STRONG, &ends));
        for (text, style_of) in figures(row) {
            for part in wrap(style, &text, style.text_width().saturating_sub(INDENT).max(20)) {
                lines.push(Line::new(style).to(INDENT).put(style_of, &part));
            }
        }
    }
    for (place, sentence) in tests.iter().flat_map(|test| test.iter().enumerate()) {
        let indent = if place == 0 { 0 } else { 2 };
        for part in wrap(style, sentence, style.text_width().saturating_sub(indent).max(20)) {
            lines.push(Line::new(style).to(indent).put(style::PLAIN, &part));
        }
    }
    block(lines)
}

/// The lines of a stream, as sentences.
#[must_use]
pub fn stream_sentences(row: &StreamRow) -> Vec<String> {
    figures(row).into_iter().map(|(text, _)| text).collect()
}

fn figures(row: &StreamRow) -> Vec<(String, anstyle::Style)> {
    let rate = row.goodput.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
    let mut first = format!("{} in {:.3} s, {rate}", row.payload.decimal(), row.seconds);
    if let Some((least, smoothed)) = row.rtt {
        first += &format!(", RTT {least} to {smoothed}");
    }
    if let Some((window, is_bound)) = row.window {
        let of = if is_bound { "at least " } else { "" };
        first += &format!(", receive window {of}{window}");
    }
    first += &format!(", captured {}", row.point);
    let mut texts: Vec<_> = row.caveats.iter().map(|text| (text.clone(), style::WARN)).collect();
    texts.push((first, style::PLAIN));
    if !row.retransmits.is_empty() {
        let kinds: Vec<String> = row
            .retransmits
            .iter()
            .map(|(name, count)| format!("{count} {}", name.replace('_', " ")))
            .collect();
        let share = units::percent_with(row.retransmit_share, 2);
        texts.push((format!("retransmitted {share}: {}", kinds.join(", ")), style::WARN));
    }
    texts.extend(ecn_marks(&row.ecn).map(|text| (text, style::PLAIN)));
    if let Some(limit) = &row.limit {
        texts.push((limit.clone(), style::PLAIN));
    }
    if let Some(found) = &row.congestion {
        texts.push((congestion(found), style::DIM));
    }
    if !row.times.is_empty() {
        texts.push((time_by_cause(&row.times), style::DIM));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::super::fit::{assert_fits, styles};
    use super::*;
    use tcp_analysis::Span;

    #[test]
    fn streams_fit_any_terminal() {
        let row = StreamRow {
            stream: 12_345,
            ends: ["10.0.0.1:40000".to_owned(), "10.0.0.2:5201".to_owned()],
            seconds: 10.0,
            payload: ByteCount::from_bytes(123_456_789),
            goodput: Some(BitRate::from_bps(98_765_432)),
            retransmits: vec![("timeout", 3), ("after_timeout", 9), ("tail_loss_probe", 1)],
            retransmit_share: 0.0123,
            rtt: Some((Rtt::from_micros(40_000), Rtt::from_micros(55_000))),
            point: "at the sender (0 % of the RTT)".to_owned(),
            caveats: vec!["The handshake was not captured.".to_owned()],
            window: Some((ByteCount::from_bytes(39_600), true)),
            ecn: (EcnMode::Accurate, [EcnCounts { ce: 3, ..EcnCounts::default() }; 2]),
            limit: Some("random loss keeps the congestion window small".to_owned()),
            times: vec![TimeShare {
                cause: TimeCause::CongestionWindow,
                ns: 7_000_000_000,
                share: 0.7,
                longest: Span { packets: (12, 34_567), ns: 1_234_000_000 },
            }],
            congestion: Some(CongestionEvidence {
                family: Some(CongestionFamily::Cubic),
                reductions: 3,
                factor: Some(0.7),
                falls: 2,
                ..CongestionEvidence::default()
            }),
        };
        let tests = [vec!["iperf3 test: TCP".to_owned(), "phases: ".repeat(20)]];
        for style in styles() {
            assert_fits(&capture_streams(std::slice::from_ref(&row), 2, &tests, &style), &style);
        }
    }
}
