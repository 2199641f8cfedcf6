//! The first messages of a connection, after the prefaces: 64 bytes from near, 48 from far. By them
//! the ends may agree that UDT carries the session; the connection then has done its work.

use core::fmt;
use core::num::NonZeroU32;

/// Kinds of `Hello`.
const NEW: u8 = 0;
const RESUMED: u8 = 1;
const ADDITIONAL: u8 = 2;
/// What carries the session.
const TCP: u8 = 0;
const UDT: u8 = 1;
/// Verdicts of `Welcome`.
const ACCEPTED: u8 = 0;
const UNKNOWN: u8 = 1;
const BUSY: u8 = 2;

/// The identity of a session: a secret of near, which far binds to near's key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(pub [u8; 16]);

impl fmt::Debug for SessionId {
    /// Never the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId")
    }
}

/// Near: the session that the connection belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Its identity.
    pub session: SessionId,
    /// What the connection is to it.
    pub attachment: Attachment,
    /// The public key by which near would have UDT carry the session; `None`: this connection is to.
    pub udt: Option<[u8; 32]>,
}

/// What a connection is to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attachment {
    /// The session begins.
    First,
    /// It replaces all connections. The offset of far's bytes from which on near wants them.
    Resumed(u64),
    /// It carries the session beside the others.
    Additional,
}

/// Where far waits for a UDT connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdtOffer {
    /// Its UDP port.
    pub port: u16,
    /// Its public key.
    pub key: [u8; 32],
}

/// What far makes of a `Hello`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The session goes on.
    Accepted,
    /// Far does not have the session, or no longer.
    Unknown,
    /// Far has too many sessions, or the session too many connections.
    Busy,
}

/// Far's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// Whether the session goes on.
    pub verdict: Verdict,
    /// The offset of near's bytes from which on far wants them; without meaning for an additional
    /// connection.
    pub resumes_at: u64,
    /// What far's kernel lets a connection hold, in KiB; `None` if far does not know.
    pub window_kib: Option<NonZeroU32>,
    /// Where UDT carries the session; `None`: this connection does.
    pub udt: Option<UdtOffer>,
}

impl Hello {
    /// Length in bytes.
    pub const BYTES: usize = 64;

    /// The bytes to send.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (kind, offset) = match self.attachment {
            Attachment::First => (NEW, 0),
            Attachment::Resumed(offset) => (RESUMED, offset),
            Attachment::Additional => (ADDITIONAL, 0),
        };
        let carrier = if self.udt.is_some() { UDT } else { TCP };
        let key = self.udt.unwrap_or_default();
        let offset = offset.to_be_bytes();
        [&[kind, carrier, 0, 0, 0, 0, 0, 0], &offset[..], &self.session.0, &key].concat()
    }

    /// Reads what near sent; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8; Hello::BYTES]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let (offset, rest) = rest.split_first_chunk::<8>()?;
        let (session, key) = rest.split_first_chunk::<16>()?;
        let [kind, carrier, 0, 0, 0, 0, 0, 0] = *head else { return None };
        let attachment = match (kind, u64::from_be_bytes(*offset)) {
            (NEW, 0) => Attachment::First,
            (RESUMED, offset) => Attachment::Resumed(offset),
            (ADDITIONAL, 0) => Attachment::Additional,
            _ => return None,
        };
        let key: [u8; 32] = key.try_into().ok()?;
        let udt = match carrier {
            UDT if attachment != Attachment::Additional => Some(key),
            TCP if key == [0; 32] => None,
            _ => return None,
        };
        Some(Hello { session: SessionId(*session), attachment, udt })
    }
}

impl Welcome {
    /// Length in bytes.
    pub const BYTES: usize = 48;

