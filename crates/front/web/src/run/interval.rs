//! Confidence intervals of a step's figures, by batch means.
//!
//! Neighbouring samples of a transfer depend on each other: an interval of all of them would be too
//! narrow. The means of batches that are longer than this dependence hardly do (Law, "Simulation
//! Modeling and Analysis", 9.5.3).

use model::statistics::mean_interval;
use record::Steady;
use serde::Serialize;

/// The lower and the upper end.
pub(super) type Interval = [f64; 2];

/// Batches of a step, and the fewest that say something.
const BATCHES: usize = 10;
const MIN_BATCHES: usize = 4;
/// The shortest batch, in seconds: samples of 100 ms say nothing of less.
const MIN_BATCH_S: f64 = 0.1;
/// The fewest values of a batch.
const MIN_VALUES: usize = 4;
const CONFIDENCE: f64 = 0.95;
/// Batches of the second half of a step, and how far from their mean all are where the rate has
/// settled: a full queue leaves less, a sawtooth that empties it more.
const SETTLED_BATCHES: usize = 5;
const SETTLED: f64 = 0.05;

/// The intervals of a result's figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Intervals {
    pub(super) download_one: Option<Interval>,
    pub(super) download_several: Option<Interval>,
    pub(super) upload_one: Option<Interval>,
    pub(super) upload_several: Option<Interval>,
    pub(super) rtt_idle: Option<Interval>,
    pub(super) rtt_download: Option<Interval>,
    pub(super) rtt_upload: Option<Interval>,
    pub(super) jitter: Option<Interval>,
}

/// The interval of a rate in the steady part, bit/s, of bytes by time. The rate of an upload is
/// that of what arrived, in order or not, and may be beside the mean of these bytes.
pub(super) fn of_rate(total: &[(f64, u64)], steady: Steady, rate: f64) -> Option<Interval> {
    let seconds = steady.to_s - steady.from_s;
    let batches = ((seconds / MIN_BATCH_S) as usize).min(BATCHES);
    let time = |batch: usize| steady.from_s + seconds * batch as f64 / batches as f64;
    let places: Vec<f64> = (0..=batches).map_while(|batch| bytes_at(total, time(batch))).collect();
    let rates: Vec<f64> = places
        .windows(2)
        .filter_map(|pair| Some((pair.get(1)? - pair.first()?) * 8.0))
        .map(|bits| bits * batches as f64 / seconds)
        .collect();
    of_batches(&rates).map(|[low, high]| [low.min(rate), high.max(rate)])
}

/// Whether the rate in the second half of a step's planned time tells how it would go on. It does
/// not while a connection ramps up, nor in a sawtooth, whose period may be longer than the step. Of
/// too short a step nobody can tell.
pub(super) fn is_settled(total: &[(f64, u64)], seconds: f64) -> bool {
    let within = total.partition_point(|(at, _)| *at <= seconds);
    let Some(total) = total.get(..within) else { return true };
    let end = total.last().map_or(0.0, |(at, _)| *at);
    let batch_s = end / 2.0 / SETTLED_BATCHES as f64;
    if batch_s < MIN_BATCH_S {
        return true;
    }
    let place = |batch: usize| bytes_at(total, end / 2.0 + batch_s * batch as f64);
    let places: Vec<f64> = (0..=SETTLED_BATCHES).map_while(place).collect();
    let batches = places.windows(2).filter_map(|pair| Some(pair.get(1)? - pair.first()?));
    let [Some(first), Some(last)] = [places.first(), places.last()] else { return true };
    let mean = (last - first) / SETTLED_BATCHES as f64;
    batches.into_iter().all(|bytes| (bytes - mean).abs() <= SETTLED * mean)
}

/// The bytes at a time, between two samples in proportion.
fn bytes_at(total: &[(f64, u64)], t_s: f64) -> Option<f64> {
    let after = total.partition_point(|(at, _)| *at < t_s);
    let (to, last) = *total.get(after).or(total.last())?;
    let (from, first) =
        after.checked_sub(1).and_then(|at| total.get(at)).copied().unwrap_or((to, last));
    let share = if to > from { ((t_s - from) / (to - from)).clamp(0.0, 1.0) } else { 0.0 };
    Some(first as f64 + last.saturating_sub(first) as f64 * share)
}

