//! What gets the packets of one direction from one host to the other: they are copied through
//! TUN devices, or held in the kernel.

use crate::buffers::Pool;
use crate::carried::{Arrived, Body, Packet};
use crate::queue_carrier::{QueueCarrier, QueueEnds};
use crate::tun_carrier::TunCarrier;
use host::packet_queue::PacketQueue;
use host::transmit_times::TransmitTimes;
use link::{Delivery, WindowScale};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

/// What a carrier is made of.
#[derive(Debug)]
pub(crate) enum CarrierEnds {
    Tun(TunCarrier),
    Queue(Box<QueueEnds>),
}

/// See the module.
#[derive(Debug)]
pub(crate) enum Carrier {
    Tun(TunCarrier),
    Queue(Box<QueueCarrier>),
}

impl Carrier {
    pub(crate) fn new(ends: CarrierEnds) -> Self {
        match ends {
            CarrierEnds::Tun(tun) => Carrier::Tun(tun),
            CarrierEnds::Queue(ends) => Carrier::Queue(Box::new(QueueCarrier::new(*ends))),
        }
    }

    /// Reads the next train; `None` if there is none.
    pub(crate) fn next(
        &mut self,
        pool: &mut Pool,
        window_scale: Option<WindowScale>,
    ) -> io::Result<Option<Arrived>> {
        match self {
            Carrier::Tun(tun) => tun.next(pool, window_scale),
            Carrier::Queue(queue) => queue.next(),
        }
    }

    /// The train entered the link.
    pub(crate) fn entered(&mut self, packet: &Rc<Packet>) {
        if let Carrier::Queue(queue) = self {
            queue.entered(packet);
        }
    }

    /// The link dropped one of the packets of a train.
    pub(crate) fn packet_dropped(&mut self, packet: &Packet) {
        if let (Carrier::Queue(queue), Body::Held(train)) = (self, &packet.body) {
            queue.packet_dropped(train);
        }
    }

    /// Deliveries that are passed on at once, and are late by as much as the last of them.
    pub(crate) fn at_once(&self) -> usize {
        match self {
            Carrier::Tun(_) => 1,
            Carrier::Queue(_) => QueueCarrier::AT_ONCE,
        }
    }

    /// Whether late deliveries that are passed on all at once would be lost.
    pub(crate) fn paces_late_deliveries(&self) -> bool {
        matches!(self, Carrier::Queue(_))
    }

    /// Passes on deliveries of complete trains, in order; returns how many packets the
    /// receiving host refused.
    pub(crate) fn deliver(
        &mut self,
        pool: &Pool,
        deliveries: &[Delivery<Rc<Packet>>],
        scratch: &mut Vec<u8>,
    ) -> io::Result<u64> {
        match self {
            Carrier::Tun(tun) => Ok(tun.deliver(pool, deliveries, scratch)),
            Carrier::Queue(queue) => queue.deliver(deliveries, scratch),
        }
    }

    /// Whether it has to know which packets the link drops.
    pub(crate) fn needs_drops(&self) -> bool {
        matches!(self, Carrier::Queue(_))
    }

    /// Whether packets are to be read with their content from here on, or may be without.
    pub(crate) fn read_content(&mut self, whole: bool) -> io::Result<()> {
        match self {
            Carrier::Tun(_) => Ok(()),
            Carrier::Queue(queue) => queue.read_content(whole),
        }
    }

    /// The queues of the kernel, which counts what they have lost as long as they are open.
    pub(crate) fn into_queues(self) -> Vec<PacketQueue> {
        match self {
            Carrier::Tun(_) => Vec::new(),
            Carrier::Queue(queue) => queue.into_queues(),
        }
    }

    /// When packets were put into its device, where that is recorded apart from them.
    pub(crate) fn take_times(&mut self) -> Option<TransmitTimes> {
        match self {
            Carrier::Tun(tun) => tun.times.take(),
            Carrier::Queue(_) => None,
        }
    }
}

impl AsFd for Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Carrier::Tun(tun) => tun.from.as_fd(),
            Carrier::Queue(queue) => queue.as_fd(),
        }
    }
}
