//! Packets: a header of four big-endian words, then payload or a control body
//! (draft-gg-udt-03 section 3, as UDT 4.11 has it).

use crate::handshake::Handshake;
use crate::loss_list::LossList;
use crate::sequence::{MessageNumber, Sequence};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of the IPv4 and UDP headers, which UDT's packet size (its MSS) counts, also over
/// IPv6.
pub const LOWER_HEADER_BYTES: usize = 28;
/// Control bodies that would be empty are padded to a word.
const PADDING_BYTES: usize = 4;

const CONTROL: u32 = 1 << 31;
const FIRST: u32 = 1 << 31;
const LAST: u32 = 1 << 30;
const IN_ORDER: u32 = 1 << 29;

/// A packet as it was received.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Packet<'a> {
    /// Data.
    Data(DataHeader, &'a [u8]),
    /// Control information.
    Control(ControlHeader, Control<'a>),
}

/// Header of a data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHeader {
    /// Sequence number.
    pub sequence: Sequence,
    /// What of a message it carries.
    pub part: MessagePart,
    /// Time of sending in us since the sender's socket was opened, modulo 2^32.
    pub timestamp_us: u32,
    /// Socket ID of the receiver.
    pub destination: u32,
}

/// What of a message a packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessagePart {
    /// It begins the message.
    pub first: bool,
    /// It ends the message.
    pub last: bool,
    /// The message is delivered after all before it.
    pub in_order: bool,
    /// The message.
    pub message: MessageNumber,
}

impl MessagePart {
    /// The second word of a header.
    pub(crate) const fn word(self) -> u32 {
        self.message.number()
            | if self.first { FIRST } else { 0 }
            | if self.last { LAST } else { 0 }
            | if self.in_order { IN_ORDER } else { 0 }
    }

    pub(crate) const fn from_word(word: u32) -> Self {
        MessagePart {
            first: word & FIRST != 0,
            last: word & LAST != 0,
            in_order: word & IN_ORDER != 0,
            message: MessageNumber::new(word),
        }
    }
}

/// Header of a control packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ControlHeader {
    /// Time of sending, us; UDT 4.11 sends 0.
    pub timestamp_us: u32,
    /// Socket ID of the receiver; 0 in the handshake of a client.
    pub destination: u32,
}

/// The control packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Control<'a> {
    /// Handshake (type 0).
    Handshake(Handshake),
    /// Keep-alive (1).
    KeepAlive,
    /// Acknowledgement (2).
    Ack(Ack),
    /// Negative acknowledgement (3): the packets that are missing.
    Nak(LossList<'a>),
    /// Congestion warning (4).
    CongestionWarning,
    /// Shutdown (5).
    Shutdown,
    /// Acknowledgement of an acknowledgement (6), with its number.
    Ack2(Sequence),
    /// Message drop (7): the message and its packets, inclusive.
    MessageDrop(MessageNumber, Sequence, Sequence),
    /// Error of the peer (8), with its code.
    PeerError(u32),
    /// User-defined (0x7FFF), with its subtype.
    UserDefined(u16, &'a [u8]),
}

/// An acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// All packets before this one have arrived.
    pub next: Sequence,
    /// Everything but a light acknowledgement has more.
    pub full: Option<FullAck>,
}

/// The part that a light acknowledgement lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullAck {
    /// Number of the acknowledgement, which ACK2 returns.
    pub number: Sequence,
    /// RTT and its variance, us.
    pub rtt_us: u32,
    /// Variance of the RTT, us.
    pub rtt_variance_us: u32,
    /// Free receive buffer, packets.
    pub window: u32,
    /// At most once per SYN: arrival rate and capacity, packets a second; zero: unknown.
    pub rates: Option<(u32, u32)>,
}

/// Why bytes are no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no UDT packet: {0}")]
pub struct Malformed(pub &'static str);

/// Word `index` of a packet or body; `None` beyond its end.
pub(crate) fn word(bytes: &[u8], index: usize) -> Option<u32> {
    let word = bytes.get(4 * index..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*word))
}

impl<'a> Packet<'a> {
    /// Parses a datagram.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let (Some(first), Some(second), Some(timestamp_us), Some(destination)) =
            (word(bytes, 0), word(bytes, 1), word(bytes, 2), word(bytes, 3))
        else {
            return Err(Malformed("shorter than a header"));
        };
        let body = &bytes[HEADER_BYTES..];
        if first & CONTROL == 0 {
            let sequence = Sequence::new(first);
            let part = MessagePart::from_word(second);
            let header = DataHeader { sequence, part, timestamp_us, destination };
            return Ok(Packet::Data(header, body));
        }
        let header = ControlHeader { timestamp_us, destination };
        Ok(Packet::Control(header, Control::parse(first, second, body)?))
    }
}

