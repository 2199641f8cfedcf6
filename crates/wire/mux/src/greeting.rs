//! The first messages of a connection, after the prefaces: 32 bytes from near, 16 from far.

use core::fmt;

/// Kinds of `Hello`.
const NEW: u8 = 0;
const RESUMED: u8 = 1;
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
}

impl Hello {
    /// Length in bytes.
    pub const BYTES: usize = 32;

    /// The bytes to send.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let kind = if self.resumes_at.is_some() { RESUMED } else { NEW };
        let offset = self.resumes_at.unwrap_or_default().to_be_bytes();
        [&[kind, 0, 0, 0, 0, 0, 0, 0], &offset[..], &self.session.0].concat()
    }

    /// Reads what near sent; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8; Hello::BYTES]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let (offset, session) = rest.split_first_chunk::<8>()?;
        let offset = u64::from_be_bytes(*offset);
        let resumes_at = match (head, offset) {
            ([NEW, 0, 0, 0, 0, 0, 0, 0], 0) => None,
            ([RESUMED, 0, 0, 0, 0, 0, 0, 0], offset) => Some(offset),
            _ => return None,
        };
        Some(Hello { session: SessionId(session.try_into().ok()?), resumes_at })
    }
}

impl Welcome {
    /// Length in bytes.
    pub const BYTES: usize = 16;

    /// The bytes to send.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let verdict = match self.verdict {
            Verdict::Accepted => ACCEPTED,
            Verdict::Unknown => UNKNOWN,
            Verdict::Busy => BUSY,
        };
        [[verdict, 0, 0, 0, 0, 0, 0, 0], self.resumes_at.to_be_bytes()].concat()
    }

    /// Reads what far sent; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8; Welcome::BYTES]) -> Option<Self> {
        let (head, offset) = bytes.split_first_chunk::<8>()?;
        let resumes_at = u64::from_be_bytes(offset.try_into().ok()?);
        let verdict = match head {
            [ACCEPTED, 0, 0, 0, 0, 0, 0, 0] => Verdict::Accepted,
            [UNKNOWN, 0, 0, 0, 0, 0, 0, 0] => Verdict::Unknown,
            [BUSY, 0, 0, 0, 0, 0, 0, 0] => Verdict::Busy,
            _ => return None,
        };
        Some(Welcome { verdict, resumes_at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_are_read_as_written_and_nothing_else_is() {
        let session = SessionId([7; 16]);
        for resumes_at in [None, Some(0), Some(u64::MAX)] {
            let hello = Hello { session, resumes_at };
            let bytes: [u8; Hello::BYTES] = hello.encode().try_into().unwrap();
            assert_eq!(Hello::decode(&bytes), Some(hello));
            for at in 0..8 {
                let mut wrong = bytes;
                wrong[at] = 2;
                assert_eq!(Hello::decode(&wrong), None);
            }
        }
        let mut wrong: [u8; Hello::BYTES] =
            Hello { session, resumes_at: Some(5) }.encode().try_into().unwrap();
        wrong[0] = NEW;
        assert_eq!(Hello::decode(&wrong), None, "a new session has no offset");
        for verdict in [Verdict::Accepted, Verdict::Unknown, Verdict::Busy] {
            let welcome = Welcome { verdict, resumes_at: 1 << 40 };
            let mut bytes: [u8; Welcome::BYTES] = welcome.encode().try_into().unwrap();
            assert_eq!(Welcome::decode(&bytes), Some(welcome));
            bytes[0] = 3;
            assert_eq!(Welcome::decode(&bytes), None);
        }
        assert_eq!(format!("{session:?}"), "SessionId");
    }
}
