//! Two captures of the same traffic as one.

use crate::captured::CapturedPackets;
use crate::changes::Changes;
use crate::clock::{Clock, ClockBasis, ClockSample};
use crate::copies::ExpectedDelays;
use crate::flow_pairs::{self, FlowPair};
use crate::matching::{Matcher, Matches};
use crate::outcome::{self, Coverage, PacketFate, PacketRow};
use crate::reordering::Reordering;
use crate::summary::TransitSummary;
use crate::transit::{self, DirectionEvidence, Transit};
use crate::translation::{Both, Translation};

/// Packets of a capture, by what became of them. They add up to those of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaptureCounts {
    /// Packets of the file.
    pub packets: u64,
    /// Entirely in both captures, or as the second of them has it.
    pub matched: u64,
    /// Super-segments of which the other capture has a part.
    pub partly_lost: u64,
    /// Lost on the way to the other capture.
    pub lost: u64,
    /// Duplicates that were made on the way from the other capture.
    pub duplicated: u64,
    /// Not in the other capture, which they should have passed first.
    pub only_here: u64,
    /// Before the other capture began, or after it ended.
    pub outside: u64,
    /// Of flows that the other capture does not have.
    pub without_partner: u64,
    /// Without an IP header, or beyond the limits.
    pub not_compared: u64,
}

/// A flow in both captures, with its TCP stream in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairedStream {
    /// Number of the stream in A, for TCP.
    pub a: u32,
    /// Number of the stream in B.
    pub b: u32,
    /// Whether addresses or ports differ.
    pub is_translated: bool,
}

/// Two captures, aligned.
#[derive(Debug)]
pub struct Merge {
    /// The clock of B against that of A.
    pub clock: Clock,
    /// A to B, and B to A.
    pub transits: [TransitSummary; 2],
    /// Every packet that was compared, by time.
    pub rows: Vec<PacketRow>,
    /// What differs in packets that are in both captures.
    pub changes: Changes,
    /// What became of the packets of A and B.
    pub counts: [CaptureCounts; 2],
    /// Flows in both captures, and those in A or B alone.
    pub flows: [u64; 3],
    /// TCP streams that are in both captures.
    pub streams: Vec<PairedStream>,
    /// Whether which capture comes first rests on the clocks alone, for some flow.
    pub is_direction_assumed: bool,
    /// First and last time of A and B by the clock of A, ns since 1970.
    pub spans: [(i64, i64); 2],
}

/// A flow in both captures with what was learned of it.
struct Learned {
    pair: FlowPair,
    translation: Translation,
    pairs: [Vec<(u32, u32)>; 2],
}

/// Compares two captures. `same_clock`: their times are of one clock. `None` if
/// `is_stopped` says so, which is asked for every flow.
pub fn merge(
    mut a: CapturedPackets,
    mut b: CapturedPackets,
    same_clock: bool,
    is_stopped: &dyn Fn() -> bool,
) -> Option<Merge> {
    a.sort();
    b.sort();
    let (a, b) = (a, b);
    let flow_pairs = flow_pairs::pair(&a, &b);
    let mut learned = Vec::with_capacity(flow_pairs.len());
    let mut evidence = Vec::with_capacity(flow_pairs.len());
    for pair in flow_pairs {
        if is_stopped() {
            return None;
        }
        let both = [0, 1].map(|direction| Both::of(&a, &b, pair, direction));
        let is_tcp = a.flows.get(pair.a as usize).is_some_and(|flow| flow.stream.is_some());
        let (translation, pairs) = Translation::learn(both, is_tcp);
        evidence.push([0, 1].map(|side| DirectionEvidence::of(&both[side], &pairs[side])));
        learned.push(Learned { pair, translation, pairs });
    }
    let (transits, is_direction_assumed) = transit::decide(&evidence);
    let flows: Vec<(&Learned, Transit)> = learned.iter().zip(transits).collect();
    let samples = samples(&a, &b, &flows);
    let clock = match same_clock {
        true => Clock::same(ClockBasis::SameClock),
        false => Clock::estimate(&samples[0], &samples[1]),
    };
    let coverage = Coverage::of(&a, &b, &clock);
    let expected = [Transit::AToB, Transit::BToA].map(|transit| {
        let each = samples[transit.index()].iter().map(|sample| {
            let times = [sample.a_ns, clock.in_a(sample.b_ns)];
            let sent = times[transit.index()];
            (sent, times[transit.reverse().index()].saturating_sub(sent))
        });
        ExpectedDelays::of(each.collect())
    });
    let mut rows = Vec::new();
    let mut changes = Changes::default();
    let mut reordering = [Reordering::default(); 2];
    for (flow, first) in &flows {
        if is_stopped() {
            return None;
        }
        for direction in 0..2 {
            let transit = if direction == 0 { *first } else { first.reverse() };
            let both = Both::of(&a, &b, flow.pair, direction);
            let expected = &expected[transit.index()];
            let matcher =
                Matcher { both, translation: &flow.translation, clock: &clock, transit, expected };
            let matches: Matches = matcher.run();
            changes.add((&a, &b), flow.pair, &both, &matches, transit);
            let from = rows.len();
            outcome::rows(&both, &matches, &clock, transit, (expected, &coverage), &mut rows);
            let of_flow = rows.get_mut(from..).unwrap_or_default();
            of_flow.sort_unstable_by_key(order);
            let (places, arrivals): (Vec<usize>, Vec<(i64, u32)>) = of_flow
                .iter()
                .enumerate()
                .filter_map(|(place, row)| Some((place, arrival(row)?)))
                .unzip();
            for place in reordering[transit.index()].add(&arrivals) {
                if let Some(row) = places.get(place).and_then(|place| of_flow.get_mut(*place)) {
                    row.is_reordered = true;
                }
            }
        }
    }
    rows.sort_unstable_by_key(order);
    changes.sort();
    let paired = flows.len() as u64;
    let counts = [count(&a, &rows, |row| row.a, 0), count(&b, &rows, |row| row.b, 1)];
    Some(Merge {
        transits: Transit::ALL
            .map(|transit| TransitSummary::of(transit, &rows, reordering[transit.index()])),
        clock,
        rows,
        changes,
        counts,
        flows: [paired, a.flows.len() as u64 - paired, b.flows.len() as u64 - paired],
        streams: streams(&a, &b, &flows),
        is_direction_assumed,
        spans: coverage.spans,
    })
}

