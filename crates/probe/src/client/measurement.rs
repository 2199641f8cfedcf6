//! The record of a test, out of what both ends saw.

use super::ClientConfig;
use crate::{
    course::{FlowOutcome, Outcome},
    extra::{Extra, ExtraStream},
};
use host::{cpu, sysctl};
use iperf3::Results;
use record::{Direction, HostFacts, MEASUREMENT_SCHEMA, Measurement, Sample, Stream};

/// How a test ended.
pub(super) enum Ending {
    /// With the server's results.
    Whole(Box<Results>),
    /// By the user, without them.
    Interrupted,
}

/// What this end knows.
pub(super) struct Evidence {
    pub(super) started_unix_s: u64,
    pub(super) busy: Option<f64>,
    pub(super) outcome: Outcome,
    pub(super) ending: Ending,
    pub(super) notes: Vec<String>,
}

pub(super) fn assemble(config: &ClientConfig, evidence: Evidence) -> Measurement {
    let Evidence { started_unix_s, busy, outcome, ending, mut notes } = evidence;
    let sending = config.direction == Direction::Forward;
    let results = match ending {
        Ending::Whole(results) => Some(*results),
        Ending::Interrupted => {
            notes.push(format!(
                "interrupted after {:.1} s: the server's results are missing{}",
                outcome.seconds,
                if sending { ", received bytes are those it acknowledged" } else { "" }
            ));
            None
        }
    };
    let extra = results.as_ref().and_then(|results| Extra::read(results.longhaul.as_ref()?));
    let own_cpu = outcome.cpu;
    let peer_cpu = match (&extra, &results) {
        (Some(extra), _) => extra.cpu,
        // iperf3 tells the CPU of its whole process; with one stream that is one thread's.
        (None, Some(results)) if config.streams == 1 => Some(results.cpu_util_total / 100.0),
        _ => None,
    };
    let (sender_cpu, receiver_cpu) =
        if sending { (own_cpu, peer_cpu) } else { (peer_cpu, own_cpu) };
    let seconds = outcome.seconds;
    let join = Join { sending, seconds, results: results.as_ref(), extra: extra.as_ref() };
    let streams = outcome.streams.into_iter().map(|flow| join.stream(flow, &mut notes)).collect();
    if let Some(extra) = &extra {
        notes.extend(extra.notes.iter().cloned());
    } else if let Some(note) = join.congestion_note(config) {
        notes.push(note);
    }
    Measurement {
        schema: MEASUREMENT_SCHEMA.to_owned(),
        version: crate::VERSION.to_owned(),
        started_unix_s,
        spec: config.spec(),
        host: host_facts(busy),
        peer: extra
            .map_or_else(|| "iperf3".to_owned(), |extra| format!("longhaul {}", extra.version)),
        path: None,
        streams,
        sender_cpu,
        receiver_cpu,
        notes,
    }
}

/// The two ends' views of one test.
struct Join<'a> {
    sending: bool,
    seconds: f64,
    results: Option<&'a Results>,
    extra: Option<&'a Extra>,
}

impl Join<'_> {
    fn stream(&self, own: FlowOutcome, notes: &mut Vec<String>) -> Stream {
        let far = self.results.and_then(|results| results.stream(own.id));
        if far.is_none() && self.results.is_some() {
            notes.push(format!(
                "the server's results lack stream {}; its far side is what this end knows",
                own.id
            ));
        }
        let far_seconds = far.and_then(iperf3::StreamResult::seconds).unwrap_or(self.seconds);
        let far_extra = self.extra.and_then(|e| e.streams.iter().find(|s| s.id == own.id));
        let (far_sender, far_receiver) = far_extra.map(ExtraStream::samples).unwrap_or_default();
        let mut stream = Stream { id: own.id, ..Stream::default() };
        if self.sending {
            stream.congestion = own.congestion;
            stream.sent_bytes = own.bytes;
            stream.sent_seconds = self.seconds;
            stream.received_bytes = far.map_or_else(
                || acknowledged(&own.sender).min(own.bytes),
                iperf3::StreamResult::byte_count,
            );
            stream.received_seconds = far_seconds;
            stream.retransmits = own.retransmits;
            stream.sender = own.sender;
            stream.receiver = far_receiver;
        } else {
            stream.congestion = far_extra
                .and_then(|extra| extra.congestion.clone())
                .or_else(|| self.results?.congestion_used.clone())
                .map(|name| name.chars().filter(char::is_ascii_graphic).take(16).collect());
            // The sender cannot have sent less than arrived.
            stream.sent_bytes = far.map_or(own.bytes, iperf3::StreamResult::byte_count);
            stream.sent_seconds = far_seconds;
            stream.received_bytes = own.bytes;
            stream.received_seconds = self.seconds;
            stream.retransmits = far.and_then(|far| u64::try_from(far.retransmits).ok());
            stream.sender = far_sender;
            stream.receiver = own.receiver;
        }
        stream
    }

    /// A foreign server that lacks the congestion control asked for says so
    /// only in its own output.
    fn congestion_note(&self, config: &ClientConfig) -> Option<String> {
        let asked = config.congestion.as_ref().filter(|_| !self.sending)?;
        let used = self.results?.congestion_used.as_ref().filter(|used| *used != asked)?;
        let used: String = used.chars().filter(char::is_ascii_graphic).take(16).collect();
        Some(format!(
            "the server sent with congestion control {used} where {asked} was asked; \
             try there: modprobe tcp_{asked}"
        ))
    }
}

fn acknowledged(samples: &[Sample]) -> u64 {
    match (samples.first(), samples.last()) {
        (Some(first), Some(last)) => last.acked_bytes.saturating_sub(first.acked_bytes),
        _ => 0,
    }
}

fn host_facts(busy_before: Option<f64>) -> HostFacts {
    HostFacts {
        kernel: sysctl::read("kernel.osrelease").unwrap_or_else(|_| "unknown".to_owned()),
        cores: cpu::cores(),
        tcp_rmem: sysctl::read_triple("net.ipv4.tcp_rmem"),
        tcp_wmem: sysctl::read_triple("net.ipv4.tcp_wmem"),
        busy_before,
    }
}
