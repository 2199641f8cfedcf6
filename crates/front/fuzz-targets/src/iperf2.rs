//! UDP datagrams of any sources at an iperf 2 server, in virtual time. Two oracles: the bytes of
//! its log, and what it sends to each address.
//!
//! An input is a sequence of records: milliseconds since the one before, a source, a kind, and a
//! number; the kind says how many datagrams follow each other, and what they are.

use host::address_key::AddressKey;
use iperf2::Event;
use iperf2::server::Limits;
use iperf2::simulation::{Arrival, Outcome, serve_udp};
use iperf2_proto::{Amount, ClientHeader, Datagram, Mode};
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Streams that a server has state of beside those that its limit permits.
const HALF_OPEN: usize = 256;

/// What a server reports in a second whatever arrives.
const STREAMS: u64 = 20;
const INTERVALS: u64 = 220;
const ERRORS: u64 = 20;

/// Bytes for which a stream is reported in any case.
const PROVEN_BYTES: u64 = 65_536;

/// The most bytes of its lines: start of a stream, report of one or of a sum, error.
const START: u64 = 160;
const ROW: u64 = 310;
const ERROR: u64 = 400;

/// A packet's bytes for a payload: IP and UDP headers.
fn packet_bytes(address: SocketAddr, payload: u64) -> u64 {
    payload + if address.is_ipv4() { 28 } else { 48 }
}

const MAX_RECORDS: usize = 256;

pub(crate) fn flows(input: &[u8]) {
    let limits = Limits { streams: 64, ..Limits::default() };
    let arrivals = arrivals(input);
    let outcome = serve_udp(&limits, Some(Duration::from_millis(500)), &arrivals);
    assert!(outcome.most_flows <= limits.streams as usize + HALF_OPEN, "{}", outcome.most_flows);
    check_log(&arrivals, &outcome);
    check_sent(&arrivals, &outcome);
}

/// What a server has logged.
#[derive(Debug, Default)]
struct Logged {
    starts: u64,
    /// Reports of whole streams, and of their sums.
    wholes: u64,
    intervals: u64,
    errors: u64,
    counts: u64,
    bytes: u64,
}

impl Logged {
    fn add(&mut self, event: &Event) {
        let (count, bytes) = match event {
            Event::Connected { .. } => (&mut self.starts, START),
            Event::Interval(row) if row.whole => (&mut self.wholes, ROW),
            Event::Interval(_) => (&mut self.intervals, ROW),
            Event::Suppressed { .. } => (&mut self.counts, START),
            Event::PeerError { reason, .. } => (&mut self.errors, 60 + reason.len() as u64),
            _ => return,
        };
        *count += 1;
        self.bytes += bytes;
    }
}

/// What was logged up to any moment is within the limits of the seconds so far, and beyond them a
/// hundredth of what arrived.
fn check_log(arrivals: &[Arrival], outcome: &Outcome) {
    let mut arrived = arrivals.iter().peekable();
    let (mut received, mut logged) = (0, Logged::default());
    for (at, event) in &outcome.events {
        while let Some(arrival) = arrived.next_if(|arrival| arrival.at <= *at) {
            received += arrival.bytes.len() as u64;
        }
        logged.add(event);
        let (seconds, proven) = (at.as_secs() + 1, received / PROVEN_BYTES);
        let within = logged.starts <= STREAMS * seconds + proven
            && logged.wholes <= 2 * logged.starts
            // Each report may end the interval of a sum.
            && logged.intervals <= 2 * INTERVALS * seconds
            && logged.errors <= ERRORS * seconds
            && logged.counts <= seconds;
        let stream = START + 2 * ROW;
        let most = seconds * (STREAMS * stream + 2 * INTERVALS * ROW + ERRORS * ERROR + START)
            + proven * stream;
        assert!(within && logged.bytes <= most, "{logged:?} in {at:?} for {received} bytes");
    }
}

/// No address is sent more datagrams or bytes than have come from it by then.
fn check_sent(arrivals: &[Arrival], outcome: &Outcome) {
    let mut arrived = arrivals.iter().peekable();
    let mut balance: HashMap<AddressKey, (u64, u64)> = HashMap::new();
    for (at, to, bytes) in &outcome.sent {
        while let Some(arrival) = arrived.next_if(|arrival| arrival.at <= *at) {
            let (datagrams, bytes) =
                balance.entry(AddressKey::of(arrival.source.ip())).or_default();
            *datagrams += 1;
            *bytes += packet_bytes(arrival.source, arrival.bytes.len() as u64);
        }
        let left = balance.entry(AddressKey::of(to.ip())).or_default();
        let paid = left.0.checked_sub(1).zip(left.1.checked_sub(packet_bytes(*to, *bytes)));
        assert!(paid.is_some(), "{bytes} bytes to {to} at {at:?}, with {left:?} left");
        *left = paid.unwrap_or_default();
    }
}

fn arrivals(input: &[u8]) -> Vec<Arrival> {
    let mut at = Duration::ZERO;
    let mut arrivals = Vec::new();
    let (records, _) = input.as_chunks::<4>();
    for &[gap, source, kind, number] in records.iter().take(MAX_RECORDS) {
        let step = if gap & 0x80 == 0 { 1 } else { 50 };
        at += Duration::from_millis(u64::from(gap & 0x7f) * step);
        for index in 0..1_u64 << (2 * (kind & 3)) {
            // A flood comes from another source each time, a stream from one.
            let spread = if kind & 0x40 == 0 { index as u16 } else { 0 };
            let number = u64::from(number) + if kind & 0x40 == 0 { 0 } else { index };
            let bytes = datagram(number, kind);
            arrivals.push(Arrival { at, source: address(source, spread), bytes });
        }
    }
    arrivals
}

fn address(source: u8, spread: u16) -> SocketAddr {
    let port = 1024 + spread;
    match source {
        0xf0.. => (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, spread, source.into()), port).into(),
        _ => (Ipv4Addr::new(192, 0, 2 + (spread >> 8) as u8, source ^ spread as u8), port).into(),
    }
}

fn datagram(number: u64, kind: u8) -> Vec<u8> {
    let mode =
        [Mode::Normal, Mode::TradeOff, Mode::Dual, Mode::FullDuplex][usize::from(kind >> 2 & 3)];
    let length = [16, 76, 512, 1470][usize::from(kind >> 4 & 3)];
    let mut bytes = vec![0; length];
    if let Some(header) = bytes.get_mut(16..76) {
        let header_of = ClientHeader {
            mode,
            streams: 1,
            port: 5001,
            length: 1470,
            amount: Amount::Time(Duration::from_secs(3600)),
            rate_bps: 0,
            tos: 0,
            acknowledged: false,
            no_report: false,
        };
        header.copy_from_slice(&header_of.encode_datagram());
    }
    Datagram { number, last: kind & 0x80 != 0, sent: Duration::ZERO }.encode(&mut bytes);
    bytes
}
