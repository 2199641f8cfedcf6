//! Wireshark's rules for one packet, in its order.
//!
//! Restated from the user's guide (chapter "TCP Analysis") and from what the program
//! shows; each rule names what it looks at. `own` is the side that sent the packet, `peer`
//! the other one. A stored number of 0 counts as not seen: so does Wireshark.

use crate::flags::Flags;
use crate::outstanding::{MAX, Segment};
use crate::rules::Rules;
use crate::sequence::{after, before, up_to};
use crate::side::{Side, WindowScale};
use capture::dissect::{TcpFlags, TcpSegment};
use std::num::{NonZeroU32, NonZeroU64};

/// An ACK this long or less before a retransmission makes it a fast one.
const FAST_NS: u64 = 20_000_000;

/// A hole filled within this time was overtaken, while the RTT is unknown.
const OVERTAKEN_NS: u64 = 3_000_000;

/// Bytes in flight of this many and more are not credible.
const MAX_IN_FLIGHT: u32 = 2_000_000_000;

/// What the rules say of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketAnalysis {
    /// Its flags.
    pub flags: Flags,
    /// With [`Flags::DUPLICATE_ACK`]: how many there were, from 1.
    pub duplicate_ack: u32,
    /// And the packet whose ACK it repeats.
    pub repeats_packet: u32,
    /// Bytes that its sender has in flight after it.
    pub bytes_in_flight: Option<u32>,
    /// The packet that it acknowledges, if one ends exactly there, and the time since then
    /// in ns.
    pub acknowledges: Option<(u32, u64)>,
    /// Of a retransmission: ns since the oldest unacknowledged packet.
    pub retransmit_delay_ns: Option<u64>,
    /// RTT of the far side by timestamps, in ns.
    pub timestamp_rtt_ns: Option<u64>,
    /// How the sender came to retransmit it.
    pub kind: Option<crate::RetransmissionKind>,
    /// Whether it is a retransmission of what passed here before (lost behind this point),
    /// or fills a hole (lost before it).
    pub seen_before: bool,
    /// The packet of a retransmission that it shows not to have been necessary: by Eifel or
    /// DSACK.
    pub proves_spurious: Option<u32>,
    /// CE marks that it reports beyond those that earlier packets did: by AccECN's counter, or one
    /// for ECE.
    pub echoed_marks: u32,
}

/// A packet with its number in the capture and its time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CapturedSegment<'a, 's> {
    pub(crate) segment: &'a TcpSegment<'s>,
    pub(crate) packet: u32,
    pub(crate) time_ns: u64,
    /// Its timestamp value.
    pub(crate) ts_value: Option<NonZeroU32>,
    /// Whether it has SACK blocks.
    pub(crate) has_sack: bool,
    /// Whether its MPTCP options say something that its sender's last ones did not.
    pub(crate) signals_mptcp: bool,
    /// Initial RTT of the connection.
    pub(crate) initial_rtt_ns: Option<NonZeroU64>,
    /// Bytes of a segment: the peer's MSS.
    pub(crate) mss: Option<NonZeroU32>,
}

