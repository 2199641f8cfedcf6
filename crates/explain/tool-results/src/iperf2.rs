//! What iperf 2's text and CSV have in common: flows, and the tests that they are of.

use crate::transfer::{self, MAX_STREAMS, Transfer};
use record::{Protocol, Stream, TestSpec, Unavailable};
use units::BitRate;

/// Lines that are read, flows of a file, and tests.
pub(crate) const MAX_LINES: usize = 500_000;
pub(crate) const MAX_FLOWS: usize = 16_384;
pub(crate) const MAX_TESTS: usize = 64;

/// iperf 2's port.
pub(crate) const PORT: u16 = 5001;

/// The flows of each test: flows that follow each other, as with `-r` or in a server's log, are no
/// streams of one test. `is_later` is given a flow and how many tests there are before it.
pub(crate) fn tests<F>(flows: Vec<F>, mut is_later: impl FnMut(&F, usize) -> bool) -> Vec<Vec<F>> {
    let mut tests: Vec<Vec<F>> = Vec::new();
    for flow in flows {
        let count = tests.len();
        let is_later = is_later(&flow, count);
        match tests.last_mut() {
            Some(test) if !is_later && test.len() < MAX_STREAMS => test.push(flow),
            Some(_) if !is_later || count == MAX_TESTS => {}
            _ => tests.push(vec![flow]),
        }
    }
    tests
}

/// A transfer without streams.
pub(crate) fn transfer() -> Transfer {
    Transfer {
        tool: "iperf 2".to_owned(),
        unavailable: vec![Unavailable::CongestionControl, Unavailable::RequestedRate],
        ..Transfer::default()
    }
}

/// What was asked for, as far as the streams tell.
pub(crate) fn spec(streams: &[Stream], port: u16, is_udp: bool) -> TestSpec {
    let (direction, count) = transfer::direction(streams);
    TestSpec {
        // longhaul's own server has iperf3's port.
        port: if port == PORT { 0 } else { port },
        protocol: if is_udp { Protocol::Udp } else { Protocol::Tcp },
        direction,
        seconds: streams.iter().map(|one| one.received_seconds).fold(0.0, f64::max),
        streams: count,
        rate_bps: streams.first().filter(|_| is_udp).and_then(sent_rate),
        ..TestSpec::default()
    }
}

/// The rate of a stream's datagrams, sent or lost.
fn sent_rate(one: &Stream) -> Option<BitRate> {
    let rate = || BitRate::from_bps_f64(one.sent_bytes as f64 * 8.0 / one.sent_seconds);
    (one.sent_seconds > 0.0).then(rate)
}
