//! Packet records for taps (logs and captures), and queue samples.

use link::{Cause, FateKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::time::Duration;
use units::{ByteCount, Nanos};

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkDirection {
    /// From the first end to the second: client to server.
    Up,
    /// From the second end to the first.
    Down,
}

impl LinkDirection {
    /// `up` or `down`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LinkDirection::Up => "up",
            LinkDirection::Down => "down",
        }
    }
}

/// A packet that was dropped or sent. Times count from the start of the lab.
#[derive(Debug, Clone)]
pub struct PacketRecord {
    /// Index of the link.
    pub link: usize,
    /// Its direction.
    pub direction: LinkDirection,
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

/// Batches and their memory (bytes) queued for a slow reader. Further records are only counted, so
/// that the reader never delays the path.
const QUEUED_BATCHES: usize = 4096;
const QUEUED_MEMORY: usize = 64 << 20;

/// The reading end of a tap.
#[derive(Debug)]
pub struct Watch {
    /// The records, in batches.
    pub records: Receiver<Batch>,
    missed: Arc<AtomicU64>,
}

/// Records of packets, in the order in which they were made.
#[derive(Debug)]
pub struct Batch {
    records: Vec<PacketRecord>,
    memory: usize,
    /// Memory of all batches that are queued.
    queued: Arc<AtomicUsize>,
}

impl IntoIterator for Batch {
    type Item = PacketRecord;
    type IntoIter = std::vec::IntoIter<PacketRecord>;

    fn into_iter(mut self) -> Self::IntoIter {
        std::mem::take(&mut self.records).into_iter()
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.queued.fetch_sub(self.memory, Ordering::Relaxed);
    }
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
        let (missed, queued) = (Arc::new(AtomicU64::new(0)), Arc::default());
        (Watch { records, missed: Arc::clone(&missed) }, Tap { bytes, sender, missed, queued })
    }
}

/// The driver's end of a tap.
#[derive(Debug, Clone)]
pub(crate) struct Tap {
    pub(crate) bytes: usize,
    sender: SyncSender<Batch>,
    missed: Arc<AtomicU64>,
    queued: Arc<AtomicUsize>,
}

impl Tap {
    /// Sends a batch; false once the reader is gone.
    pub(crate) fn send(&self, mut batch: Vec<PacketRecord>) -> bool {
        // Another tap may have a longer snapshot length.
        for record in batch.iter_mut().filter(|record| record.bytes.len() > self.bytes) {
            record.bytes = record.bytes[..self.bytes].into();
        }
        let memory = |record: &PacketRecord| size_of::<PacketRecord>() + record.bytes.len();
        let memory = batch.iter().map(memory).sum();
        let before = self.queued.fetch_add(memory, Ordering::Relaxed);
        let batch = Batch { records: batch, memory, queued: Arc::clone(&self.queued) };
        let missed = batch.records.len() as u64;
        // A batch of its own always finds room, or nothing would ever be read.
        let has_room = before == 0 || before + memory <= QUEUED_MEMORY;
        let sent =
            if has_room { self.sender.try_send(batch) } else { Err(TrySendError::Full(batch)) };
        match sent {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.missed.fetch_add(missed, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(packets: usize, bytes: usize) -> Vec<PacketRecord> {
        let record = PacketRecord {
            link: 0,
            direction: LinkDirection::Up,
            number: 1,
            length: 1500,
            arrived: Nanos(0),
            decided: Nanos(0),
            kind: FateKind::Dropped(Cause::Lost),
            bytes: vec![0; bytes].into(),
        };
        vec![record; packets]
    }

    #[test]
    fn a_reader_that_is_too_slow_misses_packets() {
        let (watch, tap) = Watch::new(usize::MAX);
        // A sixteenth of the memory each, and a little more.
        let one = || batch(4, QUEUED_MEMORY / 64);
        assert!((0..20).all(|_| tap.send(one())));
        assert_eq!(watch.missed(), 5 * 4);
        assert_eq!(watch.records.try_iter().flatten().count(), 15 * 4);
        // What was read makes room.
        assert!(tap.send(one()) && tap.send(batch(1, 2 * QUEUED_MEMORY)));
        assert_eq!(watch.missed(), 5 * 4 + 1);
        assert_eq!(watch.records.try_iter().flatten().count(), 4);
        assert!(tap.send(batch(1, 2 * QUEUED_MEMORY)), "a batch of its own finds room");
        assert_eq!(watch.missed(), 5 * 4 + 1);
        drop(watch);
        assert!(!tap.send(one()));
    }
}
