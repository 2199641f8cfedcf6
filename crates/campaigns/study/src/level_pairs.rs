//! Each pair of levels of each factor, compared like with like: in cells in which all other
//! factors are equal, and over all of these.

use crate::compare::logarithms;
use crate::level_words::{self, Known, Named, times};
use crate::mean_ratio::mean_ratio;
use crate::plan::{Cell, Plan};
use crate::test::Test;
use model::statistics;
use record::{Direction, LevelComparison, Protocol, RunStatus, StudyRun};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Of intervals and tests.
const CONFIDENCE: f64 = 0.95;

/// Pairs of cells of a factor that are compared; of more, those with the largest ratios.
const MAX_CELL_PAIRS: usize = 300;

/// Pairs of levels that are compared over all conditions, likewise.
const MAX_OVERALL: usize = 50;

/// The comparisons of a part.
#[derive(Debug, Default)]
pub(crate) struct LevelPairs {
    /// By factor; of a factor the most important one first.
    pub(crate) comparisons: Vec<LevelComparison>,
    /// Pairs that are left out.
    pub(crate) more: u64,
}

/// Compares the cells of a plan by their runs.
pub(crate) fn compare(plan: &Plan, runs: &BTreeMap<usize, Vec<&StudyRun>>) -> LevelPairs {
    let cells =
        Cells { plan, samples: (0..plan.cells()).map(|cell| Sample::of(runs, cell)).collect() };
    let mut found: Vec<Found> = Vec::new();
    let mut counted = 0;
    for factor in factors(plan) {
        let pairs = factor.cell_pairs(&cells);
        counted += pairs.counted;
        found.extend(pairs.items().into_iter().map(|pair| cells.pair(&factor, pair)));
        let overall = factor.overall_pairs(&cells);
        counted += overall.counted;
        found.extend(overall.items().into_iter().map(|levels| cells.overall(&factor, levels)));
    }
    let kept = found.len();
    // Those with the largest ratios are kept, not those with the smallest p-values: as if all
    // others had been tested.
    let p: Vec<Option<f64>> = found.iter().map(|one| one.comparison.p).collect();
    let tests = p.iter().flatten().count() + counted.saturating_sub(kept);
    for (one, significant) in found.iter_mut().zip(statistics::holm_among(&p, tests, CONFIDENCE)) {
        one.comparison.significant = significant.or(one.comparison.significant);
        one.say();
    }
    // Stable: the factors stay in the order of the plan.
    found.sort_by(Found::importance);
    LevelPairs {
        comparisons: found.into_iter().map(|one| one.comparison).collect(),
        more: counted.saturating_sub(kept) as u64,
    }
}

/// A factor that varies by itself, or several that are paired.
struct Varied {
    /// Indices of the plan's factors, the first one first.
    factors: Vec<usize>,
    /// Those of all others.
    others: Vec<usize>,
    levels: usize,
    /// Cells from one level to the next.
    stride: usize,
}

/// A pair of cells: two levels, and the cell that has the first level of the factor.
type CellPair = ([usize; 2], usize);

fn factors(plan: &Plan) -> Vec<Varied> {
    let first = plan.factors.iter().position(|factor| factor.paired);
    let mut stride = 1;
    let mut all = Vec::new();
    for (at, factor) in plan.factors.iter().enumerate().rev() {
        if factor.paired && first != Some(at) {
            continue;
        }
        let is_of_it = |other: &usize| match factor.paired {
            true => plan.factors[*other].paired,
            false => *other == at,
        };
        let (factors, others) = (0..plan.factors.len()).partition(is_of_it);
        let levels = factor.levels.len().max(1);
        all.push(Varied { factors, others, levels, stride });
        stride *= levels;
    }
    all.reverse();
    all
}

impl Varied {
    /// The cells that have its first level: one for each combination of the other factors.
    fn bases(&self, cells: &Cells<'_>) -> impl Iterator<Item = usize> {
        let (stride, block) = (self.stride, self.stride * self.levels);
        let blocks = 0..cells.samples.len() / block;
        blocks.flat_map(move |high| (0..stride).map(move |low| high * block + low))
    }

