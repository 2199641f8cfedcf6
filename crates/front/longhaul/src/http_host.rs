//! The Host of an HTTP request (RFC 9110, section 7.2), as a defence against DNS rebinding: a web
//! page whose name resolves to this host's address can have a browser send requests here, and they
//! carry the page's name. Requests for an IP address, `localhost` or a name that was given are
//! this server's.

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

    /// Checks the Host in a request's head: its request line and headers. `may_lack` is for
    /// HTTP/1.0, in which it is optional; every browser sends one.
    ///
    /// # Errors
    /// The reason not to answer the request.
    pub fn check(&self, head: &[u8], may_lack: bool) -> Result<(), HostError> {
        let head = std::str::from_utf8(head).map_err(|_| HostError::Malformed)?;
        let mut hosts = Vec::new();
        for line in head.split("\r\n").skip(1).take_while(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').ok_or(HostError::Malformed)?;
            // Neither a space before the colon, nor a continuation of the line before.
            if !name.bytes().all(|byte| byte.is_ascii_graphic())
                || value.contains(|c: char| c.is_control() && c != '\t')
            {
                return Err(HostError::Malformed);
            }
            if name.eq_ignore_ascii_case("host") {
                hosts.push(value.trim_matches([' ', '\t']));
            }
        }
        match hosts[..] {
            [] if may_lack => Ok(()),
            [host] => self.check_host(host),
            _ => Err(HostError::Malformed),
        }
    }

    /// Checks the value of Host, or the authority of an HTTP/2 request.
    ///
    /// # Errors
    /// As [`OwnNames::check`].
    pub fn check_host(&self, text: &str) -> Result<(), HostError> {
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

    fn check(headers: &str) -> Result<(), HostError> {
        let names = OwnNames::new(&["metrics.example.".to_owned()]);
        names.check(format!("GET / HTTP/1.1\r\n{headers}\r\n\r\n").as_bytes(), false)
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
            assert_eq!(check(&format!("Accept: */*\r\nhOST: \t{host} ")), Ok(()), "{host}");
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
            assert_eq!(check(&format!("Host: {host}")), Err(HostError::Foreign), "{host}");
        }
    }

    #[test]
    fn what_is_no_single_host_is_malformed() {
        for headers in [
            "Accept: */*",
            "Host:",
            "Host: ",
            "Host: localhost\r\nHost: evil.example",
            "Host: evil.example\r\nhost: localhost",
            "Host: localhost, evil.example",
            "Host : localhost",
            "X: y\r\n Host: localhost",
            "X: y\nHost: localhost",
            "Host: user@localhost",
            "Host: localhost/x",
            "Host: localhost:80:81",
            "Host: localhost:x",
            "Host: [::1",
            "Host: [::1]x",
            "Host: [evil.example]",
            "Host: ::1",
            "nothing",
        ] {
            assert_eq!(check(headers), Err(HostError::Malformed), "{headers}");
        }
    }

    #[test]
    fn only_http_1_0_may_lack_it() {
        let names = OwnNames::default();
        assert_eq!(names.check(b"GET / HTTP/1.0\r\n\r\n", true), Ok(()));
        assert_eq!(names.check(b"GET / HTTP/1.1\r\n\r\n", false), Err(HostError::Malformed));
        let foreign = b"GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n";
        assert_eq!(names.check(foreign, true), Err(HostError::Foreign));
    }
}
