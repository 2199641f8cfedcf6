//! Every remedy that a finding prints, applied as printed, in a lab: `make bench`.
//!
//! For each labelled cause: sets it up, explains a transfer, applies the remedy, and
//! measures again in a new lab. At least nine tenths of the predicted gain must be
//! reached. Then published cases: diagnosed correctly, and tuned by what the
//! findings print to nine tenths of the path's rate. Invalid runs are repeated.

mod causes;
mod hosts;
mod seeds;

use host::sandbox::{self, Ended};

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The promised share of a remedy's gain, and of a tuned path's rate.
const KEPT: f64 = 0.9;

fn main() {
    // `cargo test --benches` only checks that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    match sandbox::run(|| i32::from(measure().inspect_err(|error| eprintln!("{error}")).is_err())) {
        Ok(Ended::Code(code)) => std::process::exit(code),
        other => {
            eprintln!("{other:?}");
            std::process::exit(1);
        }
    }
}

/// Runs all cases, or those named on the command line.
fn measure() -> Fallible<()> {
    let named: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
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