    fn level_pairs(&self) -> impl Iterator<Item = [usize; 2]> {
        let levels = self.levels;
        (0..levels).flat_map(move |first| (first + 1..levels).map(move |second| [first, second]))
    }

    fn cells_of(&self, ([first, second], base): CellPair) -> [usize; 2] {
        [base + first * self.stride, base + second * self.stride]
    }

    fn cell_pairs(&self, cells: &Cells<'_>) -> Heaviest<CellPair> {
        let mut kept = Heaviest::new(MAX_CELL_PAIRS);
        for base in self.bases(cells) {
            for levels in self.level_pairs() {
                let pair = (levels, base);
                kept.add(cells.logarithm(self.cells_of(pair)).map_or(-1.0, f64::abs), pair);
            }
        }
        kept
    }

    fn overall_pairs(&self, cells: &Cells<'_>) -> Heaviest<[usize; 2]> {
        let mut kept = Heaviest::new(MAX_OVERALL);
        for levels in self.level_pairs() {
            let all = self.logarithms(cells, levels);
            let (count, sum) = all.fold((0, 0.0), |(count, sum), one| (count + 1, sum + one));
            if count > 1 {
                kept.add((sum / f64::from(count)).abs(), levels);
            }
        }
        kept
    }

    /// Logarithms of the ratios of two levels in each condition that has one.
    fn logarithms(&self, cells: &Cells<'_>, levels: [usize; 2]) -> impl Iterator<Item = f64> {
        self.bases(cells).filter_map(move |base| cells.logarithm(self.cells_of((levels, base))))
    }
}

/// The items with the greatest weights, of equal ones the first.
struct Heaviest<T> {
    most: usize,
    counted: usize,
    /// The weight that a further one has to exceed.
    least: f64,
    kept: Vec<(f64, usize, T)>,
}

impl<T> Heaviest<T> {
    fn new(most: usize) -> Self {
        Heaviest { most, counted: 0, least: f64::NEG_INFINITY, kept: Vec::new() }
    }

    fn add(&mut self, weight: f64, item: T) {
        self.counted += 1;
        if weight <= self.least {
            return;
        }
        self.kept.push((weight, self.counted, item));
        if self.kept.len() >= 4 * self.most {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        self.kept.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        if self.kept.len() >= self.most {
            self.kept.truncate(self.most);
            self.least = self.kept.last().map_or(self.least, |last| last.0);
        }
    }

    fn items(mut self) -> Vec<T> {
        self.shrink();
        self.kept.into_iter().map(|(_, _, item)| item).collect()
    }
}

/// The valid runs of a cell.
struct Sample {
    runs: u32,
    /// Of the goodputs; empty if one of them is zero.
    logarithms: Vec<f64>,
    mean: Option<f64>,
    /// Why there is none, before the name of the level and after it.
    missing: [String; 2],
}

impl Sample {
    fn of(all: &BTreeMap<usize, Vec<&StudyRun>>, cell: usize) -> Self {
        let runs = all.get(&cell).map_or(&[][..], Vec::as_slice);
        let valid = runs.iter().filter(|run| run.status == RunStatus::Valid);
        let rates: Vec<f64> = valid.map(|run| run.throughput_bps()).collect();
        let logarithms = logarithms(&rates);
        let reason = runs.iter().map(|run| run.reason.as_str()).find(|reason| !reason.is_empty());
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        let missing = match (rates.is_empty(), runs.is_empty()) {
            (false, _) => ["nothing arrived in a run with ".to_owned(), String::new()],
            (true, true) => ["no run yet with ".to_owned(), String::new()],
            (true, false) => ["no valid run with ".to_owned(), reason],
        };
        let mean = statistics::mean(&logarithms);
        Sample { runs: u32::try_from(rates.len()).unwrap_or(u32::MAX), logarithms, mean, missing }
    }

    /// Whether its runs differ at all.
    fn has_spread(&self) -> bool {
        self.logarithms.windows(2).any(|pair| pair.first() != pair.last())
    }
}

struct Cells<'a> {
    plan: &'a Plan,
    samples: Vec<Sample>,
}

/// A comparison, and how its levels are called.
struct Found {
    comparison: LevelComparison,
    named: Named,
    /// Place of the factor in the plan.
    factor: usize,
}

