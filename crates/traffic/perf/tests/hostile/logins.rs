//! Replayed logins, and logins that only cost CPU time.

use crate::{scripted_client::ScriptedClient, test_server::TestServer};
use base64::{Engine, prelude::BASE64_STANDARD};
use getrandom::SysRng;
use host::clock;
use iperf3_proto::{State, framing};
use perf::server::{Padding, Users};
use rand_core::UnwrapErr;
use rsa::{
    Oaep, RsaPrivateKey, RsaPublicKey,
    pkcs8::{EncodePrivateKey, LineEnding},
};
use serde_json::json;
use sha1::Sha1;
use std::{sync::Arc, time::Duration};

/// iperf3's own example: SHA-256 of "{mario}rossi".
const USERS: &str = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";

fn server() -> (TestServer, RsaPublicKey) {
    let key = RsaPrivateKey::new(&mut UnwrapErr(SysRng), 1024).unwrap();
    let pem = key.to_pkcs8_pem(LineEnding::LF).unwrap();
    let users = Users::new(&pem, USERS, Padding::Oaep, Duration::from_secs(600)).unwrap();
    let server = TestServer::with(|config| config.users = Some(Arc::new(users)));
    (server, key.to_public_key())
}

fn sealed(key: &RsaPublicKey, password: &str) -> String {
    let login = format!("user: mario\npwd:  {password}\nts:   {}", clock::unix_seconds());
    let random = &mut UnwrapErr(SysRng);
    let sealed = key.encrypt(random, Oaep::<Sha1>::new(), login.as_bytes()).unwrap();
    BASE64_STANDARD.encode(sealed)
}

/// The server's reply to a login, and its time.
fn answer(server: &TestServer, token: &str) -> (Option<State>, Duration) {
    let asked = json!({"tcp": true, "time": 1, "parallel": 1, "authtoken": token});
    let mut client = ScriptedClient::after(server, &asked, 1);
    let began = clock::now();
    client.send(&framing::encode(&asked).unwrap());
    let said = State::from_byte(client.receive());
    (said, began.elapsed())
}

#[test]
fn a_login_admits_one_test() {
    let (server, key) = server();
    let login = sealed(&key, "rossi");
    assert_eq!(answer(&server, &login).0, Some(State::CreateStreams));
    for again in [login.clone(), format!(" {login}\n")] {
        assert_eq!(answer(&server, &again).0, Some(State::ServerError), "sent again");
    }
    assert_eq!(answer(&server, &sealed(&key, "rossi")).0, Some(State::CreateStreams));
}

#[test]
fn no_reply_precedes_its_request() {
    let (server, key) = server();
    let wrong = sealed(&key, "verdi");
    let long = BASE64_STANDARD.encode([7; 512]);
    for token in ["", "!!", &wrong, &wrong, &wrong[4..], &long, &"A".repeat(172)] {
        let (said, after) = answer(&server, token);
        assert_eq!(said, Some(State::ServerError), "{token}");
        assert!(after >= Duration::from_millis(300), "{token}: {after:?}");
    }
}
