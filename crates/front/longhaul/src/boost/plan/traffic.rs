//! The bytes of a capture that no pair accelerates.

use super::situation::ENCRYPTED_PORTS;
use crate::pcap::Capture;
use capture::dissect::{FlowKey, Protocol};
use capture::hierarchy::Row;
use record::TrafficShares;
use std::collections::HashMap;
use std::net::IpAddr;
use units::{ByteCount, share};

/// The port of HTTP/3 (RFC 9114, section 3.1).
const QUIC_PORT: u16 = 443;

/// TCP conversations that are examined for others beside them: the largest ones.
const MAX_EXAMINED: usize = 2_000;

/// A conversation in time.
#[derive(Debug, Clone, Copy)]
struct Carried {
    hosts: [IpAddr; 2],
    from_ns: u64,
    to_ns: u64,
    bytes: u64,
}

/// The shares of all TCP and UDP conversations; `None` without any. Those in a tunnel over UDP count
/// once, as what they are.
pub(super) fn shares(capture: &Capture) -> Option<TrafficShares> {
    let conversations = &capture.conversations;
    let (mut tcp, mut encrypted, mut quic, mut other) = (0u64, 0u64, 0u64, 0u64);
    let mut carried = Vec::new();
    for one in conversations.tcp().iter() {
        let bytes = one.traffic.each.iter().map(|counts| counts.bytes).sum();
        tcp = tcp.saturating_add(bytes);
        if has_port(&one.key, &ENCRYPTED_PORTS) {
            encrypted = encrypted.saturating_add(bytes);
        }
        let (from_ns, to_ns) = (one.traffic.first_ns, one.traffic.last_ns);
        let hosts = [one.key.a_address(), one.key.b_address()];
        carried.push(Carried { hosts, from_ns, to_ns, bytes });
        if carried.len() >= 2 * MAX_EXAMINED {
            keep_largest(&mut carried);
        }
    }
    keep_largest(&mut carried);
    for one in conversations.udp().iter() {
        let bytes: u64 = one.traffic.each.iter().map(|counts| counts.bytes).sum();
        let of = if has_port(&one.key, &[QUIC_PORT]) { &mut quic } else { &mut other };
        *of = of.saturating_add(bytes);
    }
    let other = other.saturating_sub(tunnelled(&capture.hierarchy.rows()));
    let all = tcp.saturating_add(quic).saturating_add(other);
    (all > 0).then(|| TrafficShares {
        bytes: ByteCount::from_bytes(all),
        tcp: share(tcp, all),
        quic: share(quic, all),
        other_udp: share(other, all),
        parallel_tcp: share(parallel_bytes(&carried), all),
        encrypted_tcp: share(encrypted, all),
    })
}

/// Bytes of TCP and UDP within UDP, which are counted as the outer conversation's as well.
fn tunnelled(rows: &[Row]) -> u64 {
    // The depths of the UDP headers around a row.
    let mut outer: Vec<usize> = Vec::new();
    let mut bytes = 0u64;
    for row in rows {
        outer.retain(|depth| *depth < row.depth);
        if matches!(row.protocol, Protocol::Tcp | Protocol::Udp) && !outer.is_empty() {
            bytes = bytes.saturating_add(row.bytes);
        }
        if row.protocol == Protocol::Udp {
            outer.push(row.depth);
        }
    }
    bytes
}

fn has_port(key: &FlowKey, ports: &[u16]) -> bool {
    ports.contains(&key.a_port) || ports.contains(&key.b_port)
}

fn keep_largest(carried: &mut Vec<Carried>) {
    carried.sort_unstable_by_key(|one| std::cmp::Reverse(one.bytes));
    carried.truncate(MAX_EXAMINED);
}

/// The bytes of conversations that share at least half of their time with another one between the
/// same hosts that carries at least a tenth of their bytes.
fn parallel_bytes(carried: &[Carried]) -> u64 {
    let mut of_hosts: HashMap<[IpAddr; 2], Vec<Carried>> = HashMap::new();
    for one in carried {
        let mut hosts = one.hosts;
        hosts.sort_unstable();
        of_hosts.entry(hosts).or_default().push(*one);
    }
    let of_group = |group: &Vec<Carried>| {
        let parallel = group.iter().enumerate().filter(|(index, one)| {
            // The largest ones come first, so the search ends early.
            let mut others = group.iter().enumerate().filter(|(other, _)| other != index);
            others.any(|(_, other)| other.bytes >= one.bytes / 10 && overlap(one, other))
        });
        parallel.map(|(_, one)| one.bytes).fold(0u64, u64::saturating_add)
    };
    of_hosts.values().map(of_group).fold(0, u64::saturating_add)
}

fn overlap(one: &Carried, other: &Carried) -> bool {
    let together = one.to_ns.min(other.to_ns).saturating_sub(one.from_ns.max(other.from_ns));
    together > 0 && together >= (one.to_ns - one.from_ns.min(one.to_ns)) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(ports: u8, from_ns: u64, to_ns: u64, bytes: u64) -> Carried {
        let hosts = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, ports])];
        Carried { hosts, from_ns, to_ns, bytes }
    }

    #[test]
    fn connections_at_the_same_time_between_the_same_hosts_are_parallel() {
        let (first, second) = (carried(2, 0, 100, 1_000), carried(2, 10, 100, 900));
        assert_eq!(parallel_bytes(&[first, second]), 1_900);
        // One after the other; to another host; beside a small one.
        assert_eq!(parallel_bytes(&[first, carried(2, 101, 200, 900)]), 0);
        assert_eq!(parallel_bytes(&[first, carried(3, 10, 100, 900)]), 0);
        assert_eq!(parallel_bytes(&[first, carried(2, 0, 100, 50)]), 50);
        assert_eq!(parallel_bytes(&[]), 0);
    }

    #[test]
    fn what_a_tunnel_carries_counts_once() {
        let row = |depth: usize, protocol: Protocol, bytes: u64| Row {
            depth,
            protocol,
            frames: 1,
            bytes,
            own_bytes: 0,
            end_frames: 0,
            end_bytes: 0,
        };
        let rows = [
            row(3, Protocol::Tcp, 1_000),
            row(3, Protocol::Udp, 900),
            row(4, Protocol::Geneve, 500),
            row(7, Protocol::Tcp, 400),
            row(7, Protocol::Udp, 100),
            // Beside it: TCP over GRE, and QUIC.
            row(3, Protocol::Gre, 300),
            row(5, Protocol::Tcp, 300),
        ];
        assert_eq!(tunnelled(&rows), 500);
    }
}
