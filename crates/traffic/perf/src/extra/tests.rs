//! The extension of the results, between versions and from hostile peers.

use super::*;
use serde_json::{Value, json};

fn read(value: &Value) -> Option<Extra> {
    Extra::parse(&value.to_string())
}

#[test]
fn samples_survive_as_columns() {
    let samples: Vec<Sample> = (0..3u32)
        .map(|i| Sample {
            t_s: f64::from(i) / 10.0,
            written_bytes: 1_000_000_000 + u64::from(i),
            delivery_app_limited: i == 1,
            min_rtt_us: (i > 0).then_some(i),
            ..Sample::default()
        })
        .collect();
    let receiver = [ReceiverSample { t_s: 0.1, received_bytes: 7, ..ReceiverSample::default() }];
    let datagrams = Datagrams {
        received: 5,
        jitter: Rtt::from_micros(1500),
        loss_bursts: vec![LossBurst { from: 1, to: 1, count: 3 }],
        ..Datagrams::default()
    };
    let train = [(1, 0, 9_000_000), (2, 500, 9_000_480), (4, 1_500, 9_001_511)]
        .map(|(number, sent_us, arrived_us)| TimedDatagram { number, sent_us, arrived_us });
    let notes = ["a note".to_owned()];
    let sent = ExtraMessage {
        version: "9",
        format: RESULTS_FORMAT,
        sender_cpu: Some(0.5),
        sender_core_wait: None,
        receiver_cpu: None,
        receiver_core_wait: None,
        notes: &notes,
        streams: vec![StreamMessage {
            id: 1,
            congestion: Some("cubic"),
            unsent_limit_bytes: Some(524_288),
            datagrams: Some(datagrams.clone()),
            train: &train,
            sender: &samples,
            receiver: &receiver,
        }],
    };
    let results = Results::default();
    let wire =
        iperf3_proto::framing::encode(&ExtendedResults { results: &results, longhaul: Some(sent) });
    let mut decoder = Decoder::for_results();
    decoder.take(&wire.unwrap()).unwrap();
    let mut back = Extra::read(&decoder).unwrap();
    assert_eq!(
        (back.version.as_str(), &back.notes[..], back.cpu.sender),
        ("9", &notes[..], Some(0.5))
    );
    assert_eq!(back.streams[0].datagrams, Some(datagrams));
    assert_eq!(back.streams[0].train, train);
    assert_eq!(back.streams[0].unsent_limit_bytes, Some(524_288));
    assert_eq!(back.streams[0].congestion.as_deref(), Some("cubic"));
    assert_eq!(back.take_samples(1), (samples, receiver.to_vec()));
    assert_eq!(back.take_samples(2), (Vec::new(), Vec::new()));
}

#[test]
fn an_invalid_extension_is_ignored() {
    for value in [
        json!(null),
        json!(7),
        json!({"version": 7}),
        json!({"streams": 1, "version": "1"}),
        json!({"version": "1", "streams": [{"id": -4}]}),
    ] {
        assert!(read(&value).is_none(), "{value}");
    }
    let value = json!({"version": "1\u{1b}[2J", "notes": ["\u{1b}[2Jx".repeat(400), 7], "streams": [
        {"id": 1, "sender": {"t_s": [0, "x"], "mss_bytes": 5}, "receiver": [1]}]});
    let mut extra = read(&value).unwrap();
    assert_eq!(extra.version, "1[2J");
    assert!(extra.notes[0].len() <= MAX_NOTE_CHARS && !extra.notes[0].contains('\u{1b}'));
    assert_eq!(extra.take_samples(1), (Vec::new(), Vec::new()));
    let many =
        json!({"version": "1", "streams": vec![json!({"unsent_limit_bytes": u64::MAX}); 300]});
    let many = read(&many).unwrap().streams;
    assert_eq!(
        (many.len(), many[0].unsent_limit_bytes),
        (MAX_STREAMS, None),
        "no window is so large"
    );
}

