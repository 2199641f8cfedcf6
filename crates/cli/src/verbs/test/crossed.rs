//! What else passed the interface while a test ran, by the kernel's counters.

use record::Measurement;
use std::fs;
use std::net::{IpAddr, Ipv6Addr};

/// Ethernet, IP and TCP with timestamps, in bytes, for a segment and for an
/// acknowledgement of it: at most one each.
const AROUND: f64 = 2.0 * 66.0;

/// Bytes that a test takes beside its streams: control connection, probes.
const BESIDE: f64 = 256.0 * 1024.0;

/// An interface's counters at a moment.
#[derive(Debug, Clone)]
pub(super) struct Counters {
    device: String,
    bytes: u64,
}

impl Counters {
    /// Of the interface over which `peer` is reached from `local`; `None` where
    /// the system does not tell.
    pub(super) fn towards(peer: IpAddr, local: IpAddr) -> Option<Self> {
        let device = device_towards(peer, local)?;
        let bytes = bytes(&fs::read_to_string("/proc/net/dev").ok()?, &device)?;
        Some(Counters { device, bytes })
    }

    /// Bytes that passed since then and cannot be the test's. Over loopback
    /// each of its bytes is counted twice, as sent and as received.
    pub(super) fn others(&self, measurement: &Measurement) -> Option<u64> {
        let now = bytes(&fs::read_to_string("/proc/net/dev").ok()?, &self.device)?;
        let passes = if self.device == "lo" { 2.0 } else { 1.0 };
        let others = now.checked_sub(self.bytes)? as f64 - passes * own(measurement);
        Some(others.max(0.0) as u64)
    }
}

/// The interface over which `peer` is reached from `local`; `None` where the
/// system does not tell.
pub(in crate::verbs) fn device_towards(peer: IpAddr, local: IpAddr) -> Option<String> {
    if peer == local || peer.is_loopback() {
        return Some("lo".to_owned());
    }
    match peer {
        IpAddr::V4(peer) => way_v4(&fs::read_to_string("/proc/net/route").ok()?, u32::from(peer)),
        IpAddr::V6(peer) => way_v6(&fs::read_to_string("/proc/net/ipv6_route").ok()?, peer),
    }
}

/// The most bytes on the wire that the test itself can account for.
fn own(measurement: &Measurement) -> f64 {
    let streams = measurement.streams.iter().map(|stream| {
        let told = stream.sender.last().map_or(0, |sample| sample.mss_bytes);
        let length = stream.datagrams.as_ref().map_or(told, |datagrams| datagrams.length_bytes);
        let segment = if length == 0 { 1448.0 } else { f64::from(length) };
        let payload = stream.sent_bytes.max(stream.received_bytes) as f64;
        let again = stream.retransmits.unwrap_or(0) as f64 * (segment + AROUND);
        payload * (1.0 + AROUND / segment) + again
    });
    streams.sum::<f64>() + BESIDE
}

/// The device of the longest prefix that fits, from /proc/net/route: addresses
/// in hexadecimal as they lie in memory.
fn way_v4(table: &str, to: u32) -> Option<String> {
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok().map(u32::from_be);
        let (network, mask) = (number(1)?, number(7)?);
        // RTF_UP is 1 (linux/route.h).
        let up = u32::from_str_radix(fields.get(3)?, 16).ok()? & 1 == 1;
        let device = (*fields.first()?).to_owned();
        (up && to & mask == network).then_some((mask, device))
    };
    table.lines().skip(1).filter_map(route).max_by_key(|(mask, _)| *mask).map(|way| way.1)
}

/// The same from /proc/net/ipv6_route; `lo` stands there for local and refused
/// destinations, too, and is left out.
fn way_v6(table: &str, to: Ipv6Addr) -> Option<String> {
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let network = u128::from_str_radix(fields.first()?, 16).ok()?;
        let length = u32::from_str_radix(fields.get(1)?, 16).ok().filter(|bits| *bits <= 128)?;
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        let device = (*fields.get(9)?).to_owned();
        (device != "lo" && u128::from(to) & mask == network).then_some((length, device))
    };
    table.lines().filter_map(route).max_by_key(|(length, _)| *length).map(|way| way.1)
}

/// Bytes received and sent by a device, from /proc/net/dev.
fn bytes(table: &str, device: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| {
        line.trim_start().strip_prefix(device).and_then(|rest| rest.strip_prefix(':'))
    })?;
    let fields: Vec<u64> = line.split_whitespace().map_while(|text| text.parse().ok()).collect();
    fields.first()?.checked_add(*fields.get(8)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_is_the_way() {
        let table = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
                     eth0 00000000 0101A8C0 0003 0 0 0 00000000 0 0 0\n\
                     eth1 0001A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n\
                     down 0501A8C0 00000000 0000 0 0 0 FFFFFFFF 0 0 0\nrubbish\n";
        let way =
            |text: &str| way_v4(table, u32::from(text.parse::<std::net::Ipv4Addr>().unwrap()));
        assert_eq!(way("192.168.1.5").as_deref(), Some("eth1"));
        assert_eq!(way("8.8.8.8").as_deref(), Some("eth0"));
        let table = "00000000000000000000000000000000 00 0 00 0 0 0 0 0 eth0\n\
                     20010db8000000000000000000000000 20 0 00 0 0 0 0 0 eth1\n\
                     00000000000000000000000000000000 00 0 00 0 0 0 0 0 lo\n";
        assert_eq!(way_v6(table, "2001:db8::1".parse().unwrap()).as_deref(), Some("eth1"));
        assert_eq!(way_v6(table, "2001:db9::1".parse().unwrap()).as_deref(), Some("eth0"));
        assert_eq!(way_v6("zz 81", "::1".parse().unwrap()), None);
    }

    #[test]
    fn both_directions_count() {
        let table = "Inter-| Receive | Transmit\n face |bytes\n\
                     \x20  lo: 10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n\
                     eth0:1000 1 0 0 0 0 0 0 234 1 0 0 0 0 0 0\n";
        assert_eq!((bytes(table, "eth0"), bytes(table, "lo")), (Some(1234), Some(30)));
        assert_eq!((bytes(table, "eth"), bytes("eth0: 1 2", "eth0")), (None, None));
    }
}
