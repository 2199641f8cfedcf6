//! Which packets are in flight, delivered, lost or retransmitted (RFC 6675), kept as
//! runs.
//!
//! Original transmissions are in the order of numbers and of time, so what is lost by
//! time is a prefix of them. `frontier` is its end:
//!
//! ```text
//!   una              frontier                       nxt
//!    |  sacked, lost     |   sacked or in flight     |
//!    |  or retransmitted |   as sent originally      |
//! ```
//!
//! Only a tail loss probe retransmits a packet at or after the frontier.

use crate::PacketRun;
use control::{DeliverySnapshot, SentPackets};
use runs::RunSet;
use std::collections::VecDeque;
use units::Nanos;

/// Packets sent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transmission {
    pub(crate) run: PacketRun,
    pub(crate) sent: Nanos,
    /// Numbers the transmissions: in virtual time, many share a moment.
    pub(crate) order: u64,
    /// The delivery state when they were sent.
    pub(crate) snapshot: DeliverySnapshot,
}

impl From<&Transmission> for SentPackets {
    fn from(of: &Transmission) -> Self {
        let order = (of.order, of.run.end);
        SentPackets { packets: of.run.len(), sent: of.sent, order, snapshot: of.snapshot }
    }
}

/// Packets of one transmission that were delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) transmission: Transmission,
    /// Some of them were retransmitted at some time: which transmission was
    /// delivered is ambiguous (Karn).
    pub(crate) ambiguous: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    una: u64,
    nxt: u64,
    frontier: u64,
    /// Original transmissions, from the one that contains `una`.
    original: VecDeque<Transmission>,
    sacked: RunSet,
    /// Lost, not yet retransmitted.
    lost: RunSet,
    /// Retransmissions in flight, oldest first.
    resent: VecDeque<Transmission>,
    /// Packets that were retransmitted at any time.
    ever_resent: RunSet,
    /// The packet that a tail loss probe retransmitted at or after the frontier.
    probe: Option<u64>,
    /// Number of the last transmission.
    order: u64,
}

impl Scoreboard {
    /// The first packet not acknowledged in order.
    pub(crate) const fn una(&self) -> u64 {
        self.una
    }

