//! Packets that a mirror port delivers twice.
//!
//! A copy is the same packet: addresses, ports, IP identification, numbers, flags, window, options,
//! length and checksum; its TTL may differ where the mirror is beyond a router. A retransmission has
//! another identification (Linux and Windows count it), and comes a round trip later. Where the
//! identification is always 0 (RFC 6864 allows it with DF) or there is none (IPv6), data tells by
//! its timestamps and the time; pure ACKs that repeat are then the same bit by bit, so they count as
//! copies only where nearly every one of them repeats. So does a network that duplicates a packet
//! now and then: its copies arrive at the receiver, and belong to the analysis.

use capture::dissect::{PacketDirection, TcpFlags, TcpSegment};

/// The longest delay of a mirror, in ns.
const MAX_DELAY_NS: u64 = 5_000_000;

/// The longest delay where neither identification nor RTT tell, in ns.
const SHORT_DELAY_NS: u64 = 500_000;

/// Packets that are remembered: those of 5 ms at 3 million a second.
const REMEMBERED: usize = 1 << 14;

/// A mirror copies at least this share of a direction's packets, though it may lose some; and this
/// share where pure ACKs are all that shows it.
const MIRRORED: f64 = 0.3;
const MIRRORED_ACKS: f64 = 0.8;

/// Packets from which a direction's share says something by itself.
const MIN_PACKETS: u32 = 8;

/// What makes two packets the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Identity {
    stream: u32,
    is_b: bool,
    id: u16,
    seq: u32,
    ack: u32,
    flags: u16,
    window: u16,
    checksum: u16,
    length: u32,
    options: u64,
}

impl Identity {
    #[inline]
    fn of(stream: u32, segment: &TcpSegment<'_>) -> Self {
        // FNV-1a.
        let options =
            segment.option_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
        Identity {
            stream,
            is_b: segment.direction == PacketDirection::BToA,
            id: segment.ip_id,
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags.0,
            window: segment.window,
            checksum: segment.checksum,
            length: segment.payload_len,
            options,
        }
    }

    #[inline]
    fn place(&self) -> usize {
        let words = [
            u64::from(self.stream) << 17 | u64::from(self.is_b) << 16 | u64::from(self.id),
            u64::from(self.seq) << 32 | u64::from(self.ack),
            u64::from(self.length) << 16 | u64::from(self.window),
            self.options,
        ];
        let mixed = words.into_iter().fold(0_u64, |hash, word| {
            (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
        });
        (mixed >> 50) as usize % REMEMBERED
    }
}

/// One direction of a stream.
#[derive(Debug, Clone, Copy, Default)]
struct Half {
    last_id: u16,
    /// Whether two packets in a row had the same identification.
    keeps_id: bool,
    packets: u32,
    copies: u32,
    /// Copies that nothing but a mirror makes.
    certain: u32,
    is_mirrored: bool,
}

/// Looks for copies.
#[derive(Debug, Default)]
pub(super) struct CopyFinder {
    remembered: Vec<(Identity, u64)>,
    halves: Vec<[Half; 2]>,
    marked: Marked,
}

/// A bit for each packet.
#[derive(Debug, Default)]
struct Marked(Vec<u64>);

impl Marked {
    fn set(&mut self, packet: u64) {
        let Ok(word) = usize::try_from(packet / 64) else { return };
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        if let Some(bits) = self.0.get_mut(word) {
            *bits |= 1 << (packet % 64);
        }
    }