/// The interval of a figure of values, in their order: a median, a jitter.
pub(super) fn of_figure(values: &[f64], figure: fn(&[f64]) -> Option<f64>) -> Option<Interval> {
    let batches = (values.len() / MIN_VALUES).min(BATCHES);
    let end = |batch: usize| batch * values.len() / batches.max(1);
    let part = |batch: usize| figure(values.get(end(batch)..end(batch + 1))?);
    let figures: Vec<f64> = (0..batches).filter_map(part).collect();
    let [low, high] = of_batches(&figures)?;
    // The figure of all is another one than the mean of the batches'.
    let all = figure(values)?;
    Some([low.min(all), high.max(all)])
}

fn of_batches(figures: &[f64]) -> Option<Interval> {
    if figures.len() < MIN_BATCHES {
        return None;
    }
    let interval = mean_interval(figures, CONFIDENCE)?;
    let is_finite = interval.low.is_finite() && interval.high.is_finite();
    is_finite.then_some([interval.low.max(0.0), interval.high])
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::statistics::median;

    /// A rate that changes every 0.3 s.
    fn total(seed: u64, seconds: f64) -> Vec<(f64, u64)> {
        let (mut state, mut bytes) = (seed | 1, 0.0);
        let mut rate = 0.0;
        (0..=(seconds * 10.0) as u32)
            .map(|tick| {
                if tick % 3 == 0 {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    rate = 10e6 * (0.5 + (state >> 11) as f64 / (1u64 << 53) as f64);
                }
                bytes += rate * 0.1;
                (f64::from(tick) / 10.0, bytes as u64)
            })
            .collect()
    }

    #[test]
    fn the_interval_holds_the_true_rate() {
        let steady = Steady { from_s: 1.0, to_s: 9.0 };
        let holds = |seed: u64| {
            let [low, high] = of_rate(&total(seed * 7_919 + 1, 9.0), steady, f64::NAN).unwrap();
            (low..=high).contains(&80e6)
        };
        let held = (1..=400).filter(|seed| holds(*seed)).count();
        assert!((360..=396).contains(&held), "{held} of 400");
    }

    #[test]
    fn a_rate_has_settled_once_its_second_half_is_even() {
        let ticks = |seconds: u32, rate: fn(f64) -> f64| -> Vec<(f64, u64)> {
            let mut bytes = 0.0;
            let tick = |tick: u32| {
                let t_s = f64::from(tick) / 10.0;
                bytes += rate(t_s) * 0.1;
                (t_s, bytes as u64)
            };
            (0..seconds * 10).map(tick).collect()
        };
        let steady = |t_s: f64| if t_s < 2.0 { 1e6 } else { 10e6 };
        assert!(is_settled(&ticks(5, steady), 5.0));
        // Of a longer series, the planned time counts.
        assert!(!is_settled(&ticks(10, steady), 3.0));
        let ramp = |t_s: f64| 2e6 * t_s;
        let sawtooth = |t_s: f64| 5e6 + 5e6 * (t_s % 8.0) / 8.0;
        assert!(!is_settled(&ticks(5, ramp), 5.0) && !is_settled(&ticks(5, sawtooth), 5.0));
        // Nothing that arrives, and steps in which nobody can tell.
        assert!(is_settled(&ticks(5, |_| 0.0), 5.0) && is_settled(&ticks(1, ramp), 0.9));
        assert!(is_settled(&[], 5.0) && is_settled(&[(0.0, 0)], 5.0));
    }

    #[test]
    fn short_or_empty_steps_have_none() {
        let steady = |from_s, to_s| Steady { from_s, to_s };
        assert_eq!(of_rate(&[], steady(0.0, 5.0), 1.0), None);
        assert_eq!(of_rate(&total(1, 5.0), steady(1.0, 1.2), 1.0), None);
        assert_eq!(of_rate(&total(1, 5.0), steady(2.0, 1.0), 1.0), None);
        assert_eq!(of_rate(&total(1, 5.0), steady(f64::NAN, f64::NAN), 1.0), None);
        assert_eq!(of_figure(&[1.0; 3], median), None);
        assert_eq!(of_figure(&[], median), None);
        assert_eq!(of_figure(&[20.0; 100], median), Some([20.0, 20.0]));
        let one_rate = of_rate(&[(0.0, 0), (10.0, 10_000_000)], steady(1.0, 9.0), 9e6).unwrap();
        assert!((one_rate[0] - 8e6).abs() < 10.0 && (one_rate[1] - 9e6).abs() < 10.0);
    }
}
