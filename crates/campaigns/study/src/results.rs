//! The results of a study: the figures of each cell, and the answer.

use crate::level_pairs;
use crate::study::{Part, Study};
use crate::test::Test;
use model::statistics;
use record::{
    Limit, RunStatus, STUDY_SCHEMA, StudyCell, StudyPart, StudyReport, StudyRun, StudyTrend,
};
use std::collections::BTreeMap;
use units::{BitRate, percent};

/// Of a cell's mean.
const CONFIDENCE: f64 = 0.95;

/// How far a cell may be from its prediction to agree with it.
const AGREES: f64 = 0.10;

/// Reasons of invalid runs that a cell lists.
const MAX_REASONS: usize = 5;

impl Study {
    /// The results of the runs of each part, in the order of the parts.
    #[must_use]
    pub fn report(&self, runs: &[Vec<StudyRun>], trends: Vec<StudyTrend>) -> StudyReport {
        let parts: Vec<StudyPart> =
            self.parts.iter().zip(runs).map(|(part, runs)| part.results(runs)).collect();
        let all = || runs.iter().flatten();
        let count = |status| all().filter(|run| run.status == status).count();
        StudyReport {
            schema: STUDY_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.name.clone(),
            question: self.question.clone(),
            answer: answer(&parts, &trends),
            quick: self.quick,
            runs: self.runs() + self.added(runs),
            done: all().count(),
            valid: count(RunStatus::Valid),
            invalid: count(RunStatus::Invalid),
            failed: count(RunStatus::Failed),
            took_s: all().map(|run| run.took_s).sum(),
            test_s: all().map(|run| run.test_s).sum(),
            not_set: Vec::new(),
            testbed: self.testbed(),
            hosts: Vec::new(),
            start_skew: all()
                .filter(|run| run.status == RunStatus::Valid)
                .filter_map(|run| run.start_skew)
                .max_by(|a, b| a.ms.total_cmp(&b.ms)),
            trends,
            parts,
        }
    }
}

impl Study {
    /// Runs that were added to those that the plans begin with.
    fn added(&self, runs: &[Vec<StudyRun>]) -> usize {
        let added = |(part, runs): (&Part, &Vec<StudyRun>)| {
            runs.iter().filter(|run| run.repeat > part.plan.repeats.count).count()
        };
        self.parts.iter().zip(runs).map(added).sum()
    }
}

impl Part {
    /// The figures of its cells.
    fn results(&self, runs: &[StudyRun]) -> StudyPart {
        let mut of_cell: BTreeMap<usize, Vec<&StudyRun>> = BTreeMap::new();
        for run in runs {
            of_cell.entry(run.cell).or_default().push(run);
        }
        let cells = (0..self.plan.cells())
            .map(|number| self.cell(number, of_cell.get(&number).map_or(&[][..], Vec::as_slice)));
        let cells = cells.collect();
        let pairs = level_pairs::compare(&self.plan, &of_cell);
        StudyPart {
            name: self.name.clone(),
            plan: self.plan.report(),
            cells,
            comparisons: pairs.comparisons,
            more_comparisons: pairs.more,
        }
    }

    fn cell(&self, number: usize, runs: &[&StudyRun]) -> StudyCell {
        let cell = self.plan.cell(number);
        let valid: Vec<&StudyRun> =
            runs.iter().filter(|run| run.status == RunStatus::Valid).copied().collect();
        let rates: Vec<f64> = valid.iter().map(|run| run.throughput_bps()).collect();
        let interval = statistics::mean_interval(&rates, CONFIDENCE);
        let test = self.plan.test(&cell).ok();
        let prediction = test.as_ref().and_then(Test::predict);
        let memory = test.as_ref().map(Test::memory);
        let is_emulated = self.plan.real_hosts.is_none();
        let of_run = |run: &&StudyRun| {
            let rates: Vec<f64> = run.flows.iter().map(|flow| flow.throughput_bps).collect();
            jain(&rates)
        };
        let fairness: Vec<f64> = valid.iter().filter_map(of_run).collect();
        let mut reasons: Vec<String> = Vec::new();
        for reason in runs.iter().map(|run| &run.reason).filter(|reason| !reason.is_empty()) {
            if !reasons.contains(reason) && reasons.len() < MAX_REASONS {
                reasons.push(reason.clone());
            }
        }
        StudyCell {
            cell: number,
            values: cell.levels.iter().map(|level| level.text.clone()).collect(),
            valid: count(valid.len()),
            done: count(runs.len()),
            throughput_bps: statistics::mean(&rates),
            low_bps: interval.map(|interval| interval.low.max(0.0)),
            high_bps: interval.map(|interval| interval.high),
            predicted_bps: prediction.as_ref().map(|one| one.rate.as_f64()),
            equation: prediction.map(|one| one.equation),
            limit: most_named(&valid),
            fairness: statistics::mean(&fairness),
            streams: test.as_ref().map_or(0, Test::streams),
            window_bytes: test.as_ref().and_then(|test| Some(test.window?.bytes())),
            host_memory_bytes: memory.and_then(|memory| Some(memory.hosts?.bytes())),
            router_memory_bytes: memory.filter(|_| is_emulated).map(|memory| memory.router.bytes()),
            reasons,
        }
    }
}

