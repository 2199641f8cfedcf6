//! Two captures of a made-up transfer over a path whose every packet's fate is known.

use capture::Seed;
use capture::conversations::Conversations;
use capture::dissect::{Layers, dissect};
use capture::file::Reader;
use capture_merge::{CapturedPackets, Merge, PacketFate, PacketRow, Transit, merge};
use std::collections::BTreeSet;

pub(crate) const MS: i64 = 1_000_000;
/// Where times begin.
pub(crate) const START: i64 = 1_700_000_000_000_000_000;

/// A packet with the fields that paths change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Segment {
    pub(crate) udp: bool,
    pub(crate) source: ([u8; 4], u16),
    pub(crate) destination: ([u8; 4], u16),
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) timestamps: Option<(u32, u32)>,
    /// Options besides timestamps, a multiple of four bytes.
    pub(crate) options: Vec<u8>,
    pub(crate) id: u16,
    pub(crate) ttl: u8,
    pub(crate) tos: u8,
    pub(crate) length: u16,
    /// What the payload is made of: what was sent, whatever numbers it gets.
    pub(crate) content: u32,
}

impl Segment {
    fn bytes(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        if let Some((value, echo)) = self.timestamps {
            options.extend([1, 1, 8, 10]);
            options.extend(value.to_be_bytes());
            options.extend(echo.to_be_bytes());
        }
        let header = if self.udp { 8 } else { 20 + options.len() };
        let total = 20 + header as u16 + self.length;
        let mut bytes = vec![0x45, self.tos];
        bytes.extend(total.to_be_bytes());
        bytes.extend(self.id.to_be_bytes());
        bytes.extend([0x40, 0, self.ttl, if self.udp { 17 } else { 6 }, 0, 0]);
        bytes.extend(self.source.0);
        bytes.extend(self.destination.0);
        bytes.extend(self.source.1.to_be_bytes());
        bytes.extend(self.destination.1.to_be_bytes());
        if self.udp {
            bytes.extend((8 + self.length).to_be_bytes());
            bytes.extend([0, 0]);
        } else {
            bytes.extend(self.seq.to_be_bytes());
            bytes.extend(self.ack.to_be_bytes());
            bytes.extend([(header as u8 / 4) << 4, self.flags]);
            bytes.extend(self.window.to_be_bytes());
            bytes.extend([0; 4]);
            bytes.extend(options);
        }
        let content = (0..u32::from(self.length)).map(|at| {
            let mixed = self.content.wrapping_add(at).wrapping_mul(0x9e37_79b1);
            (mixed >> 24) as u8
        });
        bytes.extend(content);
        bytes
    }
}

/// A packet on its way.
#[derive(Debug, Clone)]
pub(crate) struct Flight {
    pub(crate) from_a: bool,
    pub(crate) segment: Segment,
    /// True times.
    pub(crate) sent: i64,
    pub(crate) came: Option<i64>,
    pub(crate) came_again: Option<i64>,
}

/// A path and a transfer over it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub(crate) seed: u64,
    pub(crate) segments: u32,
    /// Delay of each direction, ns.
    pub(crate) delays: [i64; 2],
    /// Most that is added to a delay at random: packets overtake each other.
    pub(crate) jitter: i64,
    /// One packet of so many, 0 for none.
    pub(crate) loss: u64,
    pub(crate) duplicates: u64,
    /// Whether it has timestamps, and IP IDs that count up.
    pub(crate) timestamps: bool,
    pub(crate) ip_ids: bool,
    /// Segments that are sent at once, and one packet in A's capture.
    pub(crate) burst: u32,
}

pub(crate) const PATH: Path = Path {
    seed: 1,
    segments: 2000,
    delays: [20 * MS, 30 * MS],
    jitter: 0,
    loss: 0,
    duplicates: 0,
    timestamps: true,
    ip_ids: true,
    burst: 1,
};

pub(crate) const LENGTH: u16 = 1448;
const A: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);
const B: ([u8; 4], u16) = ([10, 0, 0, 2], 5201);

struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most.max(1)
    }

    fn one_of(&mut self, count: u64) -> bool {
        count > 0 && self.below(count) == 0
    }
}

