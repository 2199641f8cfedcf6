//! `HOST:PORT` and `[IPv6]:PORT` where a verb takes a host.

use crate::failure::Failure;
use std::ops::RangeInclusive;

/// The port of the iperf3 protocol, the default of every verb that runs a test.
const DEFAULT: u16 = 5201;

/// An option for a port, which a port after the host sets.
pub(crate) trait PortOption {
    /// Sets the port, unless the option has another one already.
    fn set(&mut self, port: u16) -> bool;
}

impl PortOption for u16 {
    fn set(&mut self, port: u16) -> bool {
        let is_free = [DEFAULT, port].contains(self);
        *self = port;
        is_free
    }
}

impl PortOption for RangeInclusive<u16> {
    fn set(&mut self, port: u16) -> bool {
        let is_free = [DEFAULT..=DEFAULT, port..=port].contains(self);
        *self = port..=port;
        is_free
    }
}

impl PortOption for Option<u16> {
    fn set(&mut self, port: u16) -> bool {
        self.replace(port).is_none_or(|earlier| earlier == port)
    }
}

/// Splits a port from a host, and brackets from an IPv6 address.
///
/// # Errors
/// An invalid port, or one that contradicts the option.
pub(crate) fn split(host: &mut String, option: &mut impl PortOption) -> Result<(), Failure> {
    if let Some((_, rest)) = host.split_once("://") {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let error = format!("'{host}' is a URL: give its host");
        return Err(
            Failure::usage(error).meaning(host, Some(&rest[..end]).filter(|name| !name.is_empty()))
        );
    }
    let Some((name, port)) = parts(host) else { return Ok(()) };
    let name = name.to_owned();
    if let Some(port) = port {
        let number = port.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
            Failure::usage(format!(
                "'{port}' in '{host}' is not a port: give HOST:PORT with a port from 1 to 65535"
            ))
        })?;
        if !option.set(number) {
            return Err(Failure::usage(format!(
                "'{host}' and the option for the port give two ports: omit one of them"
            )));
        }
    }
    *host = name;
    Ok(())
}

/// A port, or a range of ports.
pub(crate) fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err("ports are 1 to 65535, or a range such as 5201-5210".to_owned()),
    }
}

/// The host without brackets, and the port after it; `None` where there is neither.
fn parts(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some((address, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return match rest.strip_prefix(':') {
            Some(port) => Some((address, Some(port))),
            None => rest.is_empty().then_some((address, None)),
        };
    }
    // An IPv6 address without brackets has no port.
    let (host, port) = text.split_once(':').filter(|(_, port)| !port.contains(':'))?;
    (!host.is_empty()).then_some((host, Some(port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<(String, u16), String> {
        let (mut host, mut port) = (text.to_owned(), DEFAULT);
        split(&mut host, &mut port).map_err(|failure| failure.to_string())?;
        Ok((host, port))
    }

    #[test]
    fn hosts_have_ports() {
        let found = |text| of(text).unwrap();
        assert_eq!(found("server:5210"), ("server".to_owned(), 5210));
        assert_eq!(found("192.0.2.1:80"), ("192.0.2.1".to_owned(), 80));
        assert_eq!(found("[2001:db8::1]:80"), ("2001:db8::1".to_owned(), 80));
        assert_eq!(found("[fe80::1%eth0]:80"), ("fe80::1%eth0".to_owned(), 80));
        for bare in ["server", "192.0.2.1", "2001:db8::1", "::1", "fe80::1%eth0"] {
            assert_eq!(found(bare), (bare.to_owned(), DEFAULT));
        }
        assert_eq!(found("[::1]").0, "::1");
    }

    #[test]
    fn what_is_no_port_is_an_error_that_says_so() {
        for wrong in ["server:", "server:http", "server:0", "server:65536", "[::1]:x"] {
            assert!(of(wrong).unwrap_err().contains("HOST:PORT"), "{wrong}");
        }
        let mut host = "server:80".to_owned();
        let failure = split(&mut host, &mut (5201..=5210)).unwrap_err();
        assert!(failure.to_string().contains("two ports"));
        assert!(split(&mut "server:80".to_owned(), &mut Some(80)).is_ok());
        assert!(split(&mut "server:80".to_owned(), &mut Some(81)).is_err());
    }
}
