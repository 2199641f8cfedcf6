//! A sending or receiving thread saturates its core.
//!
//! No equation: the goodput is what one core can process.

use crate::causes::{Cause, Observed};
use record::Limit;
use units::percent;

/// Share of the time that a thread waits for a core from which other load on the host matters.
const WAITS: f64 = 0.15;

pub(super) struct Cpu;

impl Cause for Cpu {
    fn limit(&self) -> Limit {
        Limit::Cpu
    }

    fn noun(&self) -> &'static str {
        "the CPU"
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let sends = o.m.sender_core() >= o.m.receiver_core();
        let (who, used, waited) = if sends {
            ("sending", o.m.sender_cpu, o.m.sender_core_wait)
        } else {
            ("receiving", o.m.receiver_cpu, o.m.receiver_core_wait)
        };
        let used = percent(used.unwrap_or(1.0));
        match waited.filter(|waited| *waited >= WAITS) {
            Some(waited) => format!(
                "CPU-limited: the {who} thread used {used} of a core at {} and waited for a core \
                 {} of the time; {}reduce other load on that host. Larger buffers will not help.",
                o.e.goodput,
                percent(waited),
                if o.e.streams > 1 { "use fewer streams (-P), or " } else { "" }
            ),
            None => format!(
                "CPU-limited: the {who} thread used {used} of a core at {}; use a faster core or \
                 more streams (-P). Larger buffers will not help.",
                o.e.goodput
            ),
        }
    }

    fn one_line(&self, _: &Observed<'_>) -> String {
        "CPU-limited: a core is fully used".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::Cpu;
    use crate::{causes::Cause, example::Example};

    #[test]
    fn the_busier_thread_is_named() {
        let mut example = Example::new(9_000.0, 1.0);
        (example.m.sender_cpu, example.m.receiver_cpu) = (Some(0.97), Some(0.99));
        let sentence = Cpu.sentence(&example.observed());
        assert!(sentence.contains("the receiving thread used 99 %"), "{sentence}");
        example.m.receiver_cpu = Some(0.9);
        let sentence = Cpu.sentence(&example.observed());
        assert!(sentence.contains("the sending thread used 97 %"), "{sentence}");
    }
}
