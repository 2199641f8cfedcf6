//! The true kind of each retransmission: which event of the kernel's it belongs to.

use crate::run::{Packet, Run};
use crate::tracepoints::{Event, What};
use capture::LinkType;
use capture::dissect::{self, Layers, TcpFlags};
use std::collections::{HashMap, HashSet};
use tcp_analysis::RetransmissionKind;

/// What is true of a packet that was retransmitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retransmission {
    /// `None`: no event of the kernel's belongs to it.
    pub(crate) kind: Option<RetransmissionKind>,
    /// Everything in it was delivered by an earlier packet.
    pub(crate) unnecessary: bool,
}

/// The kernel's events are written right after the packet was passed to the device; the
/// clocks of both are read apart from each other.
const BEFORE_NS: i64 = 50_000;
const AFTER_NS: i64 = 2_000_000;

/// More events than this without a packet, or packets without an event: not usable.
const MAX_UNMATCHED: f64 = 0.01;

/// `TCP_CA_Recovery` and `TCP_CA_Loss`.
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

/// Retransmissions by the places of their packets.
pub(crate) fn of(run: &Run) -> HashMap<usize, Retransmission> {
    matched(run).0
}

/// Why a run has no truth.
pub(crate) fn not_usable(run: &Run) -> Option<String> {
    if run.missed > 0 {
        return Some(format!("the capture missed {} packets", run.missed));
    }
    let (truth, unmatched) = matched(run);
    let without = truth.values().filter(|found| found.kind.is_none()).count();
    let most = (truth.len() as f64 * MAX_UNMATCHED).max(2.0);
    (unmatched as f64 > most || without as f64 > most).then(|| {
        format!(
            "of {} retransmissions {without} have no event, and {unmatched} events no packet",
            truth.len()
        )
    })
}

/// A retransmission event: when, and the kind of its first packet and of those behind it.
struct Sent {
    at_ns: i64,
    kinds: [RetransmissionKind; 2],
}

/// The retransmissions, and how many events have no packet.
fn matched(run: &Run) -> (HashMap<usize, Retransmission>, usize) {
    let mut sent = HashMap::<u16, Vec<Sent>>::new();
    for (port, events) in by_port(&run.events) {
        sent.insert(port, kinds(&events));
    }
    let mut truth = HashMap::new();
    let mut unmatched = 0;
    let late = late(run);
    let ports: HashSet<u16> = sent.keys().chain(late.keys()).copied().collect();
    for port in ports {
        let (sent, late) =
            (sent.remove(&port).unwrap_or_default(), late.get(&port).cloned().unwrap_or_default());
        let mut next = 0;
        let mut without = sent.len();
        for train in late.chunk_by(Late::continues_with) {
            let at_ns = train.first().map_or(0, |packet| packet.at_ns);
            while sent.get(next).is_some_and(|event| event.at_ns < at_ns - BEFORE_NS) {
                next += 1;
            }
            let event = sent.get(next).filter(|event| event.at_ns < at_ns + AFTER_NS);
            for (number, packet) in train.iter().enumerate() {
                let kind = event.map(|event| event.kinds[usize::from(number > 0)]);
                let unnecessary = packet.unnecessary;
                truth.insert(packet.place, Retransmission { kind, unnecessary });
            }
            if event.is_some() {
                next += 1;
                without -= 1;
            }
        }
        unmatched += without;
    }
    (truth, unmatched)
}

fn by_port(events: &[Event]) -> HashMap<u16, Vec<Event>> {
    let mut ports = HashMap::<u16, Vec<Event>>::new();
    for event in events {
        ports.entry(event.port).or_default().push(*event);
    }
    ports
}

/// The kind of each retransmission event of a connection, by the state it was sent in.
fn kinds(events: &[Event]) -> Vec<Sent> {
    let (mut state, mut first) = (0, false);
    let mut sent = Vec::new();
    for event in events {
        match event.what {
            // Each expiry of the timer enters the state again.
            What::State(new) => {
                first = new == LOSS || new != state;
                state = new;
            }
            What::Retransmit => {
                let kinds = match (state, first) {
                    (LOSS, true) => [RetransmissionKind::Timeout, RetransmissionKind::AfterTimeout],
                    (LOSS, false) => [RetransmissionKind::AfterTimeout; 2],
                    (RECOVERY, true) => [RetransmissionKind::Fast, RetransmissionKind::Recovery],
                    (RECOVERY, false) => [RetransmissionKind::Recovery; 2],
                    // Nothing else is retransmitted in the other states.
                    _ => [RetransmissionKind::TailLossProbe; 2],
                };
                first = false;
                sent.push(Sent { at_ns: event.at_ns, kinds });
            }
        }
    }
    sent
}

/// A packet that was retransmitted.
#[derive(Debug, Clone, Copy)]
struct Late {
    place: usize,
    at_ns: i64,
    seq: u32,
    end: u32,
    unnecessary: bool,
}

impl Late {
    /// Whether both are segments of one event, which the kernel passed to the device at once.
    fn continues_with(&self, next: &Late) -> bool {
        self.at_ns == next.at_ns && self.end == next.seq
    }
}

/// Retransmissions, by connection, in the order of sending.
fn late(run: &Run) -> HashMap<u16, Vec<Late>> {
    let mut late = HashMap::<u16, Vec<Late>>::new();
    let mut highest = HashMap::<u16, u32>::new();
    let mut delivered = HashMap::<(u16, u32), u32>::new();
    let mut layers = Layers::new();
    for (place, packet) in run.packets.iter().enumerate().filter(|(_, packet)| packet.is_data) {
        let Some((seq, end)) = range(packet, &mut layers) else { continue };
        let high = highest.entry(packet.port).or_insert(seq);
        if (seq.wrapping_sub(*high) as i32) < 0 {
            let unnecessary = delivered.get(&(packet.port, seq)).is_some_and(|&most| most >= end);
            let at_ns = packet.arrived_ns as i64;
            late.entry(packet.port).or_default().push(Late { place, at_ns, seq, end, unnecessary });
        }
        if (end.wrapping_sub(*high) as i32) > 0 {
            *high = end;
        }
        if packet.due_ns.is_some() {
            let most = delivered.entry((packet.port, seq)).or_insert(end);
            *most = end.max(*most);
        }
    }
    late
}

/// The sequence numbers of a packet that takes some; keep-alives and window probes are none
/// of the kernel's retransmissions.
fn range(packet: &Packet, layers: &mut Layers) -> Option<(u32, u32)> {
    dissect::dissect(LinkType::RAW, &packet.bytes, packet.length, layers);
    let segment = layers.tcp(&packet.bytes)?;
    let takes_space = segment.payload_len > 0
        || segment.flags.has(TcpFlags::SYN)
        || segment.flags.has(TcpFlags::FIN);
    takes_space.then(|| (segment.seq, segment.next_seq()))
}
