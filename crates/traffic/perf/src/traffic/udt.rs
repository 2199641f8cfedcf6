//! UDT: a stream's thread carries a connection over its UDP socket. Both ends have the
//! other's address by then, so that they meet in a rendezvous; in native mode the sending
//! end is the client.

use super::{Traffic, bytes::Load, chunks::Chunks};
use crate::{plan::Plan, stream::Stream};
use host::clock;
use sha2::{Digest, Sha256};
use std::{
    io,
    net::{SocketAddr, UdpSocket},
    thread,
    time::{Duration, Instant},
};
use udt::{
    CloseReason, Config, Connection, Endpoint, Identity, NativeConfig, NativeConnection, Sequence,
};
use udt_socket::{Driver, Next};
use units::Nanos;

/// How often the end of the test is noticed, and the state is updated.
const POLL: Duration = Duration::from_millis(5);
/// The peer starts its end when it learns that the test has started.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// UDT counts the headers of IPv4; those of IPv6 have 20 bytes more.
const IPV6_PACKET_BYTES: u32 = Config::DEFAULT_PACKET_BYTES - 20;
/// Smallest packets: those that every path carries.
const MIN_PACKET_BYTES: u32 = 540;
/// Messages that one call receives.
const INBOX_BYTES: u64 = 32 * 65_536;

/// Memory of one stream.
pub(super) fn memory(plan: &Plan) -> usize {
    let packets = plan.udt.max_buffer * u64::from(Config::DEFAULT_PACKET_BYTES);
    usize::try_from(packets + INBOX_BYTES + 2 * udt_socket::SOCKET_BUFFER.bytes())
        .unwrap_or(usize::MAX)
}

impl Traffic {
    /// Carries a stream until the end of the test.
    pub(super) fn carry_udt(
        &self,
        stream: &Stream,
        plan: &Plan,
        load: &Load,
        began: Instant,
    ) -> io::Result<()> {
        let socket = UdpSocket::from(stream.socket.try_clone()?);
        let peer = socket.peer_addr()?;
        let mut driver = Driver::new(socket)?;
        if plan.udt.native {
            driver.forbid_fragments();
            let mut connection = native(driver.now(), stream, plan, peer)?;
            return self.drive(&mut driver, &mut connection, (stream, plan, load, began));
        }
        // Zero is no socket ID.
        let random = u64::from_ne_bytes(host::random::secret()?);
        let first = Sequence::new(random as u32);
        let socket_id = (random >> 33) as u32 | 1;
        let mut connection = Connection::rendezvous(
            driver.now(),
            Config {
                packet_bytes: packet_bytes(peer, plan.udt.path_mtu),
                max_buffer: plan.udt.max_buffer,
                seed: random,
                ..Config::new(socket_id, first, plan.udt.algorithm)
            },
        );
        self.drive(&mut driver, &mut connection, (stream, plan, load, began))
    }

    fn drive<E: Endpoint>(
        &self,
        driver: &mut Driver,
        connection: &mut E,
        carried: (&Stream, &Plan, &Load, Instant),
    ) -> io::Result<()> {
        let (stream, plan, load, _) = carried;
        let Some(file) = load.file.as_ref().filter(|_| stream.sending) else {
            return self.drive_with(driver, connection, carried, None);
        };
        thread::scope(|scope| {
            let is_over = || self.has_read_file();
            let chunks = Chunks::read(scope, file, stream, plan.chunk, is_over)?;
            self.drive_with(driver, connection, carried, Some(chunks))
        })
    }

    fn drive_with<E: Endpoint>(
        &self,
        driver: &mut Driver,
        connection: &mut E,
        (stream, plan, load, began): (&Stream, &Plan, &Load, Instant),
        chunks: Option<Chunks>,
    ) -> io::Result<()> {
        let mut end = StreamEnd {
            traffic: self,
            stream,
            plan,
            load,
            began,
            updated: None,
            charged_packets: 0,
            chunks,
            is_file_sent: false,
            unread: None,
        };
        driver.run(connection, &mut |now: Nanos, connection: &mut E| end.poll(now, connection))?;
        if let Some(error) = end.unread {
            return Err(error);
        }
        match connection.closed() {
            Some(
                reason @ (CloseReason::TimedOut
                | CloseReason::PathMtu(_)
                | CloseReason::Protocol(_)
                | CloseReason::HandshakeTimeout
                | CloseReason::Refused
                | CloseReason::NoNativeMode
                | CloseReason::Authentication),
            ) => Err(io::Error::other(format!("UDT: {reason}"))),
            _ => Ok(()),
        }
    }
}

/// A connection in native mode. Its keys follow from the test's cookie, which both ends have
/// from the control connection: nobody who has not read that can disturb it.
fn native(
    now: Nanos,
    stream: &Stream,
    plan: &Plan,
    peer: SocketAddr,
) -> io::Result<NativeConnection> {
    let cookie = plan.cookie.as_ref().ok_or_else(|| io::Error::other("a test without cookie"))?;
    let identity = |role: &str| {
        let seed = Sha256::new().chain_update(role).chain_update(cookie.bytes()).finalize();
        Identity::new(&seed.into()).map_err(io::Error::other)
    };
    let (sender, receiver) =
        (identity("longhaul test sender")?, identity("longhaul test receiver")?);
    let config = NativeConfig {
        packet_bytes: if peer.is_ipv4() {
            NativeConfig::IPV4_PACKET_BYTES
        } else {
            NativeConfig::IPV6_PACKET_BYTES
        },
        max_buffer: plan.udt.max_buffer,
        algorithm: plan.udt.algorithm,
        secret: host::random::secret()?,
    };
    if !stream.sending {
        return Ok(NativeConnection::server(now, config, receiver, sender.public_key()));
    }
    let address = udt_socket::peer_address(peer);
    NativeConnection::client(now, config, address, &sender, receiver.public_key())
        .map_err(io::Error::other)
}

