//! The first messages of a connection, after the prefaces: 32 bytes from near, 16 from far.

use core::fmt;
use core::num::NonZeroU32;

/// Kinds of `Hello`.
const NEW: u8 = 0;
const RESUMED: u8 = 1;
const ADDITIONAL: u8 = 2;
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
}

impl Hello {
    /// Length in bytes.
    pub const BYTES: usize = 32;

    /// The bytes to send.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (kind, offset) = match self.attachment {
            Attachment::First => (NEW, 0),
            Attachment::Resumed(offset) => (RESUMED, offset),
            Attachment::Additional => (ADDITIONAL, 0),
        };
        let offset = offset.to_be_bytes();
        [&[kind, 0, 0, 0, 0, 0, 0, 0], &offset[..], &self.session.0].concat()
    }

    /// Reads what near sent; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8; Hello::BYTES]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let (offset, session) = rest.split_first_chunk::<8>()?;
        let offset = u64::from_be_bytes(*offset);
        let attachment = match (head, offset) {
            ([NEW, 0, 0, 0, 0, 0, 0, 0], 0) => Attachment::First,
            ([RESUMED, 0, 0, 0, 0, 0, 0, 0], offset) => Attachment::Resumed(offset),
            ([ADDITIONAL, 0, 0, 0, 0, 0, 0, 0], 0) => Attachment::Additional,
            _ => return None,
        };
        Some(Hello { session: SessionId(session.try_into().ok()?), attachment })
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
        let window = self.window_kib.map_or(0, NonZeroU32::get).to_be_bytes();
        [&[verdict, 0, 0, 0][..], &window, &self.resumes_at.to_be_bytes()].concat()
    }

    /// Reads what far sent; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8; Welcome::BYTES]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<4>()?;
        let (window, offset) = rest.split_first_chunk::<4>()?;
        let resumes_at = u64::from_be_bytes(offset.try_into().ok()?);
        let window_kib = NonZeroU32::new(u32::from_be_bytes(*window));
        let verdict = match head {
            [ACCEPTED, 0, 0, 0] => Verdict::Accepted,
            [UNKNOWN, 0, 0, 0] => Verdict::Unknown,
            [BUSY, 0, 0, 0] => Verdict::Busy,
            _ => return None,
        };
        Some(Welcome { verdict, resumes_at, window_kib })
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
            let hello = Hello { session, attachment };
            let bytes: [u8; Hello::BYTES] = hello.encode().try_into().unwrap();
            assert_eq!(Hello::decode(&bytes), Some(hello));
            for at in 0..8 {
                let mut wrong = bytes;
                wrong[at] = 3;
                assert_eq!(Hello::decode(&wrong), None);
            }
        }
        for kind in [NEW, ADDITIONAL] {
            let hello = Hello { session, attachment: Attachment::Resumed(5) };
            let mut wrong: [u8; Hello::BYTES] = hello.encode().try_into().unwrap();
            wrong[0] = kind;
            assert_eq!(Hello::decode(&wrong), None, "only a resumed session has an offset");
        }
        for verdict in [Verdict::Accepted, Verdict::Unknown, Verdict::Busy] {
            for window_kib in [None, NonZeroU32::new(208), NonZeroU32::new(u32::MAX)] {
                let welcome = Welcome { verdict, resumes_at: 1 << 40, window_kib };
                let mut bytes: [u8; Welcome::BYTES] = welcome.encode().try_into().unwrap();
                assert_eq!(Welcome::decode(&bytes), Some(welcome));
                bytes[0] = 3;
                assert_eq!(Welcome::decode(&bytes), None);
            }
        }
        assert_eq!(format!("{session:?}"), "SessionId");
    }
}