fn count(runs: usize) -> u32 {
    u32::try_from(runs).unwrap_or(u32::MAX)
}

/// Jain's fairness index: `(sum x)^2 / (n sum x^2)` (Jain, Chiu, Hawe 1984); `None` for a single
/// flow, or where none received anything.
pub(crate) fn jain(rates: &[f64]) -> Option<f64> {
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let several = rates.len() > 1 && squares > 0.0;
    several.then(|| rates.iter().sum::<f64>().powi(2) / (rates.len() as f64 * squares))
}

/// The limit that the findings name most often.
fn most_named(runs: &[&StudyRun]) -> Option<Limit> {
    let mut counts: BTreeMap<Limit, u32> = BTreeMap::new();
    for limit in runs.iter().flat_map(|run| &run.flows).filter_map(|flow| flow.limit) {
        *counts.entry(limit).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(limit, _)| limit)
}

/// In sentences: the trends, or the range of the goodput, what it follows, and whether the
/// equations predict it.
fn answer(parts: &[StudyPart], trends: &[StudyTrend]) -> Vec<String> {
    let mut sentences = Vec::new();
    if !trends.is_empty() {
        let holding = trends.iter().filter(|trend| trend.holds == Some(true)).count();
        let mut sentence = format!("{holding} of {} trends hold.", trends.len());
        for trend in trends.iter().filter(|trend| trend.holds != Some(true)) {
            let how = match (trend.holds, &trend.not_reproduced) {
                (None, _) => "was not measured",
                (Some(_), Some(_)) => "is not reproduced",
                (Some(_), None) => "does not hold",
            };
            sentence += &format!(" {} {how}.", trend.name);
        }
        sentences.push(sentence);
    }
    for part in parts {
        let prefix = if part.name.is_empty() { String::new() } else { format!("{}: ", part.name) };
        if let Some(sentence) = range(part) {
            sentences.push(format!("{prefix}{sentence}"));
        }
        if trends.is_empty() {
            sentences.extend(explained(part).map(|sentence| format!("{prefix}{sentence}")));
            sentences.extend(agreement(part).map(|sentence| format!("{prefix}{sentence}")));
        }
    }
    if sentences.is_empty() {
        sentences.push("No valid run yet.".to_owned());
    }
    sentences
}

/// The slowest and the fastest cell.
fn range(part: &StudyPart) -> Option<String> {
    let rate = |cell: &StudyCell| cell.throughput_bps.unwrap_or(0.0);
    let measured = || part.cells.iter().filter(|cell| cell.throughput_bps.is_some());
    let slowest = measured().min_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    let fastest = measured().max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    let shown = |cell: &StudyCell| BitRate::from_bps_f64(rate(cell)).to_string();
    if slowest.cell == fastest.cell {
        return Some(format!("The goodput is {} ({}).", shown(fastest), part.label(fastest)));
    }
    Some(format!(
        "The goodput is {} ({}) to {} ({}).",
        shown(slowest),
        part.label(slowest),
        shown(fastest),
        part.label(fastest)
    ))
}

/// The share of the variance between cells that each factor accounts for by itself: the ratio
/// of the sums of squares (eta squared) of the goodput's logarithm.
fn explained(part: &StudyPart) -> Option<String> {
    let values: Vec<(&StudyCell, f64)> = part
        .cells
        .iter()
        .filter_map(|cell| Some((cell, cell.throughput_bps.filter(|rate| *rate > 0.0)?.ln())))
        .collect();
    let logarithms: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let mean = statistics::mean(&logarithms)?;
    let total: f64 = logarithms.iter().map(|value| (value - mean).powi(2)).sum();
    // Those that are paired account for the same.
    let factors = || part.plan.factors.iter().enumerate().filter(|(_, factor)| !factor.paired);
    let several = factors().count() > 1 && values.len() > 3 && total > 1e-9;
    several.then(|| {
        let shares = factors().map(|(at, factor)| {
            let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
            for (cell, value) in &values {
                let group = cell.values.get(at).map_or("", String::as_str);
                groups.entry(group).or_default().push(*value);
            }
            let between: f64 = groups
                .values()
                .filter_map(|group| Some((group.len() as f64, statistics::mean(group)?)))
                .map(|(count, group)| count * (group - mean).powi(2))
                .sum();
            (between / total, &factor.name)
        });
        let mut shares: Vec<(f64, &String)> = shares.collect();
        shares.sort_by(|a, b| b.0.total_cmp(&a.0));
        let words: Vec<String> =
            shares.iter().map(|(share, name)| format!("{name} {}", percent(*share))).collect();
        format!("Variance between cells (of the logarithm) by factor: {}.", words.join(", "))
    })
}

