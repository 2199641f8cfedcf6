//! iperf3's control connections, recognised by what their ends say.
//!
//! A port is no proof. A stream is iperf3's if its SYN was captured and its client begins with a
//! segment that is a cookie; it remains so as long as each end sends what the order of the messages
//! ([`iperf3_proto::order`]) lets it send. Streams of data begin with a cookie, too: what follows it
//! there is no message, and the stream is followed no longer. Neither is one with a gap, other than
//! inside of a JSON text, or whose payload was captured in part before it ends.

use capture::conversations::StreamNumber;
use capture::dissect::{Layers, PacketDirection, Protocol, TcpFlags, TcpSegment};
use capture::{ChunkedList, MemoryBudget};
use iperf3_proto::cookie::COOKIE_LEN;
use iperf3_proto::{Cookie, Order, Role, State};
use std::collections::BTreeMap;
use tcp_analysis::iperf3::cookie;

/// Control connections that are followed at a time; the oldest gives way.
const MAX_FOLLOWED: usize = 1024;

/// The longest JSON text, with a server's output of a million intervals.
const MAX_TEXT: u32 = 256 << 20;

/// A part of what an end says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// The cookie.
    Cookie(Cookie),
    /// A byte that is a state.
    State(State),
    /// The length of the JSON text that follows.
    Length(u32),
    /// JSON text.
    Text,
    /// The numbers of an error.
    Error,
}

/// What an end sends next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Cookie,
    State,
    /// The length of a JSON text, of which so many bytes were read.
    Length {
        read: u8,
        value: u32,
    },
    Text {
        left: u32,
        is_begin: bool,
    },
    Error {
        left: u32,
    },
}

/// One direction of a control connection.
#[derive(Debug, Clone, Copy)]
struct End {
    next_seq: u32,
    expected: Expected,
}

/// A control connection.
#[derive(Debug, Clone, Copy)]
struct Control {
    order: Order,
    client: PacketDirection,
    /// The client, and the server once it has sent anything.
    ends: (End, Option<End>),
}

/// The messages of a segment: the connection before it, who sent it, and the bytes that were sent
/// before.
#[derive(Debug, Clone, Copy)]
pub struct ControlSegment {
    control: Control,
    role: Role,
    skipped: usize,
}

impl ControlSegment {
    /// Hands the messages in a payload to `emit`.
    pub(crate) fn each(&self, payload: &[u8], emit: &mut dyn FnMut(Message)) {
        let mut control = self.control;
        let bytes = payload.get(self.skipped..).unwrap_or_default();
        let _ = control.read(self.role, bytes, bytes.len(), emit);
    }
}

/// The sequence number of the first byte of a client whose SYN was captured, and which has sent
/// nothing.
type Start = Option<(u32, PacketDirection)>;

/// The control connections of a capture.
#[derive(Debug)]
pub struct ControlConnections {
    starts: ChunkedList<Start>,
    followed: BTreeMap<u32, Control>,
}

impl ControlConnections {
    /// No connections; memory for each stream comes out of the budget.
    #[must_use]
    pub fn within(budget: &MemoryBudget) -> Self {
        ControlConnections { starts: ChunkedList::new(budget), followed: BTreeMap::new() }
    }

    /// Adds the next segment of a capture, and returns its messages if all of it is known to be
    /// some. `stream` is what `Conversations::add` returned for `segment`.
    #[inline]
    pub fn add(
        &mut self,
        segment: &TcpSegment<'_>,
        stream: StreamNumber,
    ) -> Option<ControlSegment> {
        let at = stream.number as usize;
        if at == self.starts.len() && !self.starts.push(None) {
            return None;
        }
        let start = self.starts.get_mut(at)?;
        if segment.flags.is_first_syn() {
            *start = Some((segment.seq.wrapping_add(1), segment.direction));
            return None;
        }
        if segment.payload_len == 0 {
            return None;
        }
        if let Some((seq, client)) = start.take() {
            let is_start = segment.direction == client && segment.seq == seq;
            cookie(segment.payload)
                .filter(|_| is_start && segment.payload_len as usize == COOKIE_LEN)?;
            self.follow(stream.number, seq, client);
        }
        if self.followed.is_empty() { None } else { self.next(segment, stream.number) }
    }

    /// As [`ControlConnections::add`], and returns the packet's layers with the name of the messages.
    #[inline]
    pub fn name(
        &mut self,
        layers: &Layers,
        segment: Option<&TcpSegment<'_>>,
        stream: Option<StreamNumber>,
    ) -> Option<Layers> {
        self.add(segment?, stream?)?;
        let mut named = layers.clone();
        named.name_payload(Protocol::Iperf3);
        Some(named)
    }

    fn follow(&mut self, number: u32, seq: u32, client: PacketDirection) {
        if self.followed.len() >= MAX_FOLLOWED {
            self.followed.pop_first();
        }
        let end = End { next_seq: seq, expected: Expected::Cookie };
        let order = Order::new(Role::Server);
        self.followed.insert(number, Control { order, client, ends: (end, None) });
    }

    fn next(&mut self, segment: &TcpSegment<'_>, number: u32) -> Option<ControlSegment> {
        let control = self.followed.get_mut(&number)?;
        let found = control.advance(segment);
        if matches!(found, Step::NoMessage) || segment.flags.has(TcpFlags::RST) {
            self.followed.remove(&number);
        }
        match found {
            Step::Messages(messages) => Some(messages),
            Step::Old | Step::NoMessage => None,
        }
    }
}

