//! The lines before and during a test.
//!
//! Each string is one output call of iperf3 without its final newline, as iperf3
//! prefixes each of them with the title or the time.

use super::facts::{Head, Protocol, Row, Side};
use super::number::{self, Format, per_second, percent, two_digits};
use crate::untrusted::clean;

/// The separator between the parts of a table.
pub(crate) const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -";
const RULE: &str = "-----------------------------------------------------------";
const OMITTED: &str = "(omitted)";

/// The lines of a server that waits for test `number`, counted from 1.
#[must_use]
pub fn listening(port: u16, number: u64) -> Vec<String> {
    let rule = RULE.to_owned();
    vec![rule.clone(), format!("Server listening on {port} (test #{number})"), rule]
}

/// The first lines of `-V`.
#[must_use]
pub fn program(system: &str) -> Vec<String> {
    vec![super::VERSION.to_owned(), clean(system)]
}

/// The lines from the connection to the first row.
#[must_use]
pub fn head(head: &Head, verbose: bool) -> Vec<String> {
    let (asked, mut lines) = (&head.asked, Vec::new());
    if verbose && head.side == Side::Client {
        lines.push(format!("Control connection MSS {}", head.control_mss));
        if !head.is_tcp() && asked.block == head.control_mss {
            lines.push(format!("Setting UDP block size to {}", asked.block));
        }
    }
    if verbose {
        lines.push(format!("Time: {}", super::date::date(head.unix_s)));
    }
    let (host, port) = (clean(&head.peer_host), head.peer_port);
    match head.side {
        Side::Client => {
            lines.push(format!("Connecting to host {host}, port {port}"));
            if asked.reverse {
                lines.push(format!("Reverse mode, remote host {host} is sending"));
            }
        }
        Side::Server => lines.push(format!("Accepted connection from {host}, port {port}")),
    }
    if verbose {
        lines.push(format!("      Cookie: {}", clean(&head.cookie)));
        if head.is_tcp() {
            lines.push(match asked.mss {
                0 => format!("      TCP MSS: {} (default)", head.control_mss),
                mss => format!("      TCP MSS: {mss}"),
            });
        }
        if asked.rate > 0 {
            lines.push(format!("      Target Bitrate: {}", asked.rate));
        }
    }
    for stream in &head.streams {
        lines.push(format!(
            "[{:3}] local {} port {} connected to {} port {}",
            stream.socket,
            stream.local_host,
            stream.local_port,
            stream.remote_host,
            stream.remote_port
        ));
    }
    if verbose {
        let end = match (asked.bytes, asked.blocks) {
            (0, 0) => format!("{} second test", asked.duration),
            (0, blocks) => format!("{blocks} blocks to send"),
            (bytes, _) => format!("{bytes} bytes to send"),
        };
        lines.push(format!(
            "Starting Test: protocol: {}, {} streams, {} byte blocks, omitting {} seconds, {end}, tos {}",
            asked.protocol.name(),
            asked.streams,
            asked.block,
            asked.omit,
            asked.tos
        ));
    }
    lines
}

/// A table header.
pub(crate) fn heading(head: &Head, columns: &str) -> String {
    let role = if head.asked.bidir { "[Role]" } else { "" };
    format!("[ ID]{role} Interval           Transfer     Bitrate{columns}")
}

/// The header of a UDP receiver's columns.
pub(crate) const DATAGRAMS: &str = "         Jitter    Lost/Total Datagrams";

/// One interval of all streams; `first` for the first rows of a test.
#[must_use]
pub fn rows(head: &Head, rows: &[Row], format: Format, first: bool) -> Vec<String> {
    let directions = head.directions();
    let mut lines = Vec::new();
    if first {
        let columns = match (head.asked.protocol, directions.as_slice()) {
            (Protocol::Tcp, [false]) => "",
            (Protocol::Tcp, _) => "         Retr  Cwnd",
            (Protocol::Udp, [true]) => "         Total Datagrams",
            (Protocol::Udp, _) => DATAGRAMS,
        };
        lines.push(heading(head, columns));
    } else if head.asked.streams > 1 {
        lines.push(SEPARATOR.to_owned());
    }
    for sending in directions {
        let of_direction: Vec<&Row> = rows.iter().filter(|row| row.sending == sending).collect();
        for row in &of_direction {
            let socket = head.stream(row.id).map_or(0, |stream| stream.socket);
            lines.push(line(head, &format!("{socket:3}"), row, format, false));
        }
        if head.asked.streams > 1
            && let Some(sum) = sum(head, &of_direction, rows)
        {
            lines.push(line(head, "SUM", &sum, format, true));
        }
    }
    lines
}

/// The sum over the streams of one direction, over the interval of the first stream.
pub(crate) fn sum(head: &Head, rows: &[&Row], all: &[Row]) -> Option<Row> {
    let first = rows.first()?;
    let id = head.streams.first().map(|stream| stream.id);
    let (from_s, to_s) = all
        .iter()
        .find(|row| Some(row.id) == id)
        .map_or((first.from_s, first.to_s), |row| (row.from_s, row.to_s));
    let streams = head.asked.streams;
    let mut sum = Row {
        from_s,
        to_s,
        bytes: 0,
        retransmits: 0,
        packets: 0,
        lost: 0,
        jitter_ms: 0.0,
        ..(*first).clone()
    };
    for row in rows {
        sum.bytes = sum.bytes.saturating_add(row.bytes);
        sum.retransmits = sum.retransmits.saturating_add(row.retransmits);
        sum.packets = sum.packets.saturating_add(row.packets);
        sum.lost = sum.lost.saturating_add(row.lost);
        sum.jitter_ms += row.jitter_ms / f64::from(streams.max(1));
    }
    Some(sum)
}

fn line(head: &Head, id: &str, row: &Row, format: Format, is_sum: bool) -> String {
    let role = head.role(row.sending);
    let begin = begin(id, role, (row.from_s, row.to_s), row.bytes, format);
    let omitted = if row.omitted { OMITTED } else { "" };
    match (head.asked.protocol, row.sending) {
        (Protocol::Tcp, true) if is_sum => {
            format!("{begin}  {:3}             {omitted}", row.retransmits)
        }
        (Protocol::Tcp, true) => {
            format!("{begin}  {:3}   {}       {omitted}", row.retransmits, number::size(row.cwnd))
        }
        (Protocol::Tcp, false) => format!("{begin}                  {omitted}"),
        (Protocol::Udp, true) => {
            let room = if head.asked.bidir { "          " } else { "" };
            format!("{begin} {room} {}  {omitted}", row.packets)
        }
        (Protocol::Udp, false) => {
            let packets = i64::try_from(row.packets).unwrap_or(i64::MAX);
            begin + &datagrams(row.jitter_ms, row.lost, packets, omitted)
        }
    }
}

/// The columns up to the rate.
pub(crate) fn begin(
    id: &str,
    role: &str,
    (from_s, to_s): (f64, f64),
    bytes: u64,
    format: Format,
) -> String {
    let rate = number::rate(per_second(bytes, to_s - from_s), format);
    format!("[{id}]{role} {from_s:6.2}-{to_s:<6.2} sec  {}  {rate}", number::size(bytes))
}

/// The values of a UDP receiver's columns.
pub(crate) fn datagrams(jitter_ms: f64, lost: i64, packets: i64, last: &str) -> String {
    let share = two_digits(percent(lost, packets));
    format!("  {jitter_ms:5.3} ms  {lost}/{packets} ({share}%)  {last}")
}
