//! The network of a program: a namespace in which every address is its own, and one listener accepts
//! connections to all of them.
//!
//! Loopback addresses stay the namespace's own, so that programs can talk among themselves; a host's
//! services there are out of reach, except for DNS. Echo requests are not answered: an answer would
//! not be that of the address.

use crate::dns::DnsSockets;
use crate::sockets;
use host::netlink::Netlink;
use host::netns::NetNs;
use host::sysctl;
use host::tproxy::{self, Arriving, Tproxy};
use host::transparent::{self, Accepting};
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;

/// The addresses from which the program's connections come: of a block that no network has
/// (RFC 7335), and a unique local one (RFC 4193). As the latter and public addresses have different
/// labels (RFC 6724, section 2.1), programs prefer IPv4: far may have no IPv6, and near accepts before
/// far connects.
const OWN: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 3)),
    IpAddr::V6(Ipv6Addr::new(0xfd6c, 0x6f6e, 0x6768, 0, 0, 0, 0, 1)),
];

/// The address of far's name server in the network.
pub const NAME_SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 0, 4)), 5300);

/// The name of the table of rules.
const TABLE: &str = "longhaul-boost";

/// The ports to which connections are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ports {
    /// All of them, which needs nf_tables.
    #[default]
    All,
    /// These; connections to others are refused.
    Listed(Vec<u16>),
}

/// The reason that there is no network for a program.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// No nf_tables, or none with `tproxy`.
    #[error(
        "this kernel cannot accept connections to all ports ({0}): load its module with \
         modprobe nft_tproxy, or name the ports with ‹ports›, such as 80,443"
    )]
    Tproxy(io::Error),
    /// No privilege to change routing or rules.
    #[error("accepting the connections of other hosts needs root ({step}: {source})")]
    Denied {
        /// The step that failed.
        step: &'static str,
        /// The system error.
        source: io::Error,
    },
    /// Another gateway.
    #[error(
        "a gateway of longhaul boost already runs in this network namespace: stop it before you start \
         another"
    )]
    Running,
    /// A port at which a gateway's own service listens.
    #[error(
        "port {0} is that of a service of this host: leave it out of ‹ports›, or boost all ports, which \
         leaves this host's services alone"
    )]
    PortInUse(u16),
    /// A gateway's rules or listeners.
    #[error("cannot accept the connections of other hosts ({step}): {source}")]
    Gateway {
        /// The step that failed.
        step: &'static str,
        /// The system error.
        source: io::Error,
    },
    /// Anything else.
    #[error("cannot create the program's network ({step}): {source}")]
    Other {
        /// The step that failed.
        step: &'static str,
        /// The system error.
        source: io::Error,
    },
}

/// Datagrams that the network of the calling thread has refused, as nobody listens at their port
/// (RFC 4113, `udpNoPorts`).
pub(super) fn refused_datagrams() -> Option<u64> {
    let of_ipv4 = std::fs::read_to_string("/proc/thread-self/net/snmp").ok()?;
    let of_ipv6 = std::fs::read_to_string("/proc/thread-self/net/snmp6").unwrap_or_default();
    Some(no_ports(&of_ipv4)?.saturating_add(no_ports6(&of_ipv6).unwrap_or(0)))
}

/// From two lines that begin with `Udp:`, names and values.
fn no_ports(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split(' ').position(|name| name == "NoPorts")?;
    values.split(' ').nth(at)?.parse().ok()
}

fn no_ports6(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("Udp6NoPorts"))?.trim().parse().ok()
}

/// A program's network, which exists as long as this value or a program in it.
#[derive(Debug)]
pub struct ProgramNetwork {
    pub(super) namespace: Arc<NetNs>,
    listeners: Vec<TcpListener>,
    dns: Option<DnsSockets>,
    #[expect(dead_code, reason = "holding them is the use")]
    rules: Option<Tproxy>,
}

impl ProgramNetwork {
    /// Creates it. The caller has the privileges of a sandbox.
    ///
    /// # Errors
    /// [`NetworkError`].
    pub fn create(ports: &Ports) -> Result<Self, NetworkError> {
        let namespace = NetNs::create().map_err(other("its namespace"))?;
        let (listeners, dns, rules) =
            namespace.run(|| inside(ports)).map_err(other("entering its namespace"))??;
        Ok(ProgramNetwork { namespace: Arc::new(namespace), listeners, dns: Some(dns), rules })
    }

    /// The listeners, once.
    pub fn take_listeners(&mut self) -> Vec<TcpListener> {
        std::mem::take(&mut self.listeners)
    }

