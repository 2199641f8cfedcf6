//! Slots, half-open connections and budgets across sessions.

use crate::{
    scripted_client::{ScriptedClient, connect_from},
    test_server::{TestServer, run},
};
use host::{
    clock,
    netlink::{Netlink, await_local_route},
    netns::NetNs,
};
use iperf3_proto::{State, framing};
use perf::client::EndAfter;
use perf::{PerfError, RefusalReason, ServerEvent};
use record::Protocol;
use serde_json::json;
use std::{
    io::{ErrorKind, Read, Write},
    net::{IpAddr, TcpStream},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

pub(crate) fn refused(server: &TestServer, reason: RefusalReason) -> usize {
    let events = server.events.lock().unwrap();
    events
        .iter()
        .filter(|event| matches!(event, ServerEvent::Refused { reason: r, .. } if *r == reason))
        .count()
}

#[test]
fn trickled_parameters_take_no_slot() {
    let server = TestServer::with(|config| {
        config.limits.sessions = 4;
        config.limits.handshake = Duration::from_secs(2);
    });
    let parameters = framing::encode(&json!({"tcp": true, "time": 1})).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            let mut stranger = ScriptedClient::connect(&server);
            stranger.advance(&server, 1);
            let (parameters, stop) = (&parameters, &stop);
            scope.spawn(move || {
                // One byte at a time, so that no single wait times out.
                for byte in parameters.iter().cycle() {
                    if stop.load(Ordering::Relaxed) || stranger.control.write(&[*byte]).is_err() {
                        break;
                    }
                    thread::sleep(Duration::from_millis(100));
                }
            });
        }
        for _ in 0..3 {
            server.check_serving();
        }
        // The handshake has one deadline, whatever arrives.
        let timeouts = || {
            let events = server.events.lock().unwrap();
            let late = |event: &&ServerEvent| {
                matches!(event, ServerEvent::Failed { session: None, why, .. }
                    if why.starts_with("handshake timeout"))
            };
            events.iter().filter(late).count()
        };
        let until = clock::now() + Duration::from_secs(30);
        while timeouts() < 4 && clock::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!(timeouts(), 4);
    });
}

#[test]
fn twenty_four_clients_behind_one_address_are_served() {
    let server = TestServer::new();
    thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                let mut config = server.config();
                config.end = EndAfter::Seconds(0.5);
                config.streams = 2;
                config.rate = Some("10mbit".parse().unwrap());
                assert!(run(&config).unwrap().received().bytes() > 0);
            });
        }
    });
    assert_eq!(refused(&server, RefusalReason::HalfOpen), 0);
}

#[test]
fn an_address_keeps_only_its_share_of_half_open_connections() {
    let server = TestServer::with(|config| config.limits.half_open = 40);
    let crowd: Vec<TcpStream> =
        (0..20).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    // Max(4, a tenth of 40) remain.
    let until = clock::now() + Duration::from_secs(20);
    while refused(&server, RefusalReason::HalfOpen) < 16 && clock::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
    let open = crowd
        .iter()
        .filter(|connection| {
            let mut connection: &TcpStream = connection;
            connection.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            connection.read(&mut [0]).is_err()
        })
        .count();
    assert_eq!((open, refused(&server, RefusalReason::HalfOpen)), (4, 16));
}

#[test]
fn running_tests_are_not_half_open() {
    let server = TestServer::with(|config| config.limits.half_open = 40);
    // More than max(4, a tenth of 40).
    let asked = json!({"tcp": true, "time": 60});
    let running: Vec<_> = (0..6).map(|_| ScriptedClient::after(&server, &asked, 3)).collect();
    let mut late = TcpStream::connect(server.address).unwrap();
    // The grace period is 250 ms.
    late.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let waits = late.read(&mut [0]).unwrap_err().kind();
    assert!(matches!(waits, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{waits}");
    assert_eq!(refused(&server, RefusalReason::HalfOpen), 0);
    drop(running);
}

#[test]
fn a_connection_flood_does_not_delay_other_addresses() {
    let server = TestServer::with(|config| config.limits.half_open = 64);
    let (stop, opened) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut held = std::collections::VecDeque::new();
            while !stop.load(Ordering::Relaxed) {
                if let Ok(bare) = connect_from([127, 0, 0, 66].into(), server.address) {
                    held.push_back(bare);
                    opened.fetch_add(1, Ordering::Relaxed);
                }
                if held.len() > 400 {
                    held.pop_front();
                }
                // About 1000 per second, twice the rate that delayed others.
                thread::sleep(Duration::from_millis(1));
            }
        });
        while opened.load(Ordering::Relaxed) < 200 {
            thread::sleep(Duration::from_millis(1));
        }
        let begun = opened.load(Ordering::Relaxed);
        for _ in 0..5 {
            let mut config = server.config();
            config.bind = Some([127, 0, 0, 2].into());
            config.end = EndAfter::Seconds(0.2);
            assert!(run(&config).unwrap().received().bytes() > 0);
        }
        stop.store(true, Ordering::Relaxed);
        // Five tests of 0.2 s: if each had waited for the flood, it would have lasted for half
        // a minute.
        let meanwhile = opened.load(Ordering::Relaxed) - begun;
        assert!((100..15_000).contains(&meanwhile), "{meanwhile} connections meanwhile");
    });
    let events = server.events.lock().unwrap();
    for event in events.iter() {
        if let ServerEvent::Refused { peer, .. } = event {
            assert_eq!(peer.ip(), IpAddr::from([127, 0, 0, 66]), "{event:?}");
        }
    }
}

