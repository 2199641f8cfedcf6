//! What the sender waited for before each packet.

use super::{Sampler, mss};
use crate::congestion_family::CongestionEvidence;
use crate::connection::{Connection, PacketPosition};
use crate::retransmissions::RetransmissionKind;
use crate::time_by_cause::{TimeCause, TimeShare};
use crate::wireshark::PacketAnalysis;
use capture::dissect::{TcpFlags, TcpSegment};

impl Sampler {
    /// The time since the packet before has a cause: the state that it left, or the timer that
    /// this one shows to have expired. Data that is written only now shows that the sender waited
    /// for its application since the data before (`is_idle`).
    pub(super) fn take_time(
        &mut self,
        connection: &Connection,
        position: PacketPosition,
        segment: &TcpSegment<'_>,
        found: &PacketAnalysis,
        is_idle: bool,
    ) {
        let mss = u64::from(mss(connection, self.direction));
        let is_data = segment.direction == self.direction;
        let timer_expired = is_data && found.kind == Some(RetransmissionKind::Timeout);
        let cause = if timer_expired { TimeCause::Timeout } else { self.waits_for(mss) };
        let before = self.last_time_ns.unwrap_or(position.time_ns);
        self.last_time_ns = Some(position.time_ns.max(before));
        self.times.add(cause, position.packet, position.time_ns);
        if cause == TimeCause::CongestionWindow {
            self.round_window.ns += position.time_ns.saturating_sub(before);
        }
        if is_data && segment.payload_len > 0 {
            let moved = self.times.settle(is_idle);
            self.round_window.ns = self.round_window.ns.saturating_sub(moved);
        }
        if self.round_window.packets.0 == 0 {
            self.round_window.packets.0 = position.packet;
        }
        self.round_window.packets.1 = position.packet;
        let is_syn = segment.flags.has(TcpFlags::SYN);
        self.in_handshake = is_syn || (self.in_handshake && !segment.flags.has(TcpFlags::ACK));
    }

    fn waits_for(&self, mss: u64) -> TimeCause {
        if self.in_handshake {
            return TimeCause::Handshake;
        }
        if self.start_ns.is_none() {
            // A request, or what came before the transfer.
            return TimeCause::Application;
        }
        let outstanding = self.board.nxt() - self.board.una();
        match self.window {
            _ if self.is_closed => TimeCause::ZeroWindow,
            _ if self.board.in_recovery() => TimeCause::Recovery,
            Some(window) if outstanding > 0 && window < outstanding + mss => {
                TimeCause::ReceiveWindow
            }
            _ if self.app_limited(mss) => TimeCause::Application,
            _ => TimeCause::CongestionWindow,
        }
    }

    /// The family of congestion control, with what it rests on.
    #[must_use]
    pub fn congestion(&self) -> CongestionEvidence {
        self.family.evidence()
    }

    /// The time by cause, those that took most first; empty for a stream of one packet.
    #[must_use]
    pub fn time_shares(&self, connection: &Connection) -> Vec<TimeShare> {
        let buffered = if self.is_mostly_idle() {
            Vec::new()
        } else {
            self.rounds.buffer_time(mss(connection, self.direction))
        };
        let timer_ns = self.life.as_ref().map_or(0, |life| life.activity.timer_ns());
        self.times.shares(&buffered, timer_ns)
    }
}
