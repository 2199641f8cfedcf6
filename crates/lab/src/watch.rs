//! What watchers of a path are told: each packet's fate, and the queue over time.

use link::{Cause, FateKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// From its first end to its second: from the client to the server.
    Up,
    /// Back.
    Down,
}

impl Way {
    /// `up` or `down`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Way::Up => "up",
            Way::Down => "down",
        }
    }
}

/// A packet whose fate is decided. Times are in ns since the lab began.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Index of the link.
    pub link: usize,
    /// Its direction.
    pub way: Way,
    /// The packet's number in that direction, from 1.
    pub number: u64,
    /// Length of the IP packet in bytes.
    pub length: u32,
    /// When it arrived.
    pub arrived: u64,
    /// When its fate was decided: dropped, or sent by the bottleneck.
    pub decided: u64,
    /// How.
    pub kind: FateKind,
    /// Its first bytes, from the IP header on; as many as were asked for.
    pub bytes: Box<[u8]>,
}

/// A fate in a word: `delivered`, or `dropped-` and why.
#[must_use]
pub const fn fate_in_a_word(kind: FateKind) -> &'static str {
    match kind {
        FateKind::Delivered { .. } => "delivered",
        FateKind::Dropped(cause) => match cause {
            Cause::TooLong => "dropped-too-long",
            Cause::Policed => "dropped-policer",
            Cause::QueueFull => "dropped-queue-full",
            Cause::Aqm => "dropped-aqm",
            Cause::Lost => "dropped-loss",
            Cause::Burst => "dropped-burst",
            Cause::Dark => "dropped-blackhole",
        },
    }
}

/// Batches that may wait for a slow watcher: beyond them packets go unseen,
/// and are counted, rather than hold up the path.
const BATCHES: usize = 4096;

/// A watcher's end.
#[derive(Debug)]
pub struct Watch {
    /// What was seen, in batches.
    pub seen: Receiver<Vec<Seen>>,
    missed: Arc<AtomicU64>,
}

impl Watch {
    /// Packets that went by unseen because the watcher was too slow.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// A pair of ends; the driver's takes so many bytes of each packet.
    pub(crate) fn new(bytes: usize) -> (Self, Teller) {
        let (sender, seen) = mpsc::sync_channel(BATCHES);
        let missed = Arc::new(AtomicU64::new(0));
        (Watch { seen, missed: Arc::clone(&missed) }, Teller { bytes, sender, missed })
    }
}

/// The driver's end.
#[derive(Debug, Clone)]
pub(crate) struct Teller {
    pub(crate) bytes: usize,
    sender: SyncSender<Vec<Seen>>,
    missed: Arc<AtomicU64>,
}

impl Teller {
    /// Tells a batch; false where nobody listens any longer.
    pub(crate) fn tell(&self, mut batch: Vec<Seen>) -> bool {
        // Another watcher may have asked for more.
        for seen in batch.iter_mut().filter(|seen| seen.bytes.len() > self.bytes) {
            seen.bytes = seen.bytes[..self.bytes].into();
        }
        match self.sender.try_send(batch) {
            Ok(()) => true,
            Err(TrySendError::Full(batch)) => {
                self.missed.fetch_add(batch.len() as u64, Ordering::Relaxed);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

/// The queue of one direction at a moment, and sums since the lab began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueSample {
    /// In ns since the lab began.
    pub at: u64,
    /// Bytes that wait, framing included.
    pub bytes: u64,
    /// Packets that wait.
    pub packets: u64,
    /// How long the packet sent last had waited, in ns.
    pub sojourn: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets dropped before the bottleneck: queue, its management, policer.
    pub dropped: u64,
    /// Packets lost behind it.
    pub lost: u64,
    /// Packets marked.
    pub marked: u64,
}
