//! Received bytes in, events out.

use crate::close::{Close, CloseCode};
use crate::frame::{MAX_CONTROL_PAYLOAD, MAX_HEADER, Mask, Opcode, apply_mask};

/// The end that reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads what a client sent: every frame is masked.
    Server,
    /// Reads what a server sent: no frame is masked.
    Client,
}

/// Bounds of what a peer may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a text message, which is stored until it is whole.
    pub text_bytes: usize,
    /// Most bytes of a binary frame; binary messages are not stored.
    pub binary_frame_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { text_bytes: 64 << 10, binary_frame_bytes: 16 << 20 }
    }
}

/// Something received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A whole text message.
    Text(String),
    /// So many bytes of a binary message, dropped.
    Binary(usize),
    /// The end of a binary message.
    BinaryEnd,
    /// A Ping: its payload belongs into a Pong.
    Ping(Vec<u8>),
    /// A Pong.
    Pong(Vec<u8>),
    /// The peer's Close. Whatever comes after it is dropped.
    Close(Close),
}

/// The reason a connection cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A bit of an extension that was not agreed on.
    #[error("reserved bits are set in a frame")]
    ReservedBits,
    /// An opcode without a meaning.
    #[error("a frame has the reserved opcode {0}")]
    ReservedOpcode(u8),
    /// A client's frame without a mask.
    #[error("a client's frame is not masked")]
    NotMasked,
    /// A server's frame with a mask.
    #[error("a server's frame is masked")]
    Masked,
    /// A length in more bytes than it needs, or above 2^63.
    #[error("the length of a frame is not in its shortest form")]
    LengthForm,
    /// A Ping, Pong or Close of more than 125 bytes, or in several frames.
    #[error("a control frame has more than 125 bytes or is fragmented")]
    Control,
    /// A continuation of nothing.
    #[error("a frame continues no message")]
    NoMessage,
    /// A message within a message.
    #[error("a message begins before the last one is complete")]
    MessageWithinMessage,
    /// A binary frame above the limit.
    #[error("a frame has {0} bytes, more than is accepted")]
    FrameTooBig(u64),
    /// A text message above the limit.
    #[error("a text message has more bytes than are accepted")]
    TextTooBig,
    /// Text or a reason that is not UTF-8.
    #[error("text is not UTF-8")]
    NotUtf8,
    /// A Close of one byte.
    #[error("a Close has half a code")]
    CloseLength,
    /// A close code that may not be on the wire.
    #[error("a Close has the invalid code {0}")]
    CloseCode(u16),
}

impl ProtocolError {
    /// The code to close the connection with.
    #[must_use]
    pub fn close_code(self) -> CloseCode {
        match self {
            ProtocolError::FrameTooBig(_) | ProtocolError::TextTooBig => CloseCode::TOO_BIG,
            ProtocolError::NotUtf8 => CloseCode::INVALID_PAYLOAD,
            _ => CloseCode::PROTOCOL_ERROR,
        }
    }
}

/// The header of a received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    last: bool,
    opcode: Opcode,
    mask: Option<Mask>,
    length: u64,
}

/// A frame whose payload is being read.
#[derive(Debug, Clone, Copy)]
struct Payload {
    header: Header,
    read: u64,
}

/// A message of which more frames are expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Message {
    None,
    Text,
    Binary,
}

/// Reads one direction of a connection; the bytes may be cut anywhere.
///
/// ```
/// use websocket::{Event, Limits, Reader, Role};
///
/// let mut reader = Reader::new(Role::Client, Limits::default());
/// let mut input: &[u8] = &[0x81, 2, b'h', b'i', 0x8a, 0];
/// assert_eq!(reader.next(&mut input), Ok(Some(Event::Text("hi".to_owned()))));
/// assert_eq!(reader.next(&mut input), Ok(Some(Event::Pong(vec![]))));
/// assert_eq!(reader.next(&mut input), Ok(None));
/// ```
#[derive(Debug)]
pub struct Reader {
    role: Role,
    limits: Limits,
    /// The beginning of a header.
    head: Vec<u8>,
    payload: Option<Payload>,
    message: Message,
    text: Vec<u8>,
    control: Vec<u8>,
    closed: bool,
    failed: Option<ProtocolError>,
}

impl Reader {
    /// A reader at the beginning of a connection.
    #[must_use]
    pub fn new(role: Role, limits: Limits) -> Self {
        Reader {
            role,
            limits,
            head: Vec::with_capacity(MAX_HEADER),
            payload: None,
            message: Message::None,
            text: Vec::new(),
            control: Vec::new(),
            closed: false,
            failed: None,
        }
    }

