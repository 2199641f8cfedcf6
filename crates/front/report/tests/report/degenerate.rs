//! Damaged and extreme records: any file contents give output that fits.

use crate::{
    assertions::{balanced, fits},
    synthetic,
};
use model::WindowInFlight;
use proptest::{collection::vec, option, prelude::*};
use record::{
    Achieved, Finding, Interval, Limit, LoopReport, Measurement, PathReport, PlanItem, Probability,
    Protocol, RateEstimate, ReceiverSample, Sample, Segment, Shares, Steady, Stream,
};
use report::{
    html::{self, Page, PageRun},
    series,
    terminal::{self, IntervalTable, Rows, Style, Trace},
};
use units::{BitRate, ByteCount, Rtt};

/// Valid and invalid times.
fn time() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..20.0f64,
        1 => any::<f64>(),
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, -0.0, -1.0, f64::MAX, 5e-324]),
    ]
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..1_000_000_000u64, 1 => prop::sample::select(vec![0, 1, u64::MAX])]
}

fn sample() -> impl Strategy<Value = Sample> {
    (time(), count(), count(), count(), option::of(count()), any::<u32>()).prop_map(
        |(t_s, delivered_bytes, cwnd_bytes, in_flight_bytes, peer_window_bytes, rtt_us)| Sample {
            t_s,
            delivered_bytes,
            acked_bytes: delivered_bytes,
            cwnd_bytes,
            in_flight_bytes,
            peer_window_bytes,
            rtt_us,
            ..Sample::default()
        },
    )
}

fn receiver_sample() -> impl Strategy<Value = ReceiverSample> {
    (time(), count()).prop_map(|(t_s, received_bytes)| ReceiverSample {
        t_s,
        received_bytes,
        ..ReceiverSample::default()
    })
}

fn stream() -> impl Strategy<Value = Stream> {
    (vec(sample(), 0..8), vec(receiver_sample(), 0..8), count(), time()).prop_map(
        |(sender, receiver, received_bytes, received_seconds)| Stream {
            sender,
            receiver,
            received_bytes,
            received_seconds,
            retransmits: Some(received_bytes),
            ..Stream::default()
        },
    )
}

fn path() -> impl Strategy<Value = PathReport> {
    (count(), count(), time(), any::<bool>(), vec(any::<String>(), 0..3)).prop_map(
        |(rate, rtt, idle, valid, reasons)| PathReport {
            rate_bps: Some(BitRate::from_bps(rate)),
            rtt: Rtt::from_nanos(rtt),
            valid,
            queue: reasons.concat(),
            reasons,
            achieved: Achieved { idle_rtt_ms: Some(idle), packets: rate, ..Achieved::default() },
            ..synthetic::path()
        },
    )
}

fn measurement() -> impl Strategy<Value = Measurement> {
    (vec(stream(), 0..4), time(), option::of(path()), any::<u64>(), vec(any::<String>(), 0..3))
        .prop_map(|(streams, seconds, path, started_unix_s, notes)| {
            let mut measurement = synthetic::measurement(65_535.0, 0.1, 1);
            measurement.streams = streams;
            measurement.spec.seconds = seconds;
            measurement.path = path;
            measurement.started_unix_s = started_unix_s;
            measurement.sender_cpu = Some(seconds);
            measurement.peer = notes.concat();
            measurement.notes = notes;
            measurement
        })
}

fn probability() -> impl Strategy<Value = Probability> {
    (prop::sample::select(Limit::ALL.to_vec()), time())
        .prop_map(|(limit, probability)| Probability { limit, probability })
}

fn segment() -> impl Strategy<Value = Segment> {
    (time(), time(), probability(), time(), count()).prop_map(
        |(from_s, to_s, probability, lost_share, rate)| Segment {
            from_s,
            to_s,
            limit: probability.limit,
            confidence: None,
            throughput_bps: BitRate::from_bps(rate),
            lost_share,
            posterior: vec![probability],
        },
    )
}

