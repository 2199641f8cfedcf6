//! Synthetic measurements of a path of 100 Mbit/s and 173 ms: with a receive buffer
//! that is too small, and with one that is large enough.

use record::{
    Achieved, CommandHost, Confidence, Direction, Finding, HostFacts, Lateness, Limit, LoopReport,
    Measurement, NextCommand, PathReport, PlanItem, Probability, RateEstimate, ReceiverSample,
    Sample, Segment, Shares, Steady, Stream, TestSpec,
};
use units::{BitRate, ByteCount, LossRatio, Rtt};

const RTT_S: f64 = 0.173;
const SAMPLE_S: f64 = 0.05;
/// Payload share of a 1500-byte packet: 1448 bytes.
const GOODPUT_BPS: f64 = 96.5e6;

pub(crate) fn path() -> PathReport {
    PathReport {
        rate_bps: Some(BitRate::from_bps(100_000_000)),
        rtt: Rtt::from_micros(173_000),
        loss: LossRatio::NONE,
        queue: "1bdp (2.16 MB)".to_owned(),
        queue_bytes: Some(ByteCount::from_bytes(2_162_500)),
        overhead_bytes: 0,
        mtu_bytes: 1500,
        seed: 1,
        valid: true,
        reasons: Vec::new(),
        achieved: Achieved {
            rate_bps: Some(BitRate::from_bps(99_970_000)),
            idle_rtt_ms: Some(173.2),
            packets: 94_301,
            bytes: 137_402_112,
            lateness_us: Lateness { p50: 12, p99: 84, max: 413 },
            ..Achieved::default()
        },
        ..PathReport::default()
    }
}

/// A transfer limited to `window` bytes in flight, over `seconds`.
pub(crate) fn measurement(window: f64, seconds: f64, streams: u32) -> Measurement {
    let stream = |index: u32| stream(index, window / f64::from(streams), seconds, streams);
    Measurement {
        schema: record::MEASUREMENT_SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        started_unix_s: 1_795_232_400,
        spec: TestSpec {
            target: "10.77.0.2".to_owned(),
            port: 5201,
            protocol: record::Protocol::Tcp,
            direction: Direction::Forward,
            seconds,
            streams,
            window_bytes: None,
            rate_bps: None,
            congestion: None,
            ..TestSpec::default()
        },
        host: HostFacts {
            kernel: "6.12.48-amd64".to_owned(),
            cores: 2,
            tcp_rmem: Some([4096, 65_536, 131_072]),
            tcp_wmem: Some([4096, 16_384, 16_777_216]),
            busy_before: Some(0.04),
        },
        peer: "longhaul 0.1.0".to_owned(),
        path: Some(path()),
        streams: (0..streams).map(stream).collect(),
        sender_cpu: Some(0.07),
        sender_core_wait: None,
        receiver_cpu: Some(0.11),
        receiver_core_wait: None,
        notes: Vec::new(),
        latency: None,
        decided: None,
        tool: None,
    }
}

