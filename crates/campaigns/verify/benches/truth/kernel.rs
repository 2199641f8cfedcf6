//! Runs in the lab beside the simulated twin: `cargo bench -p longhaul-verify --bench kernel`.
//!
//! Prints for each scenario goodput, retransmits, RTT and window under the real kernel and
//! in the simulation, as medians of several runs.
//!
//! Options, after `--`: `--runs N` (3), `--only NAME`, and `--show NAME` (or `all`), which
//! prints the lab's ground truth of each 100 ms of a run instead.

#[path = "kernel/compare.rs"]
mod compare;
mod lab_capture;
#[expect(dead_code, reason = "bench truth alone reads what captures show")]
mod lab_run;
mod lab_truth;
#[path = "kernel/scenarios.rs"]
mod scenarios;
#[path = "kernel/show.rs"]
mod show;

use host::sandbox::{self, Ended};

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Runs of a case until the lab is valid.
const ATTEMPTS: u32 = 5;

/// Of the first run; the others follow.
const SEED: u64 = 1;

struct Options {
    runs: usize,
    only: Option<String>,
    show: Option<String>,
}

fn main() {
    // `cargo test --benches` only checks that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let work = || {
        let done = options().and_then(|options| match &options.show {
            Some(name) => show_all(name),
            None => compare::compare(options.runs, options.only.as_deref()),
        });
        i32::from(done.inspect_err(|error| eprintln!("{error}")).is_err())
    };
    match sandbox::run(work) {
        Ok(Ended::Code(code)) => std::process::exit(code),
        other => {
            eprintln!("{other:?}");
            std::process::exit(1);
        }
    }
}

fn options() -> Fallible<Options> {
    let mut options = Options { runs: 3, only: None, show: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--bench" => {}
            "--runs" => options.runs = value()?.parse()?,
            "--only" => options.only = Some(value()?),
            "--show" => options.show = Some(value()?),
            other => return Err(format!("no option {other}").into()),
        }
    }
    Ok(options)
}

fn show_all(name: &str) -> Fallible<()> {
    let all = scenarios::shown();
    if name != "all" && all.iter().all(|(known, _)| *known != name) {
        let known: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        return Err(format!("no scenario {name}; there are {}", known.join(", ")).into());
    }
    for (_, case) in all.iter().filter(|(known, _)| name == "all" || name == *known) {
        // A run that is not valid still shows how its truth is computed.
        let run = lab_run::run_valid(case, SEED, 2, false)?;
        println!("{}", show::Table { case, run: &run });
    }
    Ok(())
}
