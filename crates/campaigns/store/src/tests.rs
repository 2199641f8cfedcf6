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
            ..TestSpec::default()
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
        decided: None,
        tool: None,
    }
}

#[test]
fn a_saved_measurement_loads_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.json");
    save(&path, &measurement()).unwrap();
    save(&path, &measurement()).unwrap();
    assert_eq!(load(&path).unwrap(), measurement());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
}

proptest::proptest! {
    /// To the last bit: a saved test is explained as it was when it ran.
    #[test]
    fn figures_load_unchanged(bits: u64) {
        let share = f64::from_bits(bits);
        proptest::prop_assume!(share.is_finite());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.json");
        save(&path, &Measurement { sender_cpu: Some(share), ..measurement() }).unwrap();
        proptest::prop_assert_eq!(load(&path).unwrap().sender_cpu, Some(share));
    }
}

#[test]
fn a_failed_write_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/such/folder.json");
    let error = save(&missing, &measurement()).unwrap_err().to_string();
    assert!(error.contains("create its directory first") && !error.contains('\n'), "{error}");
    let error = save(folder.path(), &measurement()).unwrap_err().to_string();
    assert!(error.contains("name a file in it"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_symbolic_link_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    fs::write(&real, "old").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    write(&link, b"new").unwrap();
    assert_eq!(fs::read(&real).unwrap(), b"new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn a_new_file_is_private_and_a_replaced_one_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.json");
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    save(&path, &measurement()).unwrap();
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    save(&path, &measurement()).unwrap();
    assert_eq!(mode(), 0o644);
}

#[test]
fn a_link_that_another_user_can_create_is_not_followed() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (shared, precious) = (folder.path().join("shared"), folder.path().join("precious"));
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(&precious, "precious").unwrap();
    for target in [precious.clone(), folder.path().join("new")] {
        let planted = shared.join("m.json");
        std::os::unix::fs::symlink(target, &planted).unwrap();
        let error = save(&planted, &measurement()).unwrap_err().to_string();
        assert!(error.contains("m.json is a symbolic link") && !error.contains('\n'), "{error}");
        fs::remove_file(planted).unwrap();
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    assert!(!folder.path().join("new").exists());
}

#[test]
fn other_files_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.json");
    let whole = serde_json::to_string(&measurement()).unwrap();
    let half = &whole[..whole.len() / 2];
    let newer = whole.replace(MEASUREMENT_SCHEMA, "longhaul.measurement/99");
    let hole = whole.replace("\"peer\":\"iperf3\",", "");
    for (text, expected) in [
        ("", "not JSON"),
        ("[]", "not a measurement"),
        ("{}", "schema"),
        ("\0\0\0", "not JSON"),
        (half, "not JSON"),
        (&newer, "the version of longhaul that wrote it"),
        (&hole, "peer"),
        ("{\"schema\":7}", "not a measurement"),
    ] {
        fs::write(&path, text).unwrap();
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{text}: {error}");
    }
    assert!(load(&folder.path().join("none")).unwrap_err().to_string().contains("cannot read"));
}

proptest::proptest! {
    /// Any file content is refused without a panic.
    #[test]
    fn bytes_never_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.json");
        fs::write(&path, bytes).unwrap();
        proptest::prop_assert!(load(&path).is_err());
    }
}

#[test]
fn a_limit_of_an_earlier_version_has_its_present_name() {
    let run = serde_json::json!({
        "started_unix_s": 1, "throughput_bps": 8, "average_bps": 8, "block_s": 1.0,
        "blocks_bps": [], "received_bytes": 1, "retransmits": null, "limit": "congestion",
        "min_rtt_ms": null, "other_bytes": null, "sentence": "", "notes": [],
    });
    let text = serde_json::json!({
        "schema": "longhaul.repeat/1", "version": "0.1.0", "spec": measurement().spec, "asked": 1,
        "runs": [run], "notes": [],
        "summary": {"count": 1, "median_bps": null, "mean_bps": null, "min_bps": null,
            "max_bps": null, "mean_low_bps": null, "mean_high_bps": null, "confidence": 0.95,
            "variation": null, "two_groups": false, "warnings": []},
    });
    let baseline = parse_baseline(Path::new("b.json"), text.to_string().as_bytes()).unwrap();
    let Baseline::Repeat(report) = baseline else { panic!("{baseline:?}") };
    assert_eq!(report.runs[0].limit, Some(record::Limit::CongestionAvoidance));
}

#[test]
fn every_version_of_a_measurement_is_read() {
    for schema in MEASUREMENT_SCHEMAS {
        let text =
            serde_json::to_string(&Measurement { schema: schema.to_owned(), ..measurement() });
        let text = text.unwrap();
        assert_eq!(parse(Path::new("m.json"), text.as_bytes()).unwrap().schema, schema);
        assert!(parse_baseline(Path::new("m.json"), text.as_bytes()).is_ok());
    }
    for schema in ["longhaul.measurement/0", "longhaul.measurement/4", "longhaul.repeat/2"] {
        let text =
            serde_json::to_string(&Measurement { schema: schema.to_owned(), ..measurement() });
        let error = parse(Path::new("m.json"), text.unwrap().as_bytes()).unwrap_err().to_string();
        assert!(error.contains(schema), "{error}");
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
            limit: None,
            limits: Vec::new(),
            limit_sentence: String::new(),
            warnings: Vec::new(),
        },
        comparison: None,
        notes: Vec::new(),
    };
    save_repeat(&path, &report).unwrap();
    assert_eq!(load_baseline(&path).unwrap(), Baseline::Repeat(Box::new(report)));
    assert!(load(&path).is_err());
    for (text, expected) in [
        (r#"{"schema":"longhaul.find-rate/1"}"#, "'longhaul.find-rate/1'"),
        (r#"{"schema":"longhaul.repeat/1"}"#, "missing field"),
        (r#"{"schema":7}"#, "not a measurement"),
        ("[", "not JSON"),
    ] {
        fs::write(&path, text).unwrap();
        let error = load_baseline(&path).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
    assert!(load_baseline(&folder.path().join("none")).is_err());
}
