//! The page of a study with the plots that its plan names.

use crate::assertions::balanced;
use record::{
    AssumedSettings, Figure, FlowFigures, LevelComparison, PlotKind, PublishedSetting,
    PublishedValue, RunStatus, STUDY_PLAN_SCHEMA, STUDY_SCHEMA, StartSkew, StudyCell, StudyFactor,
    StudyHost, StudyPart, StudyPlanReport, StudyPlot, StudyReport, StudyRun, StudySource,
    StudyTrend,
};
use report::html::{self, StudyPage};
use report::terminal::{self, Style};
use std::collections::HashSet;

/// Text that is no markup.
const HOSTILE: &str = "</svg><script>alert(1)</script>\"'&";

pub(crate) fn factor(name: &str, values: &[&str], numbers: &[f64]) -> StudyFactor {
    StudyFactor {
        name: name.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        numbers: numbers.to_vec(),
        unit: String::new(),
        paired: false,
    }
}

pub(crate) fn plot(kind: PlotKind, y: Figure) -> StudyPlot {
    let (x, by) = (Some("streams".to_owned()), Some("loss".to_owned()));
    let title = Some(format!("Figure 1 {HOSTILE}"));
    StudyPlot { title, kind, x, by, flow: None, y, reference: None, note: None }
}

/// Two levels, with a ratio or without.
fn comparison(ratio: Option<f64>) -> LevelComparison {
    LevelComparison {
        factor: "loss".to_owned(),
        levels: ["1".to_owned(), HOSTILE.to_owned()],
        at: Some(format!("streams={HOSTILE}")),
        conditions: 1,
        cells: Some([0, 1]),
        runs: [2, 2],
        ratio,
        ratio_low: ratio.map(|ratio| ratio - 0.5),
        ratio_high: ratio.map(|ratio| ratio + 0.5),
        p: ratio.map(|_| 0.01),
        significant: ratio.map(|_| true),
        no_ratio: ratio.is_none().then(|| HOSTILE.to_owned()),
        verdict: format!("{HOSTILE} is fast, {ratio:?}"),
    }
}

