//! Runs in the lab beside the simulated twin: `cargo bench -p longhaul-verify --bench kernel`.
//!
//! Prints for each scenario goodput, retransmits, RTT and window under the real kernel and
//! in the simulation, as medians of several runs. The simulation's hosts pause when those of
//! the lab did. Under `chrt --rr 1`, other programs do not preempt the lab's hosts.
//! `--help` lists the options.

#[path = "kernel/compare.rs"]
mod compare;
mod lab_capture;
#[expect(dead_code, reason = "bench truth alone reads what captures show")]
mod lab_run;
mod lab_truth;
#[path = "kernel/pauses.rs"]
mod pauses;
#[path = "kernel/scenarios.rs"]
mod scenarios;
#[path = "kernel/show.rs"]
mod show;

use bench_harness::Fallible;
use std::process::ExitCode;

/// Runs of a case until the lab is valid.
const ATTEMPTS: u32 = 5;

/// Of the first run; the others follow.
const SEED: u64 = 1;

const HELP: &str = "\
cargo bench -p longhaul-verify --bench kernel -- [OPTION]...
  --runs N      runs of each scenario (3)
  --only NAME   one scenario
  --show NAME   instead, the lab's ground truth of each 100 ms of a run; all: of every scenario";

fn main() -> ExitCode {
    bench_harness::run_in_sandbox(HELP, |mut arguments| {
        let runs = arguments.count("--runs")?.unwrap_or(3);
        let only: Option<String> = arguments.value("--only")?;
        let shown: Option<String> = arguments.value("--show")?;
        arguments.end()?;
        match shown {
            Some(name) => show_all(&name),
            None => compare::compare(runs, only.as_deref()),
        }
    })
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
