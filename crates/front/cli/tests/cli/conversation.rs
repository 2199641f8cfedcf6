//! Made-up TCP conversations as capture files: a sender with an application, a window and a
//! bottleneck, seen from any point of the path.

mod files;

pub(crate) use files::{file, mirrored, mirrored_at, snapped, stepped};

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

const MS: u64 = 1_000_000;
const MSS: u64 = 1448;
const START_NS: u64 = 1_700_000_000_000_000_000;

/// What the sender's application does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum App {
    /// Always has more.
    Bulk,
    /// Writes so many bytes, every so many ms.
    Every(u64, u64),
    /// Writes about so many bytes, about every so many ms.
    Uneven(u64, u64),
    /// Answers requests with so many bytes; the times in ms that it and the client take.
    Answers(u64, u64, u64),
}

/// A conversation: data flows from the client's port 40000 to port 9000, or back for `Answers`.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    pub(crate) app: App,
    pub(crate) seconds: u64,
    pub(crate) rtt_ms: u64,
    /// Of the bottleneck, before the path.
    pub(crate) ns_per_byte: u64,
    /// Where the capture was made: 0 at the sender, 100 at the receiver.
    pub(crate) position: u64,
    pub(crate) window: u64,
    pub(crate) scale: u8,
    /// The congestion window grows up to this.
    pub(crate) most_cwnd: u64,
    /// Every so many segments one is lost; 0: none.
    pub(crate) lose_every: u64,
    /// From this time on, in ms, packets of the sender that are longer than so many bytes vanish.
    pub(crate) black_hole: Option<(u64, u64)>,
    /// Until this time, in ms; then they arrive again.
    pub(crate) black_hole_to: u64,
    /// The sender closes the connection at the end.
    pub(crate) closes: bool,
    /// AccECN, with CE on every so many segments; 0: never.
    pub(crate) accurate_ecn: Option<u64>,
    /// Whether the sender's IP has an identification.
    pub(crate) has_id: bool,
}

impl Default for Conversation {
    fn default() -> Self {
        Conversation {
            app: App::Bulk,
            seconds: 4,
            rtt_ms: 60,
            ns_per_byte: 160,
            position: 0,
            window: 1 << 20,
            scale: 8,
            most_cwnd: 1 << 30,
            lose_every: 0,
            black_hole: None,
            black_hole_to: u64::MAX / MS,
            closes: false,
            accurate_ecn: None,
            has_id: true,
        }
    }
}

/// A packet of the file.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    pub(crate) time_ns: u64,
    pub(crate) from_sender: bool,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Write(u64),
    Arrive { start: u64, end: u64, value: u32, is_marked: bool },
    Ack { ack: u64, gap: Option<(u64, u64)>, value: u32, echo: u32, ace: u8 },
    Request,
    Timer(u64),
}

/// Both hosts and the path between them.
struct Simulation<'a> {
    plan: &'a Conversation,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    packets: Vec<Packet>,
    ids: [u16; 2],
    written: u64,
    next: u64,
    acked: u64,
    cwnd: u64,
    threshold: u64,
    duplicates: u32,
    recovers_to: u64,
    /// After a timeout, what is retransmitted next: from there to `recovers_to` all counts as lost.
    resends: Option<u64>,
    sent: u64,
    free_ns: u64,
    timer: u64,
    backoff: u32,
    echo: u32,
    received: u64,
    early: BTreeMap<u64, u64>,
    receiver_echo: u32,
    ace: u8,
    requests: u64,
    writes: usize,
}

/// Sizes and pauses of uneven writes, in % of their mean.
const UNEVEN: [u64; 7] = [50, 180, 70, 250, 30, 60, 60];

fn value(now: u64) -> u32 {
    (now / MS) as u32 + 5000
}

impl Conversation {
    /// The packets as captured.
    pub(crate) fn packets(&self) -> Vec<Packet> {
        let mut simulation = Simulation {
            plan: self,
            events: BinaryHeap::new(),
            order: 0,
            packets: Vec::new(),
            ids: [1000, 7000],
            written: 0,
            next: 0,
            acked: 0,
            cwnd: 10 * MSS,
            threshold: u64::MAX,
            duplicates: 0,
            recovers_to: 0,
            resends: None,
            sent: 0,
            free_ns: 0,
            timer: 0,
            backoff: 0,
            echo: 0,
            received: 0,
            early: BTreeMap::new(),
            receiver_echo: 0,
            ace: 5,
            requests: 0,
            writes: 0,
        };
        simulation.run();
        let mut packets = simulation.packets;
        packets.sort_by_key(|packet| packet.time_ns);
        packets
    }

