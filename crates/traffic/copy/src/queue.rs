//! Queues between threads, bounded by bytes.

use host::clock;
use host::lock::lock;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A queue whose items have at most so many bytes together, or one item.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    capacity: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    end: End,
    /// Time that pushes waited for room.
    full: Duration,
    /// Since when it has held its capacity or more, and for how long before.
    filled_since: Option<Instant>,
    filled: Duration,
    /// How many are at work on items to push.
    producers: usize,
    /// Since when it has been empty although somebody was, and for how long before.
    empty_since: Option<Instant>,
    empty: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// More may follow.
    Open,
    /// What it holds is still taken.
    Finished,
    /// Nothing is taken any more.
    Closed,
}

/// The queue is closed or finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended;

impl<T> Queue<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        let state = State {
            items: VecDeque::new(),
            bytes: 0,
            end: End::Open,
            full: Duration::ZERO,
            filled_since: None,
            filled: Duration::ZERO,
            producers: 0,
            empty_since: None,
            empty: Duration::ZERO,
        };
        Queue { state: Mutex::new(state), changed: Condvar::new(), capacity }
    }

    /// Adds an item, as soon as there is room.
    pub(crate) fn push(&self, item: T, bytes: usize) -> Result<(), Ended> {
        let mut item = item;
        loop {
            match self.push_within(item, bytes, Duration::from_secs(1))? {
                None => return Ok(()),
                Some(back) => item = back,
            }
        }
    }

    /// Adds an item if there is room within that time, else gives it back.
    pub(crate) fn push_within(
        &self,
        item: T,
        bytes: usize,
        time: Duration,
    ) -> Result<Option<T>, Ended> {
        let mut state = lock(&self.state);
        let began = clock::now();
        while state.end == End::Open && state.bytes > 0 && state.bytes + bytes > self.capacity {
            let left = time.saturating_sub(began.elapsed());
            if left.is_zero() {
                state.full += began.elapsed();
                return Ok(Some(item));
            }
            let (woken, _) =
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = woken;
        }
        if state.end != End::Open {
            return Err(Ended);
        }
        state.full += began.elapsed();
        add(&mut state, item, bytes, self.capacity);
        drop(state);
        self.changed.notify_all();
        Ok(None)
    }

    /// Adds an item even where there is no room.
    pub(crate) fn force(&self, item: T, bytes: usize) -> Result<(), Ended> {
        let mut state = lock(&self.state);
        if state.end != End::Open {
            return Err(Ended);
        }
        add(&mut state, item, bytes, self.capacity);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Takes an item if there is one.
    pub(crate) fn try_pop(&self) -> Option<T> {
        let mut state = lock(&self.state);
        let item = take(&mut state, self.capacity);
        let is_awaited = state.end == End::Open && state.producers > 0;
        if item.is_none() && is_awaited && state.empty_since.is_none() {
            state.empty_since = Some(clock::now());
        }
        drop(state);
        if item.is_some() {
            self.changed.notify_all();
        }
        item
    }

    /// Somebody is at work on items to push.
    pub(crate) fn begin_producing(&self) {
        lock(&self.state).producers += 1;
    }

    /// Somebody has pushed theirs.
    pub(crate) fn end_producing(&self) {
        let mut state = lock(&self.state);
        state.producers = state.producers.saturating_sub(1);
        if state.producers == 0 {
            end_empty(&mut state);
        }
    }

    /// Waits for an item; `None` once the queue has ended, or after `timeout`.
    pub(crate) fn pop(&self, timeout: Duration) -> Option<T> {
        let until = clock::now() + timeout;
        let mut state = lock(&self.state);
        loop {
            if let Some(item) = take(&mut state, self.capacity) {
                drop(state);
                self.changed.notify_all();
                return Some(item);
            }
            let left = until.saturating_duration_since(clock::now());
            if state.end != End::Open || left.is_zero() {
                return None;
            }
            let (woken, _) =
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = woken;
        }
    }

    /// Whether a push would wait.
    pub(crate) fn is_full(&self) -> bool {
        lock(&self.state).bytes >= self.capacity
    }

    /// Whether nothing more is pushed.
    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.state).end != End::Open
    }

    /// Nothing more is pushed; what it holds is still taken.
    pub(crate) fn finish(&self) {
        let mut state = lock(&self.state);
        if state.end == End::Open {
            state.end = End::Finished;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Nothing is pushed or taken any more.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.end = End::Closed;
        state.items.clear();
        state.bytes = 0;
        drop(state);
        self.changed.notify_all();
    }

    /// Whether it has ended and holds nothing.
    pub(crate) fn is_over(&self) -> bool {
        let state = lock(&self.state);
        state.end != End::Open && state.items.is_empty()
    }

    /// How long it held its capacity or more.
    pub(crate) fn filled(&self) -> Duration {
        let state = lock(&self.state);
        state.filled + state.filled_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// How long pushes waited for room, and how long it was empty although somebody was at
    /// work on items.
    pub(crate) fn waits(&self) -> (Duration, Duration) {
        let state = lock(&self.state);
        let now_empty = state.empty_since.map_or(Duration::ZERO, |since| since.elapsed());
        (state.full, state.empty + now_empty)
    }
}

fn end_empty<T>(state: &mut State<T>) {
    if let Some(since) = state.empty_since.take() {
        state.empty += since.elapsed();
    }
}

fn add<T>(state: &mut State<T>, item: T, bytes: usize, capacity: usize) {
    end_empty(state);
    state.bytes += bytes;
    state.items.push_back((item, bytes));
    if state.bytes >= capacity && state.filled_since.is_none() {
        state.filled_since = Some(clock::now());
    }
}

fn take<T>(state: &mut State<T>, capacity: usize) -> Option<T> {
    if state.end == End::Closed {
        return None;
    }
    let (item, bytes) = state.items.pop_front()?;
    state.bytes -= bytes;
    if state.bytes < capacity
        && let Some(since) = state.filled_since.take()
    {
        state.filled += since.elapsed();
    }
    Some(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(5);

    #[test]
    fn it_is_empty_only_while_somebody_works_on_items() {
        let queue = Queue::<u8>::new(10);
        assert_eq!(queue.try_pop(), None);
        std::thread::sleep(SOON);
        assert_eq!(queue.waits().1, Duration::ZERO);
        queue.begin_producing();
        assert_eq!(queue.try_pop(), None);
        std::thread::sleep(SOON);
        queue.end_producing();
        let empty = queue.waits().1;
        assert!(empty >= SOON);
        assert_eq!(queue.try_pop(), None);
        std::thread::sleep(SOON);
        assert_eq!(queue.waits().1, empty);
    }

    #[test]
    fn bytes_are_bounded_and_an_end_wakes_everybody() {
        let queue = Queue::new(10);
        assert_eq!(queue.push('a', 100), Ok(()));
        assert!(queue.is_full());
        std::thread::scope(|scope| {
            let pushed = scope.spawn(|| queue.push('b', 1));
            assert_eq!(queue.pop(SOON), Some('a'));
            assert_eq!(pushed.join().ok(), Some(Ok(())));
        });
        queue.finish();
        assert_eq!(queue.push('c', 1), Err(Ended));
        assert!(!queue.is_over());
        assert_eq!((queue.try_pop(), queue.pop(SOON)), (Some('b'), None));
        assert!(queue.is_over());
        let queue = Queue::new(10);
        assert_eq!(queue.push('a', 100), Ok(()));
        std::thread::scope(|scope| {
            let pushed = scope.spawn(|| queue.push('b', 1));
            queue.close();
            assert_eq!(pushed.join().ok(), Some(Err(Ended)));
        });
        assert_eq!(queue.pop(SOON), None);
    }
}
