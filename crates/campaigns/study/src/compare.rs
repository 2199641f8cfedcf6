//! The statistics of the difference between two studies.

use crate::mean_ratio::{MeanRatio, mean_ratio};
use crate::study::{Part, Study};
use model::statistics;
use record::{
    ComparedCell, DifferingSetting, RunStatus, STUDY_COMPARISON_SCHEMA, StudyComparison, StudyRun,
};
use std::collections::BTreeMap;
use units::change;

/// Of intervals and tests.
const CONFIDENCE: f64 = 0.95;

/// A study with the runs of each of its parts.
pub type StudyRuns<'a> = (&'a Study, &'a [Vec<StudyRun>]);

/// A part's name and the values of a cell's factors.
type Key = (String, Vec<(String, String)>);

/// A cell that was measured.
struct MeasuredCell {
    key: Key,
    label: String,
    /// Of each valid run, in bit/s.
    goodputs: Vec<f64>,
}

/// Two studies without a common cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the studies have no measured cell in common: the same values of the same factors")]
pub struct NoCommonCell;

/// A difference between cells that a mean of their ratios would hide.
#[derive(Debug, thiserror::Error)]
enum Unlike {
    #[error("a cell has no goodput")]
    NoGoodput,
    #[error("the cells have different factors")]
    Factors,
    #[error("the changes differ, from {extremes}")]
    Changes { extremes: String },
}

/// Compares the goodput of the cells that two studies have in common, whatever their plans fix.
///
/// # Errors
/// [`NoCommonCell`].
pub fn compare(
    first: StudyRuns<'_>,
    second: StudyRuns<'_>,
) -> Result<StudyComparison, NoCommonCell> {
    let (before, after) = (measured(first), measured(second));
    let by_key: BTreeMap<&Key, &MeasuredCell> =
        after.iter().map(|cell| (&cell.key, cell)).collect();
    let pairs = before.iter().filter_map(|cell| Some((cell, *by_key.get(&cell.key)?)));
    let mut cells: Vec<ComparedCell> =
        pairs.map(|(before, after)| compared(before, after)).collect();
    if cells.is_empty() {
        return Err(NoCommonCell);
    }
    let unmatched = (before.len() + after.len()).saturating_sub(2 * cells.len());
    let significant = mark_significant(&mut cells);
    let (overall, unlike) = match overall(&before, &cells) {
        Ok(overall) => (Some(overall), None),
        Err(unlike) => (None, Some(unlike.to_string())),
    };
    let mut comparison = StudyComparison {
        schema: STUDY_COMPARISON_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        names: [first.0.name.clone(), second.0.name.clone()],
        differing: differing(first.0, second.0),
        confidence: CONFIDENCE,
        unmatched: unmatched as u64,
        significant: significant as u64,
        ratio: overall.map(|overall| overall.ratio),
        ratio_low: overall.and_then(|overall| Some(overall.interval?[0])),
        ratio_high: overall.and_then(|overall| Some(overall.interval?[1])),
        cells,
        no_ratio: unlike,
        sentence: String::new(),
    };
    comparison.sentence = sentence(&comparison);
    Ok(comparison)
}

/// The geometric mean of the cells' ratios.
///
/// # Errors
/// The cells are not alike: a mean of cells with other factors, or whose goodputs
/// changed by other factors, describes none of them.
fn overall(measured: &[MeasuredCell], cells: &[ComparedCell]) -> Result<MeanRatio, Unlike> {
    if cells.iter().any(|cell| cell.goodput_bps.iter().any(|rate| *rate <= 0.0)) {
        return Err(Unlike::NoGoodput);
    }
    let is_compared = |part: &str| cells.iter().any(|cell| cell.part == part);
    let mut factors = measured
        .iter()
        .filter(|cell| is_compared(&cell.key.0))
        .map(|cell| cell.key.1.iter().map(|(factor, _)| factor.as_str()).collect::<Vec<_>>());
    let first = factors.next();
    if factors.any(|other| Some(other) != first) {
        return Err(Unlike::Factors);
    }
    let ratio = |cell: &ComparedCell| cell.goodput_bps[1] / cell.goodput_bps[0];
    let logarithms: Vec<f64> = cells.iter().map(|cell| ratio(cell).ln()).collect();
    mean_ratio(&logarithms, CONFIDENCE).ok_or_else(|| {
        let by_ratio = |a: &&ComparedCell, b: &&ComparedCell| ratio(a).total_cmp(&ratio(b));
        let extremes = [cells.iter().min_by(by_ratio), cells.iter().max_by(by_ratio)];
        let named = extremes
            .into_iter()
            .flatten()
            .map(|cell| format!("{} ({})", change(ratio(cell) - 1.0), cell.label));
        let named: Vec<String> = named.collect();
        Unlike::Changes { extremes: named.join(" to ") }
    })
}

