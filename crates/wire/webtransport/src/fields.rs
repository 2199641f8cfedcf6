//! Field sections of QPACK without its dynamic table (RFC 9204).

use crate::huffman;

/// Entries of the static table (RFC 9204, appendix A).
const STATIC: u64 = 99;
const AUTHORITY: u64 = 0;
const PATH: u64 = 1;
const CONNECT: u64 = 15;
const HTTPS: u64 = 23;
const STATUS: u64 = 24;

/// The entries that a session's head has: number, name and value.
const ENTRIES: [(u64, &str, &str); 32] = [
    (AUTHORITY, ":authority", ""),
    (PATH, ":path", "/"),
    (CONNECT, ":method", "CONNECT"),
    (16, ":method", "DELETE"),
    (17, ":method", "GET"),
    (18, ":method", "HEAD"),
    (19, ":method", "OPTIONS"),
    (20, ":method", "POST"),
    (21, ":method", "PUT"),
    (22, ":scheme", "http"),
    (HTTPS, ":scheme", "https"),
    (STATUS, ":status", "103"),
    (25, ":status", "200"),
    (26, ":status", "304"),
    (27, ":status", "404"),
    (28, ":status", "503"),
    (63, ":status", "100"),
    (64, ":status", "204"),
    (65, ":status", "206"),
    (66, ":status", "302"),
    (67, ":status", "400"),
    (68, ":status", "403"),
    (69, ":status", "421"),
    (70, ":status", "425"),
    (71, ":status", "500"),
    (90, "origin", ""),
    (2, "age", "0"),
    (12, "referer", ""),
    (29, "accept", "*/*"),
    (31, "accept-encoding", "gzip, deflate, br"),
    (72, "accept-language", ""),
    (95, "user-agent", ""),
];

/// What a request or a response says of its session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// `CONNECT` of a session's request.
    pub method: Option<String>,
    /// `webtransport` of a session's request (RFC 9220).
    pub protocol: Option<String>,
    /// The server's name and port.
    pub authority: Option<String>,
    /// The path with its query.
    pub path: Option<String>,
    /// The page that asks, if any.
    pub origin: Option<String>,
    /// The status of a response.
    pub status: Option<u16>,
}

impl Head {
    /// Whether it is the request for a WebTransport session.
    #[must_use]
    pub fn asks_for_a_session(&self) -> bool {
        self.method.as_deref() == Some("CONNECT")
            && self.protocol.as_deref() == Some("webtransport")
    }

    /// Reads a field section; `None` if it is malformed, or refers to a dynamic table.
    pub(crate) fn read(section: &[u8]) -> Option<Self> {
        // A required insert count and a base of zero: nothing of a dynamic table.
        let mut rest = section.strip_prefix(&[0])?;
        prefixed(&mut rest, 7)?;
        let mut head = Head::default();
        while let Some(first) = rest.first().copied() {
            let (name, value) = match first {
                0xc0.. => {
                    let entry = entry(prefixed(&mut rest, 6)?)?;
                    (entry.0.to_owned(), entry.1.to_owned())
                }
                0x50..=0x5f | 0x70..=0x7f => {
                    let entry = entry(prefixed(&mut rest, 4)?)?;
                    (entry.0.to_owned(), string(&mut rest, 7)?)
                }
                0x20..=0x3f => (string(&mut rest, 3)?, string(&mut rest, 7)?),
                _ => return None,
            };
            head.take(&name, value)?;
        }
        Some(head)
    }

    /// Takes a field; `None` if it is there twice.
    fn take(&mut self, name: &str, value: String) -> Option<()> {
        let field = match name {
            ":method" => &mut self.method,
            ":protocol" => &mut self.protocol,
            ":authority" => &mut self.authority,
            ":path" => &mut self.path,
            "origin" => &mut self.origin,
            ":status" => {
                let status = value.parse().ok().filter(|status| (100..600).contains(status))?;
                return self.status.replace(status).is_none().then_some(());
            }
            _ => return Some(()),
        };
        field.replace(value).is_none().then_some(())
    }
}

/// The name and value of an entry of the static table; empty for those without meaning here.
fn entry(number: u64) -> Option<(&'static str, &'static str)> {
    let known = ENTRIES.iter().find(|(known, ..)| *known == number);
    let fields = known.map_or(("", ""), |(_, name, value)| (*name, *value));
    (number < STATIC).then_some(fields)
}

