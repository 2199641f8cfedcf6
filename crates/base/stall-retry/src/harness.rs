//! Trials of `libtest-mimic` that may end undecided, and their summary.

use crate::{Verdict, alone, beside_others, verdict};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

/// Names of the tests that ended undecided in this process.
static UNDECIDED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Whether `LONGHAUL_REQUIRE_PEERS=1` makes a missing peer, and an undecided
/// test, a failure.
#[must_use]
pub fn required() -> bool {
    std::env::var("LONGHAUL_REQUIRE_PEERS").as_deref() == Ok("1")
}

/// A test that is retried after stalls, and runs beside others. Undecided, it counts as
/// ignored, or as failed where [`required`].
pub fn trial(name: impl Into<String>, test: impl Fn() + Send + 'static) -> Trial {
    retried(name.into(), move || beside_others(&test))
}

/// The same, while no other test runs.
pub fn trial_alone(name: impl Into<String>, test: impl Fn() + Send + 'static) -> Trial {
    retried(name.into(), move || alone(&test))
}

fn retried(name: String, test: impl Fn() + Send + 'static) -> Trial {
    let own = name.clone();
    Trial::ignorable_test(name, move || {
        let verdict = verdict(test);
        if matches!(verdict, Verdict::Undecided(_)) {
            UNDECIDED.lock().unwrap_or_else(PoisonError::into_inner).push(own);
        }
        completion(verdict, required())
    })
}

fn completion(verdict: Verdict, required: bool) -> Result<Completion, Failed> {
    match verdict {
        Verdict::Passed => Ok(Completion::Completed),
        Verdict::Undecided(reason) if required => {
            Err(format!("undecided, and LONGHAUL_REQUIRE_PEERS=1 is set: {reason}").into())
        }
        Verdict::Undecided(reason) => Ok(Completion::ignored_with(format!("undecided: {reason}"))),
    }
}

/// Runs the trials and prints a last line that names the undecided ones. Where no
/// argument gives the number of threads, `RUST_TEST_THREADS` does, as for libtest.
#[must_use]
pub fn run(arguments: &Arguments, trials: Vec<Trial>) -> ExitCode {
    let asked = std::env::var("RUST_TEST_THREADS").ok();
    let test_threads = threads(arguments.test_threads, asked.as_deref());
    let conclusion = libtest_mimic::run(&Arguments { test_threads, ..arguments.clone() }, trials);
    let undecided = UNDECIDED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(line) = summary(&undecided) {
        eprintln!("{line}");
    }
    conclusion.exit_code()
}

fn threads(argument: Option<usize>, variable: Option<&str>) -> Option<usize> {
    argument.or_else(|| variable?.parse().ok().filter(|threads| *threads > 0))
}

fn summary(undecided: &[String]) -> Option<String> {
    let tests = if undecided.len() == 1 { "test" } else { "tests" };
    (!undecided.is_empty())
        .then(|| format!("undecided: {} {tests}: {}", undecided.len(), undecided.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undecided_is_ignored_and_fails_where_required() {
        let undecided = || Verdict::Undecided("stalled".to_owned());
        assert!(matches!(completion(undecided(), false), Ok(Completion::Ignored { .. })));
        assert!(completion(undecided(), true).is_err());
        assert!(matches!(completion(Verdict::Passed, true), Ok(Completion::Completed)));
    }

    #[test]
    fn an_argument_counts_more_than_the_variable() {
        assert_eq!(threads(Some(1), Some("8")), Some(1));
        assert_eq!(threads(None, Some("8")), Some(8));
        assert_eq!([None, Some("0"), Some("many")].map(|set| threads(None, set)), [None; 3]);
    }

    #[test]
    fn the_summary_names_what_is_undecided() {
        assert_eq!(summary(&[]), None);
        let names = ["a".to_owned(), "b".to_owned()];
        assert_eq!(summary(&names[..1]).as_deref(), Some("undecided: 1 test: a"));
        assert_eq!(summary(&names).as_deref(), Some("undecided: 2 tests: a, b"));
    }
}
