//! Frames as they are on the wire (RFC 6455, section 5.2).

use crate::close::CloseCode;
use std::ops::Deref;

/// Most bytes of a control frame's payload (RFC 6455, section 5.5).
pub const MAX_CONTROL_PAYLOAD: usize = 125;

/// Most bytes of a frame's header: two, a length of eight and a mask of four.
pub const MAX_HEADER: usize = 14;

/// A frame's masking key (RFC 6455, section 5.3).
pub type Mask = [u8; 4];

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// Goes on with the message of the frame before.
    Continuation,
    /// Begins a text message.
    Text,
    /// Begins a binary message.
    Binary,
    /// Ends the connection.
    Close,
    /// Asks for a Pong with the same payload.
    Ping,
    /// Answers a Ping.
    Pong,
}

impl Opcode {
    /// The opcode of that number; none for reserved ones.
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        match number {
            0 => Some(Opcode::Continuation),
            1 => Some(Opcode::Text),
            2 => Some(Opcode::Binary),
            8 => Some(Opcode::Close),
            9 => Some(Opcode::Ping),
            10 => Some(Opcode::Pong),
            _ => None,
        }
    }

    fn number(self) -> u8 {
        match self {
            Opcode::Continuation => 0,
            Opcode::Text => 1,
            Opcode::Binary => 2,
            Opcode::Close => 8,
            Opcode::Ping => 9,
            Opcode::Pong => 10,
        }
    }

    /// True for Close, Ping and Pong, which may come between the frames of a message.
    #[must_use]
    pub fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }
}

/// A header to be sent; dereferences to its bytes.
#[derive(Debug, Clone, Copy)]
pub struct EncodedHeader {
    bytes: [u8; MAX_HEADER],
    length: usize,
}

impl Deref for EncodedHeader {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl EncodedHeader {
    fn push(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + bytes.len()) {
            place.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }
}

/// The header of a whole message in one frame. Servers send without a mask, clients with one
/// that nobody can foresee.
#[must_use]
pub fn header(opcode: Opcode, payload_bytes: u64, mask: Option<Mask>) -> EncodedHeader {
    let mut header = EncodedHeader { bytes: [0; MAX_HEADER], length: 0 };
    let masked = if mask.is_some() { 0x80 } else { 0 };
    let first = 0x80 | opcode.number();
    match (u8::try_from(payload_bytes), u16::try_from(payload_bytes)) {
        (Ok(short @ 0..=125), _) => header.push(&[first, masked | short]),
        (_, Ok(medium)) => {
            header.push(&[first, masked | 126]);
            header.push(&medium.to_be_bytes());
        }
        _ => {
            header.push(&[first, masked | 127]);
            // The highest bit is reserved: no memory holds a payload that would set it.
            header.push(&(payload_bytes & (u64::MAX >> 1)).to_be_bytes());
        }
    }
    if let Some(mask) = mask {
        header.push(&mask);
    }
    header
}

/// Masks or unmasks bytes of a payload that are `offset` bytes from its beginning.
pub fn apply_mask(bytes: &mut [u8], mask: Mask, offset: u64) {
    let mut turned = mask;
    turned.rotate_left((offset % 4) as usize);
    for chunk in bytes.chunks_mut(4) {
        for (byte, key) in chunk.iter_mut().zip(turned) {
            *byte ^= key;
        }
    }
}

/// A whole message in one frame: header and payload.
#[must_use]
pub fn message(opcode: Opcode, payload: &[u8], mask: Option<Mask>) -> Vec<u8> {
    let header = header(opcode, payload.len() as u64, mask);
    let mut frame = Vec::with_capacity(header.len() + payload.len());
    frame.extend_from_slice(&header);
    frame.extend_from_slice(payload);
    if let Some(mask) = mask {
        apply_mask(frame.get_mut(header.len()..).unwrap_or_default(), mask, 0);
    }
    frame
}

/// A Close. The reason is cut to the 123 bytes that fit, at a character's end.
#[must_use]
pub fn close(code: CloseCode, reason: &str, mask: Option<Mask>) -> Vec<u8> {
    let end = reason.floor_char_boundary(MAX_CONTROL_PAYLOAD - 2);
    let mut payload = code.get().to_be_bytes().to_vec();
    payload.extend_from_slice(reason.get(..end).unwrap_or_default().as_bytes());
    message(Opcode::Close, &payload, mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_the_shortest_form() {
        assert_eq!(&*header(Opcode::Text, 125, None), [0x81, 125]);
        assert_eq!(&*header(Opcode::Binary, 126, None), [0x82, 126, 0, 126]);
        assert_eq!(&*header(Opcode::Binary, 65535, None), [0x82, 126, 255, 255]);
        let long = header(Opcode::Binary, 65536, Some([1, 2, 3, 4]));
        assert_eq!(&*long, [0x82, 0x80 | 127, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn masks_go_on_at_any_offset() {
        // RFC 6455, section 5.7: a masked "Hello".
        let frame = message(Opcode::Text, b"Hello", Some([0x37, 0xfa, 0x21, 0x3d]));
        assert_eq!(frame, [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58],);
        let mut rest = [0x51, 0x58];
        apply_mask(&mut rest, [0x37, 0xfa, 0x21, 0x3d], 3);
        assert_eq!(&rest, b"lo");
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let frame = close(CloseCode::NORMAL, &"ü".repeat(100), None);
        assert_eq!(frame[..4], [0x88, 2 + 122, 0x03, 0xe8]);
        assert!(std::str::from_utf8(&frame[4..]).is_ok());
    }
}