    /// The next packet to be sent for the first time.
    pub(crate) const fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Packets in flight (RFC 6675's pipe): sent, neither delivered nor lost.
    pub(crate) fn in_flight(&self) -> u64 {
        let gone = self.sacked.packets() + self.lost.packets();
        (self.nxt - self.una + u64::from(self.probe.is_some())).saturating_sub(gone)
    }

    pub(crate) const fn sacked(&self) -> u64 {
        self.sacked.packets()
    }

    /// The highest packet sacked, plus one; `una` without any.
    pub(crate) fn highest_sacked(&self) -> u64 {
        self.sacked.last().map_or(self.una, |run| run.end)
    }

    /// Whether a retransmission is due.
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The first packet that is lost and not yet retransmitted (the first not
    /// acknowledged where there is none), and the number of those.
    pub(crate) fn lost(&self) -> (u64, u64) {
        let first = self.lost.first().map_or(self.una, |run| run.start);
        (first, self.lost.packets())
    }

    /// Whether a packet was lost and has not been delivered yet.
    pub(crate) const fn has_unrepaired(&self) -> bool {
        self.una < self.frontier
    }

    /// Retransmitted packets in flight, and when the oldest of them was sent.
    pub(crate) fn resent(&self) -> (u64, Option<Nanos>) {
        let packets = self.resent.iter().map(|sent| sent.run.len()).sum();
        (packets, self.resent.front().map(|sent| sent.sent))
    }

    /// When the first packet that is not acknowledged was last sent.
    pub(crate) fn head_sent(&self) -> Option<Nanos> {
        let head = self.original.front()?;
        if self.una >= self.frontier && self.probe.is_none() {
            return Some(head.sent);
        }
        let covers = |resent: &&Transmission| {
            !PacketRun::new(self.una, self.una + 1).overlap(resent.run).is_empty()
        };
        Some(self.resent.iter().find(covers).map_or(head.sent, |resent| resent.sent))
    }

    /// New packets were sent.
    pub(crate) fn send_new(
        &mut self,
        count: u64,
        sent: Nanos,
        snapshot: DeliverySnapshot,
    ) -> PacketRun {
        let run = PacketRun::new(self.nxt, self.nxt + count);
        self.nxt = run.end;
        match self.original.back_mut() {
            // One record for what one moment sent.
            Some(last)
                if last.sent == sent
                    && last.order == self.order
                    && last.snapshot.continues_in(&snapshot) =>
            {
                last.run.end = run.end;
                last.snapshot = snapshot;
            }
            _ => {
                self.order += 1;
                self.original.push_back(Transmission { run, sent, order: self.order, snapshot });
            }
        }
        run
    }

    /// Retransmits the first packets that are lost, at most `most` of them.
    pub(crate) fn resend(
        &mut self,
        most: u64,
        sent: Nanos,
        snapshot: DeliverySnapshot,
    ) -> Option<PacketRun> {
        let run = self.lost.take_first(most)?;
        self.push_resent(Transmission { run, sent, order: 0, snapshot });
        Some(run)
    }

    fn push_resent(&mut self, transmission: Transmission) {
        self.order += 1;
        self.resent.push_back(Transmission { order: self.order, ..transmission });
        self.ever_resent.insert(transmission.run);
    }

    /// Retransmits the last packet sent, as a probe (RFC 8985 section 7.3).
    pub(crate) fn resend_tail(
        &mut self,
        sent: Nanos,
        snapshot: DeliverySnapshot,
    ) -> Option<PacketRun> {
        let tail = self.nxt.checked_sub(1).filter(|tail| *tail >= self.una)?;
        if tail < self.frontier || self.probe.is_some() || self.sacked.contains(tail) {
            return None;
        }
        let run = PacketRun::new(tail, tail + 1);
        self.push_resent(Transmission { run, sent, order: 0, snapshot });
        self.probe = Some(tail);
        Some(run)
    }

    /// All before `next` arrived. Calls `visit` for what was not sacked before.
    pub(crate) fn acknowledge(&mut self, next: u64, visit: &mut impl FnMut(Delivered)) {
        let next = next.min(self.nxt);
        if next <= self.una {
            return;
        }
        self.deliver(PacketRun::new(self.una, next), visit);
        self.sacked.remove_before(next);
        self.ever_resent.remove_before(next);
        while self.original.front().is_some_and(|first| first.run.end <= next) {
            self.original.pop_front();
        }
        self.una = next;
        self.frontier = self.frontier.max(next);
    }

    /// Packets of a SACK block arrived. Calls `visit` for those that were not sacked
    /// before.
    pub(crate) fn sack(&mut self, block: PacketRun, visit: &mut impl FnMut(Delivered)) {
        let block = block.overlap(PacketRun::new(self.una, self.nxt));
        if block.is_empty() {
            return;
        }
        self.deliver(block, visit);
        self.sacked.insert(block);
    }

    fn deliver(&mut self, run: PacketRun, visit: &mut impl FnMut(Delivered)) {
        if self.sacked.is_empty() {
            return self.deliver_gap(run, visit);
        }
        let mut from = run.start;
        while from < run.end {
            let mut gap = PacketRun::default();
            // The first gap only: delivering it changes the other sets.
            self.sacked.gaps(PacketRun::new(from, run.end), |part| {
                if gap.is_empty() {
                    gap = part;
                }
            });
            if gap.is_empty() {
                return;
            }
            self.deliver_gap(gap, visit);
            from = gap.end;
        }
    }

    /// Packets that were not delivered before.
    fn deliver_gap(&mut self, gap: PacketRun, visit: &mut impl FnMut(Delivered)) {
        let old = PacketRun::new(gap.start, gap.end.min(self.frontier));
        if !old.is_empty() {
            self.deliver_resent(old, visit);
            let mut lost = std::mem::take(&mut self.lost);
            lost.remove(old, |part| self.deliver_original(part, visit));
            self.lost = lost;
        }
        let mut new = PacketRun::new(gap.start.max(self.frontier), gap.end);
        if let Some(probe) = self.probe.filter(|probe| *probe < new.end && *probe >= new.start) {
            self.deliver_resent(PacketRun::new(probe, probe + 1), visit);
            self.probe = None;
            // A probe is of the last packet at its time; later ones may follow it.
            self.deliver_original(PacketRun::new(new.start, probe), visit);
            new.start = probe + 1;
        }
        self.deliver_original(new, visit);
    }

    fn deliver_original(&self, run: PacketRun, visit: &mut impl FnMut(Delivered)) {
        if run.is_empty() {
            return;
        }
        let first = match self.original.front() {
            Some(first) if first.run.end > run.start => 0,
            _ => self.original.partition_point(|sent| sent.run.end <= run.start),
        };
        for sent in self.original.range(first..) {
            let part = sent.run.overlap(run);
            if part.is_empty() {
                break;
            }
            let ambiguous = !self.ever_resent.is_empty() && self.was_resent(part);
            visit(Delivered { transmission: Transmission { run: part, ..*sent }, ambiguous });
        }
    }

    fn was_resent(&self, run: PacketRun) -> bool {
        let mut never = 0;
        self.ever_resent.gaps(run, |gap| never += gap.len());
        never < run.len()
    }

    fn deliver_resent(&mut self, run: PacketRun, visit: &mut impl FnMut(Delivered)) {
        let mut missing = run.len();
        let mut at = 0;
        while missing > 0
            && let Some(sent) = self.resent.get(at).copied()
        {
            let part = sent.run.overlap(run);
            if part.is_empty() {
                at += 1;
                continue;
            }
            missing -= part.len();
            visit(Delivered { transmission: Transmission { run: part, ..sent }, ambiguous: true });
            let before = PacketRun::new(sent.run.start, part.start);
            let after = PacketRun::new(part.end, sent.run.end);
            self.resent.remove(at);
            for rest in [after, before].into_iter().filter(|rest| !rest.is_empty()) {
                self.resent.insert(at, Transmission { run: rest, ..sent });
            }
        }
    }

    /// Takes as lost what `is_lost` says of a transmission: how many of its packets, from
    /// its first on. Gives the packets lost and the first transmission of each kind that
    /// is not.
    pub(crate) fn detect_losses(
        &mut self,
        is_lost: impl Fn(&Transmission) -> Option<u64>,
    ) -> (u64, [Option<Transmission>; 2]) {
        let before = self.lost.packets();
        let mut waiting = [None, None];
        while let Some(oldest) = self.resent.front().copied() {
            // A probe that overtook the frontier's packets is checked in their place.
            if is_lost(&oldest).is_none_or(|end| end < oldest.run.end) {
                waiting[0] = Some(oldest);
                break;
            }
            self.resent.pop_front();
            if self.probe == Some(oldest.run.start) {
                // The frontier has to pass it before it can be retransmitted.
                self.probe = None;
                continue;
            }
            self.lost.insert(oldest.run);
        }
        let first = match self.original.front() {
            Some(first) if first.run.end > self.frontier => 0,
            Some(_) => self.original.partition_point(|sent| sent.run.end <= self.frontier),
            None => return (self.lost.packets() - before, waiting),
        };
        for index in first..self.original.len() {
            let sent = self.original[index];
            let from = self.frontier.max(sent.run.start);
            let Some(end) = is_lost(&sent).filter(|end| *end > from) else {
                waiting[1] = Some(sent);
                break;
            };
            self.lose(PacketRun::new(from, end));
            if end < sent.run.end {
                break;
            }
        }
        (self.lost.packets() - before, waiting)
    }

    /// Moves the frontier over `run`, which begins at it.
    fn lose(&mut self, run: PacketRun) {
        let (sacked, lost, probe) = (&self.sacked, &mut self.lost, self.probe);
        sacked.gaps(run, |gap| match probe.filter(|p| *p >= gap.start && *p < gap.end) {
            Some(probe) => {
                lost.insert(PacketRun::new(gap.start, probe));
                lost.insert(PacketRun::new(probe + 1, gap.end));
            }
            None => lost.insert(gap),
        });
        self.frontier = run.end;
        if probe.is_some_and(|probe| probe < self.frontier) {
            // From now on it is an ordinary retransmission.
            self.probe = None;
        }
    }

    /// A timeout: all that was not delivered is lost, retransmissions too.
    pub(crate) fn lose_all(&mut self) {
        self.resent.clear();
        self.probe = None;
        let (sacked, lost) = (&self.sacked, &mut self.lost);
        sacked.gaps(PacketRun::new(self.una, self.nxt), |gap| lost.insert(gap));
        self.frontier = self.nxt;
    }

    /// Nothing was lost after all: what was taken as lost is in flight again.
    pub(crate) fn unlose(&mut self) {
        self.lost.clear();
        self.resent.clear();
        self.probe = None;
        self.frontier = self.una;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is in flight by the records of transmissions.
    fn recorded(board: &Scoreboard) -> u64 {
        let mut originals = 0;
        board.sacked.gaps(PacketRun::new(board.frontier, board.nxt), |gap| originals += gap.len());
        originals + board.resent.iter().map(|sent| sent.run.len()).sum::<u64>()
    }

    #[derive(Debug, Clone)]
    enum Step {
        Send(u64),
        Sack(u64, u64),
        Acknowledge(u64),
        Lose(u64),
        Resend(u64),
        Probe,
        Timeout,
        Undo,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (1u64..9).prop_map(Step::Send),
            4 => (0u64..40, 1u64..9).prop_map(|(from, len)| Step::Sack(from, len)),
            3 => (0u64..9).prop_map(Step::Acknowledge),
            3 => (0u64..9).prop_map(Step::Lose),
            4 => (1u64..5).prop_map(Step::Resend),
            1 => Just(Step::Probe),
            1 => Just(Step::Timeout),
            1 => Just(Step::Undo),
        ];
        prop::collection::vec(step, 0..60)
    }

    proptest! {
        #[test]
        fn every_packet_is_delivered_once_and_in_flight_as_recorded(steps in steps()) {
            let mut board = Scoreboard::default();
            let mut delivered = std::collections::BTreeSet::new();
            for (time, step) in (1..).zip(steps) {
                let now = Nanos(time);
                let snapshot = DeliverySnapshot::default();
                let mut twice = false;
                let mut visit = |part: Delivered| {
                    let run = part.transmission.run;
                    twice |= run.is_empty() || (run.start..run.end).any(|p| !delivered.insert(p));
                };
                match step {
                    Step::Send(packets) => {
                        board.send_new(packets, now, snapshot);
                    }
                    Step::Sack(from, len) => {
                        let from = board.una + from;
                        board.sack(PacketRun::new(from, from + len), &mut visit);
                    }
                    Step::Acknowledge(packets) => {
                        board.acknowledge(board.una + packets, &mut visit);
                    }
                    Step::Lose(age) => {
                        let newest = Nanos(time.saturating_sub(age));
                        let is_lost =
                            |sent: &Transmission| (sent.sent < newest).then_some(sent.run.end);
                        board.detect_losses(is_lost);
                    }
                    Step::Resend(most) => {
                        board.resend(most, now, snapshot);
                    }
                    Step::Probe => {
                        board.resend_tail(now, snapshot);
                    }
                    Step::Timeout => board.lose_all(),
                    Step::Undo => board.unlose(),
                }
                prop_assert!(!twice);
                prop_assert_eq!(board.in_flight(), recorded(&board));
                let beyond = board.una + board.sacked.packets();
                prop_assert_eq!(delivered.len() as u64, beyond);
                prop_assert!(board.una <= board.frontier && board.frontier <= board.nxt);
            }
        }
    }
}