/// Packets as UDT counts them, where IP packets of `path_mtu` pass.
fn packet_bytes(peer: SocketAddr, path_mtu: Option<u32>) -> u32 {
    let full = if peer.is_ipv4() { Config::DEFAULT_PACKET_BYTES } else { IPV6_PACKET_BYTES };
    let headers = Config::DEFAULT_PACKET_BYTES - full;
    path_mtu.map_or(full, |mtu| mtu.saturating_sub(headers).clamp(MIN_PACKET_BYTES, full))
}

/// One end of a stream.
struct StreamEnd<'a> {
    traffic: &'a Traffic,
    stream: &'a Stream,
    plan: &'a Plan,
    load: &'a Load,
    began: Instant,
    updated: Option<Nanos>,
    /// Packets received that the quota was charged for.
    charged_packets: u64,
    /// What is sent, if it is a file.
    chunks: Option<Chunks>,
    /// Whether all of it was written.
    is_file_sent: bool,
    /// Why it could not be read.
    unread: Option<io::Error>,
}

impl StreamEnd<'_> {
    fn poll(&mut self, now: Nanos, connection: &mut impl Endpoint) -> Next {
        let since = self.updated.map_or(POLL, |updated| now.since(updated));
        if since >= POLL {
            self.updated = Some(now);
            self.stream.udt().update(connection, now, since);
        }
        if !connection.is_established() {
            return self.wait_for_peer(now, connection);
        }
        let goes_on =
            if self.stream.sending { self.write(connection) } else { self.read(now, connection) };
        if goes_on {
            return Next::At(now.plus(POLL));
        }
        self.stream.udt().update(connection, now, Duration::ZERO);
        connection.abort(CloseReason::Local);
        Next::Never
    }

    fn wait_for_peer(&self, now: Nanos, connection: &mut impl Endpoint) -> Next {
        let is_over =
            if self.stream.sending { self.traffic.has_sent() } else { self.traffic.has_ended() };
        if is_over {
            return Next::Never;
        }
        if now > Nanos(0).plus(HANDSHAKE_TIMEOUT) {
            connection.abort(CloseReason::HandshakeTimeout);
        }
        Next::At(now.plus(POLL))
    }

    /// Writes what there is room for; false at the end of the test.
    fn write(&mut self, connection: &mut impl Endpoint) -> bool {
        if self.traffic.has_sent() {
            return false;
        }
        let Some(mut chunks) = self.chunks.take() else {
            while self.offer(connection, &self.load.block) > 0 {}
            return true;
        };
        let read = self.write_file(connection, &mut chunks);
        self.chunks = Some(chunks);
        self.unread = read.err();
        self.unread.is_none()
    }

    /// Writes what was read of the file and what there is room for.
    fn write_file(
        &mut self,
        connection: &mut impl Endpoint,
        chunks: &mut Chunks,
    ) -> io::Result<()> {
        while let Some(bytes) = chunks.next(Duration::ZERO)? {
            if bytes.is_empty() {
                if !std::mem::replace(&mut self.is_file_sent, true) {
                    self.traffic.file_is_sent();
                }
                return Ok(());
            }
            let written = self.offer(connection, bytes);
            if written == 0 {
                return Ok(());
            }
            chunks.sent(written);
        }
        Ok(())
    }

    /// Writes as much as there is room for and the rates allow; how much.
    fn offer(&self, connection: &mut impl Endpoint, bytes: &[u8]) -> usize {
        let granted = self.granted(bytes.len().min(connection.writable()));
        let written = connection.write(&bytes[..granted]);
        self.traffic.was_not_sent(granted - written);
        if written > 0 {
            // Before they are counted: the last bytes must not end the test unacknowledged.
            self.stream.udt().wrote();
        }
        self.stream.count(written);
        written
    }

    /// Bytes that the test's rate, its limit of bytes and the client's quota grant now, at most
    /// `most`.
    fn granted(&self, most: usize) -> usize {
        let now = clock::now();
        let by_rate = self.plan.rate.map_or(most, |rate| {
            let due = rate.bytes_in(now.saturating_duration_since(self.began));
            let left = due.bytes().saturating_sub(self.stream.bytes());
            usize::try_from(left).unwrap_or(most).min(most)
        });
        let drawn = self.traffic.draw(by_rate);
        let granted = if drawn > 0 { self.traffic.may_send(drawn, now) } else { 0 };
        self.traffic.give_back(drawn - granted);
        granted
    }

    /// Reads what has arrived; false at the end of the test.
    fn read(&mut self, now: Nanos, connection: &mut impl Endpoint) -> bool {
        if self.traffic.has_ended() {
            return false;
        }
        let bytes = usize::try_from(connection.discard()).unwrap_or(usize::MAX);
        self.stream.count(bytes);
        // Duplicates count against the quota as well.
        let packets = connection.statistics(now).received.packets;
        let new = packets - std::mem::replace(&mut self.charged_packets, packets);
        let wire = usize::try_from(new).unwrap_or(usize::MAX) * connection.packet_bytes();
        wire == 0 || self.traffic.charge(wire)
    }
}
