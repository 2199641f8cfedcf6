//! The first messages of a connection, after the prefaces: 64 bytes from near, 48 from far. By them
//! the ends may agree that UDT carries the session; the connection then has done its work.

use core::fmt;

/// Kinds of `Hello`.
const NEW: u8 = 0;
const RESUMED: u8 = 1;
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
    /// The offset of far's bytes from which on near wants them; `None` begins the session.
    pub resumes_at: Option<u64>,
    /// The public key by which near would have UDT carry the session; `None`: this connection is to.
    pub udt: Option<[u8; 32]>,
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
    /// Far has too many sessions.
    Busy,
}

/// Far's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// Whether the session goes on.
    pub verdict: Verdict,
    /// The offset of near's bytes from which on far wants them.
    pub resumes_at: u64,
    /// Where UDT carries the session; `None`: this connection does.
    pub udt: Option<UdtOffer>,
}

impl Hello {
    /// Length in bytes.
    pub const BYTES: usize = 64;

    /// The bytes to send.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let kind = if self.resumes_at.is_some() { RESUMED } else { NEW };
        let carrier = if self.udt.is_some() { UDT } else { TCP };
        let offset = self.resumes_at.unwrap_or_default().to_be_bytes();
        let key = self.udt.unwrap_or_default();
        [&[kind, carrier, 0, 0, 0, 0, 0, 0], &offset[..], &self.session.0, &key].concat()
    }

    /// Reads what near sent; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8; Hello::BYTES]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let (offset, rest) = rest.split_first_chunk::<8>()?;
        let (session, key) = rest.split_first_chunk::<16>()?;
        let [kind, carrier, 0, 0, 0, 0, 0, 0] = *head else { return None };
        let resumes_at = match (kind, u64::from_be_bytes(*offset)) {
            (NEW, 0) => None,
            (RESUMED, offset) => Some(offset),
            _ => return None,
        };
        let key: [u8; 32] = key.try_into().ok()?;
        let udt = match (carrier, key) {
            (UDT, key) => Some(key),
            (TCP, [0, ..]) if key == [0; 32] => None,
            _ => return None,
        };
        Some(Hello { session: SessionId(*session), resumes_at, udt })
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
        let (carrier, port, key) =
            self.udt.map_or((TCP, 0, [0; 32]), |offer| (UDT, offer.port, offer.key));
        let [high, low] = port.to_be_bytes();
        let head = [verdict, carrier, high, low, 0, 0, 0, 0];
        [&head[..], &self.resumes_at.to_be_bytes(), &key].concat()
    }

    /// Reads what far sent; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8; Welcome::BYTES]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let (offset, key) = rest.split_first_chunk::<8>()?;
        let [verdict, carrier, high, low, 0, 0, 0, 0] = *head else { return None };
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
        Some(Welcome { verdict, resumes_at: u64::from_be_bytes(*offset), udt })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_are_read_as_written_and_nothing_else_is() {
        let session = SessionId([7; 16]);
        for resumes_at in [None, Some(0), Some(u64::MAX)] {
            for udt in [None, Some([9; 32])] {
                let hello = Hello { session, resumes_at, udt };
                let bytes: [u8; Hello::BYTES] = hello.encode().try_into().unwrap();
                assert_eq!(Hello::decode(&bytes), Some(hello));
                for at in 0..8 {
                    let mut wrong = bytes;
                    wrong[at] = 2;
                    assert_eq!(Hello::decode(&wrong), None);
                }
            }
        }
        let hello = Hello { session, resumes_at: Some(5), udt: None };
        let bytes: [u8; Hello::BYTES] = hello.encode().try_into().unwrap();
        let mut wrong = bytes;
        wrong[0] = NEW;
        assert_eq!(Hello::decode(&wrong), None, "a new session has no offset");
        let mut wrong = bytes;
        wrong[63] = 1;
        assert_eq!(Hello::decode(&wrong), None, "TCP has no key");
        assert_eq!(format!("{session:?}"), "SessionId");
    }

    #[test]
    fn answers_are_read_as_written_and_only_one_that_accepts_offers_udt() {
        let offer = UdtOffer { port: 7425, key: [9; 32] };
        for verdict in [Verdict::Accepted, Verdict::Unknown, Verdict::Busy] {
            for udt in [None, Some(offer)] {
                let welcome = Welcome { verdict, resumes_at: 1 << 40, udt };
                let mut bytes: [u8; Welcome::BYTES] = welcome.encode().try_into().unwrap();
                let is_valid = udt.is_none() || verdict == Verdict::Accepted;
                assert_eq!(Welcome::decode(&bytes), is_valid.then_some(welcome));
                bytes[0] = 3;
                assert_eq!(Welcome::decode(&bytes), None);
            }
        }
        let welcome = Welcome { verdict: Verdict::Accepted, resumes_at: 0, udt: Some(offer) };
        let bytes: [u8; Welcome::BYTES] = welcome.encode().try_into().unwrap();
        for (from, to) in [(2, 4), (1, 2)] {
            let mut wrong = bytes;
            wrong[from..to].fill(0);
            assert_eq!(Welcome::decode(&wrong), None, "no port, or a port of TCP");
        }
    }
}
