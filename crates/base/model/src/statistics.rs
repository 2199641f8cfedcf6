//! Statistics of small samples: medians, percentiles, confidence intervals, whether two
//! means differ, and which of several differences are significant; random order of runs.
//!
//! Student's t after Abramowitz and Stegun, "Handbook of Mathematical
//! Functions" (1964), 26.7; its distribution by the incomplete beta function
//! (26.5.8, as a continued fraction).

/// Brings items into random order (Fisher and Yates); `random` gives random numbers.
pub fn shuffle<T>(items: &mut [T], mut random: impl FnMut() -> u64) {
    for last in (1..items.len()).rev() {
        let at = ((u128::from(random()) * (last as u128 + 1)) >> 64) as usize;
        items.swap(last, at);
    }
}

/// The mean; `None` for no values.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The sample standard deviation (n - 1 in the denominator); `None` for fewer than two
/// values.
#[must_use]
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() >= 2)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The median: the middle value, or the mean of the two middle ones. Values that
/// are not finite are ignored; `None` if there are no others.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    if finite.is_empty() {
        return None;
    }
    let (odd, middle) = (finite.len() % 2 == 1, finite.len() / 2);
    let (below, upper, _) = finite.select_nth_unstable_by(middle, f64::total_cmp);
    if odd {
        return Some(*upper);
    }
    let lower = below.iter().copied().max_by(f64::total_cmp)?;
    Some((lower + *upper) / 2.0)
}

/// The value up to which half of the weight lies; pairs of value and weight that are not finite, or
/// without weight, are skipped. `None` without any.
#[must_use]
pub fn weighted_median(values: &[(f64, f64)]) -> Option<f64> {
    let counts = |(value, weight): &(f64, f64)| value.is_finite() && *weight > 0.0;
    let mut sorted: Vec<(f64, f64)> = values.iter().copied().filter(counts).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = sorted.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let reaches = |(value, weight): (f64, f64)| {
        below += weight;
        (below >= half).then_some(value)
    };
    sorted.into_iter().find_map(reaches)
}

/// The percentile at `share` (0 to 1) by nearest rank: the smallest value that is not
/// below `share` of the values; `None` for no values.
#[must_use]
pub fn percentile(values: &[f64], share: f64) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mut ranked = values.to_vec();
    // Less 1e-9, or 0.95 x 20 would round up to rank 20.
    let rank = (ranked.len() as f64 * share.clamp(0.0, 1.0) - 1e-9).ceil().max(1.0);
    let index = (rank as usize - 1).min(ranked.len() - 1);
    Some(*ranked.select_nth_unstable_by(index, f64::total_cmp).1)
}

/// The mean of the lowest `share` (0 to 1) of the values, at least one; `None` for no
/// values.
#[must_use]
pub fn trimmed_mean(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let kept = ((sorted.len() as f64 * share.clamp(0.0, 1.0) + 1e-9).floor() as usize).max(1);
    sorted.truncate(kept);
    mean(&sorted)
}

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    fn around(middle: f64, half: f64) -> Self {
        Interval { low: middle - half, high: middle + half }
    }
}

/// The confidence interval of the mean by Student's t; `confidence` is 0 to 1. `None`
/// for fewer than two values.
#[must_use]
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let (mean, deviation) = (mean(values)?, deviation(values)?);
    let n = values.len() as f64;
    let half = student_t(confidence, n - 1.0)? * deviation / n.sqrt();
    Some(Interval::around(mean, half))
}

/// The confidence interval of a proportion by Clopper and Pearson (1934), of which at least
/// `confidence` (0 to 1) hold the true value, whatever it is. `None` without a trial.
#[must_use]
pub fn proportion_interval(successes: u64, trials: u64, confidence: f64) -> Option<Interval> {
    let tail = (1.0 - confidence) / 2.0;
    if trials == 0 || successes > trials || !(tail > 0.0 && tail < 0.5) {
        return None;
    }
    let (k, n) = (successes as f64, trials as f64);
    // P(at least k) rises with p, and P(at most k) falls.
    let low =
        if successes == 0 { 0.0 } else { root(|p| incomplete_beta(p, k, n - k + 1.0) < tail) };
    let high = match successes == trials {
        true => 1.0,
        false => root(|p| incomplete_beta(p, k + 1.0, n - k) < 1.0 - tail),
    };
    Some(Interval { low, high })
}

