//! Names under which clients reach a server, besides the address of the connection.

use std::{
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

/// A name or address of a server behind NAT, with a port or for the server's own port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenName {
    host: Host,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    /// In lower case, without a dot at the end.
    Name(String),
    Address(IpAddr),
}

/// A text that names no server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not NAME, NAME:PORT, an address or [ADDRESS]:PORT")]
pub struct TokenNameError {
    text: String,
}

impl FromStr for TokenName {
    type Err = TokenNameError;

    fn from_str(text: &str) -> Result<Self, TokenNameError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(TokenName { host: Host::Address(address.to_canonical()), port: None });
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            let host = Host::Address(address.ip().to_canonical());
            return Ok(TokenName { host, port: Some(address.port()) });
        }
        let wrong = || TokenNameError { text: text.to_owned() };
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if name.is_empty() || name.len() > 253 || !name.bytes().all(plain) {
            return Err(wrong());
        }
        Ok(TokenName { host: Host::Name(normal(name)), port })
    }
}

impl TokenName {
    /// Whether a client that typed `host`, and connected to this address and port, means
    /// this name of a server that listens on `own_port`.
    pub(super) fn matches(&self, host: &str, address: IpAddr, port: u16, own_port: u16) -> bool {
        let same_host = match &self.host {
            Host::Name(name) => *name == normal(host),
            Host::Address(own) => *own == address,
        };
        same_host && port == self.port.unwrap_or(own_port)
    }
}

/// A domain name as it is compared (RFC 4343).
fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        let name = |text: &str| text.parse::<TokenName>();
        assert_eq!(
            name("A.Example.:1"),
            Ok(TokenName { host: Host::Name("a.example".into()), port: Some(1) })
        );
        let address = Host::Address("2001:db8::1".parse().unwrap());
        assert_eq!(name("[2001:db8::1]:7"), Ok(TokenName { host: address.clone(), port: Some(7) }));
        assert_eq!(name("2001:db8::1"), Ok(TokenName { host: address, port: None }));
        let mapped = name("::ffff:192.0.2.1").unwrap();
        assert_eq!(Ok(mapped), name("192.0.2.1"));
        for text in ["", ":5", "a:", "a:70000", "a b", "a:1:2", "\u{1b}[2J", "[::1]"] {
            assert!(name(text).is_err(), "{text}");
        }
    }
}
