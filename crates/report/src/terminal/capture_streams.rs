//! The TCP streams of a capture: how each went, and what limited it.

use super::{
    Style,
    line::{Line, block, wrap},
    style,
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
    /// What limited it, one sentence; `None` for streams that were not explained.
    pub limit: Option<String>,
}

/// Column of a stream's lines below its first one.
const INDENT: usize = 8;

/// The streams in the order given, of which there are `all`.
#[must_use]
pub fn capture_streams(rows: &[StreamRow], all: usize, style: &Style) -> String {
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
    block(lines)
}

fn figures(row: &StreamRow) -> Vec<(String, anstyle::Style)> {
    let rate = row.goodput.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
    let mut first = format!("{} in {:.3} s, {rate}", row.payload.decimal(), row.seconds);
    if let Some((least, smoothed)) = row.rtt {
        first += &format!(", RTT {least} to {smoothed}");
    }
    first += &format!(", captured {}", row.point);
    let mut texts = vec![(first, style::PLAIN)];
    if !row.retransmits.is_empty() {
        let kinds: Vec<String> = row
            .retransmits
            .iter()
            .map(|(name, count)| format!("{count} {}", name.replace('_', " ")))
            .collect();
        let share = units::percent_with(row.retransmit_share, 2);
        texts.push((format!("retransmitted {share}: {}", kinds.join(", ")), style::WARN));
    }
    if let Some(limit) = &row.limit {
        texts.push((limit.clone(), style::PLAIN));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::super::fit::{assert_fits, styles};
    use super::*;

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
            limit: Some("random loss keeps the congestion window small".to_owned()),
        };
        for style in styles() {
            assert_fits(&capture_streams(std::slice::from_ref(&row), 2, &style), &style);
        }
    }
}
