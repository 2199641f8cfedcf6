//! Cross traffic on a test's interface, from the kernel's interface counters.

use record::Measurement;
use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Ethernet, IP and TCP headers with timestamps, in bytes, of a segment and of
/// its acknowledgement: at most one for each segment.
const HEADERS: f64 = 2.0 * 66.0;

/// Bytes of a test besides its streams: control connection, RTT probes.
const CONTROL: f64 = 256.0 * 1024.0;

/// An interface's byte counter at the start of a test.
#[derive(Debug, Clone)]
pub struct InterfaceCounters {
    device: String,
    bytes: u64,
}

impl InterfaceCounters {
    /// Reads the counter of the interface that routes from `local` to `peer`;
    /// `None` where it is unknown.
    pub fn towards(peer: SocketAddr, local: SocketAddr) -> Option<Self> {
        let zone = host::address::zone_name(peer);
        Self::of_device(zone.or_else(|| device_towards(peer.ip(), local.ip()))?)
    }

    /// Reads the counter of an interface; `None` where it is unknown.
    pub fn of_device(device: String) -> Option<Self> {
        let bytes = bytes(&fs::read_to_string("/proc/net/dev").ok()?, &device)?;
        Some(InterfaceCounters { device, bytes })
    }

    /// Bytes received and sent since then.
    pub fn passed(&self) -> Option<u64> {
        let now = bytes(&fs::read_to_string("/proc/net/dev").ok()?, &self.device)?;
        now.checked_sub(self.bytes)
    }

    /// Bytes since then that were not the test's. Loopback counts each byte twice,
    /// as sent and as received.
    pub fn cross_traffic(&self, measurement: &Measurement) -> Option<u64> {
        let passes = if self.device == "lo" { 2.0 } else { 1.0 };
        let other = self.passed()? as f64 - passes * own(measurement);
        Some(other.max(0.0) as u64)
    }
}

/// The interface that routes from `local` to `peer`; `None` where it is unknown.
pub fn device_towards(peer: IpAddr, local: IpAddr) -> Option<String> {
    if peer == local || peer.is_loopback() {
        return Some("lo".to_owned());
    }
    match peer {
        IpAddr::V4(peer) => {
            device_v4(&fs::read_to_string("/proc/net/route").ok()?, u32::from(peer))
        }
        IpAddr::V6(peer) => device_v6(&fs::read_to_string("/proc/net/ipv6_route").ok()?, peer),
    }
}

/// Upper bound of the test's own bytes on the wire.
fn own(measurement: &Measurement) -> f64 {
    let streams = measurement.streams.iter().map(|stream| {
        let mss = stream.sender.last().map_or(0, |sample| sample.mss_bytes);
        let length = stream.datagrams.as_ref().map_or(mss, |datagrams| datagrams.length_bytes);
        let segment = if length == 0 { 1448.0 } else { f64::from(length) };
        let payload = stream.sent_bytes.max(stream.received_bytes) as f64;
        let retransmitted = stream.retransmits.unwrap_or(0) as f64 * (segment + HEADERS);
        payload * (1.0 + HEADERS / segment) + retransmitted
    });
    streams.sum::<f64>() + CONTROL
}

/// The device of the longest matching prefix in /proc/net/route, whose addresses
/// are hexadecimal in memory order.
fn device_v4(table: &str, to: u32) -> Option<String> {
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok().map(u32::from_be);
        let (network, mask) = (number(1)?, number(7)?);
        // RTF_UP is 1 (linux/route.h).
        let up = u32::from_str_radix(fields.get(3)?, 16).ok()? & 1 == 1;
        let device = (*fields.first()?).to_owned();
        (up && to & mask == network).then_some((mask, device))
    };
    table.lines().skip(1).filter_map(route).max_by_key(|(mask, _)| *mask).map(|route| route.1)
}

/// The same from /proc/net/ipv6_route; entries of `lo`, which also stand for
/// unreachable destinations, are skipped.
fn device_v6(table: &str, to: Ipv6Addr) -> Option<String> {
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let network = u128::from_str_radix(fields.first()?, 16).ok()?;
        let length = u32::from_str_radix(fields.get(1)?, 16).ok().filter(|bits| *bits <= 128)?;
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        let device = (*fields.get(9)?).to_owned();
        (device != "lo" && u128::from(to) & mask == network).then_some((length, device))
    };
    table.lines().filter_map(route).max_by_key(|(length, _)| *length).map(|route| route.1)
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
    fn the_longest_prefix_gives_the_device() {
        let table = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
                     eth0 00000000 0101A8C0 0003 0 0 0 00000000 0 0 0\n\
                     eth1 0001A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n\
                     down 0501A8C0 00000000 0000 0 0 0 FFFFFFFF 0 0 0\nrubbish\n";
        let device =
            |text: &str| device_v4(table, u32::from(text.parse::<std::net::Ipv4Addr>().unwrap()));
        assert_eq!(device("192.168.1.5").as_deref(), Some("eth1"));
        assert_eq!(device("8.8.8.8").as_deref(), Some("eth0"));
        let table = "00000000000000000000000000000000 00 0 00 0 0 0 0 0 eth0\n\
                     20010db8000000000000000000000000 20 0 00 0 0 0 0 0 eth1\n\
                     00000000000000000000000000000000 00 0 00 0 0 0 0 0 lo\n";
        assert_eq!(device_v6(table, "2001:db8::1".parse().unwrap()).as_deref(), Some("eth1"));
        assert_eq!(device_v6(table, "2001:db9::1".parse().unwrap()).as_deref(), Some("eth0"));
        assert_eq!(device_v6("zz 81", "::1".parse().unwrap()), None);
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
