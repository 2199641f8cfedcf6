//! The payload of one TCP stream or UDP conversation in order, as "Follow Stream" shows it.
//!
//! Of TCP, what arrives out of order waits until the gap before it closes, or until the other end
//! acknowledges it: then the gap is of bytes that were not captured. What waits is bounded.

use capture::dissect::{PacketDirection, TcpFlags, TcpSegment};
use std::collections::VecDeque;

/// Most bytes and segments of a direction that wait.
const MAX_WAITING_BYTES: usize = 1 << 20;
const MAX_WAITING: usize = 1024;

/// The largest distance of two sequence numbers of which one is taken to be the later.
const HALF: u32 = 1 << 31;

/// A part of what one end sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Who sent it.
    pub direction: PacketDirection,
    /// The packet that it came with, or that told of the gap, and when.
    pub packet: u64,
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// The bytes.
    pub data: &'a [u8],
    /// Bytes that were not captured, in the place of `data`.
    pub missing: u32,
}

/// A segment that waits.
#[derive(Debug)]
struct Waiting {
    seq: u32,
    packet: u64,
    time_ns: u64,
    /// Bytes on the wire, of which `data` were captured.
    length: u32,
    data: Vec<u8>,
}

/// What one end sent so far.
#[derive(Debug, Default)]
struct Side {
    /// The sequence number that follows; `None` before the first segment.
    next: Option<u32>,
    /// By sequence number.
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

/// Takes chunks.
type Emit<'e> = &'e mut dyn FnMut(Chunk<'_>);

/// Puts the segments of one TCP stream in order.
#[derive(Debug, Default)]
pub struct TcpFollower {
    sides: [Side; 2],
}

fn is_after(a: u32, b: u32) -> bool {
    a != b && a.wrapping_sub(b) < HALF
}

impl Side {
    /// Hands over what follows, and skips what was handed over before.
    fn put(&mut self, from: &Waiting, direction: PacketDirection, emit: Emit<'_>) {
        let next = self.next.unwrap_or(from.seq);
        let skip = next.wrapping_sub(from.seq);
        if skip >= from.length {
            return;
        }
        let data = from.data.get(skip as usize..).unwrap_or_default();
        let (packet, time_ns) = (from.packet, from.time_ns);
        if !data.is_empty() {
            emit(Chunk { direction, packet, time_ns, data, missing: 0 });
        }
        // Cut off by the snaplen.
        let missing = (from.length - skip).saturating_sub(data.len() as u32);
        if missing > 0 {
            emit(Chunk { direction, packet, time_ns, data: &[], missing });
        }
        self.next = Some(from.seq.wrapping_add(from.length));
    }

    /// Hands over what waits and is next.
    fn drain(&mut self, direction: PacketDirection, emit: Emit<'_>) {
        while let Some(first) = self.waiting.front()
            && !self.next.is_some_and(|next| is_after(first.seq, next))
            && let Some(first) = self.waiting.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(first.data.len());
            self.put(&first, direction, emit);
        }
    }

    /// Gives up the bytes before `to`, or before the first that waits.
    fn skip(
        &mut self,
        to: u32,
        (packet, time_ns): (u64, u64),
        direction: PacketDirection,
        emit: Emit<'_>,
    ) {
        let Some(next) = self.next else { return };
        let first = self.waiting.front().map(|first| first.seq);
        let to = first.filter(|first| is_after(to, *first)).unwrap_or(to);
        let missing = to.wrapping_sub(next);
        if is_after(to, next) {
            emit(Chunk { direction, packet, time_ns, data: &[], missing });
            self.next = Some(to);
        }
        self.drain(direction, emit);
    }

    fn wait(&mut self, segment: Waiting) {
        let before = |it: &Waiting| !is_after(it.seq, segment.seq);
        let place = self.waiting.partition_point(before);
        self.bytes += segment.data.len();
        self.waiting.insert(place, segment);
    }
}

impl TcpFollower {
    /// Adds the next segment of the stream, and hands what is in order now to `emit`.
    pub fn add(
        &mut self,
        (packet, time_ns): (u64, u64),
        segment: &TcpSegment<'_>,
        emit: &mut dyn FnMut(Chunk<'_>),
    ) {
        let direction = segment.direction;
        let [forward, back] = &mut self.sides;
        let (side, other) = match direction == PacketDirection::default() {
            true => (forward, back),
            false => (back, forward),
        };
        let is_syn = segment.flags.has(TcpFlags::SYN);
        let seq = segment.seq.wrapping_add(u32::from(is_syn));
        if segment.flags.has(TcpFlags::ACK) {
            let reverse = direction.reverse();
            // A single byte may be a FIN that was not captured.
            let is_gap = |other: &Side| {
                let next = other.next?;
                let beyond = is_after(segment.ack, next.wrapping_add(1));
                let waits = !other.waiting.is_empty() && is_after(segment.ack, next);
                Some(beyond || waits)
            };
            while is_gap(other) == Some(true) {
                let before = other.next;
                other.skip(segment.ack, (packet, time_ns), reverse, emit);
                if other.next == before {
                    break;
                }
            }
        }
        let next = *side.next.get_or_insert(seq);
        if segment.payload_len == 0 {
            return;
        }
        let data = segment.payload;
        if is_after(seq, next) {
            let (length, data) = (segment.payload_len, data.to_vec());
            side.wait(Waiting { seq, packet, time_ns, length, data });
            while side.bytes > MAX_WAITING_BYTES || side.waiting.len() > MAX_WAITING {
                let Some(first) = side.waiting.front().map(|first| first.seq) else { break };
                side.skip(first, (packet, time_ns), direction, emit);
            }
            return;
        }
        let (length, data) = (segment.payload_len, data.to_vec());
        side.put(&Waiting { seq, packet, time_ns, length, data }, direction, emit);
        side.drain(direction, emit);
    }

    /// Hands over what still waits, at the end of the capture.
    pub fn finish(&mut self, emit: &mut dyn FnMut(Chunk<'_>)) {
        let directions = [PacketDirection::default(), PacketDirection::default().reverse()];
        for (side, direction) in self.sides.iter_mut().zip(directions) {
            while let Some(first) = side.waiting.front() {
                let (seq, at) = (first.seq, (first.packet, first.time_ns));
                side.skip(seq, at, direction, emit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::LinkType;
    use capture::dissect::{Layers, dissect};

    /// A segment of the one side or the other: 10.0.0.1 and 10.0.0.2.
    fn packet(from: u8, seq: u32, ack: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = 40 + payload.len() as u16;
        let mut bytes = vec![0x45, 0];
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, 3 - from]);
        bytes.extend(if from == 1 { [4, 0, 0, 80] } else { [0, 80, 4, 0] });
        bytes.extend(seq.to_be_bytes());
        bytes.extend(ack.to_be_bytes());
        bytes.extend([0x50, flags, 255, 255, 0, 0, 0, 0]);
        bytes.extend(payload);
        bytes
    }

    /// What comes out: texts by side, gaps as numbers.
    fn followed(packets: &[Vec<u8>]) -> Vec<(u8, String)> {
        let (mut follower, mut layers, mut found) =
            (TcpFollower::default(), Layers::new(), Vec::new());
        let mut sides = std::collections::HashMap::new();
        let mut chunks: Vec<(PacketDirection, String)> = Vec::new();
        let mut take = |chunk: Chunk<'_>| {
            let text = match chunk.missing {
                0 => String::from_utf8_lossy(chunk.data).into_owned(),
                missing => format!("-{missing}"),
            };
            chunks.push((chunk.direction, text));
        };
        for (number, bytes) in (1..).zip(packets) {
            dissect(LinkType::RAW, bytes, bytes.len() as u32, &mut layers);
            let segment = layers.tcp(bytes).unwrap();
            sides.insert(segment.direction.index(), bytes[15]);
            follower.add((number, number), &segment, &mut take);
        }
        follower.finish(&mut take);
        found.extend(chunks.into_iter().map(|(side, text)| (sides[&side.index()], text)));
        found
    }

    #[test]
    fn segments_are_put_in_order_and_repeated_ones_left_out() {
        for base in [1000_u32, u32::MAX - 4] {
            let at = |offset: u32| base.wrapping_add(offset);
            let found = followed(&[
                packet(1, base, 0, 2, b""),
                packet(2, 5000, at(1), 18, b""),
                packet(1, at(1), 5001, 16, b"abc"),
                packet(1, at(7), 5001, 16, b"ghi"),
                packet(1, at(2), 5001, 16, b"bcd"),
                packet(2, 5001, at(5), 16, b"ok"),
                packet(1, at(5), 5003, 16, b"ef"),
                packet(1, at(1), 5003, 16, b"abc"),
            ]);
            let texts: Vec<(u8, &str)> = found.iter().map(|(s, t)| (*s, t.as_str())).collect();
            assert_eq!(texts, [(1, "abc"), (1, "d"), (2, "ok"), (1, "ef"), (1, "ghi")]);
        }
    }

    #[test]
    fn what_was_not_captured_is_counted() {
        let found = followed(&[
            packet(1, 1000, 1, 16, b"abc"),
            packet(1, 1010, 1, 16, b"xyz"),
            // The other end has it all.
            packet(2, 1, 1013, 16, b"ok"),
            // At the end, something still waits.
            packet(1, 1020, 3, 16, b"end"),
        ]);
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["abc", "-7", "xyz", "ok", "-7", "end"]);
    }

    /// Whatever is sent, what waits stays within its bounds.
    #[test]
    fn what_waits_is_bounded() {
        let (mut follower, mut layers) = (TcpFollower::default(), Layers::new());
        let mut handed = 0;
        for number in 0..3 * MAX_WAITING as u32 {
            let bytes = packet(1, number.wrapping_mul(3000), 0, 16, &[0; 1400]);
            dissect(LinkType::RAW, &bytes, bytes.len() as u32, &mut layers);
            let segment = layers.tcp(&bytes).unwrap();
            follower.add((1, 1), &segment, &mut |chunk| handed += chunk.data.len());
            let side = &follower.sides[segment.direction.index()];
            assert!(side.bytes <= MAX_WAITING_BYTES && side.waiting.len() <= MAX_WAITING);
        }
        follower.finish(&mut |chunk| handed += chunk.data.len());
        assert_eq!(handed, 3 * MAX_WAITING * 1400);
    }
}
