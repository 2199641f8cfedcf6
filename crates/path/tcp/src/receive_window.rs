//! The window that a receiver advertises.

use units::{ByteCount, Nanos, Rtt};

/// The size of the receive window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSize {
    /// Fixed (half of `SO_RCVBUF` as set by the application, doubled by the kernel).
    Fixed(ByteCount),
    /// Begins at 64 KiB and follows twice what the application reads a round trip, up to
    /// this (half of `tcp_rmem`'s third value). It opens by two packets for each that arrives.
    Auto(ByteCount),
}

/// First window of an autotuned connection: half of `tcp_rmem`'s default, 128 KiB.
const INITIAL_BYTES: u64 = 65_536;
/// Packets that it expects to read in the first round trip: the initial window of the sender.
const FIRST_READ: u64 = 10;
/// Packets on top of twice what was read.
const MARGIN: u64 = 16;
/// Packets by which the window opens for each that arrives, as captures of Linux 6.18 show.
const OPENS_BY: u64 = 2;

/// The window, in packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiveWindow {
    /// What it is to become.
    target: u64,
    /// What it is.
    size: u64,
    most: Option<u64>,
    rtt: ReceiverRtt,
    /// When the current measurement began, with the first packet that was read, and what had been
    /// read then.
    since: Option<Nanos>,
    read: u64,
    /// What was read in a round trip so far, at most.
    most_read: u64,
}

impl ReceiveWindow {
    /// `handshake_rtt`: what the handshake showed of the RTT.
    pub(crate) fn new(size: WindowSize, mss: u64, handshake_rtt: Option<Rtt>) -> Self {
        let packets = |bytes: u64| (bytes / mss).max(1);
        let (size, most) = match size {
            WindowSize::Fixed(bytes) => (packets(bytes.bytes()), None),
            WindowSize::Auto(most) => {
                let most = packets(most.bytes());
                (packets(INITIAL_BYTES).min(most), Some(most))
            }
        };
        ReceiveWindow {
            target: size,
            size,
            most,
            rtt: ReceiverRtt::from_handshake(handshake_rtt),
            since: None,
            read: 0,
            most_read: FIRST_READ,
        }
    }

    /// The most that may be unread or on its way, packets.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Packets arrived that were not there before. Returns true while the window opens.
    pub(crate) fn on_arrival(&mut self, packets: u64) -> bool {
        let opens = self.size < self.target;
        self.size = self.target.min(self.size + OPENS_BY * packets);
        opens
    }

    /// A segment that echoes an acknowledgement sent at `echo`; `all_read`: the application
    /// has read what came before it.
    pub(crate) fn on_rtt(&mut self, now: Nanos, echo: Nanos, all_read: bool) {
        self.rtt.sample(now, echo, all_read);
    }

    /// The estimate of the RTT.
    pub(crate) fn rtt(&self) -> Option<Rtt> {
        (self.rtt.estimate_ns > 0).then(|| Rtt::from_nanos(self.rtt.estimate_ns))
    }

    /// The application reads, and has `read` packets in all with the first of this read (Linux's
    /// dynamic right-sizing).
    pub(crate) fn on_read(&mut self, now: Nanos, read: u64) {
        let Some(most) = self.most else { return };
        let rtt_ns = self.rtt.estimate_ns;
        if rtt_ns == 0 || self.since.is_some_and(|since| now.nanos_since(since) < rtt_ns) {
            return;
        }
        let copied = read - self.read;
        if self.since.is_some() && copied > self.most_read {
            // Twice, for the sender doubles its window in slow start; and the growth of
            // the last round trip once more, for it comes a round trip late.
            let window = 2 * copied + MARGIN;
            let growth = window * (copied - self.most_read) / self.most_read.max(1);
            self.target = self.target.max((window + 2 * growth).min(most));
            self.most_read = copied;
        }
        if read > 0 {
            self.since = Some(now);
            self.read = read;
        }
    }
}

/// A tick of the timestamps option: 1 ms.
const TICK_NS: u64 = 1_000_000;

/// The RTT as a receiver estimates it by timestamps (Linux's `tcp_rcv_rtt_update`): at once
/// down to a shorter sample, by an eighth towards a longer one, and only while the
/// application keeps up. It includes the queue, and the time for which the sender had nothing
/// to send.
#[derive(Debug, Clone, Copy, Default)]
struct ReceiverRtt {
    /// Zero: none yet.
    estimate_ns: u64,
    /// The tick echoed by the latest sample.
    echoed: u64,
}

impl ReceiverRtt {
    fn from_handshake(rtt: Option<Rtt>) -> Self {
        let ticks = rtt.map_or(0, |rtt| (rtt.nanos() / TICK_NS).max(1));
        ReceiverRtt { estimate_ns: ticks * TICK_NS, echoed: 0 }
    }

    fn sample(&mut self, now: Nanos, echo: Nanos, all_read: bool) {
        let tick = echo.0 / TICK_NS;
        if tick == self.echoed {
            return;
        }
        self.echoed = tick;
        let sample_ns = (now.0 / TICK_NS).saturating_sub(tick).max(1) * TICK_NS;
        if self.estimate_ns == 0 || sample_ns < self.estimate_ns {
            self.estimate_ns = sample_ns;
        } else if all_read {
            self.estimate_ns = self.estimate_ns - self.estimate_ns / 8 + sample_ns / 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos(ms * TICK_NS)
    }

    #[test]
    fn an_estimate_falls_at_once_and_rises_by_eighths() {
        let mut rtt = ReceiverRtt::default();
        rtt.sample(ms(50), ms(10), true);
        assert_eq!(rtt.estimate_ns, 40 * TICK_NS);
        rtt.sample(ms(100), ms(20), true);
        assert_eq!(rtt.estimate_ns, 45 * TICK_NS);
        rtt.sample(ms(110), ms(30), false);
        assert_eq!(rtt.estimate_ns, 45 * TICK_NS, "data is unread");
        rtt.sample(ms(120), ms(30), true);
        assert_eq!(rtt.estimate_ns, 45 * TICK_NS, "the same echo");
        rtt.sample(ms(70), ms(60), false);
        assert_eq!(rtt.estimate_ns, 10 * TICK_NS);
    }

    #[test]
    fn an_autotuned_window_opens_by_two_packets_for_each_that_arrives() {
        let auto = WindowSize::Auto(ByteCount::from_bytes(1 << 20));
        let mut window = ReceiveWindow::new(auto, 1_000, Some(Rtt::from_micros(40_000)));
        assert!(!window.on_arrival(1) && window.size() == 65);
        // The first packets begin a measurement of 40 ms.
        window.on_read(ms(20), 2);
        window.on_read(ms(59), 20);
        assert_eq!((window.target, window.size()), (65, 65));
        window.on_read(ms(60), 22);
        // Twice what was read and 16, and twice the growth beyond the ten of the first window.
        assert_eq!((window.target, window.size()), (56 + 2 * 56, 65));
        assert!(window.on_arrival(3) && window.size() == 71);
        assert!(window.on_arrival(100) && window.size() == 168);
        assert!(!window.on_arrival(1) && window.size() == 168);

        let nine = WindowSize::Fixed(ByteCount::from_bytes(9_000));
        let mut fixed = ReceiveWindow::new(nine, 1_000, None);
        assert!(!fixed.on_arrival(1) && fixed.size() == 9);
    }

    #[test]
    fn its_resolution_is_a_tick() {
        let mut rtt = ReceiverRtt::default();
        rtt.sample(Nanos(1_100_000), Nanos(1_050_000), true);
        assert_eq!(rtt.estimate_ns, TICK_NS);
    }
}
