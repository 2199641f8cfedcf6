//! The connections of a host and its counters, with the column names of ss.

use super::{
    Style,
    line::{Line, block, wrap},
    shares, style,
};
use crate::wording;
use record::{CounterChange, WatchReport, WatchedConnection};

/// The part of a report that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewport {
    /// Most lines.
    pub lines: usize,
    /// The selected connection.
    pub selected: Option<usize>,
}

impl Viewport {
    /// All of the report.
    pub const ALL: Viewport = Viewport { lines: usize::MAX, selected: None };
}

/// Columns of the bar of shares, before the reason.
const BAR: usize = 10;

/// From this width on, the table shows the local address and the process id.
const WIDE: usize = 120;

/// Most columns of the reason; longer lines are hard to follow.
const MAX_REASON: usize = 150;

/// Most lines of counters where the height is limited.
const MAX_COUNTERS: usize = 8;

/// A table of one sample: a row per connection, a second one if something limits it,
/// and the counters that increased.
#[must_use]
pub fn watch(report: &WatchReport, order: &str, viewport: Viewport, style: &Style) -> String {
    let mut lines = vec![summary(report, order, style)];
    for note in &report.notes {
        lines.push(Line::new(style).put(style::WARN, "! ").put(style::PLAIN, note));
    }
    let mut counters = counters(&report.counters, style);
    if viewport.lines < usize::MAX {
        counters.truncate(MAX_COUNTERS);
    }
    let counter_lines = if counters.is_empty() { 0 } else { counters.len() + 2 };
    let left = viewport.lines.saturating_sub(lines.len() + counter_lines + 1);
    let columns = Columns::of(report, style);
    lines.push(header(&columns, style));
    let mut used = 0;
    for (at, connection) in report.connections.iter().enumerate() {
        let rows = rows(connection, &columns, viewport.selected == Some(at), style);
        used += rows.len();
        if used > left {
            break;
        }
        lines.extend(rows);
    }
    if report.connections.is_empty() {
        let text = if report.sockets == 0 { "no connections" } else { "no matching connections" };
        lines.push(Line::new(style).to(2).put(style::DIM, text));
    }
    if !counters.is_empty() {
        lines.push(Line::new(style));
        lines.push(Line::new(style).put(style::STRONG, "Host counters over the interval"));
        lines.extend(counters);
    }
    block(lines)
}

fn summary(report: &WatchReport, order: &str, style: &Style) -> Line {
    let dot = if style.unicode { " · " } else { ", " };
    let matching = if report.matching == report.sockets {
        wording::counted(report.sockets, "connection")
    } else {
        format!("{} of {}", report.matching, wording::counted(report.sockets, "connection"))
    };
    let text = format!(
        "{dot}{} busy{dot}tx {}, rx {}{dot}sort: {order}",
        report.busy, report.sends_bps, report.receives_bps
    );
    Line::new(style).put(style::STRONG, &matching).put(style::PLAIN, &text)
}

/// Right ends of the columns.
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
    retransmits: usize,
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
                retransmits: 77,
                congestion: None,
            };
        }
        // An IPv6 address with its port takes up to 47 columns.
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
            retransmits: remote + if style.width >= WIDE + 8 { 50 } else { 44 },
            congestion: (style.width >= WIDE + 16).then_some(remote + 52),
        }
    }
}

fn header(columns: &Columns, style: &Style) -> Line {
    let mut line = Line::new(style).put(style::DIM, "Program");
    line = right(line, "PID", columns.pid);
    if let Some(local) = columns.local {
        line = line.to(columns.pid.unwrap_or(columns.program) + 1).put(style::DIM, "Local");
        line = line.to(local + 1).put(style::DIM, "Remote");
    } else {
        line = line.to(columns.program + 1).put(style::DIM, "Remote");
    }
    line = right(line, "bit/s", Some(columns.rate));
    line = right(line, "RTT ms", Some(columns.rtt));
    line = right(line, "minrtt", Some(columns.min_rtt));
    line = right(line, "cwnd", Some(columns.cwnd));
    line = right(line, "flight", Some(columns.in_flight));
    line = right(line, "unsent", columns.unsent);
    line = right(line, "retr", Some(columns.retransmits));
    match columns.congestion {
        Some(at) => line.to(at).put(style::DIM, "cong"),
        None => line,
    }
}

fn right(line: Line, text: &str, column: Option<usize>) -> Line {
    match column {
        Some(column) => line.right(style::DIM, text, column),
        None => line,
    }
}

