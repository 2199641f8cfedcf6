//! The TLS handshake over datagrams. Each end repeats its messages until the peer's next
//! ones show that they arrived.

use super::packet::{HEADER_BYTES, Header, PacketKind};
use super::protection::{self, Protection};
use pinned_tls::{Identity, IdentityError, PublicKey};
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, KeyChange, Keys, ServerConnection, Version};
use std::fmt;

/// The protocol that TLS agrees on (RFC 7301); another version has another name.
const PROTOCOL: &[u8] = b"longhaul-native/1";

/// Bytes of messages in a datagram: with headers it fits any path of IPv6.
const CHUNK_BYTES: usize = 470;
/// Bytes of messages that a peer may send at each level.
const MAX_BYTES: usize = 16_384;
/// Bytes of an offset before the messages.
const OFFSET_BYTES: usize = 4;

/// The levels of encryption at which messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Initial,
    Handshake,
    /// All that there is was sent.
    Done,
}

/// A handshake under way.
pub(crate) struct TlsHandshake {
    tls: Connection,
    is_client: bool,
    level: Level,
    keys: Option<Keys>,
    protection: Option<Protection>,
    /// Messages of each level: those to send, and how many bytes came.
    messages: [Vec<u8>; 2],
    received: [usize; 2],
    /// Datagrams sent, which number them.
    sent: u64,
}

/// The handshake failed: the peer has another key, or does not follow the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TlsFailed;

impl TlsHandshake {
    pub(crate) fn client(
        identity: &Identity,
        peer: PublicKey,
        parameters: Vec<u8>,
    ) -> Result<Self, IdentityError> {
        // No name is sent (enable_sni), but the library wants one.
        let name = ServerName::try_from("longhaul.invalid")
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        let config = identity.client(peer, PROTOCOL)?;
        let tls = ClientConnection::new(config, Version::V1, name, parameters)?;
        Ok(TlsHandshake::new(tls.into(), true))
    }

    pub(crate) fn server(
        identity: &Identity,
        peer: PublicKey,
        parameters: Vec<u8>,
    ) -> Result<Self, IdentityError> {
        let tls = ServerConnection::new(identity.server(peer, PROTOCOL)?, Version::V1, parameters)?;
        Ok(TlsHandshake::new(tls.into(), false))
    }

    fn new(tls: Connection, is_client: bool) -> Self {
        let mut handshake = TlsHandshake {
            tls,
            is_client,
            level: Level::Initial,
            keys: None,
            protection: None,
            messages: [Vec::new(), Vec::new()],
            received: [0; 2],
            sent: 0,
        };
        handshake.advance();
        handshake
    }

    /// Whether the peer has answered.
    pub(crate) const fn is_answered(&self) -> bool {
        self.keys.is_some()
    }

    /// What the peer told of itself, authenticated by the handshake.
    pub(crate) fn peer_parameters(&self) -> Option<&[u8]> {
        self.tls.quic_transport_parameters()
    }

    /// Whether both ends are authenticated.
    pub(crate) fn is_complete(&self) -> bool {
        !self.tls.is_handshaking() && self.protection.is_some()
    }

    /// The keys, once, when it is complete.
    pub(crate) fn take_protection(&mut self) -> Option<Protection> {
        if self.is_complete() { self.protection.take() } else { None }
    }

    /// Collects what TLS has to send.
    fn advance(&mut self) {
        loop {
            let level = self.level;
            let mut messages = Vec::new();
            match self.tls.write_hs(&mut messages) {
                Some(KeyChange::Handshake { keys }) => {
                    self.keys = Some(keys);
                    self.level = Level::Handshake;
                }
                Some(KeyChange::OneRtt { keys, next }) => {
                    self.protection = Some(Protection::new(keys, next));
                    self.level = Level::Done;
                }
                None if messages.is_empty() => return,
                None => {}
            }
            match level {
                Level::Initial => self.messages[0].extend(messages),
                Level::Handshake => self.messages[1].extend(messages),
                Level::Done => {}
            }
        }
    }

    /// A datagram of the handshake came; gives whether it brought news.
    pub(crate) fn receive(&mut self, header: Header, packet: &mut [u8]) -> Result<bool, TlsFailed> {
        let (head, body) = packet.split_at_mut(HEADER_BYTES.min(packet.len()));
        let (index, body) = match header.kind {
            // Nothing in the clear counts once there are keys.
            PacketKind::Initial if self.keys.is_some() => return Ok(false),
            PacketKind::Initial => (0, &*body),
            PacketKind::Handshake => {
                let Some(keys) = &self.keys else { return Ok(false) };
                let number = u64::from(header.number);
                let Ok(opened) = keys.remote.packet.decrypt_in_place(number, head, body) else {
                    return Ok(false);
                };
                (1, opened)
            }
            PacketKind::Protected { .. } => return Ok(false),
        };
        let Some((offset, messages)) = body.split_first_chunk::<OFFSET_BYTES>() else {
            return Ok(false);
        };
        let offset = u32::from_be_bytes(*offset) as usize;
        let received = self.received[index];
        // What came before, or too early: it is repeated.
        let Some(new) = received.checked_sub(offset).and_then(|known| messages.get(known..)) else {
            return Ok(false);
        };
        if new.is_empty() || received + new.len() > MAX_BYTES {
            return Ok(false);
        }
        self.received[index] += new.len();
        self.tls.read_hs(new).map_err(|_| TlsFailed)?;
        self.advance();
        Ok(true)
    }

