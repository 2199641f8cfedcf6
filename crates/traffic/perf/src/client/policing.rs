//! Whether the path may police UDP, from what a UDT sender sees in its first seconds.
//!
//! A policer drops what exceeds its rate and delays nothing: UDT loses packets in slow start
//! without a queue, and from then on sends less than packet pairs say that the path carries,
//! since pairs pass a policer. Random loss looks the same; only TCP on the same path tells
//! them apart, and that is the caller's to try.

use record::Sample;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// When it is decided: a caller that then tries TCP does so within 3 s.
const DECIDED: Duration = Duration::from_millis(2_500);
/// What slow start may take, and UDT's estimate of the RTT, which begins at 100 ms.
const START_S: f64 = 1.0;
/// Share of the path's capacity below which its delivery rate is low. A full queue at the end
/// of slow start leaves two thirds.
const LOW: f64 = 0.5;
/// Retransmissions from which losses are more than chance.
const MIN_RETRANSMITS: u64 = 10;
/// RTT from which a queue has built up: this multiple of the minimum, and µs.
const QUEUED: (f64, f64) = (1.1, 3_000.0);

/// Decides once.
#[derive(Debug)]
pub(super) struct PolicingCheck {
    is_due: bool,
}

impl PolicingCheck {
    /// Nothing is checked unless `enabled`.
    pub(super) const fn new(enabled: bool) -> Self {
        PolicingCheck { is_due: enabled }
    }

    /// The rate that the path delivers, once, where it may police UDP. `streams` are the
    /// samples of each sending stream, `elapsed` the time since they began.
    pub(super) fn suspicion<'a>(
        &mut self,
        elapsed: Duration,
        streams: impl Iterator<Item = &'a [Sample]>,
    ) -> Option<BitRate> {
        if !self.is_due || elapsed < DECIDED {
            return None;
        }
        self.is_due = false;
        suspicion(streams)
    }
}

fn suspicion<'a>(streams: impl Iterator<Item = &'a [Sample]>) -> Option<BitRate> {
    let (mut delivered_bps, mut capacity, mut retransmits) = (0.0, BitRate::ZERO, 0);
    for samples in streams {
        let last = samples.last()?;
        let first = samples.iter().find(|sample| sample.t_s >= START_S)?;
        let min_rtt = f64::from(last.min_rtt_us?);
        if f64::from(last.rtt_us) > min_rtt * QUEUED.0 + QUEUED.1 {
            return None;
        }
        let bytes = last.delivered_bytes.saturating_sub(first.delivered_bytes);
        let span = Duration::try_from_secs_f64(last.t_s - first.t_s).ok()?;
        delivered_bps += BitRate::of(ByteCount::from_bytes(bytes), span).as_f64();
        // Streams share the path: each estimates it whole.
        capacity = capacity.max(BitRate::from_bps(last.capacity_bps?));
        retransmits += last.retransmits;
    }
    let is_low = delivered_bps < capacity.as_f64() * LOW;
    (retransmits >= MIN_RETRANSMITS && is_low).then(|| BitRate::from_bps_f64(delivered_bps))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream's samples each 10 ms over 2.5 s, delivering so much, in Mbit/s.
    fn stream(delivered: u64, capacity: u64, retransmits: u64, rtt_us: u32) -> Vec<Sample> {
        let sample = |step: u32| Sample {
            t_s: f64::from(step) / 100.0,
            delivered_bytes: delivered * 1_250 * u64::from(step),
            capacity_bps: Some(capacity * 1_000_000),
            retransmits,
            rtt_us,
            min_rtt_us: Some(50_000),
            ..Sample::default()
        };
        (0..=250).map(sample).collect()
    }

    fn decided(streams: &[Vec<Sample>]) -> Option<BitRate> {
        PolicingCheck::new(true).suspicion(DECIDED, streams.iter().map(Vec::as_slice))
    }

    #[test]
    fn a_low_rate_with_losses_and_without_a_queue_is_suspicious() {
        let rate = decided(&[stream(8, 100, 19, 50_200)]).unwrap();
        assert!((rate.as_f64() - 8e6).abs() < 1e4, "{rate}");
        let two = decided(&[stream(8, 100, 5, 50_200), stream(8, 100, 5, 50_200)]).unwrap();
        assert!((two.as_f64() - 16e6).abs() < 1e4, "{two}");
    }

    #[test]
    fn each_condition_alone_is_not() {
        assert_eq!(decided(&[stream(51, 100, 700, 50_200)]), None, "most of the capacity");
        assert_eq!(decided(&[stream(8, 100, 9, 50_200)]), None, "few losses");
        assert_eq!(decided(&[stream(8, 100, 19, 58_100)]), None, "a queue");
        assert_eq!(decided(&[Vec::new()]), None, "no samples");
        assert_eq!(decided(&[]), None, "no stream");
    }

    #[test]
    fn it_is_decided_once_and_not_early() {
        let samples = stream(8, 100, 19, 50_200);
        let streams = || std::iter::once(&samples[..]);
        let mut check = PolicingCheck::new(true);
        assert_eq!(check.suspicion(DECIDED - Duration::from_millis(1), streams()), None);
        assert!(check.suspicion(DECIDED, streams()).is_some());
        assert_eq!(check.suspicion(DECIDED, streams()), None);
        assert_eq!(PolicingCheck::new(false).suspicion(DECIDED, streams()), None);
    }
}
