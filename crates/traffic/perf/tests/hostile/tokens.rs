//! Token proofs that are replayed, relayed to another server, or used for other parameters.

use crate::{
    scripted_client::ScriptedClient,
    test_server::{TestServer, run, short},
};
use host::clock;
use iperf3_proto::{Cookie, Refusal, State, cookie::COOKIE_LEN, token_proof};
use perf::client::EndAfter;
use perf::{
    PerfError, RefusalReason, ServerEvent, StopFlag,
    client::{self, ClientConfig, Family},
    server::Tokens,
};
use serde_json::json;
use std::{
    io::{Read, Write},
    net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
};

const TOKEN: &str = "secret";

fn tokens(names: &[&str]) -> Option<Arc<Tokens>> {
    let names = names.iter().map(|name| name.parse().unwrap()).collect();
    Some(Arc::new(Tokens::read("secret\nanother").with_names(names)))
}

fn server(names: &[&str]) -> TestServer {
    TestServer::with(|config| config.tokens = tokens(names))
}

/// A test of one block with the token.
fn with_token(address: SocketAddr) -> ClientConfig {
    ClientConfig { token: Some(TOKEN.to_owned()), end: EndAfter::Blocks(1), ..short(address) }
}

/// What a client sent to a server: its cookie and its parameters.
struct Captured {
    /// The server's address.
    at: SocketAddr,
    cookie: Cookie,
    text: String,
}

/// Lets a client with the token test against a rogue server at `address`.
fn captured(address: IpAddr, change: impl FnOnce(&mut ClientConfig)) -> Captured {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    let mut config = with_token(at);
    change(&mut config);
    let client = thread::spawn(move || client::run(&config, &mut |_| (), &StopFlag::new()));
    let mut connection = listener.accept().unwrap().0;
    let mut cookie = [0; COOKIE_LEN];
    connection.read_exact(&mut cookie).unwrap();
    connection.write_all(&[State::ParamExchange.byte()]).unwrap();
    let mut length = [0; 4];
    connection.read_exact(&mut length).unwrap();
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    connection.read_exact(&mut text).unwrap();
    drop(connection);
    assert!(client.join().unwrap().is_err());
    let text = String::from_utf8(text).unwrap();
    Captured { at, cookie: Cookie::from_wire(cookie), text }
}

/// The server's reply to these parameters; complete if it refuses them.
fn answer(server: &TestServer, cookie: Cookie, text: &str) -> Vec<u8> {
    answer_over(TcpStream::connect(server.address).unwrap(), server, cookie, text)
}

fn answer_over(connection: TcpStream, server: &TestServer, cookie: Cookie, text: &str) -> Vec<u8> {
    let mut client = ScriptedClient::over(connection, serde_json::Value::Null);
    client.cookie = cookie;
    client.advance(server, 1);
    client.send(&u32::try_from(text.len()).unwrap().to_be_bytes());
    client.send(text.as_bytes());
    let first = client.receive();
    let mut said = vec![first];
    if first == State::ServerError.byte() {
        said.extend(client.read_remaining());
    }
    said
}

fn refusal() -> Vec<u8> {
    [&[State::ServerError.byte()], &Refusal::TOKEN.to_wire()[..]].concat()
}

/// The reason in the server's log.
fn reason(server: &TestServer) -> String {
    let refused = |event: &ServerEvent| {
        matches!(event, ServerEvent::Refused { reason: RefusalReason::Authentication, .. })
    };
    let ServerEvent::Refused { why, .. } = server.wait_for(refused) else { unreachable!() };
    why
}

/// A rogue server's address: all of 127.0.0.0/8 is this host.
const ROGUE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

#[test]
fn a_proof_that_a_rogue_server_received_is_refused_by_the_real_one() {
    let server = server(&[]);
    let relayed = captured(ROGUE, |_| ());
    assert_eq!(answer(&server, relayed.cookie, &relayed.text), refusal());
    let why = reason(&server);
    assert!(why.contains(&format!("a token proof for another server, {}", relayed.at)), "{why}");
    // Nor with the claims that would fit: the proof covers them.
    let port = |port: u16| format!("\"port\":{port}");
    let claims = relayed
        .text
        .replace("127.0.0.2", "127.0.0.1")
        .replace(&port(relayed.at.port()), &port(server.address.port()));
    assert_eq!(answer(&server, relayed.cookie, &claims), refusal());
    // The client itself is admitted, by any name of that address.
    run(&with_token(server.address)).unwrap();
    run(&ClientConfig {
        host: "localhost".to_owned(),
        family: Family::V4,
        ..with_token(server.address)
    })
    .unwrap();
}

