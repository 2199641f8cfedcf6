//! Whoever hears a server's events: the log and the counters.

use super::counters::Counters;
use super::lines::Log;
use crate::console::Console;
use host::clock;
use probe::{Observer, ServerEvent, Started};
use std::sync::{Arc, Mutex, PoisonError};

/// Sessions tell from threads of their own.
pub(super) struct Show<'a> {
    pub(super) console: Mutex<(&'a mut Console, Log)>,
    pub(super) counters: Arc<Mutex<Counters>>,
}

impl Observer for Show<'_> {
    fn event(&self, event: ServerEvent) {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).take(&event);
        let mut both = self.console.lock().unwrap_or_else(PoisonError::into_inner);
        let (console, log) = &mut *both;
        for line in log.lines(&event, clock::now()) {
            console.log(&line);
        }
    }
}

impl Show<'_> {
    /// The server has come to its end.
    pub(super) fn stopped(&self) {
        let mut both = self.console.lock().unwrap_or_else(PoisonError::into_inner);
        let (console, log) = &mut *both;
        for line in log.stopped() {
            console.log(&line);
        }
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
