//! Close codes and the payload of Close (RFC 6455, sections 5.5.1 and 7.4).

use crate::reader::ProtocolError;
use std::fmt;

/// The reason a connection is closed (RFC 6455, section 7.4; IANA's registry).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseCode(u16);

impl CloseCode {
    /// The purpose of the connection is fulfilled.
    pub const NORMAL: CloseCode = CloseCode(1000);
    /// The server stops, or a page is left.
    pub const GOING_AWAY: CloseCode = CloseCode(1001);
    /// A frame that the protocol does not allow.
    pub const PROTOCOL_ERROR: CloseCode = CloseCode(1002);
    /// A kind of message that is not accepted.
    pub const UNSUPPORTED: CloseCode = CloseCode(1003);
    /// Text that is not UTF-8.
    pub const INVALID_PAYLOAD: CloseCode = CloseCode(1007);
    /// A message against the server's rules.
    pub const POLICY: CloseCode = CloseCode(1008);
    /// A message or frame above the limit.
    pub const TOO_BIG: CloseCode = CloseCode(1009);
    /// The server cannot go on.
    pub const INTERNAL: CloseCode = CloseCode(1011);
    /// The server has no room now.
    pub const TRY_AGAIN_LATER: CloseCode = CloseCode(1013);

    /// A code that may be on the wire; 1004 to 1006 and 1015 may not, and neither may numbers that
    /// nobody has assigned.
    #[must_use]
    pub fn new(code: u16) -> Option<Self> {
        matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999).then_some(CloseCode(code))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A received Close.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    /// None where the sender gave none.
    pub code: Option<CloseCode>,
    /// The sender's text, at most 123 bytes: an empty one where there is none.
    pub reason: String,
}

impl Close {
    /// # Errors
    /// One byte, a code that may not be on the wire, or a reason that is not UTF-8.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, ProtocolError> {
        let Some((code, reason)) = payload.split_first_chunk() else {
            let nothing = Close { code: None, reason: String::new() };
            return if payload.is_empty() { Ok(nothing) } else { Err(ProtocolError::CloseLength) };
        };
        let number = u16::from_be_bytes(*code);
        let code = CloseCode::new(number).ok_or(ProtocolError::CloseCode(number))?;
        let reason = std::str::from_utf8(reason).map_err(|_| ProtocolError::NotUtf8)?;
        Ok(Close { code: Some(code), reason: reason.to_owned() })
    }
}
