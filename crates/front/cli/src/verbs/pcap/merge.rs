//! `longhaul pcap merge`: two captures of one transfer, aligned.

use super::reading::{self, Capture, Tables};
use super::{Files, analysis, document, tables};
use crate::console;
use crate::console::Console;
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use capture::{MemoryBudget, TABLE_BYTES};
use capture_merge::{
    CapturedPackets, Clock, ClockBasis, DelaySummary, Merge, PacketFate, PacketRow, Transit,
    TransitSummary,
};
use clap::Args;
use perf::StopFlag;
use report::terminal::{self, MergedCapture};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::Path;
use tcp_analysis::{Rules, Streams};

/// Align two captures of one transfer
///
/// The captures are made at both ends, or at any two points. Packets are recognised
/// by their contents, also behind NAT, and where one capture has the super-segments of
/// GSO or GRO. The clocks may differ.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct MergeArgs {
    #[command(flatten)]
    pub(super) files: Files,
    /// Take the times of both captures as those of one clock
    #[arg(long)]
    pub(super) same_clock: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul pcap merge client.pcap server.pcap
  longhaul pcap merge client.pcap server.pcap --csv > packets.csv
  ssh server cat s.pcap | longhaul pcap merge client.pcap - --json
  longhaul pcap merge inside.pcap outside.pcap --same-clock   one host, two interfaces

The difference of the clocks is known to half of the least RTT; its estimate
assumes that the least delays of both directions are equal.

Exit codes: 0 aligned, 1 a file could not be read to its end, or the captures
have no packet in common, 2 wrong usage.";

/// A capture with what is needed to align it.
struct Read {
    capture: Capture,
    packets: CapturedPackets,
    streams: Streams,
}

fn read(path: &Path, stop: &StopFlag, console: &mut Console) -> Result<Read, String> {
    // Both captures have tables at the same time, and each has two of them.
    let tables = Tables::of_bytes(reading::READING_BYTES / 3);
    let analysis = MemoryBudget::new(reading::READING_BYTES / 6);
    let mut packets = CapturedPackets::within(&tables.budget);
    let mut streams = Streams::within(Rules::default(), &analysis);
    let mut capture = reading::read_packets(path, &tables, stop, console, |found, _| {
        let packet = found.packet;
        let tcp = found.stream.zip(found.segment);
        packets.add(packet, found.layers, tcp);
        if let Some((stream, segment)) = tcp {
            streams.add(stream, packet.number, packet.time_ns, segment);
        }
        ControlFlow::Continue(())
    })?;
    capture.not_analysed = (packets.beyond_flows > 0).then(|| {
        format!(
            "{} packets of further flows are not compared: tables are limited to {} MiB.",
            packets.beyond_flows,
            TABLE_BYTES >> 20
        )
    });
    Ok(Read { capture, packets, streams })
}

pub(super) fn run(files: &Files, same_clock: bool, console: &mut Console) -> Outcome {
    let [a, b] = files.files.as_slice() else {
        return Err(Failure::usage(format!(
            "{} capture files: give two, 'longhaul pcap merge A B'",
            files.files.len()
        )));
    };
    if a == Path::new("-") && a == b {
        return Err(Failure::usage("standard input is one capture: give a file for the other"));
    }
    let stop = stop::on_signals();
    let mut code = DONE;
    let mut both = Vec::new();
    for path in [a, b] {
        let read = read(path, &stop, console).map_err(Failure::work)?;
        if read.capture.broken.is_some() {
            code = FAILED;
        }
        if read.capture.is_interrupted {
            return Ok(FAILED);
        }
        both.push(read);
    }
    let Ok([a, b]) = <[Read; 2]>::try_from(both) else { return Ok(FAILED) };
    if a.packets.packets_read + b.packets.packets_read > 1_000_000 {
        console.live("comparing packets");
    }
    let captures = [a.capture, b.capture];
    let all_streams = [a.streams, b.streams];
    let merge = capture_merge::merge(a.packets, b.packets, same_clock, &|| stop.is_raised());
    console.clear();
    let Some(merge) = merge else { return Ok(FAILED) };
    let points = points(&merge, &all_streams);
    let notes = notes(&merge, &captures);
    if merge.counts[0].matched + merge.counts[0].partly_lost == 0 {
        let names = captures.each_ref().map(|capture| capture.name.as_str());
        return Err(Failure::work(format!(
            "{} and {} have no packet in common: are they of the same transfer and time?",
            names[0], names[1]
        )));
    }
    if files.json {
        console.print(&console::json(&object(&merge, &captures, &points, &notes))?);
    } else if files.csv || files.parquet.is_some() {
        let mut table = files.table();
        table.add(tables::merged(&merge.rows), console)?;
        table.finish(console)?;
    } else {
        let [a, b] = [0, 1].map(|side| MergedCapture {
            name: &captures[side].name,
            point: points[side].as_deref(),
        });
        console.print(&terminal::capture_merge(&merge, [a, b], &notes, &console.out));
    }
    if files.is_whole() {
        for note in &notes {
            console.say(note);
        }
    }
    Ok(code)
}

