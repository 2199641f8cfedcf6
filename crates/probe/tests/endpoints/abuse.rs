//! What a server on the open network meets: strangers, crowds, clients that
//! ask for too much, take too much, or report what cannot be.

use crate::{
    ground::{Ground, run, short},
    puppet::{Puppet, STEPS, greet},
};
use host::clock;
use iperf3::{Refusal, State, datagram, framing};
use probe::{ProbeError, RefusalReason, ServerEvent};
use record::{Direction, Protocol};
use serde_json::{Value, json};
use std::{
    io::Write,
    net::{TcpStream, UdpSocket},
    thread,
    time::Duration,
};
use units::{BitRate, ByteCount};

/// Short limits, so that what stalls is given up within the test.
fn ground() -> Ground {
    Ground::with(|config| {
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

fn refused(error: &ProbeError) -> Option<Refusal> {
    match error {
        ProbeError::Refused { refusal, .. } => Some(*refusal),
        _ => None,
    }
}

#[test]
fn a_client_may_vanish_at_any_point_of_any_test() {
    let ground = Ground::with(|config| config.limits.sessions = 1);
    for asked in every_kind() {
        for steps in 0..=STEPS {
            ground.events.lock().unwrap().clear();
            drop(Puppet::after(&ground, &asked, steps));
            ground.told(|event| matches!(event, ServerEvent::Failed { .. }));
        }
        // With room for one session only, the dead ones must be gone.
        ground.serves();
    }
}

#[test]
fn strangers_get_no_answer_to_their_greetings() {
    let ground = ground();
    let stranger = UdpSocket::bind("127.0.0.9:0").unwrap();
    stranger.connect(ground.address).unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let asked = json!({"udp": true, "time": 1, "parallel": 1, "len": 1000});
    // With nobody about, while another awaits its streams, and while its test runs.
    for steps in [0, 2, 3] {
        let mut puppet = Puppet::after(&ground, &asked, steps);
        for greeting in [datagram::GREETING, datagram::OLD_GREETING] {
            for _ in 0..50 {
                stranger.send(&greeting).unwrap();
            }
        }
        let came = stranger.recv(&mut [0; 2048]);
        assert!(came.is_err(), "{came:?} bytes came back after {steps} steps");
        if steps == 2 {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            greet(&ground, &socket);
            assert_eq!(puppet.hear(), State::TestStart.byte());
        }
    }
    ground.serves();
}

#[test]
fn a_greeting_that_comes_again_is_still_one_stream() {
    let ground = ground();
    let asked = json!({"udp": true, "time": 1, "parallel": 2, "len": 1000});
    let mut puppet = Puppet::after(&ground, &asked, 2);
    let [first, second] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    greet(&ground, &first);
    for _ in 0..20 {
        first.send(&datagram::GREETING).unwrap();
    }
    puppet.control.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(puppet.control.peek(&mut [0]).is_err(), "the test began with one stream of two");
    puppet.control.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    greet(&ground, &second);
    assert_eq!(puppet.hear(), State::TestStart.byte());
    let started = ground.told(|event| matches!(event, ServerEvent::Started { .. }));
    let ServerEvent::Started { started, .. } = started else { unreachable!() };
    let peers: Vec<_> = started.streams.iter().map(|stream| stream.peer).collect();
    assert_eq!(peers, [first.local_addr().unwrap(), second.local_addr().unwrap()]);
}

#[test]
fn clients_behind_one_address_do_not_mix_their_datagrams() {
    let ground = Ground::new();
    thread::scope(|scope| {
        for number in 1..=8u64 {
            let mut config = ground.config();
            config.protocol = Protocol::Udp;
            config.streams = 2;
            config.block = Some(ByteCount::from_bytes(1000));
            config.rate = Some(BitRate::from_bps(2_000_000));
            config.bytes = Some(ByteCount::from_bytes(number * 50_000));
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
    let events = ground.events.lock().unwrap();
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

/// How many datagrams come within half a second.
fn still_comes(socket: &UdpSocket) -> usize {
    let until = clock::now() + Duration::from_millis(500);
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut came = 0;
    while clock::now() < until {
        came += usize::from(socket.recv(&mut [0; 2048]).is_ok());
    }
    came
}

#[test]
fn a_server_stops_sending_to_a_client_that_is_gone() {
    let ground = ground();
    let asked =
        json!({"udp": true, "time": 60, "reverse": true, "len": 1000, "bandwidth": 1_000_000});
    let mut puppet = Puppet::after(&ground, &asked, 3);
    assert!(still_comes(&puppet.sockets[0]) > 10);
    let socket = puppet.sockets.remove(0);
    drop(puppet);
    ground.told(|event| matches!(event, ServerEvent::Failed { .. }));
    still_comes(&socket);
    assert_eq!(still_comes(&socket), 0);
}

#[test]
fn a_server_stops_sending_to_a_port_that_is_closed() {
    let ground = Ground::with(|config| config.report_every = Duration::from_millis(200));
    let asked =
        json!({"udp": true, "time": 60, "reverse": true, "len": 1000, "bandwidth": 1_000_000});
    let mut puppet = Puppet::after(&ground, &asked, 3);
    assert!(still_comes(&puppet.sockets[0]) > 10);
    puppet.sockets.clear();
    // One row can be empty by chance; ten in a row are two seconds.
    let is_quiet = || {
        let events = ground.events.lock().unwrap();
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
    assert!(!ground.events.lock().unwrap().iter().any(|e| matches!(e, ServerEvent::Failed { .. })));
}

#[test]
fn limits_are_kept() {
    let ground = Ground::with(|config| {
        config.limits.rate = Some(BitRate::from_bps(10_000_000));
        config.limits.streams = 4;
        config.limits.duration = Duration::from_secs(60);
    });
    let refuse = |change: &dyn Fn(&mut probe::client::ClientConfig), code: Refusal| {
        let mut config = ground.config();
        config.seconds = 20.0;
        change(&mut config);
        let error = run(&config).unwrap_err();
        assert_eq!(refused(&error), Some(code), "{error}");
    };
    refuse(&|config| config.rate = Some(BitRate::from_bps(10_000_001)), Refusal::TOTAL_RATE);
    refuse(&|config| config.streams = 5, Refusal::STREAMS);
    refuse(&|config| config.seconds = 61.0, Refusal::OVER_SERVER_DURATION);
    let limit = RefusalReason::Limit;
    ground.told(|event| matches!(event, ServerEvent::Refused { reason, .. } if *reason == limit));
    // One that asks for nothing and takes all there is: ended within two spans.
    let before = clock::now();
    refuse(&|_| (), Refusal::TOTAL_RATE);
    assert!(before.elapsed() < Duration::from_secs(15), "{:?}", before.elapsed());
    ground.told(|event| matches!(event, ServerEvent::Failed { why, .. } if why.contains("limit")));
}

#[test]
fn bytes_are_kept_to_both_ways() {
    let ground = Ground::with(|config| {
        config.limits.bytes = Some(ByteCount::from_bytes(1_000_000));
    });
    for direction in [Direction::Forward, Direction::Reverse, Direction::Both] {
        let mut config = ground.config();
        config.direction = direction;
        config.seconds = 30.0;
        let error = run(&config).unwrap_err();
        assert_eq!(refused(&error), Some(Refusal::TOTAL_RATE), "{error}");
    }
    let mut config = ground.config();
    config.bytes = Some(ByteCount::from_bytes(1_000_001));
    assert_eq!(refused(&run(&config).unwrap_err()), Some(Refusal::TOTAL_RATE));
    config.bytes = Some(ByteCount::from_bytes(500_000));
    assert!(run(&config).is_ok());
}

#[test]
fn one_address_cannot_take_every_place() {
    let ground = Ground::with(|config| config.limits.sessions_per_address = 1);
    let first = Puppet::after(&ground, &json!({"tcp": true, "time": 1, "parallel": 1}), 3);
    let error = run(&ground.config()).unwrap_err();
    assert!(matches!(error, ProbeError::Busy { .. }), "{error}");
    let mut config = ground.config();
    config.bind = Some([127, 0, 0, 2].into());
    config.seconds = 0.2;
    run(&config).unwrap();
    let reason = RefusalReason::AddressBusy;
    ground.told(|event| matches!(event, ServerEvent::Refused { reason: r, .. } if *r == reason));
    ground.events.lock().unwrap().clear();
    drop(first);
    ground.told(|event| matches!(event, ServerEvent::Failed { .. }));
    ground.serves();
}

/// JSON that is none, is huge, or holds numbers beyond reason.
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
    let ground = ground();
    let asked = json!({"tcp": true, "time": 1, "parallel": 1});
    for (steps, most) in [(1, framing::PARAMS_LIMIT), (STEPS, framing::CLIENT_RESULTS_LIMIT)] {
        for document in documents(usize::try_from(most).unwrap()) {
            let mut puppet = Puppet::after(&ground, &asked, steps);
            puppet.say(&u32::try_from(document.len()).unwrap().to_be_bytes());
            puppet.say(&document);
            let _ = puppet.control.shutdown(std::net::Shutdown::Write);
            puppet.hear_the_rest();
        }
        // A length over the limit is answered without waiting for its bytes.
        for length in [most + 1, u32::MAX] {
            let mut puppet = Puppet::after(&ground, &asked, steps);
            puppet.say(&length.to_be_bytes());
            assert_eq!(puppet.hear(), State::ServerError.byte());
        }
    }
    ground.serves();
}

#[test]
fn absurd_results_are_only_a_clients_word() {
    let ground = ground();
    let numbers = ["-1", "1e308", "-1e308", "18446744073709551615", "9223372036854775807", "0.5"];
    for asked in every_kind() {
        ground.events.lock().unwrap().clear();
        let mut puppet = Puppet::after(&ground, &asked, STEPS);
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
        let ours = puppet.exchange(results.as_bytes());
        assert!(ours["streams"].as_array().is_some_and(|streams| streams.len() >= 2), "{ours}");
        ground.told(|event| matches!(event, ServerEvent::Finished { .. }));
    }
}

#[test]
fn absurd_datagrams_end_up_in_the_books_or_nowhere() {
    let ground = ground();
    for wide in [false, true] {
        ground.events.lock().unwrap().clear();
        let asked = json!({"udp": true, "time": 1, "parallel": 2, "len": 1000,
            "udp_counters_64bit": i32::from(wide), "longhaul": {"version": "0"}});
        let mut puppet = Puppet::after(&ground, &asked, 3);
        for socket in &puppet.sockets {
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
        // Time for a report row, which adds up what the streams counted.
        thread::sleep(Duration::from_millis(1200));
        puppet.say(&[State::TestEnd.byte()]);
        assert_eq!(puppet.hear(), State::ExchangeResults.byte());
        let ours = puppet.exchange(b"{\"streams\":[]}");
        for stream in ours["streams"].as_array().unwrap() {
            let packets = stream["packets"].as_i64().unwrap();
            assert!(packets > 0 && packets <= 1 << 56, "{stream}");
            assert!(stream["errors"].as_i64().unwrap() < packets, "{stream}");
            assert!(stream["jitter"].as_f64().unwrap().is_finite(), "{stream}");
        }
        ground.told(|event| matches!(event, ServerEvent::Finished { .. }));
    }
    ground.serves();
}

#[test]
fn a_stream_with_another_cookie_is_not_taken() {
    let ground = ground();
    let mut puppet = Puppet::after(&ground, &json!({"tcp": true, "time": 1, "parallel": 2}), 2);
    let mut strangers = Vec::new();
    for byte in [0u8, b'!', 0xff] {
        let mut stranger = TcpStream::connect(ground.address).unwrap();
        let mut cookie = *puppet.cookie.bytes();
        cookie[5] = byte;
        stranger.write_all(&cookie).unwrap();
        strangers.push(stranger);
    }
    let own: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut stream = TcpStream::connect(ground.address).unwrap();
            stream.write_all(puppet.cookie.bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(puppet.hear(), State::TestStart.byte());
    let started = ground.told(|event| matches!(event, ServerEvent::Started { .. }));
    let ServerEvent::Started { started, .. } = started else { unreachable!() };
    let mut peers: Vec<_> = started.streams.iter().map(|stream| stream.peer).collect();
    peers.sort();
    let mut expected: Vec<_> = own.iter().map(|stream| stream.local_addr().unwrap()).collect();
    expected.sort();
    assert_eq!(peers, expected);
}

#[test]
fn clients_that_never_read_hold_up_nobody() {
    let ground = ground();
    let asked = [
        json!({"tcp": true, "time": 60, "parallel": 4, "reverse": true}),
        json!({"tcp": true, "time": 60, "parallel": 4, "bidirectional": true}),
        json!({"udp": true, "time": 60, "parallel": 2, "reverse": true, "len": 1000, "bandwidth": 5e6}),
    ];
    let idle: Vec<Puppet> = asked.iter().map(|asked| Puppet::after(&ground, asked, 3)).collect();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut config = short(ground.address);
        config.direction = direction;
        config.seconds = 0.5;
        assert!(run(&config).unwrap().received().bytes() > 0);
    }
    ground.events.lock().unwrap().clear();
    drop(idle);
    ground.told(|event| matches!(event, ServerEvent::Failed { session: Some(_), .. }));
}

#[test]
fn a_draining_server_finishes_what_it_began() {
    let drain = probe::StopFlag::new();
    let ground = Ground::with(|config| config.drain = drain.clone());
    // One whose streams are still to come, and one that runs.
    let asked = json!({"tcp": true, "time": 1, "parallel": 2});
    let mut early = Puppet::after(&ground, &asked, 2);
    let mut late = Puppet::after(&ground, &asked, 3);
    drain.raise();
    ground.told(|event| matches!(event, ServerEvent::Draining { sessions: 2 }));
    let error = run(&ground.config()).unwrap_err();
    assert!(matches!(error, ProbeError::Busy { .. }), "{error}");
    for _ in 0..2 {
        let mut stream = TcpStream::connect(ground.address).unwrap();
        stream.write_all(early.cookie.bytes()).unwrap();
        early.streams.push(stream);
    }
    assert_eq!(early.hear(), State::TestStart.byte());
    assert_eq!(early.hear(), State::TestRunning.byte());
    for puppet in [&mut early, &mut late] {
        puppet.say(&[State::TestEnd.byte()]);
        assert_eq!(puppet.hear(), State::ExchangeResults.byte());
        puppet.exchange(b"{}");
    }
    let events = std::sync::Arc::clone(&ground.events);
    ground.join().unwrap();
    let events = events.lock().unwrap();
    let finished = events.iter().filter(|event| matches!(event, ServerEvent::Finished { .. }));
    assert_eq!(finished.count(), 2);
}
