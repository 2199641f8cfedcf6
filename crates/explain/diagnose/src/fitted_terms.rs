//! The log-likelihood of each limit, given a segment's statistics: a sum of fitted terms.
//!
//! There is one term for each statistic, a continuous, piecewise linear function with knots
//! at quantiles of the fitted runs (a generalized additive model), and a constant where the
//! statistic is absent; and one for each of some pairs of statistics, bilinear between knots,
//! nothing where one is absent (Lou et al., KDD 2013). All were fitted jointly, so correlated
//! statistics share their weight instead of being counted twice. Priors, terms and knots are
//! in `causes/weights.csv`, those of captures in `causes/weights_of_captures.csv`; the method
//! and the runs behind them are in docs/design/diagnosis.md.

use crate::statistics::{SampleSource, Statistic, Statistics};
use record::Limit;
use std::sync::OnceLock;

/// The fitted terms, one line each: of the kernels' samples, and of captures.
const OF_KERNELS: &str = include_str!("causes/weights.csv");
const OF_CAPTURES: &str = include_str!("causes/weights_of_captures.csv");

/// The term of a statistic.
#[derive(Debug)]
struct Term {
    statistic: Statistic,
    knots: Vec<f64>,
    /// For each limit of [`Limit::ALL`]: the value where the statistic is absent, then
    /// those at the knots.
    weights: Vec<Vec<f64>>,
}

/// The term of a pair of statistics.
#[derive(Debug)]
struct Pair {
    statistics: [Statistic; 2],
    knots: [Vec<f64>; 2],
    /// For each limit: the values at the first statistic's lowest knot, then at its next.
    weights: Vec<Vec<f64>>,
}

/// Priors and terms.
#[derive(Debug, Default)]
struct FittedModel {
    priors: Vec<f64>,
    terms: Vec<Term>,
    pairs: Vec<Pair>,
}

/// The score of each limit, in the order of [`Limit::ALL`]: the logarithm of its probability,
/// but for a constant.
pub(crate) fn scores(statistics: &Statistics) -> Vec<f64> {
    static KERNELS: OnceLock<FittedModel> = OnceLock::new();
    static CAPTURES: OnceLock<FittedModel> = OnceLock::new();
    let (model, text) = match statistics.source {
        SampleSource::Kernel => (&KERNELS, OF_KERNELS),
        SampleSource::Capture => (&CAPTURES, OF_CAPTURES),
    };
    model.get_or_init(|| FittedModel::parse(text)).scores(statistics)
}

/// Where a value is between knots: the index of the lower one, and the share of the way to
/// the next. Values beyond the knots are at the nearest.
fn between(knots: &[f64], value: f64) -> (usize, f64) {
    let above = knots.partition_point(|knot| *knot <= value);
    match (above.checked_sub(1).and_then(|low| knots.get(low)), knots.get(above)) {
        (Some(low), Some(high)) => (above - 1, (value - low) / (high - low)),
        (None, _) => (0, 0.0),
        (Some(_), None) => (above - 1, 0.0),
    }
}

/// The value at an index and a share of the way to the next.
fn at(weights: &[f64], index: usize, share: f64) -> f64 {
    let at = |index: usize| weights.get(index).copied().unwrap_or(0.0);
    at(index) + if share > 0.0 { share * (at(index + 1) - at(index)) } else { 0.0 }
}

impl FittedModel {
    fn scores(&self, statistics: &Statistics) -> Vec<f64> {
        let mut scores = self.priors.clone();
        for term in &self.terms {
            term.add(statistics.get(term.statistic), &mut scores);
        }
        for pair in &self.pairs {
            pair.add(pair.statistics.map(|one| statistics.get(one)), &mut scores);
        }
        scores
    }

    /// Lines `prior,LIMIT,VALUE`, `knots,STATISTIC,…`, `weights,STATISTIC,LIMIT,ABSENT,…`,
    /// `pair,STATISTIC,STATISTIC,KNOT,…,;,KNOT,…` and `pair-weights,LIMIT,…` of the last pair.
    fn parse(text: &str) -> Self {
        let place = |name: &str| Limit::ALL.iter().position(|limit| limit.name() == name);
        let none = || vec![vec![]; Limit::ALL.len()];
        // A limit that was not fitted is never named.
        let mut all = FittedModel {
            priors: vec![f64::NEG_INFINITY; Limit::ALL.len()],
            ..FittedModel::default()
        };
        for line in text.lines() {
            let mut fields = line.split(',');
            let (kind, name) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
            match kind {
                "prior" => {
                    let prior = place(name).and_then(|place| all.priors.get_mut(place));
                    if let Some((prior, value)) = prior.zip(numbers(fields).first()) {
                        *prior = *value;
                    }
                }
                "knots" => {
                    let term =
                        |statistic| Term { statistic, knots: numbers(fields), weights: none() };
                    all.terms.extend(Statistic::named(name).map(term));
                }
                "weights" => {
                    let limit = fields.next().and_then(place);
                    let term = all.terms.iter_mut().find(|term| term.statistic.name() == name);
                    set(limit.zip(term.map(|term| &mut term.weights)), numbers(fields));
                }
                "pair" => {
                    let pair = [Statistic::named(name), fields.next().and_then(Statistic::named)];
                    let first = numbers(fields.by_ref().take_while(|field| *field != ";"));
                    if let [Some(a), Some(b)] = pair {
                        let (statistics, knots) = ([a, b], [first, numbers(fields)]);
                        all.pairs.push(Pair { statistics, knots, weights: none() });
                    }
                }
                "pair-weights" => {
                    let pair = all.pairs.last_mut();
                    set(place(name).zip(pair.map(|pair| &mut pair.weights)), numbers(fields));
                }
                _ => {}
            }
        }
        all
    }
}