/// One connection: its figures, and its limit.
fn rows(
    connection: &WatchedConnection,
    columns: &Columns,
    selected: bool,
    style: &Style,
) -> Vec<Line> {
    let (sends, receives) = (connection.sends_bps, connection.receives_bps);
    let rate = sends.max(receives).filter(|rate| rate.bps() > 0);
    let text_style = match (selected, rate) {
        (true, _) => style::SELECTED,
        (false, Some(_)) => style::PLAIN,
        (false, None) => style::DIM,
    };
    let who = &connection.who;
    let program = who.program.as_deref().unwrap_or("-");
    // Without colour, a mark precedes the selected row.
    let mark = match (selected && !style.colour, style.unicode) {
        (true, true) => "▸",
        (true, false) => ">",
        (false, _) => "",
    };
    let room = columns.program - 1 - usize::from(!mark.is_empty());
    let mut line =
        Line::new(style).put(text_style, mark).put(text_style, &fitted(program, room, style));
    if let Some(column) = columns.pid {
        let pid = who.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        line = line.right(text_style, &pid, column);
    }
    let mut begin = columns.pid.unwrap_or(columns.program) + 1;
    if let Some(local) = columns.local {
        line = line.to(begin).put(text_style, &fitted(&who.local, local - begin, style));
        begin = local + 1;
    }
    line = line.to(begin).put(text_style, &fitted(&who.remote, columns.remote - begin, style));
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
        None => format!("idle {}", wording::seconds(connection.idle_s)),
    };
    let ms = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), millis);
    line = line.right(text_style, &rate, columns.rate);
    line = line.right(text_style, &ms(connection.rtt_ms), columns.rtt);
    line = line.right(text_style, &ms(connection.min_rtt_ms), columns.min_rtt);
    line = line.right(text_style, &compact(connection.cwnd_bytes as f64), columns.cwnd);
    line = line.right(text_style, &compact(connection.in_flight_bytes as f64), columns.in_flight);
    if let Some(column) = columns.unsent {
        line = line.right(text_style, &compact(connection.unsent_bytes as f64), column);
    }
    let retransmit_style = if connection.retransmits > 0 { style::WARN } else { text_style };
    line =
        line.right(retransmit_style, &compact(connection.retransmits as f64), columns.retransmits);
    if let Some(column) = columns.congestion {
        line = line.to(column).put(text_style, who.congestion.as_deref().unwrap_or("-"));
    }
    let mut lines = vec![line];
    lines.extend(reason(connection, columns.program + 1, style));
    lines
}

/// Time per limit over the interval, and the reason.
fn reason(connection: &WatchedConnection, column: usize, style: &Style) -> Vec<Line> {
    let Some(why) = &connection.why else { return Vec::new() };
    let text = column + BAR + 1;
    let width = style.width.saturating_sub(text).clamp(1, MAX_REASON);
    let tone = match wording::tone(connection.limit) {
        wording::Tone::Fixable => style::STRONG,
        _ => style::PLAIN,
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
    // Counters with a remedy indicate a problem and come first.
    let problems = changes.iter().filter(|change| change.remedy.is_some());
    let rest = changes.iter().filter(|change| change.remedy.is_none());
    let lines = |change: &CounterChange| {
        let tone = if change.remedy.is_some() { style::WARN } else { style::PLAIN };
        let line = Line::new(style)
            .to(2)
            .put(style::PLAIN, &change.name)
            .right(tone, &format!("+{}", compact(change.delta as f64)), name + 10)
            .put(style::PLAIN, "  ")
            .put(style::PLAIN, &change.meaning);
        let Some(remedy) = &change.remedy else { return vec![line] };
        // On the next line if there is no room.
        if line.used() + 2 + remedy.chars().count() <= style.width {
            return vec![line.put(style::PLAIN, ": ").put(style::DIM, remedy)];
        }
        vec![line, Line::new(style).to(6).put(style::DIM, remedy)]
    };
    problems.chain(rest).flat_map(lines).collect()
}

/// The text in `width` columns; longer text is shortened in the middle, as the end of
/// an address is more specific.
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

/// `94.1M`: three digits and an SI prefix.
pub(super) fn compact(value: f64) -> String {
    if value.is_nan() || value < 1000.0 {
        return format!("{value:.0}");
    }
    let (mut value, mut at) = (value, 0);
    const POWERS: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    // A value that rounds to 1000 is shown as 1.00 with the next prefix.
    while value >= 999.5 && at + 1 < POWERS.len() {
        value /= 1000.0;
        at += 1;
    }
    let places = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.places$}{}", POWERS[at])
}

/// Milliseconds with three or four digits.
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
    fn a_long_address_is_shortened_in_the_middle() {
        let style = Style { colour: false, width: 80, unicode: false };
        assert_eq!(fitted("[2001:db8::1]:443", 11, &style), "[2001~]:443");
        assert_eq!(fitted("short", 5, &style), "short");
        assert_eq!(fitted("abc", 0, &style), "~");
    }
}
