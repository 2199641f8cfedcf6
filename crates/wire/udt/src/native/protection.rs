//! Keys of protected packets, and their updates (RFC 9001 sections 5 and 6).

use super::packet::{HEADER_BYTES, Header, PacketKind, TAG_BYTES};
use rustls::quic::{Keys, PacketKey, PacketKeySet, Secrets};
use std::fmt;

/// Packets under the same keys at most; AES-GCM allows twice as many.
const KEY_PACKETS: u64 = 1 << 22;

/// The keys of a connection.
pub(crate) struct Protection {
    local: Box<dyn PacketKey>,
    remote: Box<dyn PacketKey>,
    /// The peer's keys before the last update, and its first packet number after it.
    previous: Option<Box<dyn PacketKey>>,
    updated_at: u64,
    /// The keys after the next update.
    next: PacketKeySet,
    secrets: Secrets,
    phase: bool,
    /// The peer has used the keys of this phase.
    is_confirmed: bool,
    /// Packets sealed with the local keys.
    sealed: u64,
    /// Packets that did not open.
    forged: u64,
}

impl Protection {
    pub(crate) fn new(keys: Keys, mut secrets: Secrets) -> Self {
        let next = secrets.next_packet_keys();
        Protection {
            local: keys.local.packet,
            remote: keys.remote.packet,
            previous: None,
            updated_at: 0,
            next,
            secrets,
            phase: false,
            is_confirmed: false,
            sealed: 0,
            forged: 0,
        }
    }

    /// Whether more packets were forged than the keys allow (RFC 9001 section 6.6).
    pub(crate) fn is_exhausted(&self) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
        //# In addition to counting packets sent, endpoints MUST count the number of received
        //# packets that fail authentication during the lifetime of a connection.
        self.forged > self.remote.integrity_limit()
            || self.sealed >= self.local.confidentiality_limit()
    }

    /// Appends a packet whose frame `write` appends. False if it could not be sealed; then
    /// nothing is appended.
    pub(crate) fn seal(
        &mut self,
        destination: u64,
        number: u64,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
        //# Endpoints MUST initiate a key update before sending more protected packets than the
        //# confidentiality limit for the selected AEAD permits.
        if self.sealed >= KEY_PACKETS && self.is_confirmed {
            self.update(u64::MAX);
        }
        self.sealed += 1;
        let kind = PacketKind::Protected { phase: self.phase };
        seal(&*self.local, Header { kind, destination, number: number as u32 }, number, out, write)
    }

    /// Opens a packet in place and gives its frame.
    pub(crate) fn open<'a>(
        &mut self,
        phase: bool,
        number: u64,
        packet: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        let (header, body) = packet.split_at_mut_checked(HEADER_BYTES)?;
        let is_new = phase != self.phase && number >= self.updated_at;
        let key = match (phase == self.phase, is_new) {
            (true, _) => &self.remote,
            (false, true) => &self.next.remote,
            (false, false) => self.previous.as_ref()?,
        };
        let Ok(frame) = key.decrypt_in_place(number, header, body) else {
            self.forged += 1;
            return None;
        };
        if is_new {
            self.update(number);
        }
        if phase == self.phase {
            self.is_confirmed = true;
            self.updated_at = self.updated_at.min(number);
        }
        Some(frame)
    }

    /// Both directions change to the next keys; `first` is the peer's first packet with
    /// them, if it is known.
    fn update(&mut self, first: u64) {
        let following = self.secrets.next_packet_keys();
        let PacketKeySet { local, remote } = std::mem::replace(&mut self.next, following);
        self.local = local;
        self.previous = Some(std::mem::replace(&mut self.remote, remote));
        self.phase = !self.phase;
        self.updated_at = first;
        self.is_confirmed = false;
        self.sealed = 0;
    }
}

impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protection").field("phase", &self.phase).finish_non_exhaustive()
    }
}

/// Appends a packet sealed with a key.
pub(crate) fn seal(
    key: &dyn PacketKey,
    header: Header,
    number: u64,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) -> bool {
    let start = out.len();
    out.extend(header.bytes());
    write(out);
    let (header, frame) = out[start..].split_at_mut(HEADER_BYTES);
    match key.encrypt_in_place(number, header, frame) {
        Ok(tag) if tag.as_ref().len() == TAG_BYTES => {
            out.extend(tag.as_ref());
            true
        }
        _ => {
            out.truncate(start);
            false
        }
    }
}

#[cfg(test)]
impl Protection {
    pub(crate) fn update_for_test(&mut self) {
        self.update(u64::MAX);
    }
}
