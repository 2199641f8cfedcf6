//! What an address is for, by the registries of special-purpose addresses (RFC 6890).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The class of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// Anybody's.
    Public,
    /// Of a private network: RFC 1918, RFC 4193, carriers' RFC 6598.
    Private,
    /// This host.
    Loopback,
    /// Valid on one link, multicast, broadcast, unspecified, reserved or for documentation.
    Special,
    /// A cloud's service that hands out credentials to whoever asks from its host.
    Metadata,
}

/// Metadata services: of most clouds, Azure, Alibaba, Oracle, Scaleway and GCP over IPv6.
const METADATA: [IpAddr; 6] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

impl AddressClass {
    /// The class of an address; of one that has an IPv4 address in it, the class of that.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if METADATA.contains(&address) {
            return AddressClass::Metadata;
        }
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => match embedded(address) {
                Some(inner) => AddressClass::of(inner.into()),
                None => of_v6(address),
            },
        }
    }
}

fn of_v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] | [100, 64..=127, ..] => {
            AddressClass::Private
        }
        // This network, link-local, IETF, documentation, benchmarks, 6to4 relays, multicast, reserved.
        [0 | 224.., ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => AddressClass::Special,
        _ => AddressClass::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressClass {
    if address.is_loopback() {
        return AddressClass::Loopback;
    }
    match address.segments() {
        // AWS: metadata, credentials of containers, DNS, time.
        [0xfd00, 0xec2, ..] => AddressClass::Metadata,
        [0xfc00..=0xfdff, ..] => AddressClass::Private,
        // IETF with Teredo (RFC 4380), whose clients are hosts behind NATs; documentation.
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => {
            AddressClass::Special
        }
        // Global unicast.
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Special,
    }
}

/// The IPv4 address to which packets for an IPv6 address go.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from =
        |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        // The loopback and the unspecified address are none.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        // IPv4-compatible (RFC 4291, section 2.5.5.1), IPv4-mapped, IPv4-translated (RFC 2765).
        [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        // NAT64 (RFC 6052; RFC 8215 with a /96 of the local prefix).
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        // 6to4 (RFC 3056).
        | [0x2002, high, low, ..]
        // ISATAP (RFC 5214, section 6.1).
        | [0x2000..=0x3fff, _, _, _, 0 | 0x200, 0x5efe, high, low] => from(high, low),
        _ => None,
    }
}
