//! What a server refuses, and that it stays bounded.

use crate::page::{Server, Socket, ask, begin, short};
use host::clock::now;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use web::{Tls, WebRequest};

fn get(server: &Server, target: &str, headers: &str) -> (u16, String) {
    let host = server.address;
    ask(
        server.address,
        &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"),
    )
}

#[test]
fn the_page_is_served_under_a_strict_policy() {
    let server = Server::start(short());
    let (status, answer) = get(&server, "/", "");
    assert_eq!(status, 200);
    let answer = answer.to_lowercase();
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-opener-policy: same-origin",
        "cross-origin-embedder-policy: require-corp",
        "etag: ",
    ] {
        assert!(answer.contains(header), "{header}: {answer}");
    }
    assert_eq!(get(&server, "/nonesuch", "").0, 404);
    assert_eq!(get(&server, "/..%2f..%2fetc/passwd", "").0, 404);
}

#[test]
fn other_hosts_and_origins_are_refused() {
    let server = Server::start(short());
    let evil = "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(ask(server.address, evil).0, 421);
    assert_eq!(ask(server.address, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n").0, 400);
    let own = format!("Origin: http://{}\r\n", server.address);
    assert!(Socket::try_open(server.address, "/api/run", &own).is_ok());
    for origin in ["http://evil.example", "null", "https://evil.example:443"] {
        let origin = format!("Origin: {origin}\r\n");
        assert_eq!(Socket::try_open(server.address, "/api/run", &origin).err(), Some(403));
    }
    assert_eq!(get(&server, "/api/run", "").0, 400);
}

#[test]
fn a_token_is_asked_for() {
    let server = Server::start(WebRequest { token: Some("secret".to_owned()), ..short() });
    let open = |target| Socket::try_open(server.address, target, "").err();
    assert_eq!(open("/api/run"), Some(401));
    assert_eq!(open("/api/run?token=wrong!"), Some(401));
    assert_eq!(open("/api/run?token=secret"), None);
}

#[test]
fn forged_messages_end_the_run() {
    let server = Server::start(short());
    let huge = format!(r#"{{"type":"hello","version":1,"platform":"{}"}}"#, "x".repeat(70_000));
    // As the first message.
    for text in [
        "nonsense",
        "{}",
        r#"{"type":"hello","version":2}"#,
        r#"{"type":"hello","version":-1}"#,
        r#"{"type":"received","step":0,"t":0,"bytes":[]}"#,
        r#"{"type":"hello","version":1,"max_bytes":-1}"#,
        &huge,
    ] {
        let mut control = Socket::open(server.address, "/api/run");
        control.send(text.as_bytes());
        let answer = control.text();
        assert!(answer.is_none_or(|answer| answer["type"] == "problem"), "{text}");
        assert!(control.text().is_none());
    }
    // In the first step.
    for text in [
        r#"{"type":"probes","step":0,"on":"own","replies":[[0,NaN]]}"#,
        r#"{"type":"probes","step":0,"on":"own","replies":[[0,1e300]]}"#,
        r#"{"type":"probes","step":0,"on":"own","replies":[[0,-1]]}"#,
        r#"{"type":"probes","step":7,"on":"own","replies":[]}"#,
        r#"{"type":"page","step":0,"hidden":"yes"}"#,
        r#"{"type":"hello","version":1}"#,
        r#"{"type":"launch"}"#,
    ] {
        let (mut control, _) = begin(server.address);
        control.send(text.as_bytes());
        let problem = std::iter::from_fn(|| control.text()).find(|said| said["type"] == "problem");
        assert!(problem.is_some(), "{text}");
        assert!(control.text().is_none());
    }
}

#[test]
fn half_messages_hold_no_run() {
    let mut request = short();
    request.limits.header = Duration::from_secs(1);
    let server = Server::start(request);
    // Of a request, of an upgrade's first frame, of a message in a step: each connection ends.
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(b"GET /api/run HTTP/1.1\r\nHost: ").unwrap();
    let began = now();
    let _ = stream.read_to_end(&mut Vec::new());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let (mut control, _) = begin(server.address);
    control.stream.write_all(&[0x81, 0xfe, 0xff]).unwrap();
    // The run goes on: a download without flows ends it.
    let problem = std::iter::from_fn(|| control.text()).find(|said| said["type"] == "problem");
    assert!(problem.unwrap()["message"].as_str().unwrap().contains("did not open"));
}

#[test]
fn flows_come_in_their_order_and_direction() {
    let server = Server::start(short());
    let (mut control, welcome) = begin(server.address);
    let run = welcome["run"].as_str().unwrap();
    let flow = |step: u64, number: u64| {
        Socket::try_open(server.address, &format!("/api/run/{run}/flow/{step}/{number}"), "")
    };
    assert_eq!(flow(0, 0).err(), Some(409));
    assert_eq!(flow(1, 0).err(), Some(409));
    let guessed = Socket::try_open(server.address, "/api/run/0123456789abcdef/flow/1/0", "");
    assert_eq!(guessed.err(), Some(404));
    control.say(&json!({"type": "page", "step": 0, "busy": null, "longest_stall_ms": null}));
    while control.text().unwrap()["kind"] != "download" {}
    let mut first = flow(1, 0).unwrap();
    assert_eq!(flow(1, 0).err(), Some(409));
    assert_eq!(flow(1, 1).err(), Some(409));
    // Data in the wrong direction, in a frame above the limit.
    first.stream.write_all(&[0x82, 0xff, 0, 0, 0, 0, 0x10, 0, 0, 0, 1, 2, 3, 4]).unwrap();
    let result = std::iter::from_fn(|| control.text()).find(|said| said["type"] == "step-result");
    let result = std::iter::from_fn(|| control.text())
        .find(|said| said["type"] == "step-result")
        .or(result)
        .unwrap();
    assert!(result["invalid_because"].to_string().contains("broke off"), "{result}");
}

/// A connection on which a request was answered.
fn kept_alive(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
    stream.read_exact(&mut [0; 12]).unwrap();
    stream
}

#[test]
fn one_address_has_its_share() {
    let mut request = short();
    request.limits.connections_per_address = 8;
    request.limits.runs_per_address = 2;
    let server = Server::start(request);
    let runs: Vec<_> = (0..2).map(|_| Socket::open(server.address, "/api/run")).collect();
    assert_eq!(Socket::try_open(server.address, "/api/run", "").err(), Some(429));
    // What has asked for something is not closed for another connection.
    let used: Vec<_> = (0..6).map(|_| kept_alive(server.address)).collect();
    let (status, answer) = get(&server, "/", "");
    assert_eq!(status, 429, "{answer}");
    assert!(answer.to_lowercase().contains("retry-after: "), "{answer}");
    drop((runs, used));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(get(&server, "/", "").0, 200);
}

#[test]
fn a_header_is_bounded() {
    let server = Server::start(short());
    let (status, _) = get(&server, "/", &format!("X: {}\r\n", "x".repeat(100_000)));
    assert!(status == 431 || status == 0, "{status}");
    let (status, _) = get(&server, "/", &"X: y\r\n".repeat(1000));
    assert!(status == 431 || status == 0, "{status}");
    assert_eq!(get(&server, "/", "").0, 200);
}

/// Accepts any certificate: it is made when the server starts.
#[derive(Debug)]
struct AnyCertificate(rustls::crypto::CryptoProvider);

impl rustls::client::danger::ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Connects without a check of the certificate, and with HTTP/2 offered.
fn session() -> rustls::ClientConnection {
    let provider = rustls::crypto::ring::default_provider();
    let verifier = Arc::new(AnyCertificate(provider.clone()));
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    rustls::ClientConnection::new(Arc::new(config), name).unwrap()
}

/// The status of the page over TLS; `None` where the connection ends before.
pub(crate) fn status_over_tls(address: SocketAddr) -> Option<u16> {
    let mut session = session();
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let mut tls = rustls::Stream::new(&mut session, &mut stream);
    tls.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    let _ = tls.read_to_end(&mut answer);
    assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
    String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
}

#[test]
fn the_page_is_served_over_tls() {
    let server = Server::start(WebRequest { tls: Tls::SelfSigned, ..short() });
    assert_eq!(status_over_tls(server.address), Some(200));
    // Plain HTTP to this port is no handshake.
    assert_eq!(get(&server, "/", "").0, 0);
}

#[test]
fn a_refused_probe_gives_its_place_back() {
    let server = Server::start(short());
    let (_control, welcome) = begin(server.address);
    let target = format!("/api/run/{}/probe", welcome["run"].as_str().unwrap());
    for _ in 0..5 {
        assert_eq!(get(&server, &target, "").0, 400);
    }
    let kept = [Socket::open(server.address, &target), Socket::open(server.address, &target)];
    assert_eq!(Socket::try_open(server.address, &target, "").err(), Some(409));
    drop(kept);
}
