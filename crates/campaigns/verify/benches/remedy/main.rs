//! Every remedy that a finding prints, applied as printed, in a lab: `make bench`.
//!
//! For each labelled cause: sets it up, explains a transfer, applies the remedy, and
//! measures again in a new lab. At least nine tenths of the predicted gain must be
//! reached. Then published cases: diagnosed correctly, and tuned by what the
//! findings print to nine tenths of the path's rate. Invalid runs are repeated.

mod causes;
mod hosts;
mod seeds;

use bench_harness::{Arguments, Fallible};
use std::process::ExitCode;

/// The promised share of a remedy's gain, and of a tuned path's rate.
const KEPT: f64 = 0.9;

const HELP: &str = "\
cargo bench -p longhaul-verify --bench remedy -- [CASE]...
CASE: a part of the name of a cause or of a published case (all of them)";

fn main() -> ExitCode {
    bench_harness::run_in_sandbox(HELP, measure)
}

/// Runs all cases, or those named on the command line.
fn measure(arguments: Arguments) -> Fallible<()> {
    let named = arguments.names()?;
    let wanted = |name: &str| named.is_empty() || named.iter().any(|part| name.contains(&**part));
    println!("{:<46} {:>11} {:>11} {:>11}", "", "without", "predicted", "measured");
    for cause in causes::ALL {
        if wanted(cause.name) {
            causes::hold(&cause)?;
        }
    }
    for seed in seeds::ALL {
        if wanted(seed.name) {
            seeds::hold(&seed)?;
        }
    }
    Ok(())
}
