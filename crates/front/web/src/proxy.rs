//! The client behind a reverse proxy, as `X-Forwarded-For` names it: of a proxy that is trusted.
//!
//! The header is a list to which each proxy adds the address that it was asked by. Only what
//! trusted ones added is believed: from the end, the first address that is none of theirs.

use crate::connection::{Connection, Forwarded};
use axum::http::{HeaderMap, HeaderName};
use std::net::{IpAddr, SocketAddr};

const CLIENTS: HeaderName = HeaderName::from_static("x-forwarded-for");
const SCHEME: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// Proxies one behind the other.
const MAX_PROXIES: usize = 16;

/// Whether a connection is that of a trusted proxy.
pub(crate) fn is_trusted(connection: &Connection, trusted: &[IpAddr]) -> bool {
    trusted.contains(&connection.peer().ip())
}

/// The connection as that of the client that a trusted proxy names.
pub(crate) fn resolve(
    connection: Connection,
    headers: &HeaderMap,
    trusted: &[IpAddr],
) -> Connection {
    if !is_trusted(&connection, trusted) {
        return connection;
    }
    let Some(client) = client(headers, trusted) else { return connection };
    let scheme = headers.get_all(SCHEME).iter().next_back();
    let is_encrypted = scheme.is_some_and(|scheme| scheme.as_bytes() == b"https");
    connection.forwarded(Forwarded { client, is_encrypted })
}

/// The last address that is not a trusted proxy's; the first of all if there is no other.
fn client(headers: &HeaderMap, trusted: &[IpAddr]) -> Option<IpAddr> {
    let values = headers.get_all(CLIENTS).iter().rev();
    let words = values.flat_map(|value| value.to_str().unwrap_or("").rsplit(','));
    let mut last = None;
    for word in words.take(MAX_PROXIES) {
        let Some(address) = address(word.trim()) else { break };
        last = Some(address);
        if !trusted.contains(&address) {
            break;
        }
    }
    last
}

/// An address, which some proxies write with its port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let with_port = || text.parse().ok().map(|address: SocketAddr| address.ip());
    bare.parse().ok().or_else(with_port).map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_that_no_trusted_proxy_is() {
        let trusted: Vec<IpAddr> =
            ["127.0.0.1", "192.0.2.8"].map(|address| address.parse().unwrap()).to_vec();
        for (values, expected) in [
            (&["203.0.113.9"][..], Some("203.0.113.9")),
            (&["198.51.100.1, 203.0.113.9"], Some("203.0.113.9")),
            (&["198.51.100.1", "203.0.113.9,192.0.2.8"], Some("203.0.113.9")),
            (&["203.0.113.9:4711"], Some("203.0.113.9")),
            (&["[2001:db8::1]:4711"], Some("2001:db8::1")),
            (&["2001:db8::1"], Some("2001:db8::1")),
            (&["[2001:db8::1]"], Some("2001:db8::1")),
            (&["::ffff:203.0.113.9"], Some("203.0.113.9")),
            (&["192.0.2.8, 127.0.0.1"], Some("192.0.2.8")),
            // Who forges the list's beginning is no other for it.
            (&["127.0.0.1, unknown, 192.0.2.8"], Some("192.0.2.8")),
            (&["unknown"], None),
            (&["203.0.113.9, <script>"], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CLIENTS, value.parse().unwrap());
            }
            let expected = expected.map(|address| address.parse().unwrap());
            assert_eq!(client(&headers, &trusted), expected, "{values:?}");
        }
    }
}
