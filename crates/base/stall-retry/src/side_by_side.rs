//! Which tests of a process run beside each other.

use std::sync::{PoisonError, RwLock};

/// Held shared by each test, and exclusively by one that runs alone. It protects nothing that
/// a failed test could have left half done: that it is poisoned means nothing.
struct Tests(RwLock<()>);

impl Tests {
    const fn new() -> Self {
        Tests(RwLock::new(()))
    }

    fn beside_others<T>(&self, test: impl FnOnce() -> T) -> T {
        let _shared = self.0.read().unwrap_or_else(PoisonError::into_inner);
        test()
    }

    fn alone<T>(&self, test: impl FnOnce() -> T) -> T {
        let _exclusive = self.0.write().unwrap_or_else(PoisonError::into_inner);
        test()
    }
}

/// Those of this process.
static TESTS: Tests = Tests::new();

/// Runs a test beside others, and never while one runs [`alone`].
pub fn beside_others<T>(test: impl FnOnce() -> T) -> T {
    TESTS.beside_others(test)
}

/// Runs a test while no other one does: it loads the machine, or measures what others
/// would change, such as the memory of the process.
pub fn alone<T>(test: impl FnOnce() -> T) -> T {
    TESTS.alone(test)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    #[test]
    fn nothing_runs_beside_one_that_is_alone() {
        static RUNNING: AtomicU32 = AtomicU32::new(0);
        let tests = Tests::new();
        let alone_once = || {
            tests.alone(|| {
                assert_eq!(RUNNING.load(Ordering::SeqCst), 0);
                thread::yield_now();
                assert_eq!(RUNNING.load(Ordering::SeqCst), 0);
            });
        };
        let beside_once = || {
            tests.beside_others(|| {
                RUNNING.fetch_add(1, Ordering::SeqCst);
                thread::yield_now();
                RUNNING.fetch_sub(1, Ordering::SeqCst);
            });
        };
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..200).for_each(|_| beside_once()));
            }
            scope.spawn(|| (0..50).for_each(|_| alone_once()));
        });
        // One that failed alone keeps nobody out.
        let fails = || tests.alone(|| panic!("it failed"));
        assert!(thread::scope(|scope| scope.spawn(fails).join()).is_err());
        assert_eq!((tests.alone(|| 1), tests.beside_others(|| 2)), (1, 2));
    }

    #[test]
    fn others_run_at_the_same_time() {
        // A test that waits to run alone would keep the second one out.
        let tests = Tests::new();
        let (first, second) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        let meet = || {
            tests.beside_others(|| {
                first.wait();
                second.wait();
            });
        };
        thread::scope(|scope| {
            scope.spawn(meet);
            scope.spawn(meet);
        });
    }
}