impl Cells<'_> {
    /// The logarithm of the first cell's goodput over the second one's.
    fn logarithm(&self, [first, second]: [usize; 2]) -> Option<f64> {
        let mean = |cell: usize| self.samples.get(cell)?.mean;
        Some(mean(first)? - mean(second)?)
    }

    fn pair(&self, factor: &Varied, pair: CellPair) -> Found {
        let mut cells = factor.cells_of(pair);
        let ratio = self.logarithm(cells);
        if ratio.is_some_and(|ratio| ratio < 0.0) {
            cells.reverse();
        }
        let both = cells.map(|cell| self.plan.cell(cell));
        let named = |at: &Cell| level_words::level(self.plan, at, &factor.factors);
        let named = Named {
            levels: [named(&both[0]), named(&both[1])],
            are_fast: self.are_fast(factor),
            at: level_words::condition(self.plan, &both[0], &factor.others),
        };
        let samples = cells.map(|cell| &self.samples[cell]);
        let no_ratio = match ratio {
            None => {
                let mut missing = samples.iter().zip(&named.levels);
                let missing = missing.find(|(sample, _)| sample.mean.is_none());
                missing.map(|(sample, level)| sample.missing.join(level))
            }
            Some(_) => self.unlike(&both),
        };
        let test = statistics::welch(&samples[1].logarithms, &samples[0].logarithms, CONFIDENCE)
            .filter(|_| no_ratio.is_none())
            // What repeats exactly, as a simulation without chance does, is no sample of anything.
            .filter(|_| samples.iter().any(|sample| sample.has_spread()));
        let ratio = ratio.filter(|_| no_ratio.is_none());
        let comparison = LevelComparison {
            at: Some(self.values(&both[0], &factor.others)),
            conditions: 1,
            cells: Some(cells),
            runs: samples.map(|sample| sample.runs),
            ratio: ratio.map(|ratio| ratio.abs().exp()),
            ratio_low: test.map(|test| test.interval.low.exp()),
            ratio_high: test.map(|test| test.interval.high.exp().min(f64::MAX)),
            p: test.map(|test| test.p.clamp(0.0, 1.0)),
            no_ratio,
            ..self.begin(factor, &both)
        };
        Found { comparison, named, factor: factor.factors.first().copied().unwrap_or_default() }
    }

    /// Two levels over all conditions with a ratio.
    fn overall(&self, factor: &Varied, mut levels: [usize; 2]) -> Found {
        let mut all: Vec<f64> = factor.logarithms(self, levels).collect();
        if all.iter().sum::<f64>() < 0.0 {
            levels.reverse();
            all.iter_mut().for_each(|ratio| *ratio = -*ratio);
        }
        let example = factor.cells_of((levels, 0)).map(|cell| self.plan.cell(cell));
        let named = |at: &Cell| level_words::level(self.plan, at, &factor.factors);
        let named = Named {
            levels: [named(&example[0]), named(&example[1])],
            are_fast: self.are_fast(factor),
            at: format!(" over {} conditions", all.len()),
        };
        let unlike = self.unlike_anywhere(factor, levels);
        let mean = mean_ratio(&all, CONFIDENCE).filter(|_| unlike.is_none());
        let no_ratio = unlike.or_else(|| mean.is_none().then(|| too_different(&all)));
        let interval = mean.and_then(|mean| mean.interval);
        let valid = |level: usize| {
            let cells = factor.bases(self).map(|base| base + level * factor.stride);
            cells.map(|cell| self.samples[cell].runs).fold(0, u32::saturating_add)
        };
        let comparison = LevelComparison {
            at: None,
            conditions: u32::try_from(all.len()).unwrap_or(u32::MAX),
            runs: levels.map(valid),
            ratio: mean.map(|mean| mean.ratio),
            ratio_low: interval.map(|interval| interval[0]),
            ratio_high: interval.map(|interval| interval[1]),
            significant: interval.map(|[low, high]| low > 1.0 || high < 1.0),
            no_ratio,
            ..self.begin(factor, &example)
        };
        Found { comparison, named, factor: factor.factors.first().copied().unwrap_or_default() }
    }

    /// The JSON names of two levels.
    fn begin(&self, factor: &Varied, cells: &[Cell; 2]) -> LevelComparison {
        let first = factor.factors.first().copied().unwrap_or_default();
        let text = |cell: &Cell| cell.levels.get(first).map_or(String::new(), |l| l.text.clone());
        LevelComparison {
            factor: self.plan.factors.get(first).map_or(String::new(), |f| f.setting.to_string()),
            levels: [text(&cells[0]), text(&cells[1])],
            at: None,
            conditions: 1,
            cells: None,
            runs: [0, 0],
            ratio: None,
            ratio_low: None,
            ratio_high: None,
            p: None,
            significant: None,
            no_ratio: None,
            verdict: String::new(),
        }
    }

    /// The values of factors in a cell, such as `loss=1% streams=2`.
    fn values(&self, cell: &Cell, factors: &[usize]) -> String {
        let pairs = factors.iter().filter_map(|at| {
            let (factor, level) = (self.plan.factors.get(*at)?, cell.levels.get(*at)?);
            Some(format!("{}={}", factor.setting, level.text))
        });
        pairs.collect::<Vec<_>>().join(" ")
    }

    fn are_fast(&self, factor: &Varied) -> bool {
        let settings = factor.factors.iter().filter_map(|at| self.plan.factors.get(*at));
        settings.map(|factor| &factor.setting).all(level_words::is_transfer)
    }

    /// Why two levels are no measure of the same in a condition.
    fn unlike_anywhere(&self, factor: &Varied, levels: [usize; 2]) -> Option<String> {
        let decides = |at: &usize| {
            let name = self.plan.factors.get(*at).map(|factor| factor.setting.to_string());
            name.is_some_and(|name| name.ends_with("protocol") || name.ends_with("direction"))
        };
        if !factor.factors.iter().any(decides) {
            return None;
        }
        let mut cells = factor.bases(self).map(|base| factor.cells_of((levels, base)));
        cells.find_map(|pair| self.unlike(&pair.map(|cell| self.plan.cell(cell))))
    }

    /// Why the goodputs of two cells are no measure of the same.
    fn unlike(&self, cells: &[Cell; 2]) -> Option<String> {
        let tests = [self.plan.test(&cells[0]).ok()?, self.plan.test(&cells[1]).ok()?];
        let differs = |of: fn(&Test) -> bool| of(&tests[0]) != of(&tests[1]);
        let sends_both = |test: &Test| test.flows.iter().any(|f| f.direction == Direction::Both);
        let is_udp = |test: &Test| test.flows.iter().any(|f| f.protocol == Protocol::Udp);
        if differs(is_udp) {
            Some("UDP sends at the requested rate, TCP as fast as the path allows".to_owned())
        } else if differs(sends_both) {
            Some("one goodput covers both directions together".to_owned())
        } else {
            None
        }
    }
}

