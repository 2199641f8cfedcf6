//! Whoever hears a server's events: the counters and the log.

use super::counters::Counters;
use super::lines::Log;
use crate::console::Console;
use host::clock;
use probe::{Observer, ServerEvent, ServerOutput, Started};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Lines that wait for whoever reads the log.
const WAITING: usize = 4096;
/// How long the last of them are waited for at the end.
const LAST: Duration = Duration::from_secs(1);

/// Hears events from the sessions' threads. A log whose reader stalls holds up
/// no test: a thread of its own writes it, and lines it has no room for are
/// left out and counted.
pub(super) struct Show {
    log: Mutex<Paper>,
    counters: Arc<Mutex<Counters>>,
    /// Closed once everything is written.
    written: Mutex<Receiver<()>>,
}

/// The log, and the way to who writes it.
struct Paper {
    log: Log,
    lines: SyncSender<String>,
    left_out: u64,
}

impl Show {
    pub(super) fn new(
        console: &Console,
        log: Log,
        counters: Arc<Mutex<Counters>>,
    ) -> std::io::Result<Self> {
        let (lines, waiting) = sync_channel(WAITING);
        let (end, written) = channel();
        let console = console.clone();
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write(console, &waiting, &end))?;
        Ok(Show {
            log: Mutex::new(Paper { log, lines, left_out: 0 }),
            counters,
            written: Mutex::new(written),
        })
    }

    /// The server has come to its end: what there is to say is written, unless
    /// nobody reads.
    pub(super) fn stopped(self) {
        let mut paper = self.log.into_inner().unwrap_or_else(PoisonError::into_inner);
        let lines = paper.log.stopped();
        paper.put(lines);
        drop(paper);
        let written = self.written.into_inner().unwrap_or_else(PoisonError::into_inner);
        let _ = written.recv_timeout(LAST);
    }
}

impl Observer for Show {
    fn event(&self, event: ServerEvent) {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).take(&event);
        let mut paper = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = paper.log.lines(&event, clock::now());
        paper.put(lines);
    }

    fn output(&self, session: u64) -> Option<ServerOutput> {
        let paper = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        paper.log.output(session).map(ServerOutput::Text)
    }
}

impl Paper {
    fn put(&mut self, lines: Vec<String>) {
        for line in lines {
            if self.left_out > 0 {
                let said = self.log.left_out(self.left_out);
                if matches!(self.lines.try_send(said), Err(TrySendError::Full(_))) {
                    self.left_out += 1;
                    continue;
                }
                self.left_out = 0;
            }
            if matches!(self.lines.try_send(line), Err(TrySendError::Full(_))) {
                self.left_out += 1;
            }
        }
    }
}

/// Writes lines until there are no more; `_end` is dropped then.
fn write(mut console: Console, lines: &Receiver<String>, _end: &Sender<()>) {
    for line in lines {
        console.log(&line);
    }
}

/// A test's protocol, and its direction as this end sees it.
pub(super) fn kind(started: &Started) -> (&'static str, &'static str) {
    let params = &started.params;
    let protocol = if params.udp { "udp" } else { "tcp" };
    let direction = match (params.bidirectional, params.reverse) {
        (true, _) => "both",
        (_, true) => "send",
        _ => "receive",
    };
    (protocol, direction)
}

#[cfg(test)]
mod tests {
    use super::samples::interval;
    use super::*;
    use crate::verbs::server::lines::Form;

    #[test]
    fn a_reader_that_stalls_costs_lines_and_no_time() {
        let (lines, waiting) = sync_channel(3);
        let log = Log::new(Form::Json, true);
        let mut paper = Paper { log, lines, left_out: 0 };
        let row = |paper: &mut Paper| {
            let lines = paper.log.lines(&interval(1, None, 1, false), clock::now());
            paper.put(lines);
        };
        for _ in 0..100 {
            row(&mut paper);
        }
        assert_eq!(waiting.try_iter().filter(|line| line.contains("interval")).count(), 3);
        row(&mut paper);
        let after: Vec<String> = waiting.try_iter().collect();
        assert!(after[0].contains("\"left_out\"") && after[0].contains(":97"), "{after:?}");
        assert_eq!(after.len(), 2);
    }
}

#[cfg(test)]
pub(super) mod samples {
    //! Events as a server tells them.

    use iperf3::{Params, Results, StreamResult};
    use probe::{Interval, ServerEvent, Started, StreamAddress, Summary};
    use units::{BitRate, ByteCount};

    pub(in crate::verbs::server) fn started(session: u64, udp: bool, sending: bool) -> ServerEvent {
        let (peer, local) = ("192.0.2.1:5".parse().unwrap(), "192.0.2.2:6".parse().unwrap());
        let params = Params { udp, tcp: !udp, reverse: sending, time: 2, ..Params::default() };
        let streams = [1, 3].map(|id| StreamAddress { id, sending, local, peer });
        let started = Started {
            peer,
            local,
            cookie: String::new(),
            unix_s: 0.0,
            streams: streams.to_vec(),
            params,
            control_mss: 1448,
            send_buffer: ByteCount::ZERO,
            receive_buffer: ByteCount::ZERO,
            notes: Vec::new(),
        };
        ServerEvent::Started { session, started: Box::new(started) }
    }

    pub(in crate::verbs::server) fn interval(
        session: u64,
        stream: Option<u32>,
        bytes: u64,
        omitted: bool,
    ) -> ServerEvent {
        let interval = Interval {
            stream,
            sending: true,
            from_s: 0.0,
            to_s: 1.0,
            bytes: ByteCount::from_bytes(bytes),
            rate: BitRate::from_bps(8 * bytes),
            arrival_rate: None,
            retransmits: None,
            cwnd: None,
            peer_window: None,
            rtt: None,
            rttvar: None,
            pmtu: None,
            datagrams: None,
            omitted,
        };
        ServerEvent::Interval { session, interval }
    }

    /// Two seconds, and streams 1 and 3 with what a client of bad manners might report.
    pub(in crate::verbs::server) fn finished(
        session: u64,
        received: u64,
        sent: u64,
    ) -> ServerEvent {
        let stream = |id, packets, errors, jitter| StreamResult {
            id,
            packets,
            errors,
            jitter,
            ..StreamResult::default()
        };
        let ours = Results {
            streams: vec![stream(1, 100, 2, 0.002), stream(3, 100, 3, 0.004)],
            ..Results::default()
        };
        let theirs = Results {
            streams: vec![stream(1, -7, i64::MIN, f64::NAN), stream(3, i64::MAX, i64::MAX, -1e308)],
            ..Results::default()
        };
        let summary = Summary {
            seconds: 2.0,
            sent: ByteCount::from_bytes(sent),
            received: ByteCount::from_bytes(received),
            ours,
            theirs,
        };
        let peer = "192.0.2.1:5".parse().unwrap();
        ServerEvent::Finished { session, peer, summary: Box::new(summary) }
    }
}
