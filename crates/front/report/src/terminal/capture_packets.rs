//! Packets of a capture: a line for each as in a packet list, or one of them with all its
//! fields and bytes.

use super::line::{Line, block, columns, wrap};
use super::{Style, style};
use crate::untrusted;
use capture::dissect::Protocol;
use core::fmt::Write;
use packet_fields::detail::LayerDetail;
use packet_fields::field::Tested;
use packet_fields::{Field, Summary};

/// A packet in the list.
#[derive(Debug, Clone, Copy)]
pub struct PacketRow<'a> {
    /// Its number.
    pub number: u64,
    /// Time since the first packet, in ns.
    pub time_ns: i64,
    /// Bytes on the wire.
    pub length: u32,
    /// The other columns.
    pub summary: &'a Summary,
}

/// A packet list: columns grow with what is in them.
#[derive(Debug, Clone)]
pub struct PacketTable {
    style: Style,
    addresses: [usize; 2],
    protocol: usize,
}

/// Columns of the number and of the time.
const NUMBER: usize = 6;
const TIME: usize = 11;
/// Columns before a text that has lines of its own.
const INDENT: usize = 9;

impl PacketTable {
    /// An empty list. Lines longer than the style's width are wrapped.
    #[must_use]
    pub fn new(style: &Style) -> Self {
        PacketTable { style: *style, addresses: [11, 11], protocol: 5 }
    }

    /// The names of the columns.
    #[must_use]
    pub fn header(&self) -> String {
        let [source, destination] = self.addresses;
        let head = format!(
            "{:>NUMBER$} {:>TIME$}  {:<source$}  {:<destination$}  {:<width$} {:>5}  info",
            "number",
            "time s",
            "source",
            "destination",
            "proto",
            "bytes",
            width = self.protocol,
        );
        block(vec![Line::new(&self.style).put(style::DIM, &head)])
    }

    /// Appends the line of a packet to `out`.
    pub fn row(&mut self, row: &PacketRow<'_>, out: &mut String) {
        let summary = row.summary;
        for (width, text) in self.addresses.iter_mut().zip([&summary.source, &summary.destination])
        {
            *width = text.len().max(*width);
        }
        self.protocol = summary.protocol.len().max(self.protocol);
        let [source, destination] = self.addresses;
        let start = out.len();
        let sign = if row.time_ns < 0 { "-" } else { "" };
        let micros = row.time_ns.unsigned_abs() / 1000;
        let (seconds, micros) = (format!("{sign}{}", micros / 1_000_000), micros % 1_000_000);
        // Formatting into a string cannot fail.
        let _ = write!(
            out,
            "{:>NUMBER$} {seconds:>before$}.{micros:06}  {:<source$}  {:<destination$}  {:<width$} \
             {:>5}",
            row.number,
            summary.source,
            summary.destination,
            summary.protocol,
            row.length,
            before = TIME - 7,
            width = self.protocol,
        );
        let used = out.len() - start;
        self.info(summary, used, out);
        out.push('\n');
    }

    /// Marks and info: on the same line where they fit, on lines of their own where not.
    fn info(&self, summary: &Summary, used: usize, out: &mut String) {
        let (marks, info) = (summary.marks.as_str(), summary.info.as_str());
        if info.is_empty() && marks.is_empty() {
            return;
        }
        if used + 2 + columns(marks) + columns(info) < self.style.width {
            out.push_str("  ");
            self.put(marks, style::WARN, out);
            self.put(info, style::PLAIN, out);
            return;
        }
        let width = self.style.width.saturating_sub(INDENT).max(1);
        let text = format!("{marks}{info}");
        for line in wrap(&self.style, &text, width) {
            let _ = write!(out, "\n{:INDENT$}", "");
            // Marks are in brackets at the front; a wrapped one is plain from there on.
            match line.strip_prefix(marks).filter(|_| !marks.is_empty()) {
                Some(rest) => {
                    self.put(marks, style::WARN, out);
                    self.put(rest, style::PLAIN, out);
                }
                None => self.put(&line, style::PLAIN, out),
            }
        }
    }