/// How many cells the equations predict.
fn agreement(part: &StudyPart) -> Option<String> {
    let pairs =
        part.cells.iter().filter_map(|cell| Some((cell.throughput_bps?, cell.predicted_bps?)));
    let ratios: Vec<f64> =
        pairs.map(|(measured, predicted)| measured / predicted.max(1.0)).collect();
    let agreeing = ratios.iter().filter(|ratio| (**ratio - 1.0).abs() <= AGREES).count();
    (!ratios.is_empty()).then(|| {
        format!(
            "{agreeing} of {} cells are within {} of what the equations predict.",
            ratios.len(),
            percent(AGREES)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::FlowFigures;

    const PLAN: &str = r#"question = "Does throughput follow window over round trip?"
[path]
rate = "100mbit"
rtt = "100ms"
[factors]
window = ["64KiB", "128KiB", "10MB"]
streams = [1, 2]
[traffic]
duration = "5s"
[repeats]
count = 2
"#;

    fn run(cell: usize, repeat: u32, mbit: &[f64]) -> StudyRun {
        let flow = |rate: &f64| FlowFigures {
            name: "traffic".to_owned(),
            throughput_bps: rate * 1e6,
            limit: Some(Limit::ReceiveWindow),
            ..FlowFigures::default()
        };
        StudyRun {
            cell,
            repeat,
            status: RunStatus::Valid,
            attempts: 1,
            started_unix_s: 0,
            took_s: 6.0,
            test_s: 5.5,
            reason: String::new(),
            start_skew: None,
            flows: mbit.iter().map(flow).collect(),
        }
    }

    /// A study whose cells have what the equations predict.
    fn measured() -> (Study, Vec<StudyRun>) {
        let study = Study::of_plan("window", PLAN, false).unwrap();
        let rates = [5.24, 10.5, 10.4, 21.0, 96.0, 96.5];
        let runs =
            (0..6).flat_map(|cell| [run(cell, 1, &[rates[cell]]), run(cell, 2, &[rates[cell]])]);
        let runs = runs.collect();
        (study, runs)
    }

    #[test]
    fn cells_have_means_intervals_and_predictions() {
        let (study, mut runs) = measured();
        runs[1].flows[0].throughput_bps = 6e6;
        runs[3].status = RunStatus::Invalid;
        runs[3].reason = "late".to_owned();
        let report = study.report(&[runs], Vec::new());
        assert_eq!((report.runs, report.done, report.valid, report.invalid), (12, 12, 11, 1));
        let cells = &report.parts[0].cells;
        assert_eq!(cells[0].values, ["64KiB", "1"]);
        assert!((cells[0].throughput_bps.unwrap() - 5.62e6).abs() < 1.0);
        assert!(cells[0].low_bps.unwrap() < 5.62e6 && cells[0].high_bps.unwrap() > 5.62e6);
        assert!((cells[0].predicted_bps.unwrap() - 65_536.0 * 80.0).abs() < 1.0);
        assert_eq!((cells[1].valid, cells[1].done, cells[1].low_bps), (1, 2, None));
        assert_eq!(cells[1].reasons, ["late"]);
        // Beyond the link rate: 1448 of 1500 bytes.
        assert!((cells[5].predicted_bps.unwrap() / 1e6 - 96.53).abs() < 0.01);
        assert_eq!(cells[0].limit, Some(Limit::ReceiveWindow));
        // Two streams of 10 MB, and a BDP of queue.
        let last = &cells[5];
        assert_eq!((last.streams, last.window_bytes), (2, Some(10_000_000)));
        assert_eq!(last.host_memory_bytes, Some(20_000_000));
        assert_eq!(last.router_memory_bytes, Some(1_250_000));
    }

    #[test]
    fn the_answer_says_what_the_goodput_follows() {
        let (study, runs) = measured();
        let report = study.report(&[runs], Vec::new());
        let answer = report.answer.join(" ");
        assert!(answer.contains("5.24 Mbit/s (window=64KiB streams=1)"), "{answer}");
        assert!(answer.contains("by factor: window 9"), "{answer}");
        assert!(answer.contains("6 of 6 cells"), "{answer}");
        let empty = study.report(&[Vec::new()], Vec::new());
        assert_eq!(empty.answer, ["No valid run yet."]);
    }

    #[test]
    fn fairness_is_one_where_shares_are_equal() {
        assert_eq!(jain(&[5.0]), None);
        assert!((jain(&[5.0, 5.0]).unwrap() - 1.0).abs() < 1e-12);
        assert!((jain(&[10.0, 0.0]).unwrap() - 0.5).abs() < 1e-12);
    }
}
