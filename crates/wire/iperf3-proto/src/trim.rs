//! Shortens the server's output in results that are longer than a client
//! keeps, while they arrive, so that the figures around it survive.
//!
//! A scanner of JSON tokens, not a parser: it finds the values of
//! `server_output_text` and `server_output_json` at the top level and leaves
//! validation to the parser that reads the kept text.

/// Appended to a truncated text.
const CUT: &[u8] = b"\\n[truncated by longhaul]\"";
/// The members that may be truncated.
const OUTPUTS: [&[u8]; 2] = [b"server_output_text", b"server_output_json"];
/// Maximum key length compared: longer than any of [`OUTPUTS`].
const KEY: usize = 32;

/// The state of the scanner.
#[derive(Debug)]
pub(crate) struct Trim {
    /// Maximum bytes kept of one output.
    most: usize,
    /// Arrays and objects that are open.
    depth: u64,
    text: Option<Text>,
    /// Whether a string at the top level would be a key.
    key_due: bool,
    /// The last key at the top level.
    key: Vec<u8>,
    output: Option<Output>,
    /// Bytes dropped.
    cut: u64,
}

/// Inside a string.
#[derive(Debug, Clone, Copy, Default)]
struct Text {
    is_key: bool,
    escaped: bool,
    /// Hexadecimal digits of a `\u` escape still to come.
    digits: u8,
}

/// Inside a value that may be truncated.
#[derive(Debug, Clone, Copy)]
struct Output {
    /// Where it begins in what is kept.
    start: usize,
    /// Whether its first byte is still to come.
    blank: bool,
    /// Where a string can be cut without cutting a character: `None` in a value
    /// that is no string.
    safe: Option<usize>,
    dropping: bool,
}

impl Trim {
    /// Keeps at most `most` bytes of each output.
    pub(crate) fn new(most: usize) -> Self {
        Trim { most, depth: 0, text: None, key_due: false, key: Vec::new(), output: None, cut: 0 }
    }

    /// Bytes dropped so far.
    pub(crate) fn cut(&self) -> u64 {
        self.cut
    }

    /// Adds what is to be kept of the next byte to `kept`.
    pub(crate) fn push(&mut self, byte: u8, kept: &mut Vec<u8>) {
        if let Some(text) = self.text {
            self.in_text(text, byte, kept);
        } else {
            self.between(byte, kept);
        }
    }

    fn in_text(&mut self, mut text: Text, byte: u8, kept: &mut Vec<u8>) {
        let mut whole = byte.is_ascii();
        let mut ends = false;
        if text.digits > 0 {
            text.digits -= 1;
            // Half of a surrogate pair may have ended here.
            whole = false;
        } else if text.escaped {
            text.escaped = false;
            if byte == b'u' {
                text.digits = 4;
                whole = false;
            }
        } else if byte == b'\\' {
            text.escaped = true;
            whole = false;
        } else if byte == b'"' {
            ends = true;
        }
        if text.is_key && !ends && self.key.len() < KEY {
            self.key.push(byte);
        }
        self.text = (!ends).then_some(text);
        self.keep(byte, whole && !ends, kept);
    }

