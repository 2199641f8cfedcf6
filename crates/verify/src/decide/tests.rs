//! Proposals and answers from synthetic findings.

use super::{Proposal, propose};
use perf::client::ClientConfig;
use record::{
    Confidence, Datagrams, Finding, HostFacts, Limit, Measurement, Probability, Protocol,
    ReceiverSample, Sample, Steady, Stream, TestSpec,
};
use units::{BitRate, ByteCount};

/// 10 s of 20 Mbit/s with 50 retransmissions of 17 000 segments.
fn measured(mbit: f64, retransmits: u64) -> Measurement {
    let bytes = |t: f64| (mbit * 1e6 / 8.0 * t) as u64;
    let mut stream = Stream {
        congestion: Some("cubic".to_owned()),
        received_bytes: bytes(10.0),
        received_seconds: 10.0,
        ..Stream::default()
    };
    for step in 0..=100u32 {
        let t_s = f64::from(step) / 10.0;
        stream.sender.push(Sample {
            t_s,
            acked_bytes: bytes(t_s),
            delivered_bytes: bytes(t_s),
            mss_bytes: 1448,
            rtt_us: 30_000,
            min_rtt_us: Some(30_000),
            retransmits: retransmits * u64::from(step) / 100,
            ..Sample::default()
        });
        let received_bytes = bytes(t_s);
        stream.receiver.push(ReceiverSample { t_s, received_bytes, ..ReceiverSample::default() });
    }
    Measurement {
        schema: record::MEASUREMENT_SCHEMA.to_owned(),
        version: String::new(),
        started_unix_s: 0,
        spec: TestSpec { seconds: 10.0, streams: 1, ..TestSpec::default() },
        host: HostFacts::default(),
        peer: String::new(),
        path: None,
        streams: vec![stream],
        sender_cpu: None,
        sender_core_wait: None,
        receiver_cpu: None,
        receiver_core_wait: None,
        notes: Vec::new(),
        latency: None,
        decided: None,
        tool: None,
    }
}

fn finding(confidence: Confidence, posterior: &[(Limit, f64)]) -> Finding {
    let p = |(limit, probability): &(Limit, f64)| Probability {
        limit: *limit,
        probability: *probability,
    };
    Finding {
        throughput_bps: BitRate::from_bps(20_000_000),
        average_bps: BitRate::from_bps(20_000_000),
        steady: Steady { from_s: 0.0, to_s: 10.0 },
        predicted_bps: None,
        equation: None,
        limit: posterior.first().map(|(limit, _)| *limit),
        confidence: Some(confidence),
        shares: None,
        min_rtt: None,
        loaded_rtt: None,
        sentence: String::new(),
        remedies: Vec::new(),
        posterior: posterior.iter().map(p).collect(),
        segments: Vec::new(),
        bottleneck: None,
        caveats: Vec::new(),
    }
}

fn no_test(found: &Finding) -> String {
    match propose(&measured(20.0, 50), found) {
        Proposal::Nothing(decided) => {
            assert_eq!((decided.options, decided.limit), (None, None));
            decided.sentence
        }
        Proposal::Test(test) => panic!("{test:?}"),
    }
}

#[test]
fn a_sure_finding_or_one_without_a_rival_needs_no_test() {
    let both = [(Limit::Aqm, 0.6), (Limit::Loss, 0.3)];
    assert_eq!(
        no_test(&finding(Confidence::Sure, &both)),
        "No second test is needed: aqm is sure."
    );
    let alone = no_test(&finding(Confidence::Likely, &both[..1]));
    assert_eq!(alone, "No second test decides: aqm has no likely alternative.");
    let pair = [(Limit::Loss, 0.5), (Limit::SharedBottleneck, 0.3)];
    let text = no_test(&finding(Confidence::Likely, &pair));
    assert_eq!(text, "No second test from this host tells loss and shared-bottleneck apart.");
    assert!(no_test(&finding(Confidence::Likely, &[])).contains("not identified"));
    let unknown = finding(Confidence::Likely, &[(Limit::Aqm, 0.5), (Limit::Unknown, 0.5)]);
    assert!(no_test(&unknown).contains("no likely alternative"));
}

#[test]
fn bbr_tells_loss_from_a_managed_queue() {
    let first = measured(20.0, 50);
    let found = finding(Confidence::Likely, &[(Limit::Aqm, 0.6), (Limit::Loss, 0.3)]);
    let Proposal::Test(test) = propose(&first, &found) else { panic!("no test") };
    let config = ClientConfig::new("192.0.2.1");
    let second = test.config(&config);
    assert_eq!(second, ClientConfig { congestion: Some("bbr".to_owned()), ..config });
    assert_eq!(
        test.announcement(&second),
        "Second test, to decide between aqm and loss: -C bbr, 10 s"
    );
    for (mbit, limit) in [(90.0, Some(Limit::Loss)), (21.0, Some(Limit::Aqm)), (26.0, None)] {
        let decided = test.answer(&first, &measured(mbit, 50));
        assert_eq!(decided.limit, limit, "{}", decided.sentence);
        assert_eq!(decided.between, [Limit::Aqm, Limit::Loss]);
        assert_eq!(decided.options.as_deref(), Some("-C bbr"));
    }
    let sentence = test.answer(&first, &measured(90.0, 50)).sentence;
    let answer = "It is loss: with -C bbr, 90 Mbit/s instead of 20 Mbit/s, 4.5 times: BBR does";
    assert!(sentence.starts_with(answer), "{sentence}");
}

#[test]
fn datagrams_tell_loss_from_a_policer() {
    let first = measured(20.0, 50);
    let found = finding(Confidence::Likely, &[(Limit::Policer, 0.6), (Limit::Loss, 0.3)]);
    let Proposal::Test(test) = propose(&first, &found) else { panic!("no test") };
    let config = ClientConfig {
        bytes: Some(ByteCount::from_bytes(1 << 20)),
        block: Some(ByteCount::from_bytes(128 << 10)),
        mss: Some(1000),
        congestion: Some("cubic".to_owned()),
        ..ClientConfig::new("192.0.2.1")
    };
    let second = test.config(&config);
    assert_eq!(
        (second.protocol, second.rate),
        (Protocol::Udp, Some(BitRate::from_bps(10_000_000)))
    );
    assert_eq!((second.bytes, second.block, second.congestion.as_deref()), (None, None, None));
    assert!((second.seconds - 20.0).abs() < 1e-9 && second.mss.is_none());
    let lost = |lost: u64| {
        let mut m = measured(10.0, 0);
        m.spec.protocol = Protocol::Udp;
        m.streams[0].datagrams =
            Some(Datagrams { received: 17_000 - lost, lost, ..Datagrams::default() });
        test.answer(&first, &m)
    };
    assert_eq!(lost(50).limit, Some(Limit::Loss), "{}", lost(50).sentence);
    assert_eq!(lost(0).limit, Some(Limit::Policer), "{}", lost(0).sentence);
    assert_eq!(lost(10).limit, None, "{}", lost(10).sentence);
}
