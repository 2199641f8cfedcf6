//! What a receiver makes of the datagrams that come.

use std::time::Duration;

/// Counts of one stream.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Account {
    /// Bytes of payload that came.
    pub bytes: u64,
    /// Datagrams that came.
    pub received: u64,
    /// The highest number so far: datagrams sent, as far as one can know.
    pub datagrams: u64,
    /// Datagrams that came after a later one, or twice.
    pub late: u64,
    /// Numbers jumped over when they were due.
    gaps: u64,
    jitter_us: f64,
    transit_us: Option<f64>,
}

impl Account {
    /// Takes in a datagram with its number, its bytes, and when it was sent and
    /// came, each by its own end's clock.
    pub fn arrive(&mut self, number: u64, bytes: u64, sent: Duration, came: Duration) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.received += 1;
        if number > self.datagrams {
            self.gaps = self.gaps.saturating_add(number - self.datagrams - 1);
            self.datagrams = number;
        } else {
            self.late += 1;
        }
        // RFC 1889, section 6.3.1 and appendix A.8: the clocks' difference
        // cancels out.
        let transit = (came.as_secs_f64() - sent.as_secs_f64()) * 1e6;
        if let Some(before) = self.transit_us.replace(transit) {
            self.jitter_us += ((transit - before).abs() - self.jitter_us) / 16.0;
        }
    }

    /// Datagrams that have not come: one that comes late was not lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.gaps.saturating_sub(self.late)
    }

    /// The smoothed difference of transit times.
    #[must_use]
    pub fn jitter(&self) -> Duration {
        // A stamp may claim any second since 1970; that is no century of jitter.
        Duration::try_from_secs_f64(self.jitter_us / 1e6).unwrap_or(Duration::MAX)
    }

    /// What came since `before`; the jitter as of now.
    #[must_use]
    pub fn since(&self, before: &Account) -> Account {
        Account {
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
    fn a_late_one_was_not_lost() {
        let mut account = Account::default();
        for number in [1, 2, 5, 3, 6] {
            account.arrive(number, 10, ms(number), ms(number));
        }
        assert_eq!((account.lost(), account.late, account.datagrams), (1, 1, 6));
        assert_eq!((account.received, account.bytes), (5, 50));
        let before = account;
        account.arrive(8, 10, ms(8), ms(8));
        let since = account.since(&before);
        assert_eq!((since.lost(), since.datagrams, since.received), (1, 2, 1));
    }

    /// Transit times that alternate by 16 ms: the first step gives 1 ms.
    #[test]
    fn jitter_is_a_sixteenth_of_each_change() {
        let mut account = Account::default();
        account.arrive(1, 1, ms(0), ms(100));
        assert_eq!(account.jitter(), Duration::ZERO);
        account.arrive(2, 1, ms(10), ms(126));
        assert!((account.jitter().as_secs_f64() - 1e-3).abs() < 1e-6);
        account.arrive(3, 1, ms(20), ms(136));
        assert!((account.jitter().as_secs_f64() - 1e-3 * 15.0 / 16.0).abs() < 1e-6);
    }
}
