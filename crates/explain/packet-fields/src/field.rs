//! The fields of packets, by the names that Wireshark's filters have.

mod table;

use crate::application::Application;
use crate::lookup::current_name;
pub use crate::lookup::{Tested, nearest, protocol_from_name, protocols};
use crate::value::FieldKind;
use capture::dissect::Protocol;
pub use table::Field;

/// What the table says of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// Its name in filters.
    pub name: &'static str,
    /// What it is part of.
    pub owner: Owner,
    /// What its values are.
    pub kind: FieldKind,
    /// Wireshark's label.
    pub label: &'static str,
}

/// What a field is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The frame.
    Frame,
    /// A header.
    Header(Protocol),
    /// A payload whose protocol is told by a port.
    Application(Application),
    /// The expert information.
    Expert,
}

impl Owner {
    /// Its name in filters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Owner::Frame => "frame",
            Owner::Header(protocol) => protocol.name(),
            Owner::Application(application) => application.name(),
            Owner::Expert => EXPERT,
        }
    }
}

/// The name of the expert information in filters.
pub const EXPERT: &str = "_ws.expert";

impl Field {
    /// The field of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Field> {
        let current = current_name(name);
        Field::ALL.iter().find(|field| field.description().name == current).copied()
    }

    /// Whether its values are those of two other fields: source and destination.
    #[must_use]
    pub fn is_either(self) -> bool {
        use Field::{EthAddr, EthIg, EthLg, IpAddr, IpHost, Ipv6Addr, Ipv6Host, TcpPort, UdpPort};
        matches!(
            self,
            EthAddr | EthIg | EthLg | IpAddr | IpHost | Ipv6Addr | Ipv6Host | TcpPort | UdpPort
        )
    }

    /// Whether a header of `protocol` has it.
    #[must_use]
    #[inline]
    pub fn is_of(self, protocol: Protocol) -> bool {
        // Wireshark's IPv6 header has a hidden `ip.version`.
        self.description().owner == Owner::Header(protocol)
            || (self == Field::IpVersion && protocol == Protocol::Ipv6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_begin_with_their_protocol() {
        let mut names: Vec<&str> = Field::ALL.iter().map(|it| it.description().name).collect();
        names.extend(protocols().map(|(name, _)| name));
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        for field in Field::ALL {
            let Description { name, owner, .. } = field.description();
            let of = owner.name();
            assert!(name.starts_with(&format!("{of}.")), "{name}");
            assert_eq!(Field::from_name(name), Some(*field));
        }
    }
}
