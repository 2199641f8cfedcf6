//! The receiving end of a connection.

use crate::application::Reader;
use crate::receive_window::{ReceiveWindow, WindowSize};
use crate::sack_compression::SackCompression;
use crate::{Acknowledgement, MAX_SACK_BLOCKS, PacketRun, SackBlocks, Segments};
use runs::RunSet;
use units::{Nanos, Rtt, WindowChange};

/// An acknowledgement is delayed for this long at most (Linux's least; RFC 1122: 500 ms).
const DELAY_NS: u64 = 40_000_000;
/// Packets that are acknowledged together at least (RFC 5681 section 4.2).
const EVERY: u64 = 2;
/// Acknowledgements that are not delayed at the beginning of a connection, after a pause and
/// after duplicates (Linux's quick acknowledgements).
const QUICK: u32 = 16;
/// A pause is longer than a retransmission timeout: the RTT and this.
const PAUSE_NS: u64 = 200_000_000;

/// Settings of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// Payload of a packet, bytes; as the sender's.
    pub mss: u32,
    /// The receive window.
    pub window: WindowSize,
    /// How the application reads.
    pub reader: Reader,
    /// What the handshake showed of the RTT.
    pub handshake_rtt: Option<Rtt>,
}

/// The receiving end of a connection.
#[derive(Debug)]
pub struct Receiver {
    mss: u64,
    window: ReceiveWindow,
    reader: Reader,
    /// The next packet expected.
    next: u64,
    /// Packets that arrived beyond it.
    beyond: RunSet,
    /// A packet of each of the blocks that changed last, the newest first.
    recent: [Option<u64>; MAX_SACK_BLOCKS],
    /// The packets that arrived twice, in the segments last received.
    duplicate: PacketRun,
    /// Packets read by the application.
    read: u64,
    /// When it may read again.
    read_at: Nanos,
    /// The packet before which the advertised window ends.
    edge: u64,
    /// Packets that arrived in order since the last acknowledgement.
    pending: u64,
    /// One of them has PSH.
    pushed: bool,
    /// An acknowledgement is due at once.
    due: bool,
    /// The delayed one's time.
    delayed: Option<Nanos>,
    quick: u32,
    /// When data arrived last.
    arrived_at: Nanos,
    compression: SackCompression,
    /// The sender's timestamp to echo.
    echo: Nanos,
    /// The next packet expected at the last acknowledgement.
    acknowledged: u64,
    marked: u64,
    granted: WindowChange,
    duplicates: u64,
    arrived: u64,
    out_of_order: u64,
}

impl Receiver {
    /// A receiver with nothing received.
    #[must_use]
    pub fn new(config: ReceiverConfig) -> Self {
        let mss = u64::from(config.mss.max(1));
        let window = ReceiveWindow::new(config.window, mss, config.handshake_rtt);
        Receiver {
            mss,
            reader: config.reader,
            next: 0,
            beyond: RunSet::default(),
            recent: [None; MAX_SACK_BLOCKS],
            duplicate: PacketRun::default(),
            read: 0,
            read_at: Nanos(0),
            edge: window.size(),
            window,
            pending: 0,
            pushed: false,
            due: false,
            delayed: None,
            quick: QUICK,
            arrived_at: Nanos(0),
            compression: SackCompression::default(),
            echo: Nanos(0),
            acknowledged: 0,
            marked: 0,
            granted: WindowChange::NONE,
            duplicates: 0,
            arrived: 0,
            out_of_order: 0,
        }
    }

