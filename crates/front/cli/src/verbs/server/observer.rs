//! Receives the server's events and passes them to the counters and the log.

use super::counters::Counters;
use super::lines::Log;
use crate::console::Console;
use host::clock;
use host::lock::{into_inner, lock};
use perf::{Observer, ServerEvent, ServerOutput, Started};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Capacity of the queue between the sessions and the log writer, in lines.
const QUEUE: usize = 4096;
/// Timeout for writing the queued lines at the end.
const FLUSH: Duration = Duration::from_secs(1);

/// Receives events from the sessions' threads. A log reader that stalls delays no
/// test: a separate thread writes the log, and lines that exceed its queue are
/// dropped and counted.
pub(super) struct Show {
    log: Mutex<LogQueue>,
    counters: Arc<Mutex<Counters>>,
    /// Closed once everything is written.
    written: Mutex<Receiver<()>>,
}

/// The log and the queue of its writer.
struct LogQueue {
    log: Log,
    lines: SyncSender<String>,
    dropped: u64,
}

impl Show {
    pub(super) fn new(
        console: &Console,
        log: Log,
        counters: Arc<Mutex<Counters>>,
    ) -> std::io::Result<Self> {
        let (lines, waiting) = sync_channel(QUEUE);
        let (end, written) = channel();
        let console = console.clone();
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write(console, &waiting, &end))?;
        Ok(Show {
            log: Mutex::new(LogQueue { log, lines, dropped: 0 }),
            counters,
            written: Mutex::new(written),
        })
    }

    /// Writes the last lines, unless the log's reader has stalled.
    pub(super) fn stopped(self) {
        let mut queue = into_inner(self.log);
        let lines = queue.log.stopped();
        queue.put(lines);
        drop(queue);
        let written = into_inner(self.written);
        let _ = written.recv_timeout(FLUSH);
    }
}

impl Show {
    /// Logs what happened to a copy.
    pub(super) fn copy(&self, event: &::copy::Event) {
        let mut queue = lock(&self.log);
        let lines = queue.log.copy_lines(event, clock::now());
        queue.put(lines);
    }
}

impl Observer for Show {
    fn event(&self, event: ServerEvent) {
        lock(&self.counters).take(&event);
        let mut queue = lock(&self.log);
        let lines = queue.log.lines(&event, clock::now());
        queue.put(lines);
    }

    fn output(&self, session: u64) -> Option<ServerOutput> {
        let queue = lock(&self.log);
        queue.log.output(session).map(ServerOutput::Text)
    }
}

impl LogQueue {
    fn put(&mut self, lines: Vec<String>) {
        for line in lines {
            if self.dropped > 0 {
                let notice = self.log.dropped(self.dropped);
                if matches!(self.lines.try_send(notice), Err(TrySendError::Full(_))) {
                    self.dropped += 1;
                    continue;
                }
                self.dropped = 0;
            }
            if matches!(self.lines.try_send(line), Err(TrySendError::Full(_))) {
                self.dropped += 1;
            }
        }
    }
}

/// Writes lines until the queue is closed, then drops `_end`.
fn write(mut console: Console, lines: &Receiver<String>, _end: &Sender<()>) {
    for line in lines {
        console.log(&line);
    }
}

/// A test's protocol, and its direction as seen from the server.
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
    fn a_stalled_reader_costs_lines_but_no_time() {
        let (lines, waiting) = sync_channel(3);
        let log = Log::new(Form::Json, true);
        let mut queue = LogQueue { log, lines, dropped: 0 };
        let row = |queue: &mut LogQueue| {
            let lines = queue.log.lines(&interval(1, None, 1, false), clock::now());
            queue.put(lines);
        };
        for _ in 0..100 {
            row(&mut queue);
        }
        assert_eq!(waiting.try_iter().filter(|line| line.contains("interval")).count(), 3);
        row(&mut queue);
        let after: Vec<String> = waiting.try_iter().collect();
        assert!(after[0].contains("\"left_out\"") && after[0].contains(":97"), "{after:?}");
        assert_eq!(after.len(), 2);
    }
}

#[cfg(test)]
pub(super) mod samples {
    //! Sample events.

    use iperf3_proto::{Params, Results, StreamResult};
    use perf::{Interval, ServerEvent, Started, StreamAddress, Summary};
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
            to_s: 1.0,
            bytes: ByteCount::from_bytes(bytes),
            rate: BitRate::from_bps(8 * bytes),
            omitted,
            ..Interval::default()
        };
        ServerEvent::Interval { session, interval }
    }

    /// Two seconds; streams 1 and 3 with results as a hostile client might report them.
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