    fn put(&self, text: &str, text_style: anstyle::Style, out: &mut String) {
        if text.is_empty() {
            return;
        }
        let coloured = self.style.colour && text_style != style::PLAIN;
        if coloured {
            let _ = write!(out, "{text_style}");
        }
        if self.style.unicode {
            out.push_str(text);
        } else {
            out.push_str(&untrusted::ascii(text));
        }
        if coloured {
            let _ = write!(out, "{text_style:#}");
        }
    }
}

/// A packet's layers with their fields, and its bytes. `reassembled` are those of the
/// packet that its fragments make.
#[must_use]
pub fn packet_detail(
    layers: &[LayerDetail],
    frame: &[u8],
    reassembled: Option<&[u8]>,
    style: &Style,
) -> String {
    let names = layers.iter().flat_map(|layer| &layer.fields);
    let widest = names.map(|it| it.field.description().name.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for layer in layers {
        let name = if layer.protocol == Protocol::None { "frame" } else { layer.protocol.name() };
        let of = if layer.is_reassembled { " of the reassembled packet" } else { "" };
        let last = (layer.start + layer.length).saturating_sub(1);
        let bytes = match layer.length {
            0 => "no bytes".to_owned(),
            1 => format!("byte {}{of}", layer.start),
            _ => format!("bytes {} to {last}{of}", layer.start),
        };
        let line = Line::new(style).put(style::STRONG, name).put(style::DIM, &format!("  {bytes}"));
        lines.push(line);
        for it in &layer.fields {
            let description = it.field.description();
            let line = Line::new(style).to(2).put(style::PLAIN, description.name).to(widest + 4);
            let line = line.put(style::PLAIN, &it.text);
            let line = if it.text.is_empty() { line } else { line.put(style::PLAIN, "  ") };
            lines.push(line.put(style::DIM, description.label));
        }
    }
    let mut text = block(lines);
    text.push('\n');
    hex_dump(&mut text, frame);
    if let Some(reassembled) = reassembled {
        text += "\nreassembled\n";
        hex_dump(&mut text, reassembled);
    }
    text
}

/// Bytes of a line of a hex dump.
const DUMPED: usize = 16;

/// Offset, bytes, and what of them is ASCII: 73 columns.
fn hex_dump(out: &mut String, bytes: &[u8]) {
    for (line, chunk) in bytes.chunks(DUMPED).enumerate() {
        let _ = write!(out, "{:04x}  ", line * DUMPED);
        for place in 0..DUMPED {
            let gap = if place == DUMPED / 2 { " " } else { "" };
            let _ = match chunk.get(place) {
                Some(byte) => write!(out, "{gap}{byte:02x} "),
                None => write!(out, "{gap}   "),
            };
        }
        out.push(' ');
        let shown = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { *byte } else { b'.' };
        let text: String = chunk.iter().map(|byte| char::from(shown(byte))).collect();
        out.push_str(text.trim_end());
        out.push('\n');
    }
}

/// The fields that filters know: name, kind, meaning; and the protocols.
#[must_use]
pub fn field_list(style: &Style) -> String {
    let descriptions = || Field::ALL.iter().map(|field| field.description());
    let width = descriptions().map(|it| it.name.len()).max().unwrap_or(0) + 2;
    let kinds = descriptions().map(|it| it.kind.name().len()).max().unwrap_or(0) + 2;
    let mut lines = Vec::new();
    for it in descriptions() {
        let line = Line::new(style).put(style::STRONG, it.name).to(width);
        lines.push(
            line.put(style::DIM, it.kind.name()).to(width + kinds).put(style::PLAIN, it.label),
        );
    }
    for (name, protocol) in packet_fields::field::protocols() {
        let meaning = match protocol {
            Tested::Frame => "every packet".to_owned(),
            Tested::Header(_) => "the packet has it".to_owned(),
            Tested::Application(it) => format!("{}: {}", it.label(), it.numbers()),
            Tested::Expert => "the packet has expert information".to_owned(),
        };
        let line = Line::new(style).put(style::STRONG, name).to(width);
        lines.push(line.put(style::DIM, "protocol").to(width + kinds).put(style::PLAIN, &meaning));
    }
    block(lines)
}
