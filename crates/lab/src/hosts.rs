//! Two hosts and the path between them.

use crate::certificate::{self, Certificate};
use crate::drive::{Direction, Tally};
use crate::path::PathSpec;
use crate::{LabError, buffers, idle};
use host::netlink::{DeviceDrops, Netlink};
use host::netns::NetNs;
use host::tun::Tun;
use host::wait::Bell;
use host::{memory, sysctl};
use record::PathReport;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::thread::JoinHandle;
use units::ByteCount;

/// The name of each host's one network device.
pub const DEVICE: &str = "lab0";

/// A line for /etc/gai.conf (RFC 6724 section 2.1): a program that does not
/// ask for a family gets IPv4, as on most long paths, and the payload share
/// of 20-byte headers; one that asks for IPv6 gets it.
pub const PREFER_IPV4: &str = "precedence ::ffff:0:0/96 100\n";

/// Trains a device holds until the emulator has read them. The link has its
/// own queue, so this one should never be full: 10 000 single packets are
/// 120 ms at 1 Gbit/s, in which the emulator is certain to be scheduled.
const RING: u32 = 10_000;

/// What is asked of a lab.
#[derive(Debug, Clone)]
pub struct LabPlan {
    /// The path between the hosts.
    pub path: PathSpec,
    /// Congestion control of both hosts.
    pub congestion: String,
    /// Settings of both hosts, in order.
    pub sysctls: Vec<(String, String)>,
    /// Give both hosts buffers that fill the path, before `sysctls`.
    pub tuned: bool,
}

impl LabPlan {
    /// A path between hosts with the machine's own settings, and CUBIC.
    #[must_use]
    pub fn new(path: PathSpec) -> Self {
        LabPlan { path, congestion: "cubic".to_owned(), sysctls: Vec::new(), tuned: false }
    }
}

/// One host of a lab: a network namespace behind one device.
#[derive(Debug)]
pub struct LabHost {
    /// `client` or `server`.
    pub name: &'static str,
    /// Its IPv4 address.
    pub ipv4: Ipv4Addr,
    /// Its IPv6 address.
    pub ipv6: Ipv6Addr,
    /// Its namespace.
    pub namespace: NetNs,
}

/// A running lab. Dropping it stops the emulation; [`Lab::finish`] also says how it went.
#[derive(Debug)]
pub struct Lab {
    client: LabHost,
    server: LabHost,
    path: PathSpec,
    seed: u64,
    idle_rtt: Option<std::time::Duration>,
    stop: Arc<Bell>,
    drivers: Vec<JoinHandle<io::Result<Tally>>>,
    /// Held until the end: a device goes, and its counters with it, when the
    /// last to hold it does.
    #[expect(dead_code, reason = "holding it is the use")]
    devices: [Arc<Tun>; 2],
}

impl Lab {
    /// Makes the hosts, connects them and measures the idle path. Needs the
    /// privileges of a world of its own ([`host::world`]).
    ///
    /// # Errors
    /// [`LabError`]: nothing is left behind.
    pub fn start(plan: &LabPlan) -> Result<Self, LabError> {
        certificate::check_memory(&plan.path, memory::available())?;
        check_congestion(&plan.congestion)?;
        check_settings(&plan.sysctls)?;
        let seed = plan.path.seed.unwrap_or_else(host::random::seed);
        let stop = Arc::new(Bell::new().map_err(LabError::system("making an event"))?);

        let (client, client_tun) = LabHost::create("client", 1, plan)?;
        let (server, server_tun) = LabHost::create("server", 2, plan)?;
        let [up, down] = plan.path.links(seed);
        let directions = [
            ("lab-up", up, &client_tun, &server_tun),
            ("lab-down", down, &server_tun, &client_tun),
        ];
        let mut lab = Lab {
            devices: [Arc::clone(&client_tun), Arc::clone(&server_tun)],
            client,
            server,
            path: plan.path.clone(),
            seed,
            idle_rtt: None,
            stop,
            drivers: Vec::new(),
        };
        let room = ByteCount::from_bytes(plan.path.memory().bytes() / 2);
        for (name, link, from, to) in directions {
            let direction = Direction {
                from: Arc::clone(from),
                to: Arc::clone(to),
                link,
                room: buffers::reserve(room).map_err(LabError::system("taking memory"))?,
                stop: Arc::clone(&lab.stop),
            };
            let driver =
                std::thread::Builder::new().name(name.to_owned()).spawn(|| direction.drive());
            lab.drivers.push(driver.map_err(LabError::system("starting a thread"))?);
        }
        lab.idle_rtt = idle::measure(&lab.client.namespace, lab.server.ipv4, &plan.path)?;
        Ok(lab)
    }

