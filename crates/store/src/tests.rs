use super::*;
use record::{Direction, HostFacts, Sample, Stream, TestSpec};
use std::fs;

fn measurement() -> Measurement {
    Measurement {
        schema: MEASUREMENT_SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        started_unix_s: 1_700_000_000,
        spec: TestSpec {
            target: "server".to_owned(),
            port: 5201,
            protocol: record::Protocol::Tcp,
            direction: Direction::Forward,
            seconds: 1.0,
            streams: 1,
            window_bytes: None,
            rate_bps: None,
            congestion: None,
        },
        host: HostFacts::default(),
        peer: "iperf3".to_owned(),
        path: None,
        streams: vec![Stream {
            id: 1,
            received_bytes: u64::MAX,
            sender: vec![Sample { t_s: 0.1, ..Sample::default() }],
            ..Stream::default()
        }],
        sender_cpu: Some(0.25),
        sender_core_wait: None,
        receiver_cpu: None,
        receiver_core_wait: None,
        notes: vec!["a note".to_owned()],
        latency: None,
    }
}

#[test]
fn what_is_saved_is_what_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.json");
    save(&path, &measurement()).unwrap();
    save(&path, &measurement()).unwrap();
    assert_eq!(load(&path).unwrap(), measurement());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_failed_write_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/such/folder.json");
    let error = save(&missing, &measurement()).unwrap_err().to_string();
    assert!(error.contains("make its folder first") && !error.contains('\n'), "{error}");
    let error = save(folder.path(), &measurement()).unwrap_err().to_string();
    assert!(error.contains("name a file in it"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_link_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    fs::write(&real, "old").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    write(&link, b"new").unwrap();
    assert_eq!(fs::read(&real).unwrap(), b"new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn anything_else_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.json");
    let whole = serde_json::to_string(&measurement()).unwrap();
    let half = &whole[..whole.len() / 2];
    let newer = whole.replace("measurement/2", "measurement/3");
    let hole = whole.replace("\"peer\":\"iperf3\",", "");
    for (text, says) in [
        ("", "not JSON"),
        ("[]", "no measurement"),
        ("{}", "schema"),
        ("\0\0\0", "not JSON"),
        (half, "not JSON"),
        (&newer, "the longhaul that wrote it"),
        (&hole, "peer"),
        ("{\"schema\":7}", "no measurement"),
    ] {
        fs::write(&path, text).unwrap();
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{text}: {error}");
    }
    assert!(load(&folder.path().join("none")).unwrap_err().to_string().contains("cannot read"));
}

proptest::proptest! {
    /// Not a panic, whatever a file holds.
    #[test]
    fn bytes_never_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.json");
        fs::write(&path, bytes).unwrap();
        proptest::prop_assert!(load(&path).is_err());
    }
}

#[test]
fn a_baseline_is_one_test_or_several() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.json");
    save(&path, &measurement()).unwrap();
    assert_eq!(load_baseline(&path).unwrap(), Baseline::Measurement(Box::new(measurement())));
    let report = RepeatReport {
        schema: REPEAT_SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        spec: measurement().spec,
        asked: 3,
        runs: Vec::new(),
        summary: record::RepeatSummary {
            count: 0,
            median_bps: None,
            mean_bps: None,
            min_bps: None,
            max_bps: None,
            mean_low_bps: None,
            mean_high_bps: None,
            confidence: 0.95,
            variation: None,
            two_groups: false,
            warnings: Vec::new(),
        },
        comparison: None,
        notes: Vec::new(),
    };
    save_repeat(&path, &report).unwrap();
    assert_eq!(load_baseline(&path).unwrap(), Baseline::Repeat(Box::new(report)));
    assert!(load(&path).is_err());
    for (text, said) in [
        (r#"{"schema":"longhaul.find-rate/1"}"#, "'longhaul.find-rate/1'"),
        (r#"{"schema":"longhaul.repeat/1"}"#, "missing field"),
        (r#"{"schema":7}"#, "no measurement"),
        ("[", "not JSON"),
    ] {
        fs::write(&path, text).unwrap();
        let error = load_baseline(&path).unwrap_err().to_string();
        assert!(error.contains(said) && !error.contains('\n'), "{error}");
    }
    assert!(load_baseline(&folder.path().join("none")).is_err());
}