/// Applies the rules to a packet.
#[inline]
pub(crate) fn analyse(
    rules: Rules,
    seen: &CapturedSegment<'_, '_>,
    own: &mut Side,
    peer: &mut Side,
) -> PacketAnalysis {
    let (segment, now) = (seen.segment, seen.time_ns);
    let mut found = PacketAnalysis::default();
    let (seq, ack, len) = (segment.seq, segment.ack, segment.payload_len);

    own.base_seq.get_or_insert(if segment.flags.has(TcpFlags::SYN) {
        seq
    } else {
        seq.wrapping_sub(1)
    });
    if segment.flags.has(TcpFlags::ACK) {
        peer.base_seq.get_or_insert(ack.wrapping_sub(1));
        peer.flight_known = true;
    }

    found.flags = own_flags(rules, seen, own, peer);
    if found.flags.has(Flags::DUPLICATE_ACK) {
        own.duplicate_acks = if own.duplicate_acks < 0 { 1 } else { own.duplicate_acks + 1 };
        found.duplicate_ack = own.duplicate_acks.unsigned_abs();
        found.repeats_packet = own.repeated_ack;
    }
    if ack != own.last_ack {
        own.repeated_ack = seen.packet;
        own.duplicate_acks = 0;
    }

    if peer.contiguous != 0 && after(ack, peer.contiguous) && segment.flags.has(TcpFlags::ACK) {
        // The comparison without the wrap is Wireshark's own.
        if peer.contiguous < peer.next_seq {
            peer.contiguous = peer.next_seq;
            found.flags.set(Flags::ACK_LOST_SEGMENT);
        } else {
            if peer.duplicate_acks == 0 {
                found.flags.set(Flags::ACK_LOST_SEGMENT);
            }
            peer.duplicate_acks = -1;
        }
    }

    let takes_space = len > 0 || segment.flags.has(TcpFlags::SYN.with(TcpFlags::FIN));
    if takes_space
        && !found.flags.has(Flags::KEEP_ALIVE)
        && let Some(flags) = retransmitted(rules, seen, own, peer)
    {
        found.flags.set(flags);
        if flags == Flags::RETRANSMISSION {
            let since = own.outstanding.oldest_ns().unwrap_or(own.next_seq_ns);
            found.retransmit_delay_ns = Some(now.saturating_sub(since));
        }
    }

    remember(seen, found.flags, own);

    found.acknowledges = peer
        .outstanding
        .acknowledge(ack)
        .map(|acked| (acked.packet, now.saturating_sub(acked.time_ns)));
    if len > 0 && own.flight_known {
        found.bytes_in_flight = in_flight(segment.flags, own, peer);
    }
    if !found.flags.is_empty() {
        own.counts.get_or_insert_default().add(found.flags);
    }
    found
}

/// The flags that depend on the packet's numbers and window alone.
#[inline]
fn own_flags(rules: Rules, seen: &CapturedSegment<'_, '_>, own: &mut Side, peer: &Side) -> Flags {
    let segment = seen.segment;
    let (seq, ack, len) = (segment.seq, segment.ack, segment.payload_len);
    let window = segment.window;
    let mut flags = Flags::default();
    if len == 1 && seq == own.next_seq && peer.window == Some(0) {
        return Flags::ZERO_WINDOW_PROBE;
    }
    if window == 0 && !segment.flags.is_control() {
        flags.set(Flags::ZERO_WINDOW);
    }
    if own.next_seq != 0 && after(seq, own.next_seq) && !segment.flags.has(TcpFlags::RST) {
        flags.set(Flags::LOST_SEGMENT);
        own.flight_known = false;
    }
    if segment.flags.is_control() {
        return flags;
    }
    if len <= 1 && seq == own.next_seq.wrapping_sub(1) {
        flags.set(Flags::KEEP_ALIVE);
    }
    if len > 0 {
        let shift = if peer.window_of_syn { 0 } else { peer.scale.shift() };
        let edge = peer.window.map(|w| peer.last_ack.wrapping_add(u32::from(w) << shift));
        if peer.scale != WindowScale::Unknown && edge == Some(seq.wrapping_add(len)) {
            flags.set(Flags::WINDOW_FULL);
        }
        return flags;
    }
    // From here on only what has no data and follows in order.
    if seq != own.next_seq {
        return flags;
    }
    let same_window = own.window == Some(window);
    let accepts_probe = rules.probe_may_be_accepted()
        && peer.last_flags.has(Flags::ZERO_WINDOW_PROBE)
        && ack == own.last_ack.wrapping_add(1);
    if window != 0
        && !same_window
        && (ack == own.last_ack || accepts_probe)
        && (!seen.has_sack || rules.sack_may_update_window())
    {
        flags.set(Flags::WINDOW_UPDATE);
    }
    if window == 0
        && same_window
        && peer.last_flags.has(Flags::ZERO_WINDOW_PROBE)
        && (ack == own.last_ack || accepts_probe)
    {
        flags.set(Flags::ZERO_WINDOW_PROBE_ACK);
        return flags;
    }
    if ack != own.last_ack || window == 0 {
        return flags;
    }
    if same_window && peer.last_flags.has(Flags::KEEP_ALIVE) {
        flags.set(Flags::KEEP_ALIVE_ACK);
        return flags;
    }
    // MPTCP sends its signals in ACKs that are no sign of a loss (RFC 8684, section 4).
    if seen.signals_mptcp {
        return flags;
    }
    if same_window || (seen.has_sack && rules.sack_makes_duplicate()) {
        flags.set(Flags::DUPLICATE_ACK);
    }
    flags
}

