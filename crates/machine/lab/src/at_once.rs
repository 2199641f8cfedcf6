//! Work that waits for the kernel, at the same time: opening and closing packet sockets with a
//! ring, and closing TUN devices, each waits for an RCU grace period of about 20 ms. Several at
//! once wait for the same ones, so that a lab of many devices starts and ends as fast as one
//! of two.

use std::thread::{Builder, scope};

/// Threads at a time.
const THREADS: usize = 64;

/// What `work` makes of each item, in order; `None` where no thread could be started.
pub(crate) fn each<T: Send, R: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<Option<R>> {
    let (mut items, work) = (items.into_iter(), &work);
    let mut results = Vec::with_capacity(items.len());
    while items.len() > 0 {
        results.extend(scope(|scope| {
            let begin = |item| Builder::new().spawn_scoped(scope, move || work(item));
            let begun: Vec<_> = items.by_ref().take(THREADS).map(begin).collect();
            let ended = begun.into_iter().map(|thread| thread.ok()?.join().ok());
            ended.collect::<Vec<_>>()
        }));
    }
    results
}

/// Drops each of them.
pub(crate) fn drop_each<T: Send>(items: Vec<T>) {
    each(items, drop);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_beyond_the_threads_at_a_time() {
        let count = 2 * THREADS + 1;
        let doubled = each((0..count).collect(), |number| 2 * number);
        assert_eq!(doubled, (0..count).map(|number| Some(2 * number)).collect::<Vec<_>>());
        assert!(each(Vec::<u8>::new(), |number| number).is_empty());
    }
}
