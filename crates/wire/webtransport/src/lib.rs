//! The part of HTTP/3 and WebTransport that a session of datagrams takes (RFC 9114, RFC 9297,
//! draft-ietf-webtrans-http3), for both ends, without I/O.
//!
//! A QUIC connection carries one session. Each end opens a control stream with
//! [`control_stream`]; the client sends [`request`] on a bidirectional stream, which the server
//! reads with [`HeadReader`] and answers by [`response`]. Datagrams then begin with the session's
//! number ([`datagram_prefix`]). The dynamic table of QPACK is not offered, so none is needed.

mod fields;
mod huffman;
mod varint;

pub use fields::Head;

use thiserror::Error;

/// The protocol's name in ALPN.
pub const ALPN: &[u8] = b"h3";
/// Most bytes of a request's or a response's head, with what precedes it on the stream.
pub const MAX_HEAD: usize = 16 << 10;
/// Longest beginning of a datagram.
pub const MAX_PREFIX: usize = 8;

/// Frame types (RFC 9114, section 7.2).
const DATA: u64 = 0x00;
const HEADERS: u64 = 0x01;
const SETTINGS: u64 = 0x04;
/// The type of a control stream (RFC 9114, section 6.2.1).
const CONTROL: u64 = 0x00;

/// What an end can do: no dynamic table; extended CONNECT (RFC 9220); datagrams, as in RFC 9297 and
/// in its draft 4; one WebTransport session, as in drafts 2 and 7.
const OFFERED: [(u64, u64); 7] = [
    (0x01, 0),
    (0x07, 0),
    (0x08, 1),
    (0x33, 1),
    (0xff_d277, 1),
    (0x2b60_3742, 1),
    (0xc671_706a, 1),
];

/// The reason a peer's bytes are no head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeadError {
    /// The head is longer than [`MAX_HEAD`].
    #[error("the head is too long")]
    Long,
    /// Another frame comes first.
    #[error("data comes before the head")]
    Unexpected,
    /// The field section cannot be decoded.
    #[error("the head is malformed")]
    Malformed,
}

/// The bytes with which each end begins its control stream.
#[must_use]
pub fn control_stream() -> Vec<u8> {
    let mut settings = Vec::new();
    for (name, value) in OFFERED {
        varint::write(&mut settings, name);
        varint::write(&mut settings, value);
    }
    let mut stream = Vec::new();
    varint::write(&mut stream, CONTROL);
    frame(&mut stream, SETTINGS, &settings);
    stream
}

/// A client's request for a session.
#[must_use]
pub fn request(authority: &str, path: &str) -> Vec<u8> {
    let mut stream = Vec::new();
    frame(&mut stream, HEADERS, &fields::request(authority, path));
    stream
}

/// A server's answer.
#[must_use]
pub fn response(status: u16) -> Vec<u8> {
    let mut stream = Vec::new();
    frame(&mut stream, HEADERS, &fields::response(status));
    stream
}

fn frame(stream: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    varint::write(stream, kind);
    varint::write(stream, payload.len() as u64);
    stream.extend_from_slice(payload);
}

/// Reads the head of a request or a response from the bytes of its stream.
#[derive(Debug, Default)]
pub struct HeadReader {
    /// Not decoded yet.
    received: Vec<u8>,
    /// Bytes of the stream so far.
    taken: usize,
}

impl HeadReader {
    /// Takes bytes; the head once it is complete.
    ///
    /// # Errors
    /// What came is no head, or is too long.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<Head>, HeadError> {
        self.received.extend_from_slice(bytes);
        self.taken = self.taken.saturating_add(bytes.len());
        let mut rest = &self.received[..];
        while let Some((kind, payload)) = next_frame(&mut rest)? {
            match kind {
                HEADERS => return Head::read(payload).ok_or(HeadError::Malformed).map(Some),
                DATA | SETTINGS => return Err(HeadError::Unexpected),
                // Types that are unknown are ignored (RFC 9114, section 9).
                _ => {}
            }
        }
        let left = rest.len();
        self.received.drain(..self.received.len() - left);
        if self.taken >= MAX_HEAD { Err(HeadError::Long) } else { Ok(None) }
    }
}

/// Takes a whole frame off the front; `None` if it is not complete yet.
fn next_frame<'a>(rest: &mut &'a [u8]) -> Result<Option<(u64, &'a [u8])>, HeadError> {
    let mut input = *rest;
    let (Some(kind), Some(length)) = (varint::read(&mut input), varint::read(&mut input)) else {
        return Ok(None);
    };
    let length = usize::try_from(length).ok().filter(|length| *length < MAX_HEAD);
    let length = length.ok_or(HeadError::Long)?;
    let Some((payload, after)) = input.split_at_checked(length) else { return Ok(None) };
    *rest = after;
    Ok(Some((kind, payload)))
}

/// The beginning of each datagram of the session whose request is on the stream of this number
/// (RFC 9297, section 2.1).
#[must_use]
pub fn datagram_prefix(stream: u64) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(MAX_PREFIX);
    varint::write(&mut prefix, stream / 4);
    prefix
}

/// The payload of a datagram of that session; `None` if it is of another one.
#[must_use]
pub fn datagram_payload(stream: u64, mut datagram: &[u8]) -> Option<&[u8]> {
    let quarter = varint::read(&mut datagram)?;
    (quarter == stream / 4).then_some(datagram)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_in_any_parts() {
        let bytes = [&[0x21, 3, 1, 2, 3][..], &request("speed.example:443", "/api/x?y=1")].concat();
        for part in 1..=bytes.len() {
            let mut reader = HeadReader::default();
            let mut heads = bytes.chunks(part).map(|part| reader.push(part).unwrap());
            let head = heads.find_map(|head| head).unwrap();
            assert!(head.asks_for_a_session());
            assert_eq!(head.path.as_deref(), Some("/api/x?y=1"));
            assert_eq!(head.authority.as_deref(), Some("speed.example:443"));
        }
    }

    #[test]
    fn answers_have_a_status() {
        for status in [200, 404, 409, 429] {
            let head = HeadReader::default().push(&response(status)).unwrap().unwrap();
            assert_eq!((head.status, head.asks_for_a_session()), (Some(status), false));
        }
    }

    #[test]
    fn what_is_no_head_is_refused() {
        let read = |bytes: &[u8]| HeadReader::default().push(bytes);
        assert_eq!(read(&[0x00, 1, 7]), Err(HeadError::Unexpected));
        assert_eq!(read(&[0x01, 0x80, 0, 0x40, 0]), Err(HeadError::Long));
        assert_eq!(read(&[0x01, 2, 0xff, 0xff]), Err(HeadError::Malformed));
        let mut reader = HeadReader::default();
        let endless = (0..MAX_HEAD).find_map(|_| reader.push(&[0x21, 0]).err());
        assert_eq!(endless, Some(HeadError::Long));
    }

    #[test]
    fn datagrams_belong_to_a_session() {
        let datagram = [datagram_prefix(400), vec![1, 2]].concat();
        assert_eq!(datagram_payload(400, &datagram), Some(&[1, 2][..]));
        assert_eq!(datagram_payload(4, &datagram), None);
        assert_eq!(datagram_payload(0, &[]), None);
    }
}