/// By time at the first capture; what one packet there is several times in the other
/// stays in the order of that.
fn order(row: &PacketRow) -> (i64, Transit, Option<u32>, Option<u32>, PacketFate) {
    let numbers = if row.transit == Transit::AToB { (row.a, row.b) } else { (row.b, row.a) };
    (row.time_ns, row.transit, numbers.0, numbers.1, row.fate)
}

/// When a packet that is in both captures passed the second one, and its number there.
fn arrival(row: &PacketRow) -> Option<(i64, u32)> {
    let number = if row.transit == Transit::AToB { row.b } else { row.a };
    Some((row.time_ns.saturating_add(row.delay_ns?), number?))
}

/// Times of the unmistakable packets of each transit.
fn samples(
    a: &CapturedPackets,
    b: &CapturedPackets,
    flows: &[(&Learned, Transit)],
) -> [Vec<ClockSample>; 2] {
    let mut samples = [Vec::new(), Vec::new()];
    for (flow, first) in flows {
        for (direction, pairs) in flow.pairs.iter().enumerate() {
            let transit = if direction == 0 { *first } else { first.reverse() };
            let both = Both::of(a, b, flow.pair, direction);
            let of_flow = pairs.iter().filter_map(|(a, b)| {
                let (a, b) = transit::packets(&both, *a, *b)?;
                Some(ClockSample { a_ns: a.time_ns, b_ns: b.time_ns })
            });
            samples[transit.index()].extend(of_flow);
        }
    }
    samples
}

fn streams(
    a: &CapturedPackets,
    b: &CapturedPackets,
    flows: &[(&Learned, Transit)],
) -> Vec<PairedStream> {
    let each = flows.iter().filter_map(|(flow, _)| {
        let a = a.flows.get(flow.pair.a as usize)?;
        let b = b.flows.get(flow.pair.b as usize)?;
        Some(PairedStream { a: a.stream?, b: b.stream?, is_translated: a.key != b.key })
    });
    each.collect()
}

/// Counts the packets of a capture, each once.
fn count(
    captured: &CapturedPackets,
    rows: &[PacketRow],
    number: impl Fn(&PacketRow) -> Option<u32>,
    capture: usize,
) -> CaptureCounts {
    let mut counts = CaptureCounts {
        packets: captured.packets_read,
        not_compared: captured.without_ip + captured.beyond_limit,
        ..CaptureCounts::default()
    };
    let mut each: Vec<(u32, PacketFate, usize)> =
        rows.iter().filter_map(|row| Some((number(row)?, row.fate, row.transit.index()))).collect();
    each.sort_unstable();
    for packet in each.chunk_by(|a, b| a.0 == b.0) {
        // Of the rows of a packet the last says most: partly lost comes after delivered.
        let Some((_, fate, from)) = packet.last() else { continue };
        let slot = match fate {
            PacketFate::Delivered => &mut counts.matched,
            PacketFate::PartlyLost if *from == capture => &mut counts.partly_lost,
            PacketFate::PartlyLost => &mut counts.matched,
            PacketFate::Lost => &mut counts.lost,
            PacketFate::Duplicated => &mut counts.duplicated,
            PacketFate::OnlyAfter => &mut counts.only_here,
            PacketFate::Outside => &mut counts.outside,
        };
        *slot += 1;
    }
    let known = counts.matched
        + counts.partly_lost
        + counts.lost
        + counts.duplicated
        + counts.only_here
        + counts.outside
        + counts.not_compared;
    counts.without_partner = counts.packets.saturating_sub(known);
    counts
}
