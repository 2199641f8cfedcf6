//! Clients that exceed limits, flood the server, or report invalid results; and
//! datagrams of unknown senders.

use crate::{
    scripted_client::{STEPS, ScriptedClient, greet},
    test_server::{TestServer, run, short},
};
use host::clock;
use iperf3_proto::{Refusal, State, datagram, framing};
use perf::client::EndAfter;
use perf::{PerfError, RefusalReason, ServerEvent};
use record::{Direction, Protocol};
use serde_json::{Value, json};
use std::{
    io::Write,
    net::{TcpStream, UdpSocket},
    thread,
    time::Duration,
};
use units::{BitRate, ByteCount};

/// Short limits, so that stalled clients time out within the test.
fn server() -> TestServer {
    TestServer::with(|config| {
        config.limits.handshake = Duration::from_secs(2);
        config.limits.idle = Duration::from_secs(1);
    })
}

fn every_kind() -> Vec<Value> {
    let mut all = Vec::new();
    for udp in [false, true] {
        for way in ["none", "reverse", "bidirectional"] {
            let mut asked = json!({"time": 1, "parallel": 2, "bandwidth": 1_000_000});
            asked[if udp { "udp" } else { "tcp" }] = true.into();
            asked[way] = true.into();
            asked["len"] = 1000.into();
            all.push(asked);
        }
    }
    all
}

fn refused(error: &PerfError) -> Option<Refusal> {
    match error {
        PerfError::Refused { refusal, .. } => Some(*refusal),
        _ => None,
    }
}

#[test]
fn a_client_may_disconnect_at_any_point_of_any_test() {
    let server = TestServer::with(|config| config.limits.sessions = 1);
    for asked in every_kind() {
        for steps in 0..=STEPS {
            server.events.lock().unwrap().clear();
            drop(ScriptedClient::after(&server, &asked, steps));
            server.wait_for(|event| matches!(event, ServerEvent::Failed { .. }));
        }
        // With a limit of one session, the dead ones must have been removed.
        server.check_serving();
    }
}

#[test]
fn datagrams_of_unknown_senders_are_not_answered() {
    let server = server();
    let stranger = UdpSocket::bind("127.0.0.9:0").unwrap();
    stranger.connect(server.address).unwrap();
    stranger.set_nonblocking(true).unwrap();
    let asked = json!({"udp": true, "time": 1, "parallel": 1, "len": 1000});
    // Without a session, while one awaits its streams, and while a test runs.
    for steps in [0, 2, 3] {
        let mut client = ScriptedClient::after(&server, &asked, steps);
        for greeting in [datagram::CONNECT, datagram::OLD_CONNECT] {
            for _ in 0..50 {
                stranger.send(&greeting).unwrap();
            }
        }
        // A later hello was answered: these have been processed.
        if steps == 2 {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            greet(&server, &socket);
            assert_eq!(client.receive(), State::TestStart.byte());
        } else {
            drop(ScriptedClient::after(&server, &asked, 3));
        }
        let came = stranger.recv(&mut [0; 2048]);
        assert!(came.is_err(), "{came:?} bytes came back after {steps} steps");
    }
    server.check_serving();
}

#[test]
fn a_repeated_udp_hello_is_still_one_stream() {
    let server = server();
    let asked = json!({"udp": true, "time": 1, "parallel": 2, "len": 1000});
    let mut client = ScriptedClient::after(&server, &asked, 2);
    let [first, second] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    greet(&server, &first);
    for _ in 0..20 {
        first.send(&datagram::CONNECT).unwrap();
    }
    client.control.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(client.control.peek(&mut [0]).is_err(), "the test began with one stream of two");
    client.control.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    greet(&server, &second);
    assert_eq!(client.receive(), State::TestStart.byte());
    let started = server.wait_for(|event| matches!(event, ServerEvent::Started { .. }));
    let ServerEvent::Started { started, .. } = started else { unreachable!() };
    let peers: Vec<_> = started.streams.iter().map(|stream| stream.peer).collect();
    assert_eq!(peers, [first.local_addr().unwrap(), second.local_addr().unwrap()]);
}

