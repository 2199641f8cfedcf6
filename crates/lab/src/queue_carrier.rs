//! Packets that stay in the kernel: it holds what is forwarded between the hosts in a queue
//! (NFQUEUE), and gets told when the next ones leave.
//!
//! Packets leave in the order in which they came, and a train leaves whole, when the last of its
//! packets is due. A TCP train of which the link dropped the last packets, as a full queue does,
//! leaves with a shorter length in its IP header. Of any other train of which the link dropped
//! some packets, the others are sent in its place: it is moved to a second queue, read from there
//! with all of its bytes, and dropped.

use crate::carrier::{Arrived, Body, HeldTrain, Packet};
use crate::packet::{Layout, vnet_header};
use host::packet_queue::{PacketQueue, Verdict, WHOLE};
use host::packet_sender::PacketSender;
use host::train_sizes::TrainSizes;
use host::tun::VNET_HEADER;
use link::Delivery;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

/// Bytes of each packet that are read: the longest IP and TCP headers.
const HEADERS: u32 = 120;

/// Numbers of the two queues.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueNumbers {
    pub(crate) held: u16,
    /// Of trains of which the link dropped packets.
    pub(crate) cut: u16,
}

/// The sockets of a direction, which the namespace that forwards has opened.
#[derive(Debug)]
pub(crate) struct QueueEnds {
    queue: PacketQueue,
    numbers: QueueNumbers,
    cut: PacketQueue,
    sizes: TrainSizes,
    /// Out of the device towards the receiving host.
    sender: PacketSender,
    mtu: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct QueueCarrier {
    ends: Box<QueueEnds>,
    /// In the kernel's order.
    held: VecDeque<Rc<Packet>>,
    verdicts: Vec<(Verdict, u32)>,
    latest_id: u32,
    missing: u64,
}

impl QueueEnds {
    /// Opens the queues; in the namespace that forwards.
    pub(crate) fn open(
        numbers: QueueNumbers,
        sizes: TrainSizes,
        sender: PacketSender,
        mtu: u32,
    ) -> io::Result<Self> {
        let queue = PacketQueue::open(numbers.held, HEADERS)?;
        let cut = PacketQueue::open(numbers.cut, WHOLE)?;
        Ok(QueueEnds { queue, numbers, cut, sizes, sender, mtu })
    }

    /// Memory for packets that arrived and were not read yet, by the kernel's count.
    pub(crate) fn buffer(&self) -> io::Result<usize> {
        self.queue.buffer()
    }
}

impl QueueCarrier {
    /// At 10 Gbit/s, 16 trains of 64 KiB are 0.8 ms.
    pub(crate) const AT_ONCE: usize = 16;

