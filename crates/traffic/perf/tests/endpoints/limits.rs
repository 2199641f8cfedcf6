//! Bytes that end a test, as the end that counts them sees it.

use crate::{scripted_client::ScriptedClient, test_server::TestServer};
use iperf3_proto::State;
use serde_json::json;
use stall_retry::retry;
use std::io::Read;
use std::time::Duration;

#[test]
fn a_server_sends_datagrams_until_the_client_ends_the_test() {
    // The client may have lost some of those it asked for.
    let server = TestServer::new();
    let asked = json!({"udp": true, "reverse": true, "len": 1000, "num": 10_000, "parallel": 1,
                       "bandwidth": 8_000_000});
    let client = ScriptedClient::after(&server, &asked, 3);
    let socket = &client.sockets[0];
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for datagram in 0..20 {
        assert_eq!(socket.recv(&mut [0; 2000]).unwrap(), 1000, "datagram {datagram}");
    }
}

#[test]
fn a_server_that_omits_a_warm_up_sends_until_the_client_ends_the_test() {
    // The client's warm-up ends at another byte than the server's.
    let server = TestServer::new();
    let asked = json!({"tcp": true, "reverse": true, "len": 1000, "num": 10_000, "parallel": 1,
                       "omit": 1, "bandwidth": 8_000_000});
    let mut client = ScriptedClient::after(&server, &asked, 3);
    let stream = &mut client.streams[0];
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The warm-up's megabyte, and ten times as much as was asked for.
    stream.read_exact(&mut vec![0; 1_100_000]).unwrap();
}

#[test]
fn the_wait_for_late_datagrams_is_no_part_of_the_test() {
    retry(|| {
        let server = TestServer::new();
        // The server waits 200 ms for the rest.
        let asked = json!({"udp": true, "len": 1000, "num": 10_000, "parallel": 1});
        let mut client = ScriptedClient::after(&server, &asked, 3);
        client.sockets[0].send(&[0; 1000]).unwrap();
        client.send(&[State::TestEnd.byte()]);
        assert_eq!(client.receive(), State::ExchangeResults.byte());
        let results = client.exchange(br#"{"cpu_util_total":0,"streams":[]}"#);
        let seconds = results["streams"][0]["end_time"].as_f64().unwrap();
        assert!(seconds < 0.15, "{seconds} s");
    });
}
