//! `--max-rate` and `--max-bytes`, on tests of any length.

use crate::{
    scripted_client::ScriptedClient,
    test_server::{TestServer, run},
};
use iperf3_proto::Refusal;
use perf::client::{EndAfter, RisingTrain, Transport, UdpOptions};
use perf::{PerfError, ServerEvent};
use record::{Direction, Protocol};
use serde_json::json;
use std::{io::Write, net::TcpStream, thread, time::Duration};
use units::{BitRate, ByteCount};

const RATE: BitRate = BitRate::from_bps(20_000_000);

fn server() -> TestServer {
    TestServer::with(|config| config.limits.rate = Some(RATE))
}

#[test]
fn a_one_second_test_respects_the_rate_limit() {
    let server = server();
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let mut config = server.config();
        config.transport = protocol.into();
        config.end = EndAfter::Seconds(1.0);
        let error = run(&config).unwrap_err();
        let total_rate = Refusal::TOTAL_RATE;
        assert!(
            matches!(error, PerfError::Refused { refusal, .. } if refusal == total_rate),
            "{protocol:?}: {error}"
        );
    }
    let over = |event: &&ServerEvent| matches!(event, ServerEvent::Failed { why, .. } if why.contains("a rate above 20 Mbit/s"));
    assert_eq!(server.events.lock().unwrap().iter().filter(over).count(), 2);
}

#[test]
fn a_client_within_the_rate_is_not_disturbed() {
    let server = server();
    for (direction, protocol) in [
        (Direction::Forward, Protocol::Tcp),
        (Direction::Reverse, Protocol::Tcp),
        (Direction::Forward, Protocol::Udp),
        (Direction::Reverse, Protocol::Udp),
    ] {
        let mut config = server.config();
        (config.direction, config.transport) = (direction, protocol.into());
        config.streams = 2;
        // As much as the limit permits, over both streams.
        config.rate = Some(BitRate::from_bps(RATE.bps() / 2));
        run(&config).unwrap();
    }
}

/// The rate to which a train rises is the one that counts.
#[test]
fn a_train_above_the_rate_is_refused() {
    let server = server();
    let mut config = server.config();
    let from = BitRate::from_bps(RATE.bps() / 2);
    let train = Some(RisingTrain { from, max_seconds: 1.0 });
    config.transport = Transport::Udp(UdpOptions { train, ..UdpOptions::default() });
    config.rate = Some(BitRate::from_bps(RATE.bps() + 1));
    config.end = EndAfter::Bytes(ByteCount::from_bytes(100_000));
    let error = run(&config).unwrap_err();
    let total_rate = Refusal::TOTAL_RATE;
    assert!(
        matches!(error, PerfError::Refused { refusal, .. } if refusal == total_rate),
        "{error}"
    );
    // What this end sends is held to the limit.
    config.direction = Direction::Reverse;
    let train = run(&config).unwrap().streams.remove(0).train;
    let (first, last) = (train.first().unwrap(), train.last().unwrap());
    let bits = (last.number - first.number) as f64 * 8.0 * 100_000.0 / train.len() as f64;
    let rate = bits / ((last.sent_us - first.sent_us) as f64 * 1e-6);
    assert!(rate <= 1.05 * RATE.as_f64(), "{rate}");
}

#[test]
fn the_servers_sending_is_limited_from_the_first_byte() {
    let server = server();
    for protocol in ["tcp", "udp"] {
        // Bursts of a thousand blocks, which a pacer alone would send at once.
        let mut config = server.config();
        config.direction = Direction::Reverse;
        let carries = if protocol == "udp" { Protocol::Udp } else { Protocol::Tcp };
        config.transport = carries.into();
        config.rate = Some(RATE);
        config.burst = Some(1000);
        config.end = EndAfter::Seconds(2.0);
        let measured = run(&config).unwrap();
        let sent: u64 = measured.streams.iter().map(|stream| stream.sent_bytes).sum();
        // Two seconds, the initial burst, and 5 %.
        let most = RATE.bytes_in(Duration::from_millis(3600)).bytes();
        assert!(sent <= most, "{protocol}: {sent} bytes");
    }
}

#[test]
fn a_test_of_as_many_bytes_as_allowed_completes() {
    // A datagram that a stalled host loses is sent in vain, and so is the one in its place.
    stall_retry::retry(as_many_bytes_as_allowed_complete_a_test);
}

fn as_many_bytes_as_allowed_complete_a_test() {
    let limit = ByteCount::from_bytes(1_000_000);
    let server = TestServer::with(|config| config.limits.bytes = Some(limit));
    for (protocol, direction) in [
        (Protocol::Tcp, Direction::Forward),
        (Protocol::Tcp, Direction::Reverse),
        (Protocol::Tcp, Direction::Both),
        (Protocol::Udp, Direction::Forward),
        (Protocol::Udp, Direction::Reverse),
        (Protocol::Udp, Direction::Both),
        // What arrives is charged with its headers.
        (Protocol::Udt, Direction::Reverse),
    ] {
        let mut config = server.config();
        (config.transport, config.direction) = (protocol.into(), direction);
        config.streams = 2;
        config.block = Some(ByteCount::from_bytes(1000));
        config.rate = (protocol == Protocol::Udp).then(|| "40mbit".parse().unwrap());
        let each = match (protocol, direction) {
            (_, Direction::Both) => 500_000,
            // Room for datagrams that are lost.
            (Protocol::Udp, Direction::Reverse) => 900_000,
            _ => 1_000_000,
        };
        config.end = EndAfter::Bytes(ByteCount::from_bytes(each));
        let measured = run(&config).map_err(|error| format!("{protocol:?} {direction:?}: {error}"));
        let received = measured.unwrap().received().bytes();
        assert!(received <= limit.bytes() && received >= each, "{protocol:?} {direction:?}");
    }
}

#[test]
fn bytes_received_after_the_end_are_charged() {
    // A client that limits bytes reports the end and keeps sending.
    let server = TestServer::with(|config| {
        config.limits.bytes = Some(ByteCount::from_bytes(3_000_000));
    });
    let asked = json!({"tcp": true, "num": 2_000_000, "parallel": 1});
    let mut client = ScriptedClient::after(&server, &asked, 3);
    client.send(&[iperf3_proto::State::TestEnd.byte()]);
    let mut stream: TcpStream = client.streams.remove(0);
    stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    let flood = thread::spawn(move || {
        let block = vec![0; 100_000];
        for _ in 0..1000 {
            if stream.write_all(&block).is_err() {
                break;
            }
        }
    });
    // How much of the flood arrives before the stream's queue is empty once is
    // chance: either the limit ends the test, or the results never come.
    server.wait_for(|event| {
        matches!(event, ServerEvent::Failed { why, .. }
            if why.contains("more than 3 MB") || why.contains("before DISPLAY_RESULTS"))
    });
    let received: u64 = server
        .events
        .lock()
        .unwrap()
        .iter()
        .map(|event| match event {
            ServerEvent::Interval { interval, .. } => interval.bytes.bytes(),
            _ => 0,
        })
        .sum();
    assert!(received <= 3_000_000, "{received}");
    flood.join().unwrap();
}