#[test]
fn datagrams_of_clients_behind_one_address_stay_separate() {
    let server = TestServer::new();
    thread::scope(|scope| {
        for number in 1..=8u64 {
            let mut config = server.config();
            config.transport = Protocol::Udp.into();
            config.streams = 2;
            config.block = Some(ByteCount::from_bytes(1000));
            config.rate = Some(BitRate::from_bps(2_000_000));
            config.end = EndAfter::Bytes(ByteCount::from_bytes(number * 50_000));
            scope.spawn(move || {
                let measured = run(&config).unwrap();
                let sent: u64 = measured.streams.iter().map(|stream| stream.sent_bytes).sum();
                assert_eq!(sent, number * 50_000);
                for stream in &measured.streams {
                    assert_eq!(stream.received_bytes, stream.sent_bytes, "client {number}");
                    let books = stream.datagrams.as_ref().unwrap();
                    assert_eq!((books.lost, books.duplicates, books.reordered), (0, 0, 0));
                }
            });
        }
    });
    let events = server.events.lock().unwrap();
    let mut received: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            ServerEvent::Finished { summary, .. } => Some(summary.received.bytes()),
            _ => None,
        })
        .collect();
    received.sort_unstable();
    assert_eq!(received, (1..=8).map(|number| number * 50_000).collect::<Vec<u64>>());
}

/// Waits for ten datagrams.
fn receives(socket: &UdpSocket) {
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for _ in 0..10 {
        socket.recv(&mut [0; 2048]).unwrap();
    }
}

/// Waits until no datagram has arrived for half a second; the sender would send 60 in
/// that time, for a minute.
fn falls_silent(socket: &UdpSocket) {
    let until = clock::now() + Duration::from_secs(20);
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    while socket.recv(&mut [0; 2048]).is_ok() {
        assert!(clock::now() < until, "it still sends");
    }
}

#[test]
fn a_server_stops_sending_to_a_client_that_disconnected() {
    let server = server();
    let asked =
        json!({"udp": true, "time": 60, "reverse": true, "len": 1000, "bandwidth": 1_000_000});
    let mut client = ScriptedClient::after(&server, &asked, 3);
    receives(&client.sockets[0]);
    let socket = client.sockets.remove(0);
    drop(client);
    server.wait_for(|event| matches!(event, ServerEvent::Failed { .. }));
    falls_silent(&socket);
}

#[test]
fn a_server_stops_sending_to_a_closed_port() {
    let server = TestServer::with(|config| config.report_every = Duration::from_millis(200));
    let asked =
        json!({"udp": true, "time": 60, "reverse": true, "len": 1000, "bandwidth": 1_000_000});
    let mut client = ScriptedClient::after(&server, &asked, 3);
    receives(&client.sockets[0]);
    client.sockets.clear();
    // A single interval can be empty; ten in a row are two seconds.
    let is_quiet = || {
        let events = server.events.lock().unwrap();
        let rows = events.iter().rev().map_while(|event| match event {
            ServerEvent::Interval { interval, .. } => Some(interval.bytes),
            _ => None,
        });
        rows.take_while(|bytes| *bytes == ByteCount::ZERO).count() >= 10
    };
    let until = clock::now() + Duration::from_secs(20);
    while !is_quiet() {
        assert!(clock::now() < until, "it still sends");
        thread::sleep(Duration::from_millis(50));
    }
    assert!(!server.events.lock().unwrap().iter().any(|e| matches!(e, ServerEvent::Failed { .. })));
}