/// A study of 3 x 3 cells with two runs each, whose goodputs are `rate`.
pub(crate) fn results(
    plots: Vec<StudyPlot>,
    rate: impl Fn(usize, u32) -> f64,
) -> (StudyReport, Vec<StudyRun>) {
    let words = ["1", "2", HOSTILE];
    let run = |cell: usize, repeat: u32| StudyRun {
        cell,
        repeat,
        status: RunStatus::Valid,
        attempts: 1,
        started_unix_s: 0,
        took_s: 1.0,
        test_s: 1.0,
        reason: String::new(),
        start_skew: None,
        flows: vec![FlowFigures {
            name: HOSTILE.to_owned(),
            throughput_bps: rate(cell, repeat),
            mean_rtt_ms: Some(10.0 + cell as f64),
            ..FlowFigures::default()
        }],
    };
    let runs: Vec<StudyRun> = (0..9).flat_map(|cell| [run(cell, 1), run(cell, 2)]).collect();
    let cells = (0..9).map(|cell| StudyCell {
        cell,
        values: vec![(cell / 3 + 1).to_string(), words[cell % 3].to_owned()],
        valid: 2,
        done: 2,
        throughput_bps: Some(rate(cell, 1)),
        low_bps: Some(0.0),
        high_bps: Some(rate(cell, 2)),
        predicted_bps: None,
        equation: None,
        limit: None,
        fairness: None,
        streams: 1,
        window_bytes: Some(65_536 << (cell / 3)),
        host_memory_bytes: Some(65_536 << (cell / 3)),
        router_memory_bytes: Some(1_500_000),
        reasons: Vec::new(),
    });
    let plan = StudyPlanReport {
        schema: STUDY_PLAN_SCHEMA.to_owned(),
        version: "0".to_owned(),
        question: HOSTILE.to_owned(),
        factors: vec![
            factor("streams", &["1", "2", "3"], &[1.0, 2.0, 3.0]),
            factor("loss", &words, &[0.1, 0.2, 0.3]),
        ],
        fixed: Vec::new(),
        cells: 9,
        repeats: 2,
        tests: 18,
        order: "random".to_owned(),
        seed: 1,
        until: None,
        estimated_s: 18.0,
        optional: Vec::new(),
        programs: Vec::new(),
        plots,
        clients: vec![HOSTILE.to_owned()],
        servers: vec![HOSTILE.to_owned()],
        run: None,
        source: Some(StudySource {
            title: Some(HOSTILE.to_owned()),
            published: vec![PublishedSetting {
                setting: HOSTILE.to_owned(),
                values: vec![cited()],
            }],
            assumed: vec![AssumedSettings {
                settings: vec![HOSTILE.to_owned()],
                reason: HOSTILE.to_owned(),
            }],
            ..StudySource::default()
        }),
    };
    let report = StudyReport {
        schema: STUDY_SCHEMA.to_owned(),
        version: "0".to_owned(),
        name: HOSTILE.to_owned(),
        question: HOSTILE.to_owned(),
        answer: vec![HOSTILE.to_owned()],
        quick: false,
        runs: 18,
        done: 18,
        valid: 18,
        invalid: 0,
        failed: 0,
        took_s: 20.0,
        test_s: 18.0,
        not_set: vec![HOSTILE.to_owned()],
        testbed: record::StudyTestbed::Hosts,
        hosts: vec![StudyHost {
            name: HOSTILE.to_owned(),
            role: HOSTILE.to_owned(),
            version: Some(HOSTILE.to_owned()),
            kernel: Some(HOSTILE.to_owned()),
            cores: Some(2),
            clock_offset_ms: Some(-1.25),
            clock_uncertainty_ms: Some(0.5),
        }],
        start_skew: Some(StartSkew { ms: 0.25, uncertainty_ms: 0.125 }),
        trends: vec![StudyTrend {
            name: HOSTILE.to_owned(),
            published: Some(HOSTILE.to_owned()),
            cited: vec![cited()],
            expected: Some(HOSTILE.to_owned()),
            expected_by: Some(HOSTILE.to_owned()),
            measured: Some(HOSTILE.to_owned()),
            holds: Some(true),
            not_reproduced: None,
        }],
        parts: vec![StudyPart {
            name: String::new(),
            plan,
            cells: cells.collect(),
            comparisons: vec![comparison(Some(3.5)), comparison(None)],
            more_comparisons: 7,
        }],
    };
    (report, runs)
}

/// A value at a place of a document.
fn cited() -> PublishedValue {
    PublishedValue {
        number: HOSTILE.to_owned(),
        unit: HOSTILE.to_owned(),
        line: 103,
        section: HOSTILE.to_owned(),
    }
}

#[test]
fn a_page_says_where_published_values_stand_and_what_is_assumed() {
    let (mut report, runs) = results(Vec::new(), |cell, _| 1e6 * (cell + 1) as f64);
    let part = &mut report.parts[0];
    let source = part.plan.source.as_mut().unwrap();
    source.title = Some("A title".to_owned());
    source.published[0].setting = "rate".to_owned();
    source.published[0].values[0] = PublishedValue {
        number: "100".to_owned(),
        unit: "Mbps".to_owned(),
        line: 219,
        section: "IV. Results".to_owned(),
    };
    source.assumed[0].reason = "not stated there".to_owned();
    let value = source.published[0].values[0].clone();
    report.trends[0].cited = vec![value];
    report.trends.push(StudyTrend {
        published: None,
        cited: Vec::new(),
        expected: Some("an inference".to_owned()),
        ..report.trends[0].clone()
    });
    let html = html::study(&StudyPage {
        report: &report,
        runs: &[runs],
        plans: &[],
        command: "",
        host: "",
        pages: &[],
    });
    let text = terminal::study(&report, &Style { colour: false, width: 200, unicode: true });
    for part in ["A title; author: not stated", "IV. Results, line 219", "not stated there"] {
        assert!(html.contains(part) && text.contains(part), "{part}: {text}");
    }
    assert!(html.contains(">100 Mbps<") && text.contains("rate: 100 Mbps (IV. Results, line 219)"));
    // An inference stands in no column of published values.
    assert!(html.contains(">Not stated.<") && text.contains("expected  an inference"), "{text}");
}

/// The page of that study.
fn page(plots: Vec<StudyPlot>, rate: impl Fn(usize, u32) -> f64) -> String {
    let (report, runs) = results(plots, rate);
    let html = html::study(&StudyPage {
        report: &report,
        runs: &[runs],
        plans: &[HOSTILE.to_owned()],
        command: HOSTILE,
        host: HOSTILE,
        pages: &[Vec::new()],
    });
    assert_eq!(balanced(&html), Ok(()));
    html
}

