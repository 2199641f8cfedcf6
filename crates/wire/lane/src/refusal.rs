//! Why far did not connect to a target.

use core::fmt;

/// The reason, as far reports it to near: SOCKS and CONNECT have a code for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The target refused the connection (RST).
    Refused,
    /// No route to the target, or an ICMP error.
    Unreachable,
    /// The target did not answer in time.
    TimedOut,
    /// The name has no address.
    NameNotFound,
    /// Far's list of destinations does not have the target.
    NotAllowed,
    /// Far has too many flows or lookups.
    Busy,
}

impl Refusal {
    /// All reasons, in the order of their codes.
    pub const ALL: [Refusal; 6] = [
        Refusal::Refused,
        Refusal::Unreachable,
        Refusal::TimedOut,
        Refusal::NameNotFound,
        Refusal::NotAllowed,
        Refusal::Busy,
    ];

    /// The code in a message.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Refusal::Refused => 1,
            Refusal::Unreachable => 2,
            Refusal::TimedOut => 3,
            Refusal::NameNotFound => 4,
            Refusal::NotAllowed => 5,
            Refusal::Busy => 6,
        }
    }

    /// The reason of a code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Refusal::ALL.into_iter().find(|refusal| refusal.code() == code)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Refused => "the target refused the connection",
            Refusal::Unreachable => "the target is unreachable",
            Refusal::TimedOut => "the target did not answer in time",
            Refusal::NameNotFound => "the target's name has no address",
            Refusal::NotAllowed => "the far box does not allow this target",
            Refusal::Busy => "the far box is busy",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_code() {
        for refusal in Refusal::ALL {
            assert_eq!(Refusal::from_code(refusal.code()), Some(refusal));
        }
        assert_eq!((Refusal::from_code(0), Refusal::from_code(7)), (None, None));
    }
}
