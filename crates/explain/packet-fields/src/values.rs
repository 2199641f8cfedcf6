//! The values of each field in a header.
//!
//! Headers are read in place; what was not captured has no value. Options of TCP are walked
//! for each field that is in one.

mod application;
mod checksum;
pub(crate) mod dhcpv6;
mod dns;
mod frame;
pub(crate) mod http;
mod internet;
mod iperf3;
mod lines;
mod link_layer;
mod quic;
pub(crate) mod stp;
mod stream;
mod tls;
mod transport;

use crate::field::Field;
use crate::value::Value;
use crate::view::PacketView;
pub(crate) use application::values as of_payload;
use capture::dissect::{Layer, Protocol};
pub(crate) use frame::values as of_frame;
pub(crate) use stream::acknowledgment;

/// Takes the values of a field, one by one.
type Emit<'e> = &'e mut dyn FnMut(Value<'_>);

/// The values of a field in the header at `place`.
pub(crate) fn of_layer(
    view: &PacketView<'_>,
    field: Field,
    place: usize,
    (protocol, layer): (Protocol, &Layer),
    emit: Emit<'_>,
) {
    let header = Header { bytes: view.bytes(place, layer), layer: *layer };
    match protocol {
        Protocol::Ethernet
        | Protocol::LinuxCooked
        | Protocol::Vlan
        | Protocol::ServiceVlan
        | Protocol::Mpls
        | Protocol::Arp => link_layer::values(header, field, emit),
        Protocol::Ipv4 => internet::v4(view, header, place, field, emit),
        Protocol::Ipv6 => internet::v6(view, header, place, field, emit),
        Protocol::Tcp => transport::tcp(view, header, place, field, emit),
        Protocol::Udp => transport::udp(view, header, place, field, emit),
        Protocol::Icmp | Protocol::Icmpv6 => internet::icmp(view, header, field, emit),
        Protocol::Gre | Protocol::Vxlan | Protocol::GtpU => transport::tunnel(header, field, emit),
        Protocol::Quic => quic::values(header, field, emit),
        Protocol::Dhcpv6 => dhcpv6::values(header.bytes, field, emit),
        Protocol::Stp => stp::values(header, field, emit),
        Protocol::Iperf3 => iperf3::values(view, header.bytes, field, emit),
        // What has a name is no data.
        Protocol::Data if view.application().is_some() => {}
        Protocol::Data => match field {
            Field::DataData if !header.bytes.is_empty() => emit(Value::Bytes(header.bytes)),
            Field::DataLen => emit(Value::Integer(i64::from(layer.header_len))),
            _ => {}
        },
        _ => {}
    }
}

/// A header, and what follows it of its packet.
#[derive(Clone, Copy)]
struct Header<'a> {
    bytes: &'a [u8],
    layer: Layer,
}

impl<'a> Header<'a> {
    fn byte(self, at: usize) -> Option<i64> {
        self.bytes.get(at).map(|byte| i64::from(*byte))
    }

    fn word(self, at: usize) -> Option<i64> {
        let bytes: &[u8; 2] = self.bytes.get(at..)?.first_chunk()?;
        Some(i64::from(u16::from_be_bytes(*bytes)))
    }

    fn long(self, at: usize) -> Option<i64> {
        let bytes: &[u8; 4] = self.bytes.get(at..)?.first_chunk()?;
        Some(i64::from(u32::from_be_bytes(*bytes)))
    }

    fn ethernet(self, at: usize) -> Option<Value<'a>> {
        self.bytes.get(at..)?.first_chunk().map(|address| Value::Ethernet(*address))
    }

    fn ipv4(self, at: usize) -> Option<Value<'a>> {
        let bytes: &[u8; 4] = self.bytes.get(at..)?.first_chunk()?;
        Some(Value::Ipv4(u32::from_be_bytes(*bytes)))
    }

    fn ipv6(self, at: usize) -> Option<Value<'a>> {
        let bytes: &[u8; 16] = self.bytes.get(at..)?.first_chunk()?;
        Some(Value::Ipv6(u128::from_be_bytes(*bytes)))
    }

    /// What is inside of it.
    fn payload(self) -> &'a [u8] {
        self.bytes.get(self.layer.header_len as usize..).unwrap_or_default()
    }
}

/// Hands over a number that was captured.
fn put(number: Option<i64>, emit: Emit<'_>) {
    if let Some(number) = number {
        emit(Value::Integer(number));
    }
}

/// Hands over values that were captured.
fn put_values<const N: usize>(values: [Option<Value<'_>>; N], emit: Emit<'_>) {
    values.into_iter().flatten().for_each(emit);
}

/// The bits of a number from `shift` on.
fn bits(number: Option<i64>, shift: u32, mask: i64) -> Option<i64> {
    number.map(|number| number >> shift & mask)
}
