//! Which tests of a process run beside each other.

use std::sync::{PoisonError, RwLock};

/// Held shared by each test, and exclusively by one that runs [`alone`]. It protects
/// nothing that a failed test could have left half done: that it is poisoned means nothing.
static TESTS: RwLock<()> = RwLock::new(());

/// Runs a test beside others, and never while one runs [`alone`].
pub fn beside_others<T>(test: impl FnOnce() -> T) -> T {
    let _shared = TESTS.read().unwrap_or_else(PoisonError::into_inner);
    test()
}

/// Runs a test while no other one does: it loads the machine, or measures what others
/// would change, such as the memory of the process.
pub fn alone<T>(test: impl FnOnce() -> T) -> T {
    let _exclusive = TESTS.write().unwrap_or_else(PoisonError::into_inner);
    test()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    #[test]
    fn nothing_runs_beside_one_that_is_alone() {
        static RUNNING: AtomicU32 = AtomicU32::new(0);
        let alone_once = || {
            alone(|| {
                assert_eq!(RUNNING.load(Ordering::SeqCst), 0);
                thread::yield_now();
                assert_eq!(RUNNING.load(Ordering::SeqCst), 0);
            });
        };
        let beside_once = || {
            beside_others(|| {
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
        let failed = thread::spawn(|| alone(|| panic!("it failed"))).join();
        assert!(failed.is_err());
        assert_eq!((alone(|| 1), beside_others(|| 2)), (1, 2));
    }

    #[test]
    fn others_run_at_the_same_time() {
        let (first, second) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        let meet = || {
            beside_others(|| {
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
