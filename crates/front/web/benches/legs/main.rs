//! "Wi-Fi, line or far away?" in the lab: `cargo bench -p longhaul-web --bench legs`.
//!
//! A visitor, a near server and a far one in a row, whose links are drawn: a slow first link that
//! varies as Wi-Fi does, a slow second one as a line is, or losses and windows over a long RTT. The
//! visitor speaks the page's protocol with both servers in turns, and the near one says which leg
//! limits. `--help` lists the options.

mod cases;
#[path = "../../tests/web/page.rs"]
#[expect(dead_code, clippy::unwrap_used, clippy::expect_used, reason = "tests use the rest")]
mod page;
mod run;

use bench_harness::{Arguments, Fallible, heading, note, row};
use cases::{Case, Truth};
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// The share of the runs in which the limiting leg is right.
const PROMISED: f64 = 57.0 / 60.0;
/// Runs of a case until one has a verdict.
const ATTEMPTS: usize = 2;

const HELP: &str = "\
cargo bench -p longhaul-web --bench legs -- [OPTION]...
  --runs N     cases, of each kind in turn (60)
  --first N    the first one (0)
  --seed N     of the draws (43)
  --step S     seconds of a download of a whole run, whose shares a leg's steps have (5)
  --file PATH  keeps what is done, and goes on after it";

struct Options {
    runs: usize,
    first: usize,
    seed: u64,
    step_seconds: f64,
    file: Option<PathBuf>,
}

fn main() -> ExitCode {
    bench_harness::run(HELP, |mut arguments: Arguments| {
        let options = Options {
            runs: arguments.count("--runs")?.unwrap_or(60),
            first: arguments.value("--first")?.unwrap_or(0),
            seed: arguments.value("--seed")?.unwrap_or(43),
            step_seconds: arguments.value("--step")?.unwrap_or(5.0),
            file: arguments.value("--file")?,
        };
        arguments.end()?;
        bench_harness::in_sandbox(|| measure(&options))
    })
}

/// What is kept of a case: its number, whether it is right, and in words.
type Done = HashMap<usize, String>;

fn measure(options: &Options) -> Fallible<()> {
    let mut done = kept(options);
    let cases = options.first..options.first + options.runs;
    let cases: Vec<Case> = cases.map(|number| cases::case(options.seed, number)).collect();
    for case in &cases {
        if done.contains_key(&case.number) {
            continue;
        }
        let found = (0..ATTEMPTS).find_map(|_| run::run(&case.plan(), options.step_seconds).ok());
        let name = |direction: &str| match &found {
            Some(verdict) => verdict[direction]["limiting"].as_str().unwrap_or("none"),
            None => "failed",
        };
        let (download, upload) = (name("download"), name("upload"));
        let line = format!("{} {download} {upload} {}", case.truth.name(), case.words());
        let sentence = found.as_ref().and_then(|found| found["download"]["sentence"].as_str());
        println!("{} {line}\n    {}", case.number, sentence.unwrap_or_default());
        keep(options, case.number, &line)?;
        done.insert(case.number, line);
    }
    tell(&cases, &done);
    Ok(())
}

/// What an earlier process has done with the same draws.
fn kept(options: &Options) -> Done {
    let text = options.file.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
    let mut done = Done::new();
    for line in text.unwrap_or_default().lines() {
        let mut parts = line.splitn(3, ' ');
        let (seed, number) = (parts.next(), parts.next().and_then(|number| number.parse().ok()));
        if let (Some(seed), Some(number), Some(rest)) = (seed, number, parts.next())
            && seed == options.seed.to_string()
        {
            done.insert(number, rest.to_owned());
        }
    }
    done
}

fn keep(options: &Options, number: usize, line: &str) -> Fallible<()> {
    let Some(path) = &options.file else { return Ok(()) };
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{} {number} {line}", options.seed)?;
    Ok(())
}

fn tell(cases: &[Case], done: &Done) {
    let found = |case: &Case| {
        let mut words = done.get(&case.number).map_or("", String::as_str).split(' ').skip(1);
        (words.next().unwrap_or("").to_owned(), words.next().unwrap_or("").to_owned())
    };
    let is_open = |name: &str| matches!(name, "unknown" | "beyond" | "failed" | "none");
    heading();
    let mut all = 0;
    for truth in Truth::ALL {
        let of_kind: Vec<&Case> = cases.iter().filter(|case| case.truth == truth).collect();
        let names: Vec<(String, String)> = of_kind.iter().map(|case| found(case)).collect();
        let right = names.iter().filter(|(name, _)| name == truth.name()).count();
        let open = names.iter().filter(|(name, _)| is_open(name)).count();
        let uploads = names.iter().filter(|(_, upload)| upload == truth.name()).count();
        all += right;
        let what = format!("{}: right, cannot tell, wrong; uploads right", truth.name());
        let wrong = names.len() - right - open;
        note(&what, &format!("{right}, {open}, {wrong} of {}; {uploads}", names.len()));
    }
    let kept = all as f64 >= cases.len() as f64 * PROMISED;
    row("the limiting leg is right", "57 of 60", &format!("{all} of {}", cases.len()), kept);
}
