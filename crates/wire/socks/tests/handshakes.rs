//! Whole handshakes, however their bytes arrive, and what is refused with which answer.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use lane::{InvalidTarget, Refusal, Target};
use proptest::prelude::*;
use socks::{Command, Denial, Handshake, MAX_HEAD, Protocol, Token};

/// How a stream ended: with a target and what is left for it, not yet, or denied.
#[derive(Debug, PartialEq)]
enum End {
    Open(Target, Protocol, Vec<u8>),
    Incomplete,
    Denied(Denial),
}

/// The answer to a stream that arrives in pieces of that size, and how it ended.
fn play(token: Option<&str>, stream: &[u8], piece: usize) -> (Vec<u8>, End) {
    let mut handshake = Handshake::new(token.map(Token::new));
    let (mut answer, mut used) = (Vec::new(), 0);
    let ends = (piece..stream.len()).step_by(piece).chain([stream.len()]);
    for end in ends {
        match handshake.advance(&stream[used..end], &mut answer) {
            Ok(progress) => {
                used += progress.used;
                if let Some(target) = progress.target {
                    let protocol = handshake.protocol().unwrap();
                    return (answer, End::Open(target, protocol, stream[used..].to_vec()));
                }
            }
            Err(denial) => return (answer, End::Denied(denial)),
        }
    }
    (answer, End::Incomplete)
}

/// The target, protocol and early bytes of a stream that is accepted, and the answer before.
fn accepted(token: Option<&str>, stream: &[u8]) -> (String, Protocol, Vec<u8>, Vec<u8>) {
    let whole = play(token, stream, stream.len());
    for piece in [1, 2, 3, 7] {
        assert_eq!(play(token, stream, piece), whole, "in pieces of {piece}");
    }
    match whole {
        (answer, End::Open(target, protocol, early)) => {
            (target.to_string(), protocol, early, answer)
        }
        other => panic!("{other:?}"),
    }
}

/// The denial of a stream, and the answer.
fn denied(token: Option<&str>, stream: &[u8]) -> (Denial, Vec<u8>) {
    let whole = play(token, stream, stream.len());
    assert_eq!(play(token, stream, 1), whole);
    match whole {
        (answer, End::Denied(denial)) => (denial, answer),
        other => panic!("{other:?}"),
    }
}

fn socks(request: &[u8]) -> Vec<u8> {
    [&[5, 1, 0][..], request].concat()
}

fn socks_name(name: &[u8], port: u16) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap();
    socks(&[&[5, 1, 0, 3, length], name, &port.to_be_bytes()].concat())
}

