//! The Host of an HTTP request (RFC 9110, section 7.2), as a defence against DNS rebinding: a web
//! page whose name resolves to this host's address can have a browser send requests here, and they
//! carry the page's name. Requests for an IP address, `localhost` or a name that was given are
//! this server's.

use hyper::header::HOST;
use hyper::{Request, Version};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The names for which this server answers, beside IP addresses and `localhost`.
#[derive(Debug, Default)]
pub struct OwnNames(Vec<String>);

/// The reason a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostError {
    /// No Host, several, or an invalid one: 400 (RFC 9112, section 3.2).
    Malformed,
    /// The name of another server: 421.
    Foreign,
}

/// True for a host name (RFC 1123) without a port.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let named = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    (1..=253).contains(&text.len()) && text.bytes().all(named)
}

impl OwnNames {
    /// The names, beside IP addresses and `localhost`.
    #[must_use]
    pub fn new(names: &[String]) -> Self {
        OwnNames(names.iter().map(|name| name.trim_end_matches('.').to_owned()).collect())
    }

    /// Checks the Host of a request, and the authority of its target, which HTTP/2 has instead
    /// (RFC 9113, section 8.3.1). HTTP/1.0 may lack both; every browser sends one.
    ///
    /// # Errors
    /// The reason not to answer the request.
    pub fn check<B>(&self, request: &Request<B>) -> Result<(), HostError> {
        let authority = request.uri().authority().map(hyper::http::uri::Authority::as_str);
        let mut hosts = request.headers().get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => Some(host.to_str().map_err(|_| HostError::Malformed)?),
            (None, _) => None,
            _ => return Err(HostError::Malformed),
        };
        if host.is_none() && authority.is_none() && request.version() != Version::HTTP_10 {
            return Err(HostError::Malformed);
        }
        host.into_iter().chain(authority).try_for_each(|host| self.check_host(host))
    }

    fn check_host(&self, text: &str) -> Result<(), HostError> {
        let is_port = |rest: &str| match rest.strip_prefix(':') {
            Some(port) => port.bytes().all(|byte| byte.is_ascii_digit()),
            None => rest.is_empty(),
        };
        if let Some(rest) = text.strip_prefix('[') {
            let (address, port) = rest.split_once(']').ok_or(HostError::Malformed)?;
            let is_address = address.parse::<Ipv6Addr>().is_ok() && is_port(port);
            return if is_address { Ok(()) } else { Err(HostError::Malformed) };
        }
        let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
        if !is_name(host) || !is_port(port) {
            return Err(HostError::Malformed);
        }
        let host = host.trim_end_matches('.');
        let is_own = host.parse::<Ipv4Addr>().is_ok()
            || host.eq_ignore_ascii_case("localhost")
            || self.0.iter().any(|name| name.eq_ignore_ascii_case(host));
        if is_own { Ok(()) } else { Err(HostError::Foreign) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(version: Version, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().uri("/").version(version);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    fn check(headers: &[(&str, &str)]) -> Result<(), HostError> {
        OwnNames::new(&["metrics.example.".to_owned()]).check(&request(Version::HTTP_11, headers))
    }

    #[test]
    fn addresses_and_own_names_are_answered() {
        for host in [
            "127.0.0.1",
            "192.0.2.7:9201",
            "[::1]",
            "[2001:db8::1]:80",
            "localhost",
            "LOCALHOST.:9201",
            "metrics.example",
            "Metrics.Example.:9201",
            "metrics.example:",
        ] {
            assert_eq!(check(&[("accept", "*/*"), ("host", host)]), Ok(()), "{host}");
        }
    }

    #[test]
    fn names_of_others_are_foreign() {
        for host in [
            "evil.example",
            "evil.example:9201",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "xmetrics.example",
            "metrics.example.evil",
            "0x7f000001",
            "127.1",
            "2130706433",
        ] {
            assert_eq!(check(&[("host", host)]), Err(HostError::Foreign), "{host}");
        }
    }

    #[test]
    fn what_is_no_single_host_is_malformed() {
        let doubled = [
            vec![("accept", "*/*")],
            vec![("host", "localhost"), ("host", "evil.example")],
            vec![("host", "evil.example"), ("Host", "localhost")],
        ];
        for headers in doubled {
            assert_eq!(check(&headers), Err(HostError::Malformed), "{headers:?}");
        }
        for host in [
            "",
            " ",
            "localhost, evil.example",
            "user@localhost",
            "localhost/x",
            "localhost:80:81",
            "localhost:x",
            "[::1",
            "[::1]x",
            "[evil.example]",
            "::1",
            "locälhost",
        ] {
            assert_eq!(check(&[("host", host)]), Err(HostError::Malformed), "{host}");
        }
    }

    #[test]
    fn only_http_1_0_may_lack_it() {
        let names = OwnNames::default();
        let check = |version, headers: &[_]| names.check(&request(version, headers));
        assert_eq!(check(Version::HTTP_10, &[]), Ok(()));
        assert_eq!(check(Version::HTTP_11, &[]), Err(HostError::Malformed));
        let foreign = [("host", "evil.example")];
        assert_eq!(check(Version::HTTP_10, &foreign), Err(HostError::Foreign));
    }

    #[test]
    fn the_target_names_the_host_as_well() {
        let names = OwnNames::default();
        for (target, expected) in
            [("http://localhost:9201/", Ok(())), ("http://evil.example/", Err(HostError::Foreign))]
        {
            let request = Request::get(target).version(Version::HTTP_2).body(()).unwrap();
            assert_eq!(names.check(&request), expected, "{target}");
        }
        let both = Request::get("http://evil.example/").header("host", "localhost");
        assert_eq!(names.check(&both.body(()).unwrap()), Err(HostError::Foreign));
    }
}
