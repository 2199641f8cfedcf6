//! Chunks: how a connection carries its part of the session's bytes.
//!
//! ```text
//!    0 … 7                    8 … 11           12 …
//! ┌────────────────────────┬────────────────┬──────────────────────┐
//! │ offset in the session  │ length         │ so many bytes        │
//! └────────────────────────┴────────────────┴──────────────────────┘
//! ```
//!
//! A chunk without bytes, at offset 0, shows that the connection works.

use crate::session::MuxError;

/// Length of a header in bytes.
pub const CHUNK_HEADER_BYTES: usize = 12;
/// Most bytes of a chunk.
pub const MAX_CHUNK: usize = 64 << 10;
/// A chunk without bytes.
pub const KEEPALIVE: [u8; CHUNK_HEADER_BYTES] = [0; CHUNK_HEADER_BYTES];

/// The header of a chunk of at most [`MAX_CHUNK`] bytes.
#[must_use]
pub fn header(offset: u64, length: usize) -> [u8; CHUNK_HEADER_BYTES] {
    let [a, b, c, d, e, f, g, h] = offset.to_be_bytes();
    // At most 64 KiB.
    let [i, j, k, l] = (length as u32).to_be_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

/// Bytes of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Where they belong.
    pub offset: u64,
    /// At least one; the end of them does not exceed `u64::MAX`.
    pub bytes: &'a [u8],
}

/// The chunks of one connection.
#[derive(Debug, Default)]
pub struct ChunkReader {
    partial: Vec<u8>,
    /// Of the chunk that has begun.
    offset: u64,
    left: usize,
}

impl ChunkReader {
    /// Takes the next piece off the input; `None` once that is used up.
    ///
    /// # Errors
    /// [`MuxError::Chunk`]: the connection carries no chunks.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Piece<'a>>, MuxError> {
        while self.left == 0 {
            let missing = CHUNK_HEADER_BYTES.saturating_sub(self.partial.len());
            let (part, rest) = input.split_at(missing.min(input.len()));
            self.partial.extend_from_slice(part);
            *input = rest;
            let Some(header) = self.partial.first_chunk() else { return Ok(None) };
            (self.offset, self.left) = decode(header)?;
            self.partial.clear();
        }
        let (bytes, rest) = input.split_at(self.left.min(input.len()));
        *input = rest;
        if bytes.is_empty() {
            return Ok(None);
        }
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        self.left -= bytes.len();
        Ok(Some(Piece { offset, bytes }))
    }
}

fn decode(header: &[u8; CHUNK_HEADER_BYTES]) -> Result<(u64, usize), MuxError> {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *header;
    let offset = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    let length = usize::try_from(u32::from_be_bytes([i, j, k, l])).map_err(|_| MuxError::Chunk)?;
    let is_valid = match length {
        0 => offset == 0,
        _ => length <= MAX_CHUNK && offset.checked_add(length as u64).is_some(),
    };
    if is_valid { Ok((offset, length)) } else { Err(MuxError::Chunk) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of a connection whose bytes arrive so many at a time, joined where they adjoin.
    fn read(stream: &[u8], at_a_time: usize) -> Result<Vec<(u64, Vec<u8>)>, MuxError> {
        let mut reader = ChunkReader::default();
        let mut all: Vec<(u64, Vec<u8>)> = Vec::new();
        for mut input in stream.chunks(at_a_time) {
            while let Some(piece) = reader.next(&mut input)? {
                match all.last_mut() {
                    Some((at, bytes)) if *at + bytes.len() as u64 == piece.offset => {
                        bytes.extend_from_slice(piece.bytes);
                    }
                    _ => all.push((piece.offset, piece.bytes.to_vec())),
                }
            }
            assert!(input.is_empty());
        }
        Ok(all)
    }

    #[test]
    fn chunks_are_read_however_they_arrive() {
        let last = u64::MAX - 3;
        let stream = [
            &header(7, 3)[..],
            b"abc",
            &KEEPALIVE,
            &header(1 << 40, 1),
            b"d",
            &KEEPALIVE,
            &KEEPALIVE,
            &header(last, 3),
            b"efg",
        ]
        .concat();
        let expected =
            vec![(7, b"abc".to_vec()), (1 << 40, b"d".to_vec()), (last, b"efg".to_vec())];
        for at_a_time in 1..=stream.len() {
            assert_eq!(read(&stream, at_a_time).unwrap(), expected, "{at_a_time}");
        }
    }

    #[test]
    fn headers_that_are_none_are_refused() {
        for (offset, length) in [(1, 0), (0, MAX_CHUNK + 1), (u64::MAX, 1), (u64::MAX - 2, 3)] {
            let stream = header(offset, length);
            for at_a_time in [1, CHUNK_HEADER_BYTES] {
                assert_eq!(read(&stream, at_a_time), Err(MuxError::Chunk), "{offset} {length}");
            }
        }
        assert_eq!(read(&header(0, MAX_CHUNK), 5).unwrap(), []);
    }
}