    /// The sockets of DNS, once.
    pub const fn take_dns(&mut self) -> Option<DnsSockets> {
        self.dns.take()
    }
}

impl NetworkError {
    /// An error of a gateway.
    pub(crate) fn of_gateway(step: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => NetworkError::Denied { step, source },
            _ => NetworkError::Gateway { step, source },
        }
    }

    /// An error of [`Tproxy::start`], for which `other` has the words where the kernel has all modules.
    pub(crate) fn of_rules(
        source: io::Error,
        other: impl Fn(&'static str, io::Error) -> NetworkError,
    ) -> Self {
        if tproxy::is_unsupported(&source) {
            NetworkError::Tproxy(source)
        } else {
            other("adding rules of nf_tables", source)
        }
    }
}

fn other(step: &'static str) -> impl Fn(io::Error) -> NetworkError {
    move |source| NetworkError::Other { step, source }
}

/// Runs in the namespace.
fn inside(ports: &Ports) -> Result<(Vec<TcpListener>, DnsSockets, Option<Tproxy>), NetworkError> {
    let netlink = Netlink::open().map_err(other("opening netlink"))?;
    let loopback = netlink.index("lo").map_err(other("finding the loopback"))?;
    netlink.bring_up(loopback, None, None).map_err(other("bringing up the loopback"))?;
    let has_ipv6 = sysctl::read("net.ipv6.conf.lo.disable_ipv6").is_ok_and(|off| off == "0");
    for own in OWN.into_iter().filter(|own| own.is_ipv4() || has_ipv6) {
        netlink.add_address(loopback, own).map_err(other("adding an address"))?;
        netlink.own_all_addresses(loopback, own).map_err(other("adding a route"))?;
    }
    // A kernel without them answers: misleading, but no more.
    for name in ["net.ipv4.icmp_echo_ignore_all", "net.ipv6.icmp.echo_ignore_all"] {
        let _ = sysctl::write(name, "1");
    }
    let listen = |accepting, port| {
        let listener = transparent::listen(accepting, port).map_err(other("listening"))?;
        sockets::prepare_listener(&listener).map_err(other("listening"))?;
        Ok(listener)
    };
    let (listeners, rules) = match ports {
        Ports::All => {
            let listener = listen(Accepting::Anywhere, 0)?;
            let port = listener.local_addr().map_err(other("listening"))?.port();
            let rules = Tproxy::start(TABLE, port, Arriving::Anywhere { except: crate::dns::PORT });
            (
                vec![listener],
                Some(rules.map_err(|error| {
                    NetworkError::of_rules(error, |step, error| other(step)(error))
                })?),
            )
        }
        Ports::Listed(ports) => {
            let mut ports: BTreeSet<u16> = ports.iter().copied().collect();
            // The relay's.
            ports.remove(&crate::dns::PORT);
            let listeners = ports.iter().map(|port| listen(Accepting::Anywhere, *port));
            let mut listeners = listeners.collect::<Result<Vec<_>, _>>()?;
            if !ports.contains(&NAME_SERVER.port()) {
                let only = Accepting::Address(NAME_SERVER.ip());
                listeners.push(listen(only, NAME_SERVER.port())?);
            }
            (listeners, None)
        }
    };
    let dns = DnsSockets::open().map_err(other("listening for DNS"))?;
    Ok((listeners, dns, rules))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_datagrams_are_found_by_name() {
        let text = "Tcp: X\nTcp: 9\nUdp: InDatagrams NoPorts\nUdp: 5 7\nUdpLite: NoPorts\n";
        assert_eq!(no_ports(text), Some(7));
        assert_eq!(no_ports6("Udp6InDatagrams\t1\nUdp6NoPorts    \t3\n"), Some(3));
        for odd in ["", "Udp: NoPorts", "Udp: A\nUdp: 1", "Udp: NoPorts\nUdp: x"] {
            assert_eq!(no_ports(odd), None, "{odd}");
        }
    }

    #[test]
    fn errors_name_their_remedy() {
        let text = |code: i32| {
            let error = io::Error::from_raw_os_error(code);
            NetworkError::of_rules(error, NetworkError::of_gateway).to_string()
        };
        // ENOENT and EOPNOTSUPP; EPERM and EINVAL.
        for code in [2, 95] {
            assert!(text(code).contains("modprobe nft_tproxy"), "{}", text(code));
        }
        for code in [1, 22] {
            assert!(!text(code).contains("modprobe"), "{}", text(code));
        }
        assert!(text(1).contains("needs root"), "{}", text(1));
    }
}
