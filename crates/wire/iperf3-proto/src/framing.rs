//! JSON after a big-endian `u32` length, decoded incrementally.

use crate::trim::Trim;
use serde::{Deserialize, Serialize};

/// Maximum bytes of parameters that a server accepts, as in iperf3 from 3.18.
pub const PARAMS_LIMIT: u32 = 8 * 1024;

/// Maximum bytes of results that a client keeps: 256 streams need 64 KiB, a
/// longhaul server's samples less than 1 MB; the rest is the server's output.
pub const RESULTS_LIMIT: u32 = 4 * 1024 * 1024;

/// Maximum bytes of the server's output that a client keeps of results over
/// [`RESULTS_LIMIT`].
const OUTPUT_LIMIT: usize = 3 * 1024 * 1024;

/// Maximum bytes of results that a client reads: about a million interval reports.
/// Of results over [`RESULTS_LIMIT`] the server's output is truncated.
const ANNOUNCED_RESULTS_LIMIT: u32 = 256 * 1024 * 1024;

/// Maximum bytes of results that a server accepts from a client: 256 streams need 58 kB.
pub const CLIENT_RESULTS_LIMIT: u32 = 64 * 1024;

/// Maximum memory of a message while it is read and parsed, as a multiple of its
/// length: the text, unescaped strings and the parsed values.
pub const MEMORY_PER_BYTE: u64 = 4;

/// Errors of a framed message.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The length exceeds the limit; nothing was allocated.
    #[error(
        "its length is {length} bytes and the limit {limit}; check that the other end is iperf3 or longhaul"
    )]
    TooLong {
        /// Bytes announced.
        length: u32,
        /// The limit.
        limit: u32,
    },
    /// The text is not the expected JSON.
    #[error("it is not the expected JSON ({0}); check that the other end is iperf3 or longhaul")]
    Json(#[from] serde_json::Error),
}

/// Encodes a message, preceded by its length.
///
/// # Errors
/// The value has no JSON, or one over 4 GiB.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    frame(&serde_json::to_vec(message)?)
}

/// The text of a message, preceded by its length.
pub(crate) fn frame(text: &[u8]) -> Result<Vec<u8>, FrameError> {
    let length = u32::try_from(text.len())
        .map_err(|_| FrameError::TooLong { length: u32::MAX, limit: u32::MAX })?;
    Ok([&length.to_be_bytes(), text].concat())
}

/// Takes one message in pieces.
#[derive(Debug)]
pub struct Decoder {
    /// Maximum bytes kept.
    limit: u32,
    /// Maximum length; text beyond `limit` is trimmed.
    announced_limit: u32,
    head: [u8; 4],
    head_len: usize,
    length: Option<usize>,
    /// Bytes of the text received so far.
    received: usize,
    body: Vec<u8>,
    trim: Option<Trim>,
}

