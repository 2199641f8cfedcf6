//! Entry points for the fuzz targets into the parsers of kernel messages, which
//! are private otherwise.

use crate::packet_queue::{self, QueuedPacket};
use crate::recvmsg::{ExtendedError, Received};
use crate::{netlink_message, nfnetlink, sock_diag, wifi};
use std::time::Duration;
use units::BitRate;

/// Parses a sock_diag(7) response and returns the number of connections in it.
pub fn socket_diagnosis(bytes: &[u8], sequence: u32) -> usize {
    let mut connections = 0;
    // A response that is rejected may contain connections before the fault.
    let _ = sock_diag::message::parse(bytes, sequence, &mut |connection| {
        let _ = format!("{connection:?}");
        connections += 1;
    });
    connections
}

/// Parses an rtnetlink(7) response and returns the number of messages in it,
/// malformed ones included.
#[must_use]
pub fn route_messages(bytes: &[u8]) -> usize {
    netlink_message::messages(bytes).count()
}

/// Parses an nl80211 response and returns the transmit rate of its first station.
#[must_use]
pub fn station_rate(bytes: &[u8]) -> Option<BitRate> {
    let mut answers = Vec::new();
    let _ = wifi::take(bytes, &mut answers);
    answers.iter().find_map(|station| wifi::rate(station))
}

/// Parses an nf_tables acknowledgement: the request's number, and whether it succeeded.
#[must_use]
pub fn table_acknowledgement(bytes: &[u8]) -> Option<(u32, bool)> {
    nfnetlink::acknowledgement(bytes).map(|(number, answer)| (number, answer.is_ok()))
}

/// Parses a message about a packet in a queue of netfilter.
#[must_use]
pub fn queued_packet(bytes: &[u8]) -> Option<QueuedPacket<'_>> {
    packet_queue::parse(bytes)
}

/// Parses one control message of a datagram (cmsg(3)) and returns the ICMP error
/// and the hop limit in it.
#[must_use]
pub fn control_message(level: i32, kind: i32, data: &[u8]) -> (Option<ExtendedError>, Option<u8>) {
    let mut received = Received { length: 0, ttl: None, waited: Duration::ZERO, error: None };
    // SAFETY: pointer and length are those of one slice.
    unsafe { received.parse_control(level, kind, data.as_ptr(), data.len()) };
    (received.error, received.ttl)
}
