//! Fast recovery, recovery after a timeout, and the undoing of either.

mod frto;

use super::Sender;
use crate::prr::Prr;
use control::{Congestion, CongestionControl, EcnResponse, Phase};
use frto::Frto;
use units::Nanos;

/// The recovery under way, if any, and the tail loss probe.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recovery {
    phase: Phase,
    /// It ends when all before this packet is acknowledged (RFC 6675's `RecoveryPoint`).
    point: u64,
    prr: Option<Prr>,
    undo: Option<Undo>,
    tail_probe: Option<TailProbe>,
    frto: Frto,
}

/// What shows that a recovery was not needed.
#[derive(Debug, Clone, Copy, Default)]
struct Undo {
    /// When its first packet was retransmitted.
    first_resent: Option<Nanos>,
    /// Retransmissions that the receiver has not reported as duplicates.
    needed: u64,
}

/// An outstanding tail loss probe (RFC 8985 section 7).
#[derive(Debug, Clone, Copy)]
struct TailProbe {
    /// The next packet to be sent when the probe was.
    end: u64,
    retransmission: bool,
}

impl Recovery {
    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn prr(&self) -> Option<&Prr> {
        self.prr.as_ref()
    }

    /// Whether new packets go before those taken as lost.
    pub(super) const fn sends_new_first(&self) -> bool {
        self.frto.new_first
    }

    pub(super) const fn has_tail_probe(&self) -> bool {
        self.tail_probe.is_some()
    }

    pub(super) fn on_tail_probe(&mut self, end: u64, retransmission: bool) {
        self.tail_probe = Some(TailProbe { end, retransmission });
    }

    pub(super) fn on_send(&mut self, now: Nanos, packets: u64, retransmission: bool) {
        if let Some(prr) = &mut self.prr {
            prr.on_send(packets);
        }
        if let Some(undo) = self.undo.as_mut().filter(|_| retransmission) {
            undo.first_resent.get_or_insert(now);
            undo.needed += packets;
        }
    }
}

/// How often the congestion window was reduced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reductions {
    /// Recoveries begun, by losses, marks or a timeout.
    pub begun: u64,
    /// Those of them that turned out to be needless and were undone.
    pub undone: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// What an acknowledgement brought.
#[derive(Debug, Clone, Copy)]
pub(super) struct News {
    pub(super) advanced: bool,
    pub(super) delivered: u64,
    /// Those of them that were sacked.
    pub(super) sacked: u64,
    /// The first of them that was sent once.
    pub(super) first_original: Option<u64>,
    pub(super) lost: u64,
    pub(super) marked: u64,
    /// Packets that arrived twice.
    pub(super) duplicates: u64,
    /// The sender's timestamp that the receiver echoed.
    pub(super) echo: Nanos,
}

impl<C: CongestionControl> Sender<C> {
    /// The change of state at an acknowledgement.
    pub(super) fn update_recovery(&mut self, now: Nanos, news: &News) {
        self.check_tail_probe(now, news);
        if self.was_spurious(news) || self.is_timeout_needless(news) {
            self.undo(now);
        }
        if self.recovery.phase != Phase::Open && self.board.una() >= self.recovery.point {
            self.end_recovery(now);
        }
        // Losses beyond the last recovery's point begin the next one.
        let signalled = news.marked > 0 && self.control.ecn_response() == EcnResponse::Classic;
        let congested = self.board.has_unrepaired() || signalled;
        if congested && self.recovery.phase == Phase::Open {
            self.begin_recovery(now);
        }
        let in_flight = self.board.in_flight();
        if let Some(prr) = &mut self.recovery.prr {
            let advanced = news.advanced && news.lost == 0;
            prr.on_ack(self.config.kernel, news.delivered, in_flight, advanced);
        }
    }

