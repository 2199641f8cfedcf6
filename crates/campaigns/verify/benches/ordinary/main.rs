//! What is found in captures of ordinary applications:
//! `cargo bench -p longhaul-verify --bench ordinary`.
//!
//! Draws applications and paths, runs them in the lab, and explains what captures show at the
//! sender, at the receiver, in the middle, without the start of the connection, and of one direction
//! alone. The applications record how long they had nothing to send, which is the truth; controls
//! have more to send nearly always, and are limited as they were made (`cases`).
//!
//! Options, after `--`: `--runs N` (300), `--seed N` (drawn and printed unless given),
//! `--only FAMILY`, `--number N` runs that one alone, `--jobs N` labs at a time (3), `--all` prints
//! also what is right.

mod app;
mod cases;
mod headline;
mod run;
mod score;
mod views;

use cases::Case;
use host::sandbox::{self, Ended};
use score::{Scored, Verdict};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use views::View;

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Runs of a case until one is valid.
const ATTEMPTS: usize = 2;

#[derive(Debug)]
struct Options {
    runs: usize,
    seed: u64,
    only: Option<String>,
    number: Option<usize>,
    jobs: usize,
    all: bool,
}

fn main() {
    // `cargo test --benches` only checks that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let code = match options() {
        Err(error) => {
            eprintln!("{error}");
            2
        }
        Ok(options) => match sandbox::run(|| {
            measure(&options);
            0
        }) {
            Ok(Ended::Code(code)) => code,
            other => {
                eprintln!("{other:?}");
                1
            }
        },
    };
    std::process::exit(code);
}

fn options() -> Fallible<Options> {
    // From the clock: fresh seeds need not be unpredictable.
    let seed = host::clock::unix_seconds() % 1_000_000_000;
    let mut options = Options { runs: 300, seed, only: None, number: None, jobs: 3, all: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--bench" => {}
            "--all" => options.all = true,
            "--runs" => options.runs = value()?.parse()?,
            "--seed" => options.seed = value()?.parse()?,
            "--number" => options.number = Some(value()?.parse()?),
            "--jobs" => options.jobs = value()?.parse::<usize>()?.max(1),
            "--only" => {
                let family = value()?;
                if !cases::families().any(|name| name == family) {
                    let names = cases::families().collect::<Vec<_>>().join(", ");
                    return Err(format!("--only is one of {names}").into());
                }
                options.only = Some(family);
            }
            other => return Err(format!("no option {other}").into()),
        }
    }
    Ok(options)
}

fn measure(options: &Options) {
    let Options { runs, seed, only, number, jobs, all } = options;
    println!("seed {seed}");
    let is_wanted = |case: &Case| {
        only.as_ref().is_none_or(|name| name == case.family)
            && number.is_none_or(|number| number == case.number)
    };
    let count = number.map_or(*runs, |number| number + 1);
    let cases: Vec<Case> =
        (0..count).map(|number| cases::case(*seed, number)).filter(is_wanted).collect();
    let next = AtomicUsize::new(0);
    let scored: Mutex<(Vec<Scored>, usize)> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..*jobs {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = attempt(case, *seed);
                    let mut scored = scored.lock().unwrap_or_else(PoisonError::into_inner);
                    match found {
                        Ok(found) => {
                            tell(case, &found, *all);
                            scored.0.extend(found.1);
                        }
                        Err(error) => {
                            println!("left out: {}: {error}", words(case));
                            scored.1 += 1;
                        }
                    }
                }
            });
        }
    });
    let (scored, left_out) = scored.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("\n{}", score::table(&scored));
    println!("{} runs, {left_out} left out", cases.len());
    println!("cargo bench -p longhaul-verify --bench ordinary -- --runs {runs} --seed {seed}");
}

/// The idle share of a run, and what is found in its captures.
type Found = (f64, Vec<Scored>);

fn attempt(case: &Case, seed: u64) -> Fallible<Found> {
    let mut reasons = String::new();
    for _ in 0..ATTEMPTS {
        let run = run::run(case, seed)?;
        if !run.not_valid.is_empty() {
            reasons = run.not_valid.join("; ");
            continue;
        }
        let idle = run.idle_share;
        let Some(truth) = score::truth(case, idle) else {
            return Err(format!("{:.0} % idle, between two limits", idle * 100.0).into());
        };
        let mut all = Vec::new();
        for view in View::ALL {
            if let Some((finding, m)) = view.explain(case, &run.records) {
                all.push(Scored::new(case, view, truth, (&finding, &m)));
            }
        }
        return Ok((idle, all));
    }
    Err(format!("not valid: {reasons}").into())
}

fn tell(case: &Case, (idle, found): &Found, all: bool) {
    let is_told =
        |one: &&Scored| all || one.verdict != Verdict::Right || one.contradiction.is_some();
    let told: Vec<&Scored> = found.iter().filter(is_told).collect();
    if !told.is_empty() {
        println!("{}, idle {:.0} %", words(case), idle * 100.0);
        told.iter().for_each(|one| println!("{one}"));
    }
}

fn words(case: &Case) -> String {
    let sender = if case.server_sends { "server sends" } else { "client sends" };
    let window = case.window.map_or(String::new(), |window| format!(" window {window:.0}"));
    let nagle = if case.no_delay { "" } else { " nagle" };
    format!(
        "{} {} {} {} {:.1} s {sender}{window}{nagle} [{}]",
        case.number,
        case.family,
        case.path,
        case.congestion.name(),
        case.seconds,
        brief(case)
    )
}

/// The first steps.
fn brief(case: &Case) -> String {
    let steps = case.steps.iter().take(6).map(|step| format!("{step:?}"));
    steps.collect::<Vec<_>>().join(", ")
}
