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
    stop: Arc<AtomicBool>,
    worst_us: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Gauge {
    /// Starts the thread.
    pub fn start() -> Self {
        let (stop, worst_us) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, worst) = (Arc::clone(&stop), Arc::clone(&worst_us));
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let before = now();
                thread::sleep(SLEEP);
                let late = now().duration_since(before).saturating_sub(SLEEP);
                worst.fetch_max(
                    u64::try_from(late.as_micros()).unwrap_or(u64::MAX),
                    Ordering::Relaxed,
                );
            }
        });
        Gauge { stop, worst_us, thread: Some(thread) }
    }

    /// The longest stall since the start: the delay of the latest wake-up.
    pub fn worst(&self) -> Duration {
        Duration::from_micros(self.worst_us.load(Ordering::Relaxed))
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
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
}
