//! A queue of the kernel and the trains in it, in order.
//!
//! The kernel looks the number in a verdict up from the head of its queue, so verdicts in another
//! order than that of the trains cost a walk over thousands of them, and a train in the middle
//! cannot be dropped alone. What can be done is to take all trains from the head in turn, to drop
//! some and to move the others to the end of another queue, in the same order.

use crate::carried::{Body, Packet};
use host::packet_queue::{PacketQueue, QueuedPacket, Verdict};
use host::tun::VNET_HEADER;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(crate) struct HeldQueue {
    pub(crate) queue: PacketQueue,
    /// With their numbers.
    pub(crate) trains: VecDeque<(u32, Rc<Packet>)>,
    /// Verdicts that the kernel was not told yet, each about all packets up to a number.
    verdicts: Vec<(Verdict, u32)>,
    /// The latest number that was read.
    latest: u32,
}

impl HeldQueue {
    pub(crate) fn new(queue: PacketQueue) -> Self {
        HeldQueue { queue, trains: VecDeque::new(), verdicts: Vec::new(), latest: 0 }
    }

    /// Removes the first train and notes the verdict about it.
    pub(crate) fn decide_first(&mut self, verdict: Verdict) -> Option<Rc<Packet>> {
        let (id, first) = self.trains.pop_front()?;
        match self.verdicts.last_mut() {
            Some((last, up_to)) if *last == verdict => *up_to = id,
            _ => self.verdicts.push((verdict, id)),
        }
        Some(first)
    }

    /// Tells the kernel the verdicts.
    pub(crate) fn tell(&mut self) -> io::Result<()> {
        let told = self.queue.decide(&self.verdicts);
        self.verdicts.clear();
        told
    }

    /// Reads the numbers of trains that verdicts have moved here. The kernel counts those that were
    /// lost on the way.
    pub(crate) fn receive(&mut self, moved: &[Rc<Packet>]) -> io::Result<()> {
        let mut rest = moved;
        while let Some(queued) = self.queue.next_packet()? {
            // Among them may be packets with headers that could not be read.
            let Some(at) = rest.iter().position(|packet| is_of(&queued, packet)) else { continue };
            // Verdicts about those that were lost are about the one before.
            self.trains.extend(rest[..at].iter().map(|packet| (self.latest, Rc::clone(packet))));
            self.latest = queued.id;
            self.trains.push_back((queued.id, Rc::clone(&rest[at])));
            rest = &rest[at + 1..];
        }
        self.trains.extend(rest.iter().map(|packet| (self.latest, Rc::clone(packet))));
        Ok(())
    }
}

/// Whether a message of the kernel is about this train.
pub(crate) fn is_of(queued: &QueuedPacket<'_>, packet: &Packet) -> bool {
    let Body::Held(train) = &packet.body else { return false };
    let start = train.bytes.get(VNET_HEADER..).unwrap_or_default();
    let both = start.len().min(queued.bytes.len());
    train.length == queued.length && start[..both] == queued.bytes[..both]
}
