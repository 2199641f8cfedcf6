//! Looks as lines of JSON: a head, then who and what was seen.

use crate::Watcher;
use host::{clock, sysctl};
use record::{ConnectionId, HostFacts, RECORDING_SCHEMA, RecordingHead, RecordingLine, Seen};
use serde_json::to_writer;
use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

/// Writes a recording, look by look: what is killed at any moment leaves all
/// looks but the last.
#[derive(Debug)]
pub struct Recorder<W: Write> {
    out: W,
    /// Connections told so far, as they were told.
    told: HashMap<String, ConnectionId>,
}

impl<W: Write> Recorder<W> {
    /// Begins one, of looks every `interval`.
    ///
    /// # Errors
    /// What writing answers.
    pub fn begin(mut out: W, interval: Duration) -> io::Result<Self> {
        let kernel = sysctl::read("kernel.osrelease").unwrap_or_default();
        let head = RecordingHead {
            schema: RECORDING_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_s: clock::unix_seconds(),
            interval_s: interval.as_secs_f64(),
            host: HostFacts {
                kernel: kernel.trim().to_owned(),
                cores: host::cpu::cores(),
                tcp_rmem: sysctl::read_triple("net.ipv4.tcp_rmem"),
                tcp_wmem: sysctl::read_triple("net.ipv4.tcp_wmem"),
                busy_before: None,
            },
        };
        to_writer(&mut out, &head)?;
        out.write_all(b"\n")?;
        out.flush()?;
        Ok(Recorder { out, told: HashMap::new() })
    }

    /// Writes the last look at every connection that carries payload.
    ///
    /// # Errors
    /// What writing answers.
    pub fn write(&mut self, watcher: &mut Watcher) -> io::Result<()> {
        for (who, before, now) in watcher.carrying() {
            self.one(who, before, now)?;
        }
        self.out.flush()
    }

    fn one(&mut self, who: ConnectionId, before: Option<Seen>, now: Seen) -> io::Result<()> {
        let told = self.told.get(&who.id);
        let first = told.is_none().then_some(before).flatten();
        let id = who.id.clone();
        if told != Some(&who) {
            self.told.insert(id.clone(), who.clone());
            self.line(&RecordingLine::Connection(who))?;
        }
        if let Some(seen) = first {
            // Where the connection stood when it began to carry payload.
            self.line(&RecordingLine::Look { id: id.clone(), seen })?;
        }
        self.line(&RecordingLine::Look { id, seen: now })
    }

    fn line(&mut self, line: &RecordingLine) -> io::Result<()> {
        to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }
}