/// The number of 0 to 1 up to which `is_below` holds.
fn root(is_below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if is_below(middle) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// A confidence interval of the median, and its confidence level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianInterval {
    /// From one value of the sample to another.
    pub interval: Interval,
    /// The probability that it covers the median, whatever the distribution, 0 to 1.
    pub confidence: f64,
}

/// The narrowest interval between two order statistics, symmetric in rank, that covers the
/// median with at least `confidence` (David and Nagaraja, "Order Statistics", 2003, 7.1). Where
/// the sample is too small for that, up to 5 values for 0.95, it is the whole range, with its
/// lower level. `None` for fewer than two values, or one that is not finite.
#[must_use]
pub fn median_interval(values: &[f64], confidence: f64) -> Option<MedianInterval> {
    if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    // P(B <= k) for B binomial with p = 1/2, for k = 0, 1, ...; in logarithms, as 2^-n
    // underflows beyond a thousand values.
    let n = count as f64;
    let probability = |k: f64| {
        let choose = ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0);
        (choose - n * std::f64::consts::LN_2).exp()
    };
    let mut below = probability(0.0);
    let (mut rank, mut level) = (0, 1.0 - 2.0 * below);
    while rank + 1 < count / 2 {
        below += probability((rank + 1) as f64);
        if 1.0 - 2.0 * below < confidence {
            break;
        }
        rank += 1;
        level = 1.0 - 2.0 * below;
    }
    let interval = Interval { low: *sorted.get(rank)?, high: *sorted.get(count - 1 - rank)? };
    Some(MedianInterval { interval, confidence: level })
}

/// Which of several tests are significant, so that among all without any difference one is
/// marked with a probability of at most 1 - `confidence` (Holm 1979, "A simple sequentially
/// rejective multiple test procedure"). A test without a p-value is left open.
#[must_use]
pub fn holm(p: &[Option<f64>], confidence: f64) -> Vec<Option<bool>> {
    holm_among(p, 0, confidence)
}

/// The same where `p` has the smallest p-values of at least `tests` tests.
#[must_use]
pub fn holm_among(p: &[Option<f64>], tests: usize, confidence: f64) -> Vec<Option<bool>> {
    let mut ranked: Vec<(usize, f64)> =
        p.iter().enumerate().filter_map(|(at, p)| Some((at, (*p)?))).collect();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    let count = ranked.len().max(tests);
    let holds =
        |(rank, (_, p)): &(usize, &(usize, f64))| *p <= (1.0 - confidence) / (count - rank) as f64;
    let significant = ranked.iter().enumerate().take_while(holds).count();
    let mut marks = vec![None; p.len()];
    for (rank, (at, _)) in ranked.into_iter().enumerate() {
        marks[at] = Some(rank < significant);
    }
    marks
}

/// The result of Welch's t-test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Welch {
    /// The second mean less the first.
    pub difference: f64,
    /// The confidence interval of the difference.
    pub interval: Interval,
    /// The p-value.
    pub p: f64,
    /// Degrees of freedom (Welch-Satterthwaite).
    pub freedom: f64,
}

/// Welch's t-test (Welch 1947), for two samples with unequal variances. `None` if a
/// sample has fewer than two values or one that is not finite.
#[must_use]
pub fn welch(first: &[f64], second: &[f64], confidence: f64) -> Option<Welch> {
    let part = |values: &[f64]| {
        let n = values.len() as f64;
        Some((mean(values)?, deviation(values)?.powi(2) / n, n))
    };
    let ((mean_a, a, count_a), (mean_b, b, count_b)) = (part(first)?, part(second)?);
    let difference = mean_b - mean_a;
    if !(difference.is_finite() && (a + b).is_finite()) {
        return None;
    }
    if a + b <= 0.0 {
        // Neither sample varies: any difference is significant.
        let p = if difference == 0.0 { 1.0 } else { 0.0 };
        let freedom = count_a + count_b - 2.0;
        return Some(Welch { difference, interval: Interval::around(difference, 0.0), p, freedom });
    }
    let freedom = (a + b).powi(2) / (a.powi(2) / (count_a - 1.0) + b.powi(2) / (count_b - 1.0));
    let error = (a + b).sqrt();
    let half = student_t(confidence, freedom)? * error;
    let p = tails(difference.abs() / error, freedom);
    Some(Welch { difference, interval: Interval::around(difference, half), p, freedom })
}