    fn between(&mut self, byte: u8, kept: &mut Vec<u8>) {
        match byte {
            b'"' => {
                let is_key = self.depth == 1 && self.key_due;
                if is_key {
                    self.key.clear();
                }
                self.text = Some(Text { is_key, ..Text::default() });
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.key_due = self.key_due || (self.depth == 1 && byte == b'{');
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.output = None;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b',' if self.depth == 1 => {
                self.output = None;
                self.key_due = true;
            }
            b':' if self.depth == 1 && self.key_due => {
                self.key_due = false;
                kept.push(byte);
                if OUTPUTS.contains(&self.key.as_slice()) {
                    let start = kept.len();
                    self.output = Some(Output { start, blank: true, safe: None, dropping: false });
                }
                return;
            }
            _ => {}
        }
        self.keep(byte, self.text.is_some(), kept);
    }

    /// Keeps a byte or, within an output that is too long, drops it; `whole`
    /// where a string could end behind it.
    fn keep(&mut self, byte: u8, whole: bool, kept: &mut Vec<u8>) {
        let Some(output) = &mut self.output else { return kept.push(byte) };
        if output.dropping {
            self.cut += 1;
            return;
        }
        kept.push(byte);
        let is_text = byte == b'"' && output.blank;
        output.blank = output.blank && byte.is_ascii_whitespace();
        if is_text || (whole && output.safe.is_some()) {
            output.safe = Some(kept.len());
        }
        if kept.len() - output.start > self.most {
            let before = kept.len();
            match output.safe {
                Some(safe) => {
                    kept.truncate(safe);
                    self.cut += (before - safe) as u64;
                    kept.extend_from_slice(CUT);
                }
                None => {
                    kept.truncate(output.start);
                    self.cut += (before - output.start) as u64;
                    kept.extend_from_slice(b"null");
                }
            }
            output.dropping = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn trimmed(text: &str, most: usize) -> (Value, u64) {
        let (mut trim, mut kept) = (Trim::new(most), Vec::new());
        text.bytes().for_each(|byte| trim.push(byte, &mut kept));
        let kept = String::from_utf8(kept).unwrap();
        (serde_json::from_str(&kept).unwrap_or_else(|e| panic!("{e}: {kept}")), trim.cut())
    }

    #[test]
    fn a_long_text_is_cut_and_what_surrounds_it_stays() {
        let message = json!({"a": [1, {"server_output_text": "x".repeat(50)}],
            "server_output_text": "y\n".repeat(500), "streams": [{"id": 1}]});
        let (value, cut) = trimmed(&message.to_string(), 100);
        let text = value["server_output_text"].as_str().unwrap();
        assert!(
            text.starts_with("y\ny\n") && text.ends_with("\n[truncated by longhaul]"),
            "{text}"
        );
        assert!(text.len() < 130 && cut > 800, "{cut}");
        assert_eq!((&value["a"], &value["streams"]), (&message["a"], &message["streams"]));
        assert_eq!(trimmed(&message.to_string(), 5000), (message, 0));
    }

    #[test]
    fn a_long_document_is_left_out() {
        let message = json!({"server_output_json": {"a": "}],".repeat(50), "b": [[1], 2]}, "z": 1});
        let (value, cut) = trimmed(&message.to_string(), 100);
        assert_eq!(value, json!({"server_output_json": null, "z": 1}));
        assert!(cut > 100, "{cut}");
        // A text where a document belongs, and the other way round.
        let crossed =
            json!({"server_output_json": "x".repeat(200), "server_output_text": vec![7; 200]});
        let (value, _) = trimmed(&crossed.to_string(), 100);
        assert!(value["server_output_json"].is_string() && value["server_output_text"].is_null());
    }

    proptest! {
        #[test]
        fn any_text_is_cut_between_characters(text in "(\\PC|\n|\"|\\\\|\u{1}|\u{1f600}){0,60}", most in 1usize..60,
                                              ascii in any::<bool>()) {
            let message = json!({"server_output_text": text, "n": 7});
            let mut json = message.to_string();
            if ascii {
                // As cJSON escapes nothing but others do: all of it, in UTF-16.
                json = json.chars().map(|c| if c.is_ascii() { c.to_string() } else {
                    c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
                }).collect();
            }
            let (value, cut) = trimmed(&json, most);
            prop_assert_eq!(&value["n"], &json!(7));
            let kept = value["server_output_text"].as_str().unwrap();
            let kept = kept.strip_suffix("\n[truncated by longhaul]").filter(|_| cut > 0).unwrap_or(kept);
            prop_assert!(text.starts_with(kept), "{:?} of {:?}", kept, text);
        }

        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let (mut trim, mut kept) = (Trim::new(20), Vec::new());
            bytes.iter().for_each(|byte| trim.push(*byte, &mut kept));
            prop_assert!(kept.len() as u64 + trim.cut() >= bytes.len() as u64);
        }
    }
}
