//! The effect of UDP on other users of the path: it has no congestion control.

use crate::cross_traffic::device_towards;
use perf::client::ClientConfig;
use record::Direction;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use units::BitRate;

/// The highest rate of UDP that is sent without a question: a tenth of the slowest
/// Ethernet in use, 100 Mbit/s.
const UNASKED: BitRate = BitRate::from_bps(10_000_000);

/// The test's effect on other users of the path, if they should be asked first.
pub(super) fn of(config: &ClientConfig) -> Option<String> {
    disturbs_others(config).then(|| impact(config))
}

fn disturbs_others(config: &ClientConfig) -> bool {
    config.transport.udp().is_some() && is_above(config) && reaches_another_machine(config)
}

/// The rate of all streams in one direction; `None` without a limit.
fn offered(config: &ClientConfig) -> Option<BitRate> {
    let each = config.rate?;
    Some(BitRate::from_bps(each.bps().saturating_mul(config.streams.max(1).into())))
}

fn is_above(config: &ClientConfig) -> bool {
    offered(config).is_none_or(|rate| rate > UNASKED)
}

/// The test's effect on others, in one line.
fn impact(config: &ClientConfig) -> String {
    let rate = match offered(config) {
        Some(rate) => format!("at {rate}"),
        None => "without a rate limit".to_owned(),
    };
    let direction = match config.direction {
        Direction::Forward => "to",
        Direction::Reverse => "from",
        Direction::Both => "to and from",
    };
    format!(
        "UDP {rate} {direction} {} has no congestion control: where the path is not idle, it takes \
         the capacity of all other users, as a denial of service does",
        config.host
    )
}

/// Returns true if packets to the target leave this machine. An address of this host, and the
/// emulated path of a lab, do not; a name that does not resolve counts as another machine.
fn reaches_another_machine(config: &ClientConfig) -> bool {
    let host = config.host.as_str();
    let name = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let Ok(addresses) = (name, *config.ports.start()).to_socket_addrs() else { return true };
    addresses.map(|address| address.ip()).any(|ip| !is_own(ip) && !is_emulated(ip))
}

/// Packets to an address of this host have it as their source, too. Connecting a UDP
/// socket sends nothing.
fn is_own(ip: IpAddr) -> bool {
    let any = match ip {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((ip, 9))?;
        socket.local_addr()
    });
    ip.is_loopback() || source.is_ok_and(|source| source.ip() == ip)
}

/// Returns true if the route leads into a lab, whose devices are `lab0`, `lab1` and so on.
fn is_emulated(ip: IpAddr) -> bool {
    let device = device_towards(ip, IpAddr::V4(Ipv4Addr::UNSPECIFIED)).unwrap_or_default();
    device.strip_prefix("lab").is_some_and(|number| number.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Protocol;

    fn config(rate: Option<&str>, streams: u32) -> ClientConfig {
        ClientConfig {
            transport: Protocol::Udp.into(),
            rate: rate.map(|rate| rate.parse().unwrap()),
            streams,
            ..ClientConfig::new("192.0.2.7")
        }
    }

    #[test]
    fn ten_megabits_of_all_streams_together_need_no_question() {
        assert!(!is_above(&config(Some("10mbit"), 1)));
        assert!(is_above(&config(Some("10000001bit"), 1)));
        assert!(!is_above(&config(Some("5mbit"), 2)) && is_above(&config(Some("5mbit"), 3)));
        assert!(is_above(&config(None, 1)), "unlimited");
    }

    #[test]
    fn the_impact_names_rate_and_target() {
        let text = impact(&config(Some("100mbit"), 2));
        assert!(text.starts_with("UDP at 200 Mbit/s to 192.0.2.7 has no congestion"), "{text}");
        assert!(impact(&config(None, 1)).contains("without a rate limit"));
        let both = ClientConfig { direction: Direction::Both, ..config(None, 1) };
        assert!(impact(&both).contains("to and from 192.0.2.7") && !impact(&both).contains('\n'));
    }

    #[test]
    fn this_host_is_no_other_machine() {
        for own in ["127.0.0.1", "127.8.8.8", "[::1]", "localhost"] {
            let config = ClientConfig { host: own.to_owned(), ..config(None, 1) };
            assert!(!reaches_another_machine(&config), "{own}");
        }
        assert!(reaches_another_machine(&config(None, 1)));
    }
}