/// The share of the lower group if the values fall into two: the widest gap exceeds
/// three times the range of either group, and a tenth of the median. `None` if they do
/// not, or for fewer than four values.
#[must_use]
pub fn two_groups(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = median(&sorted).filter(|_| sorted.len() >= 4)?;
    let gap = |at: usize| Some(sorted.get(at)? - sorted.get(at.checked_sub(1)?)?);
    // A single value is an outlier, not a group.
    let widest = (2..=sorted.len() - 2)
        .max_by(|x, y| gap(*x).unwrap_or(0.0).total_cmp(&gap(*y).unwrap_or(0.0)))?;
    let (low, high) = sorted.split_at(widest);
    let span = |group: &[f64]| Some(group.last()? - group.first()?);
    let apart = gap(widest)?;
    let divided = apart > 3.0 * span(low)?.max(span(high)?) && apart > 0.1 * middle.abs();
    divided.then(|| low.len() as f64 / sorted.len() as f64)
}

/// The two-sided quantile t of Student's distribution for `confidence`; `None` if the
/// confidence is not between 0 and 1 or there are no degrees of freedom.
#[must_use]
pub fn student_t(confidence: f64, freedom: f64) -> Option<f64> {
    if !(confidence > 0.0 && confidence < 1.0 && freedom >= 1.0) {
        return None;
    }
    let (mut low, mut high) = (0.0f64, 1.0f64);
    while tails(high, freedom) > 1.0 - confidence && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if tails(middle, freedom) > 1.0 - confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(f64::midpoint(low, high))
}

/// The two-sided tail probability of Student's distribution beyond t (26.7.1).
fn tails(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// The incomplete beta function I_x(a, b) for x in 0 to 1, by the continued fraction
/// 26.5.8, which converges fast below x = (a + 1) / (a + b + 2), and above it by the
/// symmetry 26.5.2.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let scale = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    // Evaluated backwards: 1 / (1 + d1 / (1 + d2 / (1 + ...))).
    let term = |n: i32| {
        let m = f64::from(n / 2);
        if n % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        }
    };
    let fraction = (1..=400).rev().fold(1.0, |tail, n| 1.0 + term(n) / tail);
    scale.exp() / (a * fraction)
}

