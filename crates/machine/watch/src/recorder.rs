//! Writes samples as lines of JSON: a header, then connections and their samples.

use crate::Watcher;
use host::clock;
use record::{ConnectionId, ConnectionSample, RECORDING_SCHEMA, RecordingHead, RecordingLine};
use serde_json::to_writer;
use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;
use units::ByteCount;

/// Writes a recording, flushed at each poll: a process killed at any moment loses
/// at most the last one.
#[derive(Debug)]
pub struct Recorder<W: Write> {
    out: W,
    /// The running connections, as last written.
    written: HashMap<String, ConnectionId>,
    /// The lines of the current poll.
    buffer: Vec<u8>,
    /// Bytes that may still be written.
    remaining: u64,
}

/// Whether a poll was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// All of it.
    Complete,
    /// Nothing: the file would have exceeded its limit.
    LimitReached,
}

impl<W: Write> Recorder<W> {
    /// Starts a recording with one poll every `interval` and at most `limit` bytes.
    ///
    /// # Errors
    /// From writing.
    pub fn start(mut out: W, interval: Duration, limit: ByteCount) -> io::Result<Self> {
        let head = RecordingHead {
            schema: RECORDING_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_s: clock::unix_seconds(),
            interval_s: interval.as_secs_f64(),
            host: host::facts::read(None),
        };
        let mut line = serde_json::to_vec(&head)?;
        line.push(b'\n');
        out.write_all(&line)?;
        out.flush()?;
        let remaining = limit.bytes().saturating_sub(line.len() as u64);
        Ok(Recorder { out, written: HashMap::new(), buffer: Vec::new(), remaining })
    }

    /// Writes the latest sample of every connection that carries payload, or nothing
    /// if that would exceed the limit.
    ///
    /// # Errors
    /// From writing.
    pub fn write(&mut self, watcher: &mut Watcher) -> io::Result<Written> {
        // Ended connections do not come back.
        self.written.retain(|id, _| watcher.is_running(id));
        self.buffer.clear();
        for (who, before, now) in watcher.active() {
            self.sample(who, before, now)?;
        }
        self.flush()
    }

    fn flush(&mut self) -> io::Result<Written> {
        let Some(remaining) = self.remaining.checked_sub(self.buffer.len() as u64) else {
            // A later, shorter poll would leave a gap in the recording.
            self.remaining = 0;
            return Ok(Written::LimitReached);
        };
        self.remaining = remaining;
        self.out.write_all(&self.buffer)?;
        self.out.flush()?;
        Ok(Written::Complete)
    }

    fn sample(
        &mut self,
        who: ConnectionId,
        before: Option<ConnectionSample>,
        now: ConnectionSample,
    ) -> io::Result<()> {
        let known = self.written.get(&who.id);
        let first = known.is_none().then_some(before).flatten();
        let id = who.id.clone();
        if known != Some(&who) {
            self.written.insert(id.clone(), who.clone());
            self.line(&RecordingLine::Connection(who))?;
        }
        if let Some(seen) = first {
            // Its counters before it carried payload.
            self.line(&RecordingLine::Sample { id: id.clone(), seen })?;
        }
        self.line(&RecordingLine::Sample { id, seen: now })
    }

    fn line(&mut self, line: &RecordingLine) -> io::Result<()> {
        to_writer(&mut self.buffer, line)?;
        self.buffer.push(b'\n');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Sample;

    fn record_one(recorder: &mut Recorder<&mut Vec<u8>>, t_s: f64) -> Written {
        let who = ConnectionId {
            id: "1".to_owned(),
            local: "10.0.0.1:5000".to_owned(),
            remote: "10.0.0.2:80".to_owned(),
            pid: None,
            program: None,
            uid: 0,
            congestion: None,
        };
        let seen = ConnectionSample {
            sent: Sample { t_s, ..Sample::default() },
            ..ConnectionSample::default()
        };
        recorder.buffer.clear();
        recorder.sample(who, None, seen).unwrap();
        recorder.flush().unwrap()
    }

    #[test]
    fn a_recording_ends_at_its_limit_with_whole_lines() {
        let mut out = Vec::new();
        let limit = ByteCount::from_bytes(20_000);
        let mut recorder = Recorder::start(&mut out, Duration::from_secs(1), limit).unwrap();
        let written = (0..1000u32).take_while(|number| {
            record_one(&mut recorder, f64::from(*number)) == Written::Complete
        });
        let written = written.count();
        assert_eq!(record_one(&mut recorder, 2000.0), Written::LimitReached);
        drop(recorder);
        assert!(out.len() <= 20_000 && out.ends_with(b"\n"), "{}", out.len());
        // The header, the connection, and its samples.
        let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        assert_eq!(lines.count(), written + 2);
    }
}
