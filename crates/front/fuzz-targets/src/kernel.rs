//! What the kernel answers. It is not hostile, but other kernels than those seen
//! here have longer and shorter answers, and ICMP errors are made of what strangers sent.

use host::fuzz;

/// The number of the request that answers refer to, in the seeds.
const SEQUENCE: u32 = 5;

/// An answer of socket diagnosis.
pub(crate) fn netlink_socket_diagnosis(input: &[u8]) {
    let connections = fuzz::socket_diagnosis(input, SEQUENCE);
    assert!(connections <= input.len() / 72, "an answer has 72 bytes at least");
}

/// An answer of rtnetlink, and one of nf_tables.
pub(crate) fn netlink_route(input: &[u8]) {
    let messages = fuzz::route_messages(input);
    assert!(messages <= input.len().div_ceil(4), "messages begin at multiples of 4 bytes");
    let _ = fuzz::table_acknowledgement(input);
}

/// A message about a packet that the kernel holds.
pub(crate) fn netlink_packet_queue(input: &[u8]) {
    let Some(packet) = fuzz::queued_packet(input) else { return };
    assert!(packet.bytes.len() <= input.len().saturating_sub(24), "headers of 24 bytes precede");
    let _ = format!("{packet:?}");
}

/// An answer of nl80211.
pub(crate) fn netlink_wifi(input: &[u8]) {
    let _ = fuzz::station_rate(input);
}

/// An ICMP error: which control message it is, by the first byte; the 16 bytes of
/// the kernel's `struct sock_extended_err` with the router's address behind it; and what the
/// error quotes, from the 45th byte on.
pub(crate) fn icmp_error(input: &[u8]) {
    let Some((which, rest)) = input.split_first() else { return };
    let is_v6 = which & 1 == 1;
    let (level, kind) = match which >> 1 & 3 {
        0 if is_v6 => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
        0 => (libc::IPPROTO_IP, libc::IP_RECVERR),
        1 if is_v6 => (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT),
        1 => (libc::IPPROTO_IP, libc::IP_TTL),
        2 => (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS),
        _ => (i32::from(*which), i32::from(*which)),
    };
    let (control, quoted) = rest.split_at(rest.len().min(44));
    let (error, _) = fuzz::control_message(level, kind, control);
    if let Some(error) = error {
        let (meaning, mtu) = probe::fuzz::meaning(&error, is_v6);
        assert!(!meaning.is_empty() && !meaning.contains(char::is_control), "{meaning:?}");
        assert!(mtu.is_none_or(|mtu| mtu >= 68), "below every IP's least MTU: {mtu:?}");
    }
    let _ = probe::fuzz::quoted_request(quoted, is_v6);
    let _ = probe::fuzz::echo_reply(quoted, is_v6);
}
