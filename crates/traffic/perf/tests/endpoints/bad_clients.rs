//! Clients that stall, disconnect or send garbage at every point of the protocol: the
//! server keeps serving others, then and afterwards.

use crate::{scripted_client::ScriptedClient, test_server::TestServer};
use iperf3_proto::{State, framing};
use perf::ServerEvent;
use serde_json::json;
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

/// Short limits, so that a stalled client times out within the test.
fn server() -> TestServer {
    TestServer::with(|config| {
        config.limits.handshake = Duration::from_secs(1);
        config.limits.idle = Duration::from_secs(1);
    })
}

#[test]
fn stalled_clients_do_not_block_others() {
    let server = server();
    let clients: Vec<ScriptedClient> = (0..=4)
        .map(|steps| {
            let mut client = ScriptedClient::connect(&server);
            client.advance(&server, steps);
            client
        })
        .collect();
    server.check_serving();
    drop(clients);
    server.check_serving();
}

#[test]
fn vanished_clients_leave_no_resources() {
    let server = TestServer::with(|config| config.limits.sessions = 1);
    for steps in 0..=4 {
        server.events.lock().unwrap().clear();
        let mut client = ScriptedClient::connect(&server);
        client.advance(&server, steps);
        drop(client);
        server.wait_for(|event| matches!(event, ServerEvent::Failed { .. }));
        // With a limit of one session, the dead one must have been removed.
        server.check_serving();
    }
}

#[test]
fn garbage_at_any_point_ends_the_session() {
    let server = TestServer::with(|config| config.limits.sessions = 1);
    let nonsense: [&[u8]; 4] =
        [&[b'x'; 5000], b"GET / HTTP/1.1\r\nHost: longhaul\r\n\r\n", &[0xff; 64], &[0; 64]];
    for steps in 0..=4 {
        for bytes in nonsense {
            let mut client = ScriptedClient::connect(&server);
            client.advance(&server, steps);
            // The server may disconnect while we still send.
            let _ = client.control.write_all(bytes);
            let _ = client.control.shutdown(Shutdown::Write);
            // Once the connection is closed, the only slot must be free.
            let mut rest = Vec::new();
            let _ = client.control.read_to_end(&mut rest);
        }
    }
    server.check_serving();
}

#[test]
fn an_incomplete_message_times_out() {
    let server = server();
    let whole = framing::encode(&json!({"tcp": true, "time": 1})).unwrap();
    for cut in [1, 3, 4, 10, whole.len() - 1] {
        let mut client = ScriptedClient::connect(&server);
        client.advance(&server, 1);
        client.send(&whole[..cut]);
        client.control.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        let _ = client.control.read_to_end(&mut rest);
    }
    let mut half_a_cookie = ScriptedClient::connect(&server);
    half_a_cookie.send(b"abcdef");
    server.wait_for(
        |event| matches!(event, ServerEvent::Failed { why, .. } if why.contains("handshake timeout")),
    );
    server.check_serving();
}

#[test]
fn oversized_parameters_are_refused_unread() {
    let server = server();
    let mut client = ScriptedClient::connect(&server);
    client.advance(&server, 1);
    client.send(&8193u32.to_be_bytes());
    assert_eq!(client.receive(), State::ServerError.byte());
    server
        .wait_for(|event| matches!(event, ServerEvent::Failed { why, .. } if why.contains("8193")));
    server.check_serving();
}

#[test]
fn missing_streams_end_the_session() {
    let server = server();
    let mut client = ScriptedClient::connect(&server);
    client.advance(&server, 2);
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(client.cookie.bytes()).unwrap();
    assert_eq!(client.receive(), State::ServerError.byte());
    server.wait_for(
        |event| matches!(event, ServerEvent::Failed { why, .. } if why.contains("only 1 of 2")),
    );
    server.check_serving();
}

#[test]
fn an_excess_stream_is_refused() {
    let server = server();
    let mut client = ScriptedClient::connect(&server);
    client.advance(&server, 3);
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(client.cookie.bytes()).unwrap();
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    assert_eq!(byte[0], State::AccessDenied.byte());
}

#[test]
fn silent_connections_do_not_block_others() {
    let server = TestServer::with(|config| config.limits.half_open = 4);
    let _crowd: Vec<TcpStream> =
        (0..20).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    server.check_serving();
}
