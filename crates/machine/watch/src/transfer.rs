//! Turns samples of one connection into a measurement and explains it.

use model::statistics;
use record::{
    ConnectionId, ConnectionSample, Direction, Finding, Measurement, Protocol, RecordingHead,
    Stream, TestSpec,
};
use std::net::SocketAddr;

/// The traffic of one watched connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// A measurement of one stream, from the first sample on, in the direction that
    /// carried more.
    pub measurement: Measurement,
    /// What limited it.
    pub finding: Finding,
}

/// The traffic of a connection from the first to the last sample; `None` for fewer
/// than two samples, or without payload. `head` is that of their recording.
pub fn transfer<'a>(
    who: &ConnectionId,
    samples: impl IntoIterator<Item = &'a ConnectionSample>,
    head: Option<&RecordingHead>,
) -> Option<Transfer> {
    let samples: Vec<&ConnectionSample> = samples.into_iter().collect();
    let (first, last) = (*samples.first()?, *samples.last()?);
    let seconds = last.sent.t_s - first.sent.t_s;
    let acked = last.sent.acked_bytes.saturating_sub(first.sent.acked_bytes);
    let received = last.received.received_bytes.saturating_sub(first.received.received_bytes);
    if seconds.is_nan() || seconds <= 0.0 || acked.max(received) == 0 {
        return None;
    }
    let sends = acked >= received;
    let has_timers = samples.iter().all(|sample| sample.has_timers);
    let stream = Stream {
        id: 1,
        reverse: !sends,
        congestion: who.congestion.clone(),
        ..if sends { sent(&samples)? } else { received_only(&samples)? }
    };
    let remote: Option<SocketAddr> = who.remote.parse().ok();
    let measurement = Measurement {
        version: head.map_or(env!("CARGO_PKG_VERSION"), |head| &head.version).to_owned(),
        started_unix_s: head
            .map_or(0, |head| head.started_unix_s.saturating_add(first.sent.t_s.max(0.0) as u64)),
        spec: TestSpec {
            target: remote.map_or_else(|| who.remote.clone(), |end| end.ip().to_string()),
            port: remote.map_or(0, |end| end.port()),
            protocol: Protocol::Tcp,
            direction: if sends { Direction::Forward } else { Direction::Reverse },
            seconds,
            streams: 1,
            window_bytes: None,
            rate_bps: None,
            congestion: who.congestion.clone(),
            ..TestSpec::default()
        },
        host: head.map(|head| head.host.clone()).unwrap_or_default(),
        peer: who.remote.clone(),
        streams: vec![stream],
        ..Measurement::default()
    };
    let mut finding = diagnose::explain(&measurement);
    if sends && !has_timers {
        finding.sentence =
            "cannot identify the limit: TCP_INFO has no sender timers before Linux 4.10".to_owned();
    } else if !sends && let Some(unread) = fills_its_window(&samples) {
        finding.sentence = format!(
            "the receiving application is slow: {} unread, at least half the receive window",
            unread.decimal()
        );
    }
    Some(Transfer { measurement, finding })
}

/// The stream of a connection of which both ends were sampled; `None` if its sender has fewer
/// than two samples, or has sent nothing.
#[must_use]
pub fn stream_of_both_ends(
    sender: &[ConnectionSample],
    receiver: &[ConnectionSample],
) -> Option<Stream> {
    let of_sender = sent(&sender.iter().collect::<Vec<_>>())?;
    match received_only(&receiver.iter().collect::<Vec<_>>()) {
        Some(of_receiver) => Some(Stream {
            received_bytes: of_receiver.received_bytes,
            received_seconds: of_receiver.received_seconds,
            receiver: of_receiver.receiver,
            ..of_sender
        }),
        None => Some(of_sender),
    }
}

/// What a sender's samples say of its stream; `None` for less than two samples, or no payload.
fn sent(samples: &[&ConnectionSample]) -> Option<Stream> {
    let (first, last) = (samples.first()?, samples.last()?);
    let seconds = last.sent.t_s - first.sent.t_s;
    let bytes = last.sent.acked_bytes.saturating_sub(first.sent.acked_bytes);
    let has_timers = samples.iter().all(|sample| sample.has_timers);
    let samples = samples.iter().filter(|_| has_timers);
    (seconds > 0.0 && bytes > 0).then(|| Stream {
        retransmits: Some(last.sent.retransmits.saturating_sub(first.sent.retransmits)),
        sender: samples.map(|sample| sample.sent.since(&first.sent)).collect(),
        ..watched(bytes, seconds)
    })
}

/// The same of a receiver's samples.
fn received_only(samples: &[&ConnectionSample]) -> Option<Stream> {
    let (first, last) = (samples.first()?, samples.last()?);
    let seconds = last.received.t_s - first.received.t_s;
    let bytes = last.received.received_bytes.saturating_sub(first.received.received_bytes);
    let samples = samples.iter();
    (seconds > 0.0 && bytes > 0).then(|| Stream {
        receiver: samples.map(|sample| sample.received.since(&first.received)).collect(),
        ..watched(bytes, seconds)
    })
}

fn watched(bytes: u64, seconds: f64) -> Stream {
    Stream {
        watched: true,
        sent_bytes: bytes,
        received_bytes: bytes,
        sent_seconds: seconds,
        received_seconds: seconds,
        ..Stream::default()
    }
}

/// The median of unread bytes, if at least half of the largest window.
fn fills_its_window(samples: &[&ConnectionSample]) -> Option<units::ByteCount> {
    let unread: Vec<f64> = samples.iter().map(|sample| sample.unread_bytes as f64).collect();
    let median = units::ByteCount::from_f64(statistics::median(&unread)?).bytes();
    let window = samples.iter().filter_map(|sample| sample.received.window_bytes).max()?;
    (median > 0 && median >= window / 2).then(|| units::ByteCount::from_bytes(median))
}
