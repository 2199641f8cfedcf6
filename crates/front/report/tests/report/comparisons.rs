//! Pages of comparisons: two studies, repeated tests, and a test beside an earlier one.

use crate::assertions::balanced;
use crate::synthetic;
use record::{
    ComparedCell, Comparison, DifferingSetting, Limit, LimitCount, REPEAT_SCHEMA, RepeatReport,
    RepeatSummary, RunFigures, STUDY_COMPARISON_SCHEMA, StudyComparison,
};
use report::html::{self, Page, PageRun};
use units::BitRate;

/// Text that is no markup.
const HOSTILE: &str = "</td><script>alert(1)</script>\"'&";

fn compared() -> Comparison {
    Comparison {
        method: "runs".to_owned(),
        baseline_count: 3,
        baseline_bps: 100e6,
        count: 3,
        now_bps: 80e6,
        difference_bps: -20e6,
        difference_share: Some(-0.2),
        low_bps: Some(-25e6),
        high_bps: Some(-15e6),
        confidence: 0.95,
        p: Some(0.001),
        real: Some(true),
        sentence: format!("Significantly slower {HOSTILE}"),
    }
}

fn holds(html: &str, parts: &[&str]) {
    assert_eq!(balanced(html), Ok(()));
    assert!(!html.contains("<script>alert"), "markup in a text");
    for part in parts {
        assert!(html.contains(part), "{part}: {html}");
    }
}

#[test]
fn two_studies_have_a_page_with_every_cell() {
    let cell = |label: &str, significant| ComparedCell {
        part: String::new(),
        label: label.to_owned(),
        runs: [3, 2],
        goodput_bps: [10e6, 12e6],
        difference_bps: 2e6,
        low_bps: Some(-1e6),
        high_bps: Some(5e6),
        ratio: Some(1.2),
        ratio_low: Some(0.9),
        ratio_high: Some(1.6),
        p: Some(0.2),
        significant,
    };
    let mut comparison = StudyComparison {
        schema: STUDY_COMPARISON_SCHEMA.to_owned(),
        version: "0".to_owned(),
        names: ["cubic".to_owned(), HOSTILE.to_owned()],
        differing: vec![DifferingSetting {
            part: String::new(),
            name: "congestion".to_owned(),
            values: ["cubic".to_owned(), String::new()],
        }],
        confidence: 0.95,
        cells: vec![cell("window=64KiB", Some(false)), cell(HOSTILE, None)],
        unmatched: 1,
        significant: 0,
        ratio: Some(1.2),
        ratio_low: Some(1.1),
        ratio_high: Some(1.3),
        no_ratio: None,
        sentence: "It is faster.".to_owned(),
    };
    let html = html::study_comparison_page(&comparison);
    let parts =
        ["1.2×", "95 %: 1.1 to 1.3", "not set", "window=64KiB", "+20 %", "3 / 2", ">0.9 to 1.6<"];
    holds(&html, &parts);
    holds(&html, &["−1 Mbit/s to +5 Mbit/s", "not significant", "too few runs", "1 cell measured"]);
    // Without a ratio the sentence says why, and no figure stands in its place.
    comparison.ratio = None;
    let html = html::study_comparison_page(&comparison);
    assert!(!html.contains("class=\"figure-big\""), "{html}");
}

fn repeats(limits: &[Limit]) -> RepeatReport {
    let (measurement, finding) = synthetic::before();
    let run = |limit: &Limit| RunFigures {
        limit: Some(*limit),
        ..RunFigures::of(&measurement, &finding, 1.0, Vec::new())
    };
    let agreed = limits.iter().all(|limit| *limit == limits[0]).then(|| limits[0]);
    RepeatReport {
        schema: REPEAT_SCHEMA.to_owned(),
        version: "0".to_owned(),
        spec: measurement.spec.clone(),
        asked: 3,
        runs: limits.iter().map(run).collect(),
        summary: RepeatSummary {
            count: limits.len() as u64,
            median_bps: Some(75e6),
            mean_bps: Some(76e6),
            min_bps: Some(50e6),
            max_bps: Some(100e6),
            mean_low_bps: Some(70e6),
            mean_high_bps: Some(82e6),
            confidence: 0.95,
            variation: Some(0.1),
            two_groups: false,
            limit: agreed,
            limits: vec![LimitCount { limit: limits[0], runs: 1 }],
            limit_sentence: format!("as the runs say {HOSTILE}"),
            warnings: vec![HOSTILE.to_owned()],
        },
        comparison: Some(compared()),
        notes: vec![HOSTILE.to_owned()],
    }
}

#[test]
fn repeated_tests_have_a_page_with_the_limit_and_every_run() {
    let same = repeats(&[Limit::ReceiveWindow; 3]);
    let html = html::repeats_page(&same);
    std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/repeats.html"), &html).unwrap();
    holds(&html, &["Limit: as the runs say", "75<small> Mbit/s", "70 to 82 Mbit/s", "3 of 3"]);
    holds(&html, &["Compared with the earlier result", "-20 %", "chip fixable\">significant<"]);
    assert_eq!(html.matches(">receive-window<").count(), 3);
    // What one of the runs says is of all only where they agree.
    let sentence = synthetic::before().1.sentence;
    let sentence = sentence.split(['\'', '&', '"']).next().unwrap();
    assert!(html.contains(sentence), "{sentence}");
    let differ = html::repeats_page(&repeats(&[Limit::ReceiveWindow, Limit::Loss]));
    assert!(!differ.contains(sentence) && differ.contains(">loss<"), "{differ}");
}

#[test]
fn a_test_has_its_comparison_on_its_page_and_a_cell_a_way_back() {
    let (measurement, finding) = synthetic::before();
    let found = compared();
    let mut page = Page {
        title: "Transfer".to_owned(),
        runs: vec![PageRun {
            label: "transfer",
            measurement: &measurement,
            finding: &finding,
            window: None,
        }],
        comparison: Some(&found),
        back: Some("../index.html"),
        ..Page::default()
    };
    holds(
        &html::page(&page),
        &["Significantly slower", "80 Mbit/s, mean of 3 runs", "<a href=\"../index.html\">"],
    );
    (page.comparison, page.back) = (None, None);
    let html = html::page(&page);
    assert!(!html.contains("earlier result") && !html.contains("<a "), "{html}");
}

#[test]
fn rates_of_a_comparison_may_be_anything() {
    for wild in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
        let mut found = compared();
        (found.baseline_bps, found.now_bps, found.difference_bps) = (wild, wild, wild);
        (found.low_bps, found.p) = (Some(wild), Some(wild));
        let mut all = repeats(&[Limit::Loss]);
        all.comparison = Some(found);
        all.summary.max_bps = Some(wild);
        all.summary.median_bps = Some(wild);
        all.runs[0].throughput_bps = BitRate::from_bps_f64(wild);
        assert_eq!(balanced(&html::repeats_page(&all)), Ok(()), "{wild}");
    }
}
