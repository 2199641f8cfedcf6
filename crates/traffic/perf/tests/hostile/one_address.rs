//! One address, or 64 without a token, takes what it gets of a server with its default limits:
//! clients of other addresses are served beside it.

use crate::{
    admission::refused,
    scripted_client::{ScriptedClient, connect_from},
    test_server::{TestServer, run},
};
use iperf3_proto::{State, framing};
use perf::client::EndAfter;
use perf::{RefusalReason, ServerEvent};
use record::{Direction, Protocol};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::{IpAddr, TcpStream},
    thread,
    time::Duration,
};
use units::ByteCount;

const ATTACKER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));
const VICTIM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 3));

/// A client that has sent its parameters; the server's answer.
fn ask(server: &TestServer, from: IpAddr, asked: &Value) -> (ScriptedClient, u8) {
    let control = connect_from(from, server.address).unwrap();
    let mut client = ScriptedClient::over(control, asked.clone());
    client.send(client.cookie.bytes().to_owned().as_slice());
    let mut answer = client.receive();
    if answer == State::ParamExchange.byte() {
        client.send(&framing::encode(asked).unwrap());
        answer = client.receive();
    }
    (client, answer)
}

/// Control connections of the attacker until one is refused, without any stream. The server
/// answers the parameters of UDP tests of one address one after the other.
fn idle_connections(server: &TestServer, asked: &Value) -> Vec<ScriptedClient> {
    let mut held = Vec::new();
    while refused(server, RefusalReason::AddressBusy) == 0 {
        let control = connect_from(ATTACKER, server.address).unwrap();
        let mut client = ScriptedClient::over(control, asked.clone());
        client.send(client.cookie.bytes().to_owned().as_slice());
        // On a busy machine, some are closed as half-open.
        if matches!(client.control.read(&mut [0]), Ok(1)) {
            let _ = client.control.write_all(&framing::encode(asked).unwrap());
            held.push(client);
        }
    }
    held
}

/// A short test of the victim.
fn serves(server: &TestServer, protocol: Protocol, direction: Direction) {
    let mut config = server.config();
    config.bind = Some(VICTIM);
    config.transport = protocol.into();
    config.direction = direction;
    config.streams = 4;
    config.end = EndAfter::Blocks(8);
    config.block = Some(ByteCount::from_bytes(1400));
    let measured = run(&config).unwrap();
    assert!(measured.received().bytes() > 0, "{protocol:?}");
}

fn serves_all(server: &TestServer) {
    for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Udt] {
        serves(server, protocol, Direction::Forward);
    }
    serves(server, Protocol::Tcp, Direction::Both);
}

fn refused_victims(server: &TestServer) -> Vec<ServerEvent> {
    let events = server.events.lock().unwrap();
    let is_victims = |event: &&ServerEvent| match event {
        ServerEvent::Refused { peer, .. } | ServerEvent::Failed { peer, .. } => peer.ip() == VICTIM,
        _ => false,
    };
    events.iter().filter(is_victims).cloned().collect()
}

#[test]
fn control_connections_without_streams_take_nothing_from_others() {
    let base = json!({"tcp": true, "time": 3, "parallel": 128});
    let with = |changes: &[(&str, Value)]| {
        let mut asked = base.clone();
        changes.iter().for_each(|(name, value)| asked[*name] = value.clone());
        asked
    };
    let udt = |window: u64| {
        with(&[
            ("parallel", 1.into()),
            ("window", window.into()),
            ("longhaul", json!({"version": "0.1.0", "udt": "udt"})),
        ])
    };
    let attacks = [
        with(&[("len", 1_048_576.into()), ("reverse", true.into())]),
        with(&[("len", 1024.into())]),
        with(&[("len", 1024.into()), ("bidirectional", true.into())]),
        udt(300_000_000),
        with(&[("udp", true.into()), ("tcp", false.into()), ("len", 1400.into())]),
    ];
    thread::scope(|scope| {
        for attack in &attacks {
            scope.spawn(move || {
                let server = TestServer::new();
                let held = idle_connections(&server, attack);
                serves_all(&server);
                assert!(held.len() > 4, "{} tests", held.len());
                assert_eq!(refused_victims(&server), [], "{attack}");
            });
        }
        // More than the half of an address is refused at once, with the limit's name.
        scope.spawn(|| {
            let server = TestServer::new();
            let (mut client, answer) = ask(&server, ATTACKER, &udt(522_000_000));
            assert_eq!(answer, State::ServerError.byte());
            assert_eq!(client.read_remaining()[..4], 8_i32.to_be_bytes());
            let refused = server.wait_for(|event| matches!(event, ServerEvent::Refused { .. }));
            let ServerEvent::Refused { reason, why, .. } = refused else { unreachable!() };
            assert_eq!(reason, RefusalReason::Limit);
            assert!(why.contains("320 MiB of one address (‹max_memory›"), "{why}");
        });
    });
}

