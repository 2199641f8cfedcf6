//! What identifies a flow: addresses, ports and protocol, in an order of their own.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A flow of either direction. Side A has the higher port, or where both are equal, the
/// lower address; who sent the first packet, [`crate::Conversation::first`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct FlowKey {
    /// Address of side A; an IPv4 address in the first four bytes, the others zero.
    a: [u8; 16],
    /// Address of side B.
    b: [u8; 16],
    /// Port of side A.
    pub a_port: u16,
    /// Port of side B.
    pub b_port: u16,
    /// Whether the addresses are IPv6.
    pub is_v6: bool,
    /// IP protocol number: 6 for TCP, 17 for UDP; 0 where only addresses count.
    pub protocol: u8,
}

/// Which side of a [`FlowKey`] sent a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PacketDirection {
    /// From A to B.
    #[default]
    AToB,
    /// From B to A.
    BToA,
}

impl PacketDirection {
    /// 0 for A to B, 1 for B to A.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        match self {
            PacketDirection::AToB => 0,
            PacketDirection::BToA => 1,
        }
    }

    /// The opposite direction.
    #[must_use]
    #[inline]
    pub fn reverse(self) -> Self {
        match self {
            PacketDirection::AToB => PacketDirection::BToA,
            PacketDirection::BToA => PacketDirection::AToB,
        }
    }
}

impl FlowKey {
    /// The key of a packet from `source` to `destination` (4 or 16 bytes each), and
    /// its direction.
    #[must_use]
    #[inline]
    pub fn of<const N: usize>(
        source: &[u8; N],
        destination: &[u8; N],
        source_port: u16,
        destination_port: u16,
        protocol: u8,
    ) -> (Self, PacketDirection) {
        const { assert!(N <= 16, "an address has 4 or 16 bytes") };
        let source_is_a = match source_port.cmp(&destination_port) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => source <= destination,
        };
        let mut key = FlowKey { is_v6: N == 16, protocol, ..FlowKey::default() };
        let (a, b) = if source_is_a { (source, destination) } else { (destination, source) };
        key.a[..N].copy_from_slice(a);
        key.b[..N].copy_from_slice(b);
        (key.a_port, key.b_port) = if source_is_a {
            (source_port, destination_port)
        } else {
            (destination_port, source_port)
        };
        (key, if source_is_a { PacketDirection::AToB } else { PacketDirection::BToA })
    }

    /// Address of side A.
    #[must_use]
    pub fn a_address(&self) -> IpAddr {
        address(&self.a, self.is_v6)
    }

    /// Address of side B.
    #[must_use]
    pub fn b_address(&self) -> IpAddr {
        address(&self.b, self.is_v6)
    }

    /// The addresses alone, with the side that `direction` then has: for conversations
    /// of the layer below.
    #[must_use]
    pub fn addresses_only(&self) -> (Self, PacketDirection) {
        let mut key = FlowKey { a_port: 0, b_port: 0, protocol: 0, ..*self };
        if key.a <= key.b {
            return (key, PacketDirection::AToB);
        }
        std::mem::swap(&mut key.a, &mut key.b);
        (key, PacketDirection::BToA)
    }

    /// The key as words to hash.
    #[inline]
    pub(crate) fn words(&self) -> ([u64; 4], u64) {
        let (a, b) = (u128::from_le_bytes(self.a), u128::from_le_bytes(self.b));
        let ports = u64::from(self.a_port) << 16 | u64::from(self.b_port);
        let kind = u64::from(self.is_v6) << 8 | u64::from(self.protocol);
        ([a as u64, b as u64, (a >> 64) as u64, (b >> 64) as u64], kind << 32 | ports)
    }
}

fn address(bytes: &[u8; 16], is_v6: bool) -> IpAddr {
    if is_v6 {
        return IpAddr::V6(Ipv6Addr::from(*bytes));
    }
    let [a, b, c, d, ..] = *bytes;
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_have_one_key() {
        let (there, forward) = FlowKey::of(&[10, 0, 0, 1], &[10, 0, 0, 2], 40000, 5201, 6);
        let (back, reverse) = FlowKey::of(&[10, 0, 0, 2], &[10, 0, 0, 1], 5201, 40000, 6);
        assert_eq!((there, forward), (back, reverse.reverse()));
        assert_eq!((there.a_port, forward), (40000, PacketDirection::AToB));
        assert_eq!(there.a_address().to_string(), "10.0.0.1");
    }

    #[test]
    fn equal_ports_are_ordered_by_address() {
        let (key, direction) = FlowKey::of(&[10, 0, 0, 9], &[10, 0, 0, 2], 53, 53, 17);
        assert_eq!(
            (key.a_address().to_string().as_str(), direction),
            ("10.0.0.2", PacketDirection::BToA)
        );
    }

    #[test]
    fn the_layer_below_orders_by_address() {
        let (key, _) = FlowKey::of(&[10, 0, 0, 9], &[10, 0, 0, 2], 5000, 53, 17);
        let (addresses, direction) = key.addresses_only();
        assert_eq!(addresses.a_address().to_string(), "10.0.0.2");
        assert_eq!(direction, PacketDirection::BToA);
    }
}
