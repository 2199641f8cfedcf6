//! The send buffer between application and connection.

use crate::application::{Application, ENDLESS, WriteLimit};
use units::{ByteCount, Nanos, nanos};

/// Size of the send buffer: payload that it holds, unsent and not yet acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferSize {
    /// Fixed (`SO_SNDBUF`).
    Fixed(ByteCount),
    /// Grows with the congestion window, up to this (`tcp_wmem`).
    Auto(ByteCount),
}

/// When a writer has to wait for room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BufferCheck {
    /// Where the buffer is full.
    #[default]
    Always,
    /// Where it is full and more could not be sent at once, as measured with Linux 6.18: what
    /// is sent at once may exceed the buffer, up to the congestion window.
    Unsent,
}

/// What Linux adds to a segment's payload before it rounds up to a power of two: the timestamps
/// (the peer's MSS is without them), headers (`MAX_TCP_HEADER`) and what describes the data
/// (`skb_shared_info`). After it: `sk_buff`.
const BEFORE_ROUNDING: u64 = 12 + 320 + 320;
const AFTER_ROUNDING: u64 = 256;

/// Payload in a hundred bytes of a send buffer (`model::AUTOTUNED_SEND_SHARE`).
const PAYLOAD_PERCENT: u64 = 82;

/// What is written at a time beyond a full buffer: one buffer of the kernel's, 64 KiB.
const BEYOND_BYTES: u64 = 65_536;

/// The buffer's state, in packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendBuffer {
    application: Application,
    check: BufferCheck,
    /// Nanoseconds after which the application writes nothing more.
    ends_after: u64,
    /// Packets after which it writes nothing more.
    ends_with: u64,
    /// The application has ended.
    ended: bool,
    /// When the application began, with the first call of `fill`.
    began: Option<Nanos>,
    mss: u64,
    /// Most packets it holds.
    capacity: u64,
    /// Up to which it may grow; `None`: fixed.
    most: Option<u64>,
    /// Packets written since the connection began.
    written: u64,
    /// The application waits for room.
    blocked: bool,
}

impl SendBuffer {
    pub(crate) fn new(
        application: Application,
        size: BufferSize,
        check: BufferCheck,
        limit: WriteLimit,
        mss: u64,
    ) -> Self {
        let packets = |bytes: u64| (bytes / mss).max(2);
        let (capacity, most) = match size {
            BufferSize::Fixed(bytes) => (packets(bytes.bytes()), None),
            BufferSize::Auto(most) => {
                let most = packets(most.bytes());
                (2, Some(most))
            }
        };
        SendBuffer {
            application,
            check,
            ends_after: limit.after.map_or(u64::MAX, nanos),
            ends_with: limit.bytes.map_or(ENDLESS, |bytes| bytes.bytes().div_ceil(mss)),
            ended: false,
            began: None,
            mss,
            capacity,
            most,
            written: 0,
            blocked: false,
        }
    }

    /// Whether the application has ended.
    pub(crate) const fn has_ended(&self) -> bool {
        self.ended
    }

    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    /// Whether the application waits for room.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Grows to as many segments as Linux counts them (`tcp_sndbuf_expand`): each takes the power
    /// of two that holds it, as if it had memory of its own. Written segments share theirs, so that
    /// more than twice as many fit.
    pub(crate) fn grow(&mut self, segments: u64) {
        if let Some(most) = self.most {
            let each = (self.mss + BEFORE_ROUNDING).next_power_of_two() + AFTER_ROUNDING;
            let payload = segments.saturating_mul(each) / 100 * PAYLOAD_PERCENT;
            self.capacity = self.capacity.max((payload / self.mss).min(most));
        }
    }

    /// The application writes what it has and what fits; `nxt`: the next to be sent,
    /// `sends`: more can be sent at once.
    pub(crate) fn fill(&mut self, now: Nanos, una: u64, nxt: u64, sends: bool) {
        let elapsed = now.nanos_since(*self.began.get_or_insert(now));
        if self.ended || elapsed >= self.ends_after {
            (self.ended, self.written, self.blocked) = (true, nxt.min(self.written), false);
            return;
        }
        // A blocked writer is woken when a third is free (sk_stream_min_wspace).
        let held = self.written - una;
        if self.blocked && held * 3 > self.capacity * 2 {
            return;
        }
        let offered = if self.application.is_on(elapsed) {
            self.application.offered(elapsed, self.mss)
        } else {
            self.written
        };
        let offered = offered.min(self.ends_with);
        let full = una + self.capacity;
        let beyond = self.check == BufferCheck::Unsent && sends;
        let empty = self.written == nxt;
        let room =
            if beyond && empty { full.max(nxt + (BEYOND_BYTES / self.mss).max(1)) } else { full };
        self.written = self.written.max(offered.min(room)).min(ENDLESS);
        // It goes on as soon as what it wrote is sent.
        self.blocked = offered > self.written && !beyond;
        self.ended = self.written >= self.ends_with && self.written == nxt;
    }

