//! The rows of a running test, in the columns people know from iperf3.

use super::{
    Style, ink,
    line::{Line, block},
};
use record::{Datagrams, Direction, Measurement, Protocol};
use units::{BitRate, ByteCount, Rtt};

/// Where each column ends; the last fits 80 with room to spare.
const INTERVAL: usize = 25;
const TRANSFER: usize = 36;
const BITRATE: usize = 49;
const RETR: usize = 56;
const CWND: usize = 67;
const RTT: usize = 77;

/// Where UDP's columns end.
const JITTER: usize = 58;
const LOST: usize = 80;

/// What became of a row's datagrams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// Interarrival jitter; `None` at the sending end.
    pub jitter: Option<Rtt>,
    /// Missing; `None` at the sending end.
    pub lost: Option<u64>,
    /// Sent, or those that should have come.
    pub total: u64,
}

/// Which way a row's data goes, where a test goes both ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the server.
    There,
    /// From it.
    Back,
}

/// Whose row it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowId {
    /// One stream, by iperf3's id.
    Stream(u32),
    /// All of them.
    Sum,
}

/// What happened between two moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The stream, or all.
    pub id: RowId,
    /// Its direction, where there are two.
    pub way: Option<Way>,
    /// Seconds since the test's start.
    pub from_s: f64,
    /// Where it ends.
    pub to_s: f64,
    /// Payload moved.
    pub bytes: ByteCount,
    /// The same over time.
    pub rate: BitRate,
    /// Segments sent again within the interval; `None` on a receiver.
    pub retransmits: Option<u64>,
    /// Congestion window at its end.
    pub cwnd: Option<ByteCount>,
    /// Smoothed round trip at its end.
    pub rtt: Option<Rtt>,
    /// UDP only.
    pub datagrams: Option<Counted>,
}

/// The head above the rows.
#[must_use]
pub fn interval_header(protocol: Protocol, style: &Style) -> String {
    let line = Line::new(style)
        .put(ink::DIM, "[ ID]")
        .right(ink::DIM, "Interval      ", INTERVAL)
        .right(ink::DIM, "Transfer", TRANSFER)
        .right(ink::DIM, "Bitrate", BITRATE);
    if protocol == Protocol::Udp {
        return line
            .right(ink::DIM, "Jitter", JITTER)
            .right(ink::DIM, "Lost/Datagrams", LOST)
            .finish();
    }
    line.right(ink::DIM, "Retr", RETR)
        .right(ink::DIM, "Cwnd", CWND)
        .right(ink::DIM, "RTT", RTT)
        .finish()
}

/// One row; every row is as wide as the head, so live rows line up.
#[must_use]
pub fn interval_row(row: &Interval, style: &Style) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let ink = ink_of(row.id);
    let line = up_to_retransmits(row, style);
    if row.datagrams.is_some() {
        return line.finish();
    }
    line.right(ink, &or_dash(row.cwnd.map(|c| c.to_string())), CWND)
        .right(ink, &or_dash(row.rtt.map(|r| r.to_string())), RTT)
        .finish()
}

/// What a whole test moved, as its two ends counted it: a row for each stream
/// and end, and for the sum where there are several.
#[must_use]
pub fn totals(measurement: &Measurement, style: &Style) -> String {
    let both = measurement.spec.direction == Direction::Both;
    let mut lines = Vec::new();
    for back in [false, true] {
        let part = measurement.one_way(back);
        let way = both.then_some(if back { Way::Back } else { Way::There });
        lines.extend(totals_of(&part, way, style));
    }
    block(lines)
}

