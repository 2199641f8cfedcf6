//! Retries of timing tests that a scheduler stall disturbed.
//!
//! A build machine shares its cores with others and can stall for tens or
//! hundreds of milliseconds. A test that sends real traffic then fails although
//! the program is right. [`verdict`] runs such a test with a [`Gauge`] beside it:
//!
//! - it fails while the machine did not stall: failed, at once;
//! - it fails during a stall: it runs again, three times in all;
//! - the same assertion failed all three times: failed, because a stall hits
//!   different assertions and a defect always the same;
//! - anything else: *undecided*, reported with its reason and never counted as
//!   passed. With `LONGHAUL_REQUIRE_PEERS=1` it counts as failed.
//!
//! [`alone`] runs a test while no other one of its process does. [`free_port`] names ports
//! that tests side by side do not take from each other, and [`write_script`] writes programs
//! that can be run whatever they start.
//!
//! Only tests use this crate.

mod gauge;
mod harness;
mod panics;
mod ports;
mod scripts;
mod side_by_side;

pub use gauge::Gauge;
pub use harness::{required, run, trial, trial_alone};
pub use ports::free_port;
pub use scripts::write_script;
pub use side_by_side::{alone, beside_others};

use panics::{Failure, attempt};
use std::panic::{panic_any, resume_unwind};
use std::time::Duration;

/// A stall this long has disturbed a test. On two cores, threads of one test
/// wait for each other for less.
pub const STALL: Duration = Duration::from_millis(15);

/// Attempts per test.
const ATTEMPTS: usize = 3;

/// The result of a test that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// An attempt passed.
    Passed,
    /// The machine stalled too much to decide; the reason.
    Undecided(String),
}

/// The payload of [`undecided`]'s panic.
struct Reason(String);

/// Ends the running test: this machine cannot decide it now.
pub fn undecided(reason: impl Into<String>) -> ! {
    panic_any(Reason(reason.into()))
}

/// Runs a test until it passes, at most three times.
///
/// # Panics
/// With the test's own panic where it failed without a stall, or where the same
/// assertion failed in every attempt.
pub fn verdict(test: impl Fn()) -> Verdict {
    let start = || {
        let gauge = Gauge::start();
        move || gauge.worst()
    };
    verdict_with(start, test)
}

/// [`verdict`] for a harness that knows only passed and failed: an undecided
/// test fails.
///
/// # Panics
/// As [`verdict`], and with the reason where the test is undecided.
pub fn retry(test: impl Fn()) {
    if let Verdict::Undecided(reason) = verdict(test) {
        panic!("undecided: {reason}");
    }
}

/// `start` starts a gauge and returns the function that reads the longest stall.
fn verdict_with<Read: FnOnce() -> Duration>(start: impl Fn() -> Read, test: impl Fn()) -> Verdict {
    let mut failures: Vec<Failure> = Vec::new();
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        let read = start();
        let Err(failure) = attempt(&test) else { return Verdict::Passed };
        let stall = read();
        let failure = match failure.payload.downcast::<Reason>() {
            Ok(reason) => return Verdict::Undecided(reason.0),
            Err(payload) => Failure { payload, ..failure },
        };
        let repeated = failures.iter().all(|earlier| earlier.assertion == failure.assertion);
        if stall < STALL || (repeated && failures.len() + 1 == ATTEMPTS) {
            resume_unwind(failure.payload);
        }
        last = format!("the machine stalled for {stall:.0?}: {}", failure.message());
        eprintln!("attempt {} failed: {last}", failures.len() + 1);
        failures.push(failure);
    }
    Verdict::Undecided(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn with(stall_ms: u64, test: impl Fn()) -> Verdict {
        verdict_with(|| move || Duration::from_millis(stall_ms), test)
    }

    #[test]
    fn a_passing_test_runs_once() {
        let runs = Cell::new(0);
        assert_eq!(with(500, || runs.set(runs.get() + 1)), Verdict::Passed);
        assert_eq!(runs.get(), 1);
    }

    #[test]
    #[should_panic(expected = "wrong")]
    fn a_failure_without_a_stall_is_final() {
        with(14, || panic!("wrong"));
    }

    #[test]
    fn a_failure_during_a_stall_is_retried() {
        let runs = Cell::new(0);
        let fails_twice = || {
            runs.set(runs.get() + 1);
            assert!(runs.get() > 2, "late");
        };
        assert_eq!(with(50, fails_twice), Verdict::Passed);
        assert_eq!(runs.get(), 3);
    }

    #[test]
    fn the_same_assertion_three_times_is_a_failure() {
        let runs = Cell::new(0);
        let thrown = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            with(50, || {
                runs.set(runs.get() + 1);
                // The figures of a message differ from run to run.
                assert!(runs.get() > 3, "{} ms late", runs.get() * 17);
            })
        }));
        let thrown = thrown.unwrap_err();
        assert_eq!(thrown.downcast_ref::<String>().map(String::as_str), Some("51 ms late"));
        assert_eq!(runs.get(), 3);
    }

    #[test]
    fn different_assertions_in_stalls_are_undecided() {
        let runs = Cell::new(0);
        let verdict = with(50, || {
            runs.set(runs.get() + 1);
            assert!(runs.get() != 2, "early");
            panic!("late\nand more");
        });
        let reason = "the machine stalled for 50ms: late".to_owned();
        assert_eq!((runs.get(), verdict), (3, Verdict::Undecided(reason)));
    }

    #[test]
    fn a_test_can_declare_itself_undecided() {
        let runs = Cell::new(0);
        let verdict = with(0, || {
            runs.set(runs.get() + 1);
            undecided("the lab was not valid")
        });
        assert_eq!(verdict, Verdict::Undecided("the lab was not valid".to_owned()));
        assert_eq!(runs.get(), 1);
    }
}