#[test]
fn every_kind_of_plot_is_drawn_and_text_is_no_markup() {
    let plots = PlotKind::ALL.map(|kind| plot(kind, Figure::MeanRtt)).to_vec();
    let page = page(plots, |cell, repeat| 1e6 * (cell + 1) as f64 + f64::from(repeat));
    // To inspect it, open target/tmp/study.html.
    std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/study.html"), &page).unwrap();
    // A drawing for a page and one for a phone.
    assert_eq!(page.matches("<svg").count(), 2 * PlotKind::ALL.len());
    assert_eq!(page.matches("<summary>Values<").count(), PlotKind::ALL.len());
    for caption in [
        "Mean RTT over streams, by loss",
        "Mean RTT over streams and loss, as a surface",
        "Mean RTT of the runs, by streams",
        "Cumulative distribution of the mean RTT, by loss",
        "Mean RTT of each cell",
    ] {
        assert!(page.contains(caption), "{caption}");
    }
    assert!(page.contains(" ms<"), "no axis in ms");
    assert_eq!(
        page.matches("<p class=\"note\">The mean of each cell&#39;s valid runs.<").count(),
        3
    );
    assert!(page.contains(">Mean goodput<") && page.contains(">Mean / predicted<"));
    assert!(!page.contains("<script>"), "markup in a text");
}

#[test]
fn each_plot_is_a_file_that_stands_alone() {
    let plots = || PlotKind::ALL.map(|kind| plot(kind, Figure::MeanRtt)).to_vec();
    // Twice the same plots: their files have different names.
    let plots = [plots(), plots()].concat();
    let (report, runs) = results(plots, |cell, _| 1e6 * (cell + 1) as f64);
    let files = html::study_plots(&report, &[runs]);
    assert_eq!(files.len(), 2 * PlotKind::ALL.len());
    let names: HashSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names.len(), files.len());
    let first = "figure-1-svg-script-alert-1-script-mean-rtt-over-streams-by-loss.svg";
    assert!(names.contains(first), "{names:?}");
    for file in &files {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        assert!(file.name.chars().all(plain), "{}", file.name);
        let svg = &file.svg;
        assert!(svg.starts_with("<svg xmlns=") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert_eq!(svg.matches("<svg").count(), 1);
        for foreign in ["<script>", "var(", "url(", "href", "<figcaption", "<p"] {
            let polygons = svg.replace("<polyline", "").replace("<polygon", "");
            assert!(!polygons.contains(foreign), "{foreign} in {}", file.name);
        }
    }
    // The fields of a heatmap have their colours without a page's style sheet.
    let heat = files.iter().find(|file| file.svg.contains("class=\"heat ")).unwrap();
    assert!(heat.svg.contains("fill=\"#00639c\""), "{}", heat.svg);
}

#[test]
fn any_values_are_drawn_within_the_plot() {
    for value in [0.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, 1e308, -1.0] {
        for kind in PlotKind::ALL {
            let page =
                page(
                    vec![plot(kind, Figure::Throughput)],
                    |cell, _| {
                        if cell == 0 { value } else { 1e6 }
                    },
                );
            let drawn = page.split("<svg").nth(1).and_then(|rest| rest.split("</svg>").next());
            let drawn = drawn.unwrap_or_else(|| panic!("no {} of {value}", kind.name()));
            for wrong in ["NaN", "inf"] {
                assert!(!drawn.contains(wrong), "{wrong} in {} of {value}", kind.name());
            }
        }
    }
}

