//! The bottleneck's rate, estimated from one transfer.
//!
//! A saturated bottleneck delivers at its own rate, whatever the window: the rates pile up
//! just below a ceiling. The 97th percentile of the rates is that ceiling (in labelled
//! runs within 0.4 % of the link behind FQ-CoDel and deep queues). Where few samples reach
//! it, or no queue formed, it is a lower bound alone.

use crate::statistics::Prepared;
use model::statistics::percentile;
use record::RateEstimate;
use units::BitRate;

/// The percentile that is taken for the ceiling.
const CEILING: f64 = 0.97;

/// Rates within this share of the ceiling are at it, and the least share of them at it.
const AT: f64 = 0.95;
const OFTEN: f64 = 0.15;

/// The fewest rates.
const MIN: usize = 10;

/// Half of the 90 % interval of a quantile, in standard deviations.
const DEVIATIONS: f64 = 1.645;

/// The estimate over the whole test; `None` with too few samples. `queued`: whether a
/// queue formed at the bottleneck.
pub(crate) fn of(test: &Prepared<'_>, queued: bool) -> Option<RateEstimate> {
    let rates = test.rates(0.0, test.end());
    let ceiling = percentile(&rates, CEILING).filter(|rate| *rate > 0.0)?;
    if rates.len() < MIN {
        return None;
    }
    let top: Vec<f64> = rates.iter().copied().filter(|rate| *rate >= AT * ceiling).collect();
    let saturated = queued && top.len() as f64 >= OFTEN * rates.len() as f64;
    let bps = BitRate::from_bps_f64;
    if !saturated {
        return Some(RateEstimate {
            rate_bps: bps(ceiling),
            low_bps: bps(ceiling),
            high_bps: None,
        });
    }
    // A quantile's rank is binomial: n p ± 1.645 sqrt(n p (1 - p)), among the rates at the
    // ceiling, whose median is the estimate.
    let spread = DEVIATIONS * 0.5 / (top.len() as f64).sqrt();
    let at = |share: f64| percentile(&top, share.clamp(0.0, 1.0)).unwrap_or(ceiling);
    let (low, high) = (at(0.5 - spread), at(0.5 + spread).max(ceiling));
    Some(RateEstimate { rate_bps: bps(at(0.5)), low_bps: bps(low), high_bps: Some(bps(high)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        example::{sampled, samples},
        prepared,
    };

    fn estimate(seconds: f64, queued: bool) -> Option<RateEstimate> {
        of(&prepared(&sampled(samples(seconds, 50.0, |_, _| {}))), queued)
    }

    fn mbit(rate: BitRate) -> f64 {
        rate.as_f64() / 1e6
    }

    #[test]
    fn a_saturated_bottleneck_has_an_interval() {
        let found = estimate(10.0, true).unwrap();
        assert!((mbit(found.rate_bps) - 50.0).abs() < 0.1, "{found:?}");
        assert!(found.low_bps <= found.rate_bps && found.high_bps.unwrap() >= found.rate_bps);
    }

    #[test]
    fn without_a_queue_it_is_a_lower_bound() {
        let found = estimate(10.0, false).unwrap();
        assert_eq!((found.low_bps, found.high_bps), (found.rate_bps, None));
    }

    #[test]
    fn a_second_of_samples_is_the_least() {
        assert!(estimate(1.0, true).is_some());
        assert_eq!(estimate(0.8, true), None);
        assert_eq!(of(&prepared(&sampled(Vec::new())), true), None);
    }

    /// Rates of which few come near the ceiling are no saturated bottleneck's.
    #[test]
    fn rare_peaks_are_a_lower_bound() {
        let rare = samples(10.0, 10.0, |index, s| {
            // One step in twenty brings four times as much.
            s.delivered_bytes += 375_000 * (index / 20);
        });
        assert_eq!(of(&prepared(&sampled(rare)), true).unwrap().high_bps, None);
    }
}
