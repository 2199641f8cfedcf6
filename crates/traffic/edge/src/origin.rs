//! The origin's URL, of which every character is one that a configuration can have as it is.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Longest URL.
const MAX_URL: usize = 2048;
/// Longest host name (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;

/// HTTP, or HTTP over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Plaintext.
    Http,
    /// TLS; the certificate is verified.
    Https,
}

/// The server whose objects are cached: scheme, host, port and a path prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: Scheme,
    host: Host,
    port: u16,
    /// Empty, or segments of unreserved characters, each after a slash.
    prefix: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Name(String),
    Address(IpAddr),
}

/// A URL that is not an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the origin {0}")]
pub struct OriginError(&'static str);

impl Scheme {
    /// As written.
    #[must_use]
    pub const fn name(self) -> &'static str {
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

impl Origin {
    /// HTTP or HTTPS.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The host, with brackets around an IPv6 address.
    #[must_use]
    pub fn host(&self) -> String {
        match &self.host {
            Host::Name(name) => name.clone(),
            Host::Address(IpAddr::V4(address)) => address.to_string(),
            Host::Address(IpAddr::V6(address)) => format!("[{address}]"),
        }
    }

    /// The address, unless the host is a name.
    #[must_use]
    pub const fn address(&self) -> Option<IpAddr> {
        match &self.host {
            Host::Name(_) => None,
            Host::Address(address) => Some(*address),
        }
    }

    /// The name, unless the host is an address.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.host {
            Host::Name(name) => Some(name),
            Host::Address(_) => None,
        }
    }

    /// Host and port.
    #[must_use]
    pub fn server(&self) -> String {
        format!("{}:{}", self.host(), self.port)
    }

    /// The value of the header Host (RFC 9110, section 7.2): without the scheme's own port.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.port == self.scheme.port() { self.host() } else { self.server() }
    }

    /// The path prefix: empty, or `/a/b`.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.name(), self.authority(), self.prefix)
    }
}

impl FromStr for Origin {
    type Err = OriginError;

    /// `http://HOST[:PORT][/PREFIX]` or with https.
    fn from_str(text: &str) -> Result<Self, OriginError> {
        let wrong = |why| Err(OriginError(why));
        if text.len() > MAX_URL {
            return wrong("is longer than 2048 characters");
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return wrong("has no scheme: give http://HOST or https://HOST");
        };
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return wrong("has a scheme other than http and https"),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = split_port(authority, scheme)?;
        Ok(Origin { scheme, host: Host::parse(host)?, port, prefix: prefix(path)? })
    }
}

fn split_port(authority: &str, scheme: Scheme) -> Result<(&str, u16), OriginError> {
    let end = match authority.strip_prefix('[') {
        Some(_) => authority.find(']').ok_or(OriginError("has an IPv6 address without ']'"))? + 1,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(end);
    if port.is_empty() {
        return Ok((host, scheme.port()));
    }
    let digits = port.strip_prefix(':').filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    let port = digits.and_then(|digits| digits.parse().ok()).filter(|port| *port > 0);
    Ok((host, port.ok_or(OriginError("has a port other than 1 to 65535"))?))
}

impl Host {
    fn parse(text: &str) -> Result<Self, OriginError> {
        if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            let address: Option<Ipv6Addr> = inner.parse().ok();
            let address = address.ok_or(OriginError("has an invalid IPv6 address"))?;
            return Ok(Host::Address(IpAddr::V6(address)));
        }
        let is_named = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        if !(1..=MAX_NAME).contains(&text.len()) || !text.bytes().all(is_named) {
            return Err(OriginError(
                "needs a host: a name of letters, digits, '-' and '.', an IPv4 address, or an IPv6 \
                 address in brackets",
            ));
        }
        let is_label = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        let labels = || text.split('.');
        // A last label of digits only is an address (RFC 3696, section 2), which is either valid or
        // none at all.
        if labels().next_back().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit())) {
            let address = text.parse().map_err(|_| OriginError("has an invalid IPv4 address"))?;
            return Ok(Host::Address(IpAddr::V4(address)));
        }
        if !labels().all(is_label) {
            return Err(OriginError("has an invalid host name"));
        }
        Ok(Host::Name(text.to_ascii_lowercase()))
    }
}

/// A path of unreserved characters (RFC 3986, section 2.3), without the slash at its end.
fn prefix(path: &str) -> Result<String, OriginError> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_segment =
        |segment: &str| !["", ".", ".."].contains(&segment) && segment.bytes().all(is_unreserved);
    if path.is_empty() || path.split('/').skip(1).all(is_segment) {
        return Ok(path.to_owned());
    }
    Err(OriginError(
        "has a path with more than letters, digits, '-', '.', '_' and '~' between single slashes: \
         give a prefix such as /pub/data, without a query",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn urls_of_servers() {
        for (text, shown, server) in [
            ("http://origin.example", "http://origin.example", "origin.example:80"),
            ("HTTPS://Origin.Example/", "https://origin.example", "origin.example:443"),
            ("http://192.0.2.1:8080/a/b/", "http://192.0.2.1:8080/a/b", "192.0.2.1:8080"),
            ("https://[2001:db8::1]:443", "https://[2001:db8::1]", "[2001:db8::1]:443"),
            ("http://a-b.c/x_~.1", "http://a-b.c/x_~.1", "a-b.c:80"),
        ] {
            let origin: Origin = text.parse().unwrap();
            assert_eq!((origin.to_string().as_str(), origin.server().as_str()), (shown, server));
            assert_eq!(shown.parse::<Origin>().unwrap(), origin);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "origin.example",
            "ftp://a",
            "http://",
            "http:///path",
            "http://a;b",
            "http://a b",
            "http://$host",
            "http://user@a",
            "http://a:0",
            "http://a:65536",
            "http://a:+80",
            "http://a:80:80",
            "http://[::1",
            "http://[::1]x",
            "http://::1",
            "http://1.2.3",
            "http://256.1.1.1",
            "http://-a",
            "http://a..b",
            "http://a_b",
            "http://a/b?c",
            "http://a/b#c",
            "http://a/../b",
            "http://a//b",
            "http://a/%2e",
            "http://a/{x}",
            "http://a/b;",
            "http://a/\n",
            "http://a\n/",
            "http://unix:/run/x",
            "http://ä",
        ] {
            let error = text.parse::<Origin>().expect_err(text).to_string();
            assert!(error.starts_with("the origin ") && error.lines().count() == 1, "{error}");
        }
    }

    proptest! {
        #[test]
        fn an_origin_has_no_character_of_a_configuration(text in "(http|https)://\\PC{1,60}") {
            if let Ok(origin) = text.parse::<Origin>() {
                let parts = format!("{}{}", origin.server(), origin.prefix());
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/[]".contains(&byte);
                prop_assert!(parts.bytes().all(is_plain), "{}", parts);
                prop_assert_eq!(&origin.to_string().parse::<Origin>().unwrap(), &origin);
            }
        }
    }
}
