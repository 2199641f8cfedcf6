//! The rows of a running test, in the columns people know from iperf3.

use super::{
    Style, ink,
    line::{Line, block},
};
use record::Measurement;
use units::{BitRate, ByteCount, Rtt};

/// Where each column ends; the last fits 80 with room to spare.
const INTERVAL: usize = 25;
const TRANSFER: usize = 36;
const BITRATE: usize = 49;
const RETR: usize = 56;
const CWND: usize = 67;
const RTT: usize = 77;

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
}

/// The head above the rows.
#[must_use]
pub fn interval_header(style: &Style) -> String {
    Line::new(style)
        .put(ink::DIM, "[ ID]")
        .right(ink::DIM, "Interval      ", INTERVAL)
        .right(ink::DIM, "Transfer", TRANSFER)
        .right(ink::DIM, "Bitrate", BITRATE)
        .right(ink::DIM, "Retr", RETR)
        .right(ink::DIM, "Cwnd", CWND)
        .right(ink::DIM, "RTT", RTT)
        .finish()
}

/// One row; every row is as wide as the head, so live rows line up.
#[must_use]
pub fn interval_row(row: &Interval, style: &Style) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let ink = ink_of(row.id);
    up_to_retransmits(row, style)
        .right(ink, &or_dash(row.cwnd.map(|c| c.to_string())), CWND)
        .right(ink, &or_dash(row.rtt.map(|r| r.to_string())), RTT)
        .finish()
}

/// What a whole test moved, as its two ends counted it: a row for each stream
/// and end, and for the sum where there are several.
#[must_use]
pub fn totals(measurement: &Measurement, style: &Style) -> String {
    let rows = |id, [sent, received]: [u64; 2], [wrote, read]: [f64; 2], retransmits| {
        let row = |bytes, seconds: f64, retransmits, end| {
            let bytes = ByteCount::from_bytes(bytes);
            let rate = if seconds > 0.0 { bytes.as_f64() * 8.0 / seconds } else { 0.0 };
            let rate = BitRate::from_bps_f64(rate);
            let (cwnd, rtt) = (None, None);
            let row =
                Interval { id, from_s: 0.0, to_s: seconds, bytes, rate, retransmits, cwnd, rtt };
            up_to_retransmits(&row, style).put(ink_of(id), "  ").put(ink_of(id), end)
        };
        [row(sent, wrote, retransmits, "sender"), row(received, read, None, "receiver")]
    };
    let mut lines = Vec::new();
    let (mut bytes, mut seconds, mut again) = ([0u64; 2], [0.0f64; 2], Some(0u64));
    for stream in &measurement.streams {
        let each = [stream.sent_bytes, stream.received_bytes];
        let times = [stream.sent_seconds, stream.received_seconds];
        lines.extend(rows(RowId::Stream(stream.id), each, times, stream.retransmits));
        for end in 0..2 {
            bytes[end] = bytes[end].saturating_add(each[end]);
            seconds[end] = seconds[end].max(times[end]);
        }
        // One stream that does not tell leaves the sum unknown.
        again = again.zip(stream.retransmits).map(|(sum, more)| sum.saturating_add(more));
    }
    if measurement.streams.len() > 1 {
        lines.extend(rows(RowId::Sum, bytes, seconds, again));
    }
    block(lines)
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
    Line::new(style)
        .put(ink, &id)
        .right(ink, &span, INTERVAL)
        .right(ink, &row.bytes.to_string(), TRANSFER)
        .right(ink::STRONG, &row.rate.to_string(), BITRATE)
        .right(retr_ink, &row.retransmits.map_or("-".to_owned(), |r| r.to_string()), RETR)
}