    /// Takes bytes from `input` until something has been received: `None` once all are taken.
    ///
    /// # Errors
    /// The peer broke the protocol or a limit; so does every later call.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Event>, ProtocolError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.step(input);
        self.failed = result.as_ref().err().copied();
        result
    }

    fn step(&mut self, input: &mut &[u8]) -> Result<Option<Event>, ProtocolError> {
        loop {
            if self.closed {
                *input = &[];
                return Ok(None);
            }
            let Some(payload) = self.payload else {
                let Some(&byte) = input.split_off_first() else { return Ok(None) };
                self.head.push(byte);
                if let Some(header) = parse_header(&self.head)? {
                    self.head.clear();
                    self.check(&header)?;
                    self.payload = Some(Payload { header, read: 0 });
                }
                continue;
            };
            let left = payload.header.length - payload.read;
            let take = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
            if left > 0 && take == 0 {
                return Ok(None);
            }
            let bytes = input.split_off(..take).unwrap_or_default();
            self.payload = Some(Payload { read: payload.read + take as u64, ..payload });
            if let Some(event) = self.take(payload, bytes, left == take as u64)? {
                return Ok(Some(event));
            }
        }
    }

    /// Whether the frame may come here.
    fn check(&mut self, header: &Header) -> Result<(), ProtocolError> {
        match (self.role, header.mask) {
            (Role::Server, None) => return Err(ProtocolError::NotMasked),
            (Role::Client, Some(_)) => return Err(ProtocolError::Masked),
            _ => {}
        }
        match (header.opcode, self.message) {
            (Opcode::Continuation, Message::None) => return Err(ProtocolError::NoMessage),
            (Opcode::Text | Opcode::Binary, Message::Text | Message::Binary) => {
                return Err(ProtocolError::MessageWithinMessage);
            }
            (Opcode::Text, Message::None) => self.message = Message::Text,
            (Opcode::Binary, Message::None) => self.message = Message::Binary,
            _ => {}
        }
        let length = header.length;
        if header.opcode.is_control() {
            let fits = length <= MAX_CONTROL_PAYLOAD as u64;
            return if header.last && fits { Ok(()) } else { Err(ProtocolError::Control) };
        }
        match self.message {
            Message::Text if length > (self.limits.text_bytes - self.text.len()) as u64 => {
                Err(ProtocolError::TextTooBig)
            }
            Message::Binary if length > self.limits.binary_frame_bytes => {
                Err(ProtocolError::FrameTooBig(length))
            }
            _ => Ok(()),
        }
    }

    /// Takes bytes of a payload, with which the frame `ends` or does not.
    fn take(
        &mut self,
        payload: Payload,
        bytes: &[u8],
        ends: bool,
    ) -> Result<Option<Event>, ProtocolError> {
        let Payload { header, read } = payload;
        if !header.opcode.is_control() && self.message == Message::Binary {
            return Ok(self.take_binary(header.last, bytes.len(), ends));
        }
        let stored = if header.opcode.is_control() { &mut self.control } else { &mut self.text };
        let from = stored.len();
        stored.extend_from_slice(bytes);
        if let Some(mask) = header.mask {
            apply_mask(stored.get_mut(from..).unwrap_or_default(), mask, read);
        }
        if !ends {
            return Ok(None);
        }
        self.payload = None;
        if header.opcode.is_control() {
            let control = std::mem::take(&mut self.control);
            return self.control(header.opcode, control).map(Some);
        }
        if !header.last {
            return Ok(None);
        }
        self.message = Message::None;
        let text = std::mem::take(&mut self.text);
        String::from_utf8(text)
            .map(|text| Some(Event::Text(text)))
            .map_err(|_| ProtocolError::NotUtf8)
    }

    /// Bytes of a binary frame; its end is an event of its own, so it is taken only after them.
    fn take_binary(&mut self, last: bool, bytes: usize, ends: bool) -> Option<Event> {
        if bytes > 0 {
            return Some(Event::Binary(bytes));
        }
        if ends {
            self.payload = None;
        }
        if !(ends && last) {
            return None;
        }
        self.message = Message::None;
        Some(Event::BinaryEnd)
    }

    fn control(&mut self, opcode: Opcode, payload: Vec<u8>) -> Result<Event, ProtocolError> {
        match opcode {
            Opcode::Ping => Ok(Event::Ping(payload)),
            Opcode::Pong => Ok(Event::Pong(payload)),
            _ => {
                self.closed = true;
                Close::parse(&payload).map(Event::Close)
            }
        }
    }
}

/// The header that `bytes` are, or `None` while they are only its beginning.
fn parse_header(bytes: &[u8]) -> Result<Option<Header>, ProtocolError> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    if first & 0x70 != 0 {
        return Err(ProtocolError::ReservedBits);
    }
    let opcode = Opcode::of(first & 0xf).ok_or(ProtocolError::ReservedOpcode(first & 0xf))?;
    let (length, rest) = match second & 0x7f {
        126 => match rest.split_first_chunk() {
            Some((length, rest)) => (u64::from(u16::from_be_bytes(*length)), rest),
            None => return Ok(None),
        },
        127 => match rest.split_first_chunk() {
            Some((length, rest)) => (u64::from_be_bytes(*length), rest),
            None => return Ok(None),
        },
        short => (u64::from(short), rest),
    };
    let shortest = match second & 0x7f {
        126 => length > 125,
        127 => length > u64::from(u16::MAX) && length >> 63 == 0,
        _ => true,
    };
    if !shortest {
        return Err(ProtocolError::LengthForm);
    }
    let mask = match (second & 0x80 != 0, rest.first_chunk()) {
        (false, _) => None,
        (true, Some(mask)) => Some(*mask),
        (true, None) => return Ok(None),
    };
    Ok(Some(Header { last: first & 0x80 != 0, opcode, mask, length }))
}
