//! Files that real tools wrote over lab paths with a known limit: what each finding names, what
//! it must not name, and what files that are cut or altered give. `files/README.md` lists the
//! paths.

use proptest::prelude::*;
use record::{Confidence, Finding, Limit, Measurement, Unavailable};
use std::path::Path;

fn kept(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn transfers(name: &str) -> Vec<Measurement> {
    tool_results::read(&kept(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn first(name: &str) -> (Measurement, Finding) {
    let measurement = transfers(name).swap_remove(0);
    let finding = diagnose::explain(&measurement);
    (measurement, finding)
}

/// Each file's tool, and the limit of its path.
const NAMED: [(&str, &str, Limit); 32] = [
    ("iperf3-3.1.7-window.json", "iperf3 3.1.7", Limit::FixedWindow),
    ("iperf3-3.12-window.json", "iperf3 3.12", Limit::ReceiveWindow),
    ("iperf3-3.12-loss.json", "iperf3 3.12", Limit::Loss),
    ("iperf3-3.12-queue.json", "iperf3 3.12", Limit::ShallowQueue),
    ("iperf3-3.12-app.json", "iperf3 3.12", Limit::Application),
    ("iperf3-3.12-rate.json", "iperf3 3.12", Limit::PathRate),
    ("iperf3-3.21-stream-window.json", "iperf3 3.21", Limit::ReceiveWindow),
    ("iperf3-3.21-stream-loss.json", "iperf3 3.21", Limit::Loss),
    ("iperf3-3.21-stream-queue.json", "iperf3 3.21", Limit::ShallowQueue),
    ("iperf3-3.21-stream-app.json", "iperf3 3.21", Limit::Application),
    ("iperf3-3.21-stream-rate.json", "iperf3 3.21", Limit::PathRate),
    ("iperf3-3.1.7-loss.json", "iperf3 3.1.7", Limit::Loss),
    ("iperf3-3.1.7-rate.json", "iperf3 3.1.7", Limit::PathRate),
    ("iperf3-3.7-loss.json", "iperf3 3.7", Limit::Loss),
    ("iperf3-3.17.1-loss.json", "iperf3 3.17.1", Limit::Loss),
    ("iperf3-3.17.1-stream-loss.json", "iperf3 3.17.1", Limit::Loss),
    ("iperf2-window.txt", "iperf 2", Limit::ReceiveWindow),
    ("iperf2-loss.txt", "iperf 2", Limit::Loss),
    ("iperf2-queue.txt", "iperf 2", Limit::ShallowQueue),
    ("iperf2-app.txt", "iperf 2", Limit::Application),
    ("iperf2-rate.txt", "iperf 2", Limit::PathRate),
    ("ss-window.txt", "ss", Limit::ReceiveWindow),
    ("ss-loss.txt", "ss", Limit::Loss),
    ("ss-queue.txt", "ss", Limit::ShallowQueue),
    ("ss-app.txt", "ss", Limit::Application),
    ("ss-rate.txt", "ss", Limit::PathRate),
    ("ndt7-client-window.json", "ndt7-client", Limit::ReceiveWindow),
    ("ndt7-download-rate.json", "ndt-server", Limit::PathRate),
    ("ndt7-download-loss.json", "ndt-server", Limit::PathRate),
    ("ndt7-upload-rate.json", "ndt-server", Limit::PathRate),
    ("ndt7-download-queue.json", "ndt-server", Limit::ShallowQueue),
    ("flent-loss.flent.gz", "flent 2.3.0", Limit::Loss),
];

#[test]
fn the_finding_of_each_file_names_the_limit_of_its_path() {
    let mut wrong = Vec::new();
    for (name, tool, limit) in NAMED {
        let (measurement, finding) = first(name);
        let source = measurement.tool.as_ref().unwrap();
        assert_eq!(source.tool, tool, "{name}");
        if finding.limit != Some(limit) {
            wrong.push(format!(
                "{name}: {:?}, not {limit:?}: {:?}",
                finding.limit, finding.posterior
            ));
        }
        let has_timers = !source.unavailable.contains(&Unavailable::SenderTimers);
        assert!(has_timers || finding.confidence != Some(Confidence::Sure), "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Rates alone, or neither the window nor the requested rate: more than one limit fits.
#[test]
fn where_the_facts_are_missing_no_limit_is_named() {
    for name in [
        "iperf2-window.csv",
        "iperf2-loss.csv",
        "iperf2-queue.csv",
        "iperf2-app.csv",
        "iperf2-rate.csv",
        "iperf2-ecsv-loss.csv",
        "iperf2-server-loss.txt",
        "iperf3-3.1.7-app.json",
        "iperf3-3.12-reverse-loss.json",
        "iperf3-3.12-reverse-window.json",
        "iperf3-3.12-server-side.json",
    ] {
        let (measurement, finding) = first(name);
        let named = finding.limit.filter(|limit| *limit != Limit::Unknown);
        assert_eq!(named, None, "{name}: {:?}", finding.posterior);
        assert!(measurement.tool.unwrap().unavailable.contains(&Unavailable::SenderTimers));
        assert!(finding.average_bps.bps() > 0, "{name}");
    }
}

/// The goodput of a file is that of its own totals, in Mbit/s.
#[test]
fn totals_are_those_of_the_file() {
    for (name, mbit, retransmits) in [
        ("iperf3-3.12-loss.json", 8.69, Some(12)),
        ("iperf3-3.1.7-loss.json", 8.20, Some(21)),
        ("iperf3-3.21-stream-loss.json", 5.56, Some(19)),
        ("iperf3-3.12-reverse-loss.json", 9.81, Some(26)),
        ("iperf2-app.csv", 20.97, None),
        ("iperf2-app.txt", 20.97, Some(0)),
        ("flent-rate-stats.flent.gz", 47.6, Some(154)),
    ] {
        let (measurement, finding) = first(name);
        let found = finding.average_bps.as_f64() / 1e6;
        assert!((found / mbit - 1.0).abs() < 0.01, "{name}: {found}");
        assert_eq!(measurement.streams[0].retransmits, retransmits, "{name}");
    }
    let parallel = first("iperf3-3.12-parallel-rate.json").0;
    assert_eq!((parallel.streams.len(), parallel.spec.streams), (4, 4));
    let both = first("iperf3-3.12-bidir.json").0;
    let reverse: Vec<bool> = both.streams.iter().map(|stream| stream.reverse).collect();
    assert_eq!(reverse, [false, true]);
    assert!(both.tool.unwrap().next_test.contains("--bidir"));
}

#[test]
fn datagrams_are_counted() {
    for (name, sent, lost) in [
        // One of them was sent after the last arrival.
        ("iperf3-3.12-udp.json", Some(25_884), 6_964),
        ("iperf2-udp.txt", Some(26_752), 6_055),
        ("iperf2-server-udp.csv", None, 5_808),
    ] {
        let (measurement, finding) = first(name);
        let counted = measurement.streams[0].datagrams.as_ref().unwrap();
        assert_eq!((counted.sent, counted.lost), (sent, lost), "{name}");
        assert!(finding.sentence.contains("were lost"), "{}", finding.sentence);
    }
    let error = tool_results::read(&kept("iperf2-udp.csv")).unwrap_err().to_string();
    assert!(error.contains("no loss report") && error.lines().count() == 1, "{error}");
}

#[test]
fn what_is_known_of_the_test_is_asked_for_again() {
    for (name, command) in [
        ("iperf3-3.12-window.json", "longhaul test server -w 64K --decide"),
        ("iperf3-3.12-app.json", "longhaul test server -b 20000kbit --decide"),
        ("iperf3-3.12-parallel-rate.json", "longhaul test server -P 4 --decide"),
        ("iperf3-3.12-reverse-loss.json", "longhaul test server -R --decide"),
        ("iperf3-3.12-server-side.json", "longhaul test 10.0.0.2 --decide"),
        ("ss-loss.txt", "longhaul test 10.0.0.2 --decide"),
        ("ndt7-download-rate.json", "longhaul test 10.0.0.2 -R --decide"),
        ("flent-window.flent.gz", "longhaul test server -R --decide"),
    ] {
        assert_eq!(first(name).0.tool.unwrap().next_test, command, "{name}");
    }
}

#[test]
fn flent_has_the_rtt_under_load() {
    let latency = first("flent-rate-stats.flent.gz").0.latency.unwrap();
    let (before, during) = (latency.before.p50_ms.unwrap(), latency.during.p50_ms.unwrap());
    assert!((20.0..21.0).contains(&before) && (30.0..40.0).contains(&during), "{latency:?}");
    assert!(latency.after.count > 10 && latency.after.p50_ms.unwrap() < 21.0);
}

#[test]
fn a_client_of_ndt7_has_both_directions() {
    let all = transfers("ndt7-client-rate.json");
    let names: Vec<&str> =
        all.iter().map(|one| one.tool.as_ref().unwrap().transfer.as_str()).collect();
    assert_eq!(names, ["download", "upload"]);
    assert!(all.iter().all(|one| one.spec.target == "server"));
}

/// One sample of ss has the totals since the connection began.
#[test]
fn one_sample_of_ss_is_explained() {
    let text = String::from_utf8(kept("ss-window.txt")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len() - 5..].join("\n");
    let measurement = tool_results::read(last.as_bytes()).unwrap().swap_remove(0);
    let finding = diagnose::explain(&measurement);
    assert_eq!(finding.limit, Some(Limit::ReceiveWindow), "{:?}", finding.posterior);
    assert!(measurement.lacks(Unavailable::Series));
    // Without the times the busy timer gives them.
    let untimed: Vec<&str> =
        lines.iter().copied().filter(|line| line.parse::<f64>().is_err()).collect();
    let measurement = tool_results::read(untimed.join("\n").as_bytes()).unwrap().swap_remove(0);
    assert!(measurement.lacks(Unavailable::Times));
    assert_eq!(diagnose::explain(&measurement).limit, Some(Limit::ReceiveWindow));
}

#[test]
fn other_files_are_named_in_one_line() {
    let deep = "[".repeat(100_000);
    for (text, said) in [
        ("", "it is empty"),
        ("  \n\n", "it is empty"),
        ("hello\nworld", "it begins with 'hello'"),
        (r#"{"nmap":{"args":"-sS"}}"#, "its first key is 'nmap'"),
        ("[1,2]", "it begins with '[1,2]'"),
        ("{}", "JSON of an unknown tool"),
        ("BZh91AY&SY", "a bzip2 file, but it is truncated"),
        ("[ ID] Interval  Transfer\n- - - - - -\n", "it begins with '[ ID]"),
        (
            r#"{"start":{"version":"iperf 3.12"},"intervals":[],"end":{},"error":"refused"}"#,
            "'refused'",
        ),
        (deep.as_str(), "it begins with"),
    ] {
        let error = tool_results::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("accepted are"), "{text:.40}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let error = tool_results::read(b"\x7fELF\x02\x01\0\0\xff").unwrap_err().to_string();
    assert!(error.contains("not text"), "{error}");
}

#[test]
fn a_file_that_ends_too_early_says_so() {
    for (name, what) in [
        ("iperf3-3.12-loss.json", "iperf3's JSON output"),
        ("ndt7-download-rate.json", "ndt7's archival JSON"),
        ("flent-loss.flent.gz", "a gzip file"),
    ] {
        let whole = kept(name);
        let error = tool_results::read(&whole[..whole.len() / 2]).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("truncated"), "{name}: {error}");
    }
    // A test that was ended early lacks its last lines.
    let stream = String::from_utf8(kept("iperf3-3.21-stream-loss.json")).unwrap();
    let lines: Vec<&str> = stream.lines().collect();
    let early = lines[..lines.len() - 1].join("\n");
    assert!(tool_results::read(early.as_bytes()).is_ok());
    let error = tool_results::read(&early.as_bytes()[..early.len() - 9]).unwrap_err().to_string();
    assert!(error.contains("line 11 is truncated"), "{error}");
}

/// A gzip file that unpacks to more than the limit is read up to it.
#[test]
fn a_file_that_unpacks_without_end_is_refused() {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let zeros = vec![b' '; 1 << 20];
    for _ in 0..65 {
        encoder.write_all(&zeros).unwrap();
    }
    let error = tool_results::read(&encoder.finish().unwrap()).unwrap_err().to_string();
    assert!(error.contains("unpacks to more than"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Any part of a file, with a byte altered, is explained or refused in one line.
    #[test]
    fn cut_and_altered_files(index in 0..NAMED.len(), end in 0.0..1.0f64, at in 0.0..1.0f64, byte: u8) {
        let mut bytes = kept(NAMED[index].0);
        let place = (at * bytes.len() as f64) as usize;
        bytes[place] = byte;
        bytes.truncate((end * 1.5 * bytes.len() as f64) as usize);
        match tool_results::read(&bytes) {
            Ok(all) => for one in &all {
                let _ = diagnose::explain(one);
            },
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }
}
