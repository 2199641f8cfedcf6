//! A connection in native mode, from its opening to its end.

use super::incoming::Incoming;
use super::open::{Open, Times, payload_bytes};
use super::opening::{Opened, Opening, Parameters, Progress};
use super::outgoing::Outgoing;
use super::packet::{Frame, Header, PacketKind};
use super::path::Path;
use crate::connection::{Statistics, Transmit};
use crate::cookie::PeerAddress;
use crate::{CloseReason, LOWER_HEADER_BYTES};
use control::Algorithm;
use hmac::{Hmac, KeyInit, Mac};
use pinned_tls::{Identity, IdentityError, PublicKey};
use sha2::Sha256;
use units::Nanos;

/// Settings of a connection in native mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeConfig {
    /// UDP payload of a packet at most, bytes. The smaller one of both ends counts.
    pub packet_bytes: usize,
    /// Packets that each buffer holds at most.
    pub max_buffer: u64,
    /// Congestion control.
    pub algorithm: Algorithm,
    /// From a cryptographic random source; connection IDs, cookies and path challenges
    /// follow from it.
    pub secret: [u8; 32],
}

impl NativeConfig {
    /// Smallest packet.
    pub const MIN_PACKET_BYTES: usize = 256;
    /// Bytes to which the size of packets is found that the path carries.
    pub const MTU_PRECISION: usize = 8;
    /// Packets of Ethernet's MTU over IPv4 and over IPv6.
    pub const IPV4_PACKET_BYTES: usize = 1_472;
    /// See [`NativeConfig::IPV4_PACKET_BYTES`].
    pub const IPV6_PACKET_BYTES: usize = 1_452;

    fn parameters(&self, now: Nanos) -> Parameters {
        let packet_bytes = self.packet_bytes.clamp(NativeConfig::MIN_PACKET_BYTES, 65_000);
        Parameters {
            // Zero is no ID.
            id: self.derive(b"connection ID", now).max(1),
            packet_bytes: packet_bytes as u32,
            window: u32::try_from(Incoming::first_window(self.max_buffer)).unwrap_or(u32::MAX),
        }
    }

    fn derive(&self, label: &[u8], now: Nanos) -> u64 {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else { return 0 };
        mac.update(label);
        mac.update(&now.0.to_be_bytes());
        mac.finalize().into_bytes().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }
}

/// One end of a connection in native mode. A server's end waits for a client that has the
/// pinned key; others are not noticed.
#[derive(Debug)]
pub struct NativeConnection {
    config: NativeConfig,
    ours: Parameters,
    /// Timestamps count from it.
    began: Nanos,
    opening: Option<Opening>,
    open: Option<Box<Open>>,
    closed: Option<CloseReason>,
    /// The stream ended before the connection was open.
    is_finishing: bool,
    /// What arrived, to be decrypted in place.
    packet: Vec<u8>,
}

