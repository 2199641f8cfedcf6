//! `longhaul pcap streams`: TCP streams, worst first.

use super::analysis::{self, Analysis, Explained, RulesArg};
use super::files_document::FilesDocument;
use super::rows::MAX_TEXT_ROWS;
use super::{Files, document, tables};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use capture::dissect::{Direction, FlowKey};
use clap::Args;
use record::{Caveat, command_line};
use report::terminal::{self, StreamRow};
use serde_json::{Value, json};
use std::path::Path;
use tcp_analysis::{Connection, Kind};
use units::{BitRate, ByteCount, Rtt};

#[derive(Debug, Args)]
pub(super) struct StreamsArgs {
    #[command(flatten)]
    files: Files,
    /// Rules of the flags: wireshark-4.0, wireshark-4.4
    #[arg(long, value_enum, value_name = "VERSION", default_value = "wireshark-4.4")]
    #[arg(hide_possible_values = true)]
    rules: RulesArg,
    /// Streams to show; 0 for all [default: 10, with --csv or --json all]
    #[arg(long, short = 'n', value_name = "N")]
    rows: Option<usize>,
}

/// Streams on a terminal, and streams of a file that are explained.
const ROWS: usize = 10;

pub(super) fn run(args: &StreamsArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let (mut code, mut table) = (DONE, args.files.table());
    let mut document = FilesDocument::new("longhaul.pcap-streams/1");
    for path in &args.files.files {
        let analysis = match analysis::analyse(path, args.rules, &stop, console) {
            Ok(analysis) => analysis,
            Err(line) => {
                console.clear();
                console::complain(&line);
                code = FAILED;
                continue;
            }
        };
        if analysis.capture.broken.is_some() || analysis.capture.is_interrupted {
            code = FAILED;
        }
        // Standard input cannot be read twice.
        let again = path.as_path() != Path::new("-") && !analysis.capture.is_interrupted;
        let largest = if again { analysis.largest(ROWS) } else { Vec::new() };
        let explained = analysis.explain(path, &largest, &stop, console).map_err(Failure::work)?;
        console.clear();
        let order = worst_first(&analysis);
        let whole = args.files.is_whole();
        let most = match args.rows.unwrap_or(if whole { 0 } else { ROWS }) {
            0 => order.len(),
            most => most.min(order.len()),
        };
        let shown = order.iter().take(most).filter_map(|number| {
            let (key, connection) = analysis.streams.get(*number)?;
            Some((row(*number, key, connection, &explained, &analysis), *number))
        });
        if args.files.json {
            let first_ns = analysis.capture.overview.first_ns;
            let tests = analysis.tests.iter();
            let tests: Vec<Value> =
                tests.map(|test| document::iperf3_test(test, first_ns)).collect();
            let view = json!({ "streams": null, "iperf3_tests": tests });
            let streams = shown.map(|(row, number)| object(&row, number, &analysis));
            let object = document::file(&analysis.capture, view);
            document.add(object, Some(("streams", Box::new(streams))), console)?;
        } else if args.files.is_table() {
            let rows = shown.map(|(row, _)| row);
            table.add(tables::streams(&analysis.capture, rows), console)?;
        } else {
            let rows: Vec<StreamRow> = shown.take(MAX_TEXT_ROWS).map(|(row, _)| row).collect();
            let first_ns = analysis.capture.overview.first_ns;
            let tests = analysis.tests.iter().take(ROWS);
            let tests: Vec<Vec<String>> =
                tests.map(|test| terminal::iperf3_test(test, first_ns)).collect();
            let text = terminal::capture_streams(&rows, order.len(), &tests, &console.out);
            console.print(&analysis.capture.headed(&text));
            if let Some(first) = rows.first().filter(|_| again) {
                let words = ["longhaul", "explain", &path.to_string_lossy(), "--connection"];
                let number = first.stream.to_string();
                let command = command_line(words.into_iter().chain([number.as_str()]));
                console.print(&format!("\n{}", terminal::next_command(&command, &console.out)));
            }
        }
    }
    if args.files.json {
        document.finish(console);
    } else {
        table.finish(console)?;
    }
    Ok(code)
}

/// Streams with data, those that retransmitted the largest share first; of equal ones the
/// larger one.
fn worst_first(analysis: &Analysis) -> Vec<u32> {
    let mut all: Vec<(f64, u64, u32)> = analysis
        .streams
        .iter()
        .map(|(number, _, connection)| {
            let direction = connection.data_direction();
            let payload = connection.carried(direction);
            (share(connection, direction), payload, number)
        })
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
    all.into_iter().map(|(_, _, number)| number).collect()
}

/// Retransmissions as a share of the data packets.
fn share(connection: &Connection, direction: Direction) -> f64 {
    let (_, packets, _) = connection.traffic(direction);
    f64::from(connection.retransmissions(direction).total()) / f64::from(packets.max(1))
}

