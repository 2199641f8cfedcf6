//! Another server, for the two legs of a path; and the pages of other servers that this one serves.

use longhaul::http_host;
use longhaul::{Field, Problem};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// Most characters of a URL.
const MAX_URL: usize = 1024;

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Without encryption: labs, and tests.
    Http,
    /// With it.
    Https,
}

impl Scheme {
    const fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    const fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// Scheme, host and port of a server (RFC 6454).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// How it is spoken to.
    pub scheme: Scheme,
    /// Its name or IPv4 address, in lower case. A Content-Security-Policy cannot name IPv6
    /// addresses (CSP Level 3, section 2.3.1).
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl Origin {
    /// Checks the fields; `field` is what has the origin.
    ///
    /// # Errors
    /// The field, and what it accepts.
    pub fn check(&self, field: Field) -> Result<(), Problem> {
        let is_lower = !self.host.bytes().any(|byte| byte.is_ascii_uppercase());
        if is_lower && self.port != 0 && is_host(&self.host) {
            return Ok(());
        }
        let message =
            format!("'{}' is not the origin of a server", self.to_string().escape_debug());
        Err(Problem::field(field, message, ACCEPTED))
    }

    /// The same of a WebSocket.
    fn socket(&self) -> String {
        self.to_string().replacen("http", "ws", 1)
    }

    /// What a Content-Security-Policy adds to `connect-src` for it: it, and nothing else.
    pub(crate) fn connect_sources(&self) -> String {
        format!("{self} {}", self.socket())
    }
}

const ACCEPTED: &str = "http:// or https://, a host name or IPv4 address, and a port, as in \
                        https://far.example:8443";

/// Names and IPv4 addresses: what a browser would read as an address is one.
pub(crate) fn is_host(host: &str) -> bool {
    let is_numeric = host
        .rsplit('.')
        .next()
        .is_some_and(|last| !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()));
    let is_hyphened = host.split('.').any(|part| part.is_empty() || part.starts_with('-'));
    match is_numeric {
        true => host.parse::<Ipv4Addr>().is_ok(),
        false => http_host::is_name(host) && !is_hyphened,
    }
}

/// As browsers write it: a scheme's own port is left out.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.host)?;
        match self.port == self.scheme.port() {
            true => Ok(()),
            false => write!(f, ":{}", self.port),
        }
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (origin, rest) = split(text)?;
        if rest.is_empty() || rest == "/" { Ok(origin) } else { Err(format!("give {ACCEPTED}")) }
    }
}

/// The origin of a URL, and what follows it.
fn split(text: &str) -> Result<(Origin, &str), String> {
    let wrong = || format!("give {ACCEPTED}");
    if text.len() > MAX_URL {
        return Err(wrong());
    }
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return Err(wrong()),
    };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.starts_with('[') {
        return Err(
            "give a host name for an IPv6 address: browsers' policies cannot name it".into()
        );
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
        None => (authority, scheme.port()),
    };
    let origin = Origin { scheme, host: host.to_ascii_lowercase(), port };
    origin.check(Field::Peer).map_err(|_| wrong())?;
    Ok((origin, rest))
}

/// A second server, beyond the line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Where it is.
    pub origin: Origin,
    /// The token that it asks for, if any.
    #[serde(default)]
    pub token: Option<String>,
}

impl Peer {
    /// Checks the fields.
    ///
    /// # Errors
    /// The field, and what it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        self.origin.check(Field::Peer)?;
        if self.token.as_deref().is_none_or(crate::request::is_token) {
            return Ok(());
        }
        Err(Problem::field(Field::Peer, "the peer's token is invalid", crate::request::TOKEN))
    }
}

impl FromStr for Peer {
    type Err = String;

    /// The URL of the other server's page, with its token.
    fn from_str(text: &str) -> Result<Self, String> {
        let (origin, rest) = split(text)?;
        let token = match rest.strip_prefix('/').unwrap_or(rest) {
            "" => None,
            query => match query.strip_prefix("?token=") {
                Some(token) if crate::request::is_token(token) => Some(token.to_owned()),
                _ => return Err("give the address of the page, at most with ?token=TOKEN".into()),
            },
        };
        Ok(Peer { origin, token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_pages_are_read() {
        let peer: Peer = "https://Far.example/?token=s3cret".parse().unwrap();
        assert_eq!(peer.origin.to_string(), "https://far.example");
        assert_eq!(peer.origin.connect_sources(), "https://far.example wss://far.example");
        assert_eq!((peer.origin.port, peer.token.as_deref()), (443, Some("s3cret")));
        peer.check().unwrap();
        let origin: Origin = "http://192.0.2.1:8080/".parse().unwrap();
        assert_eq!(origin.connect_sources(), "http://192.0.2.1:8080 ws://192.0.2.1:8080");
        assert_eq!("http://a:80".parse::<Origin>().unwrap().to_string(), "http://a");
    }

    /// Nothing that is read may add a source or a directive to the policy.
    #[test]
    fn what_is_no_origin_is_refused() {
        for text in [
            "",
            "far.example",
            "ftp://far.example",
            "https://",
            "https://*",
            "https://*.example",
            "https://far.example; script-src *",
            "https://far.example https://evil.example",
            "https://far.example,evil.example",
            "https://user@far.example",
            "https://far.example:0",
            "https://far.example:65536",
            "https://far.example:",
            "https://[2001:db8::1]:8080",
            "https://1.2.3",
            "https://1.2.3.4.5",
            "https://0x7f.1",
            "https://far..example",
            "https://far.example/path",
            "https://far.example\r\nX: y",
            "https://'self'",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
            assert!(text.parse::<Peer>().is_err(), "{text}");
        }
        assert!("https://a/?token=".parse::<Peer>().is_err());
        assert!("https://a/?token=a&x=1".parse::<Peer>().is_err());
        assert!("https://a/?x=1".parse::<Peer>().is_err());
        assert!("https://a/?token=a".parse::<Origin>().is_err());
        // Fields that are not read from a URL are checked as well.
        let host = "a; script-src *".to_owned();
        let origin = Origin { scheme: Scheme::Https, host, port: 443 };
        let problem = Peer { origin, token: None }.check().unwrap_err();
        assert_eq!(problem.remedy.unwrap().field, Field::Peer);
    }
}
