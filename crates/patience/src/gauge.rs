//! How long the machine stood still.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long the gauge sleeps at a time: what it oversleeps is what a thread of
/// the test would have overslept.
const NAP: Duration = Duration::from_millis(2);

/// A thread that sleeps, and notes how much too late it woke.
#[derive(Debug)]
pub struct Gauge {
    over: Arc<AtomicBool>,
    worst_us: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Gauge {
    /// Starts one.
    pub fn start() -> Self {
        let (over, worst_us) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ends, worst) = (Arc::clone(&over), Arc::clone(&worst_us));
        let thread = thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let before = now();
                thread::sleep(NAP);
                let late = now().duration_since(before).saturating_sub(NAP);
                worst.fetch_max(
                    u64::try_from(late.as_micros()).unwrap_or(u64::MAX),
                    Ordering::Relaxed,
                );
            }
        });
        Gauge { over, worst_us, thread: Some(thread) }
    }

    /// The latest wake-up since the start.
    pub fn worst(&self) -> Duration {
        Duration::from_micros(self.worst_us.load(Ordering::Relaxed))
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn now() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "the gauge is a clock, and nothing of the program uses it"
    )]
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tells_how_late_its_thread_woke() {
        let gauge = Gauge::start();
        thread::sleep(Duration::from_millis(50));
        let worst = gauge.worst();
        assert!(worst > Duration::ZERO, "no sleep ends on the microsecond");
    }
}