/// A stream's row, with what was explained of it.
pub(super) fn row(
    number: u32,
    key: &FlowKey,
    connection: &Connection,
    explained: &[Explained],
    analysis: &Analysis,
) -> StreamRow {
    let direction = connection.data_direction();
    let counts = connection.retransmissions(direction);
    let acknowledged = connection.acknowledged(direction);
    let payload = acknowledged.unwrap_or_else(|| connection.sent_once(direction));
    let payload = ByteCount::from_bytes(payload);
    let seconds = connection.duration_ns() as f64 / 1e9;
    let vantage = connection.vantage(direction);
    let whole = vantage.to_sender_ns.zip(vantage.to_receiver_ns).map(|(near, far)| near + far);
    let smoothed = connection.rtt_ns(direction).map(|(least, smoothed)| smoothed - least);
    let rtt = whole.map(|ns| {
        let queued = ns + smoothed.unwrap_or(0);
        (Rtt::from_micros(ns / 1000), Rtt::from_micros(queued / 1000))
    });
    let retransmits = if connection.is_one_way() {
        // What made the sender repeat shows in the other direction.
        vec![("repeated segments", counts.total())]
    } else {
        Kind::ALL.iter().map(|kind| (kind.name(), counts.of(*kind))).collect()
    };
    let retransmits = retransmits.into_iter().filter(|(_, count)| *count > 0).collect();
    let limit = explained.iter().find(|one| one.streams.contains(&number));
    let sender = limit.and_then(|one| {
        let place = one.streams.iter().position(|stream| *stream == number)?;
        one.senders.get(place).cloned()
    });
    let (times, congestion) = sender.map(|it| (it.times, it.congestion)).unzip();
    StreamRow {
        stream: number,
        ends: [direction, direction.reverse()].map(|side| analysis::end(key, side).to_string()),
        seconds,
        payload,
        goodput: (seconds > 0.0).then(|| BitRate::from_bps_f64(payload.as_f64() * 8.0 / seconds)),
        retransmits,
        retransmit_share: share(connection, direction).min(1.0),
        rtt,
        point: analysis::place(&vantage),
        caveats: analysis.hidden(number, connection).iter().map(Caveat::sentence).collect(),
        window: connection
            .largest_window(direction.reverse())
            .map(|(bytes, is_bound)| (ByteCount::from_bytes(bytes), is_bound)),
        ecn: (
            connection.ecn_mode(),
            [direction, direction.reverse()].map(|side| connection.ecn_counts(side)),
        ),
        limit: limit.map(|one| diagnose::explain(&one.measurement).sentence),
        times: times.unwrap_or_default(),
        congestion: congestion.flatten(),
    }
}

/// A stream in JSON: the row, and each flag by its name in Wireshark.
fn object(row: &StreamRow, number: u32, analysis: &Analysis) -> Value {
    let Some((_, connection)) = analysis.streams.get(number) else { return Value::Null };
    let direction = connection.data_direction();
    let counts = connection.retransmissions(direction);
    let flags = |direction| {
        let counts = connection.counts(direction);
        let each = counts.iter().map(|(name, count)| (name.to_owned(), json!(count)));
        each.collect::<serde_json::Map<_, _>>()
    };
    let kinds: serde_json::Map<_, _> =
        Kind::ALL.iter().map(|kind| (kind.name().to_owned(), json!(counts.of(*kind)))).collect();
    let vantage = connection.vantage(direction);
    json!({
        "stream": number,
        "sender": row.ends[0],
        "receiver": row.ends[1],
        "duration_s": row.seconds,
        "payload_bytes": row.payload.bytes(),
        "goodput_bps": row.goodput.map(BitRate::bps),
        "retransmissions": kinds,
        "lost_behind_this_point": counts.seen_before,
        "lost_before_this_point": counts.not_seen_before,
        "spurious_eifel": counts.spurious_eifel,
        "spurious_dsack": counts.spurious_dsack,
        "reordered": counts.reordered,
        "duplicated": counts.duplicated,
        "position": vantage.position,
        "position_uncertainty": vantage.uncertainty,
        "initial_rtt_ms": connection.initial_rtt_ns().map(|ns| ns as f64 / 1e6),
        "min_rtt_ms": row.rtt.map(|(least, _)| least.millis_f64()),
        "rtt_ms": row.rtt.map(|(_, smoothed)| smoothed.millis_f64()),
        "completeness": connection.completeness(),
        "caveats": analysis.hidden(number, connection),
        "receive_window": row.window.map(|(bytes, is_bound)| json!({
            "largest_bytes": bytes.bytes(),
            "is_lower_bound": is_bound,
        })),
        "ecn": document::ecn(&row.ecn),
        "mptcp": analysis.mptcp.of(number).map(|subflow| json!({
            "connection": subflow.connection,
            "joined": subflow.is_joined,
        })),
        "flags": { "from_sender": flags(direction), "from_receiver": flags(direction.reverse()) },
        "iperf3": analysis.tests.of(number).and_then(|test| Some(&test.parameters.as_ref()?.json)),
        "limit": row.limit,
        "time_by_cause": document::times(&row.times),
        "congestion_control": row.congestion.as_ref().map(document::congestion),
    })
}
