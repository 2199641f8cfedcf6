//! The connections of a host as a table, and its counters.

use super::{
    Style, ink,
    line::{Line, block, wrap},
    shares,
};
use crate::words;
use record::{CounterChange, WatchReport, WatchedConnection};

/// What of a report is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Lines at most.
    pub lines: usize,
    /// The row that is marked.
    pub marked: Option<usize>,
}

impl Room {
    /// All of it.
    pub const ALL: Room = Room { lines: usize::MAX, marked: None };
}

/// Columns of the bar of shares, before the line of why.
const BAR: usize = 10;

/// From so many columns on there is room for this end and the process.
const WIDE: usize = 120;

/// Longest line of why: beyond it, eyes lose the row.
const LONGEST: usize = 150;

/// Lines that counters take at most while connections want room.
const COUNTERS: usize = 8;

/// A table of what a look showed: one row for each connection, a second where
/// something limits it, and the counters that grew.
#[must_use]
pub fn watch(report: &WatchReport, order: &str, room: Room, style: &Style) -> String {
    let mut lines = vec![summary(report, order, style)];
    for note in &report.notes {
        lines.push(Line::new(style).put(ink::WARN, "! ").put(ink::PLAIN, note));
    }
    let mut counters = counters(&report.counters, style);
    if room.lines < usize::MAX {
        counters.truncate(COUNTERS);
    }
    let beneath = if counters.is_empty() { 0 } else { counters.len() + 2 };
    let left = room.lines.saturating_sub(lines.len() + beneath + 1);
    let columns = Columns::of(report, style);
    lines.push(header(&columns, style));
    let mut used = 0;
    for (at, connection) in report.connections.iter().enumerate() {
        let rows = rows(connection, &columns, room.marked == Some(at), style);
        used += rows.len();
        if used > left {
            break;
        }
        lines.extend(rows);
    }
    if report.connections.is_empty() {
        let text = if report.sockets == 0 { "no connections" } else { "none that was asked for" };
        lines.push(Line::new(style).to(2).put(ink::DIM, text));
    }
    if !counters.is_empty() {
        lines.push(Line::new(style));
        lines.push(Line::new(style).put(ink::STRONG, "This host, over the interval"));
        lines.extend(counters);
    }
    block(lines)
}

fn summary(report: &WatchReport, order: &str, style: &Style) -> Line {
    let dot = if style.unicode { " · " } else { ", " };
    let matching = if report.matching == report.sockets {
        format!("{} connections", report.sockets)
    } else {
        format!("{} of {} connections", report.matching, report.sockets)
    };
    let text = format!(
        "{dot}{} busy{dot}sends {}, receives {}{dot}by {order}",
        report.busy, report.sends_bps, report.receives_bps
    );
    Line::new(style).put(ink::STRONG, &matching).put(ink::PLAIN, &text)
}

/// Where columns end.
struct Columns {
    program: usize,
    pid: Option<usize>,
    local: Option<usize>,
    remote: usize,
    rate: usize,
    rtt: usize,
    min_rtt: usize,
    cwnd: usize,
    in_flight: usize,
    unsent: Option<usize>,
    again: usize,
    congestion: Option<usize>,
}

impl Columns {
    fn of(report: &WatchReport, style: &Style) -> Self {
        if style.width < WIDE {
            return Columns {
                program: 10,
                pid: None,
                local: None,
                remote: 33,
                rate: 42,
                rtt: 49,
                min_rtt: 56,
                cwnd: 63,
                in_flight: 70,
                unsent: None,
                again: 77,
                congestion: None,
            };
        }
        // Addresses of IPv6 have up to 47 columns with their ports.
        let room = 21 + ((style.width - WIDE) / 3).min(26);
        let ends = report.connections.iter().flat_map(|one| [&one.who.local, &one.who.remote]);
        let longest = ends.map(String::len).max().unwrap_or(0).clamp(21, room);
        let local = 24 + longest;
        let remote = local + 1 + longest;
        Columns {
            program: 16,
            pid: Some(23),
            local: Some(local),
            remote,
            rate: remote + 9,
            rtt: remote + 16,
            min_rtt: remote + 23,
            cwnd: remote + 30,
            in_flight: remote + 37,
            unsent: (style.width >= WIDE + 8).then_some(remote + 44),
            again: remote + if style.width >= WIDE + 8 { 50 } else { 44 },
            congestion: (style.width >= WIDE + 16).then_some(remote + 52),
        }
    }
}

