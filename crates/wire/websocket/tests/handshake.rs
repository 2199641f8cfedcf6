//! The upgrade: what a server accepts of a client, and a client of a server.

use proptest::prelude::*;
use websocket::handshake::{MAX_RESPONSE_HEAD, accept};
use websocket::{ClientKey, Upgrade, UpgradeError};

const NDT7: &str = "net.measurementlab.ndt.v7";

/// The example of RFC 6455, section 1.3, with header values of a browser.
const HEADERS: [(&str, &str); 6] = [
    ("Host", "server.example.com"),
    ("upgrade", "WebSocket"),
    ("Connection", "keep-alive, Upgrade"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Protocol", "chat, net.measurementlab.ndt.v7"),
];

/// The headers with the named one replaced, or left out.
fn with(name: &str, value: Option<&str>) -> Result<Upgrade, UpgradeError> {
    let changed = HEADERS.iter().filter_map(|(its, old)| match (*its == name, value) {
        (true, None) => None,
        (true, Some(value)) => Some((*its, value.as_bytes())),
        (false, _) => Some((*its, old.as_bytes())),
    });
    Upgrade::of(changed)
}

#[test]
fn the_example_of_the_rfc() {
    let upgrade = with("", None).unwrap();
    assert_eq!(upgrade.accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_eq!(upgrade.subprotocols, ["chat", NDT7]);
    assert_eq!(upgrade.require(NDT7), Ok(()));
    assert_eq!(upgrade.require("NET"), Err(UpgradeError::Subprotocol("NET")));
}

#[test]
fn each_header_is_required_and_checked() {
    use UpgradeError as E;
    let cases = [
        ("upgrade", Some("h2c"), E::NoUpgrade, 400),
        ("upgrade", None, E::NoUpgrade, 400),
        ("Connection", Some("close"), E::NoUpgrade, 400),
        ("Sec-WebSocket-Version", Some("8"), E::Version, 426),
        ("Sec-WebSocket-Version", None, E::Version, 426),
        ("Sec-WebSocket-Key", None, E::Key, 400),
        ("Sec-WebSocket-Key", Some("dGhlIHNhbXBsZSBub25j"), E::Key, 400),
        ("Sec-WebSocket-Key", Some("dGhlIHNhbXBsZSBub25jZ!=="), E::Key, 400),
        ("Sec-WebSocket-Protocol", Some("a b"), E::Malformed, 400),
    ];
    for (name, value, error, status) in cases {
        assert_eq!(with(name, value), Err(error.clone()), "{name}: {value:?}");
        assert_eq!(error.status(), status);
    }
    let twice = HEADERS.iter().chain([&HEADERS[3]]).map(|(name, value)| (*name, value.as_bytes()));
    assert_eq!(Upgrade::of(twice), Err(E::Key));
    assert_eq!(with("Sec-WebSocket-Protocol", None).unwrap().subprotocols, [""; 0]);
}

fn response(key: &ClientKey, status: &str, subprotocol: &str) -> Vec<u8> {
    let request = key.request("/ndt/v7/download", "localhost:80", NDT7).unwrap_or_default();
    let sent = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
    format!(
        "HTTP/1.1 {status}\r\nupgrade: websocket\r\nConnection: Upgrade\r\n\
         sec-websocket-accept: {}\r\nSec-WebSocket-Protocol: {subprotocol}\r\n\r\n\u{1}frame",
        accept(sent.unwrap_or_default())
    )
    .into_bytes()
}

#[test]
fn a_client_accepts_the_answer_to_its_own_key_alone() {
    let key = ClientKey::new([3; 16]);
    let good = response(&key, "101 Switching Protocols", NDT7);
    let head = good.len() - "\u{1}frame".len();
    assert_eq!(key.check_response(&good, NDT7), Ok(Some(head)));
    for end in 0..head {
        assert_eq!(key.check_response(&good[..end], NDT7), Ok(None), "{end} bytes");
    }
    let refused = |bytes: &[u8]| match key.check_response(bytes, NDT7) {
        Err(UpgradeError::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&response(&key, "429 Too Many", NDT7)), "HTTP/1.1 429 Too Many");
    assert!(refused(&response(&key, "101 x", "chat")).contains("subprotocol"));
    assert!(refused(&response(&ClientKey::new([4; 16]), "101 x", NDT7)).contains("key"));
    assert!(refused(&vec![b'x'; MAX_RESPONSE_HEAD]).contains("too long"));
}

#[test]
fn a_request_cannot_be_split_by_its_target() {
    let key = ClientKey::new([0; 16]);
    assert_eq!(key.request("/a HTTP/1.1\r\nX: y", "h", NDT7), None);
    assert_eq!(key.request("/", "h\r\n", NDT7), None);
    assert_eq!(key.request("/", "h", "a,b"), None);
}

proptest! {
    #[test]
    fn a_server_accepts_what_a_client_asks(random: [u8; 16]) {
        let request = ClientKey::new(random).request("/x?y=1", "[::1]:80", NDT7).unwrap();
        let headers = request.lines().skip(1).filter_map(|line| line.split_once(": "));
        let upgrade = Upgrade::of(headers.map(|(name, value)| (name, value.as_bytes()))).unwrap();
        prop_assert_eq!(upgrade.require(NDT7), Ok(()));
    }

    #[test]
    fn any_headers_are_read(values in proptest::collection::vec((0usize..6, any::<Vec<u8>>()), 0..9)) {
        let headers = values.iter().map(|(name, value)| (HEADERS[*name].0, value.as_slice()));
        let _ = Upgrade::of(headers);
    }

    #[test]
    fn any_response_is_read(bytes: Vec<u8>) {
        let _ = ClientKey::new([0; 16]).check_response(&bytes, NDT7);
    }
}