/// Segments in any order, or one after the other: of many limits, or very many.
fn segments() -> impl Strategy<Value = Vec<Segment>> {
    let in_order = vec(segment(), 0..90).prop_map(|mut segments| {
        let mut from_s = 0.0;
        for segment in &mut segments {
            segment.from_s = from_s;
            from_s += segment.to_s.abs().clamp(0.0, 1e3);
            segment.to_s = from_s;
        }
        segments
    });
    prop_oneof![vec(segment(), 0..6), in_order]
}

fn estimate() -> impl Strategy<Value = RateEstimate> {
    (count(), count(), option::of(count())).prop_map(|(rate, low, high)| RateEstimate {
        rate_bps: BitRate::from_bps(rate),
        low_bps: BitRate::from_bps(low),
        high_bps: high.map(BitRate::from_bps),
    })
}

fn finding() -> impl Strategy<Value = Finding> {
    let diagnosis = (vec(probability(), 0..40), segments(), option::of(estimate()));
    (one_limit(), diagnosis).prop_map(|(finding, (posterior, segments, bottleneck))| Finding {
        posterior,
        segments,
        bottleneck,
        ..finding
    })
}

fn one_limit() -> impl Strategy<Value = Finding> {
    (count(), option::of(count()), (time(), time()), option::of((time(), time())), any::<String>())
        .prop_map(|(rate, predicted, (from_s, to_s), shares, sentence)| Finding {
            throughput_bps: BitRate::from_bps(rate),
            steady: Steady { from_s, to_s },
            predicted_bps: predicted.map(BitRate::from_bps),
            equation: Some(sentence.clone()),
            loaded_rtt: Some(Rtt::from_nanos(rate)),
            shares: shares.map(|(network, receive_window)| Shares {
                network,
                receive_window,
                ..Shares::default()
            }),
            sentence,
            next: None,
            ..synthetic::before().1
        })
}

