//! Interval reports of a running test and its totals, in iperf3's columns.

use super::{
    Style,
    column_units::ColumnUnits,
    line::{Line, block},
    style,
};
use record::{Datagrams, Direction, Interval, Measurement, Protocol};
use units::{BitRate, ByteCount, Rtt, percent, share};

/// Right edge of each column; the table fits 80 columns.
const INTERVAL: usize = 25;
const TRANSFER: usize = 36;
const BITRATE: usize = 49;
const RETR: usize = 56;
const CWND: usize = 67;
const RTT: usize = 77;

/// Right edges of UDP's columns.
const JITTER: usize = 58;
const LOST: usize = 80;

/// Streams in one direction above which only their sum is shown.
const MAX_STREAMS: usize = 4;

/// Which rows of a test are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Each stream and the sum; above four streams in a direction only the sum.
    Brief,
    /// Each stream and the sum, however many (`--each`).
    Each,
}

impl Rows {
    /// Whether streams of a direction that has so many are shown one by one.
    fn shows_each(self, streams: usize) -> bool {
        self == Rows::Each || streams <= MAX_STREAMS
    }
}

/// The interval reports of one test: one row for each, one unit for each column.
#[derive(Debug, Clone)]
pub struct IntervalTable {
    protocol: Protocol,
    both: bool,
    rows: Rows,
    /// Ids of the streams in their order: the first is stream 1.
    streams: Vec<u32>,
    units: Option<ColumnUnits>,
    /// The longest interval so far.
    longest_s: f64,
}

impl IntervalTable {
    /// A table for a test over these streams, by iperf3's ids, in one direction
    /// or in both.
    #[must_use]
    pub fn new(protocol: Protocol, streams: Vec<u32>, both: bool, rows: Rows) -> Self {
        IntervalTable { protocol, both, rows, streams, units: None, longest_s: 0.0 }
    }

    /// The line above the rows.
    #[must_use]
    pub fn header(&self, style: &Style) -> String {
        let line = Line::new(style)
            .put(style::DIM, "[ ID]")
            .right(style::DIM, "Interval      ", INTERVAL)
            .right(style::DIM, "Transfer", TRANSFER)
            .right(style::DIM, "Bitrate", BITRATE);
        if self.protocol == Protocol::Udp {
            return line
                .right(style::DIM, "Jitter", JITTER)
                .right(style::DIM, "Lost/Datagrams", LOST)
                .finish();
        }
        line.right(style::DIM, "Retr", RETR)
            .right(style::DIM, "Cwnd", CWND)
            .right(style::DIM, "RTT", RTT)
            .finish()
    }

    /// The row of an interval, where it is shown. All rows are as wide as the
    /// header, and the first that is not empty chooses the units. A remainder shorter
    /// than a tenth of the other intervals is not shown: its rate would mislead.
    pub fn row(&mut self, interval: &Interval, style: &Style) -> Option<String> {
        let directions = if self.both { 2 } else { 1 };
        let streams = self.streams.len() / directions;
        if interval.stream.is_some() && !self.rows.shows_each(streams) {
            return None;
        }
        let seconds = interval.to_s - interval.from_s;
        if seconds < self.longest_s / 10.0 {
            return None;
        }
        self.longest_s = self.longest_s.max(seconds);
        let direction = if interval.sending { Direction::Forward } else { Direction::Reverse };
        let row = Row {
            number: interval.stream.map(|id| self.number(id)),
            direction: self.both.then_some(direction),
            from_s: interval.from_s,
            to_s: interval.to_s,
            bytes: interval.bytes,
            rate: interval.rate,
            retransmits: interval.retransmits,
            datagrams: interval.datagrams.map(|counts| DatagramColumns {
                jitter: (!interval.sending).then_some(counts.jitter),
                lost: (!interval.sending).then_some(counts.lost),
                total: Some(counts.packets),
            }),
        };
        let units = self.units.unwrap_or_else(|| {
            // The sum will be about as many times larger as there are streams.
            let times = if interval.stream.is_some() { streams.max(1) as u64 } else { 1 };
            let rate = BitRate::from_bps(interval.rate.bps().saturating_mul(times));
            ColumnUnits::of(interval.bytes.times(times), rate, interval.cwnd)
        });
        if interval.bytes > ByteCount::ZERO {
            self.units = Some(units);
        }
        let line = row.line(&units, style);
        if row.datagrams.is_some() {
            return Some(line.finish());
        }
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let ink = row.ink();
        let cwnd = or_dash(interval.cwnd.map(|cwnd| units.cwnd(cwnd)));
        let rtt = or_dash(interval.rtt.map(ColumnUnits::time));
        Some(line.right(ink, &cwnd, CWND).right(ink, &rtt, RTT).finish())
    }

