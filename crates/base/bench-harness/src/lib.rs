//! The harness of the benchmarks: their command line, medians, programs that take turns, and
//! the table of promised and measured figures.
//!
//! A benchmark is a program without libtest's harness. [`run`] and [`run_in_sandbox`] are its
//! `main`: they answer what cargo asks of it (`cargo test --benches` only checks that it
//! builds), print the help, and turn an error into an exit code.

mod arguments;
mod interleaved;
mod table;

pub use arguments::Arguments;
pub use interleaved::{Ratios, best, rounds};
pub use table::{heading, note, row};

use host::sandbox::{self, Ended};
use std::process::ExitCode;

/// A result whose error is told to whoever started the benchmark.
pub type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Runs a benchmark; `help` says what its options and names are.
#[must_use]
pub fn run(help: &str, work: impl FnOnce(Arguments) -> Fallible<()>) -> ExitCode {
    match Arguments::of_process(help) {
        Some(arguments) => ExitCode::from(code(work(arguments))),
        None => ExitCode::SUCCESS,
    }
}

/// The same in a sandbox: namespaces and devices that end with the process.
#[must_use]
pub fn run_in_sandbox(help: &str, work: impl FnOnce(Arguments) -> Fallible<()>) -> ExitCode {
    run(help, |arguments| in_sandbox(|| work(arguments)))
}

/// Does the work in a sandbox. What fails there is told there: the error that is returned then
/// says nothing.
///
/// # Errors
/// There is no sandbox, or the work failed.
pub fn in_sandbox(work: impl FnOnce() -> Fallible<()>) -> Fallible<()> {
    match sandbox::run(|| i32::from(code(work())))? {
        Ended::Code(0) => Ok(()),
        Ended::Code(_) => Err(String::new().into()),
        Ended::Signal(signal) => Err(format!("ended by signal {signal}").into()),
    }
}

fn code(done: Fallible<()>) -> u8 {
    let Err(error) = done else { return 0 };
    let text = error.to_string();
    if !text.is_empty() {
        eprintln!("{text}");
    }
    1
}

/// The median; NaN of no values.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    model::statistics::median(values).unwrap_or(f64::NAN)
}

/// A seed from the clock: fresh seeds need not be unpredictable.
#[must_use]
pub fn fresh_seed() -> u64 {
    host::clock::unix_seconds() % 1_000_000_000
}

/// The time that some work takes, s, and its result.
pub fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let began = host::clock::now();
    let result = work();
    (began.elapsed().as_secs_f64(), result)
}
