//! Which of a session's connections carry data, and what UDT loses.

use crate::protocol::message::Carrier;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

const UDT: u8 = 1;
const TCP: u8 = 2;

/// All connections at first; those of one transport after [`DataPath::use_only`].
#[derive(Debug, Default)]
pub(crate) struct DataPath {
    carrier: AtomicU8,
    packets: AtomicU64,
    lost: AtomicU64,
    tcp_bytes: AtomicU64,
}

impl DataPath {
    /// Only these connections take data from now on. What others have taken, they deliver.
    pub(crate) fn use_only(&self, carrier: Carrier) {
        self.carrier.store(code(carrier), Ordering::Relaxed);
    }

    /// The connections that take data; `None`: all.
    pub(crate) fn only(&self) -> Option<Carrier> {
        match self.carrier.load(Ordering::Relaxed) {
            UDT => Some(Carrier::Udt),
            TCP => Some(Carrier::Tcp),
            _ => None,
        }
    }

    /// Whether these connections take data.
    pub(super) fn includes(&self, carrier: Carrier) -> bool {
        self.only().is_none_or(|only| only == carrier)
    }

    /// UDT has sent or received so many packets, and so many were lost.
    pub(super) fn count(&self, packets: u64, lost: u64) {
        self.packets.store(packets, Ordering::Relaxed);
        self.lost.store(lost, Ordering::Relaxed);
    }

    /// The peer of a TCP connection has so many bytes more, or this end has.
    pub(super) fn count_tcp(&self, bytes: u64) {
        self.tcp_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that TCP has carried.
    pub(crate) fn tcp_bytes(&self) -> u64 {
        self.tcp_bytes.load(Ordering::Relaxed)
    }

    /// What was counted last: packets, and how many of them were lost.
    pub(crate) fn counted(&self) -> (u64, u64) {
        (self.packets.load(Ordering::Relaxed), self.lost.load(Ordering::Relaxed))
    }
}

const fn code(carrier: Carrier) -> u8 {
    match carrier {
        Carrier::Udt => UDT,
        Carrier::Tcp => TCP,
    }
}