    /// The host that sends upwards.
    #[must_use]
    pub const fn client(&self) -> &LabHost {
        &self.client
    }

    /// The host at the far end.
    #[must_use]
    pub const fn server(&self) -> &LabHost {
        &self.server
    }

    /// The path as it was asked.
    #[must_use]
    pub const fn path(&self) -> &PathSpec {
        &self.path
    }

    /// Lines for /etc/hosts by which both hosts are found. Where a resolver
    /// may choose it takes IPv6, unless [`PREFER_IPV4`] says otherwise.
    #[must_use]
    pub fn names(&self) -> String {
        [&self.client, &self.server]
            .map(|host| format!("{} {}\n{} {}\n", host.ipv4, host.name, host.ipv6, host.name))
            .concat()
    }

    /// The path as it was asked, before there is anything to certify.
    #[must_use]
    pub fn asked(&self) -> PathReport {
        self.certificate(&[], DeviceDrops::default()).asked()
    }

    fn certificate<'a>(&'a self, tallies: &'a [Tally], dropped: DeviceDrops) -> Certificate<'a> {
        let Lab { path, seed, idle_rtt, .. } = self;
        Certificate { path, seed: *seed, idle_rtt: *idle_rtt, tallies, dropped }
    }

    /// Whether both directions are still carried; [`Lab::finish`] tells why not.
    #[must_use]
    pub fn is_carried(&self) -> bool {
        !self.drivers.iter().any(JoinHandle::is_finished)
    }

    /// Ends the emulation and certifies it.
    ///
    /// # Errors
    /// Where a driver failed or a device cannot be asked.
    pub fn finish(mut self) -> Result<PathReport, LabError> {
        self.stop.ring();
        let mut tallies = Vec::new();
        for driver in self.drivers.drain(..) {
            let tally = driver
                .join()
                .map_err(|_| LabError::Emulator(io::Error::other("its thread died")))?;
            tallies.push(tally.map_err(LabError::Emulator)?);
        }
        let drops = [&self.client, &self.server].map(LabHost::drops);
        let mut dropped = DeviceDrops::default();
        for drop in drops {
            let drop = drop?;
            dropped.transmit += drop.transmit;
            dropped.receive += drop.receive;
        }
        Ok(self.certificate(&tallies, dropped).report())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.stop.ring();
        for driver in self.drivers.drain(..) {
            // A driver's own failure has no one left to hear it.
            let _ = driver.join();
        }
    }
}

