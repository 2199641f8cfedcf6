//! Assembles the record of a test from both ends' results.

use super::ClientConfig;
use crate::{
    extra::{Extra, ExtraStream},
    plan::Plan,
    sampler::{Outcome, StreamOutcome, ThreadCpu},
};
use iperf3_proto::{Results, StreamResult, cookie::COOKIE_LEN};
use record::{
    Caveat, Datagrams, Direction, MEASUREMENT_SCHEMA, Measurement, Protocol, ReceiverSample,
    Sample, SegmentSizes, Stream,
};
use units::ByteCount;

/// How a test ended.
pub(super) enum Ending {
    /// Completed, with the server's results.
    Completed(Box<ServerReport>),
    /// Interrupted by the user, without them.
    Interrupted,
    /// Failed, without them: why, as one line.
    Failed(String),
}

/// What the server reported.
pub(super) struct ServerReport {
    pub(super) results: Results,
    /// A longhaul server's additions.
    pub(super) extra: Option<Extra>,
    /// Bytes of the server's output that were truncated.
    pub(super) cut: u64,
}

/// Results of this end.
pub(super) struct Evidence {
    pub(super) started_unix_s: u64,
    pub(super) busy: Option<f64>,
    pub(super) outcome: Outcome,
    pub(super) ending: Ending,
    pub(super) notes: Vec<String>,
}

/// The record, and the server's results if there are any.
pub(super) fn assemble(
    config: &ClientConfig,
    plan: &Plan,
    port: u16,
    evidence: Evidence,
) -> (Measurement, Option<Results>) {
    let Evidence { started_unix_s, busy, outcome, ending, mut notes } = evidence;
    let (results, mut extra) = match ending {
        Ending::Completed(report) => {
            if report.cut > 0 {
                notes.push(format!(
                    "the server's output is truncated by {}",
                    units::ByteCount::from_bytes(report.cut).decimal()
                ));
            }
            (Some(report.results), report.extra)
        }
        ended => {
            let sent = config.sends() && config.transport.protocol() != Protocol::Udp;
            let known = if sent { ", received bytes are those acknowledged" } else { "" };
            let when = outcome.seconds;
            let why = match ended {
                Ending::Failed(why) => format!("; {why}"),
                _ => String::new(),
            };
            let how = if why.is_empty() { "interrupted" } else { "ended" };
            notes.push(format!(
                "{how} after {when:.1} s: the server's results are missing{known}{why}"
            ));
            (None, None)
        }
    };
    let far = |used: Option<f64>, waited: Option<f64>| {
        Some(ThreadCpu { used: used?, waited: waited.unwrap_or(0.0) })
    };
    let (far_sends, far_receives) = match (&extra, &results) {
        (Some(extra), _) => (
            far(extra.cpu.sender, extra.cpu.sender_wait),
            far(extra.cpu.receiver, extra.cpu.receiver_wait),
        ),
        // iperf3 reports the CPU of its process; with one stream that is one thread's.
        (None, Some(results)) if config.streams == 1 && config.direction != Direction::Both => {
            let cpu = far(Some(results.cpu_util_total / 100.0), None);
            if config.sends() { (None, cpu) } else { (cpu, None) }
        }
        _ => (None, None),
    };
    let sender_cpu = ThreadCpu::busiest(outcome.sender_cpu.into_iter().chain(far_sends));
    let receiver_cpu = ThreadCpu::busiest(outcome.receiver_cpu.into_iter().chain(far_receives));
    let seconds = outcome.seconds;
    let samples: Vec<_> = outcome
        .streams
        .iter()
        .map(|stream| extra.as_mut().map(|e| e.take_samples(stream.id)).unwrap_or_default())
        .collect();
    let join = Join { plan, seconds, results: results.as_ref(), extra: extra.as_ref() };
    let streams = outcome.streams.into_iter().zip(samples);
    let streams = streams.map(|(stream, far)| join.stream(stream, far, &mut notes)).collect();
    if let Some(extra) = &extra {
        notes.extend(extra.notes.iter().cloned());
    } else if let Some(note) = join.congestion_note(config) {
        notes.push(note);
    }
    let mut measurement = Measurement {
        schema: MEASUREMENT_SCHEMA.to_owned(),
        version: crate::VERSION.to_owned(),
        started_unix_s,
        spec: config.spec(port),
        host: host::facts::read(busy),
        peer: extra
            .map_or_else(|| "iperf3".to_owned(), |extra| format!("longhaul {}", extra.version)),
        path: None,
        streams,
        sender_cpu: sender_cpu.map(|cpu| cpu.used),
        sender_core_wait: sender_cpu.map(|cpu| cpu.waited),
        receiver_cpu: receiver_cpu.map(|cpu| cpu.used),
        receiver_core_wait: receiver_cpu.map(|cpu| cpu.waited),
        notes,
        latency: None,
        decided: None,
        tool: None,
    };
    measurement.notes.extend(unsent_note(&measurement));
    measurement.notes.extend(unseen_note(&measurement));
    (measurement, results)
}

