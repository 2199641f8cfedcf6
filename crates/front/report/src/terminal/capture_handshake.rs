//! The handshakes of a capture: SYN, SYN-ACK and ACK, as they were on the wire.

use super::{
    Style,
    line::{Line, block, wrap},
    style,
};
use serde::Serialize;

/// A packet of a handshake.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandshakeRow {
    /// Raw acknowledgement number; `None` without ACK.
    pub ack: Option<u32>,
    /// Seconds since the SYN, or the first of them that was captured.
    pub after_s: f64,
    /// `SYN`, `SYN-ACK` or `ACK`.
    pub name: &'static str,
    /// The options in order, as text.
    pub options: Vec<String>,
    /// Its number in the capture.
    pub packet: u64,
    /// Raw sequence number.
    pub seq: u32,
    /// Window as sent.
    pub window: u16,
    /// The window in bytes that it means; `None` if the scale was not captured.
    pub window_bytes: Option<u64>,
}

/// The handshake of a stream.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandshakeStream {
    /// Address and port of the client.
    pub client: String,
    /// What it shows, as sentences.
    pub notes: Vec<String>,
    /// What was captured of it, in order.
    pub packets: Vec<HandshakeRow>,
    /// Address and port of the server.
    pub server: String,
    /// Wireshark's `tcp.stream`.
    pub stream: u32,
}

/// The handshakes of streams, of which there are `all`.
#[must_use]
pub fn capture_handshakes(streams: &[HandshakeStream], all: usize, style: &Style) -> String {
    let title = if streams.len() < all {
        format!("Handshakes: {all}, the first {}", streams.len())
    } else {
        format!("Handshakes: {all}")
    };
    let mut lines = vec![Line::new(style).put(style::STRONG, &title)];
    let room = style.text_width().saturating_sub(4).max(20);
    for stream in streams {
        let ends = format!("{} > {}", stream.client, stream.server);
        let head = Line::new(style).put(style::DIM, &format!("stream {} ", stream.stream));
        lines.push(head.put(style::STRONG, &ends));
        for row in &stream.packets {
            let ack = row.ack.map_or(String::new(), |ack| format!(", ack {ack}"));
            let window = match row.window_bytes {
                Some(bytes) => format!("window {} = {bytes} bytes", row.window),
                None => format!("window {}, scale unknown", row.window),
            };
            let text = format!(
                "{} (packet {}, {:.6} s): seq {}{ack}, {window}; {}",
                row.name,
                row.packet,
                row.after_s,
                row.seq,
                if row.options.is_empty() {
                    "no options".to_owned()
                } else {
                    row.options.join(", ")
                }
            );
            for (place, part) in wrap(style, &text, room).iter().enumerate() {
                let indent = if place == 0 { 2 } else { 4 };
                lines.push(Line::new(style).to(indent).put(style::PLAIN, part));
            }
        }
        for note in &stream.notes {
            for part in wrap(style, note, room) {
                lines.push(Line::new(style).to(2).put(style::WARN, &part));
            }
        }
    }
    block(lines)
}

#[cfg(test)]
mod tests {
    use super::super::fit::{assert_fits, styles};
    use super::*;

    #[test]
    fn handshakes_fit_any_terminal() {
        let row = HandshakeRow {
            name: "SYN-ACK",
            packet: 12_345_678,
            after_s: 0.123_456,
            seq: u32::MAX,
            ack: Some(u32::MAX),
            window: 65_535,
            window_bytes: Some(65_535 << 14),
            options: vec!["MSS 1460".to_owned(), "SACK permitted".to_owned()],
        };
        let stream = HandshakeStream {
            stream: 7,
            client: "10.0.0.1:40000".to_owned(),
            server: "10.0.0.2:5201".to_owned(),
            packets: vec![row.clone(), HandshakeRow { ack: None, window_bytes: None, ..row }],
            notes: vec!["The SYN has no window scale option.".to_owned()],
        };
        for style in styles() {
            assert_fits(&capture_handshakes(std::slice::from_ref(&stream), 3, &style), &style);
        }
    }
}
