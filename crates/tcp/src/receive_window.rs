//! The window that a receiver advertises.

use units::{ByteCount, Nanos};

/// The size of the receive window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSize {
    /// Fixed (half of `SO_RCVBUF` as set by the application, doubled by the kernel).
    Fixed(ByteCount),
    /// Begins at 64 KiB and follows twice what the application reads a round trip, up to
    /// this (half of `tcp_rmem`'s third value).
    Auto(ByteCount),
}

/// First window of an autotuned connection: half of `tcp_rmem`'s default, 128 KiB.
const INITIAL_BYTES: u64 = 65_536;
/// Packets on top of twice what was read.
const MARGIN: u64 = 16;

/// The window, in packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiveWindow {
    size: u64,
    most: Option<u64>,
    /// Smoothed RTT as the receiver measures it by timestamps; zero: none yet.
    rtt_ns: u64,
    /// When the current measurement began, and what had been read then.
    since: Nanos,
    read: u64,
    /// What was read in a round trip so far, at most.
    most_read: u64,
}

impl ReceiveWindow {
    pub(crate) fn new(size: WindowSize, mss: u64) -> Self {
        let packets = |bytes: u64| (bytes / mss).max(1);
        let (size, most) = match size {
            WindowSize::Fixed(bytes) => (packets(bytes.bytes()), None),
            WindowSize::Auto(most) => {
                let most = packets(most.bytes());
                (packets(INITIAL_BYTES).min(most), Some(most))
            }
        };
        ReceiveWindow { size, most, rtt_ns: 0, since: Nanos(0), read: 0, most_read: size / 2 }
    }

    /// The most that may be unread or on its way, packets.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// A round trip took that long.
    pub(crate) fn on_rtt(&mut self, rtt_ns: u64) {
        self.rtt_ns =
            if self.rtt_ns == 0 { rtt_ns } else { self.rtt_ns - self.rtt_ns / 8 + rtt_ns / 8 };
    }

    /// The application has read `read` packets in all (Linux's dynamic right-sizing).
    pub(crate) fn on_read(&mut self, now: Nanos, read: u64) {
        let Some(most) = self.most else { return };
        if self.rtt_ns == 0 || now.nanos_since(self.since) < self.rtt_ns {
            return;
        }
        let copied = read - self.read;
        if copied > self.most_read {
            // Twice, for the sender doubles its window in slow start; and the growth of
            // the last round trip once more, for it comes a round trip late.
            let window = 2 * copied + MARGIN;
            let growth = window * (copied - self.most_read) / self.most_read.max(1);
            self.size = self.size.max((window + 2 * growth).min(most));
            self.most_read = copied;
        }
        self.since = now;
        self.read = read;
    }
}