/// Where each capture was made, by the stream with most payload.
fn points(merge: &Merge, streams: &[Streams; 2]) -> [Option<String>; 2] {
    let payload = |number: u32| {
        let (_, connection) = streams[0].get(number)?;
        Some(connection.traffic(connection.data_direction()).2)
    };
    let largest = merge.streams.iter().max_by_key(|pair| payload(pair.a));
    let point = |side: usize, number: u32| {
        let (_, connection) = streams[side].get(number)?;
        Some(analysis::place(&connection.vantage(connection.data_direction())))
    };
    match largest {
        Some(pair) => [point(0, pair.a), point(1, pair.b)],
        None => [None, None],
    }
}

/// What else to know, as sentences.
fn notes(merge: &Merge, captures: &[Capture; 2]) -> Vec<String> {
    let mut notes: Vec<String> = captures
        .iter()
        .flat_map(|capture| {
            capture.notes().into_iter().map(|note| format!("{}: {note}", capture.name))
        })
        .collect();
    if let Some(why) = merge.clock.unsuitable {
        notes.push(format!("One-way delays are not reliable: {why}."));
    }
    if merge.is_direction_assumed {
        notes.push(
            "Packets of one direction alone: which capture they pass first is taken from the \
             times, as if the clocks were equal."
                .to_owned(),
        );
    }
    for (counts, name) in merge.counts.iter().zip(["A", "B"]) {
        if counts.only_here > 0 {
            let other = if name == "A" { "B" } else { "A" };
            notes.push(format!(
                "{} packets of {name} should have passed {other} first and are not there: the \
                 capture dropped them, they took another route, or a middlebox sent them.",
                counts.only_here
            ));
        }
    }
    notes
}

fn object(
    merge: &Merge,
    captures: &[Capture; 2],
    points: &[Option<String>; 2],
    notes: &[String],
) -> Value {
    let files: Vec<Value> = [0, 1]
        .into_iter()
        .map(|side| {
            let counts = merge.counts[side];
            let (first, last) = merge.spans[side];
            document::file(
                &captures[side],
                json!({
                    "captured": points[side],
                    "first_unix_s": first as f64 / 1e9,
                    "last_unix_s": last as f64 / 1e9,
                    "matched": counts.matched,
                    "partly_lost": counts.partly_lost,
                    "lost": counts.lost,
                    "duplicated": counts.duplicated,
                    "only_here": counts.only_here,
                    "outside": counts.outside,
                    "without_partner": counts.without_partner,
                    "not_compared": counts.not_compared,
                }),
            )
        })
        .collect();
    let streams: Vec<Value> = merge
        .streams
        .iter()
        .map(|it| json!({ "a": it.a, "b": it.b, "translated": it.is_translated }))
        .collect();
    let changes: Vec<Value> = merge
        .changes
        .fields
        .iter()
        .map(|it| {
            json!({
                "direction": it.transit.name(),
                "field": it.field,
                "packets": it.count,
                "first": { "a": it.first.0, "b": it.first.1 },
                "before": it.values[0],
                "after": it.values[1],
                "routing": it.is_routing,
            })
        })
        .collect();
    let handshakes: Vec<Value> = merge
        .changes
        .handshakes
        .iter()
        .map(|it| {
            json!({
                "direction": it.transit.name(),
                "streams": { "a": it.streams.0, "b": it.streams.1 },
                "packet": if it.is_syn_ack { "SYN-ACK" } else { "SYN" },
                "first": { "a": it.packets.0, "b": it.packets.1 },
                "option": it.option,
                "before": it.values[0],
                "after": it.values[1],
            })
        })
        .collect();
    json!({
        "schema": "longhaul.pcap-merge/1",
        "version": env!("CARGO_PKG_VERSION"),
        "files": files,
        "flows": {
            "in_both": merge.flows[0], "a_alone": merge.flows[1], "b_alone": merge.flows[2],
        },
        "streams": streams,
        "clock": clock(&merge.clock),
        "a_to_b": direction(&merge.transits[0], &merge.rows),
        "b_to_a": direction(&merge.transits[1], &merge.rows),
        "changes": changes,
        "handshakes_compared": merge.changes.handshakes_compared[0],
        "handshakes_changed": merge.changes.handshakes_compared[1],
        "handshake_changes": handshakes,
        "notes": notes,
    })
}