/// The cells that have valid runs, in the order of the plans.
fn measured((study, runs): StudyRuns<'_>) -> Vec<MeasuredCell> {
    let mut all: BTreeMap<(usize, usize), MeasuredCell> = BTreeMap::new();
    for (position, (part, runs)) in study.parts.iter().zip(runs).enumerate() {
        let valid = runs.iter().filter(|run| run.status == RunStatus::Valid);
        for run in valid.filter(|run| run.cell < part.plan.cells()) {
            let cell = all.entry((position, run.cell)).or_insert_with(|| named(part, run.cell));
            cell.goodputs.push(run.throughput_bps());
        }
    }
    all.into_values().collect()
}

fn named(part: &Part, number: usize) -> MeasuredCell {
    let cell = part.plan.cell(number);
    let pairs = part.plan.factors.iter().zip(&cell.levels);
    let mut values: Vec<(String, String)> =
        pairs.map(|(factor, level)| (factor.setting.to_string(), level.text.clone())).collect();
    values.sort();
    MeasuredCell {
        key: (part.name.clone(), values),
        label: part.plan.label(&cell),
        goodputs: Vec::new(),
    }
}

fn compared(before: &MeasuredCell, after: &MeasuredCell) -> ComparedCell {
    let both = [&before.goodputs, &after.goodputs];
    let means = both.map(|rates| statistics::mean(rates).unwrap_or_default());
    let test = statistics::welch(both[0], both[1], CONFIDENCE);
    let [first, second] = both.map(|rates| logarithms(rates));
    let ratio = statistics::mean(&first).zip(statistics::mean(&second));
    let of_ratio = statistics::welch(&first, &second, CONFIDENCE);
    ComparedCell {
        part: before.key.0.clone(),
        label: before.label.clone(),
        runs: both.map(|rates| u32::try_from(rates.len()).unwrap_or(u32::MAX)),
        goodput_bps: means,
        difference_bps: means[1] - means[0],
        low_bps: test.map(|test| test.interval.low),
        high_bps: test.map(|test| test.interval.high),
        ratio: ratio.map(|(first, second)| (second - first).exp()),
        ratio_low: of_ratio.map(|test| test.interval.low.exp()),
        ratio_high: of_ratio.map(|test| test.interval.high.exp().min(f64::MAX)),
        p: test.map(|test| test.p.clamp(0.0, 1.0)),
        significant: None,
    }
}

/// Logarithms of goodputs; none if one of them has none.
pub(crate) fn logarithms(goodputs: &[f64]) -> Vec<f64> {
    let carried = goodputs.iter().all(|rate| rate.is_finite() && *rate > 0.0);
    goodputs.iter().filter(|_| carried).map(|rate| rate.ln()).collect()
}

/// Marks the cells that differ significantly among all (Holm's correction); how many do.
fn mark_significant(cells: &mut [ComparedCell]) -> usize {
    let p: Vec<Option<f64>> = cells.iter().map(|cell| cell.p).collect();
    for (cell, significant) in cells.iter_mut().zip(statistics::holm(&p, CONFIDENCE)) {
        cell.significant = significant;
    }
    cells.iter().filter(|cell| cell.significant == Some(true)).count()
}

