//! Connections in native mode over sockets of their own.

use crate::{Application, Driver, Next, peer_address};
use control::Algorithm;
use host::address::any_like;
use host::random;
use pinned_tls::{Identity, PublicKey};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;
use udt::{NativeConfig, NativeConnection};
use units::Nanos;

/// Packets that each buffer holds at most: 95 MB, the BDP of 2 Gbit/s at 380 ms.
const MAX_BUFFER: u64 = 1 << 16;
/// How often a stop is noticed.
const POLL: Duration = Duration::from_millis(20);

/// Keys and congestion control of one end.
#[derive(Debug)]
pub struct NativeKeys<'a> {
    /// This end.
    pub identity: &'a Identity,
    /// The only peer that is noticed.
    pub peer: PublicKey,
    /// Congestion control of what this end sends.
    pub algorithm: Algorithm,
}

/// An open connection and what drives it.
#[derive(Debug)]
pub struct NativeSocket {
    driver: Driver,
    connection: NativeConnection,
    is_ipv4: bool,
}

fn config(algorithm: Algorithm, is_ipv4: bool) -> io::Result<NativeConfig> {
    let packet_bytes =
        if is_ipv4 { NativeConfig::IPV4_PACKET_BYTES } else { NativeConfig::IPV6_PACKET_BYTES };
    Ok(NativeConfig { packet_bytes, max_buffer: MAX_BUFFER, algorithm, secret: random::secret()? })
}

impl NativeSocket {
    /// Connects to a server; `None` if it does not answer in time, or `stop` says so first.
    ///
    /// # Errors
    /// The system error of the socket; TLS cannot be set up.
    pub fn connect(
        server: SocketAddr,
        keys: &NativeKeys<'_>,
        timeout: Duration,
        stop: impl Fn() -> bool,
    ) -> io::Result<Option<Self>> {
        let socket = UdpSocket::bind(any_like(server))?;
        socket.connect(server)?;
        let driver = Driver::new(socket)?;
        driver.forbid_fragments();
        let is_ipv4 = server.ip().to_canonical().is_ipv4();
        let connection = NativeConnection::client(
            driver.now(),
            config(keys.algorithm, is_ipv4)?,
            peer_address(server),
            keys.identity,
            keys.peer,
        )
        .map_err(io::Error::other)?;
        let mut this = NativeSocket { driver, connection, is_ipv4 };
        Ok(this.open(timeout, stop)?.then_some(this))
    }

    /// Waits for the client that has `keys.peer`; `None` if `stop` says so first, or after
    /// `timeout`.
    ///
    /// # Errors
    /// The system error of the socket.
    pub fn accept(
        socket: UdpSocket,
        keys: &NativeKeys<'_>,
        timeout: Duration,
        stop: impl Fn() -> bool,
    ) -> io::Result<Option<Self>> {
        let driver = Driver::new(socket)?;
        driver.forbid_fragments();
        let config = config(keys.algorithm, true)?;
        let identity = keys.identity.clone();
        let connection = NativeConnection::server(driver.now(), config, identity, keys.peer);
        let mut this = NativeSocket { driver, connection, is_ipv4: true };
        Ok(this.open(timeout, stop)?.then_some(this))
    }

    fn open(&mut self, timeout: Duration, stop: impl Fn() -> bool) -> io::Result<bool> {
        let until = self.driver.now().plus(timeout);
        self.run(&mut |now: Nanos, connection: &mut NativeConnection| {
            if connection.is_established() || now >= until || stop() {
                Next::Never
            } else {
                Next::At(now.plus(POLL).min(until))
            }
        })?;
        Ok(self.connection.is_established())
    }

    /// Carries the connection until it is closed or the application wants no more.
    ///
    /// # Errors
    /// The system error of the socket.
    pub fn run(&mut self, application: &mut impl Application<NativeConnection>) -> io::Result<()> {
        self.driver.run(&mut self.connection, application)
    }

    /// The connection, as the last run has left it.
    pub const fn connection(&mut self) -> &mut NativeConnection {
        &mut self.connection
    }

    /// True if its packets are of IPv4, as far as this end knows.
    #[must_use]
    pub const fn is_ipv4(&self) -> bool {
        self.is_ipv4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn udp_that_does_not_answer_is_given_up() {
        let silent = UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
        let identity = Identity::new(&[1; 32]).unwrap();
        let peer = Identity::new(&[2; 32]).unwrap().public_key();
        let keys = NativeKeys { identity: &identity, peer, algorithm: Algorithm::Bbr3 };
        let server = silent.local_addr().unwrap();
        let within = Duration::from_millis(200);
        assert!(matches!(NativeSocket::connect(server, &keys, within, || false), Ok(None)));
        let long = Duration::from_secs(600);
        assert!(matches!(NativeSocket::connect(server, &keys, long, || true), Ok(None)));
        // Nobody listens any more: the same.
        drop(silent);
        assert!(matches!(NativeSocket::connect(server, &keys, within, || false), Ok(None)));
    }
}