impl NativeConnection {
    /// A client that begins to open a connection to a server with that key.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn client(
        now: Nanos,
        config: NativeConfig,
        address: PeerAddress,
        identity: &Identity,
        server: PublicKey,
    ) -> Result<Self, IdentityError> {
        let ours = config.parameters(now);
        let opening = Opening::client(now, ours, address, identity, server)?;
        Ok(NativeConnection::new(now, config, ours, opening))
    }

    /// A server's end that waits for a client with that key.
    #[must_use]
    pub fn server(now: Nanos, config: NativeConfig, identity: Identity, client: PublicKey) -> Self {
        let ours = config.parameters(now);
        let opening = Opening::server(ours, identity, client, config.secret);
        NativeConnection::new(now, config, ours, opening)
    }

    fn new(now: Nanos, config: NativeConfig, ours: Parameters, opening: Opening) -> Self {
        NativeConnection {
            config,
            ours,
            began: now,
            opening: Some(opening),
            open: None,
            closed: None,
            is_finishing: false,
            packet: Vec::new(),
        }
    }

    /// Whether the connection is open.
    #[must_use]
    pub const fn is_established(&self) -> bool {
        self.open.is_some() && self.closed.is_none()
    }

    /// Why it is closed; `None` if it is not. What arrived before can still be read.
    #[must_use]
    pub const fn closed(&self) -> Option<CloseReason> {
        self.closed
    }

    /// Bytes of a full packet as far as the path is known to carry it, without the headers of IP
    /// and UDP.
    #[must_use]
    pub fn packet_bytes(&self) -> usize {
        self.open.as_ref().map_or(self.ours.packet_bytes as usize, |open| open.packet_bytes())
    }

    /// Where packets of the agreed size vanish on the path: the bytes of UDP payload that arrive, and
    /// those that do not, which come close to each other.
    #[must_use]
    pub fn smaller_packets(&self) -> Option<(usize, usize)> {
        self.open.as_ref().and_then(|open| open.smaller_packets())
    }

    /// Bytes that a full packet carries.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        payload_bytes(self.packet_bytes())
    }

    /// The peer's address, once it is known and validated.
    #[must_use]
    pub fn peer_address(&self) -> Option<PeerAddress> {
        self.open.as_ref().map(|open| open.path.address())
    }

    /// Datagrams from `from` arrived together. `arrived` is when, not after `now`.
    pub fn receive<'a>(
        &mut self,
        now: Nanos,
        arrived: Nanos,
        from: PeerAddress,
        datagrams: impl IntoIterator<Item = &'a [u8]>,
    ) {
        for datagram in datagrams {
            if self.closed.is_some() {
                return;
            }
            if let Some(opening) = &mut self.opening {
                match opening.receive(now, from, datagram) {
                    Progress::Pending => {}
                    Progress::Failed(reason) => self.closed = Some(reason),
                    Progress::Opened(opened) => self.open(now, *opened),
                }
                continue;
            }
            let Some((header, _)) = Header::parse(datagram) else { continue };
            if header.destination != self.ours.id {
                continue;
            }
            let Some(open) = &mut self.open else { continue };
            match header.kind {
                PacketKind::Protected { phase } => {
                    self.packet.clear();
                    self.packet.extend(datagram);
                    let times = Times { now, arrived, began: self.began };
                    if let Err(reason) =
                        open.receive(times, from, header.number, phase, &mut self.packet)
                    {
                        self.closed = Some(reason);
                    }
                }
                // The client does not know yet that the connection is open.
                PacketKind::Handshake if open.is_new && from == open.path.address() => {
                    open.due.ping = true;
                }
                PacketKind::Initial | PacketKind::Handshake => {}
            }
        }
    }

    fn open(&mut self, now: Nanos, opened: Opened) {
        self.opening = None;
        self.ours.id = opened.our_id;
        let packet_bytes = opened.peer.packet_bytes.min(self.ours.packet_bytes) as usize;
        if packet_bytes < NativeConfig::MIN_PACKET_BYTES {
            self.closed = Some(CloseReason::Protocol("packets of less than 256 bytes"));
            return;
        }
        let payload = payload_bytes(packet_bytes);
        let seed = self.config.derive(b"congestion control", now);
        let control = self.config.algorithm.start(payload as u32, seed);
        let (window, max_buffer) = (u64::from(opened.peer.window), self.config.max_buffer);
        let outgoing = Outgoing::new(payload, window, max_buffer, control);
        let incoming = Incoming::new(payload, max_buffer);
        let path = Path::new(opened.address, self.config.secret);
        let mut open = Open::new(now, opened, packet_bytes, path, outgoing, incoming);
        if self.is_finishing {
            open.outgoing.finish();
        }
        self.open = Some(Box::new(open));
    }

    /// The next datagrams to send: fills `out` with at most `max_segments` packets of equal
    /// length (the last may be shorter). `None` if there is nothing to send now.
    pub fn poll_transmit(
        &mut self,
        now: Nanos,
        max_segments: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        out.clear();
        if let Some(opening) = &mut self.opening {
            if self.closed.is_some() {
                return None;
            }
            let (to, datagram) = opening.poll(now)?;
            out.extend(datagram);
            return Some(Transmit { packet_bytes: out.len(), is_pair: false, to: Some(to) });
        }
        let open = self.open.as_mut()?;
        let mut first = None;
        let timestamp_us = (now.nanos_since(self.began) / 1_000) as u32;
        let to = if self.closed.is_some() {
            std::mem::take(&mut open.due.close).then(|| open.send(now, Frame::Close, out))?
        } else {
            open.poll(now, timestamp_us, max_segments.max(1), &mut first, out)?
        };
        if open.is_closing && open.outgoing.is_empty() && open.due.close {
            self.closed = Some(CloseReason::Local);
        }
        if out.is_empty() {
            return None;
        }
        let packet_bytes = first.unwrap_or(out.len());
        Some(Transmit { packet_bytes, is_pair: false, to: Some(to) })
    }

    /// When [`NativeConnection::on_timeout`] and [`NativeConnection::poll_transmit`] are to
    /// be called, if nothing happens before; `None`: never.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Nanos> {
        if self.closed.is_some() {
            return None;
        }
        if let Some(opening) = &self.opening {
            return opening.next_timeout();
        }
        self.open.as_ref().and_then(|open| open.next_timeout())
    }

    /// Time has passed.
    pub fn on_timeout(&mut self, now: Nanos) {
        if self.closed.is_some() {
            return;
        }
        if self.opening.as_ref().is_some_and(|opening| opening.is_over(now)) {
            self.closed = Some(CloseReason::HandshakeTimeout);
        }
        if let Some(open) = &mut self.open
            && let Err(reason) = open.on_timeout(now)
        {
            self.closed = Some(reason);
        }
    }

    /// Writes bytes and gives their number: fewer than offered if the buffer is full, none if
    /// the connection is not open.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        match &mut self.open {
            Some(open) if self.closed.is_none() => open.outgoing.write(bytes),
            _ => 0,
        }
    }

    /// Bytes that can be written now: those of whole packets.
    #[must_use]
    pub fn writable(&self) -> usize {
        match &self.open {
            Some(open) if self.closed.is_none() => {
                let room = usize::try_from(open.outgoing.room()).unwrap_or(usize::MAX);
                room.saturating_mul(self.payload_bytes())
            }
            _ => 0,
        }
    }

    /// Bytes that were written and have not left once, in whole packets.
    #[must_use]
    pub fn unsent(&self) -> usize {
        let unsent = self.open.as_ref().map_or(0, |open| open.outgoing.unsent());
        usize::try_from(unsent).unwrap_or(usize::MAX).saturating_mul(self.payload_bytes())
    }

    /// Reads bytes and gives their number.
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        self.open.as_mut().map_or(0, |open| open.incoming.read(into))
    }

    /// Discards all bytes that can be read, and counts them.
    pub fn discard(&mut self) -> u64 {
        self.open.as_mut().map_or(0, |open| open.incoming.discard())
    }

    /// Whether the peer's stream ended and all of it was read.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.incoming.is_finished())
    }

    /// Whether all that was written is acknowledged, the end of the stream too if there was
    /// one.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.open.as_ref().is_none_or(|open| open.outgoing.is_empty())
    }

    /// Ends the stream: what was written is still delivered. The peer's stream goes on.
    pub fn finish(&mut self) {
        match &mut self.open {
            Some(open) => open.outgoing.finish(),
            None => self.is_finishing = true,
        }
    }

    /// Closes this end: what was written is still delivered, then the peer is informed.
    pub fn close(&mut self) {
        match &mut self.open {
            Some(open) => {
                open.outgoing.finish();
                open.is_closing = true;
            }
            // Nothing was written.
            None => {
                self.closed.get_or_insert(CloseReason::Local);
            }
        }
    }

    /// Closes the connection at once and informs the peer.
    pub fn abort(&mut self, reason: CloseReason) {
        if self.closed.is_none() {
            self.closed = Some(reason);
            if let Some(open) = &mut self.open {
                open.due.close = true;
            }
        }
    }

    /// Its state.
    #[must_use]
    pub fn statistics(&self, now: Nanos) -> Statistics {
        match &self.open {
            Some(open) => open.statistics(self.config.algorithm, now),
            None => Statistics::before(self.config.algorithm.name()),
        }
    }
}

const _: () = assert!(NativeConfig::IPV4_PACKET_BYTES + LOWER_HEADER_BYTES == 1_500);