    /// Streams are numbered from 1 (iperf3's ids are 1, 3, 4, …).
    fn number(&self, id: u32) -> usize {
        self.streams.iter().position(|of| *of == id).map_or(id as usize, |index| index + 1)
    }
}

/// What a whole test transferred, as each end counted it: a row for each stream
/// and end, and for the sum where there are several.
#[must_use]
pub fn totals(measurement: &Measurement, rows: Rows, style: &Style) -> String {
    let both = measurement.spec.direction == Direction::Both;
    let mut all = Vec::new();
    for reverse in [false, true] {
        let direction =
            both.then_some(if reverse { Direction::Reverse } else { Direction::Forward });
        all.extend(totals_of(measurement, reverse, direction, rows));
    }
    let bytes = all.iter().map(|(row, _)| row.bytes).max().unwrap_or(ByteCount::ZERO);
    let rate = all.iter().map(|(row, _)| row.rate).max().unwrap_or(BitRate::ZERO);
    let units = ColumnUnits::of(bytes, rate, None);
    let lines = all.into_iter().map(|(row, end)| {
        let line = row.line(&units, style);
        // UDP's columns leave no room for the end, and show which it is.
        if row.datagrams.is_some() { line } else { line.put(row.ink(), "  ").put(row.ink(), end) }
    });
    block(lines.collect())
}

/// The rows of one direction, each with the end that counted it.
fn totals_of(
    measurement: &Measurement,
    reverse: bool,
    direction: Option<Direction>,
    rows: Rows,
) -> Vec<(Row, &'static str)> {
    let numbered =
        measurement.streams.iter().enumerate().map(|(index, stream)| (index + 1, stream));
    let streams: Vec<_> = numbered.filter(|(_, stream)| stream.reverse == reverse).collect();
    let mut all = Vec::new();
    let mut sum = Totals { retransmits: Some(0), ..Totals::default() };
    for (number, stream) in &streams {
        let totals = Totals {
            bytes: [stream.sent_bytes, stream.received_bytes],
            seconds: [stream.sent_seconds, stream.received_seconds],
            retransmits: stream.retransmits,
            datagrams: stream.datagrams.clone(),
        };
        sum.add(&totals);
        if rows.shows_each(streams.len()) {
            all.extend(totals.rows(Some(*number), direction));
        }
    }
    if streams.len() > 1 {
        all.extend(sum.rows(None, direction));
    }
    all
}

/// What a stream, or several, transferred: counted by the sender and by the receiver.
#[derive(Debug, Default)]
struct Totals {
    bytes: [u64; 2],
    seconds: [f64; 2],
    retransmits: Option<u64>,
    datagrams: Option<Datagrams>,
}

impl Totals {
    fn add(&mut self, stream: &Totals) {
        for end in 0..2 {
            self.bytes[end] = self.bytes[end].saturating_add(stream.bytes[end]);
            self.seconds[end] = self.seconds[end].max(stream.seconds[end]);
        }
        // Unknown for one stream is unknown for the sum.
        let both = self.retransmits.zip(stream.retransmits);
        self.retransmits = both.map(|(sum, more)| sum.saturating_add(more));
        if let Some(of) = &stream.datagrams {
            let sum = self.datagrams.get_or_insert_default();
            sum.sent = Some(sum.sent.unwrap_or(0).saturating_add(of.sent.unwrap_or(0)));
            sum.received = sum.received.saturating_add(of.received);
            sum.lost = sum.lost.saturating_add(of.lost);
            sum.jitter = sum.jitter.max(of.jitter);
        }
    }