/// ln of the gamma function for positive arguments: Stirling's series (6.1.41), with
/// the argument shifted to where four terms are enough.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0);
    while x < 12.0 {
        product *= x;
        x += 1.0;
    }
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5))
        - 1.0 / (1680.0 * x.powi(7));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weighted_median_counts_weight_rather_than_values() {
        let often = [(116.0, 0.01), (117.0, 0.01), (118.0, 0.01), (266.0, 0.1)];
        assert_eq!(weighted_median(&often), Some(266.0));
        assert_eq!(weighted_median(&[(1.0, 1.0), (2.0, 1.0), (9.0, 1.0)]), Some(2.0));
        assert_eq!(weighted_median(&[(1.0, 0.0), (f64::NAN, 1.0)]), None);
    }

    #[test]
    fn student_is_as_in_the_tables() {
        // Abramowitz and Stegun, table 26.10: A(t) = 0.95 and 0.99.
        for (confidence, freedom, t) in [
            (0.95, 1.0, 12.706),
            (0.95, 2.0, 4.303),
            (0.95, 4.0, 2.776),
            (0.95, 10.0, 2.228),
            (0.95, 30.0, 2.042),
            (0.95, 1e6, 1.960),
            (0.99, 3.0, 5.841),
            (0.99, 120.0, 2.617),
        ] {
            let found = student_t(confidence, freedom).unwrap();
            assert!((found - t).abs() < 6e-4, "{confidence} {freedom}: {found}");
        }
        assert_eq!((student_t(1.0, 5.0), student_t(0.95, 0.0)), (None, None));
    }

    #[test]
    fn proportions_have_exact_intervals() {
        let of = |k, n| proportion_interval(k, n, 0.95).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-4;
        // The rule of three, exactly: 1 - 0.025^(1/n).
        assert!(of(0, 100).low == 0.0 && near(of(0, 100).high, 1.0 - 0.025_f64.powf(0.01)));
        assert!(of(100, 100).high == 1.0 && near(of(100, 100).low, 0.025_f64.powf(0.01)));
        // By the tables of Clopper and Pearson: 1 of 10, 10 of 100.
        assert!(near(of(1, 10).low, 0.00253) && near(of(1, 10).high, 0.44502));
        assert!(near(of(10, 100).low, 0.04900) && near(of(10, 100).high, 0.17622));
        // The distribution at the ends, summed.
        let Interval { low, high } = of(24, 2400);
        let below = |p: f64, k: i32| -> f64 {
            let mut term = (1.0 - p).powi(2400);
            (0..=k).fold(0.0, |sum, i| {
                let now = term;
                term *= f64::from(2400 - i) / f64::from(i + 1) * p / (1.0 - p);
                sum + now
            })
        };
        assert!(near(1.0 - below(low, 23), 0.025) && near(below(high, 24), 0.025));
        assert_eq!(
            (proportion_interval(0, 0, 0.95), proportion_interval(2, 1, 0.95)),
            (None, None)
        );
    }

    #[test]
    fn means_and_their_interval_by_hand() {
        // 2, 4, 4, 6: mean 4, squares 4 + 0 + 0 + 4 = 8, over 3 is 2.6667,
        // deviation 1.63299; t(0.95, 3) = 3.182, half = 3.182 x 1.63299 / 2 = 2.598.
        let values = [4.0, 2.0, 6.0, 4.0];
        assert_eq!((mean(&values), median(&values)), (Some(4.0), Some(4.0)));
        assert!((deviation(&values).unwrap() - 1.632_99).abs() < 1e-5);
        let Interval { low, high } = mean_interval(&values, 0.95).unwrap();
        assert!((low - 1.402).abs() < 1e-3 && (high - 6.598).abs() < 1e-3, "{low} {high}");
        assert_eq!((mean_interval(&[1.0], 0.95), median(&[]), mean(&[])), (None, None, None));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    }

    #[test]
    fn intervals_of_the_median_are_those_of_the_binomial_distribution() {
        let upto = |count: u32| (1..=count).rev().map(f64::from).collect::<Vec<f64>>();
        // Two sides of 2^-n: 1 - 2 / 8, 1 - 2 / 32, 1 - 2 / 64.
        for (count, level) in [(2, 0.5), (3, 0.75), (5, 0.937_5), (6, 0.968_75)] {
            let found = median_interval(&upto(count), 0.95).unwrap();
            assert_eq!((found.interval.low, found.interval.high), (1.0, f64::from(count)));
            assert!((found.confidence - level).abs() < 1e-9, "{count}: {found:?}");
        }
        // Of ten, ranks 2 to 9: 1 - 2 x 11 / 1024; ranks 3 to 8 have 0.891.
        let found = median_interval(&upto(10), 0.95).unwrap();
        assert_eq!((found.interval.low, found.interval.high), (2.0, 9.0));
        assert!((found.confidence - 0.978_516).abs() < 1e-6, "{found:?}");
        let many = median_interval(&upto(5_000), 0.95).unwrap();
        assert!((0.95..0.96).contains(&many.confidence), "{many:?}");
        assert!((2_429.0..2_433.0).contains(&many.interval.low), "{many:?}");
        assert_eq!(
            (median_interval(&[1.0], 0.95), median_interval(&[1.0, f64::NAN], 0.9)),
            (None, None)
        );
    }

    #[test]
    fn holm_by_hand() {
        // 0.01 <= 0.05 / 3, 0.02 <= 0.05 / 2, 0.06 > 0.05.
        let marks = holm(&[Some(0.06), None, Some(0.01), Some(0.02)], 0.95);
        assert_eq!(marks, [Some(false), None, Some(true), Some(true)]);
        // 0.02 > 0.05 / 3, and nothing after it.
        assert_eq!(holm(&[Some(0.03), Some(0.02), Some(0.04)], 0.95), [Some(false); 3]);
        // Of ten tests 0.01 > 0.05 / 10.
        assert_eq!(holm_among(&[Some(0.01), Some(0.004)], 10, 0.95), [Some(false), Some(true)]);
        assert_eq!(holm(&[], 0.95), []);
    }

    #[test]
    fn percentiles_and_trims_by_hand() {
        let twenty: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        let at = |share| percentile(&twenty, share).unwrap();
        assert_eq!([at(0.0), at(0.5), at(0.95), at(0.96), at(1.0)], [1.0, 10.0, 19.0, 20.0, 20.0]);
        // 0.07 x 100 is above 7 in floating point.
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 0.07), Some(7.0));
        assert_eq!((percentile(&[3.0], 0.99), percentile(&[], 0.5)), (Some(3.0), None));
        // 1 to 19 have the mean 10: the highest of twenty is trimmed.
        assert_eq!(trimmed_mean(&twenty, 0.95), Some(10.0));
        assert_eq!((trimmed_mean(&[7.0], 0.95), trimmed_mean(&[], 0.95)), (Some(7.0), None));
    }

    #[test]
    fn welch_by_hand() {
        // 1, 2, 3 and 5, 7, 9: variances 1 and 4, over 3 each: 1/3 and 4/3.
        // Error sqrt(5/3) = 1.29099, t = 5 / 1.29099 = 3.87298,
        // freedom (5/3)^2 / ((1/9 + 16/9) / 2) = 2.77778 / 0.94444 = 2.94118.
        let test = welch(&[1.0, 2.0, 3.0], &[5.0, 7.0, 9.0], 0.95).unwrap();
        assert!((test.difference - 5.0).abs() < 1e-12 && (test.freedom - 2.941_18).abs() < 1e-5);
        // Between 3 degrees (p = 0.0305) and 2 (0.0606).
        assert!((0.0305..0.035).contains(&test.p), "{test:?}");
        assert!(test.interval.low > 0.0 && test.interval.high < 10.0, "{test:?}");
        let same = welch(&[1.0, 2.0, 3.0], &[3.0, 1.0, 2.0], 0.95).unwrap();
        assert!((same.p - 1.0).abs() < 1e-9 && same.interval.low < 0.0, "{same:?}");
        assert_eq!(welch(&[2.0, 2.0], &[3.0, 3.0], 0.95).unwrap().p, 0.0);
        assert_eq!(welch(&[2.0], &[3.0, 3.0], 0.95), None);
        assert_eq!(welch(&[2.0, f64::NAN], &[3.0, 3.0], 0.95), None);
    }

    #[test]
    fn two_groups_are_seen_and_one_is_not() {
        assert_eq!(two_groups(&[10.0, 90.0, 11.0, 91.0]), Some(0.5));
        assert_eq!(two_groups(&[10.0, 11.0, 90.0, 91.0, 92.0]), Some(0.4));
        for one in [&[10.0, 20.0, 30.0, 40.0][..], &[90.0, 91.0, 92.0, 10.0], &[1.0, 9.0], &[]] {
            assert_eq!(two_groups(one), None, "{one:?}");
        }
        assert_eq!(two_groups(&[100.0, 100.1, 101.0, 101.1]), None);
    }

    proptest::proptest! {
        #[test]
        fn anything_is_answered(a in proptest::collection::vec(proptest::num::f64::ANY, 0..9),
                                b in proptest::collection::vec(proptest::num::f64::ANY, 0..9)) {
            let _ = (two_groups(&a), mean_interval(&a, 0.95), percentile(&a, 0.99), trimmed_mean(&a, 0.95));
            let _ = median_interval(&a, 0.95);
            if let Some(test) = welch(&a, &b, 0.95) {
                proptest::prop_assert!((-1e-6..=1.0 + 1e-6).contains(&test.p), "{test:?}");
            }
        }
    }
}
