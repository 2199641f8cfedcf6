//! As much of DNS messages (RFC 1035, section 4) as a relay needs: the length that a client accepts,
//! truncation, and the answer where there is none.

use super::upstream::time_left;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// Longest message, bytes: its length has 16 bits over TCP.
pub(super) const MAX_MESSAGE: usize = u16::MAX as usize;

/// Longest answer over UDP to a client that names no other (RFC 1035, section 2.3.4).
const PLAIN_UDP: usize = 512;

const HEADER: usize = 12;

// Bits of the second and third pair of bytes.
const RESPONSE: u8 = 0x80;
const TRUNCATED: u8 = 0x02;
const SERVER_FAILURE: u8 = 2;

/// True if an answer has the ID of a query.
pub(super) fn has_id_of(query: &[u8], answer: &[u8]) -> bool {
    answer.len() >= HEADER && query.first_chunk::<2>() == answer.first_chunk::<2>()
}

/// The answer as the client of a query over UDP accepts it: whole, or truncated, after which it asks
/// over TCP. `None` if the query is none.
pub(super) fn for_udp(query: &[u8], answer: Vec<u8>) -> Option<Vec<u8>> {
    if answer.len() <= udp_limit(query)? {
        return Some(answer);
    }
    let mut short = header_and_question(&answer)?;
    *short.get_mut(2)? |= TRUNCATED;
    Some(short)
}

/// The answer to a query that nobody answered; `None` if it is none.
pub(super) fn server_failure(query: &[u8]) -> Option<Vec<u8>> {
    let mut answer = header_and_question(query)?;
    if answer.get(2)? & RESPONSE != 0 {
        return None;
    }
    *answer.get_mut(2)? |= RESPONSE;
    *answer.get_mut(3)? = SERVER_FAILURE;
    Some(answer)
}

/// The header and the one question of a message, without records.
fn header_and_question(message: &[u8]) -> Option<Vec<u8>> {
    let end = after_name(message, HEADER)?.checked_add(4)?;
    let mut short = message.get(..end)?.to_vec();
    short.get_mut(4..HEADER)?.copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
    Some(short)
}

/// Longest answer over UDP: the class of an OPT record (RFC 6891, section 6.1.2) among the additional
/// records, as queries have no others.
fn udp_limit(query: &[u8]) -> Option<usize> {
    const OPT: u16 = 41;
    let mut at = after_name(query, HEADER)?.checked_add(4)?;
    for _ in 0..u16_at(query, 10)? {
        at = after_name(query, at)?;
        if u16_at(query, at)? == OPT {
            return Some(usize::from(u16_at(query, at + 2)?).max(PLAIN_UDP));
        }
        at += 10 + usize::from(u16_at(query, at + 8)?);
    }
    Some(PLAIN_UDP)
}

/// Where a name ends that begins at `at`.
fn after_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match usize::from(*message.get(at)?) {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + length,
            // A pointer (section 4.1.4) ends a name.
            0xc0.. => return Some(at + 2),
            _ => return None,
        }
    }
}

fn u16_at(message: &[u8], at: usize) -> Option<u16> {
    message.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

/// Reads a message with its length (RFC 7766); `None` at the end of the stream.
pub(super) fn read_framed(stream: &TcpStream, until: Instant) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 2];
    if !fill(stream, &mut length, until)? {
        return Ok(None);
    }
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    let whole = fill(stream, &mut message, until)?;
    if whole { Ok(Some(message)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Fills a buffer; false if the stream ends first.
fn fill(mut stream: &TcpStream, mut rest: &mut [u8], until: Instant) -> io::Result<bool> {
    while !rest.is_empty() {
        stream.set_read_timeout(Some(time_left(until)?))?;
        let read = stream.read(rest)?;
        if read == 0 {
            return Ok(false);
        }
        rest = rest.get_mut(read..).unwrap_or_default();
    }
    Ok(true)
}

/// Writes a message of at most [`MAX_MESSAGE`] bytes with its length.
pub(super) fn write_framed(
    mut stream: &TcpStream,
    message: &[u8],
    until: Instant,
) -> io::Result<()> {
    let length = u16::try_from(message.len()).map_err(io::Error::other)?;
    stream.set_write_timeout(Some(time_left(until)?))?;
    // A message fits the buffer of a socket that is read.
    stream.write_all(&[&length.to_be_bytes()[..], message].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query for `a.b`, with an OPT record of that size.
    fn query(size: Option<u16>) -> Vec<u8> {
        let additional = u8::from(size.is_some());
        let mut bytes = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, additional];
        bytes.extend([1, b'a', 1, b'b', 0, 0, 1, 0, 1]);
        if let Some(size) = size {
            bytes.extend([0, 0, 41]);
            bytes.extend(size.to_be_bytes());
            bytes.extend([0; 6]);
        }
        bytes
    }

    fn answer(length: usize) -> Vec<u8> {
        let mut bytes = query(None);
        bytes[2] |= RESPONSE;
        bytes[7] = 30;
        bytes.resize(length, 7);
        bytes
    }

    #[test]
    fn answers_are_truncated_to_what_the_client_accepts() {
        let cases = [(None, 512), (Some(100), 512), (Some(1232), 1232), (Some(u16::MAX), 65_535)];
        for (size, limit) in cases {
            let query = query(size);
            assert_eq!(for_udp(&query, answer(limit)), Some(answer(limit)));
            if limit < MAX_MESSAGE {
                let short = for_udp(&query, answer(limit + 1)).unwrap();
                assert_eq!(short.len(), HEADER + 9);
                assert_eq!(short[..4], [0x12, 0x34, 1 | RESPONSE | TRUNCATED, 0]);
                assert_eq!(short[4..HEADER], [0, 1, 0, 0, 0, 0, 0, 0]);
            }
        }
    }

    #[test]
    fn a_query_that_nobody_answers_fails() {
        let failure = server_failure(&query(Some(1232))).unwrap();
        assert_eq!(failure[..HEADER], [0x12, 0x34, 0x81, 2, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(failure.len(), HEADER + 9);
        // Two relays would answer each other's answers without end.
        assert_eq!(server_failure(&answer(100)), None);
    }

    #[test]
    fn any_bytes_are_read() {
        let whole = query(Some(1232));
        for end in 0..whole.len() {
            let _ = server_failure(&whole[..end]);
            let _ = for_udp(&whole[..end], answer(2000));
            let mut changed = whole.clone();
            for value in [0, 63, 64, 0xc0, 0xff] {
                changed[end] = value;
                let _ = for_udp(&changed, changed[..end].to_vec());
                let _ = for_udp(&changed, vec![value; 3000]);
                let _ = server_failure(&changed);
            }
        }
        assert!(!has_id_of(&whole, &[0x12, 0x34]) && has_id_of(&whole, &answer(40)));
    }
}