    /// The bytes to send.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let verdict = match self.verdict {
            Verdict::Accepted => ACCEPTED,
            Verdict::Unknown => UNKNOWN,
            Verdict::Busy => BUSY,
        };
        let window = self.window_kib.map_or(0, NonZeroU32::get).to_be_bytes();
        let (carrier, port, key) =
            self.udt.map_or((TCP, 0, [0; 32]), |offer| (UDT, offer.port, offer.key));
        let [high, low] = port.to_be_bytes();
        let head = [verdict, carrier, high, low];
        [&head[..], &window, &self.resumes_at.to_be_bytes(), &key].concat()
    }

    /// Reads what far sent; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8; Welcome::BYTES]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<4>()?;
        let (window, rest) = rest.split_first_chunk::<4>()?;
        let (offset, key) = rest.split_first_chunk::<8>()?;
        let [verdict, carrier, high, low] = *head;
        let verdict = match verdict {
            ACCEPTED => Verdict::Accepted,
            UNKNOWN => Verdict::Unknown,
            BUSY => Verdict::Busy,
            _ => return None,
        };
        let offer = UdtOffer { port: u16::from_be_bytes([high, low]), key: key.try_into().ok()? };
        let udt = match (carrier, offer.port) {
            (UDT, 1..) if verdict == Verdict::Accepted => Some(offer),
            (TCP, 0) if offer.key == [0; 32] => None,
            _ => return None,
        };
        let window_kib = NonZeroU32::new(u32::from_be_bytes(*window));
        Some(Welcome { verdict, resumes_at: u64::from_be_bytes(*offset), window_kib, udt })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_are_read_as_written_and_nothing_else_is() {
        let session = SessionId([7; 16]);
        for attachment in [
            Attachment::First,
            Attachment::Resumed(0),
            Attachment::Resumed(u64::MAX),
            Attachment::Additional,
        ] {
            for udt in [None, Some([9; 32])] {
                let hello = Hello { session, attachment, udt };
                let bytes: [u8; Hello::BYTES] = hello.encode().try_into().unwrap();
                let is_valid = udt.is_none() || attachment != Attachment::Additional;
                assert_eq!(Hello::decode(&bytes), is_valid.then_some(hello));
                for at in 0..8 {
                    let mut wrong = bytes;
                    wrong[at] = 3;
                    assert_eq!(Hello::decode(&wrong), None);
                }
            }
        }
        let hello = Hello { session, attachment: Attachment::Resumed(5), udt: None };
        let bytes: [u8; Hello::BYTES] = hello.encode().try_into().unwrap();
        for kind in [NEW, ADDITIONAL] {
            let mut wrong = bytes;
            wrong[0] = kind;
            assert_eq!(Hello::decode(&wrong), None, "only a resumed session has an offset");
        }
        let mut wrong = bytes;
        wrong[63] = 1;
        assert_eq!(Hello::decode(&wrong), None, "TCP has no key");
        assert_eq!(format!("{session:?}"), "SessionId");
    }

    #[test]
    fn answers_are_read_as_written_and_only_one_that_accepts_offers_udt() {
        let offer = UdtOffer { port: 7425, key: [9; 32] };
        for verdict in [Verdict::Accepted, Verdict::Unknown, Verdict::Busy] {
            for (udt, window) in [(None, 0), (None, u32::MAX), (Some(offer), 0), (Some(offer), 208)]
            {
                let window_kib = NonZeroU32::new(window);
                let welcome = Welcome { verdict, resumes_at: 1 << 40, window_kib, udt };
                let mut bytes: [u8; Welcome::BYTES] = welcome.encode().try_into().unwrap();
                let is_valid = udt.is_none() || verdict == Verdict::Accepted;
                assert_eq!(Welcome::decode(&bytes), is_valid.then_some(welcome));
                bytes[0] = 3;
                assert_eq!(Welcome::decode(&bytes), None);
            }
        }
        let (verdict, udt) = (Verdict::Accepted, Some(offer));
        let welcome = Welcome { verdict, resumes_at: 0, window_kib: None, udt };
        let bytes: [u8; Welcome::BYTES] = welcome.encode().try_into().unwrap();
        for (from, to) in [(2, 4), (1, 2)] {
            let mut wrong = bytes;
            wrong[from..to].fill(0);
            assert_eq!(Welcome::decode(&wrong), None, "no port, or a port of TCP");
        }
    }
}
