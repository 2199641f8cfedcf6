//! A receiving application that is slower than the network: it writes what it reads from
//! its sockets to a pipe (`-F`), and the pipe is read at a rate.

use super::TestClock;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Time at the rate of one read of the pipe.
const PIECE: Duration = Duration::from_millis(5);

/// A pipe holds 64 KiB.
const MAX: usize = 64 * 1024;

pub(super) struct SlowSink {
    reader: PipeReader,
    /// Held until the end of the test, whose own descriptor comes and goes.
    writer: PipeWriter,
    rate: BitRate,
}

impl SlowSink {
    pub(super) fn new(rate: BitRate) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(SlowSink { reader, writer, rate })
    }

    /// What the test is to write to.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.writer.as_raw_fd()).into()
    }

    /// Both ends: reading ends when the writing end is dropped.
    pub(super) fn into_ends(self) -> (PipeWriter, Drain) {
        (self.writer, Drain { reader: self.reader, rate: self.rate })
    }
}

pub(super) struct Drain {
    reader: PipeReader,
    rate: BitRate,
}

impl Drain {
    /// Reads at the rate until the test has ended, then everything.
    pub(super) fn run(mut self, seconds: f64, clock: &TestClock) {
        let piece = usize::try_from(self.rate.bytes_in(PIECE).bytes()).unwrap_or(MAX);
        let mut buffer = vec![0; piece.clamp(1448, MAX)];
        let end = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let mut passed = 0;
        loop {
            match self.reader.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(read) => passed += read as u64,
            }
            // Without an elapsed time the test has not begun, or has ended.
            let Some(now) = clock.elapsed().filter(|now| *now < end) else { continue };
            let due = self.rate.time_for(ByteCount::from_bytes(passed)).min(end);
            thread::sleep(due.saturating_sub(now));
        }
    }
}
