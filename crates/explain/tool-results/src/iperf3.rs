//! iperf3's JSON: the document of `-J`, and the lines of `--json-stream` (3.17 and later).
//!
//! Versions 3.1 to 3.21 differ in what they have: the receiver's window (`snd_wnd`) and the
//! requested rate and buffer came after 3.7, the direction of each stream with `--bidir`
//! (esnet/iperf, `src/iperf_api.c`, `iperf_print_intermediate` and `iperf_print_results`).

mod document;
pub(crate) mod text;

use crate::{
    intervals::{self, Totals},
    not_a_result::NotAResult,
    number::{self, count},
    transfer::{self, MAX_STREAMS, Transfer},
};
use document::{Document, EndStream, MAX_REPORTS, Report, Start, StreamReport};
use iperf3_proto::lenient::short_text;
use record::{
    Datagrams, Direction, EndCondition, Interval, Measurement, Protocol, Stream, TestSpec,
    Unavailable,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use units::{BitRate, ByteCount, Rtt};

/// Payload of a segment where the file has none: Ethernet's MTU with timestamps.
const USUAL_MSS: u32 = 1448;

/// From this version on each stream has a thread, and the CPU time is that of all of them.
const THREADED: (u32, u32) = (3, 16);

#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(deserialize_with = "short_text::<40, _>")]
    event: Option<String>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// The document of `-J`.
pub(crate) fn document(text: &str) -> Result<Measurement, NotAResult> {
    const WHAT: &str = "iperf3's JSON output";
    let document: Document = serde_json::from_str(text).map_err(|e| NotAResult::json(WHAT, &e))?;
    measurement(&document, WHAT)
}

/// The lines of `--json-stream`. A test that was ended early lacks the last one.
pub(crate) fn stream(text: &str) -> Result<Measurement, NotAResult> {
    const WHAT: &str = "iperf3's --json-stream output";
    let mut document = Document::default();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let (mut reports, mut is_second) = (0, false);
    for (number, line) in (1..).zip(lines) {
        let wrong = |error: &serde_json::Error| NotAResult::json_line(WHAT, number, error);
        let event: Event<'_> = serde_json::from_str(line).map_err(|e| wrong(&e))?;
        let Some(data) = event.data.map(RawValue::get) else { continue };
        match event.event.as_deref() {
            Some("start") if reports > 0 => {
                is_second = true;
                break;
            }
            Some("start") => document.start = serde_json::from_str(data).map_err(|e| wrong(&e))?,
            Some("interval") if reports < MAX_REPORTS => {
                let report: Report = serde_json::from_str(data).map_err(|e| wrong(&e))?;
                reports += report.streams.len().max(1);
                document.intervals.push(report);
            }
            Some("end") => document.end = serde_json::from_str(data).map_err(|e| wrong(&e))?,
            Some("error") => document.error = serde_json::from_str(data).ok(),
            _ => {}
        }
    }
    let mut measurement = measurement(&document, WHAT)?;
    if is_second {
        measurement.notes.push("another result follows and was ignored".to_owned());
    }
    Ok(measurement)
}

fn measurement(document: &Document, what: &'static str) -> Result<Measurement, NotAResult> {
    if document.intervals.iter().all(|report| report.streams.is_empty()) {
        return Err(match &document.error {
            Some(error) => NotAResult::empty(what, &format!("no interval: iperf3 said '{error}'")),
            None => NotAResult::empty(what, "no interval"),
        });
    }
    let start = &document.start;
    let asked = &start.test_start;
    let is_server = start.accepted_connection.is_some();
    let streams = by_socket(document, is_server);
    // Before 3.14 `--bidir` is not among the parameters.
    let sends = |(_, reports): &(u64, Vec<Interval>)| reports.iter().any(|one| one.sending);
    let is_both = asked.bidir || (streams.iter().any(sends) && !streams.iter().all(sends));
    let direction = match (is_both, asked.reverse) {
        (true, _) => Direction::Both,
        (false, true) => Direction::Reverse,
        (false, false) => Direction::Forward,
    };
    let mut transfer = Transfer {
        tool: tool(start.version.as_deref()),
        started_unix_s: count(start.timestamp.timesecs).unwrap_or(0),
        spec: spec(document, direction),
        ..Transfer::default()
    };
    let is_udp = transfer.spec.protocol == Protocol::Udp;
    for (id, (socket, reports)) in (1..).zip(streams) {
        let sends = reports.first().is_some_and(|one| one.sending);
        // Data of the server's goes in the reverse direction.
        let reverse = sends == is_server;
        let end = document.end.streams.iter().find(|end| end.socket() == Some(socket));
        if is_udp {
            transfer.streams.push(datagrams(id, reverse, &reports, end, asked.blksize));
            continue;
        }
        // A test that was ended early has no results of the other end.
        let complete = document.error.is_none();
        let totals = end.map_or_else(Totals::default, |end| end.totals(sends, complete));
        let totals = Totals { mss: mss(start, &reports), ..totals };
        let (mut stream, lacking) = intervals::stream(id, reverse, &reports, &totals);
        stream.congestion = document.end.sender_tcp_congestion.clone();
        transfer.unavailable.extend(lacking);
        transfer.streams.push(stream);
    }
    if is_udp && direction != Direction::Both {
        match received_datagrams(document) {
            Some(received) => count_received(&mut transfer.streams, received),
            None => transfer.unavailable.push(Unavailable::Received),
        }
    }
    if document.end.sender_tcp_congestion.is_none() && !is_udp {
        transfer.unavailable.push(Unavailable::CongestionControl);
    }
    if asked.target_bitrate.or(start.target_bitrate).is_none() {
        transfer.unavailable.push(Unavailable::RequestedRate);
    }
    if transfer.streams.len() == 1 || version(start.version.as_deref()) < Some(THREADED) {
        let cpu = &document.end.cpu_utilization_percent;
        let (host, remote) =
            (transfer::core_share(cpu.host_total), transfer::core_share(cpu.remote_total));
        let host_sends = transfer.streams.first().is_some_and(|stream| stream.reverse == is_server);
        // Both ends send and receive in a test in both directions.
        transfer.cpu = match (direction, host_sends) {
            (Direction::Both, _) => [None, None],
            (_, true) => [host, remote],
            (_, false) => [remote, host],
        };
    }
    if let Some(error) = &document.error {
        transfer.notes.push(format!("iperf3 reported: {error}"));
    }
    Ok(transfer.into_measurement())
}

/// `iperf3 3.12` of `iperf 3.12`.
fn tool(version: Option<&str>) -> String {
    let version = version.and_then(|text| text.strip_prefix("iperf "));
    version.map_or_else(|| "iperf3".to_owned(), |number| format!("iperf3 {number}"))
}

fn version(text: Option<&str>) -> Option<(u32, u32)> {
    let mut parts = text?.strip_prefix("iperf ")?.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn spec(document: &Document, direction: Direction) -> TestSpec {
    let start = &document.start;
    let asked = &start.test_start;
    let positive = |number: Option<f64>| count(number).filter(|number| *number > 0);
    let connected = start.connected.first();
    // A server's file: the client reached it at its own address.
    let address = match (&start.connecting_to, connected) {
        (Some(to), _) => (to.host.as_deref(), to.port),
        (None, Some(own)) => (own.local_host.as_deref(), own.local_port),
        (None, None) => (None, None),
    };
    let congestion = document.end.sender_tcp_congestion.as_deref();
    TestSpec {
        target: transfer::name(address.0.unwrap_or_default()),
        port: count(address.1).and_then(|port| u16::try_from(port).ok()).unwrap_or(0),
        protocol: match asked.protocol.as_deref() {
            Some("UDP") => Protocol::Udp,
            _ => Protocol::Tcp,
        },
        direction,
        seconds: asked.duration.unwrap_or(0.0).clamp(0.0, 1e6),
        end: match (positive(asked.bytes), positive(asked.blocks)) {
            (Some(bytes), _) => EndCondition::Bytes(ByteCount::from_bytes(bytes)),
            (None, Some(blocks)) => EndCondition::Blocks(blocks),
            (None, None) => EndCondition::Time,
        },
        omit_s: number::count32(asked.omit).unwrap_or(0),
        streams: number::count32(asked.num_streams).unwrap_or(1).clamp(1, 128),
        window_bytes: positive(start.sock_bufsize).map(ByteCount::from_bytes),
        rate_bps: positive(asked.target_bitrate.or(start.target_bitrate)).map(BitRate::from_bps),
        fq_rate_bps: positive(start.fq_rate).map(BitRate::from_bps),
        // What Linux uses unless asked for another is not asked for.
        congestion: congestion.filter(|name| *name != "cubic").map(transfer::name),
        ..TestSpec::default()
    }
}

/// The intervals of each socket, in the order in which they first appear.
fn by_socket(document: &Document, is_server: bool) -> Vec<(u64, Vec<Interval>)> {
    let mut all: Vec<(u64, Vec<Interval>)> = Vec::new();
    let sends = document.start.test_start.reverse == is_server;
    for one in document.intervals.iter().flat_map(|report| &report.streams) {
        let socket = count(one.socket).unwrap_or(0);
        let interval = one.interval(sends);
        match all.iter().position(|(other, _)| *other == socket) {
            Some(at) => all[at].1.push(interval),
            None if all.len() < MAX_STREAMS => all.push((socket, vec![interval])),
            None => {}
        }
    }
    all
}

fn mss(start: &Start, reports: &[Interval]) -> u32 {
    let given = number::count32(start.tcp_mss);
    // Headers of IPv4 and TCP with timestamps.
    let of_mtu = || reports.iter().find_map(|one| one.pmtu).map(|mtu| mtu.saturating_sub(52));
    let plausible = |mss: &u32| (64..=65_535).contains(mss);
    given.filter(plausible).or_else(|| of_mtu().filter(plausible)).unwrap_or(USUAL_MSS)
}

/// The datagrams that all receivers counted; before 3.8 the file has those that were sent, and the
/// gaps before the last arrival.
fn received_datagrams(document: &Document) -> Option<u64> {
    let sum = document.end.sum_received.as_ref()?;
    let length = count(document.start.test_start.blksize).filter(|length| *length > 0)?;
    let by_bytes = count(sum.bytes).filter(|bytes| *bytes > 0).map(|bytes| bytes / length);
    let numbers = || Some(count(sum.packets)?.saturating_sub(count(sum.lost_packets).unwrap_or(0)));
    by_bytes.or_else(numbers)
}

/// Counts as lost what was sent and not received. The receivers' count is that of all streams: each
/// has its share of what was sent after the last arrival.
fn count_received(streams: &mut [Stream], received: u64) {
    let all: u64 =
        streams.iter().filter_map(|one| one.datagrams.as_ref()).map(|d| d.received).sum();
    for stream in streams {
        let Some(datagrams) = &mut stream.datagrams else { continue };
        if received < all {
            let part = u128::from(datagrams.received) * u128::from(received) / u128::from(all);
            datagrams.received = u64::try_from(part).unwrap_or(0);
            datagrams.count_unreceived();
        }
        stream.received_bytes = datagrams.received * u64::from(datagrams.length_bytes);
    }
}

/// A stream of datagrams. Without the totals at the end, nothing is known of losses.
fn datagrams(
    id: u32,
    reverse: bool,
    reports: &[Interval],
    end: Option<&EndStream>,
    length: Option<f64>,
) -> Stream {
    let counted = reports.iter().filter(|one| !one.omitted);
    let written = counted.clone().fold(ByteCount::ZERO, |sum, one| sum.plus(one.bytes)).bytes();
    let seconds = counted.map(|one| one.to_s).fold(0.0, f64::max);
    let length = number::count32(length).unwrap_or(0);
    let total = end.and_then(|end| end.udp.as_ref());
    let of = |read: fn(&StreamReport) -> Option<f64>| total.and_then(|total| count(read(total)));
    let sent = of(|total| total.packets).unwrap_or(written / u64::from(length.max(1)));
    let lost = of(|total| total.lost_packets).unwrap_or(0).min(sent);
    let received = sent - lost;
    let bytes = received.saturating_mul(u64::from(length));
    let jitter = total.and_then(|total| total.jitter_ms).unwrap_or(0.0);
    Stream {
        id,
        reverse,
        sent_bytes: sent.saturating_mul(u64::from(length)),
        received_bytes: bytes,
        sent_seconds: seconds,
        received_seconds: seconds,
        datagrams: Some(Datagrams {
            length_bytes: length,
            sent: Some(sent),
            received,
            lost,
            reordered: of(|total| total.out_of_order).unwrap_or(0),
            jitter: Rtt::from_secs(jitter / 1e3),
            ..Datagrams::default()
        }),
        ..Stream::default()
    }
}
