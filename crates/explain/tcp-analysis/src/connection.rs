//! One TCP connection: its packets in order of the capture.

mod figures;

use crate::ecn::{self, EcnMode};
use crate::flags::Flags;
use crate::outstanding::Outstanding;
use crate::recovery;
use crate::rules::Rules;
use crate::sequence::{after, before};
use crate::side::{Side, WindowScale};
use crate::wireshark::{self, CapturedSegment, PacketAnalysis};
use capture::dissect::{PacketDirection, TcpFlags, TcpOptions, TcpSegment};
use std::num::{NonZeroU32, NonZeroU64};

/// Which parts of a connection were captured: the bits of Wireshark's `tcp.completeness`.
pub mod completeness {
    /// SYN.
    pub const SYN: u8 = 1;
    /// SYN-ACK.
    pub const SYN_ACK: u8 = 2;
    /// ACK without data.
    pub const ACK: u8 = 4;
    /// Data.
    pub const DATA: u8 = 8;
    /// FIN.
    pub const FIN: u8 = 16;
    /// RST.
    pub const RST: u8 = 32;
}

/// A packet's position in the capture.
#[derive(Debug, Clone, Copy)]
pub struct PacketPosition {
    /// Its number, from 1.
    pub packet: u64,
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// Whether it is a SYN on ports that were used before
    /// (`capture::conversations::StreamNumber::reuses_ports`).
    pub reuses_ports: bool,
}

/// The state of a connection: less than 500 bytes, and 24 for each outstanding segment.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    pub(crate) sides: [Side; 2],
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    /// Time of the last SYN without ACK, and of the SYN-ACK.
    syn_ns: Option<NonZeroU64>,
    syn_ack_ns: Option<NonZeroU64>,
    initial_rtt_ns: Option<NonZeroU64>,
    completeness: u8,
    /// Whether anything was acknowledged.
    has_acked: bool,
    ecn_mode: EcnMode,
    /// The side that sent the SYN.
    pub(crate) client: Option<PacketDirection>,
}

impl Connection {
    /// A connection before its first packet, with what an earlier pass over its packets proved.
    #[must_use]
    pub fn anew(&self) -> Self {
        let mut new = Connection::default();
        for (side, known) in new.sides.iter_mut().zip(&self.sides) {
            side.least_scale = known.proven_scale();
        }
        new
    }

    /// Analyses the next packet.
    #[inline]
    pub fn add(
        &mut self,
        rules: Rules,
        position: PacketPosition,
        segment: &TcpSegment<'_>,
    ) -> PacketAnalysis {
        let now = position.time_ns;
        if self.first_ns == 0 {
            self.first_ns = now;
        }
        self.last_ns = now;
        self.has_acked |= segment.flags.has(TcpFlags::ACK);
        let options = segment.options();
        let (value, echo) = options.timestamps.unwrap_or((0, 0));
        let [a, b] = &mut self.sides;
        let (own, peer) = if segment.direction == PacketDirection::AToB { (a, b) } else { (b, a) };

        let has_sack = options.sack_count > 0;
        own.has_sack = false;
        own.sacked_bytes = 0;
        if position.reuses_ports {
            own.next_seq = own.contiguous;
        }
        let signals_mptcp = options.mptcp.is_some() && {
            let acked = options.mptcp_data_ack.map_or(own.data_ack, NonZeroU32::new);
            let acks = std::mem::replace(&mut own.data_ack, acked) != acked;
            // A hole in a subflow repeats its ACK while data of others arrives.
            options.mptcp_signals || (acks && !has_sack)
        };
        let seen = CapturedSegment {
            segment,
            packet: u32::try_from(position.packet).unwrap_or(u32::MAX),
            time_ns: now,
            ts_value: NonZeroU32::new(value),
            has_sack,
            signals_mptcp,
            initial_rtt_ns: self.initial_rtt_ns,
            mss: NonZeroU32::new(u32::from(peer.mss)),
        };
        follow_windows(segment, (value, echo), now, own, peer);
        let marks = count_marks(&mut self.ecn_mode, self.client, segment, own, peer);
        let takes_space = segment.payload_len > 0 || segment.flags.has(CONTROL);
        let classified = if takes_space { recovery::observe_data(&seen, own, peer) } else { None };
        let evidence = recovery::observe_ack(&seen, &options, own, peer);

        let mut found = wireshark::analyse(rules, &seen, own, peer);
        // A SYN that repeats the one of this connection has no such flag.
        if position.reuses_ports && own.packets == 0 && peer.packets == 0 {
            found.flags.set(Flags::REUSED_PORTS);
            own.counts.get_or_insert_default().add(Flags::REUSED_PORTS);
        }
        found.proves_spurious = evidence.spurious;
        found.echoed_marks = marks;
        if evidence.duplicate_sack {
            found.flags.set(Flags::DUPLICATE_SACK);
            own.counts.get_or_insert_default().add(Flags::DUPLICATE_SACK);
        }
        if let Some(classified) = classified {
            found.kind = Some(classified.kind);
            found.seen_before = classified.seen_before;
        }
        if let Some((_, rtt)) = found.acknowledges {
            peer.sample_rtt(rtt);
            own.responses.add(rtt);
        }
        if seen.ts_value.is_some() {
            if own.latest_ts.is_none_or(|latest| value.wrapping_sub(latest.get()) as i32 > 0) {
                own.latest_ts = seen.ts_value;
            }
            own.responses.sent(value, now);
            if segment.flags.has(TcpFlags::ACK) {
                found.timestamp_rtt_ns = peer.responses.echoed(echo, now);
                if let Some(delay) = found.timestamp_rtt_ns {
                    own.responses.add(delay);
                }
            }
        }
        if has_sack {
            remember_sack(own, &options, segment.ack);
        }
        own.packets = own.packets.saturating_add(1);
        if segment.payload_len > 0 {
            own.data_packets = own.data_packets.saturating_add(1);
            own.payload_bytes = own.payload_bytes.saturating_add(u64::from(segment.payload_len));
            own.longest = own.longest.max(segment.payload_len);
        }
        self.handshake(segment, &options, now);
        found
    }