fn header(columns: &Columns, style: &Style) -> Line {
    let mut line = Line::new(style).put(ink::DIM, "Program");
    line = right(line, "PID", columns.pid);
    if let Some(local) = columns.local {
        line = line.to(columns.pid.unwrap_or(columns.program) + 1).put(ink::DIM, "Local");
        line = line.to(local + 1).put(ink::DIM, "Remote");
    } else {
        line = line.to(columns.program + 1).put(ink::DIM, "Remote");
    }
    line = right(line, "bit/s", Some(columns.rate));
    line = right(line, "RTT ms", Some(columns.rtt));
    line = right(line, "min", Some(columns.min_rtt));
    line = right(line, "cwnd", Some(columns.cwnd));
    line = right(line, "flight", Some(columns.in_flight));
    line = right(line, "unsent", columns.unsent);
    line = right(line, "again", Some(columns.again));
    match columns.congestion {
        Some(at) => line.to(at).put(ink::DIM, "control"),
        None => line,
    }
}

fn right(line: Line, text: &str, column: Option<usize>) -> Line {
    match column {
        Some(column) => line.right(ink::DIM, text, column),
        None => line,
    }
}

/// One connection: its figures, and what limits it.
fn rows(
    connection: &WatchedConnection,
    columns: &Columns,
    marked: bool,
    style: &Style,
) -> Vec<Line> {
    let (sends, receives) = (connection.sends_bps, connection.receives_bps);
    let rate = sends.max(receives).filter(|rate| rate.bps() > 0);
    let ink = match (marked, rate) {
        (true, _) => ink::MARKED,
        (false, Some(_)) => ink::PLAIN,
        (false, None) => ink::DIM,
    };
    let who = &connection.who;
    let program = who.program.as_deref().unwrap_or("-");
    // Without colours the row at hand has a mark before it.
    let mark = match (marked && !style.colour, style.unicode) {
        (true, true) => "▸",
        (true, false) => ">",
        (false, _) => "",
    };
    let room = columns.program - 1 - usize::from(!mark.is_empty());
    let mut line = Line::new(style).put(ink, mark).put(ink, &fitted(program, room, style));
    if let Some(column) = columns.pid {
        let pid = who.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        line = line.right(ink, &pid, column);
    }
    let mut begin = columns.pid.unwrap_or(columns.program) + 1;
    if let Some(local) = columns.local {
        line = line.to(begin).put(ink, &fitted(&who.local, local - begin, style));
        begin = local + 1;
    }
    line = line.to(begin).put(ink, &fitted(&who.remote, columns.remote - begin, style));
    let arrow = match (rate, sends >= receives, style.unicode) {
        (None, ..) => "",
        (_, true, true) => "→",
        (_, true, false) => ">",
        (_, false, true) => "←",
        (_, false, false) => "<",
    };
    let rate = match rate {
        Some(rate) => format!("{arrow} {}", compact(rate.as_f64())),
        None if connection.state != "established" => connection.state.clone(),
        None => format!("idle {}", words::seconds(connection.idle_s)),
    };
    let ms = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), millis);
    line = line.right(ink, &rate, columns.rate);
    line = line.right(ink, &ms(connection.rtt_ms), columns.rtt);
    line = line.right(ink, &ms(connection.min_rtt_ms), columns.min_rtt);
    line = line.right(ink, &compact(connection.cwnd_bytes as f64), columns.cwnd);
    line = line.right(ink, &compact(connection.in_flight_bytes as f64), columns.in_flight);
    if let Some(column) = columns.unsent {
        line = line.right(ink, &compact(connection.unsent_bytes as f64), column);
    }
    let again = if connection.retransmits > 0 { ink::WARN } else { ink };
    line = line.right(again, &compact(connection.retransmits as f64), columns.again);
    if let Some(column) = columns.congestion {
        line = line.to(column).put(ink, who.congestion.as_deref().unwrap_or("-"));
    }
    let mut lines = vec![line];
    lines.extend(why(connection, columns.program + 1, style));
    lines
}