impl Path {
    /// The transfer: a handshake, data from A, each lost segment retransmitted, an ACK of
    /// B for each that arrives.
    pub(crate) fn transfer(&self) -> Vec<Flight> {
        let mut draws = Draws(self.seed);
        let mut flights: Vec<Flight> = Vec::new();
        let mut ids = [0_u16, 30_000];
        let rtt = self.delays[0] + self.delays[1];
        let mut fly = |draws: &mut Draws, from_a: bool, sent: i64, segment: Segment, safe: bool| {
            let mut segment = segment;
            let id = &mut ids[usize::from(!from_a)];
            *id = id.wrapping_add(1);
            segment.id = if self.ip_ids { *id } else { 0 };
            segment.timestamps = self.timestamps.then_some(((sent - START) as u32 / 1_000_000, 7));
            let delay = self.delays[usize::from(!from_a)];
            let jitter = |draws: &mut Draws| draws.below(self.jitter as u64 + 1) as i64;
            let is_lost = !safe && draws.one_of(self.loss);
            let came = (!is_lost).then(|| sent + delay + jitter(draws));
            let again = came.filter(|_| draws.one_of(self.duplicates));
            let came_again = again.map(|came| came + 1 + jitter(draws));
            flights.push(Flight { from_a, segment, sent, came, came_again });
            came
        };
        let syn = Segment {
            udp: false,
            source: A,
            destination: B,
            seq: 999,
            ack: 0,
            flags: 2,
            window: 64_240,
            timestamps: None,
            options: vec![2, 4, 5, 180, 4, 2, 3, 3, 7, 1, 1, 1],
            id: 0,
            ttl: 64,
            tos: 2,
            length: 0,
            content: 0,
        };
        let there = Segment { flags: 16, ack: 5000, options: vec![], ..syn.clone() };
        fly(&mut draws, true, START, syn.clone(), true);
        let answer =
            Segment { source: B, destination: A, seq: 4999, ack: 1000, flags: 18, ..syn.clone() };
        fly(&mut draws, false, START + self.delays[0] + MS, answer.clone(), true);
        let ack = Segment { flags: 16, seq: 5000, options: vec![], ..answer };
        for number in 0..self.segments {
            let first_sent = START + rtt + 5 * MS + i64::from(number / self.burst) * MS / 2;
            let seq = 1000 + number * u32::from(LENGTH);
            let data = Segment { seq, length: LENGTH, content: seq, ..there.clone() };
            let mut sent = first_sent;
            let came = loop {
                // A retransmission that is lost, too, tests nothing new.
                if let Some(came) = fly(&mut draws, true, sent, data.clone(), sent > first_sent) {
                    break came;
                }
                sent += rtt + 3 * MS;
            };
            let ack = Segment { ack: seq + u32::from(LENGTH), ..ack.clone() };
            fly(&mut draws, false, came + MS / 20, ack, false);
        }
        // Both captures run on beyond the last packet that may be lost.
        let end = START + rtt * 5 + i64::from(self.segments) * MS;
        let last = 1000 + self.segments * u32::from(LENGTH);
        fly(&mut draws, true, end, Segment { seq: last, flags: 17, ..there }, true);
        fly(&mut draws, false, end + rtt, Segment { ack: last + 1, flags: 17, ..ack }, true);
        flights
    }
}

/// How the captures are made.
pub(crate) struct Captures<'a> {
    /// The clock of B, of true times.
    pub(crate) clock: &'a dyn Fn(i64) -> i64,
    /// What a middlebox does to a packet; whether it goes from A to B.
    pub(crate) middle: &'a dyn Fn(&mut Segment, bool),
    /// Snaplens of A and B.
    pub(crate) snaplens: [usize; 2],
    /// Data packets that arrive at B within 50 µs are one.
    pub(crate) gro: bool,
}

impl Default for Captures<'_> {
    fn default() -> Self {
        Captures { clock: &|at| at, middle: &|_, _| {}, snaplens: [100_000; 2], gro: false }
    }
}

/// A capture with, for each packet, the flights that are in it.
pub(crate) type Capture = Vec<(i64, Segment, Vec<usize>)>;

/// What happened, in the numbers of the packets.
#[derive(Debug, PartialEq)]
pub(crate) struct Truth {
    pub(crate) pairs: BTreeSet<(u32, u32)>,
    pub(crate) lost: [BTreeSet<u32>; 2],
    pub(crate) duplicates: [usize; 2],
}

/// Both captures of flights, sorted by time.
pub(crate) fn captures(path: &Path, flights: &[Flight], of: &Captures<'_>) -> [Capture; 2] {
    let mut both: [Capture; 2] = [Vec::new(), Vec::new()];
    for (number, flight) in flights.iter().enumerate() {
        let sender = usize::from(!flight.from_a);
        both[sender].push((flight.sent, flight.segment.clone(), vec![number]));
        let mut segment = flight.segment.clone();
        (of.middle)(&mut segment, flight.from_a);
        for came in [flight.came, flight.came_again].into_iter().flatten() {
            both[1 - sender].push((came, segment.clone(), vec![number]));
        }
    }
    for capture in &mut both {
        capture.sort_by_key(|it| it.0);
    }
    if path.burst > 1 {
        both[0] = merged(&both[0], path.burst as usize, 0);
    }
    if of.gro {
        both[1] = merged(&both[1], 40, 50_000);
    }
    for packet in &mut both[1] {
        packet.0 = (of.clock)(packet.0);
    }
    both
}

