//! Links and traffic for the tests.

use link::{Delivery, Fate, FateKind, Limit, Link, LinkConfig, Queue, Rate, Train};
use std::time::Duration;
use units::{BitRate, ByteCount, Nanos};

pub(crate) const MILLISECOND: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;

/// A limit that no test reaches.
pub(crate) const ROOM: Limit = Limit::Bytes(ByteCount::from_bytes(1 << 40));

/// A link with this rate and delay, and an unlimited queue.
pub(crate) fn config(rate_bps: u64, delay_ms: u64) -> LinkConfig {
    let rate = Rate::Constant(BitRate::from_bps(rate_bps));
    LinkConfig::new(rate, ms(delay_ms), Queue::drop_tail(ROOM))
}

/// A link with this rate, without delay, that records fates.
pub(crate) fn queueing(rate_bps: u64, queue: Queue) -> Link<u32> {
    watched(LinkConfig { queue, ..config(rate_bps, 0) })
}

/// A link that records fates.
pub(crate) fn watched(config: LinkConfig) -> Link<u32> {
    let mut link = Link::new(config);
    link.watch(true);
    link
}

pub(crate) const fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

pub(crate) const fn at_ms(time: u64) -> Nanos {
    Nanos(time * MILLISECOND)
}

/// A train of `packets` of 1500 bytes.
pub(crate) fn train(packets: u32) -> Train {
    Train::segmented(52, packets * 1448, 1448)
}

/// Releases all packets, each when due.
pub(crate) fn drain(link: &mut Link<u32>) -> Vec<Delivery<u32>> {
    let mut out = Vec::new();
    while let Some(due) = link.next_due() {
        while let Some(delivery) = link.release(due) {
            out.push(delivery);
        }
    }
    out
}

/// The fates of all packets.
pub(crate) fn fates_of_all(link: &mut Link<u32>) -> Vec<Fate<u32>> {
    drain(link);
    link.fates().collect()
}

/// The numbers of the dropped packets.
pub(crate) fn dropped(fates: &[Fate<u32>]) -> Vec<u64> {
    let gone = |fate: &&Fate<u32>| matches!(fate.kind, FateKind::Dropped(_));
    fates.iter().filter(gone).map(|fate| fate.number).collect()
}

/// Time from bottleneck to delivery of each delivered packet, ns.
pub(crate) fn flights(fates: &[Fate<u32>]) -> Vec<u64> {
    let flight = |fate: &Fate<u32>| match fate.kind {
        FateKind::Delivered { due, .. } => Some(due.0 - fate.decided.0),
        FateKind::Dropped(_) => None,
    };
    fates.iter().filter_map(flight).collect()
}
