//! The multiplicative decrease of the congestion window, from samples of the kernel.

use record::{Sample, Stream};

/// The slow-start threshold after a loss as a share of the congestion window before it, in the
/// median over the losses of all streams; `None` without any.
pub(super) fn factor(streams: &[Stream]) -> Option<f64> {
    let mut factors: Vec<f64> =
        streams.iter().flat_map(|stream| stream.sender.windows(3).filter_map(decrease)).collect();
    factors.sort_by(f64::total_cmp);
    model::statistics::median(&factors)
}

/// The factor of a loss or a mark between the last two of three samples, after slow start (in
/// which the window doubles within a round trip, so that the one before is not known well
/// enough) and not in the recovery from another.
fn decrease(samples: &[Sample]) -> Option<f64> {
    let [earlier, before, after] = samples else { return None };
    let signalled = |earlier: &Sample, later: &Sample| {
        later.retransmits > earlier.retransmits || later.ce_delivered > earlier.ce_delivered
    };
    let (old, new) = (before.ssthresh_bytes?, after.ssthresh_bytes?);
    let is_first = signalled(before, after) && !signalled(earlier, before);
    // A probe of the tail retransmits as well, and an undone reduction is none.
    let reduced = before.cwnd_bytes > old
        && new < before.cwnd_bytes
        && (new != old || after.cwnd_bytes < before.cwnd_bytes);
    let undone = after.dsack_duplicates > before.dsack_duplicates;
    (is_first && reduced && !undone).then(|| new as f64 / before.cwnd_bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(cwnd_bytes: u64, ssthresh_bytes: Option<u64>, retransmits: u64) -> Sample {
        Sample { cwnd_bytes, ssthresh_bytes, retransmits, ..Sample::default() }
    }

    fn of(sender: Vec<Sample>) -> Option<f64> {
        factor(&[Stream { sender, ..Stream::default() }])
    }

    #[test]
    fn each_loss_after_slow_start_has_its_factor() {
        let samples = vec![
            sample(40_000, None, 0),
            sample(50_000, None, 0),
            // The end of slow start is none.
            sample(100_000, Some(50_000), 9),
            sample(60_000, Some(50_000), 9),
            sample(80_000, Some(50_000), 9),
            sample(75_000, Some(56_000), 10),
            // Still in recovery.
            sample(57_000, Some(56_000), 11),
            sample(100_000, Some(56_000), 11),
            sample(50_000, Some(50_000), 12),
            // From the same window to the same threshold.
            sample(100_000, Some(50_000), 12),
            sample(50_000, Some(50_000), 13),
        ];
        // 0.7, 0.5 and 0.5.
        assert_eq!(of(samples), Some(0.5));
    }

    #[test]
    fn what_is_no_loss_has_none() {
        assert_eq!(of(Vec::new()), None);
        let of = |earlier, before, after| of(vec![earlier, before, after]);
        let without_loss =
            of(sample(80, Some(60), 0), sample(90, Some(60), 0), sample(90, Some(50), 0));
        assert_eq!(without_loss, None);
        let in_slow_start =
            of(sample(20, Some(60), 0), sample(40, Some(60), 0), sample(45, Some(20), 2));
        assert_eq!(in_slow_start, None);
        let probe = of(sample(70, Some(50), 0), sample(80, Some(50), 0), sample(80, Some(50), 1));
        assert_eq!(probe, None);
        let undone = Sample { dsack_duplicates: Some(1), ..sample(80, Some(75), 1) };
        assert_eq!(of(sample(90, Some(50), 0), sample(100, Some(50), 0), undone), None);
        let none = of(sample(0, Some(0), 0), sample(0, Some(0), 0), sample(0, Some(1), 1));
        assert_eq!(none, None);
    }
}
