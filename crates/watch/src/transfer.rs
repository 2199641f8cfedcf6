//! Looks at one connection as a measurement, and what limited it.

use record::{
    ConnectionId, Direction, Finding, MEASUREMENT_SCHEMA, Measurement, Protocol, ReceiverSample,
    RecordingHead, Sample, Seen, Stream, TestSpec,
};
use std::net::SocketAddr;

/// What one connection carried while it was watched.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// The looks as a measurement of one stream, from the first on. It goes the way
    /// in which more went.
    pub measurement: Measurement,
    /// What limited it.
    pub finding: Finding,
}

/// What a connection carried from the first of these looks to the last; `None` of
/// fewer than two, or where nothing was carried. `head` is that of the recording
/// they are from.
pub fn transfer<'a>(
    who: &ConnectionId,
    seen: impl IntoIterator<Item = &'a Seen>,
    head: Option<&RecordingHead>,
) -> Option<Transfer> {
    let seen: Vec<&Seen> = seen.into_iter().collect();
    let (first, last) = (*seen.first()?, *seen.last()?);
    let seconds = last.sent.t_s - first.sent.t_s;
    let acked = last.sent.acked_bytes.saturating_sub(first.sent.acked_bytes);
    let received = last.received.received_bytes.saturating_sub(first.received.received_bytes);
    if seconds.is_nan() || seconds <= 0.0 || acked.max(received) == 0 {
        return None;
    }
    let sends = acked >= received;
    let clocks = seen.iter().all(|seen| seen.has_clocks);
    let stream = Stream {
        id: 1,
        reverse: !sends,
        watched: true,
        congestion: who.congestion.clone(),
        sent_bytes: acked.max(received),
        received_bytes: acked.max(received),
        sent_seconds: seconds,
        received_seconds: seconds,
        retransmits: sends.then(|| last.sent.retransmits.saturating_sub(first.sent.retransmits)),
        datagrams: None,
        sender: if sends && clocks {
            seen.iter().map(|seen| since_sent(&first.sent, &seen.sent)).collect()
        } else {
            Vec::new()
        },
        receiver: if sends {
            Vec::new()
        } else {
            seen.iter().map(|seen| since_received(&first.received, &seen.received)).collect()
        },
    };
    let remote: Option<SocketAddr> = who.remote.parse().ok();
    let measurement = Measurement {
        schema: MEASUREMENT_SCHEMA.to_owned(),
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
        },
        host: head.map(|head| head.host.clone()).unwrap_or_default(),
        peer: who.remote.clone(),
        path: None,
        streams: vec![stream],
        sender_cpu: None,
        sender_core_wait: None,
        receiver_cpu: None,
        receiver_core_wait: None,
        notes: Vec::new(),
        latency: None,
    };
    let mut finding = diagnose::explain(&measurement);
    if sends && !clocks {
        finding.sentence =
            "this kernel tells no clocks of what limits a sender; Linux 4.10 does".to_owned();
    } else if !sends && let Some(unread) = fills_its_window(&seen) {
        finding.sentence = format!(
            "the program here reads slowly: {unread} wait unread, half of its window and more"
        );
    }
    Some(Transfer { measurement, finding })
}

/// Bytes that waited unread at the median look, where they are half of the window
/// that is left beside them, or more.
fn fills_its_window(seen: &[&Seen]) -> Option<units::ByteCount> {
    let mut unread: Vec<u64> = seen.iter().map(|seen| seen.unread_bytes).collect();
    unread.sort_unstable();
    let middle = *unread.get(unread.len() / 2)?;
    let window = seen.iter().filter_map(|seen| seen.received.window_bytes).max()?;
    (middle > 0 && middle >= window / 2).then(|| units::ByteCount::from_bytes(middle))
}

/// Counters from the first look on; what they count began with the connection.
fn since_sent(first: &Sample, sample: &Sample) -> Sample {
    Sample {
        t_s: sample.t_s - first.t_s,
        // Both from the same point: their difference is what the send buffer holds.
        written_bytes: sample.written_bytes.saturating_sub(first.acked_bytes),
        acked_bytes: sample.acked_bytes.saturating_sub(first.acked_bytes),
        delivered_bytes: sample.delivered_bytes.saturating_sub(first.delivered_bytes),
        retransmits: sample.retransmits.saturating_sub(first.retransmits),
        busy_us: sample.busy_us.saturating_sub(first.busy_us),
        rwnd_limited_us: sample.rwnd_limited_us.saturating_sub(first.rwnd_limited_us),
        sndbuf_limited_us: sample.sndbuf_limited_us.saturating_sub(first.sndbuf_limited_us),
        ..*sample
    }
}

fn since_received(first: &ReceiverSample, sample: &ReceiverSample) -> ReceiverSample {
    ReceiverSample {
        t_s: sample.t_s - first.t_s,
        received_bytes: sample.received_bytes.saturating_sub(first.received_bytes),
        ..*sample
    }
}
