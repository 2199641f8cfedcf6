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

/// The least delay is that of this time, and of as much before: two clocks drift apart by some
/// 50 us a second.
const WINDOW_NS: u64 = 60_000_000_000;

/// The shortest time by which a rate is judged, in ns.
const SHORTEST_NS: f64 = 2e8;

/// A host's timestamps.
#[derive(Debug, Clone, Default)]
pub(crate) struct OneWayDelay {
    /// When the first packet passed.
    first_ns: Option<u64>,
    /// The last value, and the ticks from the first one to it: values wrap, those of 1 us after
    /// 72 minutes.
    last: u32,
    ticks: i64,
    /// The least delay for each tick since the first packet's, in ns: of this window and of the
    /// one before.
    least: [[f64; TICKS_NS.len()]; 2],
    window: u64,
    /// Which of the ticks it is.
    tick: Option<usize>,
    /// When the rate is judged next, in ns since the first packet.
    next_ns: f64,
}

impl OneWayDelay {
    /// Takes a packet: its delay beyond the least so far, in ns, once the tick is known.
    pub(crate) fn add(&mut self, value: u32, now_ns: u64) -> Option<u64> {
        let Some(first_ns) = self.first_ns else {
            (self.first_ns, self.last, self.next_ns) = (Some(now_ns), value, SHORTEST_NS);
            return None;
        };
        self.ticks = self.ticks.saturating_add(i64::from(value.wrapping_sub(self.last) as i32));
        self.last = value;
        let since_ns = now_ns.saturating_sub(first_ns);
        let (elapsed, ticks) = (since_ns as f64, self.ticks as f64);
        let delays = TICKS_NS.map(|tick| elapsed - ticks * tick);
        let window = since_ns / WINDOW_NS;
        if window > self.window {
            self.window = window;
            self.least = [delays, self.least[0]];
        }
        for (least, delay) in self.least[0].iter_mut().zip(delays) {
            *least = least.min(delay);
        }
        if self.tick.is_none() && elapsed >= self.next_ns {
            // A queue that fills or drains meanwhile looks like another rate.
            self.next_ns = 2.0 * elapsed;
            let is_near = |tick: &f64| (ticks * tick / elapsed - 1.0).abs() < TOLERANCE;
            self.tick = TICKS_NS.iter().position(is_near);
        }
        let tick = self.tick?;
        let least = self.least.iter().filter_map(|of| of.get(tick)).copied().reduce(f64::min)?;
        Some((delays.get(tick)? - least) as u64)
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

    /// Packets every 100 ms for two hours, from clocks that drift by 50 ppm.
    #[test]
    fn values_may_wrap_and_clocks_may_drift() {
        for tick_ns in [1_000, 1_000_000] {
            for drift_ns in [0, 5_000] {
                let mut delays = OneWayDelay::default();
                let most = (0..72_000_u64).filter_map(|n| {
                    let sent_ns = n * 100_000_000;
                    delays.add((sent_ns / tick_ns) as u32, sent_ns + n * drift_ns)
                });
                let most_ms = most.max().map(|ns| ns / 1_000_000);
                assert!(most_ms.is_some_and(|ms| ms <= 7), "{tick_ns} {drift_ns}: {most_ms:?}");
            }
        }
    }

    #[test]
    fn a_queue_that_fills_at_first_does_not_hide_the_tick() {
        let late = last_ms(1_000_000, |ms| ms.min(400));
        assert_eq!(late, Some(400));
    }
}