    pub(crate) fn new(ends: Box<QueueEnds>) -> Self {
        let (held, verdicts) = (VecDeque::new(), Vec::new());
        QueueCarrier { ends, held, verdicts, latest_id: 0, missing: 0 }
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Arrived>> {
        let Some(queued) = self.ends.queue.next_packet()? else { return Ok(None) };
        self.missing += u64::from(queued.id.wrapping_sub(self.latest_id).wrapping_sub(1));
        self.latest_id = queued.id;
        let sizes = &mut self.ends.sizes;
        let vnet = vnet_header(&queued, self.ends.mtu, |start| sizes.segment(queued.length, start));
        let bytes: Box<[u8]> = [&vnet[..], queued.bytes].concat().into();
        let layout = Layout::of_start(&bytes, queued.length);
        let (id, length, time) = (queued.id, queued.length, queued.time);
        let train = layout.map(|layout| {
            let train = layout.train_of(&bytes);
            let packets = train.packets();
            let (undecided, dropped) = (Cell::new(packets), Cell::new(0));
            (Body::Held(HeldTrain { id, bytes, packets, undecided, dropped }), layout, train)
        });
        Ok(Some(Arrived { length, time, train }))
    }

    pub(crate) fn entered(&mut self, packet: &Rc<Packet>) {
        self.held.push_back(Rc::clone(packet));
    }

    pub(crate) fn deliver(
        &mut self,
        deliveries: &[Delivery<Rc<Packet>>],
        scratch: &mut Vec<u8>,
    ) -> io::Result<u64> {
        let mut refused = 0;
        for parts in deliveries.chunk_by(|one, next| Rc::ptr_eq(&one.payload, &next.payload)) {
            let Some(Body::Held(train)) = parts.first().map(|part| &part.payload.body) else {
                continue;
            };
            self.drop_until(|first| first.id == train.id);
            self.held.pop_front();
            if let Some(verdict) = verdict_in_place(parts, train) {
                self.decide(verdict, train.id);
                continue;
            }
            self.decide(Verdict::Queue(self.ends.numbers.cut), train.id);
            self.tell()?;
            refused += self.send_parts(parts, scratch)?;
        }
        // Those that the link dropped whole leave when they are the first.
        self.drop_until(|first| first.dropped.get() < first.packets);
        self.tell()?;
        Ok(refused)
    }

    /// Drops held trains until the first one is `wanted`.
    fn drop_until(&mut self, wanted: impl Fn(&HeldTrain) -> bool) {
        while let Some(Body::Held(first)) = self.held.front().map(|first| &first.body)
            && !wanted(first)
        {
            let id = first.id;
            self.held.pop_front();
            self.decide(Verdict::Drop, id);
        }
    }

    /// Notes the verdict about all packets up to `id`.
    fn decide(&mut self, verdict: Verdict, id: u32) {
        match self.verdicts.last_mut() {
            Some((last, up_to)) if *last == verdict => *up_to = id,
            _ => self.verdicts.push((verdict, id)),
        }
    }

    fn tell(&mut self) -> io::Result<()> {
        let told = self.ends.queue.decide(&self.verdicts);
        self.verdicts.clear();
        told
    }

    /// Sends the packets that the link kept of a train that was moved to the second queue;
    /// returns how many could not be sent.
    fn send_parts(
        &mut self,
        parts: &[Delivery<Rc<Packet>>],
        scratch: &mut Vec<u8>,
    ) -> io::Result<u64> {
        let Some(first) = parts.first() else { return Ok(0) };
        let packet = &first.payload;
        let Body::Held(train) = &packet.body else { return Ok(0) };
        let count = |part: &Delivery<_>| u64::from(part.packets.end - part.packets.start);
        let Some(queued) = self.ends.cut.next_packet()? else {
            return Ok(parts.iter().map(count).sum());
        };
        let id = queued.id;
        let vnet = train.bytes.get(..VNET_HEADER).unwrap_or_default();
        let mut refused = 0;
        // Parts are split where they are due apart; they leave together.
        for run in parts.chunk_by(|one, next| one.packets.end == next.packets.start) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            let range = first.packets.start..last.packets.end;
            let piece = packet.layout.cut_apart((vnet, queued.bytes), range, false, scratch);
            if self.ends.sender.send(piece.headers, piece.payload).is_err() {
                refused += run.iter().map(count).sum::<u64>();
            }
        }
        self.ends.cut.decide(&[(Verdict::Drop, id)])?;
        Ok(refused)
    }

    /// Reads packets whole from here on.
    pub(crate) fn keep_content(&mut self) -> io::Result<()> {
        self.ends.queue.pass_on(WHOLE)
    }

    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }
}

/// The verdict that leaves of a train the packets that the link delivers; `None` if there is none.
fn verdict_in_place(parts: &[Delivery<Rc<Packet>>], train: &HeldTrain) -> Option<Verdict> {
    if train.dropped.get() == 0 {
        return Some(Verdict::Accept);
    }
    let first = parts.first()?;
    let mut left = 0;
    for part in parts {
        if part.packets.start != left {
            return None;
        }
        left = part.packets.end;
    }
    first.payload.layout.shortened(&train.bytes, left).map(Verdict::Shorten)
}

impl AsFd for QueueCarrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ends.queue.as_fd()
    }
}