fn item() -> impl Strategy<Value = PlanItem> {
    vec(any::<String>(), 5).prop_map(|mut texts| {
        let mut next = || texts.pop().unwrap_or_default();
        PlanItem { host: next(), key: next(), from: next(), to: next(), why: next() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_record_fits_the_terminal(
        measurement in measurement(), finding in finding(), path in path(),
        plan in vec(item(), 0..3), gain in time(),
        width in 1..130usize, unicode in any::<bool>(),
    ) {
        let style = Style { colour: false, width, unicode };
        let link = path.rate_bps;
        let rates = [finding.throughput_bps, finding.average_bps];
        let interval = Interval {
            stream: Some(u32::MAX),
            sending: true,
            from_s: gain,
            to_s: measurement.spec.seconds,
            bytes: ByteCount::from_bytes(u64::MAX),
            rate: finding.throughput_bps,
            arrival_rate: None,
            retransmits: Some(u64::MAX),
            cwnd: Some(ByteCount::from_bytes(u64::MAX)),
            peer_window: None,
            rtt: finding.loaded_rtt,
            rttvar: None,
            pmtu: None,
            datagrams: None,
            omitted: false,
        };
        let mut table = IntervalTable::new(Protocol::Tcp, vec![1], false, Rows::Brief);
        fits(&table.row(&interval, &style).unwrap_or_default(), width);
        for rows in [Rows::Brief, Rows::Each] {
            terminal::totals(&measurement, rows, &style).lines().for_each(|l| fits(l, width));
        }
        fits(&terminal::progress(gain, Some(measurement.spec.seconds), &rates, &style), width);
        fits(&terminal::finding(&finding, &style), width);
        fits(&terminal::notes(&measurement.notes, &style), width);
        let trace = Trace { label: &finding.sentence, measurement: &measurement };
        fits(&terminal::plot(&[trace, trace], link, &style), width);
        let report = LoopReport {
            path, plan, gain, before: finding.clone(), after: finding, ..synthetic::report()
        };
        fits(&terminal::summary(&report, &style), width);
    }

    #[test]
    fn any_record_gives_a_well_formed_page(
        measurement in measurement(), finding in finding(), path in option::of(path()),
        plan in vec(item(), 0..3), gain in option::of(time()),
        label in any::<String>(), runs in 0..4usize, window: u64, rtt: u64,
    ) {
        let (window, rtt) = (ByteCount::from_bytes(window), Rtt::from_nanos(rtt));
        let window = Some(WindowInFlight { window, rtt });
        let run = PageRun { label: &label, measurement: &measurement, finding: &finding, window };
        let html = html::page(&Page {
            title: label.clone(),
            lead: label.clone(),
            path: path.as_ref(),
            runs: vec![run; runs],
            decision: None,
            plan: &plan,
            gain,
            ..Page::default()
        });
        prop_assert_eq!(balanced(&html), Ok(()));
        prop_assert!(!html.contains("NaN,") && !html.contains("inf,"));
        prop_assert!(!html.contains("=\"NaN") && !html.contains("=\"inf"));
    }

    #[test]
    fn series_are_finite_and_in_order(measurement in measurement()) {
        let bins = series::throughput(&measurement).map_or(Vec::new(), |s| s.1);
        prop_assert!(bins.len() <= 480);
        for bin in &bins {
            prop_assert!(bin.from_s >= 0.0 && bin.to_s.is_finite() && bin.from_s < bin.to_s);
        }
        let rtt = series::rtt(&measurement);
        prop_assert!(rtt.windows(2).all(|w| w[0].t_s <= w[1].t_s));
    }
}

#[test]
fn a_million_segments_give_a_bounded_result() {
    let (measurement, mut finding) = synthetic::before();
    finding.segments = (0..1_000_000u32)
        .map(|n| Segment {
            from_s: f64::from(n) * 1e-3,
            to_s: f64::from(n + 1) * 1e-3,
            limit: Limit::ALL[n as usize % Limit::ALL.len()],
            confidence: None,
            throughput_bps: BitRate::from_bps(1),
            lost_share: 1.0,
            posterior: Vec::new(),
        })
        .collect();
    finding.posterior = vec![Probability { limit: Limit::Cpu, probability: 1.0 }; 1_000_000];
    let text = terminal::finding(&finding, &Style { colour: false, width: 80, unicode: true });
    assert!(text.lines().count() < 60 && text.contains("999940 later segments not shown"));
    let html = html::page(&Page {
        title: String::new(),
        lead: String::new(),
        path: None,
        runs: vec![PageRun {
            label: "test",
            measurement: &measurement,
            finding: &finding,
            window: None,
        }],
        decision: None,
        plan: &[],
        gain: None,
        ..Page::default()
    });
    assert_eq!(balanced(&html), Ok(()));
    assert!(html.len() < 300_000, "{} bytes", html.len());
}

#[test]
fn empty_records_give_text() {
    let (mut measurement, finding) = synthetic::before();
    let style = Style { colour: false, width: 80, unicode: true };
    for stream in &mut measurement.streams {
        stream.sender.truncate(1);
        stream.receiver.truncate(1);
    }
    let trace = Trace { label: "before", measurement: &measurement };
    assert_eq!(terminal::plot(&[trace], None, &style), "       ━━ before: no samples\n");
    measurement.streams.clear();
    measurement.spec.seconds = 0.0;
    assert!(series::throughput(&measurement).is_none());
    assert!(terminal::plot(&[], None, &style).trim().is_empty());
    assert!(terminal::plan(&[], &style).contains("nothing to change"));
    assert!(!terminal::finding(&finding, &style).is_empty());
}

#[test]
fn streams_are_summed() {
    let last = |streams| {
        let measurement = synthetic::measurement(65_535.0, 10.0, streams);
        let bins = series::throughput(&measurement).map_or(Vec::new(), |s| s.1);
        let flight = series::in_flight(&measurement).last().map_or(0, |p| p.value.bytes());
        assert!(flight.abs_diff(65_535) <= 4, "{flight}");
        bins.last().map_or(0.0, |b| b.rate.as_f64())
    };
    let (one, four) = (last(1), last(4));
    assert!((one / four - 1.0).abs() < 0.03, "{one} and {four}");
}
