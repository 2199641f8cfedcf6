//! How well the probabilities of findings agree with how often they are right.

use super::Scored;
use crate::draws::Draws;
use record::Limit;
use std::collections::BTreeMap;
use std::fmt;

const BINS: usize = 10;
/// Resamples of the bootstrap.
const RESAMPLES: usize = 1_000;
/// Probabilities are no lower in the log score: a limit that is not listed has less than 1 %.
const MIN_PROBABILITY: f64 = 0.001;

/// Figures over all findings that have probabilities.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    findings: usize,
    /// Expected calibration error in ten bins of equal mass.
    error: f64,
    /// The same without what chance adds to a perfectly calibrated model.
    debiased: f64,
    /// 95 % interval of `debiased` by bootstrap over runs.
    interval: (f64, f64),
    /// Mean of -ln p(true limit).
    log_score: f64,
    /// Mean probability, share right, and number of each bin.
    bins: Vec<(f64, f64, usize)>,
    /// The most frequent pairs of the true limit and the most probable one.
    confused: Vec<(Limit, Limit, usize)>,
}

impl Calibration {
    /// Of findings beside their truth.
    #[must_use]
    pub fn of(scored: &[Scored]) -> Self {
        let with: Vec<&Scored> = scored.iter().filter(|one| !one.posterior.is_empty()).collect();
        let mut points: Vec<(f64, bool)> = with.iter().filter_map(|one| top(one)).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut resampled = bootstrap(&points);
        resampled.sort_by(f64::total_cmp);
        let quantile = |share: f64| {
            let at = (share * resampled.len().saturating_sub(1) as f64).round() as usize;
            resampled.get(at).copied().unwrap_or(0.0)
        };
        let scores = with.iter().map(|one| -libm::log(probability(one, one.truth)));
        let (error, debiased) = errors(&points);
        Calibration {
            findings: points.len(),
            error,
            debiased,
            interval: (quantile(0.025), quantile(0.975)),
            log_score: scores.sum::<f64>() / with.len().max(1) as f64,
            bins: bins(&points).map(mean).collect(),
            confused: confused(&with),
        }
    }
}

impl Calibration {
    /// Mean probability, share right and number of findings of each bin.
    #[must_use]
    pub fn bins(&self) -> &[(f64, f64, usize)] {
        &self.bins
    }
}

/// The probability of the most probable limit, and whether that is the true one.
fn top(one: &Scored) -> Option<(f64, bool)> {
    let (limit, probability) =
        one.posterior.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    probability.is_finite().then_some((*probability, *limit == one.truth))
}

fn probability(one: &Scored, limit: Limit) -> f64 {
    let entry = one.posterior.iter().find(|(other, _)| *other == limit);
    entry.map_or(0.0, |(_, probability)| *probability).clamp(MIN_PROBABILITY, 1.0)
}

/// Bins of equal mass of points that are sorted by probability.
fn bins(points: &[(f64, bool)]) -> impl Iterator<Item = &[(f64, bool)]> {
    let bin = move |at: usize| &points[points.len() * at / BINS..points.len() * (at + 1) / BINS];
    (0..BINS).map(bin).filter(|bin| !bin.is_empty())
}

/// Mean probability, share right, and number.
fn mean(bin: &[(f64, bool)]) -> (f64, f64, usize) {
    let count = bin.len() as f64;
    let probability = bin.iter().map(|(probability, _)| probability).sum::<f64>() / count;
    let right = bin.iter().filter(|(_, right)| *right).count() as f64 / count;
    (probability, right, bin.len())
}

/// The expected calibration error of points sorted by probability, plain and debiased: the variance a (1 - a) / (m - 1) of
/// a bin's share right is subtracted from its squared gap (Kumar, Liang, Ma 2019).
#[must_use]
pub fn errors(points: &[(f64, bool)]) -> (f64, f64) {
    let total = points.len().max(1) as f64;
    let (mut plain, mut squared, mut chance) = (0.0, 0.0, 0.0);
    for bin in bins(points) {
        let (probability, right, count) = mean(bin);
        let weight = count as f64 / total;
        let gap = probability - right;
        plain += weight * gap.abs();
        squared += weight * gap * gap;
        chance += weight * right * (1.0 - right) / (count as f64 - 1.0).max(1.0);
    }
    (plain, (squared - chance).max(0.0).sqrt())
}

/// The debiased error of resamples with replacement of points sorted by probability.
#[must_use]
pub fn bootstrap(points: &[(f64, bool)]) -> Vec<f64> {
    if points.is_empty() {
        return Vec::new();
    }
    let mut draws = Draws::new(0, points.len());
    let mut resample = || {
        let mut chosen: Vec<usize> = (0..points.len())
            .map(|_| (draws.between(0.0, points.len() as f64) as usize).min(points.len() - 1))
            .collect();
        // The points are sorted, so their indices sort a resample.
        chosen.sort_unstable();
        let chosen: Vec<(f64, bool)> = chosen.into_iter().map(|at| points[at]).collect();
        errors(&chosen).1
    };
    (0..RESAMPLES).map(|_| resample()).collect()
}

fn confused(scored: &[&Scored]) -> Vec<(Limit, Limit, usize)> {
    let mut counts: BTreeMap<(Limit, Limit), usize> = BTreeMap::new();
    for one in scored {
        let most = one.posterior.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        if let Some((limit, _)) = most
            && *limit != one.truth
        {
            *counts.entry((one.truth, *limit)).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().map(|((t, f), count)| (t, f, count)).collect();
    counts.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
    counts.truncate(15);
    counts
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.findings == 0 {
            return writeln!(f, "No finding has probabilities.");
        }
        writeln!(
            f,
            "Calibration of {} findings: error {:.1} %, debiased {:.1} % (95 %: {:.1} to {:.1}); \
             log score {:.3}",
            self.findings,
            self.error * 100.0,
            self.debiased * 100.0,
            self.interval.0 * 100.0,
            self.interval.1 * 100.0,
            self.log_score
        )?;
        writeln!(f, "probability  right  findings")?;
        for (probability, right, count) in &self.bins {
            writeln!(f, "{probability:11.3} {right:6.3} {count:9}")?;
        }
        for (truth, found, count) in &self.confused {
            writeln!(f, "{:>20} taken for {:<20} {count}", truth.name(), found.name())?;
        }
        Ok(())
    }
}
