//! URLs of speed tests' servers.

use crate::{Field, Problem};
use std::net::Ipv6Addr;

/// Most bytes of a URL, which ndt7 limits its query to.
const MAX_URL: usize = 4096;

/// A server, and a path on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) is_encrypted: bool,
    /// Without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Begins with a slash where it is given; empty otherwise.
    pub(crate) path: String,
    /// Without the question mark.
    pub(crate) query: Option<String>,
}

const ACCEPTED: &str = "a name or an address, or a URL such as https://HOST:PORT/PATH";

impl Endpoint {
    /// Parses a URL with the scheme ws, wss, http or https, or a host, for which TLS is used.
    ///
    /// # Errors
    /// Another scheme, a user name, a fragment, characters that no URL has.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let wrong = |why: &str| Problem::field(Field::Host, format!("the URL {why}"), ACCEPTED);
        if text.len() > MAX_URL {
            return Err(wrong("is too long"));
        }
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("is empty, or has a space or a character beyond ASCII"));
        }
        let (scheme, rest) = text.split_once("://").unwrap_or(("https", text));
        let is_encrypted = match scheme.to_ascii_lowercase().as_str() {
            "https" | "wss" => true,
            "http" | "ws" => false,
            _ => return Err(wrong("has a scheme other than https, http, wss and ws")),
        };
        if rest.contains(['#', '"', '<', '>', '\\', '`', '{', '}', '|', '^']) {
            return Err(wrong("has a fragment, or a character that must be encoded"));
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (rest, None),
        };
        let standard = if is_encrypted { 443 } else { 80 };
        let (host, port) = authority_of(authority, standard)
            .ok_or_else(|| wrong("has an invalid host or port"))?;
        Ok(Endpoint { is_encrypted, host, port, path: path.to_owned(), query })
    }

    /// The host and the port, as the header Host has them.
    pub(crate) fn authority(&self) -> String {
        let standard = if self.is_encrypted { 443 } else { 80 };
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == standard { host } else { format!("{host}:{}", self.port) }
    }

    /// The path, or `default` where none is given, and the query.
    pub(crate) fn target(&self, default: &str) -> String {
        let path = if self.path.len() > 1 { &self.path } else { default };
        match &self.query {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        }
    }

    /// True if `other` is on the same server.
    pub(crate) fn is_same_server(&self, other: &Endpoint) -> bool {
        (self.is_encrypted, self.port) == (other.is_encrypted, other.port)
            && self.host.eq_ignore_ascii_case(&other.host)
    }
}

fn authority_of(text: &str, standard: u16) -> Option<(String, u16)> {
    let port_of = |text: &str| match text.strip_prefix(':') {
        None if text.is_empty() => Some(standard),
        None => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().ok().filter(|port| *port > 0)
        }
        Some(_) => None,
    };
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        return Some((host.to_owned(), port_of(rest)?));
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        return Some((text.to_owned(), standard));
    }
    let (host, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
    crate::http_host::is_name(host).then_some(())?;
    Some((host.to_owned(), port_of(rest)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_urls() {
        for (text, authority, target) in [
            ("speed.example", "speed.example", "/x"),
            ("speed.example:8443", "speed.example:8443", "/x"),
            ("2001:db8::1", "[2001:db8::1]", "/x"),
            ("ws://[2001:db8::1]:8080", "[2001:db8::1]:8080", "/x"),
            ("WSS://a/", "a", "/x"),
            ("https://a:443/ndt/v7/upload?token=b", "a", "/ndt/v7/upload?token=b"),
            ("http://192.0.2.1:80?token=b", "192.0.2.1", "/x?token=b"),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!(
                (endpoint.authority().as_str(), endpoint.target("/x").as_str()),
                (authority, target)
            );
        }
        let is_encrypted = |text: &str| Endpoint::parse(text).unwrap().is_encrypted;
        assert!(is_encrypted("a") && is_encrypted("wss://a") && !is_encrypted("ws://a"));
    }

    #[test]
    fn other_texts_are_refused() {
        let long = format!("http://a/{}", "x".repeat(MAX_URL));
        for text in [
            "",
            " ",
            "ftp://a",
            "http://",
            "http://a b",
            "http://u@a",
            "http://a#b",
            "http://a:0",
            "http://a:65536",
            "http://a:",
            "http://[::1",
            "http://[a]",
            "http://ä",
            "a\r\nX: y",
            "http://a:+80",
            &long,
        ] {
            let problem = Endpoint::parse(text).unwrap_err();
            assert_eq!(problem.remedy.unwrap().field, Field::Host, "{text}");
        }
    }

    #[test]
    fn a_server_is_scheme_host_and_port() {
        let one = Endpoint::parse("https://A.example/x").unwrap();
        let same = |text: &str| one.is_same_server(&Endpoint::parse(text).unwrap());
        assert!(same("https://a.example:443/y"));
        assert!(
            !same("http://a.example/x")
                && !same("https://b.example/x")
                && !same("https://a.example:444")
        );
    }

    proptest::proptest! {
        #[test]
        fn what_is_parsed_makes_one_request_line(text in "\\PC{0,80}") {
            if let Ok(endpoint) = Endpoint::parse(&text) {
                let line = format!("{} {}", endpoint.target("/x"), endpoint.authority());
                assert!(line.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
                assert!(endpoint.target("/x").starts_with('/'));
            }
        }
    }
}