#[test]
fn limits_are_kept() {
    let server = TestServer::with(|config| {
        config.limits.rate = Some(BitRate::from_bps(10_000_000));
        config.limits.streams = 4;
        config.limits.duration = Duration::from_secs(60);
    });
    let refuse = |change: &dyn Fn(&mut perf::client::ClientConfig), code: Refusal| {
        let mut config = server.config();
        config.end = EndAfter::Seconds(20.0);
        change(&mut config);
        let error = run(&config).unwrap_err();
        assert_eq!(refused(&error), Some(code), "{error}");
    };
    refuse(&|config| config.rate = Some(BitRate::from_bps(10_000_001)), Refusal::TOTAL_RATE);
    refuse(&|config| config.streams = 5, Refusal::STREAMS);
    refuse(&|config| config.end = EndAfter::Seconds(61.0), Refusal::OVER_SERVER_DURATION);
    let limit = RefusalReason::Limit;
    server
        .wait_for(|event| matches!(event, ServerEvent::Refused { reason, .. } if *reason == limit));
    // A client without a rate limit of its own, which exceeds the total rate.
    let before = clock::now();
    refuse(&|_| (), Refusal::TOTAL_RATE);
    assert!(before.elapsed() < Duration::from_secs(15), "{:?}", before.elapsed());
    server.wait_for(
        |event| matches!(event, ServerEvent::Failed { why, .. } if why.contains("limit")),
    );
}

#[test]
fn a_byte_count_applies_to_each_direction() {
    let server = TestServer::with(|config| {
        config.limits.bytes = Some(ByteCount::from_bytes(1_000_000));
    });
    for direction in [Direction::Forward, Direction::Reverse, Direction::Both] {
        let mut config = server.config();
        config.direction = direction;
        config.end = EndAfter::Seconds(30.0);
        let error = run(&config).unwrap_err();
        assert_eq!(refused(&error), Some(Refusal::TOTAL_RATE), "{error}");
    }
    let mut config = server.config();
    config.end = EndAfter::Bytes(ByteCount::from_bytes(1_000_001));
    assert_eq!(refused(&run(&config).unwrap_err()), Some(Refusal::TOTAL_RATE));
    config.end = EndAfter::Bytes(ByteCount::from_bytes(500_000));
    assert!(run(&config).is_ok());
}

#[test]
fn one_address_cannot_take_all_places() {
    let server = TestServer::with(|config| config.limits.sessions_per_address = Some(1));
    let first = ScriptedClient::after(&server, &json!({"tcp": true, "time": 1, "parallel": 1}), 3);
    let error = run(&server.config()).unwrap_err();
    assert!(matches!(error, PerfError::Busy { .. }), "{error}");
    let mut config = server.config();
    config.bind = Some([127, 0, 0, 2].into());
    config.end = EndAfter::Seconds(0.2);
    run(&config).unwrap();
    let reason = RefusalReason::AddressBusy;
    server
        .wait_for(|event| matches!(event, ServerEvent::Refused { reason: r, .. } if *r == reason));
    server.events.lock().unwrap().clear();
    drop(first);
    server.wait_for(|event| matches!(event, ServerEvent::Failed { .. }));
    server.check_serving();
}

/// Invalid JSON, huge JSON, and numbers out of range.
fn documents(most: usize) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = [
        "",
        "{",
        "null",
        "[]",
        "7",
        "\"x\"",
        "{}}",
        "{\"time\":}",
        "{\"time\":1e999}",
        "\u{0}\u{0}",
        "{\"parallel\":-1}",
        "{\"parallel\":1e308}",
        "{\"time\":-1e308}",
        "{\"len\":1e18}",
        "{\"num\":18446744073709551615}",
        "{\"streams\":{}}",
        "{\"streams\":[null,7,\"x\",{}]}",
        "{\"longhaul\":[1],\"streams\":[{\"id\":{}}]}",
    ]
    .into_iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    all.push(vec![0xff; 64]);
    all.push(vec![b'['; most]);
    all.push(vec![b' '; most]);
    let deep = "{\"a\":".repeat(most / 5);
    all.push(deep.into_bytes());
    let wide = format!("{{\"streams\":[{}{{}}]}}", "{},".repeat((most - 32) / 3));
    all.push(wide.into_bytes());
    all
}

