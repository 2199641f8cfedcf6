//! Two hosts on this machine: namespaces that a veth pair connects, or one with its loopback.

use bench_harness::Fallible;
use host::netlink::Netlink;
use host::netns::NetNs;
use host::sysctl;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;

/// What connects the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Device {
    Veth,
    Loopback,
}

/// The hosts and the server's address.
pub(crate) struct Hosts {
    pub(crate) client: NetNs,
    pub(crate) server: NetNs,
    pub(crate) address: Ipv4Addr,
}

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

impl Hosts {
    /// With `tcp_rmem`'s and `tcp_wmem`'s third value at that many bytes.
    ///
    /// # Errors
    /// A namespace, a device or a setting cannot be made.
    pub(crate) fn start(device: Device, largest_buffer: u64) -> Fallible<Self> {
        let server = NetNs::create()?;
        server.run(|| bring_up("lo", None))??;
        let hosts = match device {
            Device::Loopback => {
                let client = server.clone_handle()?;
                Hosts { client, server, address: Ipv4Addr::LOCALHOST }
            }
            Device::Veth => {
                let client = NetNs::create()?;
                // An argument with a slash is a path for ip(8).
                let there =
                    format!("/proc/{}/fd/{}", std::process::id(), server.as_fd().as_raw_fd());
                client.run(|| {
                    ip(&["link", "add", "local0", "type", "veth", "peer", "name", "local1"])?;
                    ip(&["link", "set", "local1", "netns", &there])
                })??;
                // What is sent to an own address passes through the loopback.
                client.run(|| bring_up("lo", None))??;
                client.run(|| bring_up("local0", Some(CLIENT)))??;
                server.run(|| bring_up("local1", Some(SERVER)))??;
                Hosts { client, server, address: SERVER }
            }
        };
        for host in [&hosts.client, &hosts.server] {
            host.run(|| -> Fallible<()> {
                sysctl::write("net.ipv4.tcp_rmem", &format!("4096 131072 {largest_buffer}"))?;
                sysctl::write("net.ipv4.tcp_wmem", &format!("4096 16384 {largest_buffer}"))?;
                Ok(())
            })??;
        }
        Ok(hosts)
    }
}

fn ip(arguments: &[&str]) -> Fallible<()> {
    let done = Command::new("ip").args(arguments).output()?;
    let said = String::from_utf8_lossy(&done.stderr);
    if done.status.success() { Ok(()) } else { Err(format!("ip {arguments:?}: {said}").into()) }
}

fn bring_up(device: &str, address: Option<Ipv4Addr>) -> Fallible<()> {
    if let Some(address) = address {
        ip(&["address", "add", &format!("{address}/24"), "dev", device])?;
    }
    let netlink = Netlink::open()?;
    netlink.bring_up(netlink.index(device)?, None, None)?;
    if let Some(address) = address {
        host::netlink::await_local_route(IpAddr::V4(address), std::time::Duration::from_secs(2))?;
    }
    Ok(())
}