/// Slow start, doubling every round trip up to the window; a full pipe queues.
fn stream(index: u32, window: f64, seconds: f64, streams: u32) -> Stream {
    let link = GOODPUT_BPS / f64::from(streams) / 8.0;
    let mut stream = Stream {
        // iperf3 counts 1, 3, 4, …
        id: if index == 0 { 1 } else { index + 2 },
        congestion: Some("cubic".to_owned()),
        retransmits: Some(0),
        sent_seconds: seconds,
        received_seconds: seconds,
        ..Stream::default()
    };
    let (mut delivered, mut busy, mut held) = (0.0, 0.0, 0.0);
    let steps = (seconds / SAMPLE_S).round() as u32;
    for step in 0..=steps {
        let t_s = f64::from(step) * SAMPLE_S;
        let cwnd = (14_480.0 * 2f64.powf(t_s / RTT_S)).min(2.0 * link * RTT_S).max(14_480.0);
        let in_flight = cwnd.min(window);
        let wobble = 1.0 + 0.012 * f64::sin(t_s * 5.0 + f64::from(index));
        let rate = (in_flight / RTT_S).min(link) * wobble;
        let rtt = RTT_S.max(in_flight / link) * (1.0 + 0.004 * f64::sin(t_s * 11.0));
        if step > 0 && t_s > RTT_S {
            delivered += rate * SAMPLE_S;
        }
        busy += SAMPLE_S * 1e6;
        if cwnd > window && window / RTT_S < link {
            held += SAMPLE_S * 1e6;
        }
        stream.sender.push(Sample {
            t_s,
            written_bytes: (delivered + in_flight) as u64,
            acked_bytes: delivered as u64,
            delivered_bytes: delivered as u64,
            mss_bytes: 1448,
            cwnd_bytes: cwnd as u64,
            in_flight_bytes: in_flight as u64,
            peer_window_bytes: Some(window as u64),
            rtt_us: (rtt * 1e6) as u32,
            min_rtt_us: Some(173_120),
            busy_us: busy as u64,
            rwnd_limited_us: held as u64,
            ..Sample::default()
        });
        stream.receiver.push(ReceiverSample {
            t_s,
            received_bytes: delivered as u64,
            window_bytes: Some(window as u64),
            buffer_bytes: Some(2 * window as u64),
            ..ReceiverSample::default()
        });
    }
    stream.sent_bytes = delivered as u64;
    stream.received_bytes = delivered as u64;
    stream
}

pub(crate) fn before() -> (Measurement, Finding) {
    let finding = Finding {
        throughput_bps: BitRate::from_bps(2_982_000),
        average_bps: BitRate::from_bps(2_920_000),
        steady: Steady { from_s: 1.0, to_s: 10.0 },
        predicted_bps: Some(BitRate::from_bps(3_030_566)),
        equation: Some(
            "window / RTT = 65 535 bytes × 8 / 173 ms = 3.03 Mbit/s of payload".to_owned(),
        ),
        limit: Some(Limit::ReceiveWindow),
        confidence: Some(record::Confidence::Sure),
        shares: Some(Shares {
            application: 0.0,
            receive_window: 0.968,
            send_buffer: 0.002,
            network: 0.03,
        }),
        min_rtt: Some(Rtt::from_micros(173_120)),
        loaded_rtt: Some(Rtt::from_micros(173_300)),
        sentence: "The receiver advertised a window of at most 64 KiB, but the BDP is 2.16 MB: \
                   the sender filled the window, then waited for most of each 173 ms round \
                   trip. It was rwnd-limited for 97 % of the time."
            .to_owned(),
        remedies: vec![],
        posterior: vec![],
        segments: vec![],
        bottleneck: None,
        caveats: Vec::new(),
        next: Some(NextCommand {
            command: "longhaul tune plan --rate 100mbit --rtt 173ms".to_owned(),
            on: CommandHost::Receiver,
            why: "prints the settings for this path, and changes nothing".to_owned(),
        }),
    };
    (measurement(65_535.0, 10.0, 1), finding)
}

