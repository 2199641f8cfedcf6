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
//! Options, after `--`: `--set development|held-out|all` (all; the rules were adjusted on the
//! first half only), `--only NAME` (a path), `--seed N` (1), `--save DIR` stores runs,
//! `--load DIR` labels stored ones again, `--show` lists every packet with another label.

mod labels;
mod options;
mod paths;
mod run;
mod table;
mod tracepoints;
mod traffic;
mod truth;

use host::sandbox::{self, Ended};
use labels::labels;
use options::Options;
use paths::{PATHS, Path};
use run::Run;
use table::Agreement;
use tracepoints::Tracepoints;

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Runs of a path until the capture has a packet for each event.
const ATTEMPTS: u32 = 3;

fn main() {
    // `cargo test --benches` only checks that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let code = match options::parse() {
        Err(error) => fail(&*error),
        Ok(options) if options.load.is_some() => {
            measure(&options, None).map_or_else(|error| fail(&*error), |()| 0)
        }
        Ok(options) => in_lab(&options).unwrap_or_else(|error| fail(&*error)),
    };
    std::process::exit(code);
}

fn fail(error: &dyn std::error::Error) -> i32 {
    eprintln!("{error}");
    1
}

/// The tracepoints belong to the process outside of the sandbox, which removes them.
fn in_lab(options: &Options) -> Fallible<i32> {
    let tracepoints = Tracepoints::create()?;
    let work = || measure(options, Some(&tracepoints)).map_or_else(|error| fail(&*error), |()| 0);
    match sandbox::run(work)? {
        Ended::Code(code) => Ok(code),
        Ended::Signal(signal) => Err(format!("ended by signal {signal}").into()),
    }
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