#[test]
fn naks_are_marked_on_flows_and_disks_are_drawn_beside_the_network() {
    let (report, mut runs) = results(Vec::new(), |cell, _| cell as f64);
    let drawn =
        |runs: &[StudyRun]| -> Vec<html::SvgFile> { html::study_plots(&report, &[runs.to_vec()]) };
    let plain = drawn(&runs).len();
    let flow = &mut runs[0].flows[0];
    flow.naks = Some(4);
    flow.series_bps = vec![1e6, 2e6, 3e6];
    flow.nak_series = vec![0, 1, 3];
    let over_time = drawn(&runs).into_iter().find(|file| file.name.starts_with("flows-over-time"));
    let svg = over_time.unwrap().svg;
    assert_eq!(svg.matches("class=\"nak\"").count(), 2, "{svg}");
    assert!(svg.contains("<title>3 NAKs of ") && svg.contains(" at 2 s</title>"), "{svg}");
    assert!(svg.contains("▼: NAKs received (") && svg.contains(" 4 NAKs)"), "{svg}");
    let flow = &mut runs[0].flows[0];
    flow.disk_bps = Some(2e6);
    flow.disk_series_bps = vec![2e6, 2e6, 2e6];
    flow.limit = Some(record::Limit::Application);
    let files = drawn(&runs);
    assert_eq!(files.len(), plain + 2);
    let disk = files.into_iter().find(|file| file.name.starts_with("disk-and-network")).unwrap();
    // A line of the disk that no colour tells from that of the network.
    assert!(disk.svg.contains("class=\"predicted q-0\""), "{}", disk.svg);
    assert!(disk.svg.contains("disk-limited (the disk gave 2 Mbit/s)"), "{}", disk.svg);
    assert!(!disk.svg.contains("<script>"));
}

/// Nothing is predicted of several flows: their cells show how equal the shares are.
#[test]
fn the_third_column_is_the_prediction_or_the_fairness() {
    let style = report::terminal::Style { colour: false, width: 80, unicode: true };
    let (mut report, _) = results(Vec::new(), |_, _| 1e6);
    let text = report::terminal::study(&report, &style);
    assert!(text.contains("of predicted") && !text.contains("Jain"), "{text}");
    assert!(text.contains("mean goodput   ±95 %"), "{text}");
    for cell in report.parts.iter_mut().flat_map(|part| &mut part.cells) {
        cell.fairness = Some(0.756);
    }
    let text = report::terminal::study(&report, &style);
    assert!(text.contains("Jain's index") && text.contains("0.76"), "{text}");
    report.parts[0].cells[0].predicted_bps = Some(2e6);
    let text = report::terminal::study(&report, &style);
    assert!(text.contains("of predicted") && text.contains("50 %"), "{text}");
}

#[test]
fn verdicts_stand_before_plots_and_cells() {
    let (mut report, runs) = results(Vec::new(), |cell, _| 1e6 * (cell + 1) as f64);
    let html = |report: &StudyReport| {
        html::study(&StudyPage {
            report,
            runs: std::slice::from_ref(&runs),
            plans: &[String::new()],
            command: "",
            host: "",
            pages: &[Vec::new()],
        })
    };
    let page = html(&report);
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    assert!(at("is fast, Some(3.5)</li>") < at("<svg") && at("<svg") < at(">Cells<"));
    // The pair without a ratio is in the table, with its reason, beside those that are left out.
    assert!(at("no ratio: ") > at("<summary>9 comparisons<"), "{page}");
    assert!(!page.contains("is fast, None</li>") && page.contains(">7 more, with smaller"));
    let style = report::terminal::Style { colour: false, width: 80, unicode: true };
    let text = report::terminal::study(&report, &style);
    assert!(text.contains("compared    ") && text.contains("8 more on the page"), "{text}");
    assert!(text.find("compared").unwrap() < text.find("runs        ").unwrap());
    report.parts[0].comparisons.remove(0);
    let page = html(&report);
    assert!(!page.contains("class=\"verdicts\"") && page.contains("is fast, None</p>"), "{page}");
    report.parts[0].comparisons.clear();
    assert!(!html(&report).contains(">Comparisons<"));
}

/// The study with the sums of windows as its first factor, over a path of 100 ms.
fn with_sums(plot: StudyPlot) -> (StudyReport, Vec<StudyRun>) {
    let (mut report, runs) = results(vec![plot], |cell, _| 1e6 * (cell + 1) as f64);
    let plan = &mut report.parts[0].plan;
    plan.factors[0] = factor("total_window", &["1", "2", "3"], &[1.0, 2.0, 3.0]);
    plan.fixed = vec![factor("rtt", &["100ms"], &[0.1])];
    (report, runs)
}

