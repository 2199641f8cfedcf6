//! Two legs: what a page of another server may do here, and the verdict.

use crate::page::{Server, Socket, ask, carry_out, hello, short};
use serde_json::{Value, json};
use std::net::SocketAddr;
use web::WebRequest;

const NEAR: &str = "http://near.example:8080";

/// A server that is the peer of the page at [`NEAR`].
fn far() -> Server {
    Server::start(WebRequest { allow_origins: vec![NEAR.parse().unwrap()], ..short() })
}

fn send(address: SocketAddr, method: &str, target: &str, headers: &str) -> (u16, String) {
    let (status, answer) = ask(
        address,
        &format!(
            "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n"
        ),
    );
    (status, answer.to_lowercase())
}

#[test]
fn an_allowed_page_reads_the_answers_and_no_other_does() {
    let server = far();
    let run = format!("/api/run/{}/flow/1/0", "0".repeat(32));
    let allowed = format!("Origin: {NEAR}\r\n");
    let (status, answer) = send(server.address, "GET", &run, &allowed);
    assert_eq!(status, 404);
    assert!(answer.contains(&format!("access-control-allow-origin: {NEAR}\r\n")), "{answer}");
    assert!(answer.contains("vary: origin\r\n"), "{answer}");
    assert!(!answer.contains("allow-credentials"), "{answer}");
    assert!(Socket::try_open(server.address, "/api/run", &allowed).is_ok());
    // Its preflight, of a flow and of nothing else.
    let asks = format!("{allowed}Access-Control-Request-Method: POST\r\n");
    let (status, answer) = send(server.address, "OPTIONS", &run, &asks);
    assert_eq!(status, 204);
    assert!(answer.contains("access-control-allow-methods: get, post\r\n"), "{answer}");
    for origin in
        ["http://evil.example", "null", "https://near.example:8080", "http://near.example"]
    {
        let headers = format!("Origin: {origin}\r\nAccess-Control-Request-Method: POST\r\n");
        for (method, target) in [("GET", run.as_str()), ("OPTIONS", &run), ("POST", &run)] {
            let (status, answer) = send(server.address, method, target, &headers);
            assert_eq!(status, 403, "{method} {origin}");
            assert!(!answer.contains("access-control"), "{answer}");
        }
        let headers = format!("Origin: {origin}\r\n");
        assert_eq!(Socket::try_open(server.address, "/api/run", &headers).err(), Some(403));
    }
    for target in ["/api/peer", "/api/legs", "/api/runs"] {
        for method in ["GET", "POST", "OPTIONS"] {
            let (status, answer) = send(server.address, method, target, &asks);
            assert_eq!(status, 403, "{method} {target}");
            assert!(!answer.contains("access-control"), "{answer}");
        }
    }
    // The page itself is not for scripts of other pages.
    let (status, answer) = send(server.address, "GET", "/", &allowed);
    assert!(status == 200 && !answer.contains("access-control"), "{answer}");
}

#[test]
fn an_allowed_origin_spares_no_token_and_no_host_name() {
    let request = WebRequest {
        token: Some("secret".to_owned()),
        allow_origins: vec![NEAR.parse().unwrap()],
        ..short()
    };
    let server = Server::start(request);
    let allowed = format!("Origin: {NEAR}\r\n");
    let open = |target| Socket::try_open(server.address, target, &allowed).err();
    assert_eq!(open("/api/run"), Some(401));
    assert_eq!(open("/api/run?token=secret"), None);
    // The page reads the reason.
    let (status, answer) = send(server.address, "GET", "/api/run", &allowed);
    assert_eq!(status, 401);
    assert!(answer.contains("access-control-allow-origin: http://near"), "{answer}");
    let rebound =
        format!("GET /api/run?token=secret HTTP/1.1\r\nHost: evil.example\r\n{allowed}\r\n");
    assert_eq!(ask(server.address, &rebound).0, 421);
}

#[test]
fn the_page_is_told_of_the_peer_and_may_connect_there() {
    let peer = "http://far.example:8081/?token=t0ken".parse().ok();
    let server = Server::start(WebRequest { peer, ..short() });
    let (status, answer) = send(server.address, "GET", "/api/peer", "");
    assert_eq!(status, 200);
    assert!(answer.ends_with(r#"{"peer":"http://far.example:8081","token":"t0ken"}"#), "{answer}");
    for target in ["/", "/worker.js", "/probes.js"] {
        let (_, answer) = send(server.address, "GET", target, "");
        let connect = "connect-src 'self' http://far.example:8081 ws://far.example:8081;";
        assert!(answer.contains(connect), "{answer}");
    }
    let evil = "Origin: http://evil.example\r\n";
    assert_eq!(send(server.address, "GET", "/api/peer", evil).0, 403);
    let alone = Server::start(short());
    let (_, answer) = send(alone.address, "GET", "/api/peer", "");
    assert!(answer.ends_with(r#"{"peer":null,"token":null}"#), "{answer}");
}

#[test]
fn a_leg_has_short_steps() {
    let server = Server::start(short());
    let mut hello = hello();
    hello["purpose"] = json!("leg");
    let told = carry_out(server.address, &hello);
    let seconds: Vec<f64> =
        told.of("step").iter().filter_map(|step| step["seconds"].as_f64()).collect();
    assert_eq!(seconds, [0.05, 0.2, 0.25, 0.15]);
    let results = told.of("step-result");
    let kinds: Vec<&str> = results.iter().filter_map(|step| step["kind"].as_str()).collect();
    assert_eq!(kinds, ["idle", "download", "download", "upload"]);
    assert!(results.iter().skip(2).all(|step| step["flows"] == 6 && step["rate"].is_number()));
    assert_eq!(told.messages.last().unwrap()["type"], "result");
}

fn post(server: &Server, body: &str) -> (u16, String) {
    let headers = format!("Content-Length: {}\r\n", body.len());
    let address = server.address;
    ask(
        address,
        &format!(
            "POST /api/legs HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n{body}"
        ),
    )
}

#[test]
fn rounds_have_a_verdict() {
    let server = Server::start(short());
    let leg = |rate: f64, loaded: f64, limit: &str| {
        json!({"rtt_idle": 2.0, "upload": null,
            "download": {"rate": rate, "rtt_loaded": loaded, "limit": limit, "valid": true}})
    };
    let round = |near: f64, far: f64| json!({"near": leg(near, 3.0, "path-rate"), "far": leg(far, 103.0, "path-rate")});
    let rounds = json!({"rounds": [round(3e8, 5e7), round(2.9e8, 5.1e7), round(3.1e8, 4.9e7)]});
    let (status, answer) = post(&server, &rounds.to_string());
    assert_eq!(status, 200, "{answer}");
    let verdict: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(verdict["download"]["limiting"], "line", "{verdict}");
    assert!(verdict["download"]["equation"].as_str().unwrap().contains("far / near"), "{verdict}");
    assert_eq!((&verdict["upload"], &verdict["more_rounds"]), (&Value::Null, &json!(false)));
    assert_eq!(post(&server, "{}").0, 400);
    assert_eq!(post(&server, r#"{"rounds":[]}"#).0, 400);
    assert_eq!(post(&server, &"x".repeat(100_000)).0, 413);
}