impl LabHost {
    fn create(
        name: &'static str,
        number: u8,
        plan: &LabPlan,
    ) -> Result<(Self, Arc<Tun>), LabError> {
        let buffers =
            ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"].map(|key| (key, sysctl::read(key)));
        let namespace = NetNs::create().map_err(LabError::system("making a network namespace"))?;
        let host = LabHost {
            name,
            ipv4: Ipv4Addr::new(10, 0, 0, number),
            ipv6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number.into()),
            namespace,
        };
        let tun = host.namespace.run(|| {
            // Some kernels start a namespace with built-in buffers, not the machine's.
            for (key, value) in &buffers {
                if let Ok(value) = value {
                    set(key, value)?;
                }
            }
            host.connect(plan)
        });
        Ok((host, Arc::new(tun.map_err(LabError::system("entering a network namespace"))??)))
    }

    /// Inside the namespace: device, addresses, routes, settings.
    fn connect(&self, plan: &LabPlan) -> Result<Tun, LabError> {
        let system = LabError::system;
        let tun = Tun::create(DEVICE)?;
        let netlink = Netlink::open().map_err(system("opening netlink"))?;
        // A device that talks by itself (router solicitations, multicast
        // reports) would be traffic nobody asked for. Without IPv6 there is
        // nothing to silence.
        let ipv6 = set(&format!("net.ipv6.conf.{DEVICE}.addr_gen_mode"), "1").is_ok();
        let loopback = netlink.index("lo").map_err(system("finding the loopback device"))?;
        netlink.bring_up(loopback, None, None).map_err(system("starting the loopback device"))?;
        let device = netlink.index(DEVICE).map_err(system("finding the TUN device"))?;
        netlink
            .bring_up(device, Some(plan.path.mtu), Some(RING))
            .map_err(system("starting the TUN device"))?;
        let mut addresses =
            vec![(IpAddr::V4(self.ipv4), (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 24))];
        if ipv6 {
            addresses.push((
                IpAddr::V6(self.ipv6),
                (IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0)), 64),
            ));
        }
        for (address, prefix) in addresses {
            netlink.add_address(device, address).map_err(system("setting an address"))?;
            netlink
                .add_route(device, prefix, address, &plan.congestion)
                .map_err(system("setting a route"))?;
        }
        // Pings without privileges, and no memory of earlier connections: each
        // run begins from nothing.
        set("net.ipv4.ping_group_range", "0 0")?;
        set("net.ipv4.tcp_no_metrics_save", "1")?;
        if plan.tuned {
            for key in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
                set(key, &tuned_buffer(key, &plan.path))?;
            }
        }
        for (key, value) in &plan.sysctls {
            set(key, value)?;
        }
        Ok(tun)
    }

    fn drops(&self) -> Result<DeviceDrops, LabError> {
        let ask = || Netlink::open()?.drops(DEVICE);
        self.namespace
            .run(ask)
            .and_then(|drops| drops)
            .map_err(LabError::system("reading the device's counters"))
    }
}

/// A buffer that fills the path with room to spare: 4 x (BDP + queue), as the
/// kernel turns only a share of a buffer into window and the sender holds
/// data until it is acknowledged.
fn tuned_buffer(key: &str, path: &PathSpec) -> String {
    let [least, initial, most] = sysctl::read_triple(key).unwrap_or([4096, 131_072, 6_291_456]);
    let needed = path.bdp().plus(path.queue_bytes()).times(4).rounded_up_to(1 << 20);
    // The kernel keeps these as 32-bit numbers.
    let most = needed.bytes().min(i32::MAX.unsigned_abs().into()).max(most);
    format!("{least} {initial} {most}")
}

fn set(key: &str, value: &str) -> Result<(), LabError> {
    sysctl::write(key, value).map_err(|source| LabError::Sysctl {
        key: key.to_owned(),
        value: value.to_owned(),
        source,
    })
}

fn check_congestion(name: &str) -> Result<(), LabError> {
    let available = sysctl::read("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    if available.is_empty() || available.split(' ').any(|known| known == name) {
        return Ok(());
    }
    let name = name.chars().filter(|c| !c.is_control()).take(20).collect();
    Err(LabError::Congestion { name, available })
}

/// Only the network's settings belong to a host of a lab; any other is the
/// machine's own.
fn check_settings(settings: &[(String, String)]) -> Result<(), LabError> {
    match settings.iter().find(|(key, _)| !key.starts_with("net.")) {
        Some((key, _)) => Err(LabError::Setting { key: key.clone() }),
        None => Ok(()),
    }
}
