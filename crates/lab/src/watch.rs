//! Packet records for taps (logs and captures), and queue samples.

use link::{Cause, FateKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::time::Duration;
use units::{ByteCount, Nanos};

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the first end to the second: client to server.
    Up,
    /// From the second end to the first.
    Down,
}

impl Direction {
    /// `up` or `down`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

/// A packet that was dropped or sent. Times count from the start of the lab.
#[derive(Debug, Clone)]
pub struct PacketRecord {
    /// Index of the link.
    pub link: usize,
    /// Its direction.
    pub direction: Direction,
    /// The packet's number in that direction, from 1.
    pub number: u64,
    /// Length of the IP packet in bytes.
    pub length: u32,
    /// When it arrived.
    pub arrived: Nanos,
    /// When it was dropped, or sent by the bottleneck.
    pub decided: Nanos,
    /// Delivered, or dropped and why.
    pub kind: FateKind,
    /// Its first bytes, from the IP header, up to the snapshot length.
    pub bytes: Box<[u8]>,
}

/// `delivered`, or `dropped-` and the cause.
#[must_use]
pub const fn fate_name(kind: FateKind) -> &'static str {
    match kind {
        FateKind::Delivered { .. } => "delivered",
        FateKind::Dropped(cause) => match cause {
            Cause::TooLong => "dropped-too-long",
            Cause::Policed => "dropped-policer",
            Cause::QueueFull => "dropped-queue-full",
            Cause::Aqm => "dropped-aqm",
            Cause::Lost => "dropped-loss",
            Cause::Burst => "dropped-burst",
            Cause::Blackhole => "dropped-blackhole",
        },
    }
}

/// Batches queued for a slow reader. Further records are only counted, so that
/// the reader never delays the path.
const QUEUED_BATCHES: usize = 4096;

/// The reading end of a tap.
#[derive(Debug)]
pub struct Watch {
    /// The records, in batches.
    pub records: Receiver<Vec<PacketRecord>>,
    missed: Arc<AtomicU64>,
}

impl Watch {
    /// Packets without a record because the reader was too slow.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Both ends; `bytes` is the snapshot length.
    pub(crate) fn new(bytes: usize) -> (Self, Tap) {
        let (sender, records) = mpsc::sync_channel(QUEUED_BATCHES);
        let missed = Arc::new(AtomicU64::new(0));
        (Watch { records, missed: Arc::clone(&missed) }, Tap { bytes, sender, missed })
    }
}

/// The driver's end of a tap.
#[derive(Debug, Clone)]
pub(crate) struct Tap {
    pub(crate) bytes: usize,
    sender: SyncSender<Vec<PacketRecord>>,
    missed: Arc<AtomicU64>,
}

impl Tap {
    /// Sends a batch; false once the reader is gone.
    pub(crate) fn send(&self, mut batch: Vec<PacketRecord>) -> bool {
        // Another tap may have a longer snapshot length.
        for record in batch.iter_mut().filter(|record| record.bytes.len() > self.bytes) {
            record.bytes = record.bytes[..self.bytes].into();
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

/// The queue of one direction at one moment, and counters since the lab started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueSample {
    /// Since the lab started.
    pub at: Nanos,
    /// Bytes queued, framing included.
    pub bytes: ByteCount,
    /// Packets queued.
    pub packets: u64,
    /// Queueing delay of the packet sent last.
    pub sojourn: Duration,
    /// Bytes sent.
    pub sent_bytes: ByteCount,
    /// Packets dropped before the bottleneck: MTU, policer, queue and AQM.
    pub dropped: u64,
    /// Packets lost after it.
    pub lost: u64,
    /// Packets marked.
    pub marked: u64,
}
