//! Tests about time on a machine that may stand still.
//!
//! A build machine shares its cores with others and can stand still for tens or
//! hundreds of milliseconds. A test that sends real traffic then fails although
//! the program is right. [`settle`] runs such a test with a gauge beside it. A
//! failure on a machine that did not stand still is a failure at once; one on a
//! machine that did is tried again, and where no try was undisturbed the test is
//! *undecided*: told with its reason and never counted as passed.
//!
//! Nothing of the program uses this crate.

mod gauge;

pub use gauge::Gauge;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::time::Duration;

/// A machine that stood still for so long has disturbed a test. Threads of the
/// test that wait for each other on two cores do so for less.
pub const DISTURBED: Duration = Duration::from_millis(15);

/// How often a test is tried at most.
const TRIES: u32 = 3;

/// What came of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Held,
    /// The machine did not let it be decided; why.
    Undecided(String),
}

/// What [`undecided`] throws.
struct Reason(String);

/// Ends the test under way: this machine cannot decide it now.
pub fn undecided(reason: impl Into<String>) -> ! {
    panic_any(Reason(reason.into()))
}

/// Runs a test until it holds, at most three times.
///
/// # Panics
/// With the test's own panic, where it fails on a machine that did not stand still.
pub fn settle(test: impl Fn()) -> Verdict {
    let begin = || {
        let gauge = Gauge::start();
        move || gauge.worst()
    };
    settle_with(begin, test)
}

/// The same, for a test harness that knows passed and failed only: what cannot
/// be decided fails.
///
/// # Panics
/// As [`settle`], and with the reason where the test stays undecided.
pub fn hold(test: impl Fn()) {
    if let Verdict::Undecided(reason) = settle(test) {
        panic!("undecided: {reason}");
    }
}

/// `begin` starts a gauge and gives what reads it: how long the machine stood
/// still since.
fn settle_with<Read: FnOnce() -> Duration>(begin: impl Fn() -> Read, test: impl Fn()) -> Verdict {
    let mut last = String::new();
    for _ in 0..TRIES {
        let read = begin();
        let Err(thrown) = catch_unwind(AssertUnwindSafe(&test)) else { return Verdict::Held };
        let still = read();
        last = match thrown.downcast::<Reason>() {
            Ok(reason) => return Verdict::Undecided(reason.0),
            Err(thrown) if still < DISTURBED => resume_unwind(thrown),
            Err(thrown) => {
                format!("the machine stood still for {still:.0?}: {}", words(&*thrown))
            }
        };
        eprintln!("again: {last}");
    }
    Verdict::Undecided(last)
}

/// The first line of a panic.
fn words(thrown: &(dyn Any + Send)) -> &str {
    let whole = thrown
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| thrown.downcast_ref::<&str>().copied());
    whole.and_then(|text| text.lines().next()).unwrap_or("it failed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn with(still: u64, test: impl Fn()) -> Verdict {
        settle_with(|| move || Duration::from_millis(still), test)
    }

    #[test]
    fn what_holds_is_run_once() {
        let runs = Cell::new(0);
        assert_eq!(with(500, || runs.set(runs.get() + 1)), Verdict::Held);
        assert_eq!(runs.get(), 1);
    }

    #[test]
    #[should_panic(expected = "wrong")]
    fn a_failure_on_a_quiet_machine_is_one() {
        with(14, || panic!("wrong"));
    }

    #[test]
    fn on_a_machine_that_stood_still_it_is_tried_again() {
        let runs = Cell::new(0);
        let fails_twice = || {
            runs.set(runs.get() + 1);
            assert!(runs.get() > 2, "late");
        };
        assert_eq!(with(50, fails_twice), Verdict::Held);
        assert_eq!(runs.get(), 3);
        runs.set(0);
        let Verdict::Undecided(reason) = with(50, || {
            runs.set(runs.get() + 1);
            panic!("late\nand more");
        }) else {
            panic!("it cannot hold")
        };
        assert_eq!((runs.get(), &*reason), (3, "the machine stood still for 50ms: late"));
    }

    #[test]
    fn a_test_can_say_that_it_cannot_tell() {
        let runs = Cell::new(0);
        let verdict = with(0, || {
            runs.set(runs.get() + 1);
            undecided("the lab was not valid")
        });
        assert_eq!(verdict, Verdict::Undecided("the lab was not valid".to_owned()));
        assert_eq!(runs.get(), 1);
    }
}
