//! The course in docs/course: the short form of every plan is run, and the figures in
//! the answers are compared with what was measured.
//!
//! An answer is a row of a table whose heading begins with the plan's file:
//!
//! | `window.toml` | figure | equation | measured | within |
//!
//! The first column has the values of a cell's factors, `figure` is a column of the
//! export, the quotient of two, or `fairness`. What is measured has to be `within` that
//! share of what the page says; an equation named `predicted_bps` has to be the program's.
//! With `LONGHAUL_LONG=1` the full form is run, and every row is compared.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

#[path = "book/markdown.rs"]
#[expect(dead_code, reason = "the test of the book also runs the commands of a page")]
mod markdown;
#[path = "cli/private.rs"]
mod private;

use libtest_mimic::{Arguments, Trial};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

/// Studies at the same time: their labs mostly wait.
const PARALLEL: usize = 4;

/// Exit code of a study whose runs stayed not valid.
const NOT_VALID: i32 = 3;

/// Rounding of the figures on a page: three digits.
const ROUNDING: f64 = 0.006;

/// What a row of an answer says.
#[derive(Debug, Clone, PartialEq)]
struct Answer {
    /// Settings and values of the cell.
    cell: Vec<(String, String)>,
    figure: String,
    /// What the equation gives, where there is one, and whether it is the program's own.
    equation: Option<f64>,
    is_predicted: bool,
    measured: f64,
    /// The share by which the short form may differ; `None` where it has no such cell.
    within: Option<f64>,
    /// The share by which the full form may differ.
    within_full: f64,
}

/// A plan of a page, and the answers about it.
struct Exercise {
    name: String,
    plan: String,
    answers: Vec<Answer>,
}

/// Cells of a table's row.
fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(row.split('|').map(str::trim).collect())
}

/// A number with its unit in the unit of a figure: `9.5 Mbit/s` is 9.5e6.
fn quantity(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let scale = match unit {
        "" | "ms" => 1.0,
        "kbit/s" | "kB" => 1e3,
        "Mbit/s" | "MB" => 1e6,
        "%" => 0.01,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * scale)
}

/// The same of text that has to be one.
fn number(text: &str) -> f64 {
    quantity(text).unwrap_or_else(|| panic!("no number with a known unit: {text}"))
}

/// The answers about a plan on a page.
fn answers(page: &str, plan: &str) -> Vec<Answer> {
    let mut answers = Vec::new();
    let mut heading: Option<Vec<&str>> = None;
    for line in page.lines() {
        let Some(row) = cells(line) else {
            heading = None;
            continue;
        };
        let Some(names) = &heading else {
            heading = Some(row);
            continue;
        };
        if names[0].trim_matches('`') != plan || row[0].starts_with("---") {
            continue;
        }
        assert_eq!(names[1..], ["figure", names[2], "measured", "within"], "{plan}: {line}");
        let [cell, figure, equation, measured, within] = row[..] else { panic!("{plan}: {line}") };
        let settings = cell.split(", ").map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or_else(|| panic!("{plan}: {line}"));
            (name.to_owned(), value.to_owned())
        });
        let (short, full) = within.split_once(", ").unwrap_or((within, within));
        answers.push(Answer {
            cell: settings.collect(),
            figure: figure.trim_matches('`').to_owned(),
            equation: (equation != "-").then(|| number(equation)),
            is_predicted: equation != "-" && names[2] == "`predicted_bps`",
            measured: number(measured),
            within: (short != "full").then(|| number(short)),
            within_full: number(full),
        });
    }
    answers
}

/// Every plan of the course.
fn exercises() -> Vec<Exercise> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/course");
    let mut pages: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    let mut exercises = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for block in markdown::blocks(&text) {
            let file = block.options.iter().find_map(|option| option.strip_prefix("file="));
            let (Some(name), "toml") = (file, block.language.as_str()) else { continue };
            exercises.push(Exercise {
                name: name.to_owned(),
                plan: block.lines.join("\n") + "\n",
                answers: answers(&text, name),
            });
        }
    }
    exercises
}