    /// When the application next has more to write; `None` if it waits for room.
    pub(crate) fn next_write(&self, now: Nanos) -> Option<Nanos> {
        if self.blocked || self.ended {
            return None;
        }
        let began = self.began?;
        let next = self.application.next_write(now.nanos_since(began))?;
        Some(began.plus_nanos(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn bulk(size: BufferSize, check: BufferCheck, mss: u64) -> SendBuffer {
        SendBuffer::new(Application::Bulk, size, check, WriteLimit::default(), mss)
    }

    #[test]
    fn a_blocked_writer_waits_for_a_third_of_the_buffer() {
        let size = BufferSize::Fixed(ByteCount::from_bytes(30_000));
        let mut buffer = bulk(size, BufferCheck::Always, 1_000);
        buffer.fill(Nanos(0), 0, 0, true);
        assert_eq!((buffer.written(), buffer.is_blocked()), (30, true));
        buffer.fill(Nanos(0), 9, 30, true);
        assert_eq!(buffer.written(), 30);
        buffer.fill(Nanos(0), 10, 30, true);
        assert_eq!(buffer.written(), 40);
    }

    #[test]
    fn ten_segments_are_counted_as_twice_their_size() {
        let size = BufferSize::Auto(ByteCount::from_bytes(100_000));
        let mut buffer = bulk(size, BufferCheck::Always, 1_448);
        // 87 040 bytes, as `ss -m` shows of a new connection.
        buffer.grow(20);
        buffer.fill(Nanos(0), 0, 0, true);
        assert_eq!(buffer.written(), 71_340 / 1_448);
        buffer.grow(1_000);
        buffer.fill(Nanos(0), 49, 49, true);
        assert_eq!(buffer.written(), 49 + 100_000 / 1_448);
    }

    #[test]
    fn what_is_sent_at_once_may_exceed_the_buffer() {
        let size = BufferSize::Fixed(ByteCount::from_bytes(30_000));
        let mut buffer = bulk(size, BufferCheck::Unsent, 1_000);
        buffer.fill(Nanos(0), 0, 0, true);
        assert_eq!((buffer.written(), buffer.is_blocked()), (65, false));
        buffer.fill(Nanos(0), 0, 65, true);
        assert_eq!((buffer.written(), buffer.is_blocked()), (130, false));
        // The congestion window is full.
        buffer.fill(Nanos(0), 0, 100, false);
        assert_eq!((buffer.written(), buffer.is_blocked()), (130, true));
        buffer.fill(Nanos(0), 109, 130, true);
        assert_eq!(buffer.written(), 130, "asleep until a third is free");
        buffer.fill(Nanos(0), 110, 130, true);
        assert_eq!(buffer.written(), 195);
    }

    #[test]
    fn an_application_that_has_ended_takes_back_what_was_not_sent() {
        let size = BufferSize::Fixed(ByteCount::from_bytes(30_000));
        let after = Some(Duration::from_secs(1));
        let limit = WriteLimit { after, bytes: None };
        let new =
            |limit| SendBuffer::new(Application::Bulk, size, BufferCheck::Always, limit, 1_000);
        let mut buffer = new(limit);
        buffer.fill(Nanos(5), 0, 0, true);
        buffer.fill(Nanos(1_000_000_004), 0, 10, true);
        assert_eq!((buffer.written(), buffer.has_ended()), (30, false));
        buffer.fill(Nanos(1_000_000_005), 0, 20, true);
        assert_eq!((buffer.written(), buffer.has_ended()), (20, true));
        assert_eq!(buffer.next_write(Nanos(1_000_000_005)), None);

        let mut buffer =
            new(WriteLimit { after: None, bytes: Some(ByteCount::from_bytes(12_001)) });
        buffer.fill(Nanos(0), 0, 0, true);
        assert_eq!((buffer.written(), buffer.has_ended()), (13, false));
        buffer.fill(Nanos(0), 5, 13, true);
        assert_eq!((buffer.written(), buffer.has_ended()), (13, true));
    }
}
