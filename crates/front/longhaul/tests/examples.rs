//! The programs in `examples/`, which a user would write.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

#[expect(dead_code, reason = "its main")]
#[path = "../examples/hourly.rs"]
mod hourly;

use longhaul::StopFlag;
use longhaul::ping::{PingMethod, PingRequest};
use std::net::TcpListener;
use std::time::Duration;

#[test]
fn a_path_is_measured_in_rounds_and_stored() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("results.jsonl");
    let request = PingRequest {
        method: PingMethod::Tcp(server.local_addr().unwrap().port()),
        count: 2,
        interval: Duration::from_millis(10),
        ..PingRequest::new("127.0.0.1")
    };
    let every = Duration::from_millis(20);
    hourly::measure(&request, &file, every, 2, &StopFlag::new()).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let rounds: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rounds.len(), 2);
    for round in rounds {
        assert_eq!((&round["received"], &round["lost"]), (&2.into(), &0.into()), "{round}");
    }
    let nowhere = PingRequest::new("");
    assert!(hourly::measure(&nowhere, &file, every, 1, &StopFlag::new()).is_err());
}
