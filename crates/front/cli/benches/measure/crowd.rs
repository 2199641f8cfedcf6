//! What each stream of a crowd got while all of them ran.

use crate::number;
use serde_json::Value;

/// Whether a client had so many streams, and something came over each.
pub(crate) fn was_served(report: &Value, streams: usize) -> bool {
    let ended = array(report, "/end/streams");
    ended.len() == streams
        && ended.iter().all(|stream| number(stream, "/receiver/bits_per_second") > 0.0)
}

/// Rates in bit/s over the seconds in which every stream of every report ran:
/// who starts late, or ends late and alone, says nothing about shares.
pub(crate) fn shares(reports: &[Value]) -> Vec<f64> {
    let rows = |report| {
        let begun = number(report, "/start/timestamp/timemillisecs") / 1e3;
        array(report, "/intervals").iter().flat_map(move |interval| {
            array(interval, "/streams").iter().map(move |row| Row {
                socket: number(row, "/socket") as u64,
                from: begun + number(row, "/start"),
                to: begun + number(row, "/end"),
                bits: number(row, "/bytes") * 8.0,
            })
        })
    };
    let all: Vec<Vec<Row>> = reports.iter().map(|report| rows(report).collect()).collect();
    let ran = |rows: &Vec<Row>| {
        let from = rows.iter().map(|row| row.from).fold(f64::INFINITY, f64::min);
        let to = rows.iter().map(|row| row.to).fold(0.0, f64::max);
        (from, to)
    };
    let spans = || all.iter().filter(|rows| !rows.is_empty()).map(ran);
    let from = spans().map(|span| span.0).fold(0.0, f64::max);
    let to = spans().map(|span| span.1).fold(f64::INFINITY, f64::min);
    let mut shares = Vec::new();
    for rows in &all {
        let mut sockets: Vec<u64> = rows.iter().map(|row| row.socket).collect();
        sockets.sort_unstable();
        sockets.dedup();
        for socket in sockets {
            let within = |row: &&Row| row.socket == socket && row.from >= from && row.to <= to;
            let (bits, time) = rows
                .iter()
                .filter(within)
                .fold((0.0, 0.0), |(bits, time), row| (bits + row.bits, time + row.to - row.from));
            if time > 0.0 {
                shares.push(bits / time);
            }
        }
    }
    shares
}

struct Row {
    socket: u64,
    from: f64,
    to: f64,
    bits: f64,
}

fn array<'a>(of: &'a Value, at: &str) -> &'a [Value] {
    of.pointer(at).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