impl Decoder {
    /// For a message of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Decoder {
            limit,
            announced_limit: limit,
            head: [0; 4],
            head_len: 0,
            length: None,
            received: 0,
            body: Vec::new(),
            trim: None,
        }
    }

    /// For a server's results: of longer ones than [`RESULTS_LIMIT`] the
    /// server's own output is cut, see [`Decoder::cut`].
    #[must_use]
    pub fn for_results() -> Self {
        Decoder { announced_limit: ANNOUNCED_RESULTS_LIMIT, ..Decoder::new(RESULTS_LIMIT) }
    }

    /// Bytes that are still missing, as far as known: of the length first, then of
    /// the text; zero once complete. Reading more would consume the next message.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.length.map_or(4 - self.head_len, |length| length - self.received)
    }

    /// Bytes of the text that will be kept at most, once the length is known.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.length.map(|length| (length as u64).min(self.limit.into()))
    }

    /// Bytes of the server's output that were truncated.
    #[must_use]
    pub fn cut(&self) -> u64 {
        self.trim.as_ref().map_or(0, Trim::cut)
    }

    /// Takes bytes off the front of `input` and returns how many.
    ///
    /// # Errors
    /// The length exceeds its limit, or the text that would be kept does.
    pub fn take(&mut self, input: &[u8]) -> Result<usize, FrameError> {
        let mut taken = 0;
        while taken < input.len() && self.missing() > 0 {
            let part = &input[taken..input.len().min(taken + self.missing())];
            taken += part.len();
            if self.length.is_some() {
                self.keep(part)?;
            } else {
                self.head[self.head_len..self.head_len + part.len()].copy_from_slice(part);
                self.head_len += part.len();
                if self.head_len == self.head.len() {
                    self.begin(u32::from_be_bytes(self.head))?;
                }
            }
        }
        Ok(taken)
    }

    fn begin(&mut self, length: u32) -> Result<(), FrameError> {
        if length > self.announced_limit {
            // The length stays unknown: whatever follows is refused again.
            self.head_len = 0;
            return Err(FrameError::TooLong { length, limit: self.announced_limit });
        }
        self.trim = (length > self.limit).then(|| Trim::new(OUTPUT_LIMIT));
        self.length = Some(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }

    /// The text is kept as it comes: an announced length alone reserves nothing.
    fn keep(&mut self, part: &[u8]) -> Result<(), FrameError> {
        let most = self.length.unwrap_or(0).min(self.limit as usize);
        let needed = self.body.len() + part.len();
        if needed > self.body.capacity() {
            // Never more than the message itself takes.
            let capacity = needed.max(2 * self.body.capacity()).min(most.max(needed));
            self.body.reserve_exact(capacity - self.body.len());
        }
        self.received += part.len();
        let Some(trim) = &mut self.trim else {
            self.body.extend_from_slice(part);
            return Ok(());
        };
        for byte in part {
            trim.push(*byte, &mut self.body);
        }
        if self.body.len() > self.limit as usize {
            let length = u32::try_from(self.length.unwrap_or(0)).unwrap_or(u32::MAX);
            return Err(FrameError::TooLong { length, limit: self.limit });
        }
        Ok(())
    }

    /// The text as it was received, once [`Decoder::missing`] is zero.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.body
    }

    /// The message, once [`Decoder::missing`] is zero.
    ///
    /// # Errors
    /// The text is not the JSON expected, or is not whole.
    pub fn finish<'a, T: Deserialize<'a>>(&'a self) -> Result<T, FrameError> {
        Ok(serde_json::from_slice(&self.body)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn read_in_pieces(wire: &[u8], piece: usize, limit: u32) -> Result<(Value, usize), FrameError> {
        let mut decoder = Decoder::new(limit);
        let mut at = 0;
        while decoder.missing() > 0 && at < wire.len() {
            at += decoder.take(&wire[at..wire.len().min(at + piece)])?;
        }
        Ok((decoder.finish()?, at))
    }

    #[test]
    fn the_limit_is_the_last_that_passes() {
        let wire = encode(&"x".repeat(98)).unwrap();
        assert_eq!(wire.len(), 104);
        assert!(read_in_pieces(&wire, 7, 100).is_ok());
        assert!(matches!(
            read_in_pieces(&wire, 7, 99),
            Err(FrameError::TooLong { length: 100, limit: 99 })
        ));
    }

    #[test]
    fn a_huge_length_reserves_nothing() {
        let mut decoder = Decoder::new(RESULTS_LIMIT);
        decoder.take(&RESULTS_LIMIT.to_be_bytes()).unwrap();
        assert_eq!(decoder.body.capacity(), 0);
        assert!(decoder.take(&[b'['; 1]).is_ok());
    }

    #[test]
    fn results_over_the_limit_lose_the_servers_output_alone() {
        let limit = RESULTS_LIMIT as usize;
        let results = |bytes: usize| {
            let output = "line\n".repeat(bytes / 6);
            json!({"cpu_util_total": 5, "server_output_text": output, "streams": [{"id": 1, "bytes": 9}]})
        };
        for (bytes, cuts) in [(limit - 200, false), (limit + 200, true), (5 * limit, true)] {
            let wire = encode(&results(bytes)).unwrap();
            let mut decoder = Decoder::for_results();
            let mut at = 0;
            while decoder.missing() > 0 {
                at += decoder.take(&wire[at..wire.len().min(at + 16_384)]).unwrap();
            }
            let read: crate::Results = decoder.finish().unwrap();
            assert_eq!((read.streams[0].bytes, at), (9, wire.len()));
            assert_eq!(decoder.cut() > 0, cuts, "{bytes}");
            let text = read.server_output_text.unwrap();
            assert_eq!(text.ends_with("truncated by longhaul]"), cuts);
            assert!(text.len() > OUTPUT_LIMIT / 2 && decoder.body.capacity() <= limit);
        }
        // What is long for another reason is refused once the limit is reached.
        let mut decoder = Decoder::for_results();
        let wire = encode(&json!({ "title": "x".repeat(2 * limit) })).unwrap();
        let mut pieces = wire.chunks(16_384);
        assert!(pieces.any(|piece| decoder.take(piece).is_err()));
        assert!(decoder.body.capacity() <= limit + 16_384);
        let length = (ANNOUNCED_RESULTS_LIMIT + 1).to_be_bytes();
        assert!(Decoder::for_results().take(&length).is_err());
    }

    #[test]
    fn what_follows_is_left_alone() {
        let wire = [encode(&json!({"a": 1})).unwrap(), vec![14, 2]].concat();
        let (value, used) = read_in_pieces(&wire, wire.len(), 100).unwrap();
        assert_eq!((value, used), (json!({"a": 1}), wire.len() - 2));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_message(text in ".{0,200}", piece in 1usize..40) {
            let wire = encode(&text).unwrap();
            prop_assert_eq!(read_in_pieces(&wire, piece, 4096).unwrap().0, Value::from(text));
        }

        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300), piece in 1usize..9) {
            let _ = read_in_pieces(&bytes, piece, 8192);
        }
    }
}