/// Results of both ends of one test.
struct Join<'a> {
    plan: &'a Plan,
    seconds: f64,
    results: Option<&'a Results>,
    extra: Option<&'a Extra>,
}

impl Join<'_> {
    fn stream(
        &self,
        own: StreamOutcome,
        (far_sender, far_receiver): (Vec<Sample>, Vec<ReceiverSample>),
        notes: &mut Vec<String>,
    ) -> Stream {
        let far = self.results.and_then(|results| results.stream(own.id));
        if far.is_none() && self.results.is_some() {
            notes.push(format!(
                "the server's results lack stream {}; this end's figures are used for both ends",
                own.id
            ));
        }
        let far_seconds = far.and_then(StreamResult::seconds).unwrap_or(self.seconds);
        let far_extra = self.extra.and_then(|e| e.streams.iter().find(|s| s.id == own.id));
        let mut stream = Stream { id: own.id, reverse: !own.sending, ..Stream::default() };
        stream.datagrams = self.datagrams(&own, far, far_extra);
        let far_train =
            far_extra.filter(|_| self.plan.train.is_some()).map(|extra| extra.train.clone());
        stream.train = if own.sending { far_train.unwrap_or_default() } else { own.train };
        if own.sending {
            stream.unsent_limit_bytes = own.unsent_limit.map(ByteCount::bytes);
            stream.congestion = own.congestion;
            stream.sent_bytes = own.bytes;
            stream.sent_seconds = self.seconds;
            stream.received_bytes = far
                .map_or_else(|| acknowledged(&own.sender).min(own.bytes), StreamResult::byte_count);
            stream.received_seconds = far_seconds;
            stream.retransmits = own.retransmits;
            stream.sender = own.sender;
            stream.receiver = far_receiver;
            if self.plan.protocol == Protocol::Tcp {
                stream.segment_sizes = SegmentSizes::of(&stream.sender, COOKIE_LEN as u32);
            }
        } else {
            stream.unsent_limit_bytes = far_extra
                .and_then(|extra| extra.unsent_limit_bytes)
                .filter(|_| self.plan.limits_unsent);
            let tcp = stream.datagrams.is_none();
            stream.congestion = far_extra
                .and_then(|extra| extra.congestion.clone())
                .or_else(|| self.results?.congestion_used.clone())
                .map(|name| name.chars().filter(char::is_ascii_graphic).take(16).collect())
                .filter(|_| tcp);
            // At least what arrived was sent.
            stream.sent_bytes = far.map_or(own.bytes, StreamResult::byte_count);
            stream.sent_seconds = far_seconds;
            stream.received_bytes = own.bytes;
            stream.received_seconds = self.seconds;
            stream.retransmits = far.and_then(|far| u64::try_from(far.retransmits).ok());
            stream.sender = far_sender;
            if self.plan.protocol == Protocol::Tcp {
                stream.segment_sizes = SegmentSizes::of(&stream.sender, 0);
            }
            stream.receiver = own.receiver;
        }
        stream.caveats = self.caveats(&stream);
        stream
    }

    /// What its figures do not show.
    fn caveats(&self, stream: &Stream) -> Vec<Caveat> {
        if self.plan.protocol == Protocol::Udp {
            return Vec::new();
        }
        let mut caveats = Vec::new();
        if !self.plan.omit.is_zero() {
            // The kernel's counter is that of the whole connection.
            let retransmits = stream.sender.first().map(|first| first.retransmits);
            let seconds = self.plan.omit.as_secs_f64();
            caveats.push(Caveat::OmittedSeconds { seconds, retransmits });
        }
        let of_sender = stream.sender.iter().filter_map(|sample| sample.min_rtt_us);
        let of_receiver = stream.receiver.iter().filter_map(|sample| sample.min_rtt_us);
        let min_rtt = of_sender.chain(of_receiver).min().map(|us| f64::from(us) / 1e6);
        if self.plan.omit.is_zero() && min_rtt.is_some_and(|rtt| stream.received_seconds <= rtt) {
            caveats.push(Caveat::WithinOneRoundTrip);
        }
        caveats
    }

    /// The receiver's datagram counts.
    fn datagrams(
        &self,
        own: &StreamOutcome,
        far: Option<&StreamResult>,
        far_extra: Option<&ExtraStream>,
    ) -> Option<Datagrams> {
        let counts = own.datagrams.as_ref()?;
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        if !own.sending {
            let mut datagrams = counts.received(self.plan.block);
            datagrams.sent = far.map(|far| count(far.packets));
            datagrams.count_unreceived();
            // The far end's route is unknown: most have the MTU of the way there.
            datagrams.fragmentation = counts.fragmentation;
            return Some(datagrams);
        }
        let reported = far_extra.and_then(|extra| extra.datagrams.clone());
        let mut datagrams = reported.unwrap_or_else(|| {
            let (packets, lost) = far.map_or((0, 0), |far| (count(far.packets), count(far.errors)));
            Datagrams {
                received: packets.saturating_sub(lost),
                lost,
                jitter: units::Rtt::from_secs(far.map_or(0.0, |far| far.jitter)),
                ..Datagrams::default()
            }
        });
        datagrams.length_bytes = u32::try_from(self.plan.block).unwrap_or(u32::MAX);
        datagrams.sent = Some(counts.sent);
        datagrams.fragmentation = counts.fragmentation;
        if far.is_some() {
            datagrams.count_unreceived();
        }
        Some(datagrams)
    }

    /// An iperf3 server that lacks the requested congestion control reports it only
    /// in its own output.
    fn congestion_note(&self, config: &ClientConfig) -> Option<String> {
        let asked = config.congestion.as_ref().filter(|_| !config.sends())?;
        let used = self.results?.congestion_used.as_ref().filter(|used| *used != asked)?;
        let used: String = used.chars().filter(char::is_ascii_graphic).take(16).collect();
        Some(format!(
            "the server used congestion control {used} instead of {asked}; \
             run there: modprobe tcp_{asked}"
        ))
    }
}