#[test]
fn socks_addresses_and_names() {
    let v4 = socks(&[5, 1, 0, 1, 192, 0, 2, 1, 0, 80]);
    let got = accepted(None, &[&v4[..], b"early"].concat());
    assert_eq!(got, ("192.0.2.1:80".into(), Protocol::Socks5, b"early".to_vec(), vec![5, 0]));
    let mut v6 = socks(&[5, 1, 0, 4]);
    v6.extend("2001:db8::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
    v6.extend(443u16.to_be_bytes());
    assert_eq!(accepted(None, &v6).0, "[2001:db8::1]:443");
    assert_eq!(accepted(None, &socks_name(b"example.com", 22)).0, "example.com:22");
    // curl sends an address as a name with socks5h.
    let address = accepted(None, &socks_name(b"192.0.2.1", 22));
    assert_eq!(address.0, "192.0.2.1:22");
}

#[test]
fn a_token_is_asked_for_and_checked() {
    let request = [5, 1, 0, 1, 192, 0, 2, 1, 0, 80];
    let with = |password: &[u8]| {
        let length = u8::try_from(password.len()).unwrap();
        [&[5, 2, 0, 2, 1, 1, b'u', length][..], password, &request].concat()
    };
    assert_eq!(accepted(Some("secret"), &with(b"secret")).3, [5, 2, 1, 0]);
    assert_eq!(denied(Some("secret"), &with(b"Secret")), (Denial::Token, vec![5, 2, 1, 1]));
    assert_eq!(denied(Some("secret"), &with(b"")).0, Denial::Token);
    assert_eq!(denied(Some("s"), &[5, 1, 0]), (Denial::NoMethod, vec![5, 0xff]));
    // Clients that have a password offer both.
    assert_eq!(accepted(None, &[&[5, 2, 2, 0][..], &request].concat()).3, [5, 0]);
    let http = |credentials: &str| {
        format!("CONNECT a:1 HTTP/1.1\r\nHost: a\r\nProxy-Authorization: {credentials}\r\n\r\n")
    };
    // "u:secret" and "u:" in base64.
    assert_eq!(accepted(Some("secret"), http("basic dTpzZWNyZXQ=").as_bytes()).0, "a:1");
    for wrong in ["Basic dTo=", "Basic !", "Bearer dTpzZWNyZXQ=", "Basic", ""] {
        let (denial, answer) = denied(Some("secret"), http(wrong).as_bytes());
        assert_eq!(denial, Denial::Token, "{wrong}");
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 407 "), "{answer}");
        assert!(answer.contains("\r\nProxy-Authenticate: Basic "), "{answer}");
    }
}

#[test]
fn socks_requests_that_are_refused_by_name() {
    let request = |command: u8, kind: u8| {
        let mut bytes = socks(&[5, command, 0, kind]);
        bytes.extend([0; 18]);
        bytes
    };
    let refused = |bytes: &[u8]| {
        let (denial, answer) = denied(None, bytes);
        (denial, answer[3])
    };
    assert_eq!(refused(&request(2, 1)), (Denial::Command(Command::Bind), 7));
    assert_eq!(refused(&request(3, 1)), (Denial::Command(Command::UdpAssociate), 7));
    assert_eq!(refused(&request(9, 4)), (Denial::Command(Command::Unknown(9)), 7));
    assert_eq!(refused(&request(1, 2)), (Denial::AddressType(2), 8));
    assert_eq!(refused(&request(1, 1)), (Denial::Target(InvalidTarget::Port), 1));
    for name in [&b""[..], b"a\0b", b"a..b", b".", b"a b", b"a\r\nb", b"fe80::1%eth0", &[0xff]] {
        let denial = refused(&socks_name(name, 80)).0;
        assert_eq!(denial, Denial::Target(InvalidTarget::Name), "{name:?}");
    }
    assert!(denied(None, &request(3, 1)).0.to_string().contains("UDP ASSOCIATE is not supported"));
}

fn connect(rest: &str) -> String {
    format!("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n{rest}\r\n")
}

#[test]
fn connect_as_programs_send_it() {
    let curl = connect("User-Agent: curl/8.5.0\r\nProxy-Connection: Keep-Alive\r\n") + "\x16\x03";
    let (target, protocol, early, answer) = accepted(None, curl.as_bytes());
    assert_eq!((target.as_str(), protocol), ("example.com:443", Protocol::Connect));
    assert_eq!((early.as_slice(), answer.as_slice()), (&b"\x16\x03"[..], &b""[..]));
    let old = b"CONNECT [2001:db8::1]:22 HTTP/1.0\r\n\r\n";
    assert_eq!(accepted(None, old).0, "[2001:db8::1]:22");
    assert_eq!(accepted(None, connect("Content-Length: 0\r\n").as_bytes()).0, "example.com:443");
}

#[test]
fn what_two_parsers_could_read_differently_is_refused() {
    let wrong = [
        connect("A: b\nHost: c\r\n"),
        connect("A: b\rc\r\n"),
        connect("A: b\r\r\n"),
        connect("A: b\r\n folded\r\n"),
        connect("A : b\r\n"),
        connect(": b\r\n"),
        connect("A\r\n"),
        connect("A: \0\r\n"),
        connect("Host: example.com:443\r\n"),
        connect("Transfer-Encoding: chunked\r\n"),
        connect("Content-Length: 5\r\n"),
        connect("Content-Length: +0\r\n"),
        connect("Proxy-Authorization: a\r\nProxy-Authorization: b\r\n"),
        "CONNECT a:1 HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT a:1 HTTP/1.1\r\nHost: a b\r\n\r\n".to_owned(),
        "CONNECT  a:1 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "CONNECT a:1\r\nHost: a\r\n\r\n".to_owned(),
        "CONN\u{7f}ECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
    ];
    for head in wrong {
        let (denial, answer) = denied(None, head.as_bytes());
        assert!(matches!(denial, Denial::Malformed(_)), "{head:?}: {denial}");
        assert!(answer.starts_with(b"HTTP/1.1 400 Bad Request\r\n"), "{head:?}");
    }
    for authority in
        ["a", "a:", "a:0", "a:65536", "a:+1", "a:1x", "::1:1", "[::1]", "[a]:1", "u@a:1", "/:1"]
    {
        let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: a\r\n\r\n");
        let (denial, answer) = denied(None, head.as_bytes());
        assert!(matches!(denial, Denial::Target(_)), "{authority}: {denial}");
        assert!(answer.starts_with(b"HTTP/1.1 400 "));
    }
}

#[test]
fn other_protocols_are_refused_with_the_remedy() {
    let get = b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n";
    let (denial, answer) = denied(None, get);
    assert_eq!(denial, Denial::Method);
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("\r\nAllow: CONNECT\r\n"));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{answer}");
    assert_eq!(denied(None, b"PRI * HTTP/2.0\r\n\r\n").0, Denial::HttpVersion);
    assert_eq!(denied(None, &[4, 1, 0, 80]), (Denial::Socks4, vec![0, 0x5b, 0, 0, 0, 0, 0, 0]));
    assert_eq!(denied(None, &[0x16, 3, 1]).0, Denial::Tls);
    assert_eq!(denied(None, b"\r\n").0, Denial::Protocol);
}

