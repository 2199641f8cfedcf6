//! Caps the windows of a running test's streams: [`WindowCap`] on sockets.

use crate::{
    stream::Stream,
    window_cap::{End, WindowCap},
};
use host::{socket, tcp_info::TcpInfo};
use std::time::{Duration, Instant};
use units::{ByteCount, Rtt};

/// Interval between ticks, for every 16 streams: windows grow to megabytes within 20 ms.
const TICK: Duration = Duration::from_millis(10);
const STREAMS_PER_TICK: usize = 16;

/// The caps at this end of the streams.
pub(super) struct Capping {
    caps: Vec<Cap>,
    began: Instant,
    every: Duration,
    next: Instant,
}

/// The cap of one direction.
struct Cap {
    sending: bool,
    cap: WindowCap,
    /// What the sockets were last set to.
    set: Option<ByteCount>,
}

impl Capping {
    /// Caps the windows from now on if `asked` and the path is short.
    pub(super) fn begin(asked: bool, streams: &[Stream], began: Instant) -> Self {
        let mut caps = Vec::new();
        for (end, sending) in [(End::Receiver, false), (End::Sender, true)] {
            let own = || streams.iter().filter(move |stream| stream.sending == sending);
            // Of the handshakes: the least is the path's, the others waited for a core.
            let rtt = |stream: &Stream| TcpInfo::of(&stream.socket).ok()?.min_rtt_us;
            let min_rtt = own().filter_map(rtt).filter(|_| asked).min();
            let min_rtt = min_rtt.map(|us| Rtt::from_micros(us.into()));
            let cap = WindowCap::new(end, min_rtt, own().count());
            caps.extend(cap.map(|cap| Cap { sending, cap, set: None }));
        }
        let every = TICK * u32::try_from(streams.len().div_ceil(STREAMS_PER_TICK)).unwrap_or(1);
        let mut capping = Capping { caps, began, every, next: began + every };
        capping.apply(streams);
        capping
    }

    /// When [`Capping::tick`] is due next; `None` if nothing is capped.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        (!self.caps.is_empty()).then_some(self.next)
    }

    /// Adjusts the caps if due.
    pub(super) fn tick(&mut self, streams: &[Stream], now: Instant) {
        if self.caps.is_empty() || now < self.next {
            return;
        }
        for cap in &mut self.caps {
            let own = streams.iter().filter(|stream| stream.sending == cap.sending);
            cap.cap.tick(now - self.began, own.map(Stream::bytes));
        }
        self.apply(streams);
        self.caps.retain(|cap| !cap.cap.is_lifted());
        self.next = super::next_after(self.next, self.every, now);
    }

    fn apply(&mut self, streams: &[Stream]) {
        for cap in &mut self.caps {
            let bytes = cap.cap.bytes();
            for stream in streams.iter().filter(|stream| stream.sending == cap.sending) {
                if !cap.sending {
                    let now = socket::window_clamp(&stream.socket).ok().map(u64::from);
                    let is_set = cap.set == bytes && now == bytes.map(ByteCount::bytes);
                    if !is_set {
                        // Without it the window is the kernel's own, as before.
                        let _ = socket::set_window_clamp(&stream.socket, bytes);
                    }
                } else if cap.set != bytes {
                    let _ = socket::set_unsent_limit(&stream.socket, bytes);
                }
            }
            cap.set = bytes;
        }
    }

    /// The cap of a direction, if it has one.
    pub(super) fn bytes(&self, sending: bool) -> Option<ByteCount> {
        self.caps.iter().find(|cap| cap.sending == sending)?.cap.settled()
    }
}