/// How much unsent data the test allowed.
fn unsent_note(m: &Measurement) -> Option<String> {
    let limit = m.unsent_limit()?;
    let sender = m.streams.iter().flat_map(|stream| &stream.sender).map(|s| s.min_rtt_us);
    let receiver = m.streams.iter().flat_map(|stream| &stream.receiver).map(|s| s.min_rtt_us);
    let least = sender.chain(receiver).flatten().min();
    let rtt = least.map_or(String::new(), |us| {
        format!(", as the minimum RTT is {}", units::Rtt::from_micros(us.into()))
    });
    Some(format!(
        "unsent data limited to {limit} by the test{rtt}; autotuning leaves it to the kernel"
    ))
}

/// Where the system refuses `TCP_INFO` of this end, which sends.
fn unseen_note(m: &Measurement) -> Option<String> {
    let is_unseen = |stream: &Stream| !stream.reverse && stream.sender.is_empty();
    let is_tcp = m.spec.protocol == Protocol::Tcp;
    (is_tcp && m.streams.iter().any(is_unseen)).then(|| {
        "no TCP_INFO of this end: the system refuses it (a container's seccomp filter?), and any \
         limit is inferred from the receiver alone"
            .to_owned()
    })
}

fn acknowledged(samples: &[Sample]) -> u64 {
    match (samples.first(), samples.last()) {
        (Some(first), Some(last)) => last.acked_bytes.saturating_sub(first.acked_bytes),
        _ => 0,
    }
}