fn longhaul(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longhaul")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The results of a study: its report, and a row for each run.
struct Results {
    report: Value,
    rows: Vec<Value>,
}

impl Results {
    /// Runs the plan; `Err` says why it was not valid.
    fn of(exercise: &Exercise, is_full: bool) -> Result<Self, String> {
        let folder = private::directory();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let (plan, results) = (at(&exercise.name), at("results"));
        fs::write(&plan, &exercise.plan).unwrap();
        let mut arguments = vec!["study", "run", &plan, "--out", &results, "--json"];
        if !is_full {
            arguments.push("--quick");
        }
        let output = longhaul(&arguments);
        if output.status.code() == Some(NOT_VALID) {
            return Err(text(&output.stderr));
        }
        assert!(output.status.success(), "{}: {}", exercise.name, text(&output.stderr));
        let exported = text(&longhaul(&["study", "export", &results, "--json"]).stdout);
        Ok(Results {
            report: serde_json::from_slice(&output.stdout).unwrap(),
            rows: exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        })
    }

    /// The valid runs of a cell.
    fn runs(&self, cell: &[(String, String)]) -> Vec<&Value> {
        let is_of = |row: &&Value| {
            row["status"] == "valid" && cell.iter().all(|(name, value)| row[name] == **value)
        };
        self.rows.iter().filter(is_of).collect()
    }

    /// The cell of the report that a run belongs to.
    fn cell(&self, run: &Value) -> &Value {
        let cells = self.report["parts"][0]["cells"].as_array().unwrap();
        cells.iter().find(|cell| cell["cell"] == run["cell"]).unwrap()
    }

    /// The median of a figure over runs of a cell.
    fn figure(&self, name: &str, runs: &[&Value]) -> f64 {
        let of = |run: &Value, name: &str| {
            let value = if name == "fairness" { &self.cell(run)[name] } else { &run[name] };
            value.as_f64().unwrap_or_else(|| panic!("no figure {name}: {run}"))
        };
        let mut values: Vec<f64> = runs
            .iter()
            .map(|run| match name.split_once(" / ") {
                Some((above, below)) => of(run, above) / of(run, below),
                None => of(run, name),
            })
            .collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }
}

/// Whether `measured` differs from `stated` by no more than a share of it.
fn agrees(measured: f64, stated: f64, within: f64) -> bool {
    (measured - stated).abs() <= within * stated.abs() + 1e-9
}

/// An answer that differs from what was measured.
#[derive(Debug, PartialEq)]
struct Wrong {
    label: String,
    what: String,
}

/// What the answers say that was not measured.
fn wrong(exercise: &Exercise, results: &Results, is_full: bool) -> Vec<Wrong> {
    let mut found_wrong = Vec::new();
    let mut wrong = |label: &str, what| found_wrong.push(Wrong { label: label.to_owned(), what });
    let mut compared = 0;
    for answer in &exercise.answers {
        let Answer { cell, figure, measured: stated, .. } = answer;
        let pairs: Vec<String> =
            cell.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let label = format!("{}: {}", exercise.name, pairs.join(", "));
        let within = if is_full { Some(answer.within_full) } else { answer.within };
        let Some(within) = within else { continue };
        let runs = results.runs(cell);
        if runs.is_empty() {
            wrong(&label, "no valid run".to_owned());
            continue;
        }
        compared += 1;
        let found = results.figure(figure, &runs);
        if !agrees(found, *stated, within) {
            let percent = within * 100.0;
            wrong(&label, format!("{figure} is {found}, not within {percent} % of {stated}"));
        }
        let predicted = results.cell(runs[0])["predicted_bps"].as_f64();
        let equation = answer.equation;
        let is_equal = predicted.zip(equation).is_some_and(|(p, e)| agrees(e, p, ROUNDING));
        if answer.is_predicted && !is_equal {
            wrong(&label, format!("predicted_bps is {predicted:?}, not {equation:?}"));
        }
    }
    if compared == 0 {
        wrong(&exercise.name, "no answer was compared".to_owned());
    }
    found_wrong
}

/// Runs a plan and compares; a run that is not valid leaves it undecided. An end that is woken late
/// adds to an RTT that no emulator sees: an answer is wrong if two runs of the plan say so.
fn check(exercise: &Exercise) {
    let is_full = std::env::var_os("LONGHAUL_LONG").is_some();
    let measure = || match Results::of(exercise, is_full) {
        Ok(results) => wrong(exercise, &results, is_full),
        Err(reason) => stall_retry::undecided(format!("{}: not valid: {reason}", exercise.name)),
    };
    let once = measure();
    let twice = if once.is_empty() { once } else { twice(&once, measure()) };
    let lines: Vec<String> =
        twice.iter().map(|Wrong { label, what }| format!("{label}: {what}")).collect();
    assert!(twice.is_empty(), "{}", lines.join("\n"));
}

/// What the second of two runs found wrong, of what the first did.
fn twice(first: &[Wrong], second: Vec<Wrong>) -> Vec<Wrong> {
    second.into_iter().filter(|wrong| first.iter().any(|one| one.label == wrong.label)).collect()
}

/// A wrong figure, a wrong equation and a cell that is not there are found.
fn a_wrong_answer_is_found() {
    let page = "\n| `p.toml` | figure | `predicted_bps` | measured | within |\n|---|---|---|---|---|\n\
                | rtt=20ms | `throughput_bps` | 9 Mbit/s | 9.1 Mbit/s | 10 % |\n\
                | rtt=20ms | `a.x / throughput_bps` | 9 Mbit/s | 50 % | full, 5 % |\n\n\
                | `q.toml` | figure | equation | measured | within |\n| rtt=1ms | `x` | - | 1 ms | 1 % |\n";
    let exercise = |page: &str| Exercise {
        name: "p.toml".to_owned(),
        plan: String::new(),
        answers: answers(page, "p.toml"),
    };
    let run = |repeat: u32, bps: f64| {
        serde_json::json!({"rtt": "20ms", "repeat": repeat, "cell": 0, "status": "valid",
            "throughput_bps": bps, "a.x": 0.5 * bps})
    };
    let results = Results {
        report: serde_json::json!({"parts": [{"cells": [{"cell": 0, "predicted_bps": 9e6}]}]}),
        rows: vec![run(1, 8.8e6), run(2, 9.0e6), run(3, 1.0e6)],
    };
    let right = exercise(page);
    assert_eq!(right.answers.len(), 2);
    assert_eq!(right.answers[1].within, None);
    for is_full in [false, true] {
        assert_eq!(wrong(&right, &results, is_full), Vec::<Wrong>::new());
    }
    for (from, to, is_full) in [
        ("9.1 Mbit/s", "9.9 Mbit/s", false),
        ("| 9 Mbit/s | 9.1", "| 8 Mbit/s | 9.1", false),
        ("| rtt=20ms | `throughput", "| rtt=30ms | `throughput", false),
        ("50 %", "60 %", true),
        ("| 10 % |", "| full, 10 % |", false),
    ] {
        let changed = page.replace(from, to);
        assert_ne!(changed, page);
        let once = wrong(&exercise(&changed), &results, is_full);
        assert!(!once.is_empty(), "{from}: {to}");
        let again = wrong(&exercise(&changed), &results, is_full);
        assert!(!twice(&once, again).is_empty(), "{from}: {to}");
        assert!(twice(&once, Vec::new()).is_empty() && twice(&[], once).is_empty());
    }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(PARALLEL);
    let exercises = exercises();
    assert!(exercises.len() >= 6, "{} plans in the course", exercises.len());
    let probe = || longhaul(&["lab", "run", "--link", "rate=10mbit,rtt=1ms", "--", "true"]);
    let has_lab = arguments.list || matches!(probe().status.code(), Some(0 | NOT_VALID));
    if !has_lab {
        eprintln!("no lab can be made here: the plans of the course are skipped");
    }
    assert!(!stall_retry::required() || has_lab, "LONGHAUL_REQUIRE_PEERS=1 asks for a lab");
    let mut trials = vec![Trial::test("a_wrong_answer_is_found", || {
        a_wrong_answer_is_found();
        Ok(())
    })];
    trials.extend(exercises.into_iter().map(|exercise| {
        let name = exercise.name.clone();
        stall_retry::trial(name, move || check(&exercise)).with_ignored_flag(!has_lab)
    }));
    stall_retry::run(&arguments, trials)
}
