//! iperf3's wire protocol against a real iperf3, over a lab's path: both
//! programs' figures of one test agree.

use crate::program::{Ended, LONGHAUL, lab_with, valid};
use serde_json::Value;

const LINK: &str = "rate=200mbit,rtt=10ms";

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn agree(ours: u64, theirs: u64, case: &str) {
    assert!(ours > 1_000_000, "{case}: {ours}");
    let off = ours.abs_diff(theirs) as f64 / theirs as f64;
    assert!(off <= 0.01, "{case}: ours {ours}, theirs {theirs}");
}

/// Streams and direction of each case.
const CASES: [(&str, Option<&str>); 4] =
    [("1", None), ("8", None), ("1", Some("-R")), ("8", Some("-R"))];

fn checked(ended: &Ended, case: &str) -> Value {
    assert_eq!(ended.code, Some(0), "{case}: {}", ended.stderr);
    parsed(&ended.stdout)
}

pub(crate) fn our_client_its_server() {
    for (streams, reverse) in CASES {
        let case = format!("{streams} {reverse:?}");
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("iperf3.json");
        // iperf3 appends to a log; a repeated run begins a new one.
        let server = format!("rm -f {0}; exec iperf3 -s -1 -J --logfile {0}", log.display());
        let mut client = vec![LONGHAUL, "test", "server", "-t", "2", "-P", streams, "--json"];
        client.extend(reverse);
        let ended = valid(|| lab_with(LINK, &["--tuned", "--server", &server], &client));
        let ours = checked(&ended, &case);
        let theirs = parsed(&std::fs::read_to_string(&log).unwrap());
        let sum = |end: &str| theirs["end"][end]["bytes"].as_u64().unwrap();
        let total = |key: &str| -> u64 {
            let streams = ours["streams"].as_array().unwrap();
            streams.iter().map(|stream| stream[key].as_u64().unwrap()).sum()
        };
        // Each end's own count; iperf3's server knows only its own.
        if reverse.is_none() {
            agree(total("received_bytes"), sum("sum_received"), &case);
            assert!(!ours["limit"].is_null(), "{case}: our own kernel sent: {ours}");
        } else {
            agree(total("sent_bytes"), sum("sum_sent"), &case);
            // From the receiver alone nothing is known of the sender's time; a limit that is
            // named is the most probable one.
            assert!(ours["shares"].is_null(), "{case}: {ours}");
            let (limit, first) = (&ours["limit"], &ours["posterior"][0]["limit"]);
            assert!(!first.is_null() && (limit.is_null() || limit == first), "{case}: {ours}");
            assert!(!ours["sentence"].is_null(), "{case}: {ours}");
        }
        assert_eq!(ours["streams"].as_array().unwrap().len().to_string(), streams);
    }
}

pub(crate) fn its_client_our_server() {
    for (streams, reverse) in CASES {
        let case = format!("{streams} {reverse:?}");
        let server = format!("{LONGHAUL} server --one-off");
        let mut client = vec!["iperf3", "-c", "server", "-t", "2", "-P", streams, "-J"];
        client.extend(reverse);
        let ended = valid(|| lab_with(LINK, &["--tuned", "--server", &server], &client));
        let theirs = checked(&ended, &case);
        let sum = |end: &str| theirs["end"][end]["bytes"].as_u64().unwrap();
        // Our server's last line: `test 1: received 48.2 MB in 2.00 s, …`.
        let line = ended.stderr.lines().find(|line| line.contains(" in 2.")).unwrap();
        let mut words = line.split_whitespace();
        let done = words.nth(2).unwrap();
        let amount: f64 = words.next().unwrap().parse().unwrap();
        assert_eq!(words.next(), Some("MB"), "{line}");
        let counted = if done == "sent" { "sum_sent" } else { "sum_received" };
        agree((amount * 1e6) as u64, sum(counted), &case);
        assert_eq!(done == "sent", reverse.is_some(), "{line}");
    }
}
