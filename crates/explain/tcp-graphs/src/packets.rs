//! Which single packets are kept.
//!
//! Each packet has a rank, and whenever there are too many, the level rises and those of
//! lower ranks go. What counts as "every n-th" is a power of two of a running number, so a
//! packet's rank never changes and those that remain are spread evenly:
//!
//! | packets | rank |
//! |---|---|
//! | runs of 32 consecutive ones | number of the run, times it can be halved, at most 11 |
//! | the eight before and after an event | 8 less than the event |
//! | duplicate ACKs, full windows | 16, and 2 for each time that the event's number can be halved; no neighbours |
//! | retransmissions, losses, zero windows | 20, likewise |
//! | timeouts, tail loss probes | 28, likewise |
//! | the first and last 32, the first 64 of SYN, FIN and RST | 255 |

use crate::marks::Mark;
use std::collections::VecDeque;
use tcp_analysis::Flags;

/// SACK blocks that an option has room for.
pub const MAX_BLOCKS: usize = 4;

/// Packets of a run that is kept as a whole.
const RUN: u64 = 32;
/// Packets kept before and after an event.
const AROUND: usize = 8;
/// Packets kept at either end of a connection.
const ENDS: usize = 32;
/// SYN, FIN and RST kept in any case.
const CONTROLS: u32 = 64;
const ALWAYS: u8 = 255;

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptPacket {
    /// Its number in the file.
    pub number: u64,
    /// Its number in the connection, from 0.
    pub ordinal: u64,
    /// Time since the first packet of the file, in ns.
    pub time_ns: i64,
    /// 0 from side A, 1 from side B.
    pub side: u8,
    /// TCP's flags as sent.
    pub tcp_flags: u16,
    /// Flags by Wireshark's rules.
    pub flags: Flags,
    /// Events of its data and of its ACK.
    pub marks: [Option<Mark>; 2],
    /// Relative sequence number.
    pub seq: i64,
    /// Payload in bytes.
    pub len: u32,
    /// Relative acknowledgement number, if it has one.
    pub ack: Option<i64>,
    /// Advertised window in bytes.
    pub window: u64,
    /// Bytes in flight after it, by Wireshark's rules.
    pub in_flight: Option<u32>,
    /// RTT that its ACK shows, in ns.
    pub rtt_ns: Option<u64>,
    /// SACK blocks, as relative sequence numbers.
    pub sacked: [(i64, i64); MAX_BLOCKS],
    /// How many there are.
    pub block_count: u8,
}

impl KeptPacket {
    /// SACK blocks.
    #[must_use]
    pub fn blocks(&self) -> &[(i64, i64)] {
        &self.sacked[..usize::from(self.block_count).min(MAX_BLOCKS)]
    }
}

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Minor,
    Event,
    Major,
}

impl Class {
    fn of(packet: &KeptPacket) -> Option<Class> {
        let each = packet.marks.into_iter().flatten().map(|mark| match mark {
            Mark::Timeout | Mark::TailLossProbe => Class::Major,
            Mark::DuplicateAck | Mark::WindowFull => Class::Minor,
            _ => Class::Event,
        });
        each.max_by_key(|class| *class as u8)
    }
}

/// The packets kept of a connection.
#[derive(Debug, Clone)]
pub(crate) struct PacketStore {
    most: usize,
    level: u8,
    kept: Vec<(u8, KeptPacket)>,
    /// The last packets, whose ranks events behind them can raise.
    recent: VecDeque<(u8, KeptPacket)>,
    count: u64,
    events: [u64; 3],
    controls: u32,
    /// How many packets after the last event are still to keep, and their rank.
    after: (usize, u8),
}

/// A number's rank: the class's, and `step` for each time that it can be halved.
fn rank(first: u8, step: u32, number: u64) -> u8 {
    let halved = if number == 0 { 64 } else { number.trailing_zeros() };
    u8::try_from(u32::from(first) + step * halved).unwrap_or(ALWAYS - 1).min(ALWAYS - 1)
}

impl PacketStore {
    pub(crate) fn new(most: usize) -> Self {
        PacketStore {
            most,
            level: 0,
            kept: Vec::new(),
            recent: VecDeque::with_capacity(ENDS + 1),
            count: 0,
            events: [0; 3],
            controls: 0,
            after: (0, 0),
        }
    }

    /// The number in the connection that the next packet gets.
    pub(crate) fn next_ordinal(&self) -> u64 {
        self.count
    }

    pub(crate) fn add(&mut self, packet: KeptPacket) {
        let number = packet.ordinal;
        let is_control = packet.tcp_flags & 0x007 != 0 && self.controls < CONTROLS;
        self.count = number + 1;
        let mut own = rank(0, 1, number / RUN).min(11);
        if self.after.0 > 0 {
            self.after.0 -= 1;
            own = own.max(self.after.1);
        }
        if is_control {
            self.controls += 1;
            own = ALWAYS;
        } else if number < ENDS as u64 {
            own = ALWAYS;
        } else if let Some(class) = Class::of(&packet) {
            let event = &mut self.events[class as usize];
            *event += 1;
            let first = match class {
                Class::Minor => 16,
                Class::Event => 20,
                Class::Major => 28,
            };
            own = own.max(rank(first, 2, *event));
            if class != Class::Minor {
                let around = rank(first - 8, 2, *event);
                self.after = (AROUND, around);
                for (before, _) in self.recent.iter_mut().rev().take(AROUND) {
                    *before = (*before).max(around);
                }
            }
        }
        self.recent.push_back((own, packet));
        if self.recent.len() > ENDS {
            let oldest = self.recent.pop_front();
            self.keep(oldest);
        }
    }

    fn keep(&mut self, packet: Option<(u8, KeptPacket)>) {
        let Some(packet) = packet.filter(|(rank, _)| *rank >= self.level) else { return };
        self.kept.push(packet);
        while self.kept.len() > self.most && self.thin() {}
    }

    /// Raises the level once. Whether that was possible.
    pub(crate) fn thin(&mut self) -> bool {
        if self.level == ALWAYS {
            return false;
        }
        self.level += 1;
        let level = self.level;
        self.kept.retain(|(rank, _)| *rank >= level);
        true
    }

    /// Keeps the last packets, too.
    pub(crate) fn finish(&mut self) {
        while let Some((_, packet)) = self.recent.pop_front() {
            self.kept.push((ALWAYS, packet));
        }
    }

    /// The packets in order of the capture.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &KeptPacket> + Clone {
        self.kept.iter().map(|(_, packet)| packet)
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}
