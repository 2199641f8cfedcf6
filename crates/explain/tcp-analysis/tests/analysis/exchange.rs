//! A made-up exchange of segments between two hosts, as raw IP packets.

use capture::LinkType;
use capture::conversations::StreamNumber;
use capture::dissect::{Layers, PacketDirection, TcpFlags, dissect};
use tcp_analysis::{Connection, PacketAnalysis, Rules, Streams};

/// A segment to be sent; `a` sends it unless `from_b`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sent {
    pub(crate) from_b: bool,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) window: u16,
    pub(crate) flags: u16,
    pub(crate) len: u16,
    pub(crate) options: Vec<u8>,
}

pub(crate) const ACK: u16 = TcpFlags::ACK.0;
pub(crate) const SYN: u16 = TcpFlags::SYN.0;
pub(crate) const FIN: u16 = TcpFlags::FIN.0;

/// The options of a SYN: MSS 1000, SACK permitted, window scale.
pub(crate) fn syn_options(shift: u8) -> Vec<u8> {
    vec![2, 4, 3, 232, 4, 2, 3, 3, shift, 1, 1, 1]
}

pub(crate) fn sack(blocks: &[(u32, u32)]) -> Vec<u8> {
    let mut option = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
    for (left, right) in blocks {
        option.extend(left.to_be_bytes());
        option.extend(right.to_be_bytes());
    }
    option
}

pub(crate) fn timestamps(value: u32, echo: u32) -> Vec<u8> {
    let mut option = vec![1, 1, 8, 10];
    option.extend(value.to_be_bytes());
    option.extend(echo.to_be_bytes());
    option
}

impl Sent {
    pub(crate) fn packet(&self) -> Vec<u8> {
        let header = 20 + self.options.len();
        let total = (20 + header + usize::from(self.len)) as u16;
        let (from, to) = if self.from_b { (2, 1) } else { (1, 2) };
        let mut bytes = vec![0x45, 0];
        bytes.extend(total.to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        let ports: [u16; 2] = if self.from_b { [5201, 40000] } else { [40000, 5201] };
        ports.iter().for_each(|port| bytes.extend(port.to_be_bytes()));
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        bytes.extend((self.flags | ((header / 4) << 12) as u16).to_be_bytes());
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&self.options);
        bytes.extend(std::iter::repeat_n(0, usize::from(self.len)));
        bytes
    }
}

/// One connection to which segments are added.
pub(crate) struct Exchange {
    streams: Streams,
    layers: Layers,
    number: u64,
    /// Time of the next segment, in µs.
    pub(crate) at_us: u64,
    /// Added to all sequence numbers.
    pub(crate) shift: u32,
}

impl Exchange {
    pub(crate) fn new(rules: Rules) -> Self {
        Exchange {
            streams: Streams::new(rules),
            layers: Layers::new(),
            number: 0,
            at_us: 1_000_000,
            shift: 0,
        }
    }

    /// After a handshake over 40 ms, captured at A, with numbers 1000 (A) and 5000 (B).
    pub(crate) fn open(rules: Rules) -> Self {
        let mut exchange = Exchange::new(rules);
        exchange.handshake(2);
        exchange
    }

    pub(crate) fn handshake(&mut self, scale: u8) {
        let options = syn_options(scale);
        self.send(Sent {
            seq: 1000,
            window: 1000,
            flags: SYN,
            options: options.clone(),
            ..Sent::default()
        });
        self.at_us += 40_000;
        self.send(Sent {
            from_b: true,
            seq: 5000,
            ack: 1001,
            // Another one than later, or the next ACK would be a duplicate.
            window: 2000,
            flags: SYN | ACK,
            options,
            ..Sent::default()
        });
        self.at_us += 20;
        self.data(1001, 0);
        self.ack(1001, 1000);
    }

    pub(crate) fn send(&mut self, mut sent: Sent) -> PacketAnalysis {
        sent.seq = sent.seq.wrapping_add(self.shift);
        if sent.flags & ACK != 0 {
            sent.ack = sent.ack.wrapping_add(self.shift);
        }
        let bytes = sent.packet();
        self.number += 1;
        dissect(LinkType::RAW, &bytes, bytes.len() as u32, &mut self.layers);
        let segment = self.layers.tcp(&bytes).unwrap();
        let first = self.number == 1;
        let stream = StreamNumber { number: 0, is_new: first, reuses_ports: false };
        let time_ns = self.at_us * 1000;
        self.at_us += 10;
        self.streams.add(stream, self.number, time_ns, &segment).unwrap()
    }

    /// A sends `len` bytes.
    pub(crate) fn data(&mut self, seq: u32, len: u16) -> PacketAnalysis {
        self.send(Sent { seq, ack: 5001, window: 1000, flags: ACK, len, ..Sent::default() })
    }

    /// B acknowledges.
    pub(crate) fn ack(&mut self, ack: u32, window: u16) -> PacketAnalysis {
        self.ack_with(ack, window, Vec::new())
    }

    pub(crate) fn ack_with(&mut self, ack: u32, window: u16, options: Vec<u8>) -> PacketAnalysis {
        self.send(Sent {
            from_b: true,
            seq: 5001,
            ack,
            window,
            flags: ACK,
            options,
            ..Sent::default()
        })
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.streams.get(0).unwrap().1
    }

    pub(crate) fn sent_by_a(&self) -> PacketDirection {
        PacketDirection::AToB
    }
}
