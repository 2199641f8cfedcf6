//! Labs that run at the same time, as far as the machine emulates them.

use host::lock::lock;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use units::BitRate;

/// The most labs, and the sum of their rates: two cores carry twice as much. One that is faster runs
/// alone.
const LABS: usize = 4;
const RATES: u64 = 150_000_000;

/// What waits; how much runs, and the sum of its rates.
struct Queue<T> {
    waiting: Vec<T>,
    running: usize,
    rates: u64,
}

/// Does the work for each, in their order where rates allow it.
pub(crate) fn together<T: Send>(
    waiting: Vec<T>,
    rate: impl Fn(&T) -> BitRate + Sync,
    work: impl Fn(&T) + Sync,
) {
    let queue = Mutex::new(Queue { waiting, running: 0, rates: 0 });
    let ended = Condvar::new();
    let next = || {
        let mut state = lock(&queue);
        while !state.waiting.is_empty() {
            let Queue { running, rates, .. } = *state;
            let fits = |one: &T| running == 0 || rate(one).bps().saturating_add(rates) <= RATES;
            if let Some(at) = state.waiting.iter().position(fits) {
                let one = state.waiting.remove(at);
                state.running += 1;
                state.rates = rates.saturating_add(rate(&one).bps());
                return Some(one);
            }
            state = ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    };
    thread::scope(|scope| {
        for _ in 0..LABS {
            scope.spawn(|| {
                while let Some(one) = next() {
                    work(&one);
                    let mut state = lock(&queue);
                    state.running -= 1;
                    state.rates -= rate(&one).bps();
                    ended.notify_all();
                }
            });
        }
    });
}
