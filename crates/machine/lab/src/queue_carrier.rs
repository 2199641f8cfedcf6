//! Packets that stay in the kernel: it holds what is forwarded between the hosts in a queue
//! (NFQUEUE), and gets told when the next ones leave.
//!
//! Packets leave in the order in which they came, and a train leaves whole, when the last of its
//! packets is due. A TCP train of which the link dropped the last packets, as a full queue does,
//! leaves with a shorter length in its IP header. Of any other train of which the link dropped
//! some packets, the others are sent in its place: it is moved to a second queue, read from there
//! with all of its bytes, and dropped.
//!
//! Trains that the link dropped whole wait for their turn, too; where they take too much memory,
//! those that remain are moved to a third queue (see [`held_queue`](crate::held_queue)).

use crate::carried::{Arrived, Body, HeldTrain, Packet};
use crate::held_queue::{HeldQueue, is_of};
use crate::packet::{Layout, vnet_header};
use host::packet_queue::{PacketQueue, Verdict, WHOLE};
use host::packet_sender::PacketSender;
use host::train_sizes::TrainSizes;
use host::tun::VNET_HEADER;
use link::Delivery;
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

/// Bytes of each packet that are read: the longest IP and TCP headers.
const HEADERS: u32 = 120;

/// Kernel memory of trains that the link dropped whole and that still wait, in each direction.
const MAX_DROPPED: u64 = 64 << 20;

/// What the kernel needs for a packet beside its bytes: `sk_buff`, headroom, `nf_queue_entry`.
const OVERHEAD: u64 = 1024;

/// Trains that are moved or dropped at a time to save memory: 0.2 ms.
const MOVED_AT_ONCE: usize = 64;

/// Numbers of the queues of a direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueNumbers {
    pub(crate) held: u16,
    /// Of trains of which the link dropped packets.
    pub(crate) cut: u16,
    /// Of trains that were moved to save memory.
    pub(crate) moved: u16,
}

impl QueueNumbers {
    /// Those whose losses the kernel alone counts: what is missing in `cut` is seen.
    pub(crate) const fn uncounted(self) -> [u16; 2] {
        [self.held, self.moved]
    }
}

/// The sockets of a direction, which the namespace that forwards has opened.
#[derive(Debug)]
pub(crate) struct QueueEnds {
    held: PacketQueue,
    moved: PacketQueue,
    numbers: QueueNumbers,
    cut: PacketQueue,
    sizes: TrainSizes,
    /// Out of the device towards the receiving host.
    sender: PacketSender,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct QueueCarrier {
    held: HeldQueue,
    /// Its trains leave before those of `held`.
    moved: HeldQueue,
    numbers: QueueNumbers,
    cut: PacketQueue,
    sizes: TrainSizes,
    sender: PacketSender,
    /// Memory of the trains that the link dropped whole and that still wait.
    dropped: u64,
}

impl QueueEnds {
    /// Opens the queues; in the namespace that forwards.
    pub(crate) fn open(
        numbers: QueueNumbers,
        sizes: TrainSizes,
        sender: PacketSender,
    ) -> io::Result<Self> {
        let held = PacketQueue::open(numbers.held, HEADERS)?;
        let moved = PacketQueue::open(numbers.moved, HEADERS)?;
        let cut = PacketQueue::open(numbers.cut, WHOLE)?;
        Ok(QueueEnds { held, moved, numbers, cut, sizes, sender })
    }

    /// Memory for packets that arrived and were not read yet, by the kernel's count.
    pub(crate) fn buffer(&self) -> io::Result<usize> {
        self.held.buffer()
    }
}

impl QueueCarrier {
    /// At 10 Gbit/s, 16 trains of 64 KiB are 0.8 ms.
    pub(crate) const AT_ONCE: usize = 16;