#[test]
fn a_proof_covers_every_parameter() {
    let good = captured(ROGUE, |config| config.end = EndAfter::Seconds(1.0));
    let server = server(&[&good.at.to_string()]);
    let member = token_proof::split(good.text.as_bytes()).unwrap().0.len();
    let (before, proof) = good.text.split_at(member);
    let changed = [
        good.text.replacen("\"time\":1,", "\"time\":3600,", 1),
        good.text.replacen("\"parallel\":1,", "\"parallel\":16,", 1),
        format!("{before},\"reverse\":true{proof}"),
        format!("{},\"reverse\":true}}", &good.text[..good.text.len() - 1]),
        // The relay's own parameters, with the proof as it was.
        format!("{{\"tcp\":true,\"time\":3600,\"parallel\":16,\"longhaul\":{{}}{proof}"),
    ];
    for text in changed {
        assert_ne!(text, good.text);
        assert_eq!(answer(&server, good.cookie, &text), refusal(), "{text}");
    }
    assert_eq!(answer(&server, good.cookie, &good.text), [State::CreateStreams.byte()]);
}

#[test]
fn a_proof_admits_one_test_however_it_is_spelled() {
    // One whose digits have other spellings: a letter, and a byte below 16.
    let mac = |text: &str| token_proof::split(text.as_bytes()).unwrap().1.mac.unwrap();
    let low = |mac: &str| mac.as_bytes().chunks(2).position(|two| two[0] == b'0');
    let has_spellings = |mac: &str| mac.contains('a') && low(mac).is_some();
    let good = std::iter::repeat_with(|| captured(ROGUE, |_| ()))
        .find(|good| has_spellings(&mac(&good.text)))
        .unwrap();
    let server = server(&[&good.at.to_string()]);
    assert_eq!(answer(&server, good.cookie, &good.text), [State::CreateStreams.byte()]);
    // The session ends before its cookie is used again.
    server.wait_for(|event| matches!(event, ServerEvent::Failed { .. }));
    let mac = mac(&good.text);
    let low = low(&mac).unwrap();
    let plus = format!("{}+{}", &mac[..2 * low], &mac[2 * low + 1..]);
    for again in [mac.clone(), mac.to_ascii_uppercase(), plus, mac.replacen('a', "A", 1)] {
        let text = good.text.replace(&mac, &again);
        assert_eq!(answer(&server, good.cookie, &text), refusal(), "{again}");
    }
    // Nor with another cookie.
    let other = Cookie::from_random([99; 36]);
    assert_eq!(answer(&server, other, &good.text), refusal());
}

#[test]
fn a_server_behind_nat_is_told_its_names() {
    let typed = |name: &str| {
        let name = name.to_owned();
        captured(ROGUE, move |config| config.server_name = Some(name))
    };
    for (names, admitted) in [
        (vec!["lab.example:PORT"], true),
        (vec!["127.0.0.2:PORT"], true),
        (vec!["other.example:PORT", "LAB.EXAMPLE.:PORT"], true),
        (vec!["other.example:PORT"], false),
        // Without a port, a name is for the port that the server listens on.
        (vec!["lab.example", "127.0.0.2"], false),
    ] {
        let proof = typed("lab.example");
        let port = proof.at.port().to_string();
        let names: Vec<String> = names.iter().map(|name| name.replace("PORT", &port)).collect();
        let server = server(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let said = answer(&server, proof.cookie, &proof.text);
        let expected = if admitted { vec![State::CreateStreams.byte()] } else { refusal() };
        assert_eq!(said, expected, "{names:?}");
    }
}

#[test]
fn both_ip_versions_of_a_listener_are_its_addresses() {
    let server = TestServer::with(|config| {
        config.bind = None;
        config.tokens = tokens(&[]);
    });
    let port = server.address.port();
    let at = |host: &str| ClientConfig {
        host: host.to_owned(),
        ..with_token((IpAddr::from([127, 0, 0, 1]), port).into())
    };
    // A dual-stack listener sees this client at an IPv4-mapped address.
    run(&at("127.0.0.1")).unwrap();
    // The kernel takes this for the host itself.
    run(&at("0.0.0.0")).unwrap();
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() || !server.address.is_ipv6() {
        eprintln!("skipped: this host has no IPv6");
        return;
    }
    run(&at("::1")).unwrap();
    let relayed = captured(Ipv6Addr::LOCALHOST.into(), |_| ());
    let connection = TcpStream::connect((Ipv6Addr::LOCALHOST, port)).unwrap();
    assert_eq!(answer_over(connection, &server, relayed.cookie, &relayed.text), refusal());
    let why = reason(&server);
    assert!(why.contains(&format!("another server, {}", relayed.at)), "{why}");
}

#[test]
fn a_client_of_an_earlier_version_is_refused_with_the_remedy() {
    let server = server(&[]);
    let proof = json!({"time": clock::unix_seconds(), "mac": "0".repeat(64)});
    let text = json!({"tcp": true, "time": 1, "longhaul": {"version": "0", "token": proof}});
    let said = answer(&server, Cookie::from_random([5; 36]), &text.to_string());
    assert_eq!(said, refusal());
    assert!(reason(&server).contains("update the client"));
    // A client without a token learns what to check.
    let config = ClientConfig { token: None, ..with_token(server.address) };
    let Err(error @ PerfError::Refused { .. }) = run(&config) else { panic!("admitted") };
    assert!(error.to_string().contains("token"), "{error}");
}
