//! Pairs of levels, of runs whose ratios are known.

use crate::study::Study;
use record::{FlowFigures, LevelComparison, RunStatus, StudyPart, StudyRun};

fn plan(factors: &str) -> String {
    format!(
        "question = \"?\"\n[path]\nrate = \"100mbit\"\nrtt = \"50ms\"\n[factors]\n{factors}\n\
         [traffic]\nduration = \"1s\"\n[repeats]\ncount = 3\n"
    )
}

fn run(cell: usize, repeat: u32, mbit: f64) -> StudyRun {
    StudyRun {
        cell,
        repeat,
        status: RunStatus::Valid,
        attempts: 1,
        started_unix_s: 0,
        took_s: 1.0,
        test_s: 1.0,
        reason: String::new(),
        start_skew: None,
        flows: vec![FlowFigures { throughput_bps: mbit * 1e6, ..FlowFigures::default() }],
    }
}

/// Three runs of each cell, within a percent of its goodput.
fn runs(mbit: &[f64]) -> Vec<StudyRun> {
    let near = [(1, 0.99), (2, 1.0), (3, 1.01)];
    let of_cell = |(cell, rate): (usize, &f64)| near.map(|(at, near)| run(cell, at, rate * near));
    mbit.iter().enumerate().flat_map(of_cell).collect()
}

fn part(factors: &str, runs: Vec<StudyRun>) -> StudyPart {
    let study = Study::of_plan("s", &plan(factors), false).unwrap();
    study.report(&[runs], Vec::new()).parts.remove(0)
}

const CUBIC_AND_BBR: &str = "congestion = [\"cubic\", \"bbr\"]\nloss = [\"0%\", \"1%\"]";

fn of<'a>(part: &'a StudyPart, factor: &str) -> Vec<&'a LevelComparison> {
    part.comparisons.iter().filter(|one| one.factor == factor).collect()
}

#[test]
fn levels_are_compared_where_all_else_is_equal() {
    // Without loss both fill the path; with it BBR is 37 times as fast.
    let part = part(CUBIC_AND_BBR, runs(&[95.0, 2.0, 95.0, 74.0]));
    let congestion = of(&part, "congestion");
    // Two conditions, and over both none, as they differ.
    assert_eq!(congestion.len(), 3);
    let first = congestion[0];
    assert_eq!((first.levels[0].as_str(), first.at.as_deref()), ("bbr", Some("loss=1%")));
    assert!((first.ratio.unwrap() - 37.0).abs() < 1e-9, "{first:?}");
    // Each logarithm deviates by 0.01: t(0.95, 4) = 2.776, x 0.01 x sqrt(2 / 3) = 0.0227.
    let half = (first.ratio_high.unwrap() / first.ratio.unwrap()).ln();
    assert!((half - 0.0227).abs() < 2e-4, "{half}");
    assert_eq!(first.verdict, "BBR is 37 times as fast as CUBIC at 1 % loss; 95 %: 36 to 38");
    assert_eq!((first.cells, first.runs), (Some([3, 1]), [3, 3]));
    let equal = congestion[1];
    assert_eq!((equal.at.as_deref(), equal.significant), (Some("loss=0%"), Some(false)));
    assert!(equal.verdict.starts_with("No significant difference between"), "{equal:?}");
    let over = congestion[2];
    assert_eq!((over.at.as_deref(), over.ratio), (None, None));
    assert!(over.verdict.ends_with("the ratios differ too much, from 1 to 37"), "{over:?}");
    let loss = of(&part, "loss");
    assert_eq!(
        loss[0].verdict,
        "With CUBIC, the goodput with 0 % loss is 48 times that with 1 % loss; 95 %: 46 to 49"
    );
}

#[test]
fn alike_ratios_have_a_mean_over_all_conditions() {
    let part = part(CUBIC_AND_BBR, runs(&[40.0, 20.0, 82.0, 40.0]));
    let congestion = of(&part, "congestion");
    let over = congestion[0];
    // The geometric mean of 2.05 and 2.
    assert!(over.at.is_none() && over.conditions == 2 && over.cells.is_none(), "{over:?}");
    assert!((over.ratio.unwrap() - 4.1f64.sqrt()).abs() < 1e-9, "{over:?}");
    assert_eq!((over.runs, congestion.len()), ([6, 6], 3));
}

