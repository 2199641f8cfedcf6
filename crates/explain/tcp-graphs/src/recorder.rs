//! Records a connection packet by packet: relative numbers, windows, goodput.

use crate::bins::{Acks, Bin, Bins, Data, Span};
use crate::columns::{self, Encoded};
use crate::in_flight::{InFlight, Progress};
use crate::marks::Mark;
use crate::packets::{KeptPacket, MAX_BLOCKS, PacketStore};
use capture::dissect::{PacketDirection, TcpFlags, TcpSegment};
use runs::{PacketRun, RunSet};
use tcp_analysis::{Connection, PacketAnalysis};

/// Runs of received data that are told apart; beyond it, SACK counts no more.
const MAX_RUNS: usize = 4096;

/// How much is kept of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bins of each direction.
    pub bins: usize,
    /// Single packets.
    pub packets: usize,
}

/// Sequence numbers of a direction without the wrap at 4 GiB, relative to the first one.
#[derive(Debug, Clone, Copy, Default)]
struct Relative {
    /// The last number and its relative value.
    last: Option<(u32, i64)>,
}

impl Relative {
    /// The relative value of a number within 2 GiB of the greatest so far. The first one
    /// that is asked for has the value `first`.
    #[inline]
    fn of(&mut self, number: u32, first: i64) -> i64 {
        let (last, value) = *self.last.get_or_insert((number, first));
        let distance = i64::from(number.wrapping_sub(last) as i32);
        let relative = value.saturating_add(distance);
        if distance > 0 {
            self.last = Some((number, relative));
        }
        relative
    }
}

/// The data of a direction and the ACKs that it gets.
#[derive(Debug, Clone)]
struct Half {
    numbers: Relative,
    /// What was acknowledged or reported by SACK.
    received: RunSet,
    bins: Bins,
}

impl Half {
    fn new(limits: Limits) -> Self {
        Half {
            numbers: Relative::default(),
            received: RunSet::default(),
            bins: Bins::new(limits.bins),
        }
    }

    /// Bytes up to `ack` and in SACK `blocks` that were not known to be received.
    fn deliver(&mut self, ack: i64, blocks: &[(i64, i64)]) -> u64 {
        let before = self.received.packets();
        // The first byte has the number 1.
        let unsigned = |number: i64| u64::try_from(number).unwrap_or(0).max(1);
        self.received.insert(PacketRun::new(1, unsigned(ack)));
        for (left, right) in blocks {
            if self.received.iter().len() < MAX_RUNS {
                self.received.insert(PacketRun::new(unsigned(*left), unsigned(*right)));
            }
        }
        self.received.packets() - before
    }
}

/// Records the packets of a connection.
#[derive(Debug, Clone)]
pub struct Recorder {
    start_ns: u64,
    carries: [bool; 2],
    halves: [Half; 2],
    in_flight: InFlight,
    packets: PacketStore,
}

impl Recorder {
    /// Times are relative to `start_ns`, the first packet of the capture; `is_sorted` says
    /// that none runs backwards. Bins are recorded of the directions that carry data.
    #[must_use]
    pub fn new(start_ns: u64, is_sorted: bool, carries: [bool; 2], limits: Limits) -> Self {
        Recorder {
            start_ns,
            carries,
            halves: [Half::new(limits), Half::new(limits)],
            in_flight: InFlight::new(is_sorted),
            packets: PacketStore::new(limits.packets),
        }
    }

