//! Statistics of a UDP receiver: loss, reordering and jitter.

use std::time::Duration;

/// The counters of one stream.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReceiveStats {
    /// Bytes received, with headers of iperf 2.
    pub bytes: u64,
    /// Datagrams received.
    pub received: u64,
    /// The highest sequence number so far: datagrams sent, as far as known.
    pub datagrams: u64,
    /// Datagrams that were reordered or duplicated.
    pub late: u64,
    /// Sequence numbers that were skipped.
    gaps: u64,
    jitter_us: f64,
    transit_us: Option<f64>,
}

impl ReceiveStats {
    /// Counts a datagram: its sequence number, its bytes, and when it was sent and
    /// received, by the clock of either host.
    pub fn arrive(&mut self, number: u64, bytes: u64, sent: Duration, received: Duration) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.received += 1;
        if number > self.datagrams {
            self.gaps = self.gaps.saturating_add(number - self.datagrams - 1);
            self.datagrams = number;
        } else {
            self.late += 1;
        }
        // RFC 1889, section 6.3.1 and appendix A.8: the clock offset cancels out.
        let transit = (received.as_secs_f64() - sent.as_secs_f64()) * 1e6;
        if let Some(before) = self.transit_us.replace(transit) {
            self.jitter_us += ((transit - before).abs() - self.jitter_us) / 16.0;
        }
    }

    /// Datagrams lost; reordered ones are not.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.gaps.saturating_sub(self.late)
    }

    /// Jitter: the smoothed difference of transit times.
    #[must_use]
    pub fn jitter(&self) -> Duration {
        // The peer's timestamps may be arbitrary.
        Duration::try_from_secs_f64(self.jitter_us / 1e6).unwrap_or(Duration::MAX)
    }

    /// The difference to `before`, with the current jitter.
    #[must_use]
    pub fn since(&self, before: &ReceiveStats) -> ReceiveStats {
        ReceiveStats {
            bytes: self.bytes.saturating_sub(before.bytes),
            received: self.received.saturating_sub(before.received),
            datagrams: self.datagrams.saturating_sub(before.datagrams),
            late: self.late.saturating_sub(before.late),
            gaps: self.gaps.saturating_sub(before.gaps),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    #[test]
    fn a_reordered_datagram_is_not_lost() {
        let mut stats = ReceiveStats::default();
        for number in [1, 2, 5, 3, 6] {
            stats.arrive(number, 10, ms(number), ms(number));
        }
        assert_eq!((stats.lost(), stats.late, stats.datagrams), (1, 1, 6));
        assert_eq!((stats.received, stats.bytes), (5, 50));
        let before = stats;
        stats.arrive(8, 10, ms(8), ms(8));
        let since = stats.since(&before);
        assert_eq!((since.lost(), since.datagrams, since.received), (1, 2, 1));
    }

    /// Transit times that alternate by 16 ms: the first step gives 1 ms.
    #[test]
    fn jitter_is_a_sixteenth_of_each_change() {
        let mut stats = ReceiveStats::default();
        stats.arrive(1, 1, ms(0), ms(100));
        assert_eq!(stats.jitter(), Duration::ZERO);
        stats.arrive(2, 1, ms(10), ms(126));
        assert!((stats.jitter().as_secs_f64() - 1e-3).abs() < 1e-6);
        stats.arrive(3, 1, ms(20), ms(136));
        assert!((stats.jitter().as_secs_f64() - 1e-3 * 15.0 / 16.0).abs() < 1e-6);
    }
}
