//! The expert information of a capture: a row for each kind.

use super::{
    Style,
    line::{Line, block, wrap},
    style,
};
use packet_fields::expert::{ExpertKind, Severity};

/// A kind of item, how many there are, and in which packet the first of them is.
#[derive(Debug, Clone, Copy)]
pub struct ExpertRow {
    /// The kind.
    pub kind: ExpertKind,
    /// Items of that kind.
    pub count: u64,
    /// Number of the first packet.
    pub first: u64,
}

/// The rows, in the order given.
#[must_use]
pub fn capture_expert(rows: &[ExpertRow], style: &Style) -> String {
    const GROUP: usize = 10;
    const PROTOCOL: usize = 21;
    const COUNT: usize = 38;
    const FIRST: usize = 46;
    const MESSAGE: usize = FIRST + 2;
    if rows.is_empty() {
        return block(vec![Line::new(style).put(style::PLAIN, "Nothing stands out.")]);
    }
    let line = |severity: (anstyle::Style, &str), texts: [&str; 4], text: anstyle::Style| {
        let [group, protocol, count, first] = texts;
        let line = Line::new(style).put(severity.0, severity.1).to(GROUP).put(text, group);
        let line = line.to(PROTOCOL).put(text, protocol).right(text, count, COUNT);
        line.right(text, first, FIRST).to(MESSAGE)
    };
    let titles = ["Group", "Protocol", "Count", "First"];
    let title = line((style::DIM, "Severity"), titles, style::DIM);
    let mut lines = vec![title.put(style::DIM, "Message")];
    let room = style.text_width().saturating_sub(MESSAGE).max(20);
    for ExpertRow { kind, count, first } in rows {
        let strong = match kind.severity {
            Severity::Error | Severity::Warning => style::STRONG,
            Severity::Note | Severity::Chat => style::PLAIN,
        };
        let (count, first) = (count.to_string(), first.to_string());
        let texts = [kind.group.name(), kind.protocol, &count, &first];
        let mut row = line((strong, kind.severity.name()), texts, style::PLAIN);
        for part in wrap(style, kind.summary, room) {
            lines.push(row.put(style::PLAIN, &part));
            row = Line::new(style).to(MESSAGE);
        }
    }
    block(lines)
}
