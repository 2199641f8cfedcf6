//! Replayed tokens.

use crate::{scripted_client::ScriptedClient, test_server::TestServer};
use hmac::{Hmac, KeyInit, Mac};
use host::clock;
use iperf3_proto::{Cookie, Refusal, State, framing};
use perf::{ServerEvent, server::Tokens};
use serde_json::{Value, json};
use sha2::Sha256;
use std::sync::Arc;

fn server() -> TestServer {
    TestServer::with(|config| config.tokens = Some(Arc::new(Tokens::read("secret\nanother"))))
}

fn mac(word: &str, cookie: &Cookie, time: u64) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(word.as_bytes()).unwrap();
    mac.update(cookie.bytes());
    mac.update(&time.to_be_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn asked(time: u64, mac: &str) -> Value {
    json!({"tcp": true, "time": 1, "parallel": 1,
        "longhaul": {"version": "0", "token": {"time": time, "mac": mac}}})
}

/// The server's reply to these parameters; complete if it refuses them.
fn answer(server: &TestServer, cookie: Cookie, asked: &Value) -> Vec<u8> {
    let mut client = ScriptedClient::asking(server, asked.clone());
    client.cookie = cookie;
    client.advance(server, 1);
    client.send(&framing::encode(asked).unwrap());
    let first = client.receive();
    let mut said = vec![first];
    if first == State::ServerError.byte() {
        said.extend(client.read_remaining());
    }
    said
}

#[test]
fn a_signature_admits_one_test_however_it_is_spelled() {
    let server = server();
    let time = clock::unix_seconds();
    // One whose digits have other spellings: a letter, and a byte below 16.
    let (cookie, good) = (0u8..=255)
        .map(|seed| Cookie::from_random([seed; 36]))
        .map(|cookie| (cookie, mac("secret", &cookie, time)))
        .find(|(_, mac)| mac.contains('a') && mac.as_bytes().chunks(2).any(|two| two[0] == b'0'))
        .unwrap();
    assert_eq!(answer(&server, cookie, &asked(time, &good)), [State::CreateStreams.byte()]);
    // The session ends before its cookie is used again.
    server.wait_for(|event| matches!(event, ServerEvent::Failed { .. }));
    let low = good.as_bytes().chunks(2).position(|two| two[0] == b'0').unwrap();
    let plus = format!("{}+{}", &good[..2 * low], &good[2 * low + 1..]);
    for again in [good.clone(), good.to_ascii_uppercase(), plus, good.replacen('a', "A", 1)] {
        let said = answer(&server, cookie, &asked(time, &again));
        let refusal =
            [&[State::ServerError.byte()], &Refusal::AUTHENTICATION.to_wire()[..]].concat();
        assert_eq!(said, refusal, "{again}");
    }
    // Nor with another cookie, or another time.
    let other = Cookie::from_random([99; 36]);
    assert_ne!(answer(&server, other, &asked(time, &good)), [State::CreateStreams.byte()]);
    assert_ne!(answer(&server, cookie, &asked(time - 1, &good)), [State::CreateStreams.byte()]);
    let fresh = mac("another", &other, time);
    assert_eq!(answer(&server, other, &asked(time, &fresh)), [State::CreateStreams.byte()]);
}