    #[inline]
    fn has(&self, packet: u64) -> bool {
        let word = usize::try_from(packet / 64).ok().and_then(|word| self.0.get(word));
        word.is_some_and(|bits| bits >> (packet % 64) & 1 == 1)
    }
}

impl CopyFinder {
    /// Takes a segment; returns whether it may be a copy.
    #[inline]
    pub(super) fn add(
        &mut self,
        stream: u32,
        packet: u64,
        time_ns: u64,
        segment: &TcpSegment<'_>,
        rtt_ns: Option<u64>,
    ) -> bool {
        if self.remembered.is_empty() {
            self.remembered.resize(REMEMBERED, Default::default());
        }
        let at = stream as usize;
        if self.halves.len() <= at {
            self.halves.resize(at + 1, Default::default());
        }
        let identity = Identity::of(stream, segment);
        let place = identity.place();
        let (Some(slot), Some(halves)) = (self.remembered.get_mut(place), self.halves.get_mut(at))
        else {
            return false;
        };
        let half = &mut halves[segment.direction.index()];
        let delay = time_ns.abs_diff(slot.1);
        let is_same = slot.0 == identity && slot.1 != 0 && delay <= MAX_DELAY_NS;
        if is_same && let Some(is_certain) = half.judge(segment, delay, rtt_ns) {
            half.copies = half.copies.saturating_add(1);
            half.certain = half.certain.saturating_add(u32::from(is_certain));
            self.marked.set(packet);
            return true;
        }
        *slot = (identity, time_ns);
        half.keeps_id |= half.packets > 0 && half.last_id == segment.ip_id;
        half.last_id = segment.ip_id;
        half.packets = half.packets.saturating_add(1);
        false
    }

    pub(super) fn finish(self) -> Copies {
        let mut halves = self.halves;
        let all = || halves.iter().flatten();
        let certain: u64 = all().map(|half| u64::from(half.certain)).sum();
        let packets: u64 = all().map(|half| u64::from(half.packets)).sum();
        let is_mirrored = certain as f64 >= MIRRORED * packets as f64;
        for half in halves.iter_mut().flatten() {
            half.is_mirrored = half.is_mirrored(is_mirrored);
        }
        if halves.iter().flatten().any(|half| half.is_mirrored) {
            Copies { halves, marked: self.marked }
        } else {
            Copies::default()
        }
    }
}

impl Half {
    /// Whether the same packet once more is a copy, and certainly one; `None` if it may have been
    /// sent twice.
    fn judge(&self, segment: &TcpSegment<'_>, delay: u64, rtt_ns: Option<u64>) -> Option<bool> {
        if segment.ip_id != 0 && !self.keeps_id {
            return Some(true);
        }
        // Sooner than an answer could come back.
        let most = rtt_ns.map_or(SHORT_DELAY_NS, |rtt| rtt / 2);
        if delay >= most {
            return None;
        }
        let takes_space = segment.payload_len > 0
            || segment.flags.has(TcpFlags::SYN.with(TcpFlags::FIN).with(TcpFlags::RST));
        Some(takes_space)
    }

    fn is_mirrored(&self, is_capture_mirrored: bool) -> bool {
        let (packets, copies) = (f64::from(self.packets), f64::from(self.copies));
        if copies == 0.0 {
            return false;
        }
        let least = if self.certain > 0 { MIRRORED } else { MIRRORED_ACKS };
        copies >= least * packets && (self.packets >= MIN_PACKETS || is_capture_mirrored)
    }
}

/// The copies of a capture.
#[derive(Debug, Default)]
pub(super) struct Copies {
    halves: Vec<[Half; 2]>,
    marked: Marked,
}

impl Copies {
    pub(super) fn is_empty(&self) -> bool {
        self.halves.is_empty()
    }

    #[inline]
    pub(super) fn has(&self, stream: u32, direction: PacketDirection, packet: u64) -> bool {
        let halves = self.halves.get(stream as usize);
        halves.is_some_and(|halves| halves[direction.index()].is_mirrored)
            && self.marked.has(packet)
    }

    pub(super) fn count(&self, stream: u32) -> u64 {
        self.halves.get(stream as usize).map_or(0, left_out)
    }
}

fn left_out(halves: &[Half; 2]) -> u64 {
    halves.iter().filter(|half| half.is_mirrored).map(|half| u64::from(half.copies)).sum()
}
