//! The sender's timers.

use super::{Probe, Sender};
use crate::limits::Limit;
use crate::rack::Surroundings;
use crate::sender::recovery::News;
use control::{CongestionControl, Phase};
use units::Nanos;

/// A tail loss probe waits that much longer than two RTTs, ns.
const PROBE_MARGIN_NS: u64 = 2_000_000;
/// The same with one packet in flight, whose acknowledgement may be delayed.
const PROBE_MARGIN_ONE_NS: u64 = 200_000_000;

/// When they expire; `None` is not running.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Timers {
    /// RFC 6298.
    pub(super) retransmission: Option<Nanos>,
    /// The tail loss probe (RFC 8985 section 7).
    pub(super) tail_probe: Option<Nanos>,
    /// The end of the reordering window (RFC 8985 section 6.3).
    pub(super) reordering: Option<Nanos>,
    /// The window probe (RFC 9293 section 3.8.6.1).
    pub(super) persist: Option<Nanos>,
    /// When the application has more to write.
    pub(super) write: Option<Nanos>,
    /// Something was sent since the tail loss probe was scheduled.
    pub(super) sent: bool,
}

impl<C: CongestionControl> Sender<C> {
    /// When to call [`Sender::on_timeout`] next, unless an acknowledgement comes earlier;
    /// `None`: nothing will happen without one.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Nanos> {
        let timers = &self.timers;
        let pacing = (self.limits.limit() == Limit::Pacing).then(|| self.pacer.next());
        let all = [
            timers.retransmission,
            timers.tail_probe,
            timers.reordering,
            timers.persist,
            timers.write,
            pacing,
        ];
        all.into_iter().flatten().min()
    }

    /// A moment of [`Sender::next_timeout`] has come.
    pub fn on_timeout(&mut self, now: Nanos) {
        let expired = |timer: &mut Option<Nanos>| timer.take_if(|at| *at <= now).is_some();
        if expired(&mut self.timers.reordering) {
            self.on_reordering_timeout(now);
        }
        expired(&mut self.timers.write);
        //= https://www.rfc-editor.org/rfc/rfc9293#section-3.8.6.1
        //# The transmitting host SHOULD send the first zero-window probe when a zero window
        //# has existed for the retransmission timeout period (SHLD-29) (Section 3.8.1), and
        //# SHOULD increase exponentially the interval between successive probes (SHLD-30).
        if expired(&mut self.timers.persist) {
            self.rtt.back_off();
            self.probe = Some(Probe::Window);
        }
        if expired(&mut self.timers.retransmission) {
            self.timers.tail_probe = None;
            if self.board.nxt() > self.board.una() {
                self.rtt.back_off();
                self.begin_loss_recovery(now);
                self.restart_retransmission_timer(now);
            }
        } else if expired(&mut self.timers.tail_probe) {
            self.probe = Some(Probe::Tail);
        }
    }

    fn on_reordering_timeout(&mut self, now: Nanos) {
        let lost = self.detect_losses(now);
        let news = News {
            advanced: false,
            delivered: 0,
            sacked: 0,
            first_original: None,
            lost,
            marked: 0,
            duplicates: 0,
            echo: Nanos(u64::MAX),
        };
        self.update_recovery(now, &news);
    }

    /// Marks what RACK takes as lost, and sets its timer.
    pub(super) fn detect_losses(&mut self, now: Nanos) -> u64 {
        let around = Surroundings {
            now,
            recovering: self.recovery.phase() != Phase::Open,
            min_rtt_ns: self.rtt.min_ns().unwrap_or(0),
            smoothed_ns: self.rtt.smoothed_ns(),
        };
        let (lost, again) = self.rack.detect(&mut self.board, &around);
        self.timers.reordering = again;
        self.rate.on_lost(lost);
        lost
    }

    pub(super) fn restart_retransmission_timer(&mut self, now: Nanos) {
        let outstanding = self.board.nxt() > self.board.una();
        let timeout = self.rtt.timeout_ns();
        self.timers.retransmission = outstanding.then(|| now.plus_nanos(timeout));
    }

    /// After sending, and after acknowledgements that advanced.
    pub(super) fn schedule_tail_probe(&mut self, now: Nanos) {
        self.timers.tail_probe = None;
        let outstanding = self.board.nxt() - self.board.una();
        let can_probe = self.recovery.phase() == Phase::Open
            && self.board.sacked() == 0
            && !self.recovery.has_tail_probe()
            && outstanding > 0;
        let Some(srtt) = self.rtt.smoothed().filter(|_| can_probe) else { return };
        let margin = if outstanding == 1 { PROBE_MARGIN_ONE_NS } else { PROBE_MARGIN_NS };
        let at = now.plus_nanos(2 * srtt.nanos() + margin);
        if self.timers.retransmission.is_none_or(|timeout| at < timeout) {
            self.timers.tail_probe = Some(at);
        }
    }
}
