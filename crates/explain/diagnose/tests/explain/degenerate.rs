//! Invalid measurements, which every reader must survive.

use crate::{
    build::{TestFlow, flow, path},
    segments,
    transfer::over,
};
use diagnose::{contradiction, explain};
use proptest::{num::f64::ANY as ANY_F64, prelude::*};
use record::{
    CapturePoint, Confidence, Finding, Limit, Measurement, ReceiverSample, Sample, Stream,
};
use units::BitRate;

fn is_sound(finding: &Finding) {
    assert!(!finding.sentence.is_empty() && !finding.sentence.contains('\n'));
    assert!(!finding.sentence.contains("NaN"), "{}", finding.sentence);
    assert!(finding.steady.from_s.is_finite() && finding.steady.to_s >= finding.steady.from_s);
    segments::are_sound(finding);
    let posteriors = finding.segments.iter().map(|segment| &segment.posterior);
    for posterior in posteriors.chain([&finding.posterior]) {
        let all: Vec<f64> = posterior.iter().map(|p| p.probability).collect();
        assert!(all.iter().all(|p| (0.0..=1.0 + 1e-9).contains(p)), "{posterior:?}");
        assert!(all.iter().sum::<f64>() <= 1.0 + 1e-6, "{posterior:?}");
        assert!(all.is_sorted_by(|a, b| a >= b), "{posterior:?}");
    }
    assert!(finding.limit.is_none() || !finding.posterior.is_empty(), "{finding:?}");
    assert!(finding.confidence.is_none() || finding.limit.is_some_and(|l| l != Limit::Unknown));
    if let Some(s) = finding.shares {
        let each = [s.application, s.receive_window, s.send_buffer, s.network];
        assert!(each.iter().all(|share| (-1e-9..=1.0 + 1e-9).contains(share)), "{s:?}");
        assert!((each.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{s:?}");
    }
}

fn sound(m: &Measurement) -> Finding {
    let finding = explain(m);
    is_sound(&finding);
    assert_eq!(contradiction(&finding, m), None, "{finding:?}");
    finding
}

#[test]
fn no_streams_no_samples_one_sample() {
    let mut m = flow(10.0, 10.0).measurement();
    m.streams[0].sender.truncate(1);
    assert_ne!(sound(&m).confidence, Some(Confidence::Sure));
    m.streams[0].receiver.truncate(1);
    let finding = sound(&m);
    assert!((finding.throughput_bps.as_f64() / 10e6 - 1.0).abs() < 1e-3, "{finding:?}");
    m.streams[0] = Stream::default();
    assert_eq!(sound(&m).throughput_bps, BitRate::ZERO);
    m.streams.clear();
    assert_eq!(sound(&m).limit, None);
}

#[test]
fn one_stream_without_timers_leaves_no_shares() {
    let mut m = over(20.0, 40.0, "queue=2bdp").streams(2).run(0);
    assert_eq!(sound(&m).limit, Some(Limit::PathRate));
    m.streams[1].sender.clear();
    let finding = sound(&m);
    assert_eq!(finding.shares, None);
    let wrong = finding.limit != Some(Limit::PathRate);
    assert!(!wrong || finding.confidence != Some(Confidence::Sure), "{:?}", finding.posterior);
}

#[test]
fn no_time_passes_or_time_is_not_finite() {
    for t in [0.0, f64::NAN, f64::INFINITY, -1.0] {
        let mut m = flow(10.0, 10.0).measurement();
        m.spec.seconds = t;
        m.streams[0].received_seconds = t;
        for sample in &mut m.streams[0].sender {
            sample.t_s = t;
        }
        for sample in &mut m.streams[0].receiver {
            sample.t_s = t;
        }
        assert_eq!(sound(&m).limit, None, "{t}");
    }
}

#[test]
fn nothing_arrives() {
    let finding = sound(&flow(0.0, 0.0).measurement());
    assert_eq!(finding.throughput_bps, BitRate::ZERO);
    assert_eq!((finding.min_rtt, finding.loaded_rtt), (None, None));
}

#[test]
fn two_samples_are_enough_for_shares() {
    let mut m = TestFlow { rwnd: 0.9, window: 1 << 16, ..flow(3.0, 173.0) }.measurement();
    let last = m.streams[0].sender.pop().unwrap();
    m.streams[0].sender = vec![Sample::default(), last];
    let shares = sound(&m).shares.unwrap();
    assert!((shares.receive_window - 0.9).abs() < 1e-6, "{shares:?}");
}

/// The work is bounded: `segments` counts it.
#[test]
fn a_hundred_thousand_samples() {
    let finding = sound(&TestFlow { seconds: 10_000.0, ..flow(10.0, 20.0) }.measurement());
    assert!((finding.throughput_bps.as_f64() / 10e6 - 1.0).abs() < 1e-3, "{finding:?}");
    let all_at_once = |step: usize| 1.0 + step as f64 * 1e-9;
    let mut m = flow(10.0, 20.0).measurement();
    m.streams[0].sender = (0..100_000)
        .map(|step| Sample { t_s: all_at_once(step), ..m.streams[0].sender[5] })
        .collect();
    sound(&m);
}

fn any_sample() -> impl Strategy<Value = Sample> {
    (any::<[u64; 14]>(), any::<[u32; 4]>(), any::<[bool; 5]>(), ANY_F64, 0.0f64..30.0).prop_map(
        |(long, short, flag, odd, even)| Sample {
            t_s: if flag[0] { odd } else { even },
            written_bytes: long[0],
            acked_bytes: long[1],
            delivered_bytes: long[2],
            mss_bytes: short[0],
            cwnd_bytes: long[3],
            ssthresh_bytes: None,
            in_flight_bytes: long[4],
            unsent_bytes: long[5],
            peer_window_bytes: flag[1].then_some(long[6]),
            rtt_us: short[1],
            rttvar_us: short[2],
            min_rtt_us: flag[2].then_some(short[3]),
            delivery_rate_bps: long[7],
            delivery_app_limited: flag[3],
            pacing_rate_bps: flag[4].then_some(long[8]),
            max_pacing_rate_bps: flag[4].then_some(long[9]),
            retransmits: long[9],
            busy_us: long[10],
            rwnd_limited_us: long[11],
            sndbuf_limited_us: long[12],
            ce_delivered: flag[0].then_some(short[0]),
            dsack_duplicates: flag[1].then_some(short[1]),
            reorderings: flag[2].then_some(short[2]),
            acks: flag[3].then_some(short[3]),
            peer_window_scale: flag[4].then_some(short[0].to_le_bytes()[0]),
            naks: flag[0].then_some(long[12]),
            capacity_bps: flag[1].then_some(long[13]),
            light_acks: flag[3].then_some(short[2]),
            source_bytes: flag[2].then_some(long[0]),
            ack_delay_us: flag[1].then_some(short[0]),
            cpu_us: flag[3].then_some(long[1]),
        },
    )
}

fn any_stream() -> impl Strategy<Value = Stream> {
    let receiver = (ANY_F64, 0.0f64..30.0, any::<bool>(), any::<[u64; 3]>()).prop_map(
        |(odd, even, flag, long)| ReceiverSample {
            t_s: if flag { odd } else { even },
            received_bytes: long[0],
            window_bytes: Some(long[1]),
            buffer_bytes: Some(long[2]),
            min_rtt_us: flag.then_some(odd as u32),
            rtt_us: Some(long[0] as u32),
            unread_bytes: Some(long[1]),
            segments: flag.then_some(long[2] as u32),
            out_of_order: Some(long[0] as u32),
            window_scale: Some(long[1] as u8),
            cpu_us: flag.then_some(long[0]),
        },
    );
    let samples = prop::collection::vec(any_sample(), 0..12);
    let receivers = prop::collection::vec(receiver, 0..12);
    (samples, receivers, any::<[u64; 3]>(), [ANY_F64, ANY_F64]).prop_map(
        |(mut sender, mut receiver, long, seconds)| {
            if long[0] % 2 == 0 {
                sender.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
                receiver.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
            }
            Stream {
                reverse: false,
                watched: long[0] % 3 == 0,
                captured: (long[0] % 4 == 1).then_some(CapturePoint::Receiver),
                activity: None,
                caveats: Vec::new(),
                segment_sizes: None,
                unsent_limit_bytes: None,
                datagrams: None,
                train: Vec::new(),
                id: 1,
                congestion: None,
                sent_bytes: long[0],
                received_bytes: long[1],
                sent_seconds: seconds[0],
                received_seconds: seconds[1],
                retransmits: Some(long[2]),
                sender,
                receiver,
            }
        },
    )
}

proptest! {
    #[test]
    fn any_measurement_is_explained(
        streams in prop::collection::vec(any_stream(), 0..4),
        seconds in ANY_F64,
        rate in any::<Option<u64>>(),
        cpu in prop::option::of(ANY_F64),
        link in any::<Option<(u64, u64, u32, u32)>>(),
    ) {
        let mut m = flow(1.0, 1.0).measurement();
        m.streams = streams;
        m.spec.seconds = seconds;
        m.spec.rate_bps = rate.map(BitRate::from_bps);
        m.sender_cpu = cpu;
        m.receiver_core_wait = cpu;
        m.path = link.map(|(bps, nanos, mtu, overhead)| record::PathReport {
            rate_bps: Some(BitRate::from_bps(bps)),
            rtt: units::Rtt::from_nanos(nanos),
            mtu_bytes: mtu,
            overhead_bytes: overhead,
            ..path(1, 1, "1%")
        });
        sound(&m);
    }
}
