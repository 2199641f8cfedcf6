//! Figures of round trips: pure functions of what was sent and heard.

use record::{Ping, RoundTrips};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Probes that are remembered: no more can be told apart by a number of 16 bits.
const REMEMBERED: usize = 1 << 16;

/// Mean and deviation of a stream of numbers, without keeping them (Welford 1962).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Running {
    pub(crate) count: u64,
    pub(crate) mean: f64,
    /// Sum of the squares of differences from the mean.
    squares: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Running {
    pub(crate) fn add(&mut self, value: f64) {
        let first = self.count == 0;
        self.count += 1;
        let from_old = value - self.mean;
        self.mean += from_old / self.count as f64;
        self.squares += from_old * (value - self.mean);
        self.min = if first { value } else { self.min.min(value) };
        self.max = if first { value } else { self.max.max(value) };
    }

    /// The standard deviation of these very numbers (divided by their count).
    pub(crate) fn deviation(&self) -> f64 {
        if self.count == 0 { 0.0 } else { (self.squares / self.count as f64).max(0.0).sqrt() }
    }
}

/// The value that `percent` % of `sorted` do not exceed, by nearest rank: the
/// smallest with at least that share at or below it. `None` of nothing.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// What an answer was to its probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The first, in time.
    InTime,
    /// The first, after the timeout.
    Late,
    /// Another one.
    Duplicate,
}

/// A probe that was sent.
#[derive(Debug, Clone, Copy)]
struct Probe {
    at: Instant,
    rtt_ms: Option<f64>,
    /// A router gave it back, or it was never sent.
    failed: bool,
}

/// Probes to one host and what became of them.
#[derive(Debug)]
pub(crate) struct Tally {
    timeout: Duration,
    /// When the first probe was sent.
    begun: Option<Instant>,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) late: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    pub(crate) errors: u64,
    /// The latest probes; the last of them is number `sent`.
    probes: VecDeque<Probe>,
    round_trips: Running,
    /// Differences of consecutive round trips.
    differences: Running,
    last_ms: Option<f64>,
    /// The highest number that was answered.
    highest: u64,
}

impl Tally {
    pub(crate) fn new(timeout: Duration) -> Self {
        Tally {
            timeout,
            begun: None,
            sent: 0,
            received: 0,
            late: 0,
            duplicates: 0,
            reordered: 0,
            errors: 0,
            probes: VecDeque::new(),
            round_trips: Running::default(),
            differences: Running::default(),
            last_ms: None,
            highest: 0,
        }
    }

