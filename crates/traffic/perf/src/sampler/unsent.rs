//! Limits the unsent data of a running test's streams: [`UnsentLimit`] on sockets.

use crate::{stream::Stream, unsent_limit::UnsentLimit};
use host::{socket, tcp_info::TcpInfo};
use std::time::{Duration, Instant};
use units::{ByteCount, Rtt};

/// Interval between ticks, for every 16 streams: send buffers fill within 20 ms.
const TICK: Duration = Duration::from_millis(10);
const STREAMS_PER_TICK: usize = 16;

/// The limit of the streams that this end sends.
pub(super) struct LimitedSenders {
    limit: UnsentLimit,
    /// What the sockets are set to, once they are.
    set: Option<ByteCount>,
    began: Instant,
    every: Duration,
    next: Instant,
}

impl LimitedSenders {
    /// Limits unsent data from now on; `None` if the path is not short.
    pub(super) fn begin(streams: &[Stream], began: Instant) -> Option<Self> {
        let sending = || streams.iter().filter(|stream| stream.sending);
        // Of the handshakes: the least is the path's, the others waited for a core.
        let rtt = |stream: &Stream| TcpInfo::of(&stream.socket).ok()?.min_rtt_us;
        let min_rtt = sending().filter_map(rtt).min().map(|us| Rtt::from_micros(us.into()));
        let limit = UnsentLimit::new(min_rtt, sending().count())?;
        let every = TICK * u32::try_from(streams.len().div_ceil(STREAMS_PER_TICK)).unwrap_or(1);
        Some(LimitedSenders { limit, set: None, began, every, next: began + every })
    }

    /// When [`LimitedSenders::tick`] is due next.
    pub(super) fn next_tick(&self) -> Instant {
        self.next
    }

    /// Adjusts the limit if due.
    pub(super) fn tick(&mut self, streams: &[Stream], now: Instant) {
        if now < self.next {
            return;
        }
        let sending = || streams.iter().filter(|stream| stream.sending);
        self.limit.tick(now - self.began, sending().map(Stream::bytes));
        let bytes = self.limit.bytes();
        if self.set != bytes {
            for stream in sending() {
                // Without the option the send buffer alone limits it, as before.
                let _ = socket::set_unsent_limit(&stream.socket, bytes);
            }
            self.set = bytes;
        }
        self.next = super::next_after(self.next, self.every, now);
    }

    /// The limit, once it is set.
    pub(super) fn bytes(&self) -> Option<ByteCount> {
        self.set
    }
}
