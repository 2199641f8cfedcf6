//! Loss detection by time (RFC 8985), with Linux's reordering window.

use crate::scoreboard::{Scoreboard, Transmission};
use units::Nanos;

/// Packets sacked beyond a hole that tell a loss where no reordering was seen
/// (RFC 5681's duplicate threshold).
const DUPTHRESH: u64 = 3;
/// Recoveries after which a widened reordering window is narrow again.
const STEPS_LAST: u32 = 16;

/// The newest transmission that was delivered, and the reordering window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rack {
    /// The transmission of the newest delivered packet, by its order, and the packet's
    /// number plus one.
    newest: Option<(u64, u64)>,
    rtt_ns: u64,
    /// Reordering was seen on this path.
    reordering: bool,
    /// The reordering window in quarters of the minimum RTT.
    steps: u64,
    /// Recoveries left with more than one step.
    persist: u32,
    /// It was widened when that many packets had been delivered.
    round_end: u64,
}

/// What the reordering window depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings {
    pub(crate) now: Nanos,
    /// A recovery is under way.
    pub(crate) recovering: bool,
    pub(crate) min_rtt_ns: u64,
    pub(crate) smoothed_ns: u64,
}

impl Rack {
    pub(crate) const fn new() -> Self {
        Rack { newest: None, rtt_ns: 0, reordering: false, steps: 1, persist: 0, round_end: 0 }
    }

    /// Packets were delivered (RFC 8985 section 6.2, step 2).
    pub(crate) fn on_delivered(
        &mut self,
        now: Nanos,
        delivered: &Transmission,
        ambiguous: bool,
        min_rtt_ns: Option<u64>,
    ) {
        let rtt_ns = now.nanos_since(delivered.sent);
        //= https://www.rfc-editor.org/rfc/rfc8985#section-6.2
        //# To avoid spurious inferences, ignore a segment as invalid if any of its sequence range
        //# has been retransmitted before and if either of two conditions is true:
        //#
        //# 2.  The segment was last retransmitted less than RACK.min_rtt ago.
        if ambiguous && min_rtt_ns.is_some_and(|least| rtt_ns < least) {
            // It was the original that was delivered.
            return;
        }
        //= https://www.rfc-editor.org/rfc/rfc8985#section-6.2
        //# Among all the segments newly ACKed or SACKed by this ACK that pass the checks
        //# above, update the RACK.rtt to be the RTT sample calculated using this ACK.
        let key = (delivered.order, delivered.run.end);
        if self.newest.is_none_or(|newest| key > newest) {
            self.newest = Some(key);
            self.rtt_ns = rtt_ns;
        }
    }

    /// A packet that was sent once arrived after one sent later.
    pub(crate) fn on_reordering(&mut self) {
        //= https://www.rfc-editor.org/rfc/rfc8985#section-6.2
        //# If a never-retransmitted segment that's below RACK.fack is (selectively or
        //# cumulatively) acknowledged, it has been delivered out of order.
        self.reordering = true;
    }

    /// A retransmission was not needed: the window widens, once a round trip (RFC 8985
    /// section 6.2, step 4). `prior_delivered`: packets delivered when the newest
    /// delivered packet was sent.
    pub(crate) fn on_duplicate(&mut self, prior_delivered: u64, delivered: u64) {
        //= https://www.rfc-editor.org/rfc/rfc8985#section-3.3.2
        //# The RACK reordering window SHOULD adaptively increase (using the algorithm in "Step
        //# 4: Update RACK reordering window" below) if the sender receives a Duplicate
        //# Selective Acknowledgment (DSACK) option [RFC2883].
        if prior_delivered >= self.round_end {
            self.steps = (self.steps + 1).min(255);
            self.persist = STEPS_LAST;
            self.round_end = delivered;
        }
    }

    pub(crate) fn on_recovery_end(&mut self) {
        //= https://www.rfc-editor.org/rfc/rfc8985#section-6.2
        //# Else if exiting Fast or RTO recovery:
        //# RACK.reo_wnd_persist -= 1
        //# If RACK.reo_wnd_persist <= 0:
        //# RACK.reo_wnd_mult = 1
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Time by which packets may overtake others, ns.
    fn window_ns(&self, board: &Scoreboard, around: &Surroundings) -> u64 {
        //= https://www.rfc-editor.org/rfc/rfc8985#section-3.3.2
        //# The reordering window SHOULD be set to zero if no reordering has been observed on
        //# the connection so far, and either (a) three segments have been SACKed since the
        //# last recovery or (b) the sender is already in fast or RTO recovery.
        if !self.reordering && (around.recovering || board.sacked() >= DUPTHRESH) {
            return 0;
        }
        //= https://www.rfc-editor.org/rfc/rfc8985#section-3.3.2
        //# The RACK reordering window MUST be bounded, and this bound SHOULD be SRTT.
        (around.min_rtt_ns / 4 * self.steps).min(around.smoothed_ns)
    }

    /// Marks packets as lost that were sent before one that was delivered, and longer ago
    /// than a round trip and the reordering window. Gives how many, and when to look
    /// again.
    pub(crate) fn detect(
        &self,
        board: &mut Scoreboard,
        around: &Surroundings,
    ) -> (u64, Option<Nanos>) {
        let Some((newest, newest_end)) = self.newest else { return (0, None) };
        let limit_ns = self.rtt_ns + self.window_ns(board, around);
        let (lost, waiting) = board.detect_losses(|sent| {
            let expired = sent.sent.plus_nanos(limit_ns) <= around.now;
            if !expired || sent.order > newest {
                return None;
            }
            let end = if sent.order < newest { sent.run.end } else { sent.run.end.min(newest_end) };
            (end > sent.run.start).then_some(end)
        });
        // What was sent after the newest delivered packet is not waited for.
        let deadlines = waiting.into_iter().flatten().filter(|sent| sent.order < newest);
        let next = deadlines.map(|sent| sent.sent.plus_nanos(limit_ns)).min();
        (lost, next.filter(|at| *at > around.now))
    }
}