pub(crate) fn after() -> (Measurement, Finding) {
    let finding = Finding {
        throughput_bps: BitRate::from_bps(96_100_000),
        average_bps: BitRate::from_bps(81_400_000),
        steady: Steady { from_s: 2.0, to_s: 10.0 },
        predicted_bps: Some(BitRate::from_bps(96_533_333)),
        equation: Some(
            "rate × payload / packet = 100 Mbit/s × 1448 / 1500 = 96.5 Mbit/s of payload"
                .to_owned(),
        ),
        limit: Some(Limit::PathRate),
        confidence: Some(record::Confidence::Sure),
        shares: Some(Shares {
            application: 0.004,
            receive_window: 0.012,
            send_buffer: 0.0,
            network: 0.984,
        }),
        min_rtt: Some(Rtt::from_micros(173_140)),
        loaded_rtt: Some(Rtt::from_micros(341_000)),
        sentence: "Bottleneck saturated: 96.1 of at most 96.5 Mbit/s of payload over a \
                   100 Mbit/s link, with 168 ms of queueing delay."
            .to_owned(),
        remedies: vec![],
        posterior: vec![],
        segments: vec![],
        bottleneck: None,
        caveats: Vec::new(),
        next: Some(NextCommand {
            command: "longhaul lab run --link rate=100mbit,rtt=173ms,queue=1bdp --server \
                      'longhaul server' -- longhaul test server --latency"
                .to_owned(),
            on: CommandHost::Here,
            why: "shows the queueing delay of the saturated path".to_owned(),
        }),
    };
    let mut measurement = measurement(6_291_456.0, 10.0, 1);
    measurement.notes.push("net.ipv4.tcp_rmem was increased for this test".to_owned());
    (measurement, finding)
}

/// A transfer with three parts: ramp-up, a full bottleneck, then random loss.
pub(crate) fn in_segments() -> (Measurement, Finding) {
    let probability = |limit, probability| Probability { limit, probability };
    let segment = |(from_s, to_s), limit, mbit: u64, lost_share, sure| Segment {
        from_s,
        to_s,
        limit,
        confidence: Some(Confidence::Likely),
        throughput_bps: BitRate::from_bps(mbit * 1_000_000),
        lost_share,
        posterior: vec![probability(limit, sure)],
    };
    let (measurement, finding) = after();
    let finding = Finding {
        limit: Some(Limit::Loss),
        confidence: Some(Confidence::Likely),
        posterior: vec![
            probability(Limit::Loss, 0.72),
            probability(Limit::ClusteredLoss, 0.2),
            probability(Limit::Aqm, 0.08),
        ],
        segments: vec![
            segment((0.0, 1.2), Limit::Ramp, 21, 0.14, 0.98),
            segment((1.2, 3.4), Limit::PathRate, 96, 0.0, 0.995),
            segment((3.4, 8.0), Limit::Loss, 18, 0.83, 0.72),
            segment((8.0, 8.3), Limit::Ramp, 60, 0.02, 0.5),
            segment((8.3, 10.0), Limit::PathRate, 94, 0.01, 0.93),
        ],
        bottleneck: Some(RateEstimate {
            rate_bps: BitRate::from_bps(96_100_000),
            low_bps: BitRate::from_bps(94_800_000),
            high_bps: Some(BitRate::from_bps(97_200_000)),
        }),
        caveats: Vec::new(),
        sentence: "From 3.4 s on, random loss kept the congestion window at a fifth of the BDP."
            .to_owned(),
        ..finding
    };
    (measurement, finding)
}

pub(crate) fn plan() -> Vec<PlanItem> {
    let item = |host: &str, key: &str, from: &str, to: &str, why: &str| PlanItem {
        host: host.to_owned(),
        key: key.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        why: why.to_owned(),
    };
    vec![
        item(
            "server",
            "net.ipv4.tcp_rmem",
            "4096 65536 131072",
            "4096 131072 8650752",
            "BDP: 100 Mbit/s × 173 ms = 2.16 MB. The window is half of the buffer, and loss \
             recovery takes one more BDP: 4 × 2.16 MB.",
        ),
        item(
            "client",
            "net.ipv4.tcp_wmem",
            "4096 16384 131072",
            "4096 16384 8650752",
            "The sender buffers all bytes until they are acknowledged (2 × 2.16 MB), and as \
             much again of unsent data.",
        ),
    ]
}

pub(crate) fn report() -> LoopReport {
    LoopReport {
        schema: record::LOOP_SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        path: path(),
        before: before().1,
        after: after().1,
        plan: plan(),
        gain: 96.1 / 2.982,
    }
}