#[test]
fn no_document_breaks_a_session_or_the_server() {
    let server = server();
    let asked = json!({"tcp": true, "time": 1, "parallel": 1});
    for (steps, most) in [(1, framing::PARAMS_LIMIT), (STEPS, framing::CLIENT_RESULTS_LIMIT)] {
        for document in documents(usize::try_from(most).unwrap()) {
            let mut client = ScriptedClient::after(&server, &asked, steps);
            client.send(&u32::try_from(document.len()).unwrap().to_be_bytes());
            client.send(&document);
            let _ = client.control.shutdown(std::net::Shutdown::Write);
            client.read_remaining();
        }
        // A length over the limit is refused without waiting for the bytes.
        for length in [most + 1, u32::MAX] {
            let mut client = ScriptedClient::after(&server, &asked, steps);
            client.send(&length.to_be_bytes());
            assert_eq!(client.receive(), State::ServerError.byte());
        }
    }
    server.check_serving();
}

#[test]
fn absurd_results_of_a_client_have_no_effect() {
    let server = server();
    let numbers = ["-1", "1e308", "-1e308", "18446744073709551615", "9223372036854775807", "0.5"];
    for asked in every_kind() {
        server.events.lock().unwrap().clear();
        let mut client = ScriptedClient::after(&server, &asked, STEPS);
        let streams: Vec<String> = numbers
            .iter()
            .zip([1, 3, 4, 5, 1, 77])
            .map(|(n, id)| {
                format!(
                    "{{\"id\":{id},\"bytes\":{n},\"retransmits\":{n},\"jitter\":{n},\"errors\":{n},\"omitted_errors\":{n},\"packets\":{n},\"omitted_packets\":{n},\"start_time\":{n},\"end_time\":{n}}}"
                )
            })
            .collect();
        let results = format!(
            "{{\"cpu_util_total\":1e308,\"cpu_util_user\":-1,\"cpu_util_system\":18446744073709551615,\"sender_has_retransmits\":99,\"streams\":[{}]}}",
            streams.join(",")
        );
        let ours = client.exchange(results.as_bytes());
        assert!(ours["streams"].as_array().is_some_and(|streams| streams.len() >= 2), "{ours}");
        server.wait_for(|event| matches!(event, ServerEvent::Finished { .. }));
    }
}

#[test]
fn absurd_datagrams_are_counted_or_ignored() {
    let server = TestServer::with(|config| config.report_every = Duration::from_millis(200));
    let intervals = || {
        let events = server.events.lock().unwrap();
        events.iter().filter(|event| matches!(event, ServerEvent::Interval { .. })).count()
    };
    for wide in [false, true] {
        server.events.lock().unwrap().clear();
        let asked = json!({"udp": true, "time": 1, "parallel": 2, "len": 1000,
            "udp_counters_64bit": i32::from(wide), "longhaul": {"version": "0"}});
        let mut client = ScriptedClient::after(&server, &asked, 3);
        for socket in &client.sockets {
            for number in [0, 1, u64::MAX, 1 << 63, 1 << 56, 7, u64::MAX - 1, 1 << 40, 1 << 32] {
                for time in [[0; 8], [0xff; 8]] {
                    let mut datagram = time.to_vec();
                    datagram.extend(number.to_be_bytes());
                    datagram.resize(1000, 0);
                    for length in [1000, 16, 15, 12, 11, 4, 1, 0] {
                        let _ = socket.send(&datagram[..length]);
                    }
                    let _ = socket.send(&vec![0xff; 60_000]);
                }
            }
        }
        // A report sums the streams' counts: two streams and their total.
        let (before, until) = (intervals(), clock::now() + Duration::from_secs(20));
        while intervals() < before + 6 {
            assert!(clock::now() < until, "no interval was reported");
            thread::sleep(Duration::from_millis(10));
        }
        client.send(&[State::TestEnd.byte()]);
        assert_eq!(client.receive(), State::ExchangeResults.byte());
        let ours = client.exchange(b"{\"streams\":[]}");
        for stream in ours["streams"].as_array().unwrap() {
            let packets = stream["packets"].as_i64().unwrap();
            assert!(packets > 0 && packets <= 1 << 56, "{stream}");
            assert!(stream["errors"].as_i64().unwrap() < packets, "{stream}");
            assert!(stream["jitter"].as_f64().unwrap().is_finite(), "{stream}");
        }
        server.wait_for(|event| matches!(event, ServerEvent::Finished { .. }));
    }
    server.check_serving();
}

