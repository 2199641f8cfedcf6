//! Every remedy that a finding prints, applied as printed, in a lab: `make bench`.
//!
//! For each labelled cause the cause is made, the finding taken, its remedy
//! applied, and the transfer measured again on a lab of its own. Nine tenths of
//! the gain it promised must come. Then the cases of the seeds: diagnosed
//! right, and tuned by what the findings print to nine tenths of what the path
//! carries. A run that the machine could not carry is repeated.

mod causes;
mod hosts;
mod seeds;

use host::world::{self, Ended};

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What is promised of a remedy's gain, and of a tuned path.
const KEPT: f64 = 0.9;

fn main() {
    // `cargo test --benches` only asks whether it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    match world::run(|| i32::from(measure().inspect_err(|error| eprintln!("{error}")).is_err())) {
        Ok(Ended::Code(code)) => std::process::exit(code),
        other => {
            eprintln!("{other:?}");
            std::process::exit(1);
        }
    }
}

/// All of it, or what the command line names.
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
