//! Statistics of RTTs: pure functions of probes and replies.

use model::statistics::percentile;
use record::{Ping, RoundTrips};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum number of remembered probes: sequence numbers have 16 bits.
const MAX_PROBES: usize = 1 << 16;

/// RunningStats mean and standard deviation (Welford 1962).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct RunningStats {
    pub(crate) count: u64,
    pub(crate) mean: f64,
    /// Sum of squared differences from the mean.
    squares: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl RunningStats {
    pub(crate) fn add(&mut self, value: f64) {
        let first = self.count == 0;
        self.count += 1;
        let from_old = value - self.mean;
        self.mean += from_old / self.count as f64;
        self.squares += from_old * (value - self.mean);
        self.min = if first { value } else { self.min.min(value) };
        self.max = if first { value } else { self.max.max(value) };
    }

    /// The population standard deviation.
    pub(crate) fn deviation(&self) -> f64 {
        if self.count == 0 { 0.0 } else { (self.squares / self.count as f64).max(0.0).sqrt() }
    }
}

/// How a reply counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyKind {
    /// The first, before the timeout.
    InTime,
    /// The first, after the timeout.
    Late,
    /// Not the first.
    Duplicate,
}

/// A probe that was sent.
#[derive(Debug, Clone, Copy)]
struct Probe {
    at: Instant,
    rtt_ms: Option<f64>,
    /// An ICMP error came back, or it was never sent.
    failed: bool,
}

/// The probes to one host and their outcome.
#[derive(Debug)]
pub(crate) struct RttStats {
    timeout: Duration,
    /// When the first probe was sent.
    started: Option<Instant>,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) late: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    pub(crate) errors: u64,
    /// The latest probes; the last one has the number `sent`.
    probes: VecDeque<Probe>,
    round_trips: RunningStats,
    /// Absolute differences of consecutive RTTs, ms.
    differences: RunningStats,
    last_ms: Option<f64>,
    /// The highest number with a reply.
    highest: u64,
}

impl RttStats {
    pub(crate) fn new(timeout: Duration) -> Self {
        RttStats {
            timeout,
            started: None,
            sent: 0,
            received: 0,
            late: 0,
            duplicates: 0,
            reordered: 0,
            errors: 0,
            probes: VecDeque::new(),
            round_trips: RunningStats::default(),
            differences: RunningStats::default(),
            last_ms: None,
            highest: 0,
        }
    }

    /// Counts the next probe, sent at `at`.
    pub(crate) fn send(&mut self, at: Instant) {
        if self.probes.len() == MAX_PROBES {
            self.probes.pop_front();
        }
        self.started.get_or_insert(at);
        self.probes.push_back(Probe { at, rtt_ms: None, failed: false });
        self.sent += 1;
    }

    /// The number of the latest probe whose low 16 bits are `seq`.
    pub(crate) fn number(&self, seq: u16) -> Option<u64> {
        let back = (self.sent & 0xffff).wrapping_sub(u64::from(seq)) & 0xffff;
        let number = self.sent.checked_sub(back)?;
        self.index(number).map(|_| number)
    }

    fn index(&self, number: u64) -> Option<usize> {
        let back = usize::try_from(self.sent.checked_sub(number)?).ok()?;
        self.probes.len().checked_sub(back + 1).filter(|_| number > 0)
    }

    /// Counts a reply to probe `number` at `at`; returns its kind and RTT.
    pub(crate) fn reply(&mut self, number: u64, at: Instant) -> Option<(ReplyKind, Duration)> {
        let index = self.index(number)?;
        let probe = self.probes.get_mut(index)?;
        let rtt = at.saturating_duration_since(probe.at);
        if probe.rtt_ms.is_some() {
            self.duplicates += 1;
            return Some((ReplyKind::Duplicate, rtt));
        }
        let ms = rtt.as_secs_f64() * 1e3;
        probe.rtt_ms = Some(ms);
        self.round_trips.add(ms);
        if let Some(last) = self.last_ms.replace(ms) {
            self.differences.add((ms - last).abs());
        }
        if number < self.highest {
            self.reordered += 1;
        }
        self.highest = self.highest.max(number);
        if rtt > self.timeout {
            self.late += 1;
            Some((ReplyKind::Late, rtt))
        } else {
            self.received += 1;
            Some((ReplyKind::InTime, rtt))
        }
    }

    /// Counts an ICMP error to probe `number`, or that it could not be sent. Returns
    /// whether it is the first error.
    pub(crate) fn fail(&mut self, number: u64) -> bool {
        let index = self.index(number);
        let Some(probe) = index.and_then(|index| self.probes.get_mut(index)) else {
            return false;
        };
        let is_new = !probe.failed && probe.rtt_ms.is_none();
        probe.failed = true;
        self.errors += u64::from(is_new);
        is_new
    }

    /// Outstanding probes: neither answered nor timed out.
    pub(crate) fn waiting(&self, now: Instant) -> u64 {
        let open = |probe: &&Probe| probe.rtt_ms.is_none() && !probe.failed;
        let recent = |probe: &&Probe| now.saturating_duration_since(probe.at) < self.timeout;
        self.probes.iter().rev().take_while(recent).filter(open).count() as u64
    }