#[test]
fn the_streams_of_an_address_are_bounded() {
    let server = TestServer::with(|config| config.limits.total_streams = 10);
    let four = json!({"tcp": true, "time": 5, "parallel": 4});
    let first = ScriptedClient::after(&server, &four, 3);
    let mut second = ScriptedClient::connect(&server);
    second.advance(&server, 1);
    second.send(&framing::encode(&four).unwrap());
    assert_eq!(second.receive(), State::AccessDenied.byte());
    assert_eq!(refused(&server, RefusalReason::AddressBusy), 1);
    server.check_serving();
    drop(first);
}

#[test]
fn a_datagram_socket_respects_the_system_limit() {
    let server = TestServer::new();
    let _test = ScriptedClient::after(&server, &json!({"udp": true, "time": 1, "len": 1000}), 3);
    let started = server.wait_for(|event| matches!(event, ServerEvent::Started { .. }));
    let ServerEvent::Started { started, .. } = started else { unreachable!() };
    let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
    let most: u64 = most.trim().parse().unwrap();
    // The kernel doubles the value (socket(7), SO_RCVBUF), also for root.
    assert!(started.receive_buffer.bytes() <= 2 * most, "{started:?}");
}

#[test]
fn a_client_cannot_load_a_congestion_control_module() {
    let available = host::tcp_info::available_congestion();
    let absent = ["bbr", "dctcp", "vegas", "westwood", "highspeed", "illinois", "yeah", "lp"]
        .into_iter()
        .find(|name| !available.split_whitespace().any(|known| known == *name))
        .unwrap_or("none");
    let server = TestServer::new();
    let asked = json!({"tcp": true, "time": 1, "reverse": true, "congestion": absent});
    let _test = ScriptedClient::after(&server, &asked, 3);
    let started = server.wait_for(|event| matches!(event, ServerEvent::Started { .. }));
    let ServerEvent::Started { started, .. } = started else { unreachable!() };
    assert!(started.notes.iter().any(|note| note.contains(absent)), "{:?}", started.notes);
    assert_eq!(host::tcp_info::available_congestion(), available);
}

/// Addresses of two /64 prefixes, in a namespace of this test.
fn prefixes() -> NetNs {
    let namespace = NetNs::create().unwrap();
    namespace
        .run(|| {
            let netlink = Netlink::open().unwrap();
            let loopback = netlink.index("lo").unwrap();
            netlink.bring_up(loopback, None, None).unwrap();
            for address in ["fd00:1::1", "fd00:1::2", "fd00:1::3", "fd00:2::1"] {
                let address = address.parse().unwrap();
                netlink.add_address(loopback, address).unwrap();
                await_local_route(address, Duration::from_secs(20)).unwrap();
            }
        })
        .unwrap();
    namespace
}

#[test]
fn an_ipv6_prefix_counts_as_one_address() {
    prefixes()
        .run(|| {
            let server = TestServer::with(|config| {
                config.bind = Some("fd00:1::1".parse().unwrap());
                config.limits.sessions = 4;
            });
            let test_from = |address: &str| {
                let mut config = server.config();
                config.bind = Some(address.parse().unwrap());
                config.end = EndAfter::Seconds(0.2);
                config.transport = Protocol::Tcp.into();
                run(&config)
            };
            // Two tests from two addresses of one prefix: half of the total.
            let _running = ["fd00:1::2", "fd00:1::3"].map(|address| {
                let control = connect_from(address.parse().unwrap(), server.address).unwrap();
                let mut client = ScriptedClient::over(control, json!({"tcp": true, "time": 5}));
                client.advance(&server, 3);
                client
            });
            let error = test_from("fd00:1::1").unwrap_err();
            assert!(matches!(error, PerfError::Busy { .. }), "{error}");
            let reason = RefusalReason::AddressBusy;
            server.wait_for(
                |event| matches!(event, ServerEvent::Refused { reason: r, .. } if *r == reason),
            );
            test_from("fd00:2::1").unwrap();
        })
        .unwrap();
}
