//! SYN, SYN-ACK and ACK as they were on the wire.

use super::reading::{self, Capture, Tables};
use super::{OnRead, analysis};
use crate::{Problem, StopFlag};
use report::terminal::{HandshakeRow, HandshakeStream};
use std::path::Path;
use tcp_analysis::{Handshake, Handshakes};

const NAMES: [&str; 3] = ["SYN", "SYN-ACK", "ACK"];

/// The handshakes of a file, or that of one stream.
///
/// # Errors
/// The file cannot be opened, or is no capture.
pub fn handshakes(
    path: &Path,
    wanted: Option<u32>,
    on_read: OnRead<'_>,
    stop: &StopFlag,
) -> Result<(Capture, Vec<HandshakeStream>), Problem> {
    let mut handshakes = Handshakes::default();
    let tables = Tables::of_reading();
    let capture =
        reading::read_segments(path, &tables, stop, on_read, |packet, stream, segment| {
            if wanted.is_none_or(|number| number == stream.number) {
                handshakes.add(stream, packet.number, packet.time_ns, segment);
            }
        })?;
    Ok((capture, handshakes.all().iter().map(stream).collect()))
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
