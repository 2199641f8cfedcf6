//! Studies that vary congestion controls: response functions and harm matrices.

use crate::assertions::balanced;
use crate::study::{self, factor};
use record::{FlowFigures, RunStatus, StudyCell, StudyFactor, StudyPart, StudyReport, StudyRun};
use report::html::{self, StudyPage};

/// The values of a cell, and the goodput of each of its flows.
type Cell<'a> = (&'a [&'a str], &'a [(&'a str, f64)]);

const CONTROLS: [&str; 2] = ["reno", "bbr"];

/// A part over 100 Mbit/s and 40 ms, with a run in each cell.
fn part(
    like: &StudyReport,
    name: &str,
    factors: Vec<StudyFactor>,
    cells: &[Cell<'_>],
) -> (StudyPart, Vec<StudyRun>) {
    let mut part = like.parts[0].clone();
    name.clone_into(&mut part.name);
    part.plan.factors = factors;
    part.plan.fixed = vec![
        factor("rate", &["100mbit"], &[1e8]),
        factor("rtt", &["40ms"], &[0.04]),
        factor("queue", &["1bdp"], &[]),
    ];
    let cell = part.cells[0].clone();
    part.cells = (0..)
        .zip(cells)
        .map(|(number, (values, flows))| StudyCell {
            cell: number,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            throughput_bps: Some(flows.iter().map(|flow| flow.1).sum()),
            ..cell.clone()
        })
        .collect();
    let run = |(cell, (_, flows)): (usize, &Cell<'_>)| StudyRun {
        cell,
        repeat: 1,
        status: RunStatus::Valid,
        attempts: 1,
        started_unix_s: 0,
        took_s: 1.0,
        test_s: 1.0,
        reason: String::new(),
        start_skew: None,
        flows: flows
            .iter()
            .map(|(name, rate)| FlowFigures {
                name: (*name).to_owned(),
                throughput_bps: *rate,
                mean_rtt_ms: Some(50.0),
                ..FlowFigures::default()
            })
            .collect(),
    };
    (part, cells.iter().enumerate().map(run).collect())
}

/// Every control alone under loss, and beside each other; over a queue of this size beside.
fn page(queue: &str) -> String {
    let (mut report, _) = study::results(Vec::new(), |_, _| 1e6);
    let losses = factor("up.loss", &["0%", "0.1%", "1%"], &[0.0, 0.001, 0.01]);
    let alone: [Cell<'_>; 6] = [
        (&["reno", "0%"], &[("flow", 80e6)]),
        (&["reno", "0.1%"], &[("flow", 9e6)]),
        (&["reno", "1%"], &[("flow", 3e6)]),
        (&["bbr", "0%"], &[("flow", 90e6)]),
        (&["bbr", "0.1%"], &[("flow", 90e6)]),
        (&["bbr", "1%"], &[("flow", 88e6)]),
    ];
    let factors = vec![factor("congestion", &CONTROLS, &[]), losses];
    let (alone, alone_runs) = part(&report, "alone", factors, &alone);
    let beside: [Cell<'_>; 4] = [
        (&["reno", "reno"], &[("one", 40e6), ("other", 40e6)]),
        (&["reno", "bbr"], &[("one", 20e6), ("other", 72e6)]),
        (&["bbr", "reno"], &[("one", 72e6), ("other", 20e6)]),
        (&["bbr", "bbr"], &[("one", 45e6), ("other", 45e6)]),
    ];
    let factors = ["one.congestion", "other.congestion"].map(|name| factor(name, &CONTROLS, &[]));
    let (mut beside, beside_runs) = part(&report, "harm", factors.into(), &beside);
    beside.plan.fixed[2] = factor("queue", &[queue], &[]);
    report.parts = vec![alone, beside];
    html::study(&StudyPage {
        report: &report,
        runs: &[alone_runs, beside_runs],
        plans: &[],
        command: "longhaul study run",
        host: "Linux",
        pages: &[],
    })
}

#[test]
fn a_matrix_has_the_harm_of_each_control_to_each() {
    let html = page("1bdp");
    // To inspect it, open target/tmp/controls.html.
    std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/controls.html"), &html).unwrap();
    assert_eq!(balanced(&html), Ok(()));
    assert!(html.contains("Harm of each control to each"), "{html}");
    // Reno has 80 Mbit/s alone and 20 beside BBR; BBR 90 and 72.
    for row in ["reno</th><td>50</td><td>75</td>", "bbr</th><td>20</td><td>50</td>"] {
        assert!(html.contains(row), "{row}: {html}");
    }
    // Nothing is known of a flow alone over another queue: the cells are rows, as of any factors.
    let without = page("0.1bdp");
    assert!(!without.contains("Harm of each control"), "{without}");
    assert!(without.contains("Goodput of each cell") && !html.contains("Goodput of each cell"));
}

#[test]
fn a_response_function_is_beside_its_equation() {
    let html = page("1bdp");
    assert!(html.contains("Response function: mean window over random loss"), "{html}");
    // 3 Mbit/s over 50 ms are 12.9 packets; sqrt(3/2)/sqrt(0.01) are 12.2.
    let row = "reno</th><td>1.00 %</td><td>12.9</td><td>12.2</td>";
    assert!(html.contains(row), "{html}");
    assert!(html.contains("bbr</th><td>1.00 %</td><td>379.8</td><td>–</td>"), "{html}");
    assert!(html.contains("class=\"predicted cc-reno\"") && html.contains("BDP of the path"));
    // A control has its colour in every plot.
    assert!(
        html.contains("class=\"curve cc-bbr\"") && html.contains("class=\"curve thin cc-bbr\"")
    );
}