    /// The next probe leaves at `at`.
    pub(crate) fn send(&mut self, at: Instant) {
        if self.probes.len() == REMEMBERED {
            self.probes.pop_front();
        }
        self.begun.get_or_insert(at);
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

    /// An answer to probe `number` came at `at`: what it was, and its round trip.
    pub(crate) fn answer(&mut self, number: u64, at: Instant) -> Option<(Answer, Duration)> {
        let index = self.index(number)?;
        let probe = self.probes.get_mut(index)?;
        let rtt = at.saturating_duration_since(probe.at);
        if probe.rtt_ms.is_some() {
            self.duplicates += 1;
            return Some((Answer::Duplicate, rtt));
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
            Some((Answer::Late, rtt))
        } else {
            self.received += 1;
            Some((Answer::InTime, rtt))
        }
    }

    /// A router gave probe `number` back, or it could not be sent. Tells
    /// whether that was news.
    pub(crate) fn fail(&mut self, number: u64) -> bool {
        let index = self.index(number);
        let Some(probe) = index.and_then(|index| self.probes.get_mut(index)) else {
            return false;
        };
        let news = !probe.failed && probe.rtt_ms.is_none();
        probe.failed = true;
        self.errors += u64::from(news);
        news
    }

    /// Probes that may still be answered in time.
    pub(crate) fn waiting(&self, now: Instant) -> u64 {
        let open = |probe: &&Probe| probe.rtt_ms.is_none() && !probe.failed;
        let young = |probe: &&Probe| now.saturating_duration_since(probe.at) < self.timeout;
        self.probes.iter().rev().take_while(young).filter(open).count() as u64
    }

    /// The round trips so far; `None` where there are none.
    pub(crate) fn round_trips(&self) -> Option<RoundTrips> {
        let mut sorted: Vec<f64> = self.probes.iter().filter_map(|probe| probe.rtt_ms).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |percent| percentile(&sorted, percent);
        let all = &self.round_trips;
        Some(RoundTrips {
            count: all.count,
            min_ms: all.min,
            avg_ms: all.mean,
            max_ms: all.max,
            mdev_ms: all.deviation(),
            p50_ms: at(50)?,
            p90_ms: at(90)?,
            p95_ms: at(95)?,
            p99_ms: at(99)?,
            jitter_ms: (self.differences.count > 0).then_some(self.differences.mean),
        })
    }

    /// The probes that are remembered, in order.
    pub(crate) fn probes(&self) -> Vec<Ping> {
        let first = self.sent - self.probes.len() as u64 + 1;
        let since = |at: Instant| {
            self.begun.map_or(0.0, |begun| at.saturating_duration_since(begun).as_secs_f64())
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

    /// A tally of probes 100 ms apart with these round trips in ms.
    fn of(rtts: &[Option<u32>]) -> (Tally, Instant) {
        let (mut tally, start) = (Tally::new(1000 * MS), clock::now());
        for (number, rtt) in (1u32..).zip(rtts) {
            let at = start + 100 * MS * number;
            tally.send(at);
            if let Some(rtt) = rtt {
                tally.answer(number.into(), at + MS * *rtt);
            }
        }
        (tally, start)
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        let at = |percent| percentile(&ten, percent).unwrap();
        // Ranks: 0.5 x 10 = 5, 0.9 x 10 = 9, 9.5 and 9.9 up to 10; none is 1.
        assert_eq!([at(50), at(90), at(95), at(99), at(0)], [5.0, 9.0, 10.0, 10.0, 1.0]);
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        let at = |percent| percentile(&hundred, percent).unwrap();
        assert_eq!([at(7), at(50), at(99), at(100)], [7.0, 50.0, 99.0, 100.0]);
        assert_eq!(percentile(&[3.0], 99), Some(3.0));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn figures_are_as_worked_by_hand() {
        let (tally, _) = of(&[Some(10), Some(20), None, Some(40), Some(10)]);
        let trips = tally.round_trips().unwrap();
        assert_eq!((trips.count, trips.min_ms, trips.max_ms), (4, 10.0, 40.0));
        // Mean 80/4; squares of -10, 0, 20, -10 are 600, over 4 are 150.
        assert!((trips.avg_ms - 20.0).abs() < 1e-9, "{trips:?}");
        assert!((trips.mdev_ms - 150f64.sqrt()).abs() < 1e-9, "{trips:?}");
        // |20-10|, |40-20|, |10-40| are 60, over 3.
        assert!((trips.jitter_ms.unwrap() - 20.0).abs() < 1e-9, "{trips:?}");
        assert_eq!((trips.p50_ms, trips.p90_ms), (10.0, 40.0));
        assert_eq!((tally.sent, tally.received), (5, 4));
        let sent: Vec<f64> = tally.probes().iter().map(|probe| probe.sent_s).collect();
        assert_eq!(sent, [0.0, 0.1, 0.2, 0.3, 0.4]);
    }

    #[test]
    fn one_answer_has_no_jitter_and_none_no_figures() {
        let (tally, _) = of(&[Some(7), None]);
        let trips = tally.round_trips().unwrap();
        assert_eq!((trips.mdev_ms, trips.jitter_ms, trips.p99_ms), (0.0, None, 7.0));
        assert_eq!(of(&[None, None]).0.round_trips(), None);
    }

    #[test]
    fn second_answers_and_later_ones_first_are_counted() {
        let (mut tally, start) = of(&[None, None, None]);
        let answers: Vec<_> = [2, 2, 1, 3]
            .into_iter()
            .map(|n| tally.answer(n, start + 350 * MS).unwrap().0)
            .collect();
        use Answer::{Duplicate, InTime};
        assert_eq!(answers, [InTime, Duplicate, InTime, InTime]);
        assert_eq!((tally.received, tally.duplicates, tally.reordered), (3, 1, 1));
        assert_eq!(tally.answer(4, start), None);
        assert_eq!(tally.answer(0, start), None);
    }

    #[test]
    fn the_timeout_itself_is_in_time_and_what_follows_late() {
        let (tally, _) = of(&[Some(1000), Some(1001)]);
        assert_eq!((tally.received, tally.late), (1, 1));
        assert_eq!(tally.round_trips().unwrap().count, 2);
    }

    #[test]
    fn what_may_still_come_is_waited_for() {
        let (mut tally, start) = of(&[None, Some(5), None]);
        // Sent at 100, 200 and 300 ms with a timeout of 1 s.
        assert_eq!(tally.waiting(start + 1099 * MS), 2);
        assert_eq!(tally.waiting(start + 1100 * MS), 1);
        assert!(tally.fail(3) && !tally.fail(3) && !tally.fail(9));
        assert_eq!((tally.waiting(start + 1100 * MS), tally.errors), (0, 1));
    }

    #[test]
    fn numbers_outlive_sixteen_bits() {
        let (mut tally, at) = (Tally::new(MS), clock::now());
        assert_eq!((tally.number(0), tally.number(1)), (None, None));
        for _ in 0..70_000 {
            tally.send(at);
        }
        // 70 000 is 4464 above 65 536.
        assert_eq!(tally.number(4464), Some(70_000));
        assert_eq!(tally.number(4465), Some(4465));
        assert_eq!(tally.number(0), Some(65_536));
        assert_eq!(tally.answer(4464, at), None);
        assert_eq!(tally.probes().first().unwrap().number, 4465);
    }
}
