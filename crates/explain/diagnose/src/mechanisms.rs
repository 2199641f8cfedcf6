//! Which limits could act in a transfer at all: a mechanism that was not in use, or that left
//! no trace where it must leave one, is never named, however well the statistics fit.
//!
//! | limit | needs |
//! |---|---|
//! | ECN marks | segments delivered with CE, or echoed marks (RFC 3168, section 6.1.3) |
//! | reordering | D-SACKs, the kernel's count of reorderings, or windows that came back |
//! | a window without scaling | a scale that is known, from the SYNs or the kernel (RFC 7323) |
//! | a policer, a queue that overflows, loss | retransmitted segments |
//! | other traffic | a path that this test's own other direction does not explain |
//! | other traffic, there or on the path of the ACKs, and AQM | of a watched connection, some seconds |

use record::{Limit, Measurement, Sample, Unavailable};

/// A window is restored where it is at least this share of what it was before a loss: undoing
/// a reduction (`tcp_undo_cwnd_reduction`) gives all of it back, CUBIC keeps 0.7 and Reno 0.5.
const RESTORED: f64 = 0.9;

/// Samples after a reduction within which it is undone.
const UNDONE_WITHIN: usize = 3;

/// Seconds that a connection is watched before what shows over time is said of it: a few samples
/// from the middle of a transfer look like any varying rate.
const MIN_WATCHED_S: f64 = 5.0;

/// What a transfer's counters and options rule out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mechanisms {
    is_marked: bool,
    is_reordered: bool,
    has_losses: bool,
    is_bidirectional: bool,
    is_brief: bool,
}

impl Mechanisms {
    pub(crate) fn of(m: &Measurement) -> Self {
        let last = || m.streams.iter().filter_map(|stream| stream.sender.last());
        let achieved = m.path.as_ref().map(|path| path.achieved);
        let omitted = m.streams.iter().flat_map(|stream| &stream.caveats);
        let omitted_losses = omitted.into_iter().any(|caveat| {
            matches!(caveat, record::Caveat::OmittedSeconds { retransmits, .. }
                if *retransmits != Some(0))
        });
        let retransmitted = last().any(|s| s.retransmits > 0)
            || m.streams.iter().any(|stream| stream.retransmits.is_some_and(|count| count > 0));
        let unsampled = m.streams.iter().all(|stream| stream.sender.is_empty());
        Mechanisms {
            is_marked: last().any(|s| s.ce_delivered.is_some_and(|count| count > 0))
                || achieved.is_some_and(|achieved| achieved.marked > 0),
            is_reordered: unsampled || is_reordered(m),
            has_losses: retransmitted
                || omitted_losses
                || unsampled
                || m.lacks(Unavailable::Retransmissions),
            is_bidirectional: m.spec.is_part_of_both,
            is_brief: m.streams.iter().any(|stream| stream.watched)
                && m.spec.seconds < MIN_WATCHED_S,
        }
    }

    /// Whether the transfer leaves a limit possible.
    pub(crate) fn can_act(self, limit: Limit) -> bool {
        match limit {
            Limit::EcnMarks => self.is_marked,
            Limit::Reordering => self.is_reordered,
            Limit::Policer | Limit::ShallowQueue | Limit::Loss | Limit::ClusteredLoss => {
                self.has_losses
            }
            Limit::Aqm => (self.has_losses || self.is_marked) && !self.is_brief,
            Limit::SharedBottleneck => !self.is_bidirectional && !self.is_brief,
            Limit::AckPath => !self.is_brief,
            _ => true,
        }
    }
}

/// Whether reductions of the window were undone: by the kernel's counters, else by the window
/// itself.
fn is_reordered(m: &Measurement) -> bool {
    let last = || m.streams.iter().filter_map(|stream| stream.sender.last());
    let counts = || last().flat_map(|s| [s.dsack_duplicates, s.reorderings]).flatten();
    if counts().next().is_some() {
        return counts().any(|count| count > 0);
    }
    let mut losses = false;
    for stream in &m.streams {
        for (at, pair) in stream.sender.windows(2).enumerate() {
            let [before, after] = pair else { continue };
            if after.retransmits <= before.retransmits
                || before.cwnd_bytes == 0
                || before.t_s <= 0.0
            {
                continue;
            }
            losses = true;
            let later = stream.sender.iter().skip(at + 1).take(UNDONE_WITHIN);
            if !later.into_iter().any(|later| is_restored(before, later)) {
                return false;
            }
        }
    }
    losses
}

