//! How many bytes wake a thread that reads TCP: `SO_RCVLOWAT` (socket(7)).
//!
//! Waking an idle core for every super-packet costs the sender more than the copy, where both
//! are on one machine or an interrupt's core does the waking. Measured over a veth pair, one
//! stream: 21 Gbit/s with a mark of one byte, 26 with 128 KiB. With several blocks in a call of the
//! sender, the mark of a lone stream is as long as such a call.

use crate::stream::SOCKET_TIMEOUT;
use host::socket;
use socket2::Socket;
use std::time::{Duration, Instant};

/// The mark is at most this share of the socket's buffer: the window stays open while data
/// waits, and what waits is not taken for a slow receiving application.
const OF_BUFFER: usize = 8;

/// The mark where a longer read is not filled in time.
const USUAL_MARK: usize = 128 * 1024;

/// A lower mark saves nothing.
const MIN_MARK: usize = 16 * 1024;

/// Time within which a mark must be reached at the present rate, so that bytes are counted in
/// the interval in which they arrived.
const FILLED_WITHIN: Duration = Duration::from_millis(2);

/// Timeout of a read with a mark in a test that bytes end: the last of them may be less than the
/// mark, and the test waits for them.
const LAST_BYTES_TIMEOUT: Duration = Duration::from_millis(2);

/// Time over which the rate is measured.
const PERIOD: Duration = Duration::from_millis(10);

/// The mark of one socket.
#[derive(Debug)]
pub(super) struct LowWaterMark {
    /// Bytes; 1 is the kernel's own.
    mark: usize,
    /// Bytes of a read: no mark is higher.
    read: usize,
    /// Timeout of a read while there is a mark.
    timeout: Duration,
    /// The present period of measuring, and what was read in it.
    began: Instant,
    bytes: usize,
}

impl LowWaterMark {
    /// Of reads of so many bytes, in a test that bytes end or not.
    pub(super) const fn new(read: usize, has_limit: bool, now: Instant) -> Self {
        let timeout = if has_limit { LAST_BYTES_TIMEOUT } else { SOCKET_TIMEOUT };
        LowWaterMark { mark: 1, read, timeout, began: now, bytes: 0 }
    }

    /// A read returned so many bytes, or none within the socket's timeout.
    pub(super) fn read(&mut self, socket: &Socket, bytes: usize, now: Instant) {
        let buffer = || socket.recv_buffer_size().unwrap_or(0);
        if let Some(mark) = self.next(bytes, now, buffer) {
            // No mark without the timeout, which shows that it is not reached. A kernel that refuses
            // one wakes the thread for every packet, as before.
            let _ = socket
                .set_read_timeout(Some(self.timeout()))
                .and_then(|()| socket::set_receive_low_water_mark(socket, mark));
        }
    }

    /// Timeout of the next read. Without a mark the first byte ends it, so it need not be short.
    const fn timeout(&self) -> Duration {
        if self.mark > 1 { self.timeout } else { SOCKET_TIMEOUT }
    }

    /// The mark, if it changes.
    fn next(
        &mut self,
        bytes: usize,
        now: Instant,
        buffer: impl FnOnce() -> usize,
    ) -> Option<usize> {
        self.bytes += bytes;
        let elapsed = now.saturating_duration_since(self.began);
        // Less than the mark: the timeout ended the read.
        let is_slow = bytes < self.mark;
        if elapsed < PERIOD && !is_slow {
            return None;
        }
        let within = FILLED_WITHIN.as_secs_f64() / elapsed.as_secs_f64().max(1e-6);
        let filled = self.bytes as f64 * within;
        let most = buffer() / OF_BUFFER;
        let is_filled = |mark: &usize| *mark >= MIN_MARK && filled >= *mark as f64;
        let marks = [self.read, USUAL_MARK].map(|mark| mark.min(self.read).min(most));
        let mark = marks.into_iter().find(is_filled).filter(|_| !is_slow).unwrap_or(1);
        (self.began, self.bytes) = (now, 0);
        let changes = mark != self.mark;
        self.mark = mark;
        changes.then_some(mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::clock;

    const READ: usize = 128 * 1024;

    fn marks(reads: &[(usize, u64)], buffer: usize) -> Vec<usize> {
        marks_of(READ, reads, buffer)
    }

    /// The marks that are set while reads of `bytes` come every `micros`.
    fn marks_of(read: usize, reads: &[(usize, u64)], buffer: usize) -> Vec<usize> {
        let mut now = clock::now();
        let mut mark = LowWaterMark::new(read, false, now);
        let step = |&(bytes, micros): &(usize, u64)| {
            now += Duration::from_micros(micros);
            mark.next(bytes, now, || buffer)
        };
        reads.iter().filter_map(step).collect()
    }

    #[test]
    fn a_fast_stream_has_a_high_mark_until_it_is_slow() {
        let mut reads = vec![(READ, 100); 200];
        assert_eq!(marks(&reads, 6 << 20), [READ]);
        reads.extend([(40_000, 50_000), (1448, 1000)]);
        assert_eq!(marks(&reads, 6 << 20), [READ, 1], "a read that timed out");
        reads.truncate(200);
        reads.extend(vec![(READ, 4000); 4]);
        assert_eq!(marks(&reads, 6 << 20), [READ, 1], "a rate that fell");
    }

    #[test]
    fn small_buffers_and_low_rates_have_none() {
        assert_eq!(marks(&vec![(65_536, 50); 400], 512 << 10), [64 << 10]);
        assert!(marks(&vec![(16_384, 50); 400], 64 << 10).is_empty());
        assert!(marks(&vec![(1448, 100); 400], 6 << 20).is_empty());
    }

    #[test]
    fn a_long_read_has_a_mark_of_what_is_filled_in_time() {
        let long = 4 * READ;
        assert_eq!(marks_of(long, &vec![(long, 400); 100], 32 << 20), [long]);
        assert_eq!(marks_of(long, &vec![(READ, 1000); 100], 32 << 20), [READ]);
        assert_eq!(marks_of(long, &vec![(long, 400); 100], 2 << 20), [2 * READ]);
    }

    #[test]
    fn reads_with_a_mark_are_short_where_bytes_end_the_test() {
        for (has_limit, marked) in [(false, SOCKET_TIMEOUT), (true, LAST_BYTES_TIMEOUT)] {
            let mut now = clock::now();
            let mut mark = LowWaterMark::new(READ, has_limit, now);
            assert_eq!(mark.timeout(), SOCKET_TIMEOUT);
            for _ in 0..200 {
                now += Duration::from_micros(100);
                mark.next(READ, now, || 6 << 20);
            }
            assert_eq!((mark.mark, mark.timeout()), (READ, marked));
            mark.next(1448, now, || 6 << 20);
            assert_eq!((mark.mark, mark.timeout()), (1, SOCKET_TIMEOUT));
        }
    }
}
