//! The senders' samples as steps: what changed between one sample and the next.
//!
//! Samples come every 10 ms in the first 2 s and every 100 ms later (older files: every
//! 50 or 100 ms throughout). Steps join samples that are closer than [`STEP_S`], so that
//! statistics weigh all times alike.

use record::{Measurement, Sample, Stream};

/// The shortest step, in seconds: below 100 ms and above half of it.
const STEP_S: f64 = 0.06;

/// Samples after this time, about 115 days, are ignored.
const LATEST_S: f64 = 1e7;

/// The time between two samples of one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// Its start and end, seconds since the test's start.
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Delivered payload, bit/s.
    pub(crate) rate: f64,
    /// Retransmitted segments within it.
    pub(crate) lost: f64,
    /// The sample at its start and at its end.
    pub(crate) before: Sample,
    pub(crate) after: Sample,
}

impl Step {
    pub(crate) fn seconds(&self) -> f64 {
        self.to - self.from
    }

    /// Growth of a counter within the step.
    pub(crate) fn growth(&self, read: impl Fn(&Sample) -> u64) -> f64 {
        read(&self.after).saturating_sub(read(&self.before)) as f64
    }

    /// The same for a counter of 32 bits that older kernels do not report.
    pub(crate) fn growth32(&self, read: impl Fn(&Sample) -> Option<u32>) -> Option<f64> {
        Some(f64::from(read(&self.after)?.saturating_sub(read(&self.before)?)))
    }

    /// The RTT at its end, in seconds, if the kernel has one.
    pub(crate) fn rtt(&self) -> Option<f64> {
        (self.after.rtt_us > 0).then(|| f64::from(self.after.rtt_us) / 1e6)
    }

    /// The segment size, in bytes.
    pub(crate) fn mss(&self) -> f64 {
        f64::from(self.after.mss_bytes.max(1))
    }

    /// The congestion window at its end, in segments.
    pub(crate) fn cwnd(&self) -> f64 {
        self.after.cwnd_bytes as f64 / self.mss()
    }

    /// Whether the sender is in slow start at its end.
    pub(crate) fn is_slow_start(&self) -> bool {
        self.after.ssthresh_bytes.is_none_or(|threshold| self.after.cwnd_bytes < threshold)
    }
}

/// The steps of every stream, in the order of the measurement; none where its sender was not
/// sampled.
#[derive(Debug, Default)]
pub(crate) struct Series {
    pub(crate) streams: Vec<Vec<Step>>,
}

impl Series {
    pub(crate) fn of(m: &Measurement) -> Self {
        Series { streams: m.streams.iter().map(steps).collect() }
    }

    /// Each stream's steps that end within a span of time.
    pub(crate) fn within(&self, from: f64, to: f64) -> Vec<&[Step]> {
        let of = |steps: &'_ Vec<Step>| {
            let first = steps.partition_point(|step| step.to <= from + 1e-9);
            let last = steps.partition_point(|step| step.to <= to + 1e-9);
            first..last.max(first)
        };
        self.streams.iter().map(|steps| steps.get(of(steps)).unwrap_or_default()).collect()
    }
}

fn steps(stream: &Stream) -> Vec<Step> {
    let delivered = |s: &Sample| s.delivered_bytes.max(s.acked_bytes);
    let step = |(before, after): (Sample, Sample)| {
        let bytes = delivered(&after).saturating_sub(delivered(&before)) as f64;
        Step {
            from: before.t_s,
            to: after.t_s,
            rate: bytes * 8.0 / (after.t_s - before.t_s),
            lost: after.retransmits.saturating_sub(before.retransmits) as f64,
            before,
            after,
        }
    };
    ends(&stream.sender, |sample| sample.t_s).into_iter().map(step).collect()
}

/// The samples at the start and at the end of each step, at least [`STEP_S`] apart; samples
/// at invalid times are skipped.
pub(crate) fn ends<T: Copy>(samples: &[T], time: impl Fn(&T) -> f64) -> Vec<(T, T)> {
    let mut all = Vec::new();
    let mut before: Option<T> = None;
    for after in samples.iter().filter(|sample| (0.0..=LATEST_S).contains(&time(sample))) {
        match before {
            Some(start) if time(after) - time(&start) < STEP_S => continue,
            Some(start) => all.push((start, *after)),
            None => {}
        }
        before = Some(*after);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_samples_are_one_step() {
        let sample = |ms: u64| Sample {
            t_s: ms as f64 / 1e3,
            delivered_bytes: ms * 1_000,
            ..Sample::default()
        };
        let times = (0..200).map(|n| n * 10).chain((20..40).map(|n| n * 100));
        let stream = Stream { sender: times.map(sample).collect(), ..Stream::default() };
        let steps = steps(&stream);
        assert!(steps.iter().all(|step| (step.rate - 8e6).abs() < 1.0));
        assert!(steps.iter().all(|step| (0.059..0.101).contains(&step.seconds())), "{steps:?}");
        assert!((steps.last().unwrap().to - 3.9).abs() < 1e-9);
    }

    #[test]
    fn invalid_times_are_skipped() {
        let times = [0.0, f64::NAN, -1.0, 0.1, 0.05, f64::INFINITY, 0.2];
        let sender = times.map(|t_s| Sample { t_s, ..Sample::default() }).to_vec();
        assert_eq!(steps(&Stream { sender, ..Stream::default() }).len(), 2);
    }
}
