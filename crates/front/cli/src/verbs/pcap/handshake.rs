//! `longhaul pcap handshake`: SYN, SYN-ACK and ACK as they were on the wire.

use super::files_document::FilesDocument;
use super::reading::{self, Tables};
use super::{Files, analysis, document, tables};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Outcome};
use crate::stop;
use clap::Args;
use report::terminal::{self, HandshakeRow, HandshakeStream};
use serde_json::{Value, json};
use tcp_analysis::{Handshake, Handshakes};

#[derive(Debug, Args)]
pub(super) struct HandshakeArgs {
    #[command(flatten)]
    files: Files,
    /// Show this stream alone, by its number
    #[arg(long, value_name = "N")]
    stream: Option<u32>,
    /// Handshakes to show; 0 for all [default: 10, with --csv or --json all]
    #[arg(long, short = 'n', value_name = "N")]
    rows: Option<usize>,
}

/// Handshakes on a terminal.
const ROWS: usize = 10;

const NAMES: [&str; 3] = ["SYN", "SYN-ACK", "ACK"];

pub(super) fn run(args: &HandshakeArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let (mut code, mut table) = (DONE, args.files.table());
    let mut document = FilesDocument::new("longhaul.pcap-handshake/1");
    for path in &args.files.files {
        let mut handshakes = Handshakes::default();
        let tables = Tables::of_reading();
        let read =
            reading::read_segments(path, &tables, &stop, console, |packet, stream, segment| {
                if args.stream.is_none_or(|number| number == stream.number) {
                    handshakes.add(stream, packet.number, packet.time_ns, segment);
                }
            });
        let capture = match read {
            Ok(capture) => capture,
            Err(line) => {
                console.clear();
                console::complain(&line);
                code = FAILED;
                continue;
            }
        };
        if capture.broken.is_some() || capture.is_interrupted {
            code = FAILED;
        }
        let all: Vec<HandshakeStream> = handshakes.all().iter().map(stream).collect();
        let whole = args.files.is_whole();
        let shown = match args.rows.unwrap_or(if whole { 0 } else { ROWS }) {
            0 => &all[..],
            most => all.get(..most).unwrap_or(&all),
        };
        if args.files.json {
            let streams: Vec<Value> = shown.iter().map(object).collect();
            let object = document::file(&capture, json!({ "handshakes": streams }));
            document.add(object, None, console)?;
        } else if args.files.is_table() {
            table.add(tables::handshakes(&capture, shown), console)?;
        } else {
            let text = terminal::capture_handshakes(shown, all.len(), &console.out);
            console.print(&capture.headed(&text));
        }
    }
    if args.files.json {
        document.finish(console);
    } else {
        table.finish(console)?;
    }
    Ok(code)
}

fn stream(handshake: &Handshake) -> HandshakeStream {
    let [syn, syn_ack, _] = &handshake.packets;
    let client = syn.as_ref().map(|packet| packet.direction);
    let client = client.or(syn_ack.as_ref().map(|packet| packet.direction.reverse()));
    let client = client.unwrap_or_default();
    let first_ns = handshake.packets.iter().flatten().map(|packet| packet.time_ns).min();
    let first_ns = first_ns.unwrap_or(0);
    let each = handshake.packets.iter().zip(NAMES).enumerate().filter_map(|(slot, (it, name))| {
        let packet = it.as_ref()?;
        Some(HandshakeRow {
            name,
            packet: packet.packet,
            after_s: packet.time_ns.saturating_sub(first_ns) as f64 / 1e9,
            seq: packet.seq,
            ack: packet.ack,
            window: packet.window,
            computed_window: handshake.window_bytes(slot),
            options: packet.texts.clone(),
        })
    });
    HandshakeStream {
        stream: handshake.stream,
        ends: [client, client.reverse()]
            .map(|side| analysis::end(&handshake.key, side).to_string()),
        packets: each.collect(),
        notes: handshake.notes(),
    }
}

fn object(stream: &HandshakeStream) -> Value {
    let packets: Vec<Value> = stream
        .packets
        .iter()
        .map(|row| {
            json!({
                "name": row.name,
                "packet": row.packet,
                "after_s": row.after_s,
                "seq": row.seq,
                "ack": row.ack,
                "window": row.window,
                "window_bytes": row.computed_window,
                "options": row.options,
            })
        })
        .collect();
    json!({
        "stream": stream.stream,
        "client": stream.ends[0],
        "server": stream.ends[1],
        "packets": packets,
        "notes": stream.notes,
    })
}