    /// Records the connection's next packet, after its analysis.
    pub fn add(
        &mut self,
        connection: &Connection,
        number: u64,
        time_ns: u64,
        segment: &TcpSegment<'_>,
        found: &PacketAnalysis,
    ) {
        let side = segment.direction.index();
        let flags = segment.flags;
        let time_ns = relative_time(time_ns, self.start_ns);
        let packets = Span::of(i64::try_from(number).unwrap_or(i64::MAX));
        let [a, b] = &mut self.halves;
        let (own, peer) = if segment.direction == PacketDirection::AToB { (a, b) } else { (b, a) };

        let first = i64::from(!flags.has(TcpFlags::SYN));
        let seq = own.numbers.of(segment.seq, first);
        let end = seq.saturating_add(i64::from(segment.next_seq().wrapping_sub(segment.seq)));
        let marks = [Mark::of_data(found), Mark::of_ack(found)];
        if end > seq && self.carries[side] {
            let mut bin = Bin {
                data: Some(Data {
                    packets,
                    segments: 1,
                    bytes: u64::from(segment.payload_len),
                    seq: Span::between(seq, end),
                }),
                ..Bin::default()
            };
            if let Some(mark) = marks[0] {
                bin.marks[mark as usize] = 1;
                bin.marked = Some(Span::of(seq));
            }
            own.bins.at(time_ns).merge(&bin);
        }

        let scale =
            if flags.has(TcpFlags::SYN) { 0 } else { connection.window_shift(segment.direction) };
        let window = u64::from(segment.window) << scale;
        let has_ack = flags.has(TcpFlags::ACK) && !flags.has(TcpFlags::RST);
        let ack = has_ack.then(|| peer.numbers.of(segment.ack, 1));
        let mut sacked = [(0, 0); MAX_BLOCKS];
        let mut block_count = 0;
        if let Some(ack) = ack {
            let options = segment.options();
            for ((left, right), to) in options.sack_blocks().iter().zip(&mut sacked) {
                // Blocks are near the ACK, whatever was sent.
                let near = |edge: u32| {
                    ack.saturating_add(i64::from(edge.wrapping_sub(segment.ack) as i32))
                };
                *to = (near(*left), near(*right));
                block_count += 1;
            }
            if self.carries[1 - side] {
                let blocks = &sacked[..usize::from(block_count)];
                let delivered = peer.deliver(ack, blocks);
                let bytes = i64::try_from(window).unwrap_or(i64::MAX);
                let edges = blocks.iter().map(|(left, right)| Span::between(*left, *right));
                let mut bin = Bin {
                    acks: Some(Acks {
                        packets,
                        segments: 1,
                        ack: Span::of(ack),
                        edge: Span::of(ack.saturating_add(bytes)),
                        window: Span::of(bytes),
                        delivered,
                    }),
                    sacked: edges.reduce(Span::cover),
                    rtt: found
                        .acknowledges
                        .map(|(_, rtt)| Span::of(i64::try_from(rtt).unwrap_or(i64::MAX))),
                    ..Bin::default()
                };
                if let Some(mark) = marks[1] {
                    bin.marks[mark as usize] = 1;
                    bin.marked = Some(Span::of(ack));
                }
                peer.bins.at(time_ns).merge(&bin);
            }
        }
        let ordinal = self.packets.next_ordinal();
        if end > seq {
            self.progress(Progress { time_ns, ordinal, side, is_sent: true, to: end });
        }
        if let Some(ack) = ack {
            self.progress(Progress { time_ns, ordinal, side: 1 - side, is_sent: false, to: ack });
        }
        self.packets.add(KeptPacket {
            number,
            ordinal,
            time_ns,
            side: side as u8,
            tcp_flags: flags.0,
            flags: found.flags,
            marks,
            seq,
            len: segment.payload_len,
            ack,
            window,
            in_flight: found.bytes_in_flight,
            rtt_ns: found.acknowledges.map(|(_, rtt)| rtt),
            sacked,
            block_count,
        });
    }

    #[inline]
    fn progress(&mut self, progress: Progress) {
        if self.carries[progress.side]
            && let Some(known) = self.in_flight.add(progress)
        {
            self.record_in_flight(known);
        }
    }

    fn record_in_flight(&mut self, (progress, bytes): (Progress, i64)) {
        let bin = self.halves[progress.side].bins.at(progress.time_ns);
        bin.merge(&Bin { in_flight: Some(Span::of(bytes)), ..Bin::default() });
    }

    /// What was recorded.
    #[must_use]
    pub fn finish(mut self) -> Graphs {
        while let Some(next) = self.in_flight.rest() {
            if let Some(known) = next {
                self.record_in_flight(known);
            }
        }
        self.packets.finish();
        let bins = self.halves.map(|mut half| {
            half.bins.settle();
            half.bins
        });
        Graphs { bins, packets: self.packets }
    }
}

/// Time since `start_ns` in ns; negative where times run backwards.
fn relative_time(time_ns: u64, start_ns: u64) -> i64 {
    let distance = i64::try_from(time_ns.abs_diff(start_ns)).unwrap_or(i64::MAX);
    if time_ns < start_ns { -distance } else { distance }
}

/// A connection at both levels of detail.
#[derive(Debug, Clone)]
pub struct Graphs {
    bins: [Bins; 2],
    packets: PacketStore,
}

impl Graphs {
    /// The bins of a direction's data.
    #[must_use]
    pub fn bins(&self, direction: PacketDirection) -> &Bins {
        &self.bins[direction.index()]
    }

    /// The single packets, in order of the capture.
    pub fn packets(&self) -> impl Iterator<Item = &KeptPacket> + Clone {
        self.packets.iter()
    }

    /// Packets of the connection, kept or not.
    #[must_use]
    pub fn packet_count(&self) -> u64 {
        self.packets.count()
    }

    /// Both levels in at most `most` bytes, as far as halving the detail again and again
    /// can achieve that: a few kilobytes always fit.
    #[must_use]
    pub fn encode(mut self, most: usize) -> Encoded {
        // The bins come first: they are complete. Packets get what is left.
        let bins = loop {
            let bins = self.bins.each_ref().map(columns::of_bins);
            if bins.iter().map(Vec::len).sum::<usize>() <= most / 2 {
                break bins;
            }
            let [a, b] = &mut self.bins;
            let wider = if a.len() >= b.len() { a } else { b };
            if !wider.coarsen() {
                break bins;
            }
        };
        let left = most.saturating_sub(bins.iter().map(Vec::len).sum());
        let packets = loop {
            let packets = [0, 1].map(|side| columns::of_packets(&self, side));
            if packets.iter().map(Vec::len).sum::<usize>() <= left || !self.packets.thin() {
                break packets;
            }
        };
        Encoded {
            width_ns: self.bins.each_ref().map(Bins::width_ns),
            bins,
            packets,
            kept: self.packets.iter().count(),
            packet_count: self.packets.count(),
        }
    }
}
