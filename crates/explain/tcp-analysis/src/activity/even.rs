//! Pauses that come at even times: an application with a timer, which no ACK and no pacing makes.
//!
//! Pacing waits in proportion to what was sent; a timer fires at even times, however much is
//! written. ACKs that end a pause by chance, as they do where the RTT is a multiple of the period,
//! leave others that no ACK ends.

use super::{MAX_VALUES, Pause, median};

/// Pauses from which they are judged.
const MIN_PAUSES: usize = 8;

/// Even times: this share of the distances is within this part of their median. Uneven sizes: this
/// share of what was sent in these differs from the median by that much.
const EVEN: f64 = 0.65;
const EVEN_WITHIN: f64 = 0.1;
const UNEVEN: f64 = 0.2;
const UNEVEN_BEYOND: f64 = 0.25;

/// Periods, as shares of the RTT, that a full window has as well: one burst in each round trip, which a
/// queue may make longer.
const ROUND_TRIPS: std::ops::RangeInclusive<f64> = 0.9..=1.25;

/// The share of pauses that no ACK ends, from which those that one ends are chance.
const UNRELEASED: f64 = 0.1;

/// Distances between the ends of pauses, and what was sent in between.
#[derive(Debug, Clone, Default)]
struct Series {
    last_ns: Option<u64>,
    pairs: Vec<(u64, u64)>,
    sent_to: u64,
}

/// What a timer does: its period in ns, the mean of what it writes, and how often.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timer {
    pub(super) period_ns: u64,
    pub(super) bytes: u64,
    pub(super) count: usize,
    is_uneven: bool,
}

fn is_within(value: u64, middle: u64, part: f64) -> bool {
    value.abs_diff(middle) as f64 <= part * middle as f64
}

impl Series {
    fn add(&mut self, now_ns: u64, sent_to: u64) {
        if let Some(last_ns) = self.last_ns.replace(now_ns)
            && self.pairs.len() < MAX_VALUES
        {
            self.pairs.push((now_ns.saturating_sub(last_ns), sent_to - self.sent_to));
        }
        self.sent_to = sent_to;
    }

    fn even(&self) -> Option<Timer> {
        let periods: Vec<u64> = self.pairs.iter().map(|(period, _)| *period).collect();
        let period_ns = median(&periods)?;
        let even = self.pairs.iter().filter(|pair| is_within(pair.0, period_ns, EVEN_WITHIN));
        let sizes: Vec<u64> = even.map(|(_, size)| *size).collect();
        let size = median(&sizes)?;
        let uneven = sizes.iter().filter(|other| !is_within(**other, size, UNEVEN_BEYOND)).count();
        let count = sizes.len();
        let is_even = count >= MIN_PAUSES && count as f64 >= EVEN * self.pairs.len() as f64;
        is_even.then(|| Timer {
            period_ns,
            bytes: sizes.iter().sum::<u64>() / count as u64,
            count: self.pairs.len() + 1,
            is_uneven: uneven as f64 >= UNEVEN * count as f64,
        })
    }
}

/// Number and time of some pauses.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: u32,
    ns: u64,
}

impl Sum {
    fn add(&mut self, ns: u64) {
        self.count = self.count.saturating_add(1);
        self.ns += ns;
    }
}

/// The pauses of a sender.
#[derive(Debug, Clone, Default)]
pub(super) struct EvenPauses {
    unreleased: Series,
    all: Series,
    idle: u32,
    timed: Sum,
    paced: Sum,
    released: Sum,
}

impl EvenPauses {
    /// A pause ends, before which everything up to `sent_to` was sent.
    pub(super) fn add(&mut self, why: Pause, now_ns: u64, pause_ns: u64, sent_to: u64) {
        match why {
            Pause::Explained => return,
            Pause::Released => self.released.add(pause_ns),
            Pause::Paced => self.paced.add(pause_ns),
            Pause::Timed => self.timed.add(pause_ns),
            Pause::Idle => self.idle = self.idle.saturating_add(1),
        }
        self.all.add(now_ns, sent_to);
        if why != Pause::Released {
            self.unreleased.add(now_ns, sent_to);
        }
    }

    /// The timer of the application, if there is one, and the time that it explains beyond the
    /// pauses that are certain, in ns. Away from the sender, where the jitter of the path hides which
    /// ACK ends a pause, `rtt_ns` is no period.
    pub(super) fn timer(&self, rtt_ns: Option<u64>) -> Option<(Timer, u64)> {
        let certain = self.idle.saturating_add(self.timed.count);
        let unreleased = certain.saturating_add(self.paced.count);
        let all = unreleased.saturating_add(self.released.count);
        let is_round_trip = |found: &Timer| {
            rtt_ns.is_some_and(|rtt_ns| {
                ROUND_TRIPS.contains(&(found.period_ns as f64 / rtt_ns.max(1) as f64))
            })
        };
        let is_timer = |found: &Timer| {
            (found.is_uneven || certain >= self.paced.count) && !is_round_trip(found)
        };
        let unprompted = self.timed.ns + self.paced.ns;
        if f64::from(unreleased) >= UNRELEASED * f64::from(all)
            && let Some(timer) = self.all.even().filter(is_timer)
        {
            return Some((timer, unprompted + self.released.ns));
        }
        self.unreleased.even().filter(is_timer).map(|timer| (timer, unprompted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Pauses of these lengths in ms, each after so many bytes.
    fn timer(why: Pause, pauses: impl IntoIterator<Item = (u64, u64)>) -> Option<u64> {
        timer_beside(None, why, pauses)
    }

    /// The same with an RTT in ms.
    fn timer_beside(
        rtt_ms: Option<u64>,
        why: Pause,
        pauses: impl IntoIterator<Item = (u64, u64)>,
    ) -> Option<u64> {
        let mut even = EvenPauses::default();
        let (mut now, mut sent) = (0, 0);
        for (pause, bytes) in pauses {
            now += pause * MS;
            sent += bytes;
            even.add(why, now, pause * MS, sent);
        }
        let timer = even.timer(rtt_ms.map(|ms| ms * MS));
        timer.map(|(timer, _)| timer.period_ns / MS)
    }

    #[test]
    fn pacing_waits_in_proportion_and_a_timer_does_not() {
        let bytes = |n: u64| 1448 * (1 + n % 2);
        let paced = timer(Pause::Paced, (0..50).map(|n| (bytes(n) / 250, bytes(n))));
        assert_eq!(paced, None);
        assert_eq!(timer(Pause::Paced, (0..50).map(|_| (11, 2896))), None, "all the same");
        assert_eq!(timer(Pause::Paced, (0..50).map(|n| (10, bytes(n)))), Some(10));
        assert_eq!(timer(Pause::Timed, (0..50).map(|_| (20, 5000))), Some(20));
    }

    #[test]
    fn a_burst_in_each_round_trip_is_no_timer() {
        for (rtt_ms, found) in [(20, None), (17, None), (14, Some(20)), (60, Some(20))] {
            let pauses = (0..50).map(|_| (20, 15_000));
            assert_eq!(timer_beside(Some(rtt_ms), Pause::Timed, pauses), found, "{rtt_ms}");
        }
    }

    #[test]
    fn pauses_that_acks_end_are_no_timer() {
        assert_eq!(timer(Pause::Released, (0..50).map(|_| (100, 39_600))), None);
        assert_eq!(timer(Pause::Timed, (0..50).map(|n| (5 + 7 * (n % 9), 9000))), None);
    }
}