/// The settings that the plans of parts with the same name fix differently.
fn differing(first: &Study, second: &Study) -> Vec<DifferingSetting> {
    let fixed = |part: &Part| -> BTreeMap<String, String> {
        let fixed = part.plan.fixed.iter();
        fixed.map(|(setting, level)| (setting.to_string(), level.text.clone())).collect()
    };
    let mut all = Vec::new();
    for part in &first.parts {
        let Some(other) = second.parts.iter().find(|other| other.name == part.name) else {
            continue;
        };
        let (before, after) = (fixed(part), fixed(other));
        let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
        names.sort();
        names.dedup();
        for name in names.into_iter().filter(|name| before.get(*name) != after.get(*name)) {
            let value =
                |fixed: &BTreeMap<String, String>| fixed.get(name).cloned().unwrap_or_default();
            let values = [value(&before), value(&after)];
            let (part, name) = (part.name.clone(), name.clone());
            all.push(DifferingSetting { part, name, values });
        }
    }
    all
}

fn sentence(comparison: &StudyComparison) -> String {
    let cells = comparison.cells.len();
    let tested = comparison.cells.iter().filter(|cell| cell.p.is_some()).count();
    let ratios = (comparison.ratio, comparison.ratio_low, comparison.ratio_high);
    let overall = match ratios {
        (Some(ratio), Some(low), Some(high)) => format!(
            "over {cells} cells the second study's goodput is {} (geometric mean; 95 % \
             confidence interval {} to {})",
            change(ratio - 1.0),
            change(low - 1.0),
            change(high - 1.0)
        ),
        (Some(ratio), ..) => format!("the second study's goodput is {}", change(ratio - 1.0)),
        _ => {
            let why = comparison.no_ratio.as_deref().unwrap_or("nothing to compare");
            format!("no overall figure for {cells} cells: {why}")
        }
    };
    let tests = match tested {
        0 => "no cell has two or more runs in both studies, which a test requires".to_owned(),
        _ => format!(
            "{} of {tested} cells differ significantly (Welch's t-test, Holm's correction)",
            comparison.significant
        ),
    };
    let mut text = format!("{overall}; {tests}.");
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"question = "Does it differ?"
[path]
rate = "100mbit"
rtt = "100ms"
[factors]
window = ["64KiB", "128KiB", "256KiB"]
[traffic]
duration = "5s"
congestion = "cubic"
[repeats]
count = 3
"#;

    fn runs(goodputs: &[[f64; 3]]) -> Vec<Vec<StudyRun>> {
        let of_cell = goodputs.iter().enumerate().flat_map(|(cell, rates)| {
            (1..).zip(rates).map(move |(repeat, rate)| StudyRun {
                cell,
                repeat,
                status: RunStatus::Valid,
                attempts: 1,
                started_unix_s: 0,
                took_s: 6.0,
                test_s: 5.5,
                reason: String::new(),
                start_skew: None,
                flows: vec![record::FlowFigures {
                    throughput_bps: *rate * 1e6,
                    ..record::FlowFigures::default()
                }],
            })
        });
        vec![of_cell.collect()]
    }

    #[test]
    fn cells_are_compared_by_their_values_and_significant_among_all() {
        let first = Study::of_plan("first", PLAN, false).unwrap();
        let other = PLAN.replace("\"64KiB\", \"128KiB\"", "\"128KiB\", \"64KiB\"");
        let second = Study::of_plan("second", &other.replace("cubic", "bbr"), false).unwrap();
        let before = runs(&[[5.0, 5.1, 4.9], [10.0, 10.1, 9.9], [20.0, 21.0, 19.0]]);
        // The cells are in another order; one has no valid run.
        let mut after = runs(&[[11.0, 11.1, 10.9], [5.1, 4.9, 5.0], [20.0, 21.0, 19.0]]);
        after[0].iter_mut().skip(6).for_each(|run| run.status = RunStatus::Invalid);
        let found = compare((&first, &before), (&second, &after)).unwrap();
        assert_eq!((found.cells.len(), found.unmatched, found.significant), (2, 1, 1));
        let cell = found.cells.iter().find(|cell| cell.label == "window=128KiB").unwrap();
        assert!((cell.difference_bps - 1e6).abs() < 1.0 && cell.significant == Some(true));
        assert!(cell.low_bps.unwrap() > 0.7e6 && cell.high_bps.unwrap() < 1.3e6, "{cell:?}");
        assert!((cell.ratio.unwrap() - 1.1).abs() < 1e-3, "{cell:?}");
        assert!(cell.ratio_low > Some(1.07) && cell.ratio_high < Some(1.13), "{cell:?}");
        let same = found.cells.iter().find(|cell| cell.label == "window=64KiB").unwrap();
        assert_eq!(same.significant, Some(false));
        let ratio = found.ratio.unwrap();
        assert!((ratio - 1.1f64.sqrt()).abs() < 1e-3, "{ratio}");
        assert_eq!(found.differing[0].values, ["cubic", "bbr"]);
        assert!(found.sentence.contains("1 of 2 cells differ"), "{}", found.sentence);
    }

    fn compared_rates(before: &[[f64; 3]], after: &[[f64; 3]]) -> StudyComparison {
        let study = Study::of_plan("windows", PLAN, false).unwrap();
        compare((&study, &runs(before)), (&study, &runs(after))).unwrap()
    }

    #[test]
    fn cells_that_changed_differently_have_no_overall_ratio() {
        let before = [[5.0, 5.1, 4.9], [10.0, 10.1, 9.9]];
        // Twice as much and fifty times as much: their mean would be from -99.9 % to thousands.
        let found = compared_rates(&before, &[[10.0, 10.1, 9.9], [500.0, 501.0, 499.0]]);
        assert_eq!((found.ratio, found.ratio_low, found.ratio_high), (None, None, None));
        let why = "No overall figure for 2 cells: the changes differ, from 2 times (window=64KiB) \
                   to 50 times (window=128KiB); 2 of 2";
        assert!(found.sentence.starts_with(why), "{}", found.sentence);
        // Within a factor of two of their mean, but two cells do not bound it.
        let found = compared_rates(&before, &[[5.0, 5.1, 4.9], [19.0, 19.1, 18.9]]);
        assert_eq!(found.ratio, None, "{}", found.sentence);
        let found = compared_rates(&before, &[[5.5, 5.6, 5.4], [11.1, 11.2, 11.0]]);
        assert!(found.no_ratio.is_none() && found.ratio.is_some(), "{}", found.sentence);
        assert!(found.ratio_low > Some(1.0) && found.ratio_high < Some(1.2), "{found:?}");
        // One cell is its own overall figure.
        let found = compared_rates(&before[..1], &[[500.0, 501.0, 499.0]]);
        assert!((found.ratio.unwrap() - 100.0).abs() < 0.01, "{found:?}");
        let found = compared_rates(&before, &[[0.0; 3], [10.0, 10.1, 9.9]]);
        assert_eq!(found.no_ratio.as_deref(), Some("a cell has no goodput"));
        assert_eq!((found.cells[0].ratio, found.cells[0].ratio_low), (None, None));
    }

    #[test]
    fn studies_without_a_common_cell_are_refused() {
        let first = Study::of_plan("first", PLAN, false).unwrap();
        let other =
            PLAN.replace("window = [\"64KiB\", \"128KiB\", \"256KiB\"]", "streams = [1, 2, 3]");
        let second = Study::of_plan("second", &other, false).unwrap();
        let runs = runs(&[[5.0; 3], [5.0; 3], [5.0; 3]]);
        assert!(
            compare((&first, &runs), (&second, &runs))
                .unwrap_err()
                .to_string()
                .contains("no measured")
        );
        // The same in both: nothing differs.
        let same = compare((&first, &runs), (&first, &runs)).unwrap();
        assert_eq!((same.significant, same.differing.len(), same.ratio), (0, 0, Some(1.0)));
    }

    #[test]
    fn of_many_equal_cells_none_is_significant_by_chance() {
        let mut cells: Vec<ComparedCell> = (0..100)
            .map(|at| ComparedCell {
                // 0.01, 0.02, ... : five of a hundred are below 0.05.
                p: Some(f64::from(at + 1) / 100.0),
                part: String::new(),
                label: String::new(),
                runs: [3, 3],
                goodput_bps: [1.0, 1.0],
                difference_bps: 0.0,
                low_bps: None,
                high_bps: None,
                ratio: None,
                ratio_low: None,
                ratio_high: None,
                significant: None,
            })
            .collect();
        assert_eq!(mark_significant(&mut cells), 0);
        cells[3].p = Some(1e-6);
        assert_eq!(mark_significant(&mut cells), 1);
        assert_eq!(cells[3].significant, Some(true));
    }
}