fn clock(clock: &Clock) -> Value {
    let segments: Vec<Value> = clock
        .segments
        .iter()
        .map(|it| {
            json!({
                "from_unix_s": it.from_ns as f64 / 1e9,
                "offset_s": it.offset_ns as f64 / 1e9,
                "uncertainty_s": it.uncertainty_ns.map(|ns| ns as f64 / 1e9),
                "drift_ppm": it.drift.map(|drift| drift * 1e6),
                "drift_uncertainty_ppm":
                    it.drift_uncertainty.is_finite().then_some(it.drift_uncertainty * 1e6),
            })
        })
        .collect();
    json!({
        "basis": match clock.basis {
            ClockBasis::BothDirections => "both directions",
            ClockBasis::OneDirection => "one direction",
            ClockBasis::SameClock => "same clock",
            ClockBasis::Nothing => "no packet",
        },
        "segments": segments,
        "unsuitable": clock.unsuitable,
    })
}

fn direction(summary: &TransitSummary, rows: &[PacketRow]) -> Value {
    let of = |fates: &'static [PacketFate]| {
        let rows = rows.iter().filter(move |row| row.transit == summary.transit);
        rows.filter(move |row| fates.contains(&row.fate))
    };
    let upstream = |row: &PacketRow| match summary.transit {
        Transit::AToB => row.a,
        Transit::BToA => row.b,
    };
    let downstream = |row: &PacketRow| match summary.transit {
        Transit::AToB => row.b,
        Transit::BToA => row.a,
    };
    let lost: Vec<u32> =
        of(&[PacketFate::Lost, PacketFate::PartlyLost]).filter_map(upstream).collect();
    let duplicates: Vec<u32> = of(&[PacketFate::Duplicated]).filter_map(downstream).collect();
    let late = of(&[PacketFate::Delivered]).filter(|row| row.is_reordered);
    let reordered: Vec<u32> = late.filter_map(downstream).collect();
    let ms = |ns: i64| ns as f64 / 1e6;
    let delay = |it: DelaySummary| {
        json!({
            "count": it.count,
            "min": ms(it.min_ns),
            "median": ms(it.median_ns),
            "p95": ms(it.p95_ns),
            "p99": ms(it.p99_ns),
            "max": ms(it.max_ns),
            "jitter": it.jitter_ns / 1e6,
        })
    };
    json!({
        "packets": summary.sent,
        "lost": summary.lost,
        "partly_lost": summary.partly_lost,
        "lost_segments": summary.lost_segments,
        "lost_bytes": summary.lost_bytes,
        "loss_bursts": summary.bursts.count,
        "longest_loss_burst": summary.bursts.longest,
        "duplicated": summary.duplicated,
        "only_after": summary.only_after,
        "outside": summary.outside,
        "reordered": summary.reordering.packets,
        "reordering_extent": summary.reordering.max_extent,
        "reordering_late_ms": ms(summary.reordering.max_late_ns),
        "delay_ms": summary.delays.map(delay),
        "lost_packets": lost,
        "duplicate_packets": duplicates,
        "reordered_packets": reordered,
    })
}
