//! How much longer packets of one direction take than the fastest of them: the times at which
//! a host stamped them (RFC 7323) beside those at which they passed.
//!
//! The clocks need not agree, only run at the same rate. RFC 7323 allows ticks of 1 ms to 1 s;
//! those that hosts have are told apart by how far the values have come.

/// Ticks of the hosts in use, in ns: Linux (also since 6.7 where a route asks for it), macOS and
/// FreeBSD; Linux of 250 Hz and of 100 Hz.
const TICKS_NS: [f64; 4] = [1e6, 1e3, 4e6, 1e7];

/// How far a rate may be off: a queue that fills makes the values come late.
const TOLERANCE: f64 = 0.3;

/// The shortest time by which a rate is judged, in ns.
const SHORTEST_NS: f64 = 2e8;

/// A host's timestamps.
#[derive(Debug, Clone, Default)]
pub(crate) struct OneWayDelay {
    /// A value, and when it passed.
    first: Option<(u32, u64)>,
    /// The least delay for each tick, since the first packet's, in ns.
    least: [f64; TICKS_NS.len()],
    /// Which of the ticks it is.
    tick: Option<usize>,
    /// When the rate is judged next, in ns since the first packet.
    next_ns: f64,
}

impl OneWayDelay {
    /// Takes a packet: its delay beyond the least so far, in ns, once the tick is known.
    pub(crate) fn add(&mut self, value: u32, now_ns: u64) -> Option<u64> {
        let Some((first, then_ns)) = self.first else {
            self.first = Some((value, now_ns));
            self.next_ns = SHORTEST_NS;
            return None;
        };
        let ticks = f64::from(value.wrapping_sub(first) as i32);
        let elapsed = now_ns.saturating_sub(then_ns) as f64;
        let delay = |tick: f64| elapsed - ticks * tick;
        for (least, tick) in self.least.iter_mut().zip(TICKS_NS) {
            *least = least.min(delay(tick));
        }
        if self.tick.is_none() && elapsed >= self.next_ns {
            // A queue that fills or drains meanwhile looks like another rate.
            self.next_ns = 2.0 * elapsed;
            let is_near = |tick: &f64| (ticks * tick / elapsed - 1.0).abs() < TOLERANCE;
            self.tick = TICKS_NS.iter().position(is_near);
        }
        let tick = self.tick?;
        let (length, least) = (TICKS_NS.get(tick)?, self.least.get(tick)?);
        Some((delay(*length) - least) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets every ms, with that delay in ms after a base of 40.
    fn last_ms(tick_ns: u64, delay_ms: impl Fn(u64) -> u64) -> Option<u64> {
        let mut delays = OneWayDelay::default();
        let all = (0..3000_u64).map(|ms| {
            let value = (7_u64 << 31) + ms * 1_000_000 / tick_ns;
            delays.add(value as u32, (ms + 40 + delay_ms(ms)) * 1_000_000)
        });
        all.last().flatten().map(|ns| ns / 1_000_000)
    }

    #[test]
    fn a_delay_is_what_exceeds_the_least() {
        for tick in [1_000_000, 1_000, 4_000_000, 10_000_000] {
            let late = last_ms(tick, |ms| if ms > 2000 { 25 } else { 3 });
            let error = (tick / 1_000_000).max(1);
            assert!(late.is_some_and(|ms| ms.abs_diff(22) <= error), "{tick}: {late:?}");
        }
        assert_eq!(last_ms(3_000_000, |_| 0), None, "no host has that tick");
    }

    #[test]
    fn a_queue_that_fills_at_first_does_not_hide_the_tick() {
        let late = last_ms(1_000_000, |ms| ms.min(400));
        assert_eq!(late, Some(400));
    }
}
