//! The tables of captures: their columns, with units in the names, and a row for each thing.

use super::table::{Cell, Columns, Table};
use crate::pcap::Capture;
use crate::pcap::document::ProtocolRow;
use crate::pcap::document::conversations::End;
use capture::Counts;
use capture::dissect::PacketDirection;
use capture::endpoints::{Address, Endpoint};
use capture_merge::PacketRow as MergedRow;
use packet_fields::{Field, PacketView, Value};
use parquet_file::ColumnType::{Flag, Real, Text, Whole};
use report::terminal::{ConversationRow, HandshakeStream, PacketRow, StreamRow};
use tcp_analysis::RetransmissionKind;

/// Address and port.
fn address(address: &Address) -> [Cell; 2] {
    let End { address, port } = End::of(address);
    [Cell::Text(address), Cell::maybe(port, |port| Cell::Whole(u64::from(port)))]
}

const SUMMARY: Columns = &[
    ("file", Text),
    ("format", Text),
    ("packets", Whole),
    ("bytes", Whole),
    ("captured_bytes", Whole),
    ("first_unix_s", Real),
    ("last_unix_s", Real),
    ("duration_s", Real),
    ("rate_bps", Real),
    ("dropped", Whole),
    ("broken", Flag),
];

/// The description of a file, in one row.
pub fn summary(capture: &Capture) -> Table<'_> {
    let (file, overview) = (&capture.file, &capture.overview);
    let row = vec![
        Cell::text(&capture.name),
        Cell::text(file.format.name()),
        Cell::Whole(overview.packets),
        Cell::Whole(overview.bytes),
        Cell::Whole(overview.captured_bytes),
        Cell::nanos(overview.first_ns),
        Cell::nanos(overview.last_ns),
        Cell::nanos(overview.last_ns - overview.first_ns),
        Cell::maybe(overview.rate_bps(), Cell::Rounded),
        Cell::maybe(file.dropped(), Cell::Whole),
        Cell::Flag(capture.broken.is_some()),
    ];
    Table::new(SUMMARY, std::iter::once(row))
}

const HIERARCHY: Columns = &[
    ("file", Text),
    ("path", Text),
    ("protocol", Text),
    ("frames", Whole),
    ("bytes", Whole),
    ("own_bytes", Whole),
    ("end_frames", Whole),
    ("end_bytes", Whole),
];

/// The protocols of a file.
pub fn hierarchy(capture: &Capture) -> Table<'_> {
    let rows = ProtocolRow::of(capture).map(move |row| {
        let counts = [row.frames, row.bytes, row.own_bytes, row.end_frames, row.end_bytes];
        let mut cells =
            vec![Cell::text(&capture.name), Cell::text(&row.path), Cell::text(row.protocol)];
        cells.extend(counts.map(Cell::Whole));
        cells
    });
    Table::new(HIERARCHY, rows)
}

const CONVERSATIONS: Columns = &[
    ("file", Text),
    ("stream", Whole),
    ("a", Text),
    ("a_port", Whole),
    ("b", Text),
    ("b_port", Whole),
    ("start_s", Real),
    ("duration_s", Real),
    ("a_to_b_frames", Whole),
    ("a_to_b_bytes", Whole),
    ("a_to_b_bps", Real),
    ("b_to_a_frames", Whole),
    ("b_to_a_bytes", Whole),
    ("b_to_a_bps", Real),
];

/// Conversations.
pub fn conversations<'a>(
    capture: &'a Capture,
    rows: impl Iterator<Item = ConversationRow> + 'a,
) -> Table<'a> {
    let first_ns = capture.conversations.first_ns().unwrap_or(0);
    let rows = rows.map(move |row| {
        let stream = row.stream.map(|number| number as u64);
        let mut cells = vec![Cell::text(&capture.name), Cell::maybe(stream, Cell::Whole)];
        cells.extend(row.ends.iter().flat_map(address));
        cells.push(Cell::nanos(row.traffic.first_ns.saturating_sub(first_ns)));
        cells.push(Cell::nanos(row.traffic.duration_ns()));
        let directions = [PacketDirection::AToB, PacketDirection::BToA];
        for (counts, direction) in row.traffic.each.into_iter().zip(directions) {
            cells.extend([Cell::Whole(counts.frames), Cell::Whole(counts.bytes)]);
            cells.push(Cell::maybe(row.traffic.rate_bps(direction), Cell::Rounded));
        }
        cells
    });
    Table::new(CONVERSATIONS, rows)
}

const ENDPOINTS: Columns = &[
    ("file", Text),
    ("address", Text),
    ("port", Whole),
    ("sent_frames", Whole),
    ("sent_bytes", Whole),
    ("received_frames", Whole),
    ("received_bytes", Whole),
];

/// Endpoints.
pub fn endpoints<'a>(capture: &'a Capture, rows: impl Iterator<Item = Endpoint> + 'a) -> Table<'a> {
    let rows = rows.map(|row| {
        let [address, port] = address(&row.address);
        let both = |counts: Counts| [Cell::Whole(counts.frames), Cell::Whole(counts.bytes)];
        let mut cells = vec![Cell::text(&capture.name), address, port];
        cells.extend([row.sent, row.received].into_iter().flat_map(both));
        cells
    });
    Table::new(ENDPOINTS, rows)
}

const STREAMS: Columns = &[
    ("file", Text),
    ("stream", Whole),
    ("sender", Text),
    ("receiver", Text),
    ("duration_s", Real),
    ("payload_bytes", Whole),
    ("goodput_bps", Whole),
    ("retransmitted_share", Real),
    ("timeout", Whole),
    ("after_timeout", Whole),
    ("fast", Whole),
    ("recovery", Whole),
    ("tail_loss_probe", Whole),
    ("min_rtt_ms", Real),
    ("rtt_ms", Real),
    ("limit", Text),
];

