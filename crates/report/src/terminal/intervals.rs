//! The rows of a running test, in the columns people know from iperf3.

use super::{Style, ink, line::Line};
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
    let (id, ink) = match row.id {
        RowId::Stream(id) => (format!("[{id:>3}]"), ink::PLAIN),
        RowId::Sum => ("[SUM]".to_owned(), ink::STRONG),
    };
    let retr_ink = if row.retransmits.unwrap_or(0) > 0 { ink::WARN } else { ink };
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let time = |s: f64| if s.is_finite() { format!("{s:.2}") } else { "-".to_owned() };
    let span = format!("{:>7}-{:<7} sec", time(row.from_s), time(row.to_s));
    Line::new(style)
        .put(ink, &id)
        .right(ink, &span, INTERVAL)
        .right(ink, &row.bytes.to_string(), TRANSFER)
        .right(ink::STRONG, &row.rate.to_string(), BITRATE)
        .right(retr_ink, &or_dash(row.retransmits.map(|r| r.to_string())), RETR)
        .right(ink, &or_dash(row.cwnd.map(|c| c.to_string())), CWND)
        .right(ink, &or_dash(row.rtt.map(|r| r.to_string())), RTT)
        .finish()
}
