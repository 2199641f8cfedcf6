//! How long the machine stalled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Length of one sleep. What the gauge oversleeps, a thread of the test would
/// have overslept too.
const SLEEP: Duration = Duration::from_millis(2);

/// A thread that sleeps and records how late it woke.
#[derive(Debug)]
pub struct Gauge {
    started: Instant,
    stalls: Arc<Stalls>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread has seen, in microseconds since the start.
#[derive(Debug, Default)]
struct Stalls {
    stop: AtomicBool,
    /// When the sleep began that has not ended.
    sleeping_since: AtomicU64,
    worst: AtomicU64,
}

impl Gauge {
    /// Starts the thread.
    pub fn start() -> Self {
        let (started, stalls) = (now(), Arc::<Stalls>::default());
        let seen = Arc::clone(&stalls);
        let thread = thread::spawn(move || {
            while !seen.stop.load(Ordering::Relaxed) {
                let begun = micros_since(started);
                seen.sleeping_since.store(begun, Ordering::Relaxed);
                thread::sleep(SLEEP);
                seen.worst.fetch_max(late(begun, micros_since(started)), Ordering::Relaxed);
            }
        });
        Gauge { started, stalls, thread: Some(thread) }
    }

    /// The longest stall since the start: the delay of the latest wake-up, or of the one that is
    /// overdue. A stall that ends may wake the test before it wakes the gauge.
    pub fn worst(&self) -> Duration {
        let since = self.stalls.sleeping_since.load(Ordering::Relaxed);
        let overdue = late(since, micros_since(self.started));
        Duration::from_micros(overdue.max(self.stalls.worst.load(Ordering::Relaxed)))
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.stalls.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How long after its due time a sleep ended.
fn late(begun: u64, ended: u64) -> u64 {
    ended.saturating_sub(begun).saturating_sub(micros(SLEEP))
}

fn micros_since(started: Instant) -> u64 {
    micros(now().duration_since(started))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn now() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "the gauge measures real time, and only tests use it"
    )]
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_measures_how_late_its_thread_woke() {
        let gauge = Gauge::start();
        thread::sleep(Duration::from_millis(50));
        let worst = gauge.worst();
        assert!(worst > Duration::ZERO, "a sleep never ends on the exact microsecond");
    }

    #[test]
    fn a_stall_counts_before_its_thread_wakes() {
        let gauge = Gauge { started: now(), stalls: Arc::default(), thread: None };
        thread::sleep(Duration::from_millis(20));
        assert!(gauge.worst() >= Duration::from_millis(18), "{:?}", gauge.worst());
    }
}