#[test]
fn heads_are_bounded() {
    let head = |fill: usize| connect(&format!("A: {}\r\n", "x".repeat(fill)));
    let room = MAX_HEAD - head(0).len();
    assert_eq!(accepted(None, head(room).as_bytes()).0, "example.com:443");
    for more in [1, 5, 1 << 20] {
        let (denial, answer) = denied(None, head(room + more).as_bytes());
        assert_eq!(denial, Denial::TooLong);
        assert!(answer.starts_with(b"HTTP/1.1 431 "));
    }
    let fields = |count: usize| connect(&"a:\r\n".repeat(count));
    assert_eq!(accepted(None, fields(99).as_bytes()).0, "example.com:443");
    assert_eq!(denied(None, fields(100).as_bytes()).0, Denial::TooLong);
}

#[test]
fn each_refusal_has_its_code() {
    use Refusal as R;
    let cases = [
        (R::NotAllowed, 2, "403"),
        (R::Refused, 5, "502"),
        (R::Unreachable, 4, "502"),
        (R::NameNotFound, 4, "502"),
        (R::TimedOut, 6, "504"),
        (R::Busy, 1, "503"),
    ];
    for (refusal, code, status) in cases {
        assert_eq!(Protocol::Socks5.refused(refusal), [5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
        let response = String::from_utf8(Protocol::Connect.refused(refusal)).unwrap();
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
    }
    assert_eq!(Protocol::Socks5.accepted()[1], 0);
    assert!(Protocol::Connect.accepted().starts_with(b"HTTP/1.1 200 "));
}

proptest! {
    #[test]
    fn any_bytes_end_the_same_however_they_arrive(
        first in prop_oneof![Just(5u8), Just(b'C'), any::<u8>()],
        rest: Vec<u8>,
        piece in 1usize..9,
    ) {
        let stream = [&[first][..], &rest].concat();
        prop_assert_eq!(play(None, &stream, piece), play(None, &stream, stream.len()));
    }
}
