//! How often a retransmission in a capture has the right kind:
//! `cargo bench -p longhaul-verify --bench kinds`.
//!
//! Transfers over paths of the lab, whose senders are real kernels. The kernel's tracepoints
//! say in which state each of them retransmitted (`tcp:tcp_cong_state_set` and
//! `tcp:tcp_retransmit_skb`), and the lab which packet arrived; captures at both hosts are
//! labelled by `tcp-analysis` without either. Prints for each path and over all how many
//! retransmissions have the right label, a confusion table, and how many that were
//! unnecessary are recognised as spurious.
//!
//! Needs root and tracefs (`/sys/kernel/tracing`): without them it says so and fails.
//!
//! `--help` lists the options.

mod labels;
mod options;
mod paths;
mod run;
mod table;
mod tracepoints;
mod traffic;
mod truth;

use bench_harness::{Arguments, Fallible};
use labels::labels;
use options::Options;
use paths::{PATHS, Path};
use run::Run;
use std::process::ExitCode;
use table::Agreement;
use tracepoints::Tracepoints;

/// Runs of a path until the capture has a packet for each event.
const ATTEMPTS: u32 = 3;

fn main() -> ExitCode {
    bench_harness::run(options::HELP, |arguments: Arguments| {
        let options = options::parse(arguments)?;
        if options.load.is_some() {
            return measure(&options, None);
        }
        // The tracepoints belong to the process outside of the sandbox, which removes them.
        let tracepoints = Tracepoints::create()?;
        bench_harness::in_sandbox(|| measure(&options, Some(&tracepoints)))
    })
}

fn measure(options: &Options, tracepoints: Option<&Tracepoints>) -> Fallible<()> {
    let chosen: Vec<&Path> = PATHS.iter().filter(|path| options.includes(path)).collect();
    if chosen.is_empty() {
        return Err("no such path".into());
    }
    println!("{}", table::HEADING);
    let (mut sum, mut left_out) = (Agreement::default(), 0);
    for path in chosen {
        let Some(run) = one(options, path, tracepoints)? else {
            left_out += 1;
            continue;
        };
        let truth = truth::of(&run);
        let mut agreement = Agreement::default();
        for at_sender in [true, false] {
            let labels = labels(&run, at_sender);
            agreement.add(&run, &truth, &labels, at_sender);
            if options.show {
                table::show(&run, &truth, &labels, at_sender);
            }
        }
        println!("{}", table::Row { name: path.name, agreement: &agreement });
        sum.merge(&agreement);
    }
    println!("{}", table::Row { name: "all", agreement: &sum });
    println!("\n{}", table::Summary(&sum));
    if left_out > 0 {
        println!("{left_out} paths left out: not measured");
    }
    Ok(())
}

/// A stored run, or one in the lab; `None`, and why on standard output, if no run can be used.
fn one(options: &Options, path: &Path, tracepoints: Option<&Tracepoints>) -> Fallible<Option<Run>> {
    if let Some(folder) = &options.load {
        let run = run::load(folder, path.name, options.seed)?;
        let Some(why) = truth::not_usable(&run) else { return Ok(Some(run)) };
        println!("{:<24} left out: {why}", path.name);
        return Ok(None);
    }
    let tracepoints = tracepoints.ok_or("no tracepoints")?;
    let mut reason = String::new();
    for attempt in 0..ATTEMPTS {
        let run = run::run(path, options.seed + u64::from(attempt) * 1000, tracepoints)?;
        if let Some(folder) = &options.save {
            run::save(folder, options.seed, &run)?;
        }
        match truth::not_usable(&run) {
            None => return Ok(Some(run)),
            Some(why) => reason = why,
        }
    }
    println!("{:<24} left out: {reason}", path.name);
    Ok(None)
}
