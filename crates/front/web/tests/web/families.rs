//! IPv4 beside IPv6, and probes of a visitor's route: what pages may do, and what is refused.

use crate::page::{Server, Socket, ask, begin, carry_out, carry_out_through, hello, short};
use serde_json::{Value, json};
use socket2::{Domain, Protocol, Type};
use std::net::SocketAddr;
use web::WebRequest;

fn named() -> WebRequest {
    WebRequest {
        names: vec!["speed.test".to_owned()],
        ipv4_name: Some("v4.speed.test".to_owned()),
        ipv6_name: Some("v6.speed.test".to_owned()),
        ..short()
    }
}

fn get(address: SocketAddr, target: &str, headers: &str) -> (u16, String) {
    let head = format!("GET {target} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
    let (status, answer) = ask(address, &head);
    (status, answer.to_lowercase())
}

#[test]
fn the_page_may_connect_to_the_names_of_both_families_and_no_further() {
    let server = Server::start(named());
    let port = server.address.port();
    let host = format!("Host: speed.test:{port}\r\n");
    let (status, answer) = get(server.address, "/", &host);
    assert_eq!(status, 200);
    let of = |name: &str| format!("http://{name}:{port} ws://{name}:{port}");
    let connect = format!("connect-src 'self' {} {};", of("v4.speed.test"), of("v6.speed.test"));
    assert!(answer.contains(&connect), "{answer}");
    // The port is that by which the visitor reaches the server, as behind a proxy.
    let (_, answer) = get(server.address, "/", "Host: v4.speed.test\r\n");
    let of = |name: &str| format!("http://{name} ws://{name}");
    let connect = format!("connect-src 'self' {} {};", of("v4.speed.test"), of("v6.speed.test"));
    assert!(answer.contains(&connect), "{answer}");
    let (_, answer) = get(server.address, "/api/families", &host);
    assert!(answer.contains(r#"{"ipv4":{"name":"v4.speed.test","has_address":"#), "{answer}");
    let alone = Server::start(short());
    let (_, answer) = get(alone.address, "/api/families", "Host: localhost\r\n");
    assert!(answer.ends_with(r#"{"ipv4":null,"ipv6":null}"#), "{answer}");
}

#[test]
fn a_page_of_another_name_measures_and_a_page_of_another_server_does_not() {
    let server = Server::start(named());
    let port = server.address.port();
    let from = |origin: &str| format!("Host: v6.speed.test:{port}\r\nOrigin: {origin}\r\n");
    let own = format!("http://speed.test:{port}");
    let (status, answer) = get(server.address, "/api/run/reach", &from(&own));
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains(&format!("access-control-allow-origin: {own}\r\n")), "{answer}");
    assert!(answer.ends_with(r#"{"ip_version":4}"#), "{answer}");
    assert!(!answer.contains("allow-credentials"), "{answer}");
    for origin in [
        "http://speed.test".to_owned(),
        format!("http://speed.test:{}", port ^ 1),
        format!("http://evil.test:{port}"),
        format!("http://speed.test.evil:{port}"),
        format!("ftp://speed.test:{port}"),
        "null".to_owned(),
    ] {
        let (status, answer) = get(server.address, "/api/run/reach", &from(&origin));
        assert_eq!(status, 403, "{origin}");
        assert!(!answer.contains("access-control"), "{answer}");
    }
    // Beyond runs nothing is shared.
    for target in ["/api/families", "/api/peer"] {
        assert_eq!(get(server.address, target, &from(&own)).0, 403, "{target}");
    }
    // Without names of a family there are no siblings.
    let request = WebRequest { names: vec!["a.test".to_owned(), "b.test".to_owned()], ..short() };
    let plain = Server::start(request);
    let port = plain.address.port();
    let headers = format!("Host: b.test:{port}\r\nOrigin: http://a.test:{port}\r\n");
    assert_eq!(get(plain.address, "/api/run/reach", &headers).0, 403);
}

#[test]
fn what_was_measured_over_both_is_in_the_result() {
    let server = Server::start(short());
    let mut hello = hello();
    hello["thorough"] = json!(false);
    hello["families"] = json!({
        "ipv4": {"rtt": 20.0, "rtt_interval": [19.5, 20.5], "rate": 1e8, "interval": [9e7, 1.1e8]},
        "ipv6": {"failed": "silent", "after_ms": 4000.0},
    });
    let told = carry_out(server.address, &hello);
    let families = &told.messages.last().unwrap()["families"];
    assert_eq!(families["ipv4"]["rtt"], 20.0);
    let sentence = families["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("No IPv6: nothing answered within 4.0 s"), "{sentence}");
    // A run over one family has two steps, and says nothing of a queue.
    let alone = json!({"type": "hello", "version": 1, "purpose": "family"});
    let told = carry_out(server.address, &alone);
    let results = told.of("step-result");
    let kinds: Vec<&Value> = results.iter().map(|step| &step["kind"]).collect();
    assert_eq!(kinds, ["idle", "download"]);
    assert_eq!(told.messages.last().unwrap()["queue"], Value::Null);
}

/// One address has the route of one run probed at a time. Without `CAP_NET_RAW` no route is, and the
/// limit itself is tested where it is kept.
#[test]
fn routes_are_probed_once_for_an_address() {
    let server = Server::start(short());
    let address = server.address;
    let (mut control, welcome) = begin(address);
    let run = welcome["run"].as_str().unwrap().to_owned();
    let _probe = Socket::open(address, &format!("/api/run/{run}/probe"));
    assert_eq!(control.text().unwrap()["kind"], "idle");
    let second = carry_out(address, &hello());
    let queue = &second.messages.last().unwrap()["queue"];
    let may_probe = socket2::Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP)).is_ok();
    let why =
        if may_probe { "other runs are being probed" } else { "the server has no CAP_NET_RAW" };
    assert_eq!(queue["not_probed"], why, "{queue}");
    for direction in ["download", "upload"] {
        assert_eq!(queue[direction]["place"], Value::Null, "{queue}");
        assert_eq!(queue[direction]["hops"], json!([]), "{queue}");
    }
}

/// Behind a proxy the route would be the proxy's, also where it is one of the probe connection alone.
#[test]
fn the_route_to_a_proxy_is_not_probed() {
    let proxied = "X-Forwarded-For: 198.51.100.7\r\n";
    let trusting = WebRequest { trusted_proxies: vec!["127.0.0.1".parse().unwrap()], ..short() };
    let mut hello = hello();
    hello["thorough"] = json!(false);
    for (request, of_control) in [(trusting, proxied), (short(), "")] {
        let server = Server::start(request);
        let told = carry_out_through(server.address, &hello, [of_control, proxied]);
        assert_eq!(told.messages[0]["proxied"], !of_control.is_empty());
        let result = told.messages.last().unwrap();
        assert_eq!(result["type"], "result", "{result}");
        let queue = &result["queue"];
        assert_eq!(queue["not_probed"], "a reverse proxy is in between", "{queue}");
        assert_eq!(queue["download"]["hops"], json!([]), "{queue}");
    }
}
