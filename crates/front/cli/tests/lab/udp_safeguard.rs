//! UDP that would disturb others: in a network namespace without routes, so that nothing
//! is sent.

use crate::program::{LONGHAUL, end};
use host::netns::NetNs;
use std::process::{Command, Stdio};

/// An address of the block for documentation (RFC 5737).
const FAR: &str = "192.0.2.7";

fn stderr(words: &[&str]) -> String {
    let namespace = NetNs::create().unwrap();
    let spawn = || {
        let mut command = Command::new(LONGHAUL);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn()
    };
    end(namespace.run(spawn).unwrap().unwrap()).stderr
}

/// Without a terminal there is one line and no question; `iperf3` and `--yes` say nothing.
pub(crate) fn udp_to_others_is_warned_about() {
    let warning = "warning: UDP at 200 Mbit/s to 192.0.2.7 has no congestion control";
    let warned = stderr(&["test", FAR, "-u", "-b", "100mbit", "-P", "2"]);
    assert_eq!(warned.matches(warning).count(), 1, "{warned}");
    let search = stderr(&["test", FAR, "--find-rate"]);
    assert!(search.contains("warning: UDP without a rate limit"), "{search}");
    for quiet in [
        &["test", FAR, "-u", "-b", "100mbit", "--yes"][..],
        &["test", FAR, "-u", "-b", "10mbit"],
        &["test", FAR, "-b", "100mbit"],
        &["test", "127.0.0.1", "-u", "-b", "100mbit"],
        &["iperf3", "-c", FAR, "-u", "-b", "100M"],
    ] {
        let told = stderr(quiet);
        assert!(!told.contains("congestion control"), "{quiet:?}: {told}");
    }
}