/// What longhaul wrote before the format had a version of its own.
const FORMAT_1: &str = r#"{"version":"0.1.0","sender_cpu":0.25,"sender_core_wait":null,
    "receiver_cpu":null,"receiver_core_wait":null,"notes":["the server clamped the window"],
    "streams":[{"id":1,"congestion":null,"datagrams":null,"sender":{},"receiver":{
    "t_s":[0.0,0.1],"received_bytes":[0,1000],"window_bytes":[null,65536],
    "buffer_bytes":[131072,131072],"min_rtt_us":[40000,40000]}}]}"#;

fn receiver_samples() -> [ReceiverSample; 2] {
    let sample = |t_s, received_bytes, window_bytes| ReceiverSample {
        t_s,
        received_bytes,
        window_bytes,
        buffer_bytes: Some(131_072),
        min_rtt_us: Some(40_000),
        ..ReceiverSample::default()
    };
    [sample(0.0, 0, None), sample(0.1, 1000, Some(65_536))]
}

#[test]
fn a_new_client_reads_an_old_server() {
    let mut extra = Extra::parse(FORMAT_1).unwrap();
    assert_eq!((extra.version.as_str(), extra.cpu.sender), ("0.1.0", Some(0.25)));
    assert_eq!(extra.notes, ["the server clamped the window"]);
    assert_eq!(extra.take_samples(1), (Vec::new(), receiver_samples().to_vec()));
}

#[test]
fn an_old_client_reads_a_new_server() {
    let (samples, notes) = (receiver_samples(), ["the server clamped the window".to_owned()]);
    let message = ExtraMessage {
        version: "0.1.0",
        format: RESULTS_FORMAT,
        sender_cpu: Some(0.25),
        sender_core_wait: None,
        receiver_cpu: None,
        receiver_core_wait: None,
        notes: &notes,
        streams: vec![StreamMessage {
            id: 1,
            congestion: None,
            unsent_limit_bytes: None,
            datagrams: None,
            train: &[],
            sender: &[],
            receiver: &samples,
        }],
    };
    // An old client ignores the keys that it does not know, and must find all it knows.
    let mut sent = serde_json::to_value(&message).unwrap();
    let format = sent.as_object_mut().unwrap().remove("format");
    assert_eq!(format, Some(json!(RESULTS_FORMAT)));
    let receiver = sent["streams"][0]["receiver"].as_object_mut().unwrap();
    for later in ["rtt_us", "unread_bytes", "segments", "out_of_order", "window_scale", "cpu_us"] {
        assert_eq!(receiver.remove(later), Some(json!([null, null])), "{later}");
    }
    assert_eq!(sent, serde_json::from_str::<Value>(FORMAT_1).unwrap());
}

#[test]
fn keys_of_later_versions_are_ignored() {
    let mut value: Value = serde_json::from_str(FORMAT_1).unwrap();
    value["format"] = json!(RESULTS_FORMAT);
    value["later"] = json!({"any": [1, {"thing": null}]});
    value["streams"][0]["later"] = json!("x");
    value["streams"][0]["receiver"]["later_us"] = json!([1, 2]);
    let mut extra = read(&value).unwrap();
    assert_eq!(extra.take_samples(1).1, receiver_samples());
}

#[test]
fn a_newer_format_is_ignored_with_a_note() {
    let formats =
        [json!(RESULTS_FORMAT + 1), json!(1e300), json!(-1), json!(2.5), json!("3"), json!([3])];
    for format in formats {
        // Whatever else it has.
        for streams in [json!([{"id": 1, "sender": {"t_s": [0]}}]), json!("none"), json!([7])] {
            let value = json!({"version": "9.0\u{1b}[2J", "format": format, "streams": streams, "notes": 1});
            let extra = read(&value).unwrap();
            assert_eq!(extra.version, "9.0[2J", "{value}");
            assert!(extra.streams.is_empty() && extra.cpu == ThreadShares::default(), "{value}");
            assert_eq!(extra.notes.len(), 1, "{value}");
            assert!(extra.notes[0].starts_with("longhaul 9.0[2J at the other end"), "{value}");
        }
    }
    assert!(read(&json!({"version": 9, "format": 99})).is_none());
}
