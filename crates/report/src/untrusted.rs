//! Text from peers and files, made harmless.

/// The text on one line, without what a terminal or a browser would obey
/// rather than show: control characters, escape sequences' first byte, and
/// the invisible characters that reorder or join their neighbours.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => Some(' '),
            _ if c.is_control() || is_invisible(c) => None,
            _ => Some(c),
        })
        .collect()
}

/// Zero-width joiners, direction marks and overrides, variation selectors, tags.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// The nearest ASCII, for terminals that show nothing else.
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
    fn escape_sequences_lose_their_power() {
        assert_eq!(clean("a\u{1b}[31mb\u{9b}2Jc\nd\u{202e}e"), "a[31mb2Jc de");
    }

    #[test]
    fn ascii_keeps_the_sense() {
        assert_eq!(ascii("64 KiB × 8 / 250 µs → 2 Mbit/s…"), "64 KiB x 8 / 250 us -> 2 Mbit/s...");
    }
}