    fn answers(&self) -> bool {
        matches!(self.app, App::Answers(..))
    }
}

impl Simulation<'_> {
    fn at(&mut self, time: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, event)));
    }

    fn way(&self) -> u64 {
        self.plan.rtt_ms * MS / 2
    }

    /// How long after it was sent a packet passes the capture.
    fn passes(&self, from_sender: bool) -> u64 {
        let share = if from_sender { self.plan.position } else { 100 - self.plan.position };
        self.way() * share / 100
    }

    /// The handshake, and then everything until the end.
    fn run(&mut self) {
        let (way, sender_is_client) = (self.way(), !self.plan.answers());
        let ecn = self.plan.accurate_ecn.is_some();
        let (syn, answer) = if ecn { (0x1c2, 0x0d2) } else { (0x002, 0x012) };
        let (there, back) = (self.passes(sender_is_client), self.passes(!sender_is_client));
        self.capture(there, sender_is_client, (0, 0, syn, 0), &[]);
        self.capture(way + back, !sender_is_client, (0, 1, answer, 0), &[]);
        self.capture(2 * way + there, sender_is_client, (1, 1, 0x010, 0), &[]);
        self.receiver_echo = value(0);
        match self.plan.app {
            App::Bulk => self.at(2 * way + MS, Event::Write(u64::MAX / 4)),
            App::Every(bytes, _) | App::Uneven(bytes, _) => {
                self.at(2 * way + MS, Event::Write(bytes));
            }
            App::Answers(..) => self.request(2 * way + MS / 2),
        }
        let end = self.plan.seconds * 1000 * MS;
        while let Some(Reverse((now, _, event))) = self.events.pop()
            && now <= end
        {
            match event {
                Event::Write(bytes) => self.write(now, bytes),
                Event::Arrive { start, end, value, is_marked } => {
                    self.arrive(now, (start, end), value, is_marked);
                }
                Event::Ack { ack, gap, value, echo: _, ace: _ } => self.ack(now, ack, gap, value),
                Event::Request => {
                    if let App::Answers(bytes, think_ms, _) = self.plan.app {
                        self.at(now + think_ms * MS, Event::Write(bytes));
                    }
                }
                Event::Timer(number) if number == self.timer && self.acked < self.next => {
                    self.time_out(now);
                }
                Event::Timer(_) => {}
            }
        }
        if self.plan.closes {
            let numbers = (self.next + 1, 1 + 200 * self.requests, 0x011, 0);
            self.capture(end + self.passes(true), true, numbers, &[]);
        }
    }

    fn write(&mut self, now: u64, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
        if let App::Every(bytes, every_ms) = self.plan.app {
            self.at(now + every_ms * MS, Event::Write(bytes));
        }
        if let App::Uneven(bytes, every_ms) = self.plan.app {
            self.writes += 1;
            let [size, pause] = [1, 2].map(|step| UNEVEN[step * self.writes % UNEVEN.len()]);
            self.at(now + every_ms * MS * pause / 100, Event::Write(bytes * size / 100));
        }
        self.send_what_fits(now);
    }

    fn send_what_fits(&mut self, now: u64) {
        let most = self.cwnd.min(self.plan.window).min(self.plan.most_cwnd);
        while self.next < self.written {
            let length = MSS.min(self.written - self.next);
            if self.next + length > self.acked + most {
                break;
            }
            let start = self.next;
            self.next += length;
            self.send(now, start, self.next);
        }
    }

    fn send(&mut self, now: u64, start: u64, end: u64) {
        self.sent += 1;
        let (plan, way) = (self.plan, self.way());
        let leaves = now.max(self.free_ns) + (end - start + 66) * plan.ns_per_byte;
        self.free_ns = leaves;
        let vanishes = plan.black_hole.is_some_and(|(from_ms, longest)| {
            (from_ms * MS..plan.black_hole_to * MS).contains(&now) && end - start + 52 > longest
        });
        let is_lost = plan.lose_every > 0 && self.sent.is_multiple_of(plan.lose_every);
        let is_marked =
            plan.accurate_ecn.is_some_and(|every| every > 0 && self.sent.is_multiple_of(every));
        // At the sender it is captured when it is sent; elsewhere if it gets there.
        let passes = if plan.position == 0 { now } else { leaves + self.passes(true) };
        if plan.position == 0 || !(is_lost || vanishes) {
            let flags = if end == self.written { 0x018 } else { 0x010 };
            let marked = is_marked && plan.position > 0;
            self.data(passes, start, end, (value(now), self.echo), flags, marked);
        }
        if !is_lost && !vanishes {
            self.at(leaves + way, Event::Arrive { start, end, value: value(now), is_marked });
        }
        if self.acked == start || self.next == end {
            self.restart_timer(now);
        }
    }

    fn restart_timer(&mut self, now: u64) {
        self.timer += 1;
        let wait = ((200 + 2 * self.plan.rtt_ms) * MS) << self.backoff.min(6);
        self.at(now + wait, Event::Timer(self.timer));
    }

    fn time_out(&mut self, now: u64) {
        self.backoff += 1;
        (self.threshold, self.cwnd) = ((self.cwnd / 2).max(2 * MSS), MSS);
        self.recovers_to = self.next;
        self.resends = Some(self.acked);
        self.resend(now);
    }

    /// Retransmits what the congestion window allows after a timeout.
    fn resend(&mut self, now: u64) {
        let Some(from) = self.resends else { return };
        let mut start = from.max(self.acked);
        while start < self.recovers_to && start < self.acked + self.cwnd {
            let end = (start + MSS).min(self.recovers_to);
            self.send(now, start, end);
            start = end;
        }
        self.resends = (self.acked < self.recovers_to).then_some(start);
    }

    fn arrive(&mut self, now: u64, (start, end): (u64, u64), value_of: u32, is_marked: bool) {
        if is_marked {
            self.ace = (self.ace + 1) % 8;
        }
        if start <= self.received {
            self.receiver_echo = value_of;
        }
        self.early.insert(start, end);
        while let Some((&start, &end)) = self.early.first_key_value()
            && start <= self.received
        {
            self.early.remove(&start);
            self.received = self.received.max(end);
        }
        let gap = self.early.contains_key(&start).then_some((start, end));
        let (ack, echo, ace, way) = (self.received, self.receiver_echo, self.ace, self.way());
        let ace = if self.plan.accurate_ecn.is_some() { ace } else { 0 };
        let passes = now + self.passes(false);
        self.acknowledgement(passes, ack, gap, (value(now), echo), ace);
        self.at(now + way, Event::Ack { ack, gap, value: value(now), echo, ace });
        if let App::Answers(bytes, _, think_ms) = self.plan.app
            && self.received == bytes * self.requests
        {
            self.request(now + think_ms * MS + MS / 10);
        }
    }

    /// The client asks, and acknowledges everything.
    fn request(&mut self, now: u64) {
        self.requests += 1;
        let passes = now + self.passes(false);
        let numbers = (1 + 200 * (self.requests - 1), self.received + 1, 0x018, 200);
        let stamps = stamps(value(now), self.receiver_echo);
        self.capture(passes, false, numbers, &stamps);
        self.at(now + self.way(), Event::Request);
    }

    fn ack(&mut self, now: u64, ack: u64, gap: Option<(u64, u64)>, value_of: u32) {
        self.echo = value_of;
        if ack > self.acked {
            let more = ack - self.acked;
            self.acked = ack;
            (self.duplicates, self.backoff) = (0, 0);
            if self.resends.is_some() && ack < self.recovers_to {
                self.cwnd += more.min(MSS);
                self.resend(now);
            } else if ack < self.recovers_to {
                let end = (ack + MSS).min(self.next);
                self.send(now, ack, end);
            } else if self.cwnd < self.threshold {
                self.resends = None;
                self.cwnd += more;
            } else {
                self.cwnd += MSS * more / self.cwnd.max(1);
            }
            self.restart_timer(now);
        } else if gap.is_some() {
            self.duplicates += 1;
            if self.duplicates == 3 && ack >= self.recovers_to {
                self.threshold = (self.cwnd / 2).max(2 * MSS);
                self.cwnd = self.threshold;
                self.recovers_to = self.next;
                let end = (ack + MSS).min(self.next);
                self.send(now, ack, end);
            }
        }
        self.send_what_fits(now);
    }

    fn data(
        &mut self,
        passes: u64,
        start: u64,
        end: u64,
        (v, e): (u32, u32),
        flags: u16,
        ce: bool,
    ) {
        let others = 1 + 200 * self.requests;
        self.capture(passes, true, (start + 1, others, flags, end - start), &stamps(v, e));
        if let Some(packet) = self.packets.last_mut()
            && self.plan.accurate_ecn.is_some()
        {
            packet.bytes[1] = if ce { 3 } else { 2 };
            packet.bytes[32] |= 1;
            packet.bytes[33] |= 0x40;
        }
    }

    fn acknowledgement(
        &mut self,
        passes: u64,
        ack: u64,
        gap: Option<(u64, u64)>,
        (v, e): (u32, u32),
        ace: u8,
    ) {
        let mut options = stamps(v, e);
        if let Some((left, right)) = gap {
            options.extend([1, 1, 5, 10]);
            options.extend((left as u32).wrapping_add(self.isn(true) + 1).to_be_bytes());
            options.extend((right as u32).wrapping_add(self.isn(true) + 1).to_be_bytes());
        }
        let flags = 0x010 | u16::from(ace) << 6;
        self.capture(passes, false, (1 + 200 * self.requests, ack + 1, flags, 0), &options);
    }

    /// The initial sequence number of a side.
    const fn isn(&self, sender: bool) -> u32 {
        if sender { 4_294_000_000 } else { 77_000 }
    }

    /// A packet passes the capture: number, ACK, flags and length.
    fn capture(
        &mut self,
        passes: u64,
        from_sender: bool,
        (seq, ack, flags, length): (u64, u64, u16, u64),
        options: &[u8],
    ) {
        let is_syn = flags & 2 != 0;
        let syn_options =
            [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 19, 136, 0, 0, 0, 0, 1, 3, 3, self.plan.scale];
        let options = if is_syn { &syn_options[..] } else { options };
        let (from, to) = if from_sender == self.plan.answers() { (2, 1) } else { (1, 2) };
        let id = &mut self.ids[usize::from(from_sender)];
        *id = id.wrapping_add(1);
        let id = if self.plan.has_id { *id } else { 0 };
        let header = 20 + options.len();
        let mut bytes = vec![0x45, 0];
        bytes.extend(((20 + header) as u16 + length as u16).to_be_bytes());
        bytes.extend(id.to_be_bytes());
        bytes.extend([0x40, 0, 64, 6, 0, 0, 192, 0, 2, from, 192, 0, 2, to]);
        let ports: [u16; 2] = if from == 1 { [40_000, 9000] } else { [9000, 40_000] };
        ports.iter().for_each(|port| bytes.extend(port.to_be_bytes()));
        let seq = (seq as u32).wrapping_add(self.isn(from_sender));
        let has_ack = flags & 0x10 != 0;
        let ack = if has_ack { (ack as u32).wrapping_add(self.isn(!from_sender)) } else { 0 };
        bytes.extend(seq.to_be_bytes());
        bytes.extend(ack.to_be_bytes());
        bytes.extend((flags | ((header / 4) << 12) as u16).to_be_bytes());
        let window = if from_sender { 60_000 } else { self.plan.window } >> self.plan.scale;
        let window = if is_syn { 64_240 } else { window as u16 };
        bytes.extend(window.to_be_bytes());
        bytes.extend((seq ^ ack).to_be_bytes());
        bytes.extend(options);
        bytes.resize(20 + header + length as usize, 0);
        self.packets.push(Packet { time_ns: START_NS + passes, from_sender, bytes });
    }
}

fn stamps(value: u32, echo: u32) -> Vec<u8> {
    let mut options = vec![1, 1, 8, 10];
    options.extend(value.to_be_bytes());
    options.extend(echo.to_be_bytes());
    options
}
