//! A UDT connection in native mode that carries a session.

use super::Session;
use super::pump::Pump;
use crate::CopyError;
use crate::client::PathMtu;
use crate::protocol::message::Carrier;
use control::Algorithm;
use host::random;
use pinned_tls::{Identity, PublicKey};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;
use udt::{NativeConfig, NativeConnection};
use udt_socket::{Driver, Next, peer_address};
use units::Nanos;

/// How often the session is asked for more to send.
const POLL: Duration = Duration::from_millis(1);
/// Packets that each buffer holds at most: 95 MB, the BDP of 2 Gbit/s at 380 ms.
const MAX_BUFFER: u64 = 1 << 16;
/// How often the lost packets are counted.
const COUNT: Duration = Duration::from_millis(100);
const READ_BYTES: usize = 256 << 10;
/// What an end that finished waits for the peer to acknowledge.
const LINGER: Duration = Duration::from_secs(3);

/// A connection and what drives it.
pub(crate) struct Udt {
    driver: Driver,
    connection: NativeConnection,
    is_ipv4: bool,
}

/// Keys and congestion control of one end.
pub(crate) struct Keys<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) peer: PublicKey,
    pub(crate) algorithm: Algorithm,
}

fn config(algorithm: Algorithm, is_ipv4: bool) -> io::Result<NativeConfig> {
    let packet_bytes =
        if is_ipv4 { NativeConfig::IPV4_PACKET_BYTES } else { NativeConfig::IPV6_PACKET_BYTES };
    Ok(NativeConfig { packet_bytes, max_buffer: MAX_BUFFER, algorithm, secret: random::secret()? })
}

impl Udt {
    /// Connects to a server; `None` if it does not answer in time.
    pub(crate) fn connect(
        server: SocketAddr,
        keys: &Keys<'_>,
        timeout: Duration,
    ) -> Result<Option<Self>, CopyError> {
        let socket = super::super::sockets::udp_for(server)?;
        let driver = Driver::new(socket).map_err(CopyError::socket)?;
        driver.forbid_fragments();
        let is_ipv4 = server.ip().to_canonical().is_ipv4();
        let connection = NativeConnection::client(
            driver.now(),
            config(keys.algorithm, is_ipv4).map_err(CopyError::socket)?,
            peer_address(server),
            keys.identity,
            keys.peer,
        )
        .map_err(|error| CopyError::Connection(error.to_string()))?;
        let mut this = Udt { driver, connection, is_ipv4 };
        let is_open = this.open(timeout, || false).map_err(CopyError::socket)?;
        Ok(is_open.then_some(this))
    }

    /// Waits for the client that has `keys.peer`; `None` if `stop` says so first, or after
    /// `timeout`.
    pub(crate) fn accept(
        socket: UdpSocket,
        keys: &Keys<'_>,
        timeout: Duration,
        stop: impl Fn() -> bool,
    ) -> io::Result<Option<Self>> {
        let driver = Driver::new(socket)?;
        driver.forbid_fragments();
        let config = config(keys.algorithm, true)?;
        let identity = keys.identity.clone();
        let connection = NativeConnection::server(driver.now(), config, identity, keys.peer);
        let mut this = Udt { driver, connection, is_ipv4: true };
        Ok(this.open(timeout, stop)?.then_some(this))
    }

    fn open(&mut self, timeout: Duration, stop: impl Fn() -> bool) -> io::Result<bool> {
        let until = self.driver.now().plus(timeout);
        self.driver.run(
            &mut self.connection,
            &mut |now: Nanos, connection: &mut NativeConnection| {
                if connection.is_established() || now >= until || stop() {
                    Next::Never
                } else {
                    Next::At(now.plus(Duration::from_millis(20)).min(until))
                }
            },
        )?;
        Ok(self.connection.is_established())
    }

    /// Carries the session until it ends. A server's handshake may have completed on a
    /// connection that the client has given up, so it waits for the client to use it. `on_smaller`
    /// learns once if the path does not carry packets of the usual size.
    pub(crate) fn carry(
        &mut self,
        session: &Session,
        is_client: bool,
        on_smaller: &dyn Fn(PathMtu),
    ) {
        let mut pump = Pump::new(session, Carrier::Udt, is_client, true);
        let mut buffer = vec![0; READ_BYTES];
        let (mut done_since, mut counted_at) = (None, Nanos(0));
        let (mut is_mtu_known, is_ipv4) = (false, self.is_ipv4);
        let carried = self.driver.run(
            &mut self.connection,
            &mut |now: Nanos, connection: &mut NativeConnection| {
                loop {
                    let pending = pump.pending();
                    let written = if pending.is_empty() { 0 } else { connection.write(pending) };
                    if written == 0 {
                        break;
                    }
                    pump.advance(written);
                }
                while pump.has_room() {
                    match connection.read(&mut buffer) {
                        0 => break,
                        length => pump.received(&buffer[..length]),
                    }
                }
                if now.since(counted_at) >= COUNT {
                    counted_at = now;
                    let statistics = connection.statistics(now);
                    let (sent, received) = (statistics.sent, statistics.received);
                    let packets = sent.packets + received.packets + received.missing;
                    session.data_path().count(packets, sent.lost + received.missing);
                    if let Some((carries, drops)) = connection.smaller_packets()
                        && drops <= carries + NativeConfig::MTU_PRECISION
                        && !std::mem::replace(&mut is_mtu_known, true)
                    {
                        on_smaller(PathMtu::of_udp(carries, drops, !is_ipv4));
                    }
                }
                if pump.has_failed() {
                    connection.abort(udt::CloseReason::Local);
                    return Next::Never;
                }
                if pump.is_done() && is_client && session.is_answered() {
                    connection.abort(udt::CloseReason::Local);
                    return Next::Never;
                }
                if pump.is_done() {
                    connection.close();
                    if now >= done_since.get_or_insert(now).plus(LINGER) {
                        return Next::Never;
                    }
                }
                Next::At(now.plus(POLL))
            },
        );
        // It was over before the search.
        if let (Some((carries, drops)), false) = (self.connection.smaller_packets(), is_mtu_known) {
            on_smaller(PathMtu::of_udp(carries, drops, !is_ipv4));
        }
        if let Err(error) = carried {
            session.fail(CopyError::Connection(error.to_string()));
        }
        match self.connection.closed() {
            Some(udt::CloseReason::Peer | udt::CloseReason::Local) | None => {}
            Some(why) if !pump.is_done() => session.fail(CopyError::Connection(why.to_string())),
            Some(_) => {}
        }
        // What had no room before.
        loop {
            match self.connection.read(&mut buffer) {
                0 => break,
                length => pump.received(&buffer[..length]),
            }
        }
        pump.ended();
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
        let keys = Keys { identity: &identity, peer, algorithm: Algorithm::Bbr3 };
        let server = silent.local_addr().unwrap();
        let connected = Udt::connect(server, &keys, Duration::from_millis(200));
        assert!(matches!(connected, Ok(None)));
        // Nobody listens any more: the same.
        drop(silent);
        let connected = Udt::connect(server, &keys, Duration::from_millis(200));
        assert!(matches!(connected, Ok(None)));
    }
}
