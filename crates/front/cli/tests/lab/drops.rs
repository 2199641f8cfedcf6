//! Losses that were listed are the losses that are counted: by our ends and by
//! iperf3's, whichever sends.

use crate::program::{LONGHAUL, carried};
use serde_json::Value;

/// What the path takes: eight packets, all of them in the midst of 1000
/// datagrams, which come so slowly that the smallest buffer holds those of 150 ms.
const LIST: &str = "list:200+300-303+500+700-701";
const LOST: u64 = 8;

/// Datagrams lost by the client's report, and by the path's.
fn lost(client: &str, server: &str, reverse: bool) -> (u64, u64) {
    let way = if reverse { "down" } else { "up" };
    let link = format!("rate=100mbit,rtt=10ms,{way}.loss={LIST}");
    let command =
        format!("{client} -c server -u -b 8M -l 1000 -t 1 -J {}", if reverse { "-R" } else { "" });
    let (ended, path) = carried(&link, &["--server", server], &["sh", "-c", &command]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let counted = report.pointer("/end/sum/lost_packets").and_then(Value::as_u64);
    let counted = counted.unwrap_or_else(|| panic!("{client} {server} {reverse}: {report}"));
    (counted, path.pointer("/achieved/lost").and_then(Value::as_u64).unwrap())
}

pub(crate) fn listed_losses_are_counted_exactly() {
    let ours = format!("{LONGHAUL} iperf3");
    for (client, server) in [(&ours[..], "iperf3"), ("iperf3", &ours), (&ours, &ours)] {
        for reverse in [false, true] {
            let (counted, taken) = lost(client, &format!("{server} -s"), reverse);
            assert_eq!((counted, taken), (LOST, LOST), "{client} {server} {reverse}");
        }
    }
}