    /// The statistics so far; `None` without replies.
    pub(crate) fn round_trips(&self) -> Option<RoundTrips> {
        let mut rtts: Vec<f64> = self.probes.iter().filter_map(|probe| probe.rtt_ms).collect();
        // Sorted once, so that each percentile sorts in linear time.
        rtts.sort_by(f64::total_cmp);
        let at = |share| percentile(&rtts, share);
        let all = &self.round_trips;
        Some(RoundTrips {
            count: all.count,
            min_ms: all.min,
            avg_ms: all.mean,
            max_ms: all.max,
            mdev_ms: all.deviation(),
            p50_ms: at(0.5)?,
            p90_ms: at(0.9)?,
            p95_ms: at(0.95)?,
            p99_ms: at(0.99)?,
            jitter_ms: (self.differences.count > 0).then_some(self.differences.mean),
        })
    }

    /// The remembered probes, in order.
    pub(crate) fn probes(&self) -> Vec<Ping> {
        let first = self.sent - self.probes.len() as u64 + 1;
        let since = |at: Instant| {
            self.started.map_or(0.0, |started| at.saturating_duration_since(started).as_secs_f64())
        };
        let ping = |(number, probe): (u64, &Probe)| Ping {
            number,
            sent_s: since(probe.at),
            rtt_ms: probe.rtt_ms,
        };
        (first..).zip(&self.probes).map(ping).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::clock;

    const MS: Duration = Duration::from_millis(1);

    /// Statistics of probes 100 ms apart with these RTTs in ms.
    fn of(rtts: &[Option<u32>]) -> (RttStats, Instant) {
        let (mut stats, start) = (RttStats::new(1000 * MS), clock::now());
        for (number, rtt) in (1u32..).zip(rtts) {
            let at = start + 100 * MS * number;
            stats.send(at);
            if let Some(rtt) = rtt {
                stats.reply(number.into(), at + MS * *rtt);
            }
        }
        (stats, start)
    }

    #[test]
    fn statistics_match_a_worked_example() {
        let (stats, _) = of(&[Some(10), Some(20), None, Some(40), Some(10)]);
        let trips = stats.round_trips().unwrap();
        assert_eq!((trips.count, trips.min_ms, trips.max_ms), (4, 10.0, 40.0));
        // Mean 80/4; squares of -10, 0, 20, -10 are 600, over 4 are 150.
        assert!((trips.avg_ms - 20.0).abs() < 1e-9, "{trips:?}");
        assert!((trips.mdev_ms - 150f64.sqrt()).abs() < 1e-9, "{trips:?}");
        // |20-10|, |40-20|, |10-40| are 60, over 3.
        assert!((trips.jitter_ms.unwrap() - 20.0).abs() < 1e-9, "{trips:?}");
        assert_eq!((trips.p50_ms, trips.p90_ms), (10.0, 40.0));
        assert_eq!((stats.sent, stats.received), (5, 4));
        let sent: Vec<f64> = stats.probes().iter().map(|probe| probe.sent_s).collect();
        assert_eq!(sent, [0.0, 0.1, 0.2, 0.3, 0.4]);
    }

    #[test]
    fn one_reply_has_no_jitter_and_none_no_statistics() {
        let (stats, _) = of(&[Some(7), None]);
        let trips = stats.round_trips().unwrap();
        assert_eq!((trips.mdev_ms, trips.jitter_ms, trips.p99_ms), (0.0, None, 7.0));
        assert_eq!(of(&[None, None]).0.round_trips(), None);
    }

    #[test]
    fn duplicates_and_reordering_are_counted() {
        let (mut stats, start) = of(&[None, None, None]);
        let replies: Vec<_> =
            [2, 2, 1, 3].into_iter().map(|n| stats.reply(n, start + 350 * MS).unwrap().0).collect();
        use ReplyKind::{Duplicate, InTime};
        assert_eq!(replies, [InTime, Duplicate, InTime, InTime]);
        assert_eq!((stats.received, stats.duplicates, stats.reordered), (3, 1, 1));
        assert_eq!(stats.reply(4, start), None);
        assert_eq!(stats.reply(0, start), None);
    }

    #[test]
    fn a_reply_at_the_timeout_is_in_time_and_a_later_one_late() {
        let (stats, _) = of(&[Some(1000), Some(1001)]);
        assert_eq!((stats.received, stats.late), (1, 1));
        assert_eq!(stats.round_trips().unwrap().count, 2);
    }

    #[test]
    fn outstanding_probes_are_counted() {
        let (mut stats, start) = of(&[None, Some(5), None]);
        // Sent at 100, 200 and 300 ms with a timeout of 1 s.
        assert_eq!(stats.waiting(start + 1099 * MS), 2);
        assert_eq!(stats.waiting(start + 1100 * MS), 1);
        assert!(stats.fail(3) && !stats.fail(3) && !stats.fail(9));
        assert_eq!((stats.waiting(start + 1100 * MS), stats.errors), (0, 1));
    }

    #[test]
    fn sequence_numbers_wrap() {
        let (mut stats, at) = (RttStats::new(MS), clock::now());
        assert_eq!((stats.number(0), stats.number(1)), (None, None));
        for _ in 0..70_000 {
            stats.send(at);
        }
        // 70 000 is 4464 above 65 536.
        assert_eq!(stats.number(4464), Some(70_000));
        assert_eq!(stats.number(4465), Some(4465));
        assert_eq!(stats.number(0), Some(65_536));
        assert_eq!(stats.reply(4464, at), None);
        assert_eq!(stats.probes().first().unwrap().number, 4465);
    }
}