#[test]
fn lines_over_the_window_of_each_stream_have_the_rate_of_the_window_as_a_reference() {
    let reference = StudyPlot {
        x: Some("window".to_owned()),
        reference: Some(record::Reference::WindowOverRtt),
        note: Some(HOSTILE.to_owned()),
        ..plot(PlotKind::Lines, Figure::Throughput)
    };
    let (report, runs) = with_sums(reference.clone());
    let files = html::study_plots(&report, &[runs]);
    let svg = &files[0].svg;
    assert!(files[0].name.contains("goodput-over-window-per-stream-by-loss"), "{}", files[0].name);
    // Its own values are on the axis, not those of the factor.
    for text in [">window per stream</text>", ">64 KiB</text>", ">256 KiB</text>", ">window/RTT<"] {
        assert!(svg.contains(text), "{text} in {svg}");
    }
    assert!(svg.contains("Long dashes: window/RTT, with an RTT of 100 ms."), "{svg}");
    assert_eq!(svg.matches("class=\"reference\"").count(), 1);
    // 64 KiB in 100 ms are 5.24 Mbit/s, above the cells' 1 to 3 Mbit/s; 256 KiB leave the plot.
    let line = svg.split("class=\"reference\"").nth(1).unwrap();
    let points = line.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
    let heights: Vec<f64> =
        points.split(' ').map(|point| point.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert!(heights.len() > 3 && heights.len() < 60, "{points}");
    assert!(heights.windows(2).all(|pair| pair[1] <= pair[0]), "it rises: {points}");
    assert!(!svg.contains("<script>"));
    // Without an RTT, and with one that no path has, there is no line, and no panic.
    for rtt in [f64::NAN, 0.0, -1.0, 1e-300] {
        let (mut report, runs) = with_sums(reference.clone());
        report.parts[0].plan.fixed = vec![factor("rtt", &["?"], &[rtt])];
        let files = html::study_plots(&report, &[runs]);
        assert!(!files[0].svg.contains(">window/RTT<"), "{rtt}");
    }
    // Nor an axis without windows.
    let (mut report, runs) = with_sums(reference);
    report.parts[0].cells.iter_mut().for_each(|cell| cell.window_bytes = None);
    assert!(html::study_plots(&report, &[runs]).is_empty());
}

#[test]
fn the_goodput_of_each_stream_counts_all_of_them() {
    let (mut report, mut runs) = with_sums(plot(PlotKind::Rows, Figure::PerStream));
    report.parts[0].plan.factors[1].name = "total_streams".to_owned();
    report.parts[0].cells.iter_mut().for_each(|cell| cell.streams = 8);
    // Two clients of four streams each.
    for run in &mut runs {
        run.flows[0].seconds = 1.0;
        run.flows.push(run.flows[0].clone());
    }
    let html = html::study(&StudyPage {
        report: &report,
        runs: &[runs],
        plans: &[String::new()],
        command: "",
        host: "",
        pages: &[Vec::new()],
    });
    // Of 2 x 9 Mbit/s in the last cell.
    assert!(html.contains("<td>2.25 Mbit/s</td>"), "{html}");
}

#[test]
fn what_is_not_reproduced_is_no_failure_and_has_its_reason() {
    let (mut report, runs) = results(Vec::new(), |_, _| 1e6);
    let trend = record::StudyTrend {
        name: "more-hosts".to_owned(),
        published: Some("slightly better".to_owned()),
        cited: vec![cited()],
        expected: None,
        expected_by: None,
        measured: Some("the same".to_owned()),
        holds: Some(false),
        not_reproduced: Some(HOSTILE.to_owned()),
    };
    report.trends = vec![trend];
    let html = html::study(&StudyPage {
        report: &report,
        runs: &[runs],
        plans: &[String::new()],
        command: "",
        host: "",
        pages: &[Vec::new()],
    });
    assert_eq!(balanced(&html), Ok(()));
    assert!(html.contains(">not reproduced<") && !html.contains(">fails<"), "{html}");
    assert!(html.contains("&lt;/svg&gt;&lt;script&gt;alert(1)"), "{html}");
    // The cells' table has the buffers of hosts and router.
    assert!(html.contains(">Buffer at hosts<") && html.contains(">64 KiB<"), "{html}");
    let style = report::terminal::Style { colour: false, width: 80, unicode: true };
    let text = report::terminal::study(&report, &style);
    assert!(text.contains("not reproduced") && text.contains("because"), "{text}");
}
