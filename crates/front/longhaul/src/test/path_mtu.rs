//! The largest packet of the path to the server: for datagrams that fit it, and after a test whose
//! full-size segments were lost.

use crate::{Fault, Problem, StopFlag};
use host::address;
use host::resolve::{self, ResolveError};
use perf::client::ClientConfig;
use record::{Fragmentation, Measurement, Protocol, SegmentSizes, Stream};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;
use units::ByteCount;

/// Time to wait for the reply to a probe.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The shortest stall at the end of a test, in seconds.
const STALL_S: f64 = 1.0;

/// Of a segment with timestamps (RFC 7323), in bytes.
const TCP_HEADERS: u32 = 32;

/// The most payload that fits a UDP datagram (RFC 768), less than IPv4's headers.
const MAX_PAYLOAD: u32 = 65_507;

/// UDT's packets at most, in bytes.
const UDT_PACKET: u32 = 1_500;

/// The payload of the largest datagram that passes the path unfragmented.
pub(super) fn datagram_length(
    config: &ClientConfig,
    stop: &StopFlag,
) -> Result<ByteCount, Problem> {
    let found = server(config, stop).map_err(|error| Problem::new(Fault::Peer, error))?;
    let to = found.ok_or_else(|| Problem::new(Fault::Interrupted, "interrupted"))?;
    let mtu = path_mtu(to, config.bind, stop).ok_or_else(|| {
        let what = format!("no route to {to}: check the address and 'ip route'");
        Problem::new(Fault::Peer, what)
    })?;
    let length = Fragmentation::largest_whole(mtu, to.is_ipv6()).min(MAX_PAYLOAD);
    Ok(ByteCount::from_bytes(length.into()))
}

/// The path MTU, where it is below the MTU of the route and no router says so: UDT would send
/// packets that do not arrive.
pub(super) fn below_the_route(config: &ClientConfig, stop: &StopFlag) -> Option<u32> {
    let to = server(config, stop).ok()??;
    let (of_route, passes) = probed(to, config.bind, stop)?;
    passes.filter(|passes| *passes < of_route.min(UDT_PACKET))
}

/// The server's first address; `None` if `stop` ended the wait for the resolver.
fn server(config: &ClientConfig, stop: &StopFlag) -> Result<Option<SocketAddr>, ResolveError> {
    let (port, stopped) = (*config.ports.start(), || stop.is_raised());
    let found = resolve::resolve(&config.host, port, config.family, config.bind, &stopped)?;
    Ok(found.and_then(|all| all.first().copied()))
}

/// The largest IP packet that passes the path to `to`, in bytes: that of the route from here
/// where no probe is answered; `None` without a route.
fn path_mtu(to: SocketAddr, bind: Option<IpAddr>, stop: &StopFlag) -> Option<u32> {
    let (of_route, passes) = probed(to, bind, stop)?;
    Some(passes.map_or(of_route, |passes| passes.min(of_route)))
}

/// The MTU of the route to `to`, and the largest packet of up to that size that was answered.
fn probed(to: SocketAddr, bind: Option<IpAddr>, stop: &StopFlag) -> Option<(u32, Option<u32>)> {
    let bind = bind.map_or(address::any_like(to), |bind| address::beside(bind, 0, to));
    let socket = UdpSocket::bind(bind).ok()?;
    // Sends nothing: the kernel only chooses a route.
    socket.connect(to).ok()?;
    let of_route = host::socket::route_mtu(&socket, to.is_ipv6()).ok()?;
    if to.ip().is_loopback() {
        return Some((of_route, Some(of_route)));
    }
    let found = probe::path_mtu(to, of_route, TIMEOUT, &|| stop.is_raised());
    Some((of_route, found.ok().and_then(|found| found.arrived)))
}

/// Looks for a path MTU below that of the route where the test was stalled at its end: adds what was
/// found to its streams.
pub(super) fn examine(
    measurement: &mut Measurement,
    is_incomplete: bool,
    (server, bind): (SocketAddr, Option<IpAddr>),
    stop: &StopFlag,
) {
    let protocol = measurement.spec.protocol;
    let is_stalled = |stream: &Stream| match protocol {
        Protocol::Tcp => is_stalled(stream, is_incomplete),
        Protocol::Udp => stream.sent_bytes > 0 && stream.received_bytes == 0,
        Protocol::Udt => false,
    };
    if stop.is_raised() || !measurement.streams.iter().any(is_stalled) {
        return;
    }
    let Some((of_route, passes)) = probed(server, bind, stop) else { return };
    for stream in measurement.streams.iter_mut().filter(|stream| is_stalled(stream)) {
        let sizes = stream.segment_sizes;
        stream.segment_sizes = match passes {
            Some(mtu) if mtu < of_route => Some(below(mtu, of_route, sizes, server.is_ipv6())),
            // Size is not the reason.
            Some(_) => None,
            None => sizes,
        };
        if let Some((datagrams, mtu)) = stream.datagrams.as_mut().zip(passes) {
            let length = datagrams.length_bytes;
            let found = Fragmentation::of(length, mtu.min(of_route), server.is_ipv6());
            datagrams.fragmentation = found;
        }
    }
}

/// Returns true if nothing arrived any more at the end: by the sender's samples, or by the
/// receiver's if the server's results are missing.
fn is_stalled(stream: &Stream, is_incomplete: bool) -> bool {
    let arrived = |s: &record::Sample| (s.t_s, s.delivered_bytes.max(s.acked_bytes));
    if !stream.sender.is_empty() {
        let stalled = stalled_for(stream.sender.iter().map(arrived));
        return stream.segment_sizes.is_some() && stalled >= STALL_S;
    }
    let read = stream.receiver.iter().map(|s| (s.t_s, s.received_bytes));
    is_incomplete && stream.reverse && stalled_for(read) >= STALL_S
}

/// The time for which a count had not grown at its end, in seconds.
fn stalled_for(counts: impl Iterator<Item = (f64, u64)> + Clone) -> f64 {
    let Some((end, last)) = counts.clone().last() else { return 0.0 };
    let since = counts.into_iter().find(|(_, count)| *count >= last);
    since.map_or(0.0, |(since, _)| end - since)
}

/// The sizes where packets of up to `mtu` bytes pass, and the route's do not.
fn below(mtu: u32, of_route: u32, sizes: Option<SegmentSizes>, is_v6: bool) -> SegmentSizes {
    let headers = TCP_HEADERS + if is_v6 { 40 } else { 20 };
    let lost = sizes.map_or(of_route - headers, |sizes| sizes.smallest_lost_bytes);
    let delivered = sizes.map_or(u32::MAX, |sizes| sizes.largest_delivered_bytes);
    SegmentSizes {
        largest_delivered_bytes: delivered.min(mtu.saturating_sub(headers)),
        smallest_lost_bytes: lost,
        path_mtu_bytes: Some(mtu),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_a_route() {
        let mtu = path_mtu(([127, 0, 0, 1], 9).into(), None, &StopFlag::new()).unwrap();
        assert!(mtu >= 1500, "{mtu}");
    }
}