fn totals_of(measurement: &Measurement, way: Option<Way>, style: &Style) -> Vec<Line> {
    let rows = |id, [sent, received]: [u64; 2], [wrote, read]: [f64; 2], retransmits, books| {
        let row = |bytes, seconds: f64, retransmits, datagrams, end: &str| {
            let bytes = ByteCount::from_bytes(bytes);
            let rate = if seconds > 0.0 { bytes.as_f64() * 8.0 / seconds } else { 0.0 };
            let row = Interval {
                id,
                way,
                from_s: 0.0,
                to_s: seconds,
                bytes,
                rate: BitRate::from_bps_f64(rate),
                retransmits,
                cwnd: None,
                rtt: None,
                datagrams,
            };
            let line = up_to_retransmits(&row, style);
            if end.is_empty() { line } else { line.put(ink_of(id), "  ").put(ink_of(id), end) }
        };
        let books: Option<&Datagrams> = books;
        let wrote_them =
            books.map(|books| Counted { jitter: None, lost: None, total: books.sent.unwrap_or(0) });
        let read_them = books.map(|books| Counted {
            jitter: Some(books.jitter),
            lost: Some(books.lost),
            total: books.received.saturating_add(books.lost),
        });
        // UDP's rows are full without the end's name, which the columns tell.
        let [sender, receiver] = if books.is_some() { ["", ""] } else { ["sender", "receiver"] };
        [
            row(sent, wrote, retransmits, wrote_them, sender),
            row(received, read, None, read_them, receiver),
        ]
    };
    let mut lines = Vec::new();
    let (mut bytes, mut seconds, mut again) = ([0u64; 2], [0.0f64; 2], Some(0u64));
    let mut all: Option<Datagrams> = None;
    for stream in &measurement.streams {
        let each = [stream.sent_bytes, stream.received_bytes];
        let times = [stream.sent_seconds, stream.received_seconds];
        lines.extend(rows(
            RowId::Stream(stream.id),
            each,
            times,
            stream.retransmits,
            stream.datagrams.as_ref(),
        ));
        if let Some(books) = &stream.datagrams {
            let sum = all.get_or_insert_default();
            sum.sent = Some(sum.sent.unwrap_or(0).saturating_add(books.sent.unwrap_or(0)));
            sum.received = sum.received.saturating_add(books.received);
            sum.lost = sum.lost.saturating_add(books.lost);
            sum.jitter = sum.jitter.max(books.jitter);
        }
        for end in 0..2 {
            bytes[end] = bytes[end].saturating_add(each[end]);
            seconds[end] = seconds[end].max(times[end]);
        }
        // One stream that does not tell leaves the sum unknown.
        again = again.zip(stream.retransmits).map(|(sum, more)| sum.saturating_add(more));
    }
    if measurement.streams.len() > 1 {
        lines.extend(rows(RowId::Sum, bytes, seconds, again, all.as_ref()));
    }
    lines
}

fn ink_of(id: RowId) -> anstyle::Style {
    match id {
        RowId::Stream(_) => ink::PLAIN,
        RowId::Sum => ink::STRONG,
    }
}

fn up_to_retransmits(row: &Interval, style: &Style) -> Line {
    let ink = ink_of(row.id);
    let id = match row.id {
        RowId::Stream(id) => format!("[{id:>3}]"),
        RowId::Sum => "[SUM]".to_owned(),
    };
    let retr_ink = if row.retransmits.unwrap_or(0) > 0 { ink::WARN } else { ink };
    let time = |s: f64| if s.is_finite() { format!("{s:.2}") } else { "-".to_owned() };
    let span = format!("{:>7}-{:<7} sec", time(row.from_s), time(row.to_s));
    let arrow = match (row.way, style.unicode) {
        (None, _) => "",
        (Some(Way::There), true) => "→",
        (Some(Way::There), false) => ">",
        (Some(Way::Back), true) => "←",
        (Some(Way::Back), false) => "<",
    };
    let line = Line::new(style)
        .put(ink, &id)
        .put(ink, arrow)
        .right(ink, &span, INTERVAL)
        .right(ink, &row.bytes.to_string(), TRANSFER)
        .right(ink::STRONG, &row.rate.to_string(), BITRATE);
    if let Some(counted) = row.datagrams {
        let jitter = counted.jitter.map_or("-".to_owned(), |jitter| jitter.to_string());
        let lost = match counted.lost {
            None => format!("{} sent", counted.total),
            Some(lost) => {
                let share = 100.0 * lost as f64 / counted.total.max(1) as f64;
                let digits = if share < 1.0 { 2 } else { 1 };
                format!("{lost}/{} ({share:.digits$}%)", counted.total)
            }
        };
        let lost_ink = if counted.lost.unwrap_or(0) > 0 { ink::WARN } else { ink };
        return line.right(ink, &jitter, JITTER).right(lost_ink, &lost, LOST);
    }
    line.right(retr_ink, &row.retransmits.map_or("-".to_owned(), |r| r.to_string()), RETR)
}
