//! Cookies: a client shows that it receives at its address before the server keeps
//! anything of it.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use units::Nanos;

/// A cookie is valid in the minute in which it was made, and the next.
const MINUTE_NS: u64 = 60_000_000_000;

/// An address as a server sees it: IPv6, or IPv4 mapped to it, and the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerAddress {
    /// IPv6 address (IPv4: `::ffff:a.b.c.d`).
    pub address: [u8; 16],
    /// UDP port.
    pub port: u16,
    /// Number of the interface of a link-local address (RFC 4007), else zero.
    pub zone: u32,
}

impl PeerAddress {
    /// What one host or site has of addresses: an IPv4 address, or an IPv6 /64.
    #[must_use]
    pub fn network(&self) -> [u8; 16] {
        const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF];
        let mut network = self.address;
        if !network.starts_with(&MAPPED) {
            network[8..].fill(0);
        }
        network
    }
}

/// Makes and checks cookies with a secret of its own.
#[derive(Clone)]
pub(crate) struct Cookies {
    secret: [u8; 32],
}

impl Cookies {
    pub(crate) const fn new(secret: [u8; 32]) -> Self {
        Cookies { secret }
    }

    pub(crate) fn make(&self, peer: &PeerAddress, now: Nanos) -> u32 {
        //= https://datatracker.ietf.org/doc/html/draft-gg-udt-03#page-9
        //# When the server first receives the connection request from a client, it generates a
        //# cookie value according to the client address and a secret key and sends it back to
        //# the client. The client must then send back the same cookie to the server.
        self.of_minute(peer, now.0 / MINUTE_NS)
    }

    pub(crate) fn is_valid(&self, cookie: u32, peer: &PeerAddress, now: Nanos) -> bool {
        let minute = now.0 / MINUTE_NS;
        let before = minute.checked_sub(1).map(|minute| self.of_minute(peer, minute));
        cookie == self.of_minute(peer, minute) || Some(cookie) == before
    }

    fn of_minute(&self, peer: &PeerAddress, minute: u64) -> u32 {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else { return 0 };
        mac.update(&peer.address);
        mac.update(&peer.port.to_be_bytes());
        mac.update(&peer.zone.to_be_bytes());
        mac.update(&minute.to_be_bytes());
        let digest = mac.finalize().into_bytes();
        u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
    }
}

impl std::fmt::Debug for Cookies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cookies").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_of_an_address_and_two_minutes() {
        let cookies = Cookies::new([7; 32]);
        let peer = PeerAddress { address: [1; 16], port: 9000, zone: 0 };
        let other = PeerAddress { port: 9001, ..peer };
        let at = |s: u64| Nanos(s * 1_000_000_000);
        let cookie = cookies.make(&peer, at(59));
        assert!(cookies.is_valid(cookie, &peer, at(60)));
        assert!(cookies.is_valid(cookie, &peer, at(119)));
        assert!(!cookies.is_valid(cookie, &peer, at(120)));
        assert!(!cookies.is_valid(cookie, &other, at(60)));
        assert!(!Cookies::new([8; 32]).is_valid(cookie, &peer, at(60)));
    }
}