/// An integer in the low `bits` bits of a byte and what follows (RFC 9204, section 4.1.1).
fn prefixed(input: &mut &[u8], bits: u32) -> Option<u64> {
    let (first, mut rest) = input.split_first()?;
    let most = (1 << bits) - 1;
    let mut value = u64::from(first & most);
    if value == u64::from(most) {
        // Three bytes more are enough for any length here.
        let mut shift = 0;
        loop {
            let (byte, after) = rest.split_first()?;
            rest = after;
            value += u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            } else if shift > 14 {
                return None;
            }
        }
    }
    *input = rest;
    Some(value)
}

/// A string with its length in `bits` bits, and before these the mark of Huffman's code.
fn string(input: &mut &[u8], bits: u32) -> Option<String> {
    let is_coded = input.first()? >> bits & 1 == 1;
    let length = usize::try_from(prefixed(input, bits)?).ok()?;
    let (bytes, rest) = input.split_at_checked(length)?;
    *input = rest;
    let bytes = if is_coded { huffman::decode(bytes)? } else { bytes.to_vec() };
    String::from_utf8(bytes).ok()
}

/// Appends an integer below the marks of its first byte.
fn write_prefixed(output: &mut Vec<u8>, marks: u8, bits: u32, value: u64) {
    let most = (1u64 << bits) - 1;
    if value < most {
        return output.push(marks | value as u8);
    }
    output.push(marks | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        output.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    output.push(rest as u8);
}

fn write_value(output: &mut Vec<u8>, value: &str) {
    write_prefixed(output, 0, 7, value.len() as u64);
    output.extend_from_slice(value.as_bytes());
}

fn write_entry(output: &mut Vec<u8>, number: u64) {
    write_prefixed(output, 0xc0, 6, number);
}

fn write_named(output: &mut Vec<u8>, number: u64, value: &str) {
    write_prefixed(output, 0x50, 4, number);
    write_value(output, value);
}

pub(crate) fn request(authority: &str, path: &str) -> Vec<u8> {
    let mut section = vec![0, 0];
    write_entry(&mut section, CONNECT);
    write_prefixed(&mut section, 0x20, 3, ":protocol".len() as u64);
    section.extend_from_slice(b":protocol");
    write_value(&mut section, "webtransport");
    write_entry(&mut section, HTTPS);
    write_named(&mut section, AUTHORITY, authority);
    write_named(&mut section, PATH, path);
    section
}

pub(crate) fn response(status: u16) -> Vec<u8> {
    let mut section = vec![0, 0];
    let status = status.to_string();
    match ENTRIES.iter().find(|(_, name, value)| *name == ":status" && *value == status) {
        Some((number, ..)) => write_entry(&mut section, *number),
        None => write_named(&mut section, STATUS, &status),
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_may_send_is_read() {
        // `:path` coded, a literal name coded, an entry without meaning here (user-agent).
        let mut section = vec![0, 0];
        write_entry(&mut section, CONNECT);
        section.extend([0x51, 0x86, 0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]);
        section.extend([0x2f, 0x01, 0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f]);
        section.extend([0x89, 0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf]);
        write_named(&mut section, 95, "Mozilla");
        let head = Head::read(&section).unwrap();
        assert_eq!(head.path.as_deref(), Some("no-cache"));
        assert_eq!(head.method.as_deref(), Some("CONNECT"));
    }

    #[test]
    fn malformed_sections_are_refused() {
        for section in [
            &[][..],
            &[0],
            // A dynamic table's entries.
            &[1, 0, 0x80],
            &[0, 0, 0x80],
            &[0, 0, 0x40, 0],
            &[0, 0, 0x10],
            &[0, 0, 0x00, 0],
            // Beyond the static table, a length that does not end, a string that is cut off.
            &[0, 0, 0xff, 36],
            &[0, 0, 0x51, 0x7f, 0xff, 0xff, 0xff, 0xff, 1],
            &[0, 0, 0x51, 5, b'/'],
            // No text, and `:path` twice.
            &[0, 0, 0x51, 1, 0xff],
            &[0, 0, 0xc1, 0xc1],
        ] {
            assert_eq!(Head::read(section), None, "{section:?}");
        }
        assert_eq!(entry(98), Some(("", "")));
    }
}