fn numbers<'a>(fields: impl Iterator<Item = &'a str>) -> Vec<f64> {
    fields.filter_map(|field| field.parse().ok()).collect()
}

/// Sets a limit's weights.
fn set(place: Option<(usize, &mut Vec<Vec<f64>>)>, values: Vec<f64>) {
    if let Some(weights) = place.and_then(|(limit, all)| all.get_mut(limit)) {
        *weights = values;
    }
}

impl Term {
    /// Adds the term of a value to every limit's score.
    fn add(&self, value: Option<f64>, scores: &mut [f64]) {
        let (index, share) = match value {
            None => (0, 0.0),
            Some(value) => {
                let (low, share) = between(&self.knots, value);
                (low + 1, share)
            }
        };
        for (score, weights) in scores.iter_mut().zip(&self.weights) {
            *score += at(weights, index, share);
        }
    }
}

impl Pair {
    /// Adds the term of two values to every limit's score.
    fn add(&self, values: [Option<f64>; 2], scores: &mut [f64]) {
        let [Some(first), Some(second)] = values else { return };
        let [rows, columns] = &self.knots;
        let ((row, down), (column, right)) = (between(rows, first), between(columns, second));
        let width = columns.len();
        for (score, weights) in scores.iter_mut().zip(&self.weights) {
            let upper = at(weights, row * width + column, right);
            let lower =
                if down > 0.0 { at(weights, (row + 1) * width + column, right) } else { 0.0 };
            *score += upper + down * (lower - upper);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(limit: Limit) -> usize {
        Limit::ALL.iter().position(|other| *other == limit).unwrap()
    }

    #[test]
    fn terms_are_linear_between_knots_and_constant_beyond() {
        let terms = FittedModel::parse(
            "prior,loss,0\nprior,aqm,1\nknots,q10_ms,0,2\nweights,q10_ms,loss,5,1,3\n",
        );
        for (value, expected) in
            [(None, 5.0), (Some(-9.0), 1.0), (Some(0.0), 1.0), (Some(0.5), 1.5), (Some(9.0), 3.0)]
        {
            let scores = terms.scores(&Statistics::of([(Statistic::Q10Ms, value)]));
            assert!((scores[place(Limit::Loss)] - expected).abs() < 1e-12, "{value:?}: {scores:?}");
            assert_eq!(scores[place(Limit::Aqm)], 1.0);
            assert_eq!(scores[place(Limit::Policer)], f64::NEG_INFINITY, "not fitted");
        }
    }

    #[test]
    fn pairs_are_bilinear_between_knots() {
        let text = "prior,loss,0\nknots,q10_ms,0,2\nknots,stalled,0,1\n\
                    pair,q10_ms,stalled,0,2,;,0,1,3\npair-weights,loss,0,1,5,10,11,15\n";
        let terms = FittedModel::parse(text);
        for (x, y, expected) in [
            (Some(0.0), Some(0.0), 0.0),
            (Some(1.0), Some(0.0), 5.0),
            (Some(1.0), Some(0.5), 5.5),
            (Some(2.0), Some(2.0), 13.0),
            (Some(9.0), Some(9.0), 15.0),
            (Some(-9.0), Some(-9.0), 0.0),
            (None, Some(1.0), 0.0),
            (Some(1.0), None, 0.0),
        ] {
            // A statistic without a term is passed over.
            let values =
                [(Statistic::Q10Ms, x), (Statistic::Q50Ms, Some(1.0)), (Statistic::Stalled, y)];
            let scores = terms.scores(&Statistics::of(values));
            assert!(
                (scores[place(Limit::Loss)] - expected).abs() < 1e-12,
                "{x:?} {y:?}: {scores:?}"
            );
        }
    }

    #[test]
    fn the_fitted_terms_are_complete() {
        for text in [OF_KERNELS, OF_CAPTURES] {
            let all = FittedModel::parse(text);
            let lines = |kind| text.lines().filter(|line| line.starts_with(kind)).count();
            assert_eq!((all.terms.len(), all.pairs.len()), (lines("knots,"), lines("pair,")));
            is_complete(&all);
        }
    }

    fn is_complete(all: &FittedModel) {
        let mut statistics = Statistic::ALL.iter();
        assert!(all.terms.iter().all(|term| statistics.any(|one| *one == term.statistic)));
        assert!(all.terms.len() >= 60 && all.pairs.len() >= 20, "{}", all.terms.len());
        let check = |knots: &[&Vec<f64>], weights: &[Vec<f64>], count: usize| {
            assert!(knots.iter().all(|knots| knots.is_sorted() && knots.len() >= 2), "{knots:?}");
            for (weights, prior) in weights.iter().zip(&all.priors) {
                let expected = if prior.is_finite() { count } else { 0 };
                assert_eq!(weights.len(), expected, "{knots:?}");
                assert!(weights.iter().all(|weight| weight.is_finite()));
            }
        };
        for term in &all.terms {
            check(&[&term.knots], &term.weights, term.knots.len() + 1);
        }
        for pair in &all.pairs {
            let [rows, columns] = &pair.knots;
            check(&[rows, columns], &pair.weights, rows.len() * columns.len());
        }
    }
}