    fn rows(
        &self,
        number: Option<usize>,
        direction: Option<Direction>,
    ) -> [(Row, &'static str); 2] {
        let row = |end: usize, retransmits, datagrams| {
            let (bytes, seconds) = (ByteCount::from_bytes(self.bytes[end]), self.seconds[end]);
            let rate = if seconds > 0.0 { bytes.as_f64() * 8.0 / seconds } else { 0.0 };
            Row {
                number,
                direction,
                from_s: 0.0,
                to_s: seconds,
                bytes,
                rate: BitRate::from_bps_f64(rate),
                retransmits,
                datagrams,
            }
        };
        let datagrams = self.datagrams.as_ref();
        let sent = datagrams.map(|of| DatagramColumns { jitter: None, lost: None, total: of.sent });
        let received = datagrams.map(|of| DatagramColumns {
            jitter: Some(of.jitter),
            lost: Some(of.lost),
            total: Some(of.received.saturating_add(of.lost)),
        });
        [(row(0, self.retransmits, sent), "sender"), (row(1, None, received), "receiver")]
    }
}

/// UDP's columns; jitter and loss are known at the receiving end only.
#[derive(Debug, Clone, Copy, PartialEq)]
struct DatagramColumns {
    jitter: Option<Rtt>,
    lost: Option<u64>,
    /// Sent, or expected; `None`: the sender's count is missing.
    total: Option<u64>,
}

/// A row up to the columns that only interval reports have.
#[derive(Debug)]
struct Row {
    /// The stream's number; `None` in a sum.
    number: Option<usize>,
    /// Shown as an arrow where the test runs in both directions.
    direction: Option<Direction>,
    from_s: f64,
    to_s: f64,
    bytes: ByteCount,
    rate: BitRate,
    retransmits: Option<u64>,
    datagrams: Option<DatagramColumns>,
}

impl Row {
    fn ink(&self) -> anstyle::Style {
        if self.number.is_some() { style::PLAIN } else { style::STRONG }
    }

