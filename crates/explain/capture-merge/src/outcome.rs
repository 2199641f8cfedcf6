//! What happened to each packet between the two captures.

use crate::captured::CapturedPackets;
use crate::clock::Clock;
use crate::copies::ExpectedDelays;
use crate::matching::Matches;
use crate::packet::PacketIdentity;
use crate::transit::Transit;
use crate::translation::Both;

/// What happened to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketFate {
    /// It is in both captures.
    Delivered,
    /// A super-segment, of which a part is missing in the capture behind it.
    PartlyLost,
    /// It passed the first capture and not the second.
    Lost,
    /// The second capture has it once more than the first.
    Duplicated,
    /// The second capture has it and the first does not: it entered in between, took
    /// another route, or the first capture dropped it.
    OnlyAfter,
    /// It would have passed the other capture before that began or after it ended.
    Outside,
}

impl PacketFate {
    /// Its name in JSON and CSV.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PacketFate::Delivered => "delivered",
            PacketFate::PartlyLost => "partly_lost",
            PacketFate::Lost => "lost",
            PacketFate::Duplicated => "duplicated",
            PacketFate::OnlyAfter => "only_after",
            PacketFate::Outside => "outside",
        }
    }
}

/// A packet in both captures, or one that is in one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketRow {
    /// From which capture to which.
    pub transit: Transit,
    /// What happened to it.
    pub fate: PacketFate,
    /// Its number in A.
    pub a: Option<u32>,
    /// Its number in B.
    pub b: Option<u32>,
    /// When it passed the first capture it is in, by the clock of A, ns since 1970.
    pub time_ns: i64,
    /// From one capture to the other, in ns.
    pub delay_ns: Option<i64>,
    /// Bytes of payload that are in both captures; of a lost packet, that are missing.
    pub bytes: u32,
    /// Segments that were lost, where it is a super-segment; otherwise 1.
    pub segments: u32,
    /// Whether it arrived after one of its flow that was sent later (RFC 4737).
    pub is_reordered: bool,
}

/// First and last time of the captures, by the clock of A.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coverage {
    pub(crate) spans: [(i64, i64); 2],
}

impl Coverage {
    pub(crate) fn of(a: &CapturedPackets, b: &CapturedPackets, clock: &Clock) -> Self {
        let (a, b) = (a.span_ns.unwrap_or_default(), b.span_ns.unwrap_or_default());
        Coverage { spans: [a, (clock.in_a(b.0), clock.in_a(b.1))] }
    }

    fn has(&self, capture: usize, time_ns: i64) -> bool {
        self.spans.get(capture).is_some_and(|span| (span.0..=span.1).contains(&time_ns))
    }
}

/// The packets of a direction of a flow with what happened to them, one row for each pair
/// and one for each packet that is not entirely in both captures.
pub(crate) fn rows(
    both: &Both<'_>,
    matches: &Matches,
    clock: &Clock,
    transit: Transit,
    (expected, coverage): (&ExpectedDelays, &Coverage),
    out: &mut Vec<PacketRow>,
) {
    let [a_start, b_start] = both.starts;
    let mut bytes = [vec![None::<u32>; both.a.len()], vec![None::<u32>; both.b.len()]];
    for pair in &matches.pairs {
        let places = [pair.a as usize - a_start, pair.b as usize - b_start];
        let (Some(in_a), Some(in_b)) = (both.a.get(places[0]), both.b.get(places[1])) else {
            continue;
        };
        for (bytes, place) in bytes.iter_mut().zip(places) {
            if let Some(bytes) = bytes.get_mut(place) {
                *bytes = Some(bytes.unwrap_or(0).saturating_add(pair.bytes));
            }
        }
        let times = [in_a.time_ns, clock.in_a(in_b.time_ns)];
        let (sent, came) = (times[transit.index()], times[transit.reverse().index()]);
        out.push(PacketRow {
            transit,
            fate: PacketFate::Delivered,
            a: Some(in_a.number),
            b: Some(in_b.number),
            time_ns: sent,
            delay_ns: Some(came.saturating_sub(sent)),
            bytes: pair.bytes,
            segments: 1,
            is_reordered: false,
        });
    }
    let longest = [both.a, both.b]
        .map(|packets| packets.iter().map(|packet| packet.payload_len).max().unwrap_or(0));
    let segment = longest[0].min(longest[1]).max(1);
    let mut duplicates = matches.duplicates.iter().peekable();
    for (capture, (packets, bytes)) in [both.a, both.b].into_iter().zip(&bytes).enumerate() {
        let is_first = capture == transit.index();
        for (place, (packet, matched)) in packets.iter().zip(bytes).enumerate() {
            let is_copy = !is_first && {
                let place = (both.starts[capture] + place) as u32;
                while duplicates.next_if(|it| **it < place).is_some() {}
                duplicates.peek().is_some_and(|it| **it == place)
            };
            let missing = packet.payload_len.saturating_sub(matched.unwrap_or(0));
            if matched.is_some() && (missing == 0 || !is_first) {
                continue;
            }
            out.push(unmatched(
                packet,
                (capture, matched.is_some(), is_copy),
                (clock, expected, coverage),
                transit,
                (missing, missing.div_ceil(segment).max(1)),
            ));
        }
    }
}

/// The row of a packet that is not, or not entirely, in the other capture.
fn unmatched(
    packet: &PacketIdentity,
    (capture, is_partial, is_copy): (usize, bool, bool),
    (clock, expected, coverage): (&Clock, &ExpectedDelays, &Coverage),
    transit: Transit,
    (bytes, segments): (u32, u32),
) -> PacketRow {
    let is_first = capture == transit.index();
    let time_ns = if capture == 0 { packet.time_ns } else { clock.in_a(packet.time_ns) };
    let delay = expected.at(time_ns);
    let elsewhere =
        if is_first { time_ns.saturating_add(delay) } else { time_ns.saturating_sub(delay) };
    let fate = if is_partial {
        PacketFate::PartlyLost
    } else if is_copy {
        PacketFate::Duplicated
    } else if !coverage.has(1 - capture, elsewhere) {
        PacketFate::Outside
    } else if is_first {
        PacketFate::Lost
    } else {
        PacketFate::OnlyAfter
    };
    let number = |of: usize| (of == capture).then_some(packet.number);
    PacketRow {
        transit,
        fate,
        a: number(0),
        b: number(1),
        time_ns,
        delay_ns: None,
        bytes,
        segments,
        is_reordered: false,
    }
}
