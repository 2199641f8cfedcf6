//! Congestion events: the losses of one recovery, with the state just before them.

use crate::series::Step;

/// Losses within this many RTTs, and within this many seconds, are one event: a recovery
/// takes one RTT, a retransmitted segment that is lost again another one or two.
const RECOVERY_RTTS: f64 = 4.0;
const RECOVERY_S: f64 = 0.25;

/// One congestion event of one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    /// The end of the step in which it was detected, seconds.
    pub(crate) at: f64,
    /// Retransmitted segments, until the next event.
    pub(crate) lost: f64,
    /// The congestion window before it, in segments.
    pub(crate) window: f64,
    /// The queueing delay before it, in seconds.
    pub(crate) queueing: f64,
    /// The delivered rate before it, bit/s.
    pub(crate) rate: f64,
    /// The minimum queueing delay after the window was reduced, until the next event or
    /// for a second.
    pub(crate) drained: f64,
    /// The index of its step.
    pub(crate) step: usize,
}

impl Event {
    /// Segments queued at the bottleneck: W (1 - minimum RTT / RTT).
    pub(crate) fn backlog(&self, min_rtt: f64) -> f64 {
        self.window * self.queueing / (min_rtt + self.queueing).max(1e-9)
    }
}

/// The events within a stream's steps, in the order of time. `min_rtt` in seconds.
pub(crate) fn find(steps: &[Step], min_rtt: f64) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let queueing = |step: &Step| step.rtt().map_or(0.0, |rtt| (rtt - min_rtt).max(0.0));
    for (index, step) in steps.iter().enumerate() {
        if step.lost <= 0.0 {
            continue;
        }
        let rtt = step.rtt().unwrap_or(min_rtt);
        if let Some(event) = events.last_mut()
            && step.to - event.at <= RECOVERY_S.max(RECOVERY_RTTS * rtt)
        {
            event.lost += step.lost;
            continue;
        }
        // The two steps before and the event's own: the loss was sent an RTT earlier.
        let back = 2 + (rtt / step.seconds()) as usize;
        let earlier = steps.get(index.saturating_sub(back)..index).unwrap_or_default();
        let most = |read: &dyn Fn(&Step) -> f64| earlier.iter().map(read).fold(0.0, f64::max);
        let start = f64::from(step.before.rtt_us) / 1e6;
        events.push(Event {
            at: step.to,
            lost: step.lost,
            window: most(&Step::cwnd).max(step.before.cwnd_bytes as f64 / step.mss()),
            queueing: most(&queueing).max((start - min_rtt).max(0.0)).max(queueing(step)),
            rate: if earlier.is_empty() { step.rate } else { most(&|step| step.rate) },
            drained: 0.0,
            step: index,
        });
    }
    let ends: Vec<f64> = events.iter().skip(1).map(|event| event.at).collect();
    for (place, event) in events.iter_mut().enumerate() {
        let end = ends.get(place).copied().unwrap_or(f64::INFINITY).min(event.at + 1.0);
        let after = steps.iter().skip(event.step + 1).take_while(|step| step.to <= end);
        event.drained = after.map(queueing).fold(event.queueing, f64::min);
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        example::{sampled, samples},
        series::Series,
    };
    use record::Sample;

    fn events(change: impl Fn(u64, &mut Sample)) -> Vec<Event> {
        let series = Series::of(&sampled(samples(10.0, 10.0, change)));
        find(&series.streams[0], 0.02)
    }

    #[test]
    fn losses_of_one_recovery_are_one_event() {
        // 3 + 2 segments within 200 ms, and one 3 s later.
        let lost = |index, s: &mut Sample| {
            s.retransmits = match index {
                0..20 => 0,
                20 => 3,
                21..52 => 5,
                _ => 6,
            };
        };
        let found = events(lost);
        let summary: Vec<(f64, f64)> = found.iter().map(|event| (event.at, event.lost)).collect();
        assert_eq!(summary, [(2.0, 5.0), (5.2, 1.0)]);
        assert!(events(|_, _| {}).is_empty());
    }

    #[test]
    fn a_long_round_trip_makes_a_recovery_longer() {
        let lost = |rtt_us: u32| {
            events(move |index, s| {
                s.rtt_us = rtt_us;
                s.retransmits = u64::from(index >= 20) + u64::from(index >= 26);
            })
        };
        assert_eq!(lost(20_000).len(), 2, "600 ms are 30 RTTs");
        assert_eq!(lost(300_000).len(), 1, "600 ms are 2 RTTs");
    }

    #[test]
    fn the_state_is_that_before_the_window_was_reduced() {
        let found = events(|index, s| {
            let reduced = index >= 20;
            s.retransmits = u64::from(reduced);
            s.cwnd_bytes = if reduced { 70_000 } else { 100_000 };
            s.rtt_us = if reduced { 24_000 } else { 40_000 };
        });
        let event = found[0];
        assert!((event.window - 100.0).abs() < 1e-9 && (event.queueing - 0.02).abs() < 1e-9);
        assert!((event.drained - 0.004).abs() < 1e-9, "{event:?}");
        // W (1 - minimum RTT / RTT) = 100 (1 - 20 / 40).
        assert!((event.backlog(0.02) - 50.0).abs() < 1e-9);
    }
}
