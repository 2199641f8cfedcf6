//! Random effects against their equations: tests at the 1 % level with fixed seeds. A
//! correct link would fail with one of a hundred seeds; it passes with these.

use crate::arrange::{SECOND, config, fates_of_all, flights, ms, train, watched};
use link::{
    Cause, Distribution, FateKind, GilbertElliott, Jitter, Link, LinkConfig, Loss, Rate, Train,
};
use units::{Nanos, Probability};

/// Critical value of chi-square at 1 %, by degrees of freedom.
const CHI_SQUARE_15: f64 = 30.578;
pub(crate) const CHI_SQUARE_18: f64 = 34.805;
const CHI_SQUARE_20: f64 = 37.566;

/// Critical value of the Kolmogorov-Smirnov test at 1 %, times sqrt(n).
const KOLMOGOROV_SMIRNOV: f64 = 1.63;

/// Two-sided 1 % quantile of the normal distribution.
const NORMAL: f64 = 2.576;

/// Packets per test of losses.
const PACKETS: usize = 900_000;

/// Pearson's chi-square statistic.
pub(crate) fn chi_square(seen: &[u64], expected: &[f64]) -> f64 {
    assert_eq!(seen.len(), expected.len());
    assert!(expected.iter().all(|count| *count >= 5.0), "too rare for the test: {expected:?}");
    seen.iter()
        .zip(expected)
        .map(|(seen, expected)| libm::pow(*seen as f64 - expected, 2.0) / expected)
        .sum()
}

/// Which packets the wire lost.
fn losses(loss: Loss, seed: u64) -> Vec<bool> {
    let mut link = watched(LinkConfig { loss, seed, ..config(100_000_000_000, 0) });
    let mut lost = Vec::with_capacity(PACKETS);
    for number in 0..PACKETS as u64 / 45 {
        link.arrive(Nanos(number * 10_000), train(45), 0);
        lost.extend(link.fates().map(|fate| fate.kind == FateKind::Dropped(Cause::Lost)));
    }
    lost.extend(fates_of_all(&mut link).iter().map(|f| f.kind == FateKind::Dropped(Cause::Lost)));
    assert_eq!(lost.len(), PACKETS);
    assert_eq!(lost.iter().filter(|lost| **lost).count() as u64, link.counters().lost);
    lost
}

/// Lengths of the runs of `what`, without the incomplete first and last ones.
fn run_lengths(losses: &[bool], what: bool) -> Vec<usize> {
    let runs: Vec<_> = losses.chunk_by(|a, b| a == b).collect();
    let whole = &runs[1..runs.len() - 1];
    whole.iter().filter(|run| run[0] == what).map(|run| run.len()).collect()
}

/// Chi-square of run lengths against a geometric distribution: one class per length up to
/// `classes`, one for the rest.
fn geometric(lengths: &[usize], end: f64, classes: usize) -> f64 {
    let mut seen = vec![0; classes + 1];
    for length in lengths {
        seen[(length - 1).min(classes)] += 1;
    }
    let n = lengths.len() as f64;
    let mut expected: Vec<f64> =
        (0..classes).map(|k| n * end * libm::pow(1.0 - end, k as f64)).collect();
    expected.push(n * libm::pow(1.0 - end, classes as f64));
    chi_square(&seen, &expected)
}

#[test]
fn bernoulli_losses_have_no_memory() {
    for seed in [1, 2, 3] {
        let losses = losses(Loss::Bernoulli("10%".parse().unwrap()), seed);
        let gaps = geometric(&run_lengths(&losses, false), 0.1, 20);
        assert!(gaps < CHI_SQUARE_20, "seed {seed}: {gaps}");
        let share = losses.iter().filter(|lost| **lost).count() as f64 / PACKETS as f64;
        let bound = NORMAL * (0.1 * 0.9 / PACKETS as f64).sqrt();
        assert!((share - 0.1).abs() < bound, "seed {seed}: {share}");
    }
}

fn gilbert_elliott(p: &str, r: &str, bad: Probability, good: Probability) -> Loss {
    Loss::GilbertElliott(GilbertElliott { p: p.parse().unwrap(), r: r.parse().unwrap(), bad, good })
}

/// With 1 - h = 100 % and 1 - k = 0 a loss reveals the bad state, so that the states can be
/// counted (Gilbert 1960).
#[test]
fn the_states_of_gilberts_model_follow_its_chain() {
    for seed in [1, 2, 3] {
        let model = gilbert_elliott("2%", "20%", Probability::ALWAYS, Probability::NEVER);
        let losses = losses(model, seed);
        for (state, change) in [(false, 0.02), (true, 0.2)] {
            let from = losses.windows(2).filter(|pair| pair[0] == state);
            let (stays, leaves): (Vec<_>, Vec<_>) = from.partition(|pair| pair[1] == state);
            let n = (stays.len() + leaves.len()) as f64;
            let z = (leaves.len() as f64 - n * change) / (n * change * (1.0 - change)).sqrt();
            assert!(z.abs() < NORMAL, "seed {seed}, lost {state}: {z}");
        }
        // Bursts have mean length 1 / r, the gaps between them 1 / p.
        let bursts = geometric(&run_lengths(&losses, true), 0.2, 15);
        assert!(bursts < CHI_SQUARE_15, "seed {seed}: {bursts}");
        let gaps = geometric(&run_lengths(&losses, false), 0.02, 20);
        assert!(gaps < CHI_SQUARE_20, "seed {seed}: {gaps}");
    }
}