/// Whether a packet that takes sequence space repeats it, or came late.
#[inline]
fn retransmitted(
    rules: Rules,
    seen: &CapturedSegment<'_, '_>,
    own: &Side,
    peer: &Side,
) -> Option<Flags> {
    let segment = seen.segment;
    let (seq, len) = (segment.seq, segment.payload_len);
    let control = segment.flags.has(TcpFlags::SYN.with(TcpFlags::FIN));
    let end = seq.wrapping_add(len);
    if len > 0
        && peer.last_ack != 0
        && up_to(end, peer.last_ack)
        && (!control || rules.control_may_be_spurious())
    {
        let mut flags = Flags::SPURIOUS_RETRANSMISSION;
        flags.set(Flags::RETRANSMISSION);
        return Some(flags);
    }
    let advances = own.next_seq == 0
        || !before(seq, own.next_seq)
        // Data that follows a zero-window probe.
        || (len > 1 && own.next_seq.wrapping_sub(1) == seq);
    if advances {
        return None;
    }
    let jumped = rules.sack_makes_fast()
        && peer.has_sack
        && seen
            .mss
            .is_some_and(|mss| after(peer.sacked_to, peer.last_ack.wrapping_add(2 * mss.get())));
    // After an ACK of what was not captured the counter is -1, in Wireshark a large number.
    if (peer.duplicate_acks.cast_unsigned() >= 2 || jumped)
        && peer.last_ack == seq
        && seen.time_ns.wrapping_sub(peer.last_ack_ns) < FAST_NS
    {
        let mut flags = Flags::FAST_RETRANSMISSION;
        flags.set(Flags::RETRANSMISSION);
        return Some(flags);
    }
    let within = seen.initial_rtt_ns.map_or(OVERTAKEN_NS, NonZeroU64::get);
    if seen.time_ns.wrapping_sub(own.next_seq_ns) < within
        && own.next_seq != end.wrapping_add(u32::from(control))
    {
        return Some(Flags::OUT_OF_ORDER);
    }
    Some(Flags::RETRANSMISSION)
}

/// Keeps what later packets are compared with.
#[inline]
fn remember(seen: &CapturedSegment<'_, '_>, flags: Flags, own: &mut Side) {
    let (segment, now) = (seen.segment, seen.time_ns);
    let control = segment.flags.has(TcpFlags::SYN.with(TcpFlags::FIN));
    let seq = segment.seq;
    let mut next = seq.wrapping_add(segment.payload_len);
    if (segment.payload_len > 0 || control) && own.outstanding.len() < MAX {
        next = next.wrapping_add(u32::from(control));
        own.outstanding.push(Segment {
            time_ns: now,
            seq,
            next,
            packet: seen.packet,
            ts_value: seen.ts_value,
        });
    }
    let probe = flags.has(Flags::ZERO_WINDOW_PROBE);
    if (after(next, own.next_seq) || own.next_seq == 0) && !probe {
        own.next_seq = next;
        own.next_seq_ns = now;
    }
    if (seq == own.contiguous || own.contiguous == 0) && !probe {
        own.contiguous = own.next_seq;
    }
    own.window = Some(segment.window);
    own.last_ack = segment.ack;
    own.last_ack_ns = now;
    own.last_flags = flags;
}

/// Bytes in flight: the outstanding span without what the peer's last packet reported as
/// received.
#[inline]
fn in_flight(flags: TcpFlags, own: &Side, peer: &Side) -> Option<u32> {
    let span = own.outstanding.span()?;
    let bytes = span.wrapping_sub(peer.sacked_bytes);
    let bytes =
        if flags.has(TcpFlags::SYN.with(TcpFlags::FIN)) { bytes.wrapping_sub(1) } else { bytes };
    (bytes > 0 && bytes < MAX_IN_FLIGHT).then_some(bytes)
}