/// Where the interval went, and what limits the connection.
fn why(connection: &WatchedConnection, column: usize, style: &Style) -> Vec<Line> {
    let Some(why) = &connection.why else { return Vec::new() };
    let text = column + BAR + 1;
    let width = style.width.saturating_sub(text).clamp(1, LONGEST);
    let tone = match words::tone(connection.limit) {
        words::Tone::Mend => ink::STRONG,
        _ => ink::PLAIN,
    };
    let mut lines = Vec::new();
    for (at, part) in wrap(style, why, width).into_iter().enumerate() {
        let mut line = Line::new(style).to(column.saturating_sub(1));
        if let Some(shares) = connection.shares.as_ref().filter(|_| at == 0) {
            line = shares::bar(line, shares, BAR, style);
        }
        lines.push(line.to(text).put(tone, &part));
    }
    lines
}

fn counters(changes: &[CounterChange], style: &Style) -> Vec<Line> {
    let name = changes.iter().map(|change| change.name.len()).max().unwrap_or(0).min(32);
    // What is harm comes first; the table of meanings has the rest of the order.
    let harm = changes.iter().filter(|change| change.remedy.is_some());
    let rest = changes.iter().filter(|change| change.remedy.is_none());
    let lines = |change: &CounterChange| {
        let tone = if change.remedy.is_some() { ink::WARN } else { ink::PLAIN };
        let line = Line::new(style)
            .to(2)
            .put(ink::PLAIN, &change.name)
            .right(tone, &format!("+{}", compact(change.delta as f64)), name + 10)
            .put(ink::PLAIN, "  ")
            .put(ink::PLAIN, &change.meaning);
        let Some(remedy) = &change.remedy else { return vec![line] };
        // Beneath, where there is no room beside it.
        if line.used() + 2 + remedy.chars().count() <= style.width {
            return vec![line.put(ink::PLAIN, ": ").put(ink::DIM, remedy)];
        }
        vec![line, Line::new(style).to(6).put(ink::DIM, remedy)]
    };
    harm.chain(rest).flat_map(lines).collect()
}

/// The text in so many columns: what is longer loses its middle, as an address'
/// end tells more.
fn fitted(text: &str, width: usize, style: &Style) -> String {
    let text: Vec<char> = crate::untrusted::clean(text).chars().collect();
    if text.len() <= width {
        return text.into_iter().collect();
    }
    let gap = if style.unicode { '…' } else { '~' };
    let head = width.saturating_sub(1) / 2;
    let tail = width.saturating_sub(1 + head);
    let mut out: String = text.iter().take(head).collect();
    out.push(gap);
    out.extend(text.iter().skip(text.len() - tail));
    out
}

/// `94.1M`: three digits and the power of a thousand.
pub(super) fn compact(value: f64) -> String {
    if value.is_nan() || value < 1000.0 {
        return format!("{value:.0}");
    }
    let (mut value, mut at) = (value, 0);
    const POWERS: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    // What would be rounded up to 1000 is 1.00 of the next.
    while value >= 999.5 && at + 1 < POWERS.len() {
        value /= 1000.0;
        at += 1;
    }
    let places = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.places$}{}", POWERS[at])
}

/// Milliseconds with what is worth of their places.
pub(super) fn millis(ms: f64) -> String {
    match ms {
        ms if ms < 9.995 => format!("{ms:.2}"),
        ms if ms < 999.95 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (999.0, "999"),
            (1000.0, "1.00k"),
            (94_149_000.0, "94.1M"),
            (999_600.0, "1.00M"),
            (123_456_789_000.0, "123G"),
            (9_996.0, "10.0k"),
        ] {
            assert_eq!(compact(value), text);
        }
        assert_eq!([0.02, 9.99, 173.25, 12_000.0].map(millis), ["0.02", "9.99", "173.2", "12000"]);
    }

    #[test]
    fn a_long_address_loses_its_middle() {
        let style = Style { colour: false, width: 80, unicode: false };
        assert_eq!(fitted("[2001:db8::1]:443", 11, &style), "[2001~]:443");
        assert_eq!(fitted("short", 5, &style), "short");
        assert_eq!(fitted("abc", 0, &style), "~");
    }
}