/// Why ratios, by their logarithms, have no mean.
fn too_different(logarithms: &[f64]) -> String {
    let low = logarithms.iter().copied().fold(f64::INFINITY, f64::min).exp();
    let high = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max).exp();
    format!("the ratios differ too much, from {} to {}", times(low), times(high))
}

impl Found {
    /// Writes the verdict.
    fn say(&mut self) {
        let one = &mut self.comparison;
        one.verdict = match (one.ratio, &one.no_ratio) {
            (Some(ratio), None) => self.named.verdict(&Known {
                ratio,
                interval: one.ratio_low.zip(one.ratio_high).map(|(low, high)| [low, high]),
                significant: one.significant,
                runs: one.cells.map(|_| one.runs),
            }),
            (_, why) => self.named.no_ratio(why.as_deref().unwrap_or("it is unknown")),
        };
    }

    /// By factor; with a ratio first, then over all conditions, significant, and large.
    fn importance(&self, other: &Self) -> Ordering {
        let key = |found: &Self| {
            let one = &found.comparison;
            let over_all = one.at.is_none();
            (found.factor, one.ratio.is_none(), !over_all, one.significant != Some(true))
        };
        let ratio = |found: &Self| found.comparison.ratio.unwrap_or(0.0);
        key(self).cmp(&key(other)).then(ratio(other).total_cmp(&ratio(self)))
    }
}

#[cfg(test)]
mod tests;
