//! The applications at both ends.

use std::time::Duration;
use units::{BitRate, ByteCount, Nanos, nanos};

/// What the sending application writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Application {
    /// As much as the send buffer takes.
    #[default]
    Bulk,
    /// Blocks at a rate (iperf3's `-b`).
    Rate {
        /// Payload rate.
        rate: BitRate,
        /// Bytes of a block, written at once.
        block: ByteCount,
    },
    /// As much as the send buffer takes for a time, then nothing.
    OnOff {
        /// How long it writes; it begins with it.
        on: Duration,
        /// How long it does not.
        off: Duration,
    },
}

/// The end of what an application writes. From then on it writes nothing more, and what has not
/// been sent yet is discarded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteLimit {
    /// Time since it began.
    pub after: Option<Duration>,
    /// Payload, rounded up to whole packets.
    pub bytes: Option<ByteCount>,
}

/// Bulk data is without end.
pub(crate) const ENDLESS: u64 = u64::MAX / 2;

impl Application {
    /// Packets that it has wanted to write `elapsed_ns` after its beginning; for
    /// [`Application::OnOff`], whether it wants to write is [`Application::is_on`].
    pub(crate) fn offered(&self, elapsed_ns: u64, mss: u64) -> u64 {
        match *self {
            Application::Bulk | Application::OnOff { .. } => ENDLESS,
            Application::Rate { rate, block } => {
                let block = block.bytes().max(1);
                let passed = u128::from(elapsed_ns) * u128::from(rate.bps()) / 8_000_000_000;
                let blocks = u64::try_from(passed / u128::from(block)).unwrap_or(u64::MAX);
                // The first block is written at once.
                blocks.saturating_add(1).saturating_mul(block) / mss
            }
        }
    }

    /// Whether it writes at that time.
    pub(crate) fn is_on(&self, elapsed_ns: u64) -> bool {
        match *self {
            Application::OnOff { on, off } => {
                let (on, off) = (nanos(on), nanos(off));
                elapsed_ns % on.saturating_add(off).max(1) < on
            }
            Application::Bulk | Application::Rate { .. } => true,
        }
    }

    /// When it next writes more than it wanted to at `elapsed_ns`; `None`: never, it does
    /// already.
    pub(crate) fn next_write(&self, elapsed_ns: u64) -> Option<u64> {
        match *self {
            Application::Bulk => None,
            Application::Rate { rate, block } => {
                let bits = u128::from(block.bytes().max(1)) * 8_000_000_000;
                let rate = u128::from(rate.bps().max(1));
                let blocks = u128::from(elapsed_ns) * rate / bits + 1;
                u64::try_from((blocks * bits).div_ceil(rate)).ok()
            }
            Application::OnOff { on, off } => {
                let period = nanos(on).saturating_add(nanos(off)).max(1);
                (elapsed_ns / period + 1).checked_mul(period)
            }
        }
    }
}

/// How the receiving application reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reader {
    /// Everything at once.
    #[default]
    Immediate,
    /// A block at most, then not before its time at that rate has passed.
    Rate {
        /// Payload rate.
        rate: BitRate,
        /// Bytes of one read.
        block: ByteCount,
    },
}

impl Reader {
    /// Packets of one read, and the time until the next one may follow.
    pub(crate) fn read(&self, unread: u64, now: Nanos, mss: u64) -> (u64, Nanos) {
        match *self {
            Reader::Immediate => (unread, now),
            Reader::Rate { rate, block } => {
                let packets = unread.min((block.bytes() / mss).max(1));
                let bytes = ByteCount::from_bytes(packets * mss);
                (packets, now.plus(rate.time_for(bytes)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_written_when_their_time_has_come() {
        let rate = BitRate::from_bps(8_000_000);
        let app = Application::Rate { rate, block: ByteCount::from_bytes(10_000) };
        assert_eq!(app.offered(0, 1_000), 10);
        assert_eq!(app.offered(9_999_999, 1_000), 10);
        let next = app.next_write(0).unwrap();
        assert_eq!(next, 10_000_000);
        assert_eq!(app.offered(next, 1_000), 20);
    }

    #[test]
    fn on_and_off_take_turns() {
        let (on, off) = (Duration::from_secs(1), Duration::from_secs(2));
        let app = Application::OnOff { on, off };
        assert!(app.is_on(999_999_999) && !app.is_on(1_000_000_000));
        assert_eq!(app.next_write(1_000_000_000), Some(3_000_000_000));
        assert!(app.is_on(3_000_000_000));
    }
}
