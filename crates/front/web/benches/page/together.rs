//! Labs that run at the same time, as far as the machine emulates them.

use host::lock::lock;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use units::BitRate;

/// The most labs, and the sum of their rates: two cores carry twice as much. One that is faster runs
/// alone.
const LABS: usize = 4;
const RATES: u64 = 150_000_000;

/// What waits, and the rates of what runs.
struct Queue<T> {
    waiting: Vec<T>,
    running: Vec<u64>,
}

/// Does the work for each, in their order where rates allow it.
pub(crate) fn together<T: Send>(
    waiting: Vec<T>,
    rate: impl Fn(&T) -> BitRate + Sync,
    work: impl Fn(&T) + Sync,
) {
    let queue = Mutex::new(Queue { waiting, running: Vec::new() });
    let ended = Condvar::new();
    let next = || {
        let mut state = lock(&queue);
        while !state.waiting.is_empty() {
            let left = RATES.saturating_sub(state.running.iter().sum());
            let is_idle = state.running.is_empty();
            let fits = |one: &T| is_idle || rate(one).bps() <= left;
            if let Some(at) = state.waiting.iter().position(fits) {
                let one = state.waiting.remove(at);
                state.running.push(rate(&one).bps());
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
                    let at = state.running.iter().position(|bps| *bps == rate(&one).bps());
                    at.map(|at| state.running.swap_remove(at));
                    ended.notify_all();
                }
            });
        }
    });
}
