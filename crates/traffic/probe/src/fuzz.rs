//! Exposes the private parsers of ICMP messages to the fuzz targets only.

use crate::icmp;
use host::recvmsg::ExtendedError;

/// Reads an IPv4 packet, or an ICMPv6 message, as an echo reply: its identifier
/// and sequence number.
#[must_use]
pub fn echo_reply(packet: &[u8], is_v6: bool) -> Option<(u16, u16)> {
    let message = if is_v6 { Some(packet) } else { icmp::ipv4_payload(packet) };
    icmp::reply(message?, is_v6).map(|echo| (echo.id, echo.seq))
}

/// Reads the echo request that an ICMP error quotes: its identifier and sequence
/// number.
#[must_use]
pub fn quoted_request(message: &[u8], is_v6: bool) -> Option<(u16, u16)> {
    icmp::quoted_request(message, is_v6).map(|echo| (echo.id, echo.seq))
}

/// The description of an ICMP error, and the MTU that it reports.
#[must_use]
pub fn meaning(error: &ExtendedError, is_v6: bool) -> (String, Option<u32>) {
    let is_expected = icmp::is_expired(error, is_v6) || icmp::is_closed_port(error, is_v6);
    let mtu = icmp::too_big(error, is_v6);
    assert!(!is_expected || mtu.is_none(), "an error has one meaning: {error:?}");
    (icmp::describe(error, is_v6), mtu)
}
