//! The end of a test at a server that receives: what is still in flight is read.

use crate::{
    sampler::Sampler,
    stream::{DATAGRAM_DRAIN, DATAGRAM_TIMEOUT, Stream},
    traffic::Traffic,
};
use host::{clock, stop::StopFlag};
use record::Protocol;
use std::{
    net::Shutdown,
    thread,
    time::{Duration, Instant},
};

/// Maximum time to read data that has already arrived when the client ends the test.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);
/// In a test that bytes end: maximum pause between bytes still in flight.
const STALL_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum time to wait for such bytes in all.
const MAX_DRAIN: Duration = Duration::from_secs(60);
/// The same where they are written to a file: a longhaul client waits 30 s for the results.
const FILE_DRAIN: Duration = Duration::from_secs(20);
/// Interval between looks at what has arrived.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Reads data that has already arrived when the client ends the test. The client
/// stops sending first, so this is little; in a test that bytes end, or whose data is
/// written to a file, waits for all of them as long as they keep arriving, at most until the
/// test's expiry or the server's stop. Returns when the last of them arrived: the wait for more
/// is no part of the test.
pub(super) fn drain(
    sampler: &Sampler<'_>,
    traffic: &Traffic,
    streams: &[Stream],
    (expiry, stop): (Instant, &StopFlag),
) -> Instant {
    let mut last = LastArrival::begin(clock::now(), sampler.received());
    let began = last.at;
    let mut quiet_after = |pause: Duration, until: Instant| {
        while !sampler.has_reached_limit()
            && traffic.exceeded().is_none()
            && !stop.is_raised()
            && clock::now() < (last.at + pause).min(until)
        {
            thread::sleep(DRAIN_POLL_INTERVAL);
            last.counted(clock::now(), sampler.received());
        }
    };
    let at_most = if traffic.keeps_file() { FILE_DRAIN } else { MAX_DRAIN };
    let until = expiry.min(began + at_most);
    if sampler.has_limit() || traffic.keeps_file() {
        quiet_after(STALL_TIMEOUT, until);
    } else if streams.iter().any(|stream| stream.protocol != Protocol::Tcp) {
        quiet_after(DATAGRAM_TIMEOUT, expiry.min(began + DATAGRAM_DRAIN));
    }
    if streams.iter().any(|stream| stream.protocol != Protocol::Tcp) {
        return last.at;
    }
    for stream in streams.iter().filter(|stream| !stream.sending) {
        // Buffered data is still read, then the end of the stream.
        let _ = stream.socket.shutdown(Shutdown::Read);
    }
    // A file is complete with its last byte only.
    let soon = clock::now() + DRAIN_TIMEOUT;
    traffic.wait_for_receivers(if traffic.keeps_file() { until.max(soon) } else { soon }, stop);
    // They end with the last byte.
    last.counted(clock::now(), sampler.received());
    last.at
}

/// When the number of bytes received was last seen to grow.
struct LastArrival {
    at: Instant,
    bytes: u64,
}

impl LastArrival {
    const fn begin(now: Instant, bytes: u64) -> Self {
        LastArrival { at: now, bytes }
    }

    fn counted(&mut self, now: Instant, bytes: u64) {
        if bytes > self.bytes {
            *self = LastArrival { at: now, bytes };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_ends_with_its_last_arrival() {
        let began = clock::now();
        let after = |ms| began + Duration::from_millis(ms);
        let mut last = LastArrival::begin(began, 1000);
        last.counted(after(2), 1000);
        assert_eq!(last.at, began, "not with the wait for more");
        last.counted(after(4), 1001);
        last.counted(after(200), 1001);
        assert_eq!(last.at, after(4));
    }
}
