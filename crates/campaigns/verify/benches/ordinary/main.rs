//! What is found in captures of ordinary applications:
//! `cargo bench -p longhaul-verify --bench ordinary`.
//!
//! Draws applications and paths, runs them in the lab, and explains what captures show at the
//! sender, at the receiver, in the middle, without the start of the connection, and of one direction
//! alone. The applications record how long they had nothing to send, which is the truth; controls
//! have more to send nearly always, and are limited as they were made (`cases`).
//! `--help` lists the options.

mod app;
mod cases;
mod headline;
mod run;
mod score;
mod views;

use bench_harness::{Arguments, Fallible};
use cases::Case;
use score::{Scored, Verdict};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use views::View;

/// Runs of a case until one is valid.
const ATTEMPTS: usize = 2;

#[derive(Debug)]
struct Options {
    runs: usize,
    seed: u64,
    only: Option<&'static str>,
    number: Option<usize>,
    jobs: usize,
    all: bool,
}

const HELP: &str = "\
cargo bench -p longhaul-verify --bench ordinary -- [OPTION]...
  --runs N        cases (300)
  --seed N        of the draws (from the clock, and printed)
  --only FAMILY   cases of one family
  --number N      that case alone
  --jobs N        labs at a time (3)
  --all           print also what is right";

fn main() -> ExitCode {
    bench_harness::run(HELP, |arguments| {
        let options = options(arguments)?;
        bench_harness::in_sandbox(|| {
            measure(&options);
            Ok(())
        })
    })
}

fn options(mut arguments: Arguments) -> Fallible<Options> {
    let families: Vec<(&str, &str)> = cases::families().map(|name| (name, name)).collect();
    let options = Options {
        runs: arguments.count("--runs")?.unwrap_or(300),
        seed: arguments.value("--seed")?.unwrap_or_else(bench_harness::fresh_seed),
        only: arguments.one_of("--only", &families)?,
        number: arguments.value("--number")?,
        jobs: arguments.count("--jobs")?.unwrap_or(3),
        all: arguments.flag("--all"),
    };
    arguments.end()?;
    Ok(options)
}

fn measure(options: &Options) {
    let Options { runs, seed, only, number, jobs, all } = options;
    println!("seed {seed}");
    let is_wanted = |case: &Case| {
        only.is_none_or(|name| name == case.family)
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