    pub(crate) fn new(ends: QueueEnds) -> Self {
        let QueueEnds { held, moved, numbers, cut, sizes, sender } = ends;
        QueueCarrier {
            held: HeldQueue::new(held),
            moved: HeldQueue::new(moved),
            numbers,
            cut,
            sizes,
            sender,
            dropped: 0,
        }
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Arrived>> {
        let Some(queued) = self.held.queue.next_packet()? else { return Ok(None) };
        let sizes = &mut self.sizes;
        sizes.read_records();
        let vnet = vnet_header(&queued, |start| sizes.segment(queued.length, start));
        let is_counted = vnet.is_some();
        let vnet = vnet.unwrap_or_default();
        let bytes: Box<[u8]> = [&vnet[..], queued.bytes].concat().into();
        let layout = Layout::of_start(&bytes, queued.length);
        let (id, length, time) = (queued.id, queued.length, queued.time);
        let train = layout.map(|layout| {
            let train = layout.train_of(&bytes);
            let packets = train.packets();
            let (undecided, dropped) = (Cell::new(packets), Cell::new(0));
            let held = HeldTrain { id, length, bytes, packets, undecided, dropped };
            (Body::Held(held), layout, train)
        });
        Ok(Some(Arrived { length, time, is_counted, train }))
    }

    pub(crate) fn entered(&mut self, packet: &Rc<Packet>) {
        if let Body::Held(train) = &packet.body {
            self.held.trains.push_back((train.id, Rc::clone(packet)));
        }
    }

    /// The link dropped one of the packets of a train.
    pub(crate) fn packet_dropped(&mut self, train: &HeldTrain) {
        train.dropped.update(|dropped| dropped + 1);
        train.undecided.update(|undecided| undecided.saturating_sub(1));
        if train.is_dropped() {
            self.dropped += memory(train);
        }
    }

    pub(crate) fn deliver(
        &mut self,
        deliveries: &[Delivery<Rc<Packet>>],
        scratch: &mut Vec<u8>,
    ) -> io::Result<u64> {
        let mut refused = 0;
        for parts in deliveries.chunk_by(|one, next| Rc::ptr_eq(&one.payload, &next.payload)) {
            let Some(packet) = parts.first().map(|part| &part.payload) else { continue };
            let Body::Held(train) = &packet.body else { continue };
            self.drop_until(|first| Rc::ptr_eq(first, packet));
            if let Some(verdict) = verdict_in_place(parts, train) {
                self.decide_first(verdict);
                continue;
            }
            self.decide_first(Verdict::Queue(self.numbers.cut));
            self.tell()?;
            refused += self.send_parts(parts, scratch)?;
        }
        // Those that the link dropped whole leave when they are the first: the kernel looks a
        // number up from the head of its queue.
        self.drop_until(|first| !is_dropped(first));
        self.tell()?;
        if self.dropped > MAX_DROPPED {
            self.save_memory()?;
        }
        Ok(refused)
    }

    /// Drops trains until the first one is `wanted`.
    fn drop_until(&mut self, wanted: impl Fn(&Rc<Packet>) -> bool) {
        while let Some((_, first)) = self.moved.trains.front().or(self.held.trains.front())
            && !wanted(first)
        {
            self.decide_first(Verdict::Drop);
        }
    }

    /// Notes the verdict about the first train.
    fn decide_first(&mut self, verdict: Verdict) {
        let first = self.moved.decide_first(verdict).or_else(|| self.held.decide_first(verdict));
        if let Some(Body::Held(train)) = first.as_ref().map(|first| &first.body)
            && train.is_dropped()
        {
            self.dropped = self.dropped.saturating_sub(memory(train));
        }
    }

    fn tell(&mut self) -> io::Result<()> {
        self.moved.tell()?;
        self.held.tell()
    }

    /// Drops some of the trains that the link dropped whole, and moves those in between to the
    /// queue whose trains leave first: each is moved once at most.
    fn save_memory(&mut self) -> io::Result<()> {
        let mut moving = Vec::new();
        for _ in 0..MOVED_AT_ONCE {
            let Some((_, first)) = self.held.trains.front() else { break };
            let verdict =
                if is_dropped(first) { Verdict::Drop } else { Verdict::Queue(self.numbers.moved) };
            let Some(first) = self.held.decide_first(verdict) else { break };
            match &first.body {
                Body::Held(train) if train.is_dropped() => {
                    self.dropped = self.dropped.saturating_sub(memory(train));
                }
                _ => moving.push(first),
            }
        }
        self.held.tell()?;
        self.moved.receive(&moving)
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
        // A message about another train precedes where its own train's verdict came with this one's.
        let queued = loop {
            let Some(queued) = self.cut.next_packet()? else { break None };
            if is_of(&queued, packet) && queued.bytes.len() >= queued.length {
                break Some(queued);
            }
            let other = queued.id;
            self.cut.decide(&[(Verdict::Drop, other)])?;
        };
        let Some(queued) = queued else { return Ok(parts.iter().map(count).sum()) };
        let id = queued.id;
        let vnet = train.bytes.get(..VNET_HEADER).unwrap_or_default();
        let mut refused = 0;
        // Parts are split where they are due apart; they leave together.
        for run in parts.chunk_by(|one, next| one.packets.end == next.packets.start) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            let range = first.packets.start..last.packets.end;
            let piece = packet.layout.cut_apart((vnet, queued.bytes), range, false, scratch);
            if self.sender.send(piece.headers, piece.payload).is_err() {
                refused += run.iter().map(count).sum::<u64>();
            }
        }
        self.cut.decide(&[(Verdict::Drop, id)])?;
        Ok(refused)
    }

    pub(crate) fn into_queues(self) -> Vec<PacketQueue> {
        vec![self.held.queue, self.moved.queue, self.cut]
    }

    /// Reads packets whole from here on, or their headers alone.
    pub(crate) fn read_content(&mut self, whole: bool) -> io::Result<()> {
        self.held.queue.pass_on(if whole { WHOLE } else { HEADERS })
    }
}

/// Kernel memory of a train.
fn memory(train: &HeldTrain) -> u64 {
    train.length as u64 + OVERHEAD
}

fn is_dropped(packet: &Packet) -> bool {
    matches!(&packet.body, Body::Held(train) if train.is_dropped())
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
        self.held.queue.as_fd()
    }
}