#[test]
fn running_tests_of_one_address_leave_others_their_share() {
    // All the streams, and then all the memory, that an address gets.
    let streams = json!({"tcp": true, "time": 60, "parallel": 8});
    let memory = json!({"tcp": true, "time": 60, "parallel": 1, "window": 100_000_000,
                        "longhaul": {"version": "0.1.0", "udt": "udt"}});
    thread::scope(|scope| {
        scope.spawn(|| {
            let server = TestServer::with(|config| config.limits.total_streams = 64);
            let held = saturate(&server, &streams);
            assert_eq!(held.len(), 4);
            serves_all(&server);
            assert_eq!(refused_victims(&server), []);
        });
        scope.spawn(|| {
            let server = TestServer::new();
            let held = saturate(&server, &memory);
            assert_eq!(held.len(), 2);
            serves_all(&server);
            assert_eq!(refused_victims(&server), []);
        });
    });
}

/// Tests of the attacker with all their streams, until one is refused.
fn saturate(server: &TestServer, asked: &Value) -> Vec<ScriptedClient> {
    let mut held = Vec::new();
    loop {
        let (mut client, answer) = ask(server, ATTACKER, asked);
        if answer != State::CreateStreams.byte() {
            return held;
        }
        client.open_streams_from(server, ATTACKER);
        assert_eq!(client.receive(), State::TestStart.byte());
        held.push(client);
    }
}

#[test]
fn a_stream_without_room_ends_its_test_with_a_reason() {
    let server = TestServer::with(|config| config.limits.total_streams = 16);
    let asked = json!({"tcp": true, "time": 60, "parallel": 8});
    // Both are admitted before either has a stream.
    let [(mut first, _), (mut second, answer)] = [(); 2].map(|()| ask(&server, ATTACKER, &asked));
    assert_eq!(answer, State::CreateStreams.byte());
    first.open_streams_from(&server, ATTACKER);
    assert_eq!(first.receive(), State::TestStart.byte());
    second.open_streams_from(&server, ATTACKER);
    assert_eq!(second.receive(), State::AccessDenied.byte());
    let failed = server.wait_for(|event| matches!(event, ServerEvent::Failed { .. }));
    let ServerEvent::Failed { why, .. } = failed else { unreachable!() };
    assert!(why.contains("exceed the limit on the streams of its address"), "{why}");
    serves_all(&server);
}

#[test]
fn idle_control_connections_of_many_addresses_are_evicted() {
    let server = TestServer::with(|config| config.limits.sessions = 8);
    let asked = json!({"tcp": true, "time": 60});
    // Two each of four addresses: the server is full of tests without a stream.
    let mut held: Vec<ScriptedClient> = (0..8)
        .map(|number| ask(&server, [127, 0, 1, number / 2].into(), &asked))
        .map(|(client, answer)| {
            assert_eq!(answer, State::CreateStreams.byte());
            client
        })
        .collect();
    serves(&server, Protocol::Tcp, Direction::Forward);
    assert_eq!(refused_victims(&server), []);
    // The oldest made way, and was told.
    assert_eq!(held[0].read_remaining(), [State::AccessDenied.byte()]);
    let failed = server.wait_for(|event| matches!(event, ServerEvent::Failed { .. }));
    let ServerEvent::Failed { why, .. } = failed else { unreachable!() };
    assert!(why.contains("no stream yet: the server is full"), "{why}");
}

/// Clients that were refused and do not close, so that the server waits for them.
#[test]
fn refused_clients_of_64_addresses_leave_room_for_others() {
    let server = TestServer::with(|config| config.limits.half_open = 128);
    let crowd: Vec<TcpStream> = (0..256_u16)
        .map(|number| {
            let from = [127, 0, 2, u8::try_from(number % 64).unwrap()];
            let stranger = connect_from(from.into(), server.address).unwrap();
            let mut client = ScriptedClient::over(stranger, json!({}));
            client.send(client.cookie.bytes().to_owned().as_slice());
            // Not JSON: refused once it was read.
            client.send(&[0, 0, 0, 1, b'?']);
            client.control
        })
        .collect();
    for _ in 0..3 {
        serves(&server, Protocol::Tcp, Direction::Forward);
    }
    assert_eq!(refused_victims(&server), []);
    for mut stranger in crowd {
        stranger.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let _ = stranger.read_to_end(&mut Vec::new());
    }
}
