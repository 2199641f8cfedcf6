//! Packets between the device that they were read from and the one that they leave by.

use crate::buffers::{Pool, Slot};
use crate::packet::Layout;
use link::Train;
use std::cell::Cell;
use std::time::Duration;

/// One train in flight.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) body: Body,
    pub(crate) layout: Layout,
    /// How late it may have arrived at the bottleneck because it was read late.
    pub(crate) late: Duration,
}

/// Where its bytes are: a `virtio_net` header and the IP packet.
#[derive(Debug)]
pub(crate) enum Body {
    Copied(Box<[u8]>),
    /// In the first bytes of a slot.
    Pooled(Slot, usize),
    /// The first of them here, all in the kernel.
    Held(HeldTrain),
}

/// A train in a queue of the kernel.
#[derive(Debug)]
pub(crate) struct HeldTrain {
    pub(crate) id: u32,
    /// All of it, from the IP header on.
    pub(crate) length: usize,
    pub(crate) bytes: Box<[u8]>,
    /// Packets of MTU size that it stands for.
    pub(crate) packets: u32,
    /// Packets that the link has neither dropped nor released yet.
    pub(crate) undecided: Cell<u32>,
    /// Packets that it dropped.
    pub(crate) dropped: Cell<u32>,
}

impl HeldTrain {
    /// Whether the link dropped all of its packets.
    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.get() >= self.packets
    }
}

impl Packet {
    /// Its bytes, as far as they are here.
    pub(crate) fn buffer<'a>(&'a self, pool: &'a Pool) -> &'a [u8] {
        match &self.body {
            Body::Copied(bytes) => bytes,
            Body::Pooled(slot, length) => &pool.bytes(slot)[..*length],
            Body::Held(train) => &train.bytes,
        }
    }

    /// The link released some of its packets.
    pub(crate) fn packets_released(&self, packets: u32) {
        if let Body::Held(train) = &self.body {
            train.undecided.update(|undecided| undecided.saturating_sub(packets));
        }
    }

    /// Whether it can leave: a held train leaves with the last of its packets.
    pub(crate) fn is_complete(&self) -> bool {
        match &self.body {
            Body::Held(train) => train.undecided.get() == 0,
            _ => true,
        }
    }
}

/// A train that was read.
pub(crate) struct Arrived {
    /// Its length from the IP header on.
    pub(crate) length: usize,
    /// When it arrived, as wall-clock time since 1970, where the carrier knows.
    pub(crate) time: Option<Duration>,
    /// Whether it is known for how many packets it stands; otherwise it counts as one.
    pub(crate) is_counted: bool,
    /// `None` if its headers are malformed.
    pub(crate) train: Option<(Body, Layout, Train)>,
}