    /// A loss was detected, or congestion was signalled by marks.
    pub(super) fn begin_recovery(&mut self, now: Nanos) {
        self.reductions.begun += 1;
        let prior = self.control.cwnd();
        let congestion = self.congestion(now, true);
        self.control.on_congestion(&congestion);
        let ssthresh = self.control.ssthresh().unwrap_or(prior);
        self.recovery.phase = Phase::Recovery;
        self.recovery.point = self.board.nxt();
        self.recovery.prr = self.uses_prr().then(|| Prr::new(prior, ssthresh));
        // Retransmissions of the recovery before may still be in flight.
        let (needed, first_resent) = self.board.resent();
        self.recovery.undo = Some(Undo { first_resent, needed });
        self.recovery.tail_probe = None;
    }

    fn congestion(&self, now: Nanos, is_new: bool) -> Congestion {
        let (first_lost, lost) = self.board.lost();
        let in_flight = self.board.in_flight();
        Congestion { now, in_flight, is_new, first_lost, lost, sent_to: self.board.nxt() }
    }

    fn end_recovery(&mut self, now: Nanos) {
        if self.recovery.phase == Phase::Recovery {
            self.control.on_recovery_end(now);
            self.rack.on_recovery_end();
        }
        // D-SACKs may still tell that it was needless.
        let Recovery { tail_probe, undo, .. } = self.recovery;
        self.recovery = Recovery { tail_probe, undo, ..Recovery::default() };
    }

    /// The retransmission timer expired.
    pub(super) fn begin_loss_recovery(&mut self, now: Nanos) {
        let is_new = self.recovery.phase == Phase::Open;
        // A timeout within fast recovery is taken for a loss, as Linux does.
        let active = self.recovery.phase != Phase::Recovery;
        self.reductions.begun += u64::from(is_new);
        self.reductions.timeouts += 1;
        let (_, lost_before) = self.board.lost();
        self.board.lose_all();
        let (_, lost) = self.board.lost();
        self.rate.on_lost(lost - lost_before);
        let congestion = self.congestion(now, is_new);
        self.control.on_retransmission_timeout(&congestion);
        if is_new {
            self.recovery.undo = Some(Undo::default());
        }
        self.recovery.phase = Phase::Loss;
        self.recovery.point = self.board.nxt();
        self.recovery.prr = None;
        self.recovery.tail_probe = None;
        self.recovery.frto = Frto { active, new_first: false };
        self.timers.reordering = None;
    }

    /// Whether nothing was lost: the originals arrived, by the echoed timestamp (Eifel,
    /// RFC 3522), or all retransmissions were duplicates (RFC 3708), which those of a recovery
    /// that has ended may show as well.
    fn was_spurious(&mut self, news: &News) -> bool {
        let Some(undo) = &mut self.recovery.undo else { return false };
        let Some(first_resent) = undo.first_resent else { return false };
        let needed = undo.needed;
        undo.needed = needed.saturating_sub(news.duplicates);
        let all_duplicates = needed > 0 && undo.needed == 0;
        let is_repairing = self.recovery.phase != Phase::Open;
        all_duplicates || (is_repairing && news.advanced && news.echo < first_resent)
    }

    fn undo(&mut self, now: Nanos) {
        self.reductions.undone += 1;
        self.control.undo(now);
        self.board.unlose();
        self.rack.on_reordering();
        self.recovery = Recovery::default();
    }

    /// An acknowledgement of what the tail loss probe was sent behind: a probe that
    /// repaired a loss is congestion too (RFC 8985 section 7.4).
    fn check_tail_probe(&mut self, now: Nanos, news: &News) {
        let Some(probe) = self.recovery.tail_probe else { return };
        if self.board.una() < probe.end {
            return;
        }
        let is_duplicate = !news.advanced && news.delivered == 0;
        if !probe.retransmission || news.duplicates > 0 {
            self.recovery.tail_probe = None;
        //= https://www.rfc-editor.org/rfc/rfc8985#section-7.4.2
        //# If the TLP sender does not receive such an indication, then it MUST assume that the
        //# original data segment, the TLP retransmission, or a corresponding ACK was lost for
        //# congestion control purposes.
        } else if self.board.una() > probe.end {
            self.recovery.tail_probe = None;
            if self.recovery.phase == Phase::Open {
                self.begin_recovery(now);
            }
        } else if is_duplicate {
            self.recovery.tail_probe = None;
        }
    }
}