/// TCP streams.
pub fn streams<'a>(capture: &'a Capture, rows: impl Iterator<Item = StreamRow> + 'a) -> Table<'a> {
    let rows = rows.map(|row| {
        let count = |kind: &RetransmissionKind| {
            let found = row.retransmits.iter().find(|(name, _)| *name == kind.name());
            Cell::Whole(found.map_or(0, |(_, count)| u64::from(*count)))
        };
        let rtt = row.rtt.map(|(least, smoothed)| [least, smoothed].map(units::Rtt::millis_f64));
        let [least, smoothed] = rtt.map_or([Cell::Missing, Cell::Missing], |it| it.map(Cell::Real));
        let mut cells = vec![
            Cell::text(&capture.name),
            Cell::Whole(u64::from(row.stream)),
            Cell::text(&row.ends[0]),
            Cell::text(&row.ends[1]),
            Cell::Real(row.seconds),
            Cell::Whole(row.payload.bytes()),
            Cell::maybe(row.goodput, |rate| Cell::Whole(rate.bps())),
            Cell::Real(row.retransmit_share),
        ];
        cells.extend(RetransmissionKind::ALL.iter().map(count));
        cells.extend([least, smoothed]);
        cells.push(Cell::maybe(row.limit.as_deref(), Cell::text));
        cells
    });
    Table::new(STREAMS, rows)
}

const HANDSHAKES: Columns = &[
    ("file", Text),
    ("stream", Whole),
    ("client", Text),
    ("server", Text),
    ("name", Text),
    ("packet", Whole),
    ("after_s", Real),
    ("seq", Whole),
    ("ack", Whole),
    ("window", Whole),
    ("window_bytes", Whole),
    ("options", Text),
];

/// The packets of handshakes.
pub fn handshakes<'a>(capture: &'a Capture, streams: &'a [HandshakeStream]) -> Table<'a> {
    let rows = streams.iter().flat_map(move |stream| {
        stream.packets.iter().map(move |row| {
            vec![
                Cell::text(&capture.name),
                Cell::Whole(u64::from(stream.stream)),
                Cell::text(&stream.client),
                Cell::text(&stream.server),
                Cell::text(row.name),
                Cell::Whole(row.packet),
                Cell::Real(row.after_s),
                Cell::Whole(u64::from(row.seq)),
                Cell::maybe(row.ack, |ack| Cell::Whole(u64::from(ack))),
                Cell::Whole(u64::from(row.window)),
                Cell::maybe(row.window_bytes, Cell::Whole),
                Cell::text(&row.options.join("; ")),
            ]
        })
    });
    Table::new(HANDSHAKES, rows)
}

/// The columns of packets.
pub const PACKETS: Columns = &[
    ("number", Whole),
    ("time_s", Real),
    ("source", Text),
    ("destination", Text),
    ("protocol", Text),
    ("length_bytes", Whole),
    ("tcp_stream", Whole),
    ("marks", Text),
    ("info", Text),
];

/// The row of a packet.
pub fn packet(row: &PacketRow<'_>, view: &PacketView<'_>) -> [Cell; PACKETS.len()] {
    let summary = row.summary;
    let stream = view.stream.as_ref().map(|stream| u64::from(stream.number));
    [
        Cell::Whole(row.number),
        Cell::Nanos(row.time_ns),
        Cell::text(&summary.source),
        Cell::text(&summary.destination),
        Cell::text(summary.protocol),
        Cell::Whole(u64::from(row.length)),
        Cell::maybe(stream, Cell::Whole),
        Cell::text(summary.marks.trim_end()),
        Cell::text(&summary.info),
    ]
}

/// The row of these fields as text; several values of one are separated by semicolons, and one
/// that is there without a value is 1.
pub fn fields(columns: &[Field], view: &PacketView<'_>) -> Vec<Cell> {
    let cell = |column: &Field| {
        let kind = column.description().kind;
        let mut text = String::new();
        let mut count = 0;
        view.each_value(*column, |value| {
            if count > 0 {
                text.push(';');
            }
            count += 1;
            match value {
                Value::Present => text.push('1'),
                // Formatting into a string cannot fail.
                value => drop(value.write(kind, &mut text)),
            }
        });
        match (count, kind) {
            (0, _) => Cell::Missing,
            (_, packet_fields::FieldKind::Text | packet_fields::FieldKind::Date) => {
                Cell::text(&text)
            }
            _ => Cell::Printed(text),
        }
    };
    columns.iter().map(cell).collect()
}

const MERGED: Columns = &[
    ("direction", Text),
    ("fate", Text),
    ("packet_a", Whole),
    ("packet_b", Whole),
    ("time_unix_s", Real),
    ("delay_s", Real),
    ("payload_bytes", Whole),
    ("segments", Whole),
    ("reordered", Flag),
];

/// The packets of two captures, one row for each pair.
pub fn merged(rows: &[MergedRow]) -> Table<'_> {
    let rows = rows.iter().map(|row| {
        let number = |number: Option<u32>| Cell::maybe(number, |it| Cell::Whole(u64::from(it)));
        vec![
            Cell::text(row.transit.name()),
            Cell::text(row.fate.name()),
            number(row.a),
            number(row.b),
            Cell::Nanos(row.time_ns),
            Cell::maybe(row.delay_ns, Cell::Nanos),
            Cell::Whole(u64::from(row.bytes)),
            Cell::Whole(u64::from(row.segments)),
            Cell::Flag(row.is_reordered),
        ]
    });
    Table::new(MERGED, rows)
}
