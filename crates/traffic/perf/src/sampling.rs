//! When samples of a test are taken, and how many are kept.

use std::time::Duration;

/// How long the start of a test is sampled more often.
const START: Duration = Duration::from_secs(2);
/// Interval between samples at the start: slow start doubles the window in every RTT, and
/// the methods that read its RTTs need at least ten samples of it (Sundaresan et al.,
/// IMC 2017).
const START_INTERVAL: Duration = Duration::from_millis(10);
/// Most samples of the start, over all streams: full resolution up to eight streams.
const START_SAMPLES: u32 = 1_600;

/// When samples are taken: often at the start, then at a fixed interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    /// Interval at the start; [`Schedule::every`] if the start is not sampled more often.
    at_start: Duration,
    every: Duration,
}

impl Schedule {
    /// The schedule of a test of `streams` streams, sampled at the interval `every` after
    /// its start. The start is that of the connections: a test whose warm-up is omitted
    /// (`omit`) has none.
    pub(crate) fn new(every: Duration, streams: usize, omit: Duration) -> Self {
        let streams = u32::try_from(streams).unwrap_or(u32::MAX);
        let at_start = START_INTERVAL.max((START / START_SAMPLES).saturating_mul(streams));
        let at_start = if omit.is_zero() { at_start.min(every) } else { every };
        Schedule { at_start, every }
    }

    /// The interval after a sample taken `elapsed` after the test's start.
    pub(crate) fn interval(&self, elapsed: Duration) -> Duration {
        if elapsed < START { self.at_start } else { self.every }
    }

    /// Samples of one stream's start; 0 if it is not sampled more often.
    pub(crate) fn start_samples(&self) -> usize {
        if self.at_start >= self.every {
            return 0;
        }
        usize::try_from(START.as_nanos() / self.at_start.as_nanos().max(1)).unwrap_or(usize::MAX)
    }
}

/// Samples of one stream, oldest first: at max a fixed number.
///
/// The samples of the start are kept. When the series is full, every second sample after
/// them is dropped, and from then on only every second new one is kept: resolution halves
/// as the duration doubles.
#[derive(Debug, Clone)]
pub(crate) struct Series<T> {
    samples: Vec<T>,
    max: usize,
    /// Samples at the start that are not thinned out, at most half of `max`.
    start: usize,
    /// One in `stride` samples after them is kept.
    stride: u64,
    /// Samples seen after them.
    seen: u64,
}

impl<T> Series<T> {
    /// At max `max` samples, at least two; the first `start` of them stay.
    pub(crate) fn new(max: usize, start: usize) -> Self {
        let max = max.max(2);
        Series { samples: Vec::new(), max, start: start.min(max / 2), stride: 1, seen: 0 }
    }

    /// Adds a sample.
    pub(crate) fn push(&mut self, sample: T) {
        if self.samples.len() < self.start {
            self.samples.push(sample);
            return;
        }
        if self.seen.is_multiple_of(self.stride) {
            self.samples.push(sample);
        }
        self.seen += 1;
        if self.samples.len() >= self.max {
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index <= self.start || (index - self.start) % 2 == 1
            });
            self.stride = self.stride.saturating_mul(2);
        }
    }

    /// Adds the last sample, whatever the stride; `instead` of the one before if
    /// that is recent.
    pub(crate) fn end(&mut self, last: T, instead: bool) {
        if instead && self.samples.len() > 1 {
            self.samples.pop();
        }
        self.samples.push(last);
    }

    /// The samples so far.
    pub(crate) fn samples(&self) -> &[T] {
        &self.samples
    }

    pub(crate) fn finish(self) -> Vec<T> {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_stays_bounded_and_evenly_spaced() {
        for count in [1u64, 9, 10, 11, 1000, 12_345] {
            let mut series = Series::new(10, 0);
            for reading in 0..count {
                series.push(reading);
            }
            let kept = series.finish();
            assert!(!kept.is_empty() && kept.len() < 10, "{count}: {kept:?}");
            assert_eq!(kept[0], 0);
            let steps: Vec<u64> = kept.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(steps.iter().all(|step| *step == steps[0]), "{count}: {kept:?}");
            assert!(count < 20 || kept[kept.len() - 1] * 2 > count, "{count}: {kept:?}");
        }
    }

    #[test]
    fn a_long_series_keeps_its_start() {
        for (max, start) in [(2, 1), (3, 9), (12, 4), (600, 200), (600, 1000)] {
            let mut series = Series::new(max, start);
            for reading in 0..12_345u64 {
                series.push(reading);
                assert!(series.samples.len() <= max, "{max}, {start}");
            }
            let kept = series.finish();
            let start = start.min(max / 2);
            let expected: Vec<u64> = (0..start as u64).collect();
            assert_eq!(kept[..start], expected, "{max}, {start}");
            let steps: Vec<u64> = kept[start..].windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(steps.iter().all(|step| *step == steps[0]), "{max}, {start}: {kept:?}");
        }
    }

    /// The times of the samples of the first `until` ms, in ms.
    fn times(schedule: Schedule, until: u64) -> Vec<u64> {
        let (mut at, mut times) = (Duration::ZERO, Vec::new());
        while at <= Duration::from_millis(until) {
            times.push(at.as_millis() as u64);
            at += schedule.interval(at);
        }
        times
    }

    #[test]
    fn the_start_is_sampled_every_10_ms() {
        let every = Duration::from_millis(100);
        for streams in [1, 8] {
            let schedule = Schedule::new(every, streams, Duration::ZERO);
            let expected: Vec<u64> = (0..=200).map(|n| n * 10).chain([2100, 2200]).collect();
            assert_eq!(times(schedule, 2200), expected);
            assert_eq!(schedule.start_samples(), 200);
        }
        let steady: Vec<u64> = (0..=22).map(|n| n * 100).collect();
        for (streams, omit) in [(1, Duration::from_secs(1)), (80, Duration::ZERO)] {
            let schedule = Schedule::new(every, streams, omit);
            assert_eq!((times(schedule, 2200), schedule.start_samples()), (steady.clone(), 0));
        }
    }

    #[test]
    fn many_streams_share_the_samples_of_the_start() {
        for streams in 1..=256usize {
            for every in [1, 50, 100, 1000].map(Duration::from_millis) {
                let schedule = Schedule::new(every, streams, Duration::ZERO);
                assert!(schedule.start_samples() * streams <= START_SAMPLES as usize);
                assert!(schedule.interval(Duration::ZERO) <= every);
                assert_eq!(schedule.interval(START), every);
            }
        }
    }
}