/// What a segment is to a control connection.
enum Step {
    Messages(ControlSegment),
    /// Sent before.
    Old,
    /// Nothing that the protocol lets its sender send, or what cannot be read.
    NoMessage,
}

impl Control {
    fn advance(&mut self, segment: &TcpSegment<'_>) -> Step {
        let role = if segment.direction == self.client { Role::Client } else { Role::Server };
        let length = segment.payload_len as usize;
        let end = self.end(role, segment.seq);
        let distance = segment.seq.wrapping_sub(end.next_seq).cast_signed();
        let skipped = if distance < 0 { distance.unsigned_abs() as usize } else { 0 };
        if skipped >= length {
            return Step::Old;
        }
        if distance > 0 && !end.pass(distance.unsigned_abs()) {
            return Step::NoMessage;
        }
        let messages = ControlSegment { control: *self, role, skipped };
        let bytes = segment.payload.get(skipped..).unwrap_or_default();
        match self.read(role, bytes, length - skipped, &mut |_| ()) {
            Some(()) => Step::Messages(messages),
            None => Step::NoMessage,
        }
    }

    /// The end of that role, which is at `seq` if it has sent nothing.
    fn end(&mut self, role: Role, seq: u32) -> &mut End {
        match role {
            Role::Client => &mut self.ends.0,
            Role::Server => {
                self.ends.1.get_or_insert(End { next_seq: seq, expected: Expected::State })
            }
        }
    }

    /// Reads `length` bytes of `role`, of which `bytes` were captured; `None` where they are not
    /// what it may send.
    fn read(
        &mut self,
        role: Role,
        bytes: &[u8],
        length: usize,
        emit: &mut dyn FnMut(Message),
    ) -> Option<()> {
        let mut at = 0;
        while at < length {
            let end = self.end(role, 0);
            let left = length - at;
            let (expected, taken) = match end.expected {
                Expected::Cookie => {
                    emit(Message::Cookie(Cookie::from_wire(cookie(bytes.get(at..)?)?)));
                    (Expected::State, COOKIE_LEN)
                }
                Expected::State => {
                    let state = self.state(role, *bytes.get(at)?)?;
                    emit(Message::State(state));
                    at += 1;
                    let end = self.end(role, 0);
                    end.next_seq = end.next_seq.wrapping_add(1);
                    continue;
                }
                Expected::Length { read, value } => {
                    let value = value << 8 | u32::from(*bytes.get(at)?);
                    (length_read(read + 1, value, emit)?, 1)
                }
                Expected::Text { is_begin, .. } if is_begin && *bytes.get(at)? != b'{' => {
                    return None;
                }
                Expected::Text { left: text, .. } => {
                    emit(Message::Text);
                    let taken = left.min(text as usize);
                    (text_left(text - taken as u32), taken)
                }
                Expected::Error { left: numbers } => {
                    emit(Message::Error);
                    let taken = left.min(numbers as usize);
                    (error_left(numbers - taken as u32), taken)
                }
            };
            let end = self.end(role, 0);
            end.expected = expected;
            end.next_seq = end.next_seq.wrapping_add(taken as u32);
            at += taken;
        }
        Some(())
    }

    /// A state that `role` sends, and what both ends send after it.
    fn state(&mut self, role: Role, byte: u8) -> Option<State> {
        const LENGTH: Expected = Expected::Length { read: 0, value: 0 };
        let state = State::from_byte(byte)?;
        let (client, server) = &mut self.ends;
        let server = server.as_mut();
        // Before the server has answered, a client says nothing.
        let is_client_free = server.as_ref().is_some_and(|it| it.expected == Expected::State);
        match role {
            Role::Client if is_client_free => self.order.receive(byte).ok()?,
            Role::Client => return None,
            // What it asked the client for comes first, be it that its text was not captured.
            Role::Server
                if is_answer(state) && matches!(client.expected, Expected::Length { .. }) =>
            {
                return None;
            }
            Role::Server => {
                self.order.send(state).ok()?;
                state
            }
        };
        match (state, server) {
            (State::ParamExchange, _) => client.expected = LENGTH,
            (State::ExchangeResults, Some(server)) => {
                (client.expected, server.expected) = (LENGTH, LENGTH);
            }
            (State::ServerError, Some(server)) => server.expected = Expected::Error { left: 8 },
            _ => {}
        }
        Some(state)
    }
}

/// Whether a server sends that state once it has what the client sends.
fn is_answer(state: State) -> bool {
    matches!(state, State::CreateStreams | State::DisplayResults)
}

/// What follows `read` bytes of a length.
fn length_read(read: u8, value: u32, emit: &mut dyn FnMut(Message)) -> Option<Expected> {
    if read < 4 {
        return Some(Expected::Length { read, value });
    }
    // The shortest text is an empty object.
    (2..=MAX_TEXT).contains(&value).then(|| {
        emit(Message::Length(value));
        Expected::Text { left: value, is_begin: true }
    })
}

fn text_left(left: u32) -> Expected {
    if left == 0 { Expected::State } else { Expected::Text { left, is_begin: false } }
}

fn error_left(left: u32) -> Expected {
    if left == 0 { Expected::State } else { Expected::Error { left } }
}

impl End {
    /// Passes bytes that were not captured; whether they are all JSON text.
    fn pass(&mut self, bytes: u32) -> bool {
        match self.expected {
            Expected::Text { left, .. } if bytes <= left => {
                self.expected = text_left(left - bytes);
                self.next_seq = self.next_seq.wrapping_add(bytes);
                true
            }
            _ => false,
        }
    }
}
