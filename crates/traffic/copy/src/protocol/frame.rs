//! Frames: a length of four bytes (little-endian), then that many bytes of one message.

use crate::protocol::BLOCK_BYTES;
use crate::protocol::message::{Message, WrongMessage};

/// Longest message, bytes: a block, its kind and its numbers.
pub const MAX_MESSAGE: usize = BLOCK_BYTES + 32;
const LENGTH_BYTES: usize = 4;

/// Finds messages in a stream of bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were taken.
    taken: usize,
    last_length: usize,
}

impl Decoder {
    /// Adds bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken == self.buffer.len() {
            self.buffer.clear();
            self.taken = 0;
        } else if self.taken > BLOCK_BYTES {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message.
    ///
    /// # Errors
    /// The peer does not follow the protocol: the rest of the stream has no meaning.
    pub fn next_message(&mut self) -> Result<Option<Message>, WrongMessage> {
        let rest = &self.buffer[self.taken..];
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > MAX_MESSAGE {
            return Err(WrongMessage::TooLong);
        }
        let Some(message) = rest.get(..length) else { return Ok(None) };
        let message = Message::parse(message)?;
        self.taken += LENGTH_BYTES + length;
        self.last_length = length;
        Ok(Some(message))
    }

    /// Bytes of the last message that was found.
    #[must_use]
    pub const fn last_length(&self) -> usize {
        self.last_length
    }
}

/// The frame of a message.
#[must_use]
pub fn encode(message: &Message) -> Vec<u8> {
    let mut frame = vec![0; LENGTH_BYTES];
    message.write(&mut frame);
    let length = u32::try_from(frame.len() - LENGTH_BYTES).unwrap_or(u32::MAX);
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    frame
}
