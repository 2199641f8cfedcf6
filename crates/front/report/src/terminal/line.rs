//! Lines of known width. Escape sequences are written and lines truncated only here.

use super::{Style, style};
use crate::untrusted;
use unicode_width::UnicodeWidthChar;

/// Width of a text in columns.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// A line being built.
#[derive(Debug, Clone)]
pub(super) struct Line {
    style: Style,
    spans: Vec<(anstyle::Style, String)>,
    used: usize,
}

impl Line {
    pub(super) fn new(style: &Style) -> Self {
        Line { style: *style, spans: Vec::new(), used: 0 }
    }

    /// The terminal it is written for.
    pub(super) fn style(&self) -> &Style {
        &self.style
    }

    /// Columns used so far.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Appends text, sanitized and, without Unicode, in ASCII.
    pub(super) fn put(mut self, text_style: anstyle::Style, text: &str) -> Self {
        let text = shown(&self.style, text);
        self.used += columns(&text);
        self.spans.push((text_style, text));
        self
    }

    /// Pads with spaces up to a column.
    pub(super) fn to(mut self, column: usize) -> Self {
        let missing = column.saturating_sub(self.used);
        self.used += missing;
        self.spans.push((style::PLAIN, " ".repeat(missing)));
        self
    }

    /// Text that ends at a column; if it is too long, it follows after one space.
    pub(super) fn right(self, text_style: anstyle::Style, text: &str, column: usize) -> Self {
        let wide = columns(&shown(&self.style, text));
        let least = if self.used == 0 { 0 } else { self.used + 1 };
        let start = column.saturating_sub(wide).max(least);
        self.to(start).put(text_style, text)
    }

    /// The text, truncated to the terminal's width.
    pub(super) fn finish(self) -> String {
        let limit = self.style.width.max(1);
        let cut = self.used > limit;
        let mut room = if cut { limit - 1 } else { limit };
        let mut plain: Vec<(anstyle::Style, String)> = Vec::new();
        for (text_style, text) in self.spans {
            let mut kept = String::new();
            for c in text.chars() {
                let wide = c.width().unwrap_or(0);
                if wide > room {
                    room = 0;
                    break;
                }
                room -= wide;
                kept.push(c);
            }
            plain.push((text_style, kept));
        }
        if cut {
            let mark = if self.style.unicode { "…" } else { ">" };
            plain.push((style::DIM, mark.to_owned()));
        }
        while let Some((_, last)) = plain.last_mut() {
            last.truncate(last.trim_end().len());
            if !last.is_empty() {
                break;
            }
            plain.pop();
        }
        let mut out = String::new();
        for (text_style, text) in plain {
            if self.style.colour && text_style != style::PLAIN && !text.trim().is_empty() {
                out.push_str(&format!("{text_style}{text}{text_style:#}"));
            } else {
                out.push_str(&text);
            }
        }
        out
    }
}

/// The text as the terminal shows it.
pub(super) fn shown(style: &Style, text: &str) -> String {
    let text = untrusted::clean(text);
    if style.unicode { text } else { untrusted::ascii(&text) }
}

/// Lines as one block.
pub(super) fn block(lines: Vec<Line>) -> String {
    lines.into_iter().map(|line| line.finish() + "\n").collect()
}

/// Wraps text at `width` columns, between words but not between a number and its
/// unit.
pub(super) fn wrap(style: &Style, text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in words(&shown(style, text)) {
        if used > 0 && used + 1 + columns(&word) > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > width && used > 0 {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
                used = 0;
            }
            line.push(c);
            used += wide;
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// The words; `2.16 MB` is one.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(last) if is_number(last) && is_unit(word) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

fn is_number(word: &str) -> bool {
    let word = word.trim_start_matches('(');
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',')
}

fn is_unit(word: &str) -> bool {
    let unit = word.trim_end_matches([')', ',', ';', ':', '.']);
    unit.ends_with("bit/s")
        || matches!(unit, "%" | "s" | "ms" | "us" | "µs" | "ns" | "B" | "bytes")
        || matches!(unit, "kB" | "MB" | "GB" | "TB" | "KiB" | "MiB" | "GiB")
}

/// A wrapped text at `column`, with a label before its first line.
pub(super) fn labelled(
    style: &Style,
    indent: usize,
    label: (anstyle::Style, &str),
    column: usize,
    text: (anstyle::Style, &str),
) -> Vec<Line> {
    let width = style.text_width().saturating_sub(column);
    // Too narrow next to the label: wrap below it.
    let (column, width) = if width < 16 {
        (indent, style.text_width().saturating_sub(indent))
    } else {
        (column, width)
    };
    let mut lines = Vec::new();
    let mut first = Line::new(style).to(indent).put(label.0, label.1);
    if first.used() >= column && !label.1.is_empty() {
        lines.push(first);
        first = Line::new(style);
    }
    for part in wrap(style, text.1, width) {
        lines.push(first.to(column).put(text.0, &part));
        first = Line::new(style);
    }
    lines
}

/// Notes at the end of a report, after an empty line; nothing without any.
pub(super) fn notes(style: &Style, column: usize, notes: &[String]) -> Vec<Line> {
    let gap = (!notes.is_empty()).then(|| Line::new(style));
    let label = (style::STRONG, "Note");
    let each =
        notes.iter().flat_map(|note| labelled(style, 0, label, column, (style::PLAIN, note)));
    gap.into_iter().chain(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { colour: false, width: 10, unicode: true };

    #[test]
    fn a_long_line_is_truncated_with_a_mark() {
        assert_eq!(Line::new(&STYLE).put(style::PLAIN, "0123456789").finish(), "0123456789");
        assert_eq!(Line::new(&STYLE).put(style::PLAIN, "0123456789a").finish(), "012345678…");
        assert_eq!(Line::new(&STYLE).put(style::PLAIN, "ab   ").to(9).finish(), "ab");
    }

    #[test]
    fn words_stay_whole_where_they_fit() {
        assert_eq!(wrap(&STYLE, "the window held it", 10), ["the window", "held it"]);
        assert_eq!(wrap(&STYLE, "0123456789abc d", 10), ["0123456789", "abc d"]);
        assert_eq!(wrap(&STYLE, "", 10), [""]);
    }
}
