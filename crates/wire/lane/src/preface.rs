//! The first bytes of a lane, from each end.

/// The protocol's name.
const MAGIC: [u8; 6] = *b"LHLANE";
/// The version of the messages.
const VERSION: u8 = 1;
/// One flow at a time. Mode 1 is reserved for lanes that carry many flows.
const ONE_FLOW: u8 = 0;

/// The preface of a lane that carries one flow at a time: `LHLANE`, version, mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preface;

/// What a peer sent instead of a preface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PrefaceError {
    /// Another protocol.
    #[error("the peer is not a box of longhaul boost")]
    NotALane,
    /// Another version of the messages.
    #[error(
        "the peer uses version {0} of the lane protocol, not 1; use the same version at both ends"
    )]
    Version(u8),
    /// Another mode.
    #[error(
        "the peer uses a kind of lane that this version lacks; use the same version at both ends"
    )]
    Mode(u8),
}

impl Preface {
    /// Length in bytes.
    pub const BYTES: usize = 8;

    /// The bytes to send.
    #[must_use]
    pub fn encode() -> [u8; Preface::BYTES] {
        let mut bytes = [0; Preface::BYTES];
        let (magic, rest) = bytes.split_at_mut(MAGIC.len());
        magic.copy_from_slice(&MAGIC);
        rest.copy_from_slice(&[VERSION, ONE_FLOW]);
        bytes
    }

    /// Checks what the peer sent.
    ///
    /// # Errors
    /// [`PrefaceError`].
    pub fn decode(bytes: [u8; Preface::BYTES]) -> Result<Self, PrefaceError> {
        let [magic @ .., version, mode] = bytes;
        match (magic == MAGIC, version, mode) {
            (false, ..) => Err(PrefaceError::NotALane),
            (true, VERSION, ONE_FLOW) => Ok(Preface),
            (true, VERSION, mode) => Err(PrefaceError::Mode(mode)),
            (true, version, _) => Err(PrefaceError::Version(version)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_modes_are_told_apart() {
        let bytes = Preface::encode();
        assert_eq!(Preface::decode(bytes), Ok(Preface));
        let with = |at: usize, value| {
            let mut bytes = bytes;
            bytes[at] = value;
            Preface::decode(bytes)
        };
        assert_eq!(with(0, b'l'), Err(PrefaceError::NotALane));
        assert_eq!(with(6, 2), Err(PrefaceError::Version(2)));
        assert_eq!(with(7, 1), Err(PrefaceError::Mode(1)));
    }
}
