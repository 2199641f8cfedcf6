//! JSON behind a `u32` length, big-endian: written whole, read in whatever
//! pieces the network gives.

use serde::{Serialize, de::DeserializeOwned};

/// Most bytes of parameters a server takes; iperf3 3.18 and later refuse more.
pub const PARAMS_LIMIT: u32 = 8 * 1024;

/// Most bytes of results a client takes. A server that shares its samples
/// sends a few MB; the cap is what one peer may make us hold.
pub const RESULTS_LIMIT: u32 = 64 * 1024 * 1024;

/// Most bytes of results a server takes from a client: 128 streams need 20 kB,
/// and a server holds one for each session at a time.
pub const CLIENT_RESULTS_LIMIT: u32 = 1024 * 1024;

/// What is wrong with a framed message.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The length is over the limit; nothing was allocated for it.
    #[error(
        "it announces {length} bytes where at most {limit} are allowed; is the other end an iperf3 at all?"
    )]
    TooLong {
        /// Bytes announced.
        length: u32,
        /// Most that is taken.
        limit: u32,
    },
    /// The text is not the JSON expected.
    #[error("it is not the JSON expected ({0}); is the other end an iperf3 at all?")]
    Json(#[from] serde_json::Error),
}

/// A message with its length before it.
///
/// # Errors
/// The value has no JSON, or one over 4 GiB.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let json = serde_json::to_vec(message)?;
    let length = u32::try_from(json.len())
        .map_err(|_| FrameError::TooLong { length: u32::MAX, limit: u32::MAX })?;
    Ok([&length.to_be_bytes(), json.as_slice()].concat())
}

/// Takes one message in pieces.
#[derive(Debug)]
pub struct Decoder {
    limit: u32,
    head: [u8; 4],
    head_len: usize,
    length: Option<usize>,
    body: Vec<u8>,
}

impl Decoder {
    /// For a message of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Decoder { limit, head: [0; 4], head_len: 0, length: None, body: Vec::new() }
    }

    /// How many bytes the message still needs, as far as is known: the rest of
    /// its length first, the rest of its text then; zero once it is whole. To
    /// read more than this would take bytes of the next message.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.length.map_or(4 - self.head_len, |length| length - self.body.len())
    }

    /// Takes bytes off the front of `input` and returns how many.
    ///
    /// # Errors
    /// The length is over the limit.
    pub fn take(&mut self, input: &[u8]) -> Result<usize, FrameError> {
        let mut taken = 0;
        while taken < input.len() && self.missing() > 0 {
            let part = &input[taken..input.len().min(taken + self.missing())];
            taken += part.len();
            if self.length.is_some() {
                // The text is kept as it comes: an announced length alone reserves nothing.
                self.body.extend_from_slice(part);
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
        if length > self.limit {
            // The length stays unknown: whatever follows is refused again.
            self.head_len = 0;
            return Err(FrameError::TooLong { length, limit: self.limit });
        }
        self.length = Some(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }

    /// The message, once [`Decoder::missing`] is zero.
    ///
    /// # Errors
    /// The text is not the JSON expected, or is not whole.
    pub fn finish<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
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