#[test]
fn the_general_model_has_its_loss_ratio() {
    let (p, r, bad, good) = (0.005f64, 0.05f64, 0.5f64, 0.001f64);
    let (in_bad, in_good) = (p / (p + r), r / (p + r));
    let mean = in_bad * bad + in_good * good;
    // Losses are correlated: the covariance of two packets k apart is proportional to
    // (1 - p - r)^k, so the variance of the sum grows by (1 + x) / (1 - x).
    let x = 1.0 - p - r;
    let between = in_bad * in_good * libm::pow(bad - good, 2.0) * (1.0 + x) / (1.0 - x);
    let within = in_bad * bad * (1.0 - bad) + in_good * good * (1.0 - good);
    let deviation = ((between + within) / PACKETS as f64).sqrt();
    for seed in [1, 2, 3] {
        let (bad, good) = ("50%".parse().unwrap(), "0.1%".parse().unwrap());
        let losses = losses(gilbert_elliott("0.5%", "5%", bad, good), seed);
        let share = losses.iter().filter(|lost| **lost).count() as f64 / PACKETS as f64;
        let z = (share - mean) / deviation;
        assert!(z.abs() < NORMAL, "seed {seed}: {share}, not {mean}: {z}");
    }
}

#[test]
fn losses_match_the_expected_value() {
    let bad = "50%".parse().unwrap();
    for loss in [
        Loss::Bernoulli("1%".parse().unwrap()),
        gilbert_elliott("1%", "10%", bad, "1%".parse().unwrap()),
    ] {
        let mut link = Link::new(LinkConfig { loss: loss.clone(), ..config(100_000_000_000, 0) });
        for number in 0..10_000u64 {
            link.arrive(Nanos(number * 10_000), train(45), 0);
        }
        fates_of_all(&mut link);
        let counters = link.counters();
        let off = counters.lost as f64 - counters.loss_expected;
        assert!(off.abs() < NORMAL * counters.loss_variance.sqrt(), "{loss:?}: {counters:?}");
    }
}

/// Maximum distance between the empirical distribution of a sample and a distribution.
fn kolmogorov_smirnov(mut sample: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = |(before, x): (usize, &f64)| {
        let expected = distribution(*x);
        (expected - before as f64 / n).abs().max((expected - (before + 1) as f64 / n).abs())
    };
    sample.iter().enumerate().map(distance).fold(0.0, f64::max)
}

/// The distribution function of the standard normal: Abramowitz and Stegun
/// 7.1.26, within 1.5e-7.
fn normal(x: f64) -> f64 {
    let y = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * y);
    let poly = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let tail = poly.iter().fold(0.0, |sum, a| sum * t + a) * t * libm::exp(-y * y) / 2.0;
    if x < 0.0 { tail } else { 1.0 - tail }
}

#[test]
fn jitter_has_its_distribution() {
    let n = 20_000u32;
    // In multiples of the scale, relative to the delay.
    type Cdf = fn(f64) -> f64;
    let models: [(Distribution, Cdf); 4] = [
        (Distribution::Normal, normal),
        (Distribution::Uniform, |x| ((x + 1.0) / 2.0).clamp(0.0, 1.0)),
        (Distribution::Exponential, |x| 1.0 - libm::exp(-x.max(0.0))),
        // (Y - 1) (shape - 1) with Y Pareto with scale 1 and shape 3.
        (Distribution::Pareto, |x| 1.0 - libm::pow(1.0 + x.max(0.0) / 2.0, -3.0)),
    ];
    for (distribution, model) in models {
        for seed in [1, 2, 3] {
            // A mean of ten deviations: nothing is clamped at zero.
            let jitter = Some(Jitter { distribution, scale: ms(10), overtake: true });
            let path = LinkConfig { jitter, seed, rate: Rate::Unlimited, ..config(1, 100) };
            let mut link = watched(path);
            for number in 0..n {
                link.arrive(Nanos(u64::from(number) * SECOND), Train::single(1500), number);
            }
            let flights = flights(&fates_of_all(&mut link));
            let sample = flights.iter().map(|flight| (*flight as f64 - 1e8) / 1e7).collect();
            let distance = kolmogorov_smirnov(sample, model) * f64::from(n).sqrt();
            assert!(distance < KOLMOGOROV_SMIRNOV, "{distribution:?}, seed {seed}: {distance}");
        }
    }
}

#[test]
fn draws_of_adjacent_seeds_are_independent() {
    let of = |seed| losses(Loss::Bernoulli("50%".parse().unwrap()), seed);
    let n = PACKETS as f64;
    for (one, other) in [(1, 2), (7, 8), (0, 1 << 63)] {
        let agree = of(one).iter().zip(of(other)).filter(|(a, b)| *a == b).count() as f64;
        let z = (agree - n / 2.0) / (n / 4.0).sqrt();
        assert!(z.abs() < NORMAL, "seeds {one} and {other}: {z}");
    }
}