    /// Notes which part of the connection a packet is, by Wireshark's rules: a SYN always
    /// counts, everything else from the second packet on and with ACK; RST without it, too.
    #[inline]
    fn complete(&mut self, segment: &TcpSegment<'_>) {
        let flags = segment.flags;
        if flags.is_first_syn() {
            self.completeness |= completeness::SYN;
        }
        if self.sides[0].packets + self.sides[1].packets < 2 {
            return;
        }
        if flags.has(TcpFlags::RST) {
            self.completeness |= completeness::RST;
        }
        if !flags.has(TcpFlags::ACK) {
            return;
        }
        if flags.has(TcpFlags::SYN) {
            self.completeness |= completeness::SYN_ACK;
            return;
        }
        if flags.has(TcpFlags::FIN) {
            self.completeness |= completeness::FIN;
        }
        self.completeness |=
            if segment.payload_len > 0 { completeness::DATA } else { completeness::ACK };
    }

    /// What the SYNs say, and the initial RTT.
    #[inline]
    fn handshake(&mut self, segment: &TcpSegment<'_>, options: &TcpOptions, now: u64) {
        let flags = segment.flags;
        let since = |start: NonZeroU64| NonZeroU64::new(now.saturating_sub(start.get()));
        self.complete(segment);
        if !flags.has(CONTROL.with(TcpFlags::RST)) {
            self.sides[segment.direction.index()].window_of_syn = false;
            if self.initial_rtt_ns.is_none()
                && let Some(syn_ns) = self.syn_ns
                && flags.has(TcpFlags::ACK)
            {
                self.initial_rtt_ns = since(syn_ns);
                if let Some(syn_ack_ns) = self.syn_ack_ns
                    && self.client == Some(segment.direction)
                {
                    let delay = now.saturating_sub(syn_ack_ns.get());
                    self.sides[segment.direction.index()].responses.add(delay);
                }
            }
            return;
        }
        // A refused connection has an initial RTT, too.
        let answers = flags.has(TcpFlags::ACK) && !flags.has(TcpFlags::SYN);
        if answers && self.initial_rtt_ns.is_none() {
            self.initial_rtt_ns = self.syn_ns.and_then(since);
        }
        if !flags.has(TcpFlags::SYN) {
            return;
        }
        self.ecn_mode = ecn::negotiated(self.ecn_mode, flags);
        if flags.is_syn_ack() && self.ecn_mode == EcnMode::Accurate {
            self.sides.iter_mut().for_each(|side| side.ecn.get_or_insert_default().begin());
        }
        let own = segment.direction.index();
        let side = &mut self.sides[own];
        side.window_of_syn = true;
        side.mss = options.mss.unwrap_or(0);
        side.sack_permitted = options.sack_permitted;
        let offered = match options.window_scale {
            Some(shift) => WindowScale::Shift(shift.min(14)),
            None => WindowScale::Off,
        };
        side.scale = offered;
        if flags.is_first_syn() {
            self.syn_ns = NonZeroU64::new(now);
            self.client = Some(segment.direction);
            if offered == WindowScale::Off {
                self.sides[1 - own].scale = WindowScale::Off;
            }
            return;
        }
        if let (Some(syn_ns), None) = (self.syn_ns, self.syn_ack_ns) {
            self.sides[own].responses.add(now.saturating_sub(syn_ns.get()));
        }
        self.syn_ack_ns = NonZeroU64::new(now);
        self.client = Some(segment.direction.reverse());
        let client = &mut self.sides[1 - own];
        // Scaling takes both.
        if offered == WindowScale::Off || client.scale == WindowScale::Off {
            client.scale = WindowScale::Off;
            self.sides[own].scale = WindowScale::Off;
        }
    }