fn is_restored(before: &Sample, after: &Sample) -> bool {
    after.cwnd_bytes as f64 >= RESTORED * before.cwnd_bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{sampled, samples};

    fn mechanisms(change: impl Fn(u64, &mut Sample)) -> Mechanisms {
        Mechanisms::of(&sampled(samples(4.0, 10.0, change)))
    }

    #[test]
    fn marks_need_a_mark() {
        assert!(!mechanisms(|_, _| {}).can_act(Limit::EcnMarks));
        assert!(!mechanisms(|_, s| s.ce_delivered = Some(0)).can_act(Limit::EcnMarks));
        assert!(mechanisms(|_, s| s.ce_delivered = Some(1)).can_act(Limit::EcnMarks));
    }

    #[test]
    fn other_traffic_is_not_claimed_in_the_first_seconds_of_a_watch() {
        let watched = |seconds: f64, watched: bool| {
            let mut m = sampled(samples(4.0, 10.0, |_, s| s.ce_delivered = Some(1)));
            m.spec.seconds = seconds;
            m.streams.iter_mut().for_each(|stream| stream.watched = watched);
            Mechanisms::of(&m)
        };
        for limit in [Limit::SharedBottleneck, Limit::AckPath, Limit::Aqm] {
            assert!(!watched(4.9, true).can_act(limit), "{limit:?}");
            assert!(watched(5.0, true).can_act(limit), "{limit:?}");
            assert!(watched(1.0, false).can_act(limit), "a test knows its beginning: {limit:?}");
        }
        assert!(watched(1.0, true).can_act(Limit::PathRate));
    }

    #[test]
    fn losses_need_a_retransmission() {
        for limit in [Limit::Policer, Limit::ShallowQueue, Limit::Loss, Limit::ClusteredLoss] {
            assert!(!mechanisms(|_, _| {}).can_act(limit), "{limit:?}");
            assert!(mechanisms(|_, s| s.retransmits = 1).can_act(limit), "{limit:?}");
        }
        assert!(mechanisms(|_, s| s.ce_delivered = Some(1)).can_act(Limit::Aqm));
        assert!(!mechanisms(|_, _| {}).can_act(Limit::Aqm));
    }

    #[test]
    fn omitted_losses_may_still_act() {
        let mut m = sampled(samples(4.0, 10.0, |_, _| {}));
        let omitted = |retransmits| record::Caveat::OmittedSeconds { seconds: 3.0, retransmits };
        for (retransmits, can) in [(Some(0), false), (Some(1), true), (None, true)] {
            m.streams[0].caveats = vec![omitted(retransmits)];
            assert_eq!(Mechanisms::of(&m).can_act(Limit::Loss), can, "{retransmits:?}");
        }
    }

    #[test]
    fn reordering_needs_reductions_that_were_undone() {
        let lost = |cwnd: fn(u64) -> u64| {
            move |index: u64, s: &mut Sample| {
                s.retransmits = index / 10;
                s.cwnd_bytes = cwnd(index);
            }
        };
        let can = |m: Mechanisms| m.can_act(Limit::Reordering);
        assert!(can(mechanisms(lost(|_| 100_000))), "the window stays");
        assert!(!can(mechanisms(lost(|index| 100_000 >> (index / 10)))), "it is cut");
        assert!(!can(mechanisms(|_, _| {})), "nothing was lost");
        // Windows that come back after single losses, and one that is cut by most of them.
        let burst = mechanisms(|index, s| {
            let cut = index / 10 >= 3;
            s.retransmits = index / 10 + if cut { 500 } else { 0 };
            s.cwnd_bytes = if cut { 25_000 } else { 100_000 };
        });
        assert!(!can(burst), "a burst");
        let counted = |count| {
            mechanisms(move |index, s| {
                (s.retransmits, s.reorderings, s.dsack_duplicates) =
                    (index / 10, Some(count), Some(0));
            })
        };
        assert!(can(counted(1)) && !can(counted(0)));
    }

    #[test]
    fn own_traffic_is_no_other_traffic() {
        let mut m = sampled(samples(4.0, 10.0, |_, _| {}));
        assert!(Mechanisms::of(&m).can_act(Limit::SharedBottleneck));
        m.spec.is_part_of_both = true;
        assert!(!Mechanisms::of(&m).can_act(Limit::SharedBottleneck));
    }
}
