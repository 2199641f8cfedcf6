//! Sanitizes text from peers and files before it reaches a terminal, a log or a
//! page.
//!
//! All output passes [`shown`] or [`line()`] where it is written, and every JSON
//! document [`json`]; untrusted text passes [`clean`] before styles are applied, so
//! that the only escape sequences left are our own.

/// The text on one line, without control characters (C0, DEL, C1) and without the
/// invisible characters that reorder, join or hide their neighbours.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => Some(' '),
            _ if is_unsafe(c) => None,
            _ => Some(c),
        })
        .collect()
}

/// At most `most` characters of the cleaned text.
#[must_use]
pub fn excerpt(text: &str, most: usize) -> String {
    // Bounds the work when most characters are removed.
    let bounded: String = text.chars().take(most.saturating_mul(4)).collect();
    clean(&bounded).chars().take(most).collect()
}

/// A block of text, safe for a terminal or a log: line feeds and tabs are kept,
/// and with `colour` the SGR sequences that our own styles use.
#[must_use]
pub fn shown(text: &str, colour: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let sequence = if colour && c == '\u{1b}' { style_sequence(rest) } else { None };
        let taken = match sequence {
            Some(length) => {
                out.push_str(rest.get(..length).unwrap_or_default());
                length
            }
            None => {
                if matches!(c, '\n' | '\t') || !is_unsafe(c) {
                    out.push(c);
                }
                c.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}

/// The same for one line: line feeds become spaces, so that the text cannot forge
/// another line.
#[must_use]
pub fn line(text: &str, colour: bool) -> String {
    shown(text, colour).replace('\n', " ")
}

/// A JSON document (RFC 8259) with every such character escaped: same meaning, safe
/// for a terminal. JSON's white space is kept; the other characters occur only in
/// strings.
#[must_use]
pub fn json(document: &str) -> String {
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        if matches!(c, '\n' | '\t') || !is_unsafe(c) {
            out.push(c);
        } else {
            // Beyond the basic plane as two surrogates (section 7).
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// The length of an SGR sequence (ECMA-48, 8.3.117) at the beginning of the text
/// if our styles use each of its parameters: reset, bold, faint, underlined,
/// inverse, the 16 foreground colours. None of them hides text.
fn style_sequence(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    let (parameters, after) = parameters.split_at(end);
    let known = |parameter: &str| {
        parameter.is_empty()
            || matches!(parameter.parse(), Ok(0u8 | 1 | 2 | 4 | 7 | 30..=37 | 90..=97))
    };
    (after.starts_with('m') && parameters.split(';').all(known)).then_some(end + 3)
}

fn is_unsafe(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

/// Zero-width joiners, direction marks and overrides, line and paragraph
/// separators, variation selectors, tags.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// The nearest ASCII text, for terminals without Unicode.
pub(crate) fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => out.push(c),
            '\u{A0}' | '\u{2009}' | '\u{202F}' => out.push(' '),
            '×' => out.push('x'),
            '→' => out.push_str("->"),
            '←' => out.push_str("<-"),
            'µ' | 'μ' => out.push('u'),
            '…' => out.push_str("..."),
            '–' | '—' | '−' | '‑' => out.push('-'),
            '·' | '•' => out.push('*'),
            '≤' => out.push_str("<="),
            '≥' => out.push_str(">="),
            '≈' => out.push('~'),
            '√' => out.push_str("sqrt"),
            '²' => out.push_str("^2"),
            '‘' | '’' => out.push('\''),
            '“' | '”' => out.push('"'),
            _ => out.push('?'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_removed() {
        assert_eq!(clean("a\u{1b}[31mb\u{9b}2Jc\nd\u{202e}e"), "a[31mb2Jc de");
    }

    #[test]
    fn ascii_keeps_the_meaning() {
        assert_eq!(ascii("64 KiB × 8 / 250 µs → 2 Mbit/s…"), "64 KiB x 8 / 250 us -> 2 Mbit/s...");
    }

    #[test]
    fn only_our_own_styles_pass() {
        let styled = "\u{1b}[1m\u{1b}[36mgood\u{1b}[0m\n\tnext";
        assert_eq!(shown(styled, true), styled);
        assert_eq!(shown(styled, false), "[1m[36mgood[0m\n\tnext");
        // Conceal, clear, a title, a colour of 256, an unfinished one.
        for sequence in ["[8m", "[2J", "]0;x\u{7}", "[38;5;1m", "[1", "[1;2", "", "[", "c"] {
            let text = format!("\u{1b}{sequence}");
            assert!(!shown(&text, true).contains(char::is_control), "{sequence}");
        }
        assert_eq!(line("a\nb\r\u{85}c", true), "a bc");
    }

    #[test]
    fn an_excerpt_is_short_and_clean() {
        assert_eq!(excerpt("ab\u{9b}cdef", 4), "abcd");
        assert!(excerpt(&"\u{1b}".repeat(1000), 10).is_empty());
    }

    #[test]
    fn escaped_json_has_the_same_meaning() {
        let hostile: String =
            ('\0'..='\u{a0}').chain(['\u{2028}', '\u{202e}', '\u{2066}', '\u{e0041}']).collect();
        let value = serde_json::json!({ "text": hostile, "list": [1, "\u{9b}2J"] });
        for document in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let safe = json(&document);
            assert!(safe.chars().all(|c| c == '\n' || !is_unsafe(c)), "{safe}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
        }
    }
}
