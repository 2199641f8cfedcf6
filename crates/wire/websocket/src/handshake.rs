//! The upgrade from HTTP/1.1 (RFC 6455, section 4).

use base64::{Engine, prelude::BASE64_STANDARD};
use sha1::{Digest, Sha1};

/// Most bytes of the status line of a refusal that are told.
const MAX_REASON: usize = 200;
/// The version of the protocol.
pub const VERSION: &str = "13";

/// Most bytes of the head of an HTTP response.
pub const MAX_RESPONSE_HEAD: usize = 16 << 10;

/// Most subprotocols that are read from a request.
const MAX_SUBPROTOCOLS: usize = 16;

/// RFC 6455, section 1.3.
const ACCEPT_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The reason an upgrade is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpgradeError {
    /// The request has no `Upgrade: websocket` with `Connection: upgrade`.
    #[error("the request asks for no upgrade to websocket")]
    NoUpgrade,
    /// Another version than 13.
    #[error("the version of the WebSocket protocol is not 13")]
    Version,
    /// No key, several, or one that is not 16 bytes in base64.
    #[error("Sec-WebSocket-Key is missing or invalid")]
    Key,
    /// A header that is not text, or names a subprotocol by other than a token.
    #[error("a header of the upgrade is malformed")]
    Malformed,
    /// None of the subprotocols offered is spoken here.
    #[error("the subprotocol {0} is required")]
    Subprotocol(&'static str),
    /// A server's response that is not 101 with the right key and subprotocol.
    #[error("the server did not accept the upgrade: {0}")]
    Refused(String),
}

impl UpgradeError {
    /// The status of the response: 426 wants `Sec-WebSocket-Version: 13` (RFC 6455, section 4.4).
    #[must_use]
    pub fn status(&self) -> u16 {
        if matches!(self, UpgradeError::Version) { 426 } else { 400 }
    }
}

/// A client's request for an upgrade, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgrade {
    /// The value of Sec-WebSocket-Accept.
    pub accept: String,
    /// The subprotocols that the client offers, in its order.
    pub subprotocols: Vec<String>,
}

impl Upgrade {
    /// Reads a request's headers, names and values; names in any case.
    ///
    /// # Errors
    /// What is missing or wrong.
    pub fn of<'a>(
        headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<Self, UpgradeError> {
        let (mut upgrade, mut connection) = (false, false);
        let (mut version, mut key) = (Vec::new(), Vec::new());
        let mut subprotocols = Vec::new();
        for (name, value) in headers {
            let text = || std::str::from_utf8(value).map_err(|_| UpgradeError::Malformed);
            if name.eq_ignore_ascii_case("upgrade") {
                upgrade |= has_token(text()?, "websocket");
            } else if name.eq_ignore_ascii_case("connection") {
                connection |= has_token(text()?, "upgrade");
            } else if name.eq_ignore_ascii_case("sec-websocket-version") {
                version.push(text()?.trim());
            } else if name.eq_ignore_ascii_case("sec-websocket-key") {
                key.push(text()?.trim());
            } else if name.eq_ignore_ascii_case("sec-websocket-protocol") {
                let left = MAX_SUBPROTOCOLS - subprotocols.len();
                subprotocols.extend(tokens(text()?).take(left).map(str::to_owned));
            }
        }
        if !(upgrade && connection) {
            return Err(UpgradeError::NoUpgrade);
        }
        if version != [VERSION] {
            return Err(UpgradeError::Version);
        }
        if !subprotocols.iter().all(|name| is_token(name)) {
            return Err(UpgradeError::Malformed);
        }
        match key[..] {
            [key] if is_key(key) => Ok(Upgrade { accept: accept(key), subprotocols }),
            _ => Err(UpgradeError::Key),
        }
    }

    /// The subprotocol, where the client offers it.
    ///
    /// # Errors
    /// [`UpgradeError::Subprotocol`] where it does not.
    pub fn require(&self, subprotocol: &'static str) -> Result<(), UpgradeError> {
        let offered = self.subprotocols.iter().any(|its| its == subprotocol);
        if offered { Ok(()) } else { Err(UpgradeError::Subprotocol(subprotocol)) }
    }
}

/// The value of Sec-WebSocket-Accept for a key (RFC 6455, section 4.2.2).
#[must_use]
pub fn accept(key: &str) -> String {
    let digest = Sha1::new().chain_update(key).chain_update(ACCEPT_SUFFIX).finalize();
    BASE64_STANDARD.encode(digest)
}

fn is_key(text: &str) -> bool {
    // 16 bytes are 24 characters: nothing longer is decoded.
    text.len() == 24 && BASE64_STANDARD.decode(text).is_ok_and(|bytes| bytes.len() == 16)
}

fn tokens(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|token| !token.is_empty())
}

fn has_token(list: &str, wanted: &str) -> bool {
    tokens(list).any(|token| token.eq_ignore_ascii_case(wanted))
}

/// True for a token (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    let in_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(in_token)
}

/// A client's key: its request, and whether a response answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientKey(String);

impl ClientKey {
    /// The key of 16 random bytes.
    #[must_use]
    pub fn new(random: [u8; 16]) -> Self {
        ClientKey(BASE64_STANDARD.encode(random))
    }

    /// The request for an upgrade; `None` where `target` or `host` have a space or a control
    /// character, or `subprotocol` is no token.
    #[must_use]
    pub fn request(&self, target: &str, host: &str, subprotocol: &str) -> Option<String> {
        let fits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let key = &self.0;
        (fits(target) && fits(host) && is_token(subprotocol)).then(|| {
            format!(
                "GET {target} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n\
                 Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n\
                 Sec-WebSocket-Version: {VERSION}\r\nSec-WebSocket-Protocol: {subprotocol}\r\n\r\n"
            )
        })
    }

    /// The length of the response's head at the beginning of `received`, after which frames
    /// follow; `None` while it is not whole.
    ///
    /// # Errors
    /// The head is longer than [`MAX_RESPONSE_HEAD`], malformed, or accepts something else.
    pub fn check_response(
        &self,
        received: &[u8],
        subprotocol: &str,
    ) -> Result<Option<usize>, UpgradeError> {
        let refused = |why: &str| Err(UpgradeError::Refused(why.to_owned()));
        let within = received.get(..MAX_RESPONSE_HEAD).unwrap_or(received);
        let Some(end) = within.windows(4).position(|four| four == b"\r\n\r\n") else {
            let room = received.len() < MAX_RESPONSE_HEAD;
            return if room { Ok(None) } else { refused("its header is too long") };
        };
        let head = within.get(..end).unwrap_or_default();
        let Ok(head) = std::str::from_utf8(head) else { return refused("its header is not text") };
        let (status, rest) = head.split_once("\r\n").unwrap_or((head, ""));
        if !status.starts_with("HTTP/1.1 101") {
            return refused(
                status.get(..status.floor_char_boundary(MAX_REASON)).unwrap_or_default(),
            );
        }
        let values = |wanted: &str| -> Vec<&str> {
            let lines = rest.split("\r\n").filter_map(|line| line.split_once(':'));
            lines
                .filter(|(name, _)| name.eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value.trim())
                .collect()
        };
        if !values("upgrade").iter().any(|value| has_token(value, "websocket")) {
            return refused("it upgrades to something else");
        }
        if values("sec-websocket-accept") != [accept(&self.0).as_str()] {
            return refused("its answer to the key is wrong");
        }
        if values("sec-websocket-protocol") != [subprotocol] {
            return refused("it speaks another subprotocol");
        }
        Ok(Some(end + 4))
    }
}
