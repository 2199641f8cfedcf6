//! Proposals and answers from synthetic findings.

use super::{Proposal, TrainTest, propose};
use perf::client::{ClientConfig, EndAfter, RisingTrain, TcpOptions, Transport};
use record::{
    Confidence, Datagrams, Direction, EndCondition, Finding, Limit, Measurement, Probability,
    Protocol, ReceiverSample, Sample, Steady, Stream, TestSpec, TimedDatagram,
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
        spec: TestSpec { seconds: 10.0, streams: 1, ..TestSpec::default() },
        streams: vec![stream],
        ..Measurement::default()
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
        next: None,
    }
}

fn no_test(found: &Finding) -> String {
    match propose(&measured(20.0, 50), found) {
        Proposal::Nothing(decided) => {
            assert_eq!((decided.options, decided.limit), (None, None));
            decided.sentence
        }
        test => panic!("{test:?}"),
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
        end: EndAfter::Bytes(ByteCount::from_bytes(1 << 20)),
        block: Some(ByteCount::from_bytes(128 << 10)),
        transport: Transport::Tcp(TcpOptions { mss: Some(1000), ..TcpOptions::default() }),
        congestion: Some("cubic".to_owned()),
        ..ClientConfig::new("192.0.2.1")
    };
    let second = test.config(&config);
    assert_eq!(
        (second.transport.protocol(), second.rate),
        (Protocol::Udp, Some(BitRate::from_bps(10_000_000)))
    );
    assert_eq!((second.block, second.congestion.as_deref()), (None, None));
    assert_eq!(second.end, EndAfter::Seconds(20.0));
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

const PAIR: [(Limit, f64); 3] =
    [(Limit::Policer, 0.3), (Limit::ShallowQueue, 0.25), (Limit::Loss, 0.4)];

fn ours(mbit: f64) -> Measurement {
    Measurement { peer: "longhaul 0.1.0".to_owned(), ..measured(mbit, 50) }
}

fn train(first: &Measurement) -> TrainTest {
    match propose(first, &finding(Confidence::Likely, &PAIR)) {
        Proposal::Train(test) => test,
        other => panic!("{other:?}"),
    }
}

/// How the rate of a train rises.
fn rising(config: &ClientConfig) -> RisingTrain {
    config.transport.udp().unwrap().train.unwrap()
}

/// The bytes that end a test.
fn bytes(config: &ClientConfig) -> u64 {
    let EndAfter::Bytes(bytes) = config.end else { panic!("{config:?}") };
    bytes.bytes()
}

/// A train of 1000-byte datagrams through a bottleneck of 25 Mbit/s that holds 20 of them.
fn through(polices: bool, config: &ClientConfig, count: u64) -> Measurement {
    let (first, last) = (rising(config).from.as_f64(), config.rate.unwrap().as_f64());
    let (mut sent, mut level, interval) = (0.0, 0.0f64, 320.0);
    let mut m = ours(20.0);
    m.streams[0].sent_bytes = count * 1000;
    for number in 1..=count {
        let rate = first + (last - first) * number as f64 / count as f64;
        let gap = 8e9 / rate;
        sent += gap;
        level = f64::max(0.0, level - gap / interval);
        if level + 1.0 <= 20.0 {
            let waits = if polices { 0.0 } else { level * interval };
            level += 1.0;
            let (sent_us, arrived_us) = (sent as u64, (sent + waits) as u64 + 9_000);
            m.streams[0].train.push(TimedDatagram { number, sent_us, arrived_us });
        }
    }
    let received = m.streams[0].train.len() as u64;
    m.streams[0].datagrams =
        Some(Datagrams { length_bytes: 1000, received, ..Datagrams::default() });
    m
}

#[test]
fn a_train_tells_a_policer_from_a_shallow_queue() {
    for (polices, limit) in [(true, Limit::Policer), (false, Limit::ShallowQueue)] {
        let mut test = train(&ours(20.0));
        let config = test.config(&ClientConfig::new("192.0.2.1"));
        assert_eq!((config.transport.protocol(), config.streams), (Protocol::Udp, 1));
        let text = "Second test, to decide between policer and shallow-queue: datagrams at 25 Mbit/s \
                    to 100 Mbit/s until some are lost, at most 6 MB";
        assert_eq!(test.announcement(), text);
        let decided = test.take(&through(polices, &config, 2_000)).unwrap();
        assert_eq!(decided.limit, Some(limit), "{}", decided.sentence);
        assert_eq!(decided.between, [Limit::Policer, Limit::ShallowQueue]);
        let options = decided.options.unwrap();
        assert_eq!(options, "-u -b 100000kbit -n 6000000");
        assert!(decided.sentence.starts_with(&format!(
            "Between policer and shallow-queue it is {}: over the",
            limit.name()
        )));
    }
}

#[test]
fn a_train_that_fills_nothing_is_followed_by_two_faster_ones_at_most() {
    let first = ours(2.0);
    let rate = BitRate::from_bps(2_000_000);
    let slow = Finding { throughput_bps: rate, ..finding(Confidence::Likely, &PAIR) };
    let Proposal::Train(mut test) = propose(&first, &slow) else { panic!("no train") };
    let mut rates = Vec::new();
    let decided = loop {
        let config = test.config(&ClientConfig::new("192.0.2.1"));
        let rising = rising(&config);
        rates.push(rising.from.bps());
        assert!(bytes(&config) <= 6_000_000 && rising.max_seconds <= 2.6);
        assert_eq!(config.rate, Some(rising.from.scaled(4.0)));
        let mut empty = through(true, &config, 100);
        empty.streams[0].train = (1..=100)
            .map(|number| TimedDatagram { number, sent_us: number, arrived_us: number })
            .collect();
        if let Some(decided) = test.take(&empty) {
            break decided;
        }
    };
    assert_eq!(rates, [2_500_000, 8_000_000, 25_600_000]);
    assert_eq!(decided.limit, None);
    assert!(decided.sentence.contains("none of 100 datagrams was lost"), "{}", decided.sentence);
    let nothing = train(&ours(20.0)).take(&ours(20.0)).unwrap();
    assert!(nothing.limit.is_none() && nothing.sentence.contains("same version"), "{nothing:?}");
}

#[test]
fn no_train_sends_more_than_the_user_asked_for() {
    let alone = [(Limit::Policer, 0.9)];
    let refused = |m: &Measurement| match propose(m, &finding(Confidence::Likely, &alone)) {
        Proposal::Nothing(decided) => decided.sentence,
        other => panic!("{other:?}"),
    };
    let mut m = ours(20.0);
    m.spec.streams = 2;
    m.spec.rate_bps = Some(BitRate::from_bps(15_000_000));
    let config = train(&m).config(&ClientConfig::new("192.0.2.1"));
    assert_eq!(config.rate.unwrap().bps(), 30_000_000, "of both streams");
    m.spec.rate_bps = Some(BitRate::from_bps(10_000_000));
    assert!(refused(&m).contains("a rate above the 20 Mbit/s that arrived (-b)"));
    let mut m = ours(20.0);
    m.spec.end = EndCondition::Bytes(ByteCount::from_bytes(1_000_000));
    let mut test = train(&m);
    let mut sent = 0;
    loop {
        let config = test.config(&ClientConfig::new("192.0.2.1"));
        let bytes = bytes(&config).next_multiple_of(1448);
        sent += bytes;
        let mut far = ours(20.0);
        far.streams[0].sent_bytes = bytes;
        far.streams[0].train = vec![TimedDatagram { number: 1, sent_us: 1, arrived_us: 1 }];
        if test.take(&far).is_some() {
            break;
        }
    }
    assert!(sent > 900_000 && sent <= 1_000_000, "{sent}");
    m.spec.end = EndCondition::Bytes(ByteCount::from_bytes(100_000));
    assert!(refused(&m).contains("at least 150"), "{}", refused(&m));
    let foreign = Measurement { peer: "iperf3".to_owned(), ..ours(20.0) };
    assert!(refused(&foreign).contains("longhaul at both ends"), "{}", refused(&foreign));
    let mut both = ours(20.0);
    both.spec.direction = Direction::Both;
    assert!(refused(&both).contains("one direction"));
}

#[test]
fn trains_are_for_policers_and_queues() {
    let is_train = |confidence, posterior: &[(Limit, f64)]| {
        matches!(propose(&ours(20.0), &finding(confidence, posterior)), Proposal::Train(_))
    };
    assert!(is_train(Confidence::Likely, &[(Limit::Policer, 0.98)]), "queues are never excluded");
    let unknown = [(Limit::Unknown, 0.3), (Limit::Policer, 0.3), (Limit::ShallowQueue, 0.3)];
    assert!(is_train(Confidence::Likely, &unknown));
    assert!(!is_train(Confidence::Sure, &[(Limit::Policer, 1.0)]), "known already");
    assert!(!is_train(Confidence::Likely, &[(Limit::Loss, 0.6), (Limit::Policer, 0.3)]));
    let full = [(Limit::PathRate, 0.6), (Limit::ShallowQueue, 0.3)];
    assert!(!is_train(Confidence::Likely, &full), "-C bbr decides");
    let shared = [(Limit::SharedBottleneck, 0.6), (Limit::ShallowQueue, 0.3)];
    assert!(is_train(Confidence::Likely, &shared), "no other test decides");
    let foreign = propose(&measured(20.0, 50), &finding(Confidence::Likely, &PAIR));
    assert!(!matches!(foreign, Proposal::Train(_)), "another test, or none");
}

/// Random loss that is none at half the rate is followed by trains.
#[test]
fn a_train_follows_a_test_whose_answer_is_one_of_both() {
    let first = ours(20.0);
    let loss = [(Limit::Loss, 0.6), (Limit::Policer, 0.3)];
    let found = finding(Confidence::Likely, &loss);
    let Proposal::Test(test) = propose(&first, &found) else { panic!("no test") };
    let mut second = measured(10.0, 0);
    second.spec.protocol = Protocol::Udp;
    second.streams[0].datagrams = Some(Datagrams { received: 17_000, ..Datagrams::default() });
    let answer = test.answer(&first, &second);
    assert_eq!(answer.limit, Some(Limit::Policer), "{}", answer.sentence);
    let train = super::train::after(&first, &found, &answer).unwrap();
    let mut announced = Vec::new();
    let told = train.run::<()>(&ClientConfig::new("192.0.2.1"), &mut |text, config| {
        announced.push(text.to_owned());
        Ok(Some(through(false, config, 2_000)))
    });
    assert_eq!(told.unwrap().limit, Some(Limit::ShallowQueue));
    assert_eq!(announced.len(), 1);
    let lossy = record::Decided { limit: Some(Limit::Loss), ..answer };
    assert!(super::train::after(&first, &found, &lossy).is_none());
}

#[test]
fn a_test_that_is_interrupted_or_fails_answers_nothing() {
    let config = ClientConfig::new("192.0.2.1");
    let interrupted = train(&ours(20.0)).run::<()>(&config, &mut |_, _| Ok(None)).unwrap();
    assert!(interrupted.limit.is_none() && interrupted.sentence.contains("interrupted"));
    let (failed, error) = train(&ours(20.0)).run(&config, &mut |_, _| Err("refused")).unwrap_err();
    assert!(failed.sentence.contains("failed") && error == "refused");
}