    /// Packets that arrived in order.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.next
    }

    /// Packets that the application has read.
    #[must_use]
    pub const fn read(&self) -> u64 {
        self.read
    }

    /// The advertised window, packets from the next expected one on.
    #[must_use]
    pub const fn window(&self) -> u64 {
        self.edge - self.next
    }

    /// Packets that arrived twice.
    #[must_use]
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Data packets that arrived, in whatever order.
    #[must_use]
    pub const fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Of those, packets that arrived after a hole (`tcpi_rcv_ooopack`).
    #[must_use]
    pub const fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// The RTT as the receiver estimates it by timestamps (`tcpi_rcv_rtt`).
    #[must_use]
    pub fn rtt(&self) -> Option<Rtt> {
        self.window.rtt()
    }

    /// Routers granted that with segments that arrived (XCP).
    pub fn on_router_feedback(&mut self, change: WindowChange) {
        self.granted = self.granted + change;
    }

    /// Segments arrived together; `marked` with CE.
    pub fn on_segments(&mut self, now: Nanos, segments: &Segments, marked: bool) {
        let run = segments.run;
        if segments.echo > Nanos(0) && !run.is_empty() {
            self.window.on_rtt(now, segments.echo, self.read == self.next);
        }
        if run.is_empty() {
            // A window probe.
            self.due = true;
            return;
        }
        if marked {
            self.marked += run.len();
        }
        if run.start <= self.acknowledged && segments.sent > self.echo {
            self.echo = segments.sent;
        }
        self.arrived += run.len();
        self.end_pause(now);
        if run.start > self.next {
            self.out_of_order += run.len();
        }
        let mut fresh = 0;
        let ahead = PacketRun::new(run.start.max(self.next), run.end);
        if !ahead.is_empty() {
            self.beyond.gaps(ahead, |gap| fresh += gap.len());
        }
        if fresh < run.len() {
            self.duplicates += run.len() - fresh;
            self.note_duplicate(run);
            self.quick = QUICK;
            self.due = true;
        }
        if fresh == 0 {
            return;
        }
        // Linux acknowledges each packet while the window opens, and so announces it.
        if self.window.on_arrival(fresh) {
            self.quick = self.quick.max(1);
        }
        if run.start <= self.next {
            self.pushed |= segments.pushed;
        }
        if run.start <= self.next && self.beyond.is_empty() {
            self.advance(run.end);
        } else {
            //= https://www.rfc-editor.org/rfc/rfc5681#section-4.2
            //# Out-of-order data segments SHOULD be acknowledged immediately, in order to
            //# accelerate loss recovery.
            let blocks = self.beyond.iter().len();
            self.beyond.insert(ahead);
            self.note_recent(ahead.start);
            let first = self.beyond.first().filter(|first| first.start <= self.next);
            if let Some(first) = first {
                // A hole is filled: acknowledged at once, as RFC 5681 section 4.2 asks.
                self.due = true;
                self.beyond.remove_before(first.end);
                self.advance(first.end);
            } else {
                // What no block of an acknowledgement would report is not held back.
                let unreported = self.beyond.iter().len() > blocks && blocks >= MAX_SACK_BLOCKS;
                let rtt = self.window.rtt();
                self.due |= unreported
                    || self.quick > 0
                    || self.compression.on_out_of_order(now, self.next, rtt);
            }
        }
        self.read_now(now);
        if self.due || self.compression.due().is_some() {
            return;
        }
        //= https://www.rfc-editor.org/rfc/rfc5681#section-4.2
        //# Specifically, an ACK SHOULD be generated for at least every second full-sized
        //# segment, and MUST be generated within 500 ms of the arrival of the first
        //# unacknowledged packet.
        if self.pending >= EVERY || self.quick > 0 {
            self.due = true;
        } else if self.delayed.is_none() {
            self.delayed = Some(now.plus_nanos(DELAY_NS));
        }
    }

    /// The acknowledgement that is due now, if any.
    pub fn acknowledge(&mut self, now: Nanos) -> Option<Acknowledgement> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        self.quick = self.quick.saturating_sub(1);
        self.pending = 0;
        self.pushed = false;
        self.delayed = None;
        self.compression.on_acknowledgement();
        self.edge = self.edge.max(self.window_end());
        self.acknowledged = self.next;
        Some(Acknowledgement {
            next: self.next,
            window: self.window(),
            sacks: self.sacks(),
            duplicate: std::mem::take(&mut self.duplicate),
            marked: self.marked,
            granted: self.granted,
            sent: now,
            echo: self.echo,
        })
    }

    /// When to call [`Receiver::on_timeout`] next, unless segments come earlier.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Nanos> {
        let read = (self.read < self.next).then_some(self.read_at);
        [self.delayed, self.compression.due(), read].into_iter().flatten().min()
    }

    /// A moment of [`Receiver::next_timeout`] has come.
    pub fn on_timeout(&mut self, now: Nanos) {
        if self.delayed.take_if(|at| *at <= now).is_some() {
            self.due = true;
        }
        self.due |= self.compression.due().is_some_and(|at| at <= now);
        self.read_now(now);
    }

    fn end_pause(&mut self, now: Nanos) {
        let rtt_ns = self.window.rtt().map_or(0, Rtt::nanos);
        if now.nanos_since(self.arrived_at) > rtt_ns + PAUSE_NS {
            self.quick = QUICK;
        }
        self.arrived_at = now;
    }

    fn advance(&mut self, next: u64) {
        self.pending += next - self.next;
        self.next = next;
    }

    /// The application reads what it may.
    fn read_now(&mut self, now: Nanos) {
        let before = self.read;
        while self.read < self.next && self.read_at <= now {
            let (packets, again) = self.reader.read(self.next - self.read, now, self.mss);
            self.read += packets;
            self.read_at = again;
        }
        // Linux looks after each skb it copies, and so counts all behind the first one in the next
        // round trip: what waited behind a hole with what came after it. Here an skb is a packet.
        if self.read > before {
            self.window.on_read(now, before + 1);
        }
        // What was pushed is acknowledged as soon as the application has read everything, for the
        // sender may be waiting for that.
        self.due |= self.pushed && self.read == self.next;
        // A window update, when the window can be doubled (RFC 9293 section 3.8.6.2.2;
        // Linux's tcp_cleanup_rbuf).
        let advertised = self.window();
        let possible = self.window_end().saturating_sub(self.next);
        if possible > 0 && possible >= 2 * advertised && 2 * advertised <= self.window.size() {
            self.due = true;
        }
    }

    /// Where the window would end that leaves room for what is unread.
    fn window_end(&self) -> u64 {
        self.read + self.window.size()
    }

    /// The newest block first, then those reported before (RFC 2018 section 4).
    fn sacks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if self.beyond.is_empty() {
            return blocks;
        }
        //= https://www.rfc-editor.org/rfc/rfc2018#section-4
        //# The first SACK block (i.e., the one immediately following the kind and length
        //# fields in the option) MUST specify the contiguous block of data containing the
        //# segment which triggered this ACK, unless that segment advanced the Acknowledgment
        //# Number field in the header.
        for packet in self.recent.iter().flatten() {
            if let Some(block) = self.beyond.containing(*packet) {
                blocks.push(block);
            }
        }
        blocks
    }

    fn note_recent(&mut self, packet: u64) {
        let block = self.beyond.containing(packet);
        let is_same =
            |other: &Option<u64>| other.is_some_and(|other| self.beyond.containing(other) == block);
        // Blocks that grew together with it make room for others.
        let place = self.recent.iter().position(is_same).unwrap_or(MAX_SACK_BLOCKS - 1);
        self.recent[..=place].rotate_right(1);
        self.recent[0] = Some(packet);
    }

    fn note_duplicate(&mut self, run: PacketRun) {
        let old = PacketRun::new(run.start, run.end.min(self.next));
        self.duplicate = if old.is_empty() {
            self.beyond.containing(run.start).map_or(old, |block| block.overlap(run))
        } else {
            old
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{BitRate, ByteCount};

    const MS: u64 = 1_000_000;

    /// A receiver without quick acknowledgements left, which expects `QUICK`.
    fn receiver(reader: Reader) -> Receiver {
        let window = WindowSize::Fixed(ByteCount::from_bytes(1 << 20));
        let mut receiver =
            Receiver::new(ReceiverConfig { mss: 1_000, window, reader, handshake_rtt: None });
        for packet in 0..u64::from(QUICK) {
            arrive(&mut receiver, Nanos(0), packet..packet + 1, false);
        }
        receiver
    }

    /// What it acknowledges at once of these packets.
    fn arrive(
        receiver: &mut Receiver,
        now: Nanos,
        packets: std::ops::Range<u64>,
        pushed: bool,
    ) -> Option<u64> {
        let run = PacketRun::new(packets.start, packets.end);
        let (sent, echo) = (now, Nanos(0));
        let segments = Segments { run, sent, echo, retransmission: false, pushed };
        receiver.on_segments(now, &segments, false);
        receiver.acknowledge(now).map(|acknowledgement| acknowledgement.next)
    }

    #[test]
    fn a_single_packet_waits_for_another_one_unless_it_was_pushed() {
        let mut receiver = receiver(Reader::Immediate);
        let now = Nanos(MS);
        assert_eq!(arrive(&mut receiver, now, 16..17, false), None);
        assert_eq!(receiver.next_timeout(), Some(now.plus_nanos(DELAY_NS)));
        assert_eq!(arrive(&mut receiver, now, 17..18, false), Some(18));
        assert_eq!(arrive(&mut receiver, now, 18..19, true), Some(19));
        assert_eq!(receiver.next_timeout(), None);
        assert_eq!(arrive(&mut receiver, now, 19..20, false), None, "that was acknowledged");
    }

    #[test]
    fn a_pushed_packet_is_acknowledged_when_it_was_read() {
        let rate = BitRate::from_bps(1_000_000);
        let reader = Reader::Rate { rate, block: ByteCount::from_bytes(1_000) };
        let mut receiver = receiver(reader);
        while let Some(at) = receiver.next_timeout() {
            receiver.on_timeout(at);
        }
        // A packet takes 8 ms to be read; the first is read at once.
        let now = Nanos(150 * MS);
        assert_eq!(arrive(&mut receiver, now, 16..17, true), Some(17));
        assert_eq!(arrive(&mut receiver, now, 17..18, true), None);
        let later = now.plus_nanos(8 * MS);
        assert_eq!(receiver.next_timeout(), Some(later));
        receiver.on_timeout(later);
        assert_eq!(receiver.acknowledge(later).map(|one| one.next), Some(18));
    }
}
