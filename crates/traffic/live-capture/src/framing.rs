//! What the packets in a file begin with.

use capture::LinkType;
use host::interfaces::{self, Interface};
use host::packet_socket::RingPacket;

/// What the packets in a file begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// The Ethernet header.
    Ethernet,
    /// The IP header.
    Ip,
    /// The kernel's description of a packet of any interface (LINKTYPE_LINUX_SLL2).
    Cooked,
}

/// Length of the header of [`Framing::Cooked`].
const COOKED: usize = 20;

/// What comes before a packet's bytes, or between them.
#[derive(Debug)]
pub(crate) enum Inserted {
    Nothing,
    /// The VLAN tag that the kernel took off, behind the two Ethernet addresses.
    Tag([u8; 4]),
    Cooked([u8; COOKED]),
}

impl Framing {
    /// That of an interface, or of all (`None`).
    pub(crate) fn of(interface: Option<&Interface>) -> Self {
        match interface.map(|it| it.framing) {
            Some(interfaces::Framing::Ethernet) => Framing::Ethernet,
            Some(interfaces::Framing::Ip) => Framing::Ip,
            Some(interfaces::Framing::Other) | None => Framing::Cooked,
        }
    }

    pub(crate) fn link_type(self) -> LinkType {
        match self {
            Framing::Ethernet => LinkType::ETHERNET,
            Framing::Ip => LinkType::RAW,
            Framing::Cooked => LinkType::LINUX_SLL2,
        }
    }

    pub(crate) fn inserted(self, packet: &RingPacket<'_>) -> Inserted {
        match (self, packet.vlan) {
            (Framing::Ethernet, Some([tpid, tag])) => {
                let ([a, b], [c, d]) = (tpid.to_be_bytes(), tag.to_be_bytes());
                Inserted::Tag([a, b, c, d])
            }
            (Framing::Cooked, _) => Inserted::Cooked(cooked(packet)),
            _ => Inserted::Nothing,
        }
    }
}

impl Inserted {
    /// The packet's bytes with these among them.
    #[inline]
    pub(crate) fn with<'a>(&'a self, data: &'a [u8]) -> [&'a [u8]; 3] {
        /// Length of the two Ethernet addresses.
        const ADDRESSES: usize = 12;
        match self {
            Inserted::Nothing => [data, &[], &[]],
            Inserted::Tag(tag) => match data.split_at_checked(ADDRESSES) {
                Some((addresses, rest)) => [addresses, tag, rest],
                None => [data, &[], &[]],
            },
            Inserted::Cooked(header) => [header, data, &[]],
        }
    }

    /// By how many bytes the packet becomes longer.
    #[inline]
    pub(crate) fn length(&self) -> u32 {
        match self {
            Inserted::Nothing => 0,
            Inserted::Tag(_) => 4,
            Inserted::Cooked(_) => COOKED as u32,
        }
    }
}

/// The header of LINKTYPE_LINUX_SLL2: EtherType, interface, its type, kind of packet, address.
fn cooked(packet: &RingPacket<'_>) -> [u8; COOKED] {
    let mut header = [0; COOKED];
    let fields: [(usize, &[u8]); 5] = [
        (0, &packet.ether_type.to_be_bytes()),
        (4, &packet.interface.to_be_bytes()),
        (8, &packet.interface_type.to_be_bytes()),
        (10, &[packet.kind, packet.address_length]),
        (12, &packet.address),
    ];
    for (at, bytes) in fields {
        header[at..at + bytes.len()].copy_from_slice(bytes);
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::dissect::{Layers, Protocol, dissect};

    fn packet(data: &[u8]) -> RingPacket<'_> {
        RingPacket {
            time_ns: 0,
            by_hardware: false,
            original_len: data.len() as u32,
            data,
            vlan: None,
            ether_type: 0x0800,
            interface: 3,
            interface_type: 1,
            kind: 4,
            address: [2, 0, 0, 0, 0, 1, 0, 0],
            address_length: 6,
        }
    }

    fn protocols(framing: Framing, packet: &RingPacket<'_>) -> (Vec<Protocol>, u32) {
        let inserted = framing.inserted(packet);
        let bytes = inserted.with(packet.data).concat();
        let length = packet.original_len + inserted.length();
        let mut layers = Layers::new();
        dissect(framing.link_type(), &bytes, length, &mut layers);
        (layers.iter().map(|(protocol, _)| protocol).collect(), length)
    }

    /// An IPv4 packet of protocol 253 without payload, behind an Ethernet header.
    fn frame() -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame
    }

    #[test]
    fn a_tag_is_put_back() {
        let frame = frame();
        let tagged = RingPacket { vlan: Some([0x8100, 7]), ..packet(&frame) };
        let (protocols, length) = protocols(Framing::Ethernet, &tagged);
        assert_eq!(protocols, [Protocol::Ethernet, Protocol::Vlan, Protocol::Ipv4]);
        assert_eq!(length, 38);
        let short = RingPacket { data: &frame[..11], ..tagged };
        assert_eq!(Framing::Ethernet.inserted(&short).with(short.data).concat(), frame[..11]);
    }

    #[test]
    fn a_cooked_header_is_that_of_version_2() {
        let frame = frame();
        let (protocols, length) = protocols(Framing::Cooked, &packet(&frame[14..]));
        assert_eq!(protocols, [Protocol::LinuxCooked, Protocol::Ipv4]);
        assert_eq!(length, 40);
    }
}