#[test]
fn a_stream_with_another_cookie_is_refused() {
    let server = server();
    let mut client =
        ScriptedClient::after(&server, &json!({"tcp": true, "time": 1, "parallel": 2}), 2);
    let mut strangers = Vec::new();
    for byte in [0u8, b'!', 0xff] {
        let mut stranger = TcpStream::connect(server.address).unwrap();
        let mut cookie = *client.cookie.bytes();
        cookie[5] = byte;
        stranger.write_all(&cookie).unwrap();
        strangers.push(stranger);
    }
    let own: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(client.cookie.bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(client.receive(), State::TestStart.byte());
    let started = server.wait_for(|event| matches!(event, ServerEvent::Started { .. }));
    let ServerEvent::Started { started, .. } = started else { unreachable!() };
    let mut peers: Vec<_> = started.streams.iter().map(|stream| stream.peer).collect();
    peers.sort();
    let mut expected: Vec<_> = own.iter().map(|stream| stream.local_addr().unwrap()).collect();
    expected.sort();
    assert_eq!(peers, expected);
}

#[test]
fn clients_that_never_read_do_not_block_others() {
    let server = server();
    let asked = [
        json!({"tcp": true, "time": 60, "parallel": 4, "reverse": true}),
        json!({"tcp": true, "time": 60, "parallel": 4, "bidirectional": true}),
        json!({"udp": true, "time": 60, "parallel": 2, "reverse": true, "len": 1000, "bandwidth": 5e6}),
    ];
    let idle: Vec<ScriptedClient> =
        asked.iter().map(|asked| ScriptedClient::after(&server, asked, 3)).collect();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut config = short(server.address);
        config.direction = direction;
        config.end = EndAfter::Seconds(0.5);
        assert!(run(&config).unwrap().received().bytes() > 0);
    }
    server.events.lock().unwrap().clear();
    drop(idle);
    server.wait_for(|event| matches!(event, ServerEvent::Failed { session: Some(_), .. }));
}

#[test]
fn a_draining_server_finishes_its_tests() {
    let drain = perf::StopFlag::new();
    let server = TestServer::with(|config| config.drain = drain.clone());
    // One that still awaits its streams, and one that runs.
    let asked = json!({"tcp": true, "time": 1, "parallel": 2});
    let mut early = ScriptedClient::after(&server, &asked, 2);
    let mut late = ScriptedClient::after(&server, &asked, 3);
    drain.raise();
    server.wait_for(|event| matches!(event, ServerEvent::Draining { sessions: 2 }));
    let error = run(&server.config()).unwrap_err();
    assert!(matches!(error, PerfError::Busy { .. }), "{error}");
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(early.cookie.bytes()).unwrap();
        early.streams.push(stream);
    }
    assert_eq!(early.receive(), State::TestStart.byte());
    assert_eq!(early.receive(), State::TestRunning.byte());
    for client in [&mut early, &mut late] {
        client.send(&[State::TestEnd.byte()]);
        assert_eq!(client.receive(), State::ExchangeResults.byte());
        client.exchange(b"{}");
    }
    let events = std::sync::Arc::clone(&server.events);
    server.join().unwrap();
    let events = events.lock().unwrap();
    let finished = events.iter().filter(|event| matches!(event, ServerEvent::Finished { .. }));
    assert_eq!(finished.count(), 2);
}
