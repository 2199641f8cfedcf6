//! Parses the bytes that a terminal sends into keys.

/// A key with a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Enter,
    Escape,
    Backspace,
    Char(char),
}

/// Parses the result of one read, which contains whole escape sequences; unknown ones
/// are ignored.
pub(super) fn parse(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.as_ref();
    let mut keys = Vec::new();
    while let Some(first) = rest.chars().next() {
        if let Some(sequence) = rest.strip_prefix("\x1b[").or_else(|| rest.strip_prefix("\x1bO")) {
            // Parameters, then one letter or tilde (ECMA-48, section 5.4).
            let end = sequence.find(|c: char| ('@'..='~').contains(&c)).unwrap_or(sequence.len());
            let (parameters, after) = sequence.split_at(end);
            let mut after = after.chars();
            match (parameters, after.next()) {
                (_, Some('A')) => keys.push(Key::Up),
                (_, Some('B')) => keys.push(Key::Down),
                ("5", Some('~')) => keys.push(Key::PageUp),
                ("6", Some('~')) => keys.push(Key::PageDown),
                _ => {}
            }
            rest = after.as_str();
            continue;
        }
        match first {
            '\r' | '\n' => keys.push(Key::Enter),
            '\x1b' => keys.push(Key::Escape),
            '\x7f' | '\x08' => keys.push(Key::Backspace),
            c if !c.is_control() && c != '\u{fffd}' => keys.push(Key::Char(c)),
            _ => {}
        }
        rest = &rest[first.len_utf8()..];
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_parsed_as_keys() {
        use Key::{Backspace, Char, Down, Enter, Escape, PageDown, PageUp, Up};
        for (bytes, keys) in [
            (&b"q"[..], vec![Char('q')]),
            (b"\x1b", vec![Escape]),
            (b"\x1b[A\x1b[B\x1bOA", vec![Up, Down, Up]),
            (b"\x1b[5~\x1b[6~\x1b[3~x", vec![PageUp, PageDown, Char('x')]),
            (b"\x1b[1;5Bj", vec![Down, Char('j')]),
            (b"ab\x7f\r", vec![Char('a'), Char('b'), Backspace, Enter]),
            ("é".as_bytes(), vec![Char('é')]),
            (b"\x1b[", vec![]),
            (b"\xff\x1a\x00", vec![]),
        ] {
            assert_eq!(parse(bytes), keys, "{bytes:?}");
        }
    }
}