    /// The side that sends the data of `direction`, and the one that receives it.
    pub(crate) fn pair(&self, direction: PacketDirection) -> (&Side, &Side) {
        let [a, b] = &self.sides;
        if direction == PacketDirection::AToB { (a, b) } else { (b, a) }
    }

    /// Bytes that it takes on the heap.
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        let [a, b] = &self.sides;
        a.heap_bytes() + b.heap_bytes()
    }

    /// Forgets the outstanding segments and gaps, which the next packet would be compared with:
    /// the analysis ends here.
    pub(crate) fn end_analysis(&mut self) {
        for side in &mut self.sides {
            side.outstanding = Outstanding::default();
            if let Some(recovery) = &mut side.recovery {
                recovery.forget_gaps();
            }
        }
    }

    /// Outstanding segments of both directions.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.sides.iter().map(|side| side.outstanding.len()).sum()
    }
}

/// Notes the window and the ACK of a side, and what its data proves of the scale of the other's
/// windows, if no SYN says it.
#[inline]
fn follow_windows(
    segment: &TcpSegment<'_>,
    (value, echo): (u32, u32),
    now: u64,
    own: &mut Side,
    peer: &mut Side,
) {
    if segment.flags.is_control() || !segment.flags.has(TcpFlags::ACK) {
        return;
    }
    own.largest_window = own.largest_window.max(segment.window);
    if peer.packets == 0 && own.last_ack != 0 && after(segment.ack, own.last_ack) {
        own.acked_unseen += u64::from(segment.ack.wrapping_sub(own.last_ack));
    }
    if own.scale == WindowScale::Unknown && own.least_scale.is_none() {
        let edges = own.edges.get_or_insert_default();
        edges.add_ack(value, segment.ack, segment.window);
    }
    if segment.payload_len > 0
        && let Some(edges) = &mut peer.edges
    {
        let mss = own.longest.max(segment.payload_len);
        edges.add_data(segment.next_seq(), echo, mss, now);
    }
}

/// Counts the marks of a packet; returns those that it reports.
#[inline]
fn count_marks(
    mode: &mut EcnMode,
    client: Option<PacketDirection>,
    segment: &TcpSegment<'_>,
    own: &mut Side,
    peer: &Side,
) -> u32 {
    let flags = segment.flags;
    if segment.ecn != 0 {
        let ecn = own.ecn.get_or_insert_default();
        ecn.counts.capable = ecn.counts.capable.saturating_add(1);
        ecn.counts.ce = ecn.counts.ce.saturating_add(u32::from(segment.ecn == 3));
    }
    if flags.has(TcpFlags::SYN.with(TcpFlags::RST)) {
        return 0;
    }
    if *mode == EcnMode::Unknown && flags.has(TcpFlags::AE) {
        // Only AccECN sets it.
        *mode = EcnMode::Accurate;
    }
    if *mode != EcnMode::Accurate && ecn::ace(flags) == 0 {
        return 0;
    }
    let is_third = client == Some(segment.direction) && own.data_packets == 0;
    let is_late = before(segment.ack, own.last_ack) && own.last_ack != 0;
    let mss = peer.longest;
    own.ecn.get_or_insert_default().add(*mode, segment, mss, is_third, is_late)
}

/// Flags that take sequence space.
const CONTROL: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::FIN.0);

/// Keeps what the SACK blocks of the side's last packet report.
fn remember_sack(own: &mut Side, options: &TcpOptions, ack: u32) {
    own.has_sack = true;
    own.sacked_to = ack;
    for (number, (left, right)) in options.sack_blocks().iter().enumerate() {
        // Wireshark subtracts from the bytes in flight what a DSACK block reports, too, and
        // not what a fourth block does.
        if number < 3 {
            own.sacked_bytes = own.sacked_bytes.wrapping_add(right.wrapping_sub(*left));
        }
        if after(*right, own.sacked_to) {
            own.sacked_to = *right;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_takes_less_than_500_bytes() {
        assert!(size_of::<Connection>() < 500, "{}", size_of::<Connection>());
    }
}