/// Data packets that follow each other in sequence and time as super-segments.
fn merged(capture: &Capture, most: usize, within: i64) -> Capture {
    let mut out: Capture = Vec::new();
    for (time, segment, flights) in capture {
        if let Some((last_time, last, of_last)) = out.last_mut()
            && segment.length > 0
            && last.length > 0
            && last.source == segment.source
            && last.timestamps == segment.timestamps
            && last.seq + u32::from(last.length) == segment.seq
            && time - *last_time <= within
            && of_last.len() < most
        {
            last.length += segment.length;
            of_last.extend(flights);
            continue;
        }
        out.push((*time, segment.clone(), flights.clone()));
    }
    out
}

/// What really happened, from the flights in the captures.
pub(crate) fn truth(flights: &[Flight], both: &[Capture; 2]) -> Truth {
    let mut truth = Truth {
        pairs: BTreeSet::new(),
        lost: [BTreeSet::new(), BTreeSet::new()],
        duplicates: [0; 2],
    };
    let numbers = both.each_ref().map(|capture| {
        let mut numbers = vec![Vec::new(); flights.len()];
        for (number, (_, _, of)) in (1..).zip(capture) {
            of.iter().for_each(|flight| numbers[*flight].push(number));
        }
        numbers
    });
    for (place, flight) in flights.iter().enumerate() {
        let [a, b] = [&numbers[0][place], &numbers[1][place]];
        let sender = usize::from(!flight.from_a);
        match (a.first(), b.first()) {
            (Some(a), Some(b)) => {
                truth.pairs.insert((*a, *b));
            }
            (Some(number), None) | (None, Some(number)) => {
                truth.lost[sender].insert(*number);
            }
            (None, None) => {}
        }
        truth.duplicates[sender] += (a.len() + b.len()).saturating_sub(2);
    }
    truth
}

/// The same of a merge.
pub(crate) fn found(merge: &Merge) -> Truth {
    let rows = |fates: &'static [PacketFate]| {
        merge.rows.iter().filter(move |row| fates.contains(&row.fate))
    };
    let pairs = rows(&[PacketFate::Delivered]).filter_map(|row| row.a.zip(row.b)).collect();
    let of = |transit: Transit| {
        let lost = rows(&[PacketFate::Lost, PacketFate::PartlyLost]);
        let number = |row: &PacketRow| if transit == Transit::AToB { row.a } else { row.b };
        lost.filter(|row| row.transit == transit).filter_map(number).collect()
    };
    let duplicates = Transit::ALL.map(|transit| {
        rows(&[PacketFate::Duplicated]).filter(|row| row.transit == transit).count()
    });
    Truth { pairs, lost: Transit::ALL.map(of), duplicates }
}

/// A pcap file of raw IP.
pub(crate) fn file(capture: &Capture, snaplen: usize) -> Vec<u8> {
    let packets = capture.iter().map(|(time, segment, _)| (*time as u64, segment.bytes()));
    raw_file(packets, snaplen)
}

pub(crate) fn raw_file(packets: impl Iterator<Item = (u64, Vec<u8>)>, snaplen: usize) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_3c4d_u32.to_le_bytes());
    for word in [0x0004_0002_u32, 0, 0, 262_144, 101] {
        file.extend(word.to_le_bytes());
    }
    for (time, bytes) in packets {
        let captured = bytes.len().min(snaplen);
        let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
        for word in [seconds as u32, rest as u32, captured as u32, bytes.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&bytes[..captured]);
    }
    file
}

/// The packets of a file.
pub(crate) fn read(file: &[u8]) -> CapturedPackets {
    let mut reader = Reader::new(file).unwrap();
    let mut layers = Layers::new();
    let mut conversations = Conversations::new(Seed([1, 2]));
    let mut captured = CapturedPackets::new();
    while let Ok(Some(packet)) = reader.next_packet() {
        dissect(packet.link, packet.data, packet.original_len, &mut layers);
        let segment = layers.tcp(packet.data);
        let stream = conversations.add(&packet, &layers, segment.as_ref());
        captured.add(&packet, &layers, stream.zip(segment.as_ref()));
    }
    captured
}

/// Captures of a path, merged, with the truth.
pub(crate) fn run(path: &Path, of: &Captures<'_>) -> (Merge, Truth) {
    let flights = path.transfer();
    let both = captures(path, &flights, of);
    let files = [0, 1].map(|side| read(&file(&both[side], of.snaplens[side])));
    let [a, b] = files;
    (merge(a, b, false, &|| false).unwrap(), truth(&flights, &both))
}

/// Packets of each file are counted once.
pub(crate) fn assert_adds_up(merge: &Merge) {
    for counts in merge.counts {
        let sum = counts.matched
            + counts.partly_lost
            + counts.lost
            + counts.duplicated
            + counts.only_here
            + counts.outside
            + counts.without_partner
            + counts.not_compared;
        assert_eq!(sum, counts.packets, "{counts:?}");
    }
}