impl<'a> Control<'a> {
    fn parse(first: u32, info: u32, body: &'a [u8]) -> Result<Control<'a>, Malformed> {
        Ok(match (first >> 16) & 0x7FFF {
            0 => Control::Handshake(Handshake::parse(body)?),
            1 => Control::KeepAlive,
            2 => Control::Ack(Ack::parse(info, body)?),
            3 => Control::Nak(LossList::parse(body)?),
            4 => Control::CongestionWarning,
            5 => Control::Shutdown,
            6 => Control::Ack2(Sequence::new(info)),
            7 => {
                let (Some(first), Some(last)) = (word(body, 0), word(body, 1)) else {
                    return Err(Malformed("message drop without its packets"));
                };
                let message = MessageNumber::new(info);
                Control::MessageDrop(message, Sequence::new(first), Sequence::new(last))
            }
            8 => Control::PeerError(info),
            0x7FFF => Control::UserDefined((first & 0xFFFF) as u16, body),
            _ => return Err(Malformed("unknown control type")),
        })
    }

    /// Type and additional information.
    const fn words(&self) -> (u32, u32) {
        match self {
            Control::Handshake(_) => (0, 0),
            Control::KeepAlive => (1 << 16, 0),
            Control::Ack(ack) => {
                let number = match ack.full {
                    Some(full) => full.number.number(),
                    None => 0,
                };
                (2 << 16, number)
            }
            Control::Nak(_) => (3 << 16, 0),
            Control::CongestionWarning => (4 << 16, 0),
            Control::Shutdown => (5 << 16, 0),
            Control::Ack2(number) => (6 << 16, number.number()),
            Control::MessageDrop(message, ..) => (7 << 16, message.number()),
            Control::PeerError(code) => (8 << 16, *code),
            Control::UserDefined(subtype, _) => (0x7FFF << 16 | *subtype as u32, 0),
        }
    }

    /// Appends the packet to `out`.
    pub fn write(&self, header: ControlHeader, out: &mut Vec<u8>) {
        let (kind, info) = self.words();
        for word in [CONTROL | kind, info, header.timestamp_us, header.destination] {
            out.extend(word.to_be_bytes());
        }
        let start = out.len();
        let mut push = |word: u32| out.extend(word.to_be_bytes());
        match self {
            Control::Handshake(handshake) => handshake.words().for_each(push),
            Control::Ack(ack) => {
                push(ack.next.number());
                if let Some(full) = ack.full {
                    push(full.rtt_us);
                    push(full.rtt_variance_us);
                    push(full.window);
                    if let Some((arrival, capacity)) = full.rates {
                        push(arrival);
                        push(capacity);
                    }
                }
            }
            Control::MessageDrop(_, first, last) => {
                push(first.number());
                push(last.number());
            }
            Control::Nak(list) => out.extend(list.bytes()),
            Control::UserDefined(_, body) => out.extend(*body),
            _ => {}
        }
        if out.len() == start {
            out.extend([0; PADDING_BYTES]);
        }
    }
}

impl Ack {
    fn parse(number: u32, body: &[u8]) -> Result<Ack, Malformed> {
        let Some(next) = word(body, 0) else { return Err(Malformed("empty acknowledgement")) };
        let next = Sequence::new(next);
        let full = match (word(body, 1), word(body, 2), word(body, 3)) {
            (Some(rtt_us), Some(rtt_variance_us), Some(window)) => Some(FullAck {
                number: Sequence::new(number),
                rtt_us,
                rtt_variance_us,
                window,
                rates: word(body, 4).zip(word(body, 5)),
            }),
            _ => None,
        };
        Ok(Ack { next, full })
    }
}

impl DataHeader {
    /// The header.
    #[must_use]
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let words = [self.sequence.number(), self.part.word(), self.timestamp_us, self.destination];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(control: &Control<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        control.write(ControlHeader { timestamp_us: 7, destination: 9 }, &mut out);
        out
    }

    #[test]
    fn control_packets_are_those_of_the_library() {
        let ack = Ack { next: Sequence::new(5), full: None };
        assert_eq!(
            written(&Control::Ack(ack)),
            [0x80, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 5]
        );
        let padded = [0x80, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0];
        assert_eq!(written(&Control::Shutdown), padded);
        let unpadded = Packet::parse(&padded[..16]).unwrap();
        assert_eq!(unpadded, Packet::parse(&padded).unwrap());
    }

    proptest! {
        #[test]
        fn what_is_written_is_parsed(
            number: u32, rtt: u32, window: u32, rates in prop::option::of((0_u32.., 0_u32..)),
        ) {
            let number = Sequence::new(number);
            let full = FullAck { number, rtt_us: rtt, rtt_variance_us: !rtt, window, rates };
            for control in [
                Control::Ack(Ack { next: number, full: Some(full) }),
                Control::Ack(Ack { next: number, full: None }),
                Control::Ack2(number),
                Control::MessageDrop(MessageNumber::new(window), number, number.after(9)),
                Control::KeepAlive,
                Control::PeerError(rtt),
                Control::CongestionWarning,
            ] {
                let bytes = written(&control);
                let header = ControlHeader { timestamp_us: 7, destination: 9 };
                prop_assert_eq!(Packet::parse(&bytes), Ok(Packet::Control(header, control)));
            }
        }

        #[test]
        fn data_headers_are_parsed(first: u32, second: u32, third: u32, payload: Vec<u8>) {
            let part = MessagePart::from_word(second);
            let sequence = Sequence::new(first);
            let header =
                DataHeader { sequence, part, timestamp_us: third, destination: !third };
            let bytes = [&header.bytes()[..], &payload].concat();
            prop_assert_eq!(Packet::parse(&bytes), Ok(Packet::Data(header, &payload)));
        }

        #[test]
        fn any_bytes_are_refused_or_parsed(bytes: Vec<u8>) {
            let _ = Packet::parse(&bytes);
        }
    }
}
