//! What shows only over a connection's whole life: the applications' activity and the sizes that
//! arrive.

use super::{Captured, MAX_REQUEST, Sampler, mss, path_rtt};
use crate::activity::{ActivityTracker, KnownPath, SentSegment};
use crate::connection::Connection;
use crate::flags::Flags;
use crate::segment_sizes::SizeTracker;
use crate::wireshark::PacketAnalysis;
use capture::dissect::{PacketDirection, TcpFlags, TcpSegment};
use record::{Activity, CapturePoint, SegmentSizes};

/// The share of its life for which a sender is idle from which the life is what is sampled, and
/// not the transfer alone.
const IDLE: f64 = 0.5;

/// Follows a connection from its first packet.
#[derive(Debug, Clone)]
pub(super) struct Life {
    pub(super) activity: ActivityTracker,
    sizes: SizeTracker,
    mss: u32,
    /// Sequence number of position 0, and the first position that was not sent.
    base: Option<u32>,
    next: u64,
    /// The highest number of the other side.
    others_next: Option<u32>,
}

impl Sampler {
    /// The sampler with what an earlier pass over the packets of `known` has shown.
    #[must_use]
    pub fn knowing(mut self, known: &Connection) -> Self {
        let (data, _) = known.pair(self.direction);
        // Small messages alone are the transfer.
        self.least_first = MAX_REQUEST.min(data.longest.max(1));
        if known.is_one_way() {
            self.captured = if data.packets > 0 { Captured::Data } else { Captured::Acks };
            return self;
        }
        self.known_rtt_ns = path_rtt(known, self.direction);
        let vantage = known.vantage(self.direction);
        let mss = mss(known, self.direction);
        let path = KnownPath {
            to_sender_ns: vantage.to_sender_ns.unwrap_or(0),
            to_receiver_ns: vantage.to_receiver_ns.or(path_rtt(known, self.direction)).unwrap_or(0),
            at_sender: matches!(self.point, CapturePoint::Sender | CapturePoint::Unknown),
            mss: u64::from(full_segment(known, self.direction)),
        };
        self.life = Some(Life {
            activity: ActivityTracker::new(path),
            sizes: SizeTracker::default(),
            mss,
            base: None,
            next: 0,
            others_next: None,
        });
        self
    }

    /// The activity of the applications, and when the connection's life began, in ns; `None` where
    /// that does not show.
    pub(crate) fn activity(&self) -> Option<(Activity, u64)> {
        let life = self.life.as_ref()?;
        life.activity.clone().finish().zip(life.activity.start_ns())
    }

    /// Whether its sender was idle for most of the connection's life.
    pub(super) fn is_mostly_idle(&self) -> bool {
        self.activity().is_some_and(|(activity, _)| activity.idle_share >= IDLE)
    }

    /// Sizes of what arrived and of what was retransmitted in vain. They tell of the path's MTU only
    /// where something arrived before: a handshake, or a smaller segment.
    pub(crate) fn segment_sizes(&self, connection: &Connection) -> Option<SegmentSizes> {
        let life = self.life.as_ref()?;
        let sizes = life.sizes.finish(life.mss)?;
        let shook_hands = connection.initial_rtt_ns().is_some();
        (shook_hands || sizes.largest_delivered_bytes > 0).then_some(sizes)
    }
}

/// Payload from which the longest segment may be a full one on a path with a smaller MTU: IPv6
/// carries packets of 1280 bytes everywhere (RFC 8200, section 5).
const MIN_FULL: u32 = 1180;

/// Payload of a full segment, be it that none was sent: the receiver's MSS; where its SYN is
/// unknown and all segments are shorter than on any usual path, one of such a path.
fn full_segment(known: &Connection, direction: PacketDirection) -> u32 {
    let (data, acks) = known.pair(direction);
    let options = if data.latest_ts.is_none() { 0 } else { 12 };
    match u32::from(acks.mss) {
        0 => data.longest.clamp(MIN_FULL, 65_495),
        most if data.longest >= MIN_FULL => most.saturating_sub(options).min(data.longest),
        most => most.saturating_sub(options).max(1),
    }
}

impl Life {
    /// Follows a packet that took `late_ns` longer than the fastest; returns whether it is data
    /// that the sender's application had not written before.
    pub(super) fn add(
        &mut self,
        direction: PacketDirection,
        connection: &Connection,
        time_ns: u64,
        segment: &TcpSegment<'_>,
        found: &PacketAnalysis,
        late_ns: u64,
    ) -> bool {
        let flags = segment.flags;
        self.activity.pass(time_ns, !flags.has(TcpFlags::SYN));
        if flags.has(TcpFlags::SYN.with(TcpFlags::RST)) {
            return false;
        }
        if segment.direction != direction {
            self.answer(connection, direction, time_ns, segment, found);
            return false;
        }
        let is_probe =
            found.flags.has(Flags::KEEP_ALIVE) || found.flags.has(Flags::ZERO_WINDOW_PROBE);
        let length = u64::from(segment.payload_len);
        let is_idle = length > 0
            && !is_probe
            && self.data(
                time_ns.saturating_sub(late_ns),
                segment.seq,
                length,
                connection.pair(direction).1.window_bytes(),
            );
        if flags.has(TcpFlags::FIN) {
            self.activity.close(time_ns);
        }
        is_idle
    }

    fn position(&mut self, number: u32) -> Option<u64> {
        let base = *self.base.get_or_insert(number);
        let distance = number.wrapping_sub(base.wrapping_add(self.next as u32)) as i32;
        self.next.checked_add_signed(i64::from(distance))
    }

    fn data(&mut self, time_ns: u64, seq: u32, length: u64, window: Option<u64>) -> bool {
        let Some(start) = self.position(seq) else { return false };
        let end = start + length;
        if end <= self.next && self.next > 0 {
            self.activity.repeat(time_ns);
            self.sizes.repeat(start, end);
            return false;
        }
        self.sizes.send(start, end);
        self.next = end;
        self.activity.data(SentSegment { time_ns, start, end, window })
    }

    /// A packet of the receiver.
    fn answer(
        &mut self,
        connection: &Connection,
        direction: PacketDirection,
        time_ns: u64,
        segment: &TcpSegment<'_>,
        found: &PacketAnalysis,
    ) {
        if !segment.flags.has(TcpFlags::ACK) {
            return;
        }
        let Some(ack) = self.position(segment.ack) else { return };
        let options = segment.options();
        let mut is_gap = found.flags.has(Flags::DUPLICATE_ACK);
        for (left, right) in options.sack_blocks() {
            let near = |edge: u32| {
                ack.checked_add_signed(i64::from(edge.wrapping_sub(segment.ack) as i32))
            };
            if let (Some(left), Some(right)) = (near(*left), near(*right))
                && right > ack
            {
                is_gap = true;
                self.sizes.sack(left, right, self.mss);
            }
        }
        self.sizes.acknowledge(ack, self.mss);
        let (_, acks) = connection.pair(direction);
        let end = segment.next_seq();
        let is_new = self.others_next.is_none_or(|next| crate::sequence::after(end, next));
        let is_request = segment.payload_len > 0 && is_new && acks.packets > 0;
        if is_new {
            self.others_next = Some(end);
        }
        if is_request {
            self.activity.request(time_ns, ack);
        } else {
            self.activity.ack(time_ns, ack, is_gap && ack < self.next);
        }
    }
}