#[test]
fn cells_without_a_valid_run_have_no_ratio_and_a_reason() {
    let mut all = runs(&[95.0, 2.0, 95.0, 74.0]);
    let of_cell = |run: &&mut StudyRun, cell| run.cell == cell;
    for run in all.iter_mut().filter(|run| of_cell(run, 3)) {
        run.status = RunStatus::Invalid;
        run.reason = "late".to_owned();
    }
    let invalid = part(CUBIC_AND_BBR, all.clone());
    let why = "No ratio of CUBIC to BBR at 1 % loss: no valid run with BBR (late)";
    assert!(invalid.comparisons.iter().any(|one| one.verdict == why), "{invalid:?}");
    // The others have theirs.
    assert_eq!(invalid.comparisons.iter().filter(|one| one.ratio.is_some()).count(), 2);
    all.iter_mut().filter(|run| of_cell(run, 1)).for_each(|run| run.flows[0].throughput_bps = 0.0);
    all.retain(|run| run.cell != 2);
    let part = part(CUBIC_AND_BBR, all);
    assert!(part.comparisons.iter().all(|one| one.ratio.is_none() && one.p.is_none()));
    let why: Vec<&str> = part.comparisons.iter().map(|one| one.verdict.as_str()).collect();
    for expected in [
        "No ratio of CUBIC to BBR at 1 % loss: nothing arrived in a run with CUBIC",
        "No ratio of CUBIC to BBR at 0 % loss: no run yet with BBR",
        "No ratio of 0 % loss to 1 % loss with CUBIC: nothing arrived in a run with 1 % loss",
        "No ratio of 0 % loss to 1 % loss with BBR: no run yet with 0 % loss",
    ] {
        assert!(why.contains(&expected), "{expected}: {why:?}");
    }
}

#[test]
fn goodputs_that_measure_different_things_have_no_ratio() {
    for (factor, reason) in [
        (
            "protocol = [\"tcp\", \"udp\"]\nbitrate = [\"10mbit\"]",
            "UDP sends at the requested rate",
        ),
        ("direction = [\"forward\", \"both\"]\nstreams = [1, 2]", "both directions together"),
    ] {
        let part = part(factor, runs(&[95.0, 10.0, 94.0, 9.0]));
        let name = factor.split(' ').next().unwrap();
        let compared = of(&part, name);
        assert!(!compared.is_empty());
        for one in compared {
            assert!(one.ratio.is_none() && one.p.is_none(), "{one:?}");
            assert!(one.no_ratio.as_ref().unwrap().contains(reason), "{one:?}");
        }
    }
}

#[test]
fn one_run_each_has_a_ratio_and_no_interval() {
    let one = vec![run(0, 1, 5.0), run(1, 1, 10.0)];
    let part = part("streams = [1, 2]", one);
    let found = &part.comparisons[0];
    assert_eq!((found.ratio, found.ratio_low, found.significant), (Some(2.0), None, None));
    assert_eq!(
        found.verdict,
        "The goodput with 2 streams is 2 times that with 1 stream; one run each, so there is no \
         interval"
    );
}

#[test]
fn paired_factors_are_compared_as_one() {
    let paired = "streams = [1, 2]\n[paired]\nrate = [\"20mbit\", \"80mbit\"]\n\
                  rtt = [\"600ms\", \"40ms\"]";
    let study =
        Study::of_plan("s", &plan(paired).replace("rate = \"100mbit\"\nrtt = \"50ms\"", ""), false);
    let part =
        study.unwrap().report(&[runs(&[10.0, 40.0, 20.0, 80.0])], Vec::new()).parts.remove(0);
    let compared = of(&part, "rate");
    // In two conditions, and over both; the other paired factor has none of its own.
    assert_eq!((compared.len(), of(&part, "rtt").len()), (3, 0));
    assert!(compared.iter().all(|one| (one.ratio.unwrap() - 4.0).abs() < 1e-9), "{compared:?}");
    assert!(
        compared[1].verdict.contains("the goodput with 80 Mbit/s and an RTT of 40 ms is 4 times"),
        "{compared:?}"
    );
    assert_eq!(compared[1].at.as_deref().map(|at| at.starts_with("streams=")), Some(true));
}

#[test]
fn of_many_pairs_those_with_the_largest_ratios_are_kept() {
    let rates: Vec<f64> = (1..=100).map(f64::from).collect();
    let part = part("streams = \"1..100 +1\"", runs(&rates));
    assert_eq!(part.comparisons.len(), super::MAX_CELL_PAIRS);
    assert_eq!(part.more_comparisons, 99 * 50 - super::MAX_CELL_PAIRS as u64);
    let first = &part.comparisons[0];
    assert_eq!(
        (first.levels.clone(), first.ratio),
        (["100".to_owned(), "1".to_owned()], first.ratio)
    );
    assert!((first.ratio.unwrap() - 100.0).abs() < 1e-6, "{first:?}");
    let least = part.comparisons.iter().filter_map(|one| one.ratio).fold(f64::MAX, f64::min);
    assert!(least > 9.0, "{least}");
}
