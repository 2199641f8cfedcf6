//! The probability of each limit, given a segment's statistics.

use crate::{fitted_terms, statistics::Statistics};
use record::{Limit, Probability};

/// The smallest probability that is reported.
const REPORTED: f64 = 0.01;

/// Log scores and probabilities by limit, in the order of [`Limit::ALL`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Posterior {
    probabilities: Vec<f64>,
}

impl Posterior {
    /// Given a segment's statistics.
    pub(crate) fn of(statistics: &Statistics) -> Self {
        Posterior::of_scores(&fitted_terms::scores(statistics))
    }

    pub(crate) fn of_scores(scores: &[f64]) -> Self {
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut probabilities: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
        let sum: f64 = probabilities.iter().sum();
        for probability in &mut probabilities {
            *probability /= sum;
        }
        Posterior { probabilities }
    }

    /// With log-likelihoods that count by a factor of 0 to 1.
    pub(crate) fn tempered(self, factor: f64) -> Self {
        if factor >= 1.0 {
            return self;
        }
        let scores: Vec<f64> = self.iter().map(|(_, p)| factor * p.ln()).collect();
        Posterior::of_scores(&scores)
    }

    /// Excludes limits that something known beyond the samples rules out, such as a known
    /// path's counters; unchanged if that would leave nothing.
    pub(crate) fn without(mut self, excluded: impl Fn(Limit) -> bool) -> Self {
        let kept: f64 = self.iter().filter(|(limit, _)| !excluded(*limit)).map(|(_, p)| p).sum();
        if kept > 1e-9 {
            for (limit, probability) in Limit::ALL.into_iter().zip(&mut self.probabilities) {
                *probability = if excluded(limit) { 0.0 } else { *probability / kept };
            }
        }
        self
    }

    /// With a probability for a limit that was not judged by the samples; the others share
    /// the rest.
    pub(crate) fn with(mut self, limit: Limit, probability: f64) -> Self {
        let probability = probability.clamp(0.0, 1.0);
        let own = self.probability(limit);
        let others = (1.0 - own).max(1e-12);
        for (other, value) in Limit::ALL.into_iter().zip(&mut self.probabilities) {
            *value =
                if other == limit { probability } else { *value / others * (1.0 - probability) };
        }
        self
    }

    /// With at least that probability for some limits together; the ratios among them, and
    /// among the others, stay.
    pub(crate) fn at_least(mut self, least: f64, chosen: impl Fn(Limit) -> bool) -> Self {
        let own: f64 = self.iter().filter(|(limit, _)| chosen(*limit)).map(|(_, p)| p).sum();
        if own >= least {
            return self;
        }
        let count = Limit::ALL.into_iter().filter(|limit| chosen(*limit)).count().max(1);
        for (limit, value) in Limit::ALL.into_iter().zip(&mut self.probabilities) {
            *value = match chosen(limit) {
                true if own > 1e-9 => *value / own * least,
                true => least / count as f64,
                false => *value / (1.0 - own) * (1.0 - least),
            };
        }
        self
    }

    /// With one limit's probability added to another's.
    pub(crate) fn moved(mut self, from: Limit, to: Limit) -> Self {
        let moved = self.probability(from);
        for (limit, value) in Limit::ALL.into_iter().zip(&mut self.probabilities) {
            if limit == from {
                *value = 0.0;
            } else if limit == to {
                *value += moved;
            }
        }
        self
    }

    /// With the same probability for each of some limits, of what they have together.
    pub(crate) fn levelled(mut self, limits: &[Limit]) -> Self {
        let sum: f64 = limits.iter().map(|limit| self.probability(*limit)).sum();
        for (limit, value) in Limit::ALL.into_iter().zip(&mut self.probabilities) {
            if limits.contains(&limit) {
                *value = sum / limits.len() as f64;
            }
        }
        self
    }

    /// With a share of what two limits have together for the first, the rest for the second.
    pub(crate) fn split(mut self, first: Limit, second: Limit, share: f64) -> Self {
        let sum = self.probability(first) + self.probability(second);
        for (limit, value) in Limit::ALL.into_iter().zip(&mut self.probabilities) {
            if limit == first {
                *value = share * sum;
            } else if limit == second {
                *value = (1.0 - share) * sum;
            }
        }
        self
    }

    /// The whole test's posterior and the mean of its parts by their weights: half of the
    /// geometric mean each.
    pub(crate) fn pooled(&self, parts: &[(f64, &Posterior)]) -> Self {
        if parts.is_empty() {
            return self.clone();
        }
        let of = |limit| parts.iter().map(|(weight, part)| weight * part.probability(limit)).sum();
        let scores: Vec<f64> = self
            .iter()
            .map(|(limit, whole)| {
                let parts: f64 = of(limit);
                0.5 * (whole.max(1e-12).ln() + parts.max(1e-12).ln())
            })
            .collect();
        Posterior::of_scores(&scores)
    }

    /// The mean of posteriors by their weights; `None` without any.
    pub(crate) fn mean(parts: &[(f64, &Posterior)]) -> Option<Self> {
        let all: f64 = parts.iter().map(|(weight, _)| weight).sum();
        let of = |limit| parts.iter().map(|(weight, part)| weight * part.probability(limit)).sum();
        let sums = Limit::ALL.into_iter().map(of);
        let probabilities = sums.map(|sum: f64| sum / all).collect();
        (all > 0.0).then_some(Posterior { probabilities })
    }

    /// The most probable limit.
    pub(crate) fn most_probable(&self) -> Limit {
        let most = self.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        most.map_or(Limit::Unknown, |(limit, _)| limit)
    }

    /// The probability of a limit.
    pub(crate) fn probability(&self, limit: Limit) -> f64 {
        self.iter().find(|(other, _)| *other == limit).map_or(0.0, |(_, p)| p)
    }

    fn iter(&self) -> impl Iterator<Item = (Limit, f64)> + '_ {
        Limit::ALL.into_iter().zip(self.probabilities.iter().copied())
    }

    /// The limits of at least 1 %, the most probable first.
    pub(crate) fn reported(&self) -> Vec<Probability> {
        let mut all: Vec<Probability> = self
            .iter()
            .filter(|(_, p)| *p >= REPORTED)
            .map(|(limit, probability)| Probability { limit, probability })
            .collect();
        all.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_follow_from_the_scores() {
        let score = |limit| match limit {
            Limit::Aqm => 1.0,
            Limit::Loss => 0.0,
            _ => f64::NEG_INFINITY,
        };
        let posterior = Posterior::of_scores(&Limit::ALL.map(score));
        assert!((posterior.probability(Limit::Aqm) - 1.0 / (1.0 + (-1f64).exp())).abs() < 1e-12);
        assert_eq!(posterior.probability(Limit::Policer), 0.0, "not fitted");
        assert_eq!(posterior.reported()[0].limit, Limit::Aqm);
        let only = posterior.clone().without(|limit| limit == Limit::Aqm);
        assert!((only.probability(Limit::Loss) - 1.0).abs() < 1e-12);
        assert_eq!(only.clone().without(|_| true), only);
    }
}
