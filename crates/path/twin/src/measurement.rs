//! Samples and measurement of a simulation, as the lab's tests record them.

use crate::{ConnectionConfig, Scenario};
use record::{Measurement, ReceiverSample, Sample, Stream, TestSpec};
use tcp::{Receiver, SenderInfo};
use units::Rtt;

/// A sender's sample; `t_s` in seconds since the start.
pub(crate) fn sample(t_s: f64, info: &SenderInfo, max_pacing_bps: Option<u64>) -> Sample {
    let bytes = |packets: u64| packets * u64::from(info.mss);
    Sample {
        t_s,
        written_bytes: bytes(info.written),
        acked_bytes: bytes(info.acked),
        delivered_bytes: bytes(info.acked + info.sacked),
        mss_bytes: info.mss,
        cwnd_bytes: bytes(info.cwnd),
        ssthresh_bytes: info.ssthresh.map(bytes),
        in_flight_bytes: bytes(info.in_flight),
        unsent_bytes: bytes(info.written - info.sent),
        peer_window_bytes: Some(bytes(info.peer_window)),
        rtt_us: info.srtt.map_or(0, micros),
        rttvar_us: micros(info.rtt_deviation),
        min_rtt_us: info.min_rtt.map(micros),
        delivery_rate_bps: info.delivery_rate.map_or(0, units::BitRate::bps),
        delivery_app_limited: info.delivery_app_limited,
        pacing_rate_bps: info.pacing_rate.map(units::BitRate::bps),
        max_pacing_rate_bps: max_pacing_bps,
        retransmits: info.retransmits,
        busy_us: info.times.busy_ns / 1_000,
        rwnd_limited_us: info.times.rwnd_ns / 1_000,
        sndbuf_limited_us: info.times.send_buffer_ns / 1_000,
        ce_delivered: Some(counter(info.feedback.marked)),
        dsack_duplicates: Some(counter(info.feedback.duplicates)),
        reorderings: Some(counter(info.feedback.reorderings)),
        acks: Some(counter(info.feedback.acknowledgements)),
        peer_window_scale: None,
        naks: None,
        capacity_bps: None,
        light_acks: None,
        source_bytes: None,
        ack_delay_us: None,
        cpu_us: None,
    }
}

/// A receiver's sample.
pub(crate) fn receiver_sample(
    t_s: f64,
    receiver: &Receiver,
    mss: u32,
    handshake: Rtt,
) -> ReceiverSample {
    let bytes = |packets: u64| packets * u64::from(mss);
    ReceiverSample {
        t_s,
        received_bytes: bytes(receiver.read()),
        window_bytes: Some(bytes(receiver.window())),
        buffer_bytes: None,
        min_rtt_us: Some(micros(handshake)),
        rtt_us: receiver.rtt().map(micros),
        unread_bytes: Some(bytes(receiver.received() - receiver.read())),
        segments: Some(counter(receiver.arrived())),
        out_of_order: Some(counter(receiver.out_of_order())),
        window_scale: None,
        cpu_us: None,
    }
}

/// A counter of 32 bits, as in the kernel.
fn counter(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn micros(rtt: Rtt) -> u32 {
    u32::try_from(rtt.nanos() / 1_000).unwrap_or(u32::MAX)
}

/// The samples of one connection.
#[derive(Debug)]
pub(crate) struct Recording {
    /// Name of its congestion control.
    congestion: String,
    pub(crate) sender: Vec<Sample>,
    pub(crate) receiver: Vec<ReceiverSample>,
    /// The connection has ended.
    pub(crate) is_complete: bool,
}

impl Recording {
    /// No sample yet of a connection under the congestion control of that name.
    pub(crate) fn of(congestion: &str) -> Self {
        let congestion = congestion.to_owned();
        Recording { congestion, sender: Vec::new(), receiver: Vec::new(), is_complete: false }
    }
}

/// The measurement of the connections that are measured.
pub(crate) fn measurement(
    scenario: &Scenario,
    seconds: f64,
    recordings: Vec<Recording>,
) -> Measurement {
    let measured: Vec<(&ConnectionConfig, Recording)> = scenario
        .connections
        .iter()
        .zip(recordings)
        .filter(|(connection, _)| connection.measured)
        .collect();
    let spec = TestSpec {
        target: "twin".to_owned(),
        port: 5201,
        seconds,
        streams: u32::try_from(measured.len()).unwrap_or(u32::MAX),
        fq_rate_bps: measured.first().and_then(|(connection, _)| connection.max_pacing_rate),
        rate_bps: measured.first().and_then(|(connection, _)| connection.rate()),
        congestion: measured.first().map(|(_, recording)| recording.congestion.clone()),
        ..TestSpec::default()
    };
    let streams = measured.into_iter().enumerate().map(|(index, (connection, recording))| {
        let last = recording.sender.last().copied().unwrap_or_default();
        let start = connection.start.as_secs_f64();
        let end = if recording.is_complete { last.t_s } else { seconds };
        Stream {
            id: u32::try_from(index + 1).unwrap_or(u32::MAX),
            congestion: Some(recording.congestion),
            sent_bytes: last.written_bytes,
            received_bytes: recording.receiver.last().map_or(0, |sample| sample.received_bytes),
            sent_seconds: (end - start).max(0.0),
            received_seconds: (end - start).max(0.0),
            retransmits: Some(last.retransmits),
            sender: recording.sender,
            receiver: recording.receiver,
            ..Stream::default()
        }
    });
    Measurement {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        spec,
        peer: format!("longhaul {}", env!("CARGO_PKG_VERSION")),
        streams: streams.collect(),
        ..Measurement::default()
    }
}
