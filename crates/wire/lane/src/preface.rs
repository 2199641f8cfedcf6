//! The first bytes of a lane, from each end.

/// The protocol's name.
const MAGIC: [u8; 6] = *b"LHLANE";
/// The version of the messages.
const VERSION: u8 = 1;
/// Bit of the mode: the connection carries many flows, by the messages of `mux`.
const MANY_FLOWS: u8 = 1;
/// Bit of the mode: the sender takes compressed blocks, and sends them if the other one does.
const COMPRESSES: u8 = 2;

/// What a connection between the boxes carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// One flow at a time: a lane.
    OneFlow,
    /// Many flows: a connection of a session.
    ManyFlows,
}

/// The preface of a connection between the boxes: `LHLANE`, version, mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preface {
    /// What it carries.
    pub carries: Carries,
    /// The sender offers compressed blocks; they are sent where both ends offer them.
    pub compresses: bool,
}

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

    /// The preface of a lane.
    #[must_use]
    pub const fn of_lane(compresses: bool) -> Self {
        Preface { carries: Carries::OneFlow, compresses }
    }

    /// The bytes to send.
    #[must_use]
    pub fn encode(self) -> [u8; Preface::BYTES] {
        let mut bytes = [0; Preface::BYTES];
        let (magic, rest) = bytes.split_at_mut(MAGIC.len());
        magic.copy_from_slice(&MAGIC);
        let carries = match self.carries {
            Carries::OneFlow => 0,
            Carries::ManyFlows => MANY_FLOWS,
        };
        let compresses = if self.compresses { COMPRESSES } else { 0 };
        rest.copy_from_slice(&[VERSION, carries | compresses]);
        bytes
    }

    /// Reads what the peer sent.
    ///
    /// # Errors
    /// [`PrefaceError`].
    pub fn decode(bytes: [u8; Preface::BYTES]) -> Result<Self, PrefaceError> {
        let [magic @ .., version, mode] = bytes;
        if magic != MAGIC {
            return Err(PrefaceError::NotALane);
        }
        if version != VERSION {
            return Err(PrefaceError::Version(version));
        }
        if mode & !(MANY_FLOWS | COMPRESSES) != 0 {
            return Err(PrefaceError::Mode(mode));
        }
        let carries = if mode & MANY_FLOWS == 0 { Carries::OneFlow } else { Carries::ManyFlows };
        Ok(Preface { carries, compresses: mode & COMPRESSES != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_modes_are_told_apart() {
        for carries in [Carries::OneFlow, Carries::ManyFlows] {
            for compresses in [false, true] {
                let preface = Preface { carries, compresses };
                assert_eq!(Preface::decode(preface.encode()), Ok(preface));
            }
        }
        let with = |at: usize, value| {
            let mut bytes = Preface::of_lane(false).encode();
            bytes[at] = value;
            Preface::decode(bytes)
        };
        assert_eq!(with(0, b'l'), Err(PrefaceError::NotALane));
        assert_eq!(with(6, 2), Err(PrefaceError::Version(2)));
        assert_eq!(with(7, 4), Err(PrefaceError::Mode(4)));
    }
}