    /// Datagrams with the messages that the peer may not have.
    pub(crate) fn datagrams(&mut self, destination: u64) -> Vec<Vec<u8>> {
        let mut datagrams = Vec::new();
        let has_hello = self.is_client && self.keys.is_some();
        for (index, kind) in [PacketKind::Initial, PacketKind::Handshake].into_iter().enumerate() {
            if index == 0 && has_hello {
                // The server has answered it.
                continue;
            }
            for (chunk, messages) in self.messages[index].chunks(CHUNK_BYTES).enumerate() {
                let number = self.sent;
                self.sent += 1;
                let header = Header { kind, destination, number: number as u32 };
                let offset = (chunk * CHUNK_BYTES) as u32;
                let write = |out: &mut Vec<u8>| {
                    out.extend(offset.to_be_bytes());
                    out.extend(messages);
                };
                let mut datagram = Vec::new();
                match (&self.keys, kind) {
                    (Some(keys), PacketKind::Handshake) => {
                        protection::seal(&*keys.local.packet, header, number, &mut datagram, write);
                    }
                    _ => {
                        datagram.extend(header.bytes());
                        write(&mut datagram);
                    }
                }
                datagrams.push(datagram);
            }
        }
        datagrams
    }
}

impl fmt::Debug for TlsHandshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsHandshake").field("level", &self.level).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(pinned: [u8; 2]) -> (TlsHandshake, TlsHandshake) {
        let [client, server] = [1, 2].map(|seed| Identity::new(&[seed; 32]).unwrap());
        let key = |seed: u8| Identity::new(&[seed; 32]).unwrap().public_key();
        (
            TlsHandshake::client(&client, key(pinned[1]), vec![1]).unwrap(),
            TlsHandshake::server(&server, key(pinned[0]), vec![2]).unwrap(),
        )
    }

    /// Sends all of one end to the other.
    fn pass(from: &mut TlsHandshake, to: &mut TlsHandshake) -> Result<(), TlsFailed> {
        for mut datagram in from.datagrams(7) {
            let (header, _) = Header::parse(&datagram).unwrap();
            to.receive(header, &mut datagram)?;
        }
        Ok(())
    }

    #[test]
    fn both_ends_have_the_same_keys_and_know_each_other() {
        let (mut client, mut server) = pair([1, 2]);
        for _ in 0..2 {
            pass(&mut client, &mut server).unwrap();
            // A repetition changes nothing.
            pass(&mut client, &mut server).unwrap();
            pass(&mut server, &mut client).unwrap();
        }
        assert!(client.is_complete() && server.is_complete());
        assert_eq!(client.peer_parameters(), Some(&[2][..]));
        assert_eq!(server.peer_parameters(), Some(&[1][..]));
        let (mut ours, mut theirs) =
            (client.take_protection().unwrap(), server.take_protection().unwrap());
        let mut packet = Vec::new();
        assert!(ours.seal(7, 5, &mut packet, |out| out.extend(b"frame")));
        assert!(!packet.windows(5).any(|part| part == b"frame"));
        let mut forged = packet.clone();
        forged[18] ^= 1;
        assert_eq!(theirs.open(false, 5, &mut forged), None);
        assert_eq!(theirs.open(false, 6, &mut packet.clone()), None, "another number");
        assert_eq!(theirs.open(false, 5, &mut packet), Some(&b"frame"[..]));
    }

    #[test]
    fn another_key_than_the_pinned_one_is_refused() {
        let (mut client, mut server) = pair([1, 3]);
        pass(&mut client, &mut server).unwrap();
        assert_eq!(pass(&mut server, &mut client), Err(TlsFailed));
        let (mut client, mut server) = pair([3, 2]);
        pass(&mut client, &mut server).unwrap();
        pass(&mut server, &mut client).unwrap();
        assert_eq!(pass(&mut client, &mut server), Err(TlsFailed));
        assert!(!server.is_complete() && server.take_protection().is_none());
    }

    #[test]
    fn keys_are_updated_by_either_end_and_late_packets_still_open() {
        let (mut client, mut server) = pair([1, 2]);
        pass(&mut client, &mut server).unwrap();
        pass(&mut server, &mut client).unwrap();
        pass(&mut client, &mut server).unwrap();
        let (mut ours, mut theirs) =
            (client.take_protection().unwrap(), server.take_protection().unwrap());
        let seal = |by: &mut Protection, number| {
            let mut packet = Vec::new();
            assert!(by.seal(7, number, &mut packet, |out| out.extend(number.to_be_bytes())));
            packet
        };
        let open = |by: &mut Protection, number: u64, packet: &[u8]| {
            let Some((Header { kind: PacketKind::Protected { phase }, .. }, _)) =
                Header::parse(packet)
            else {
                panic!("not protected")
            };
            by.open(phase, number, &mut packet.to_vec()).map(<[u8]>::to_vec)
        };
        let mut phases = Vec::new();
        let mut number = 0;
        for _ in 0..3 {
            let late = seal(&mut ours, number);
            ours.update_for_test();
            let first = seal(&mut ours, number + 1);
            assert!(open(&mut theirs, number + 1, &first).is_some());
            assert!(open(&mut theirs, number, &late).is_some(), "of the phase before");
            let answer = seal(&mut theirs, number);
            assert!(open(&mut ours, number, &answer).is_some());
            phases.push(first[3]);
            number += 2;
        }
        assert_eq!(phases, [4, 3, 4]);
    }
}