    fn line(&self, units: &ColumnUnits, style: &Style) -> Line {
        let ink = self.ink();
        let id = self.number.map_or("[SUM]".to_owned(), |number| format!("[{number:>3}]"));
        let time = |s: f64| if s.is_finite() { format!("{s:.2}") } else { "-".to_owned() };
        let span = format!("{:>7}-{:<7} sec", time(self.from_s), time(self.to_s));
        let arrow = match (self.direction, style.unicode) {
            (None | Some(Direction::Both), _) => "",
            (Some(Direction::Forward), true) => "→",
            (Some(Direction::Forward), false) => ">",
            (Some(Direction::Reverse), true) => "←",
            (Some(Direction::Reverse), false) => "<",
        };
        let line = Line::new(style)
            .put(ink, &id)
            .put(ink, arrow)
            .right(ink, &span, INTERVAL)
            .right(ink, &units.bytes(self.bytes), TRANSFER)
            .right(style::STRONG, &units.rate(self.rate), BITRATE);
        let Some(counts) = self.datagrams else {
            let warn = if self.retransmits.unwrap_or(0) > 0 { style::WARN } else { ink };
            let retransmits = self.retransmits.map_or("-".to_owned(), |count| count.to_string());
            return line.right(warn, &retransmits, RETR);
        };
        let jitter = counts.jitter.map_or("-".to_owned(), ColumnUnits::time);
        let lost = match (counts.lost, counts.total) {
            (_, None) => "-".to_owned(),
            (None, Some(total)) => format!("{total} sent"),
            (Some(lost), Some(total)) => {
                format!("{lost}/{total} ({})", percent(share(lost, total)))
            }
        };
        let warn = if counts.lost.unwrap_or(0) > 0 { style::WARN } else { ink };
        line.right(ink, &jitter, JITTER).right(warn, &lost, LOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Stream;

    const STYLE: Style = Style { colour: false, width: 80, unicode: true };
    const IDS: [u32; 8] = [1, 3, 4, 5, 6, 7, 8, 9];

    fn interval(stream: Option<u32>, bytes: u64) -> Interval {
        Interval {
            stream,
            sending: true,
            to_s: 1.0,
            bytes: ByteCount::from_bytes(bytes),
            rate: BitRate::from_bps(8 * bytes),
            retransmits: Some(0),
            rtt: Some(Rtt::from_micros(173_000)),
            ..Interval::default()
        }
    }

    fn shown(streams: &[u32], rows: Rows, intervals: &[Interval]) -> Vec<String> {
        let mut table = IntervalTable::new(Protocol::Tcp, streams.to_vec(), false, rows);
        intervals.iter().filter_map(|interval| table.row(interval, &STYLE)).collect()
    }

    fn eight() -> Vec<Interval> {
        // 24 MiB is a size that Display would write in MiB.
        let streams = IDS.map(|id| interval(Some(id), if id == 3 { 24 << 20 } else { 31_750_000 }));
        streams.into_iter().chain([interval(None, 254_000_000)]).collect()
    }

    #[test]
    fn above_four_streams_only_the_sum_is_shown() {
        let rows = shown(&IDS, Rows::Brief, &eight());
        assert_eq!(rows.len(), 1, "{rows:#?}");
        assert!(rows[0].starts_with("[SUM]") && rows[0].contains("2032 Mbit/s"), "{rows:#?}");
        let four: Vec<Interval> = eight().into_iter().take(4).collect();
        assert_eq!(shown(&IDS[..4], Rows::Brief, &four).len(), 4);
    }

    #[test]
    fn streams_are_numbered_from_one_and_columns_have_one_unit() {
        let rows = shown(&IDS, Rows::Each, &eight());
        assert_eq!(rows.len(), 9);
        for (number, row) in rows[..8].iter().enumerate() {
            assert!(row.starts_with(&format!("[{:>3}]", number + 1)), "{row}");
        }
        assert!(rows.iter().all(|row| row.contains(" MB ") && row.contains(" Mbit/s ")));
        assert!(rows[1].contains("25.2 MB") && rows[1].contains("201 Mbit/s"), "{rows:#?}");
    }

    #[test]
    fn a_remainder_shorter_than_a_tenth_of_the_intervals_is_not_shown() {
        let until = |to_s| Interval { to_s, ..interval(Some(1), 1_000_000) };
        let lengths = |all: &[f64]| {
            let all: Vec<Interval> = all.iter().map(|to_s| until(*to_s)).collect();
            shown(&IDS[..1], Rows::Brief, &all).len()
        };
        assert_eq!([lengths(&[1.0, 0.09]), lengths(&[1.0, 0.11]), lengths(&[0.09])], [1, 2, 1]);
    }

    #[test]
    fn an_empty_interval_chooses_no_unit() {
        let rows = shown(&IDS[..1], Rows::Brief, &[interval(Some(1), 0), eight()[0]]);
        assert!(rows[0].contains("0 kbit/s") && rows[1].contains("254 Mbit/s"), "{rows:#?}");
    }

    #[test]
    fn totals_follow_the_same_rules() {
        let stream = |id| Stream {
            id,
            sent_bytes: 800 << 20,
            received_bytes: 812_000_000,
            sent_seconds: 10.0,
            received_seconds: 10.0,
            retransmits: Some(3),
            ..Stream::default()
        };
        let spec = record::TestSpec {
            target: String::new(),
            port: 5201,
            protocol: Protocol::Tcp,
            direction: Direction::Forward,
            seconds: 10.0,
            streams: 8,
            window_bytes: None,
            rate_bps: None,
            congestion: None,
            ..record::TestSpec::default()
        };
        let measurement =
            Measurement { spec, streams: IDS.map(stream).to_vec(), ..Measurement::default() };
        let brief = totals(&measurement, Rows::Brief, &STYLE);
        assert_eq!(brief.lines().count(), 2, "{brief}");
        assert!(brief.contains("6711 MB") && brief.contains("5197 Mbit/s"), "{brief}");
        assert!(brief.contains(" 24  sender"), "{brief}");
        let each = totals(&measurement, Rows::Each, &STYLE);
        assert_eq!(each.lines().count(), 18, "{each}");
        assert!(each.contains("[  8]") && !each.contains("[  9]"), "{each}");
        assert!(each.contains("839 MB") && each.contains("650 Mbit/s"), "{each}");
    }
}
