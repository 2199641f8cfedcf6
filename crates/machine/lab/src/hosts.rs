//! A host of a lab: a network namespace behind TUN devices, or Ethernet devices.

use crate::LabError;
use crate::cores::Cores;
use crate::driver_choice::longest_train;
use crate::forwarding::Forwarding;
use host::netlink::{DeviceDrops, Netlink, Route};
use host::netns::NetNs;
use host::sysctl;
use host::transmit_times::TransmitTimes;
use host::tun::Tun;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use topology::plan::{HostPlan, LinkPlan, Role};
use topology::routes::{HostRoutes, Table};
use topology::{PathSpec, Plan};
use units::ByteCount;

/// A line for /etc/gai.conf (RFC 6724 section 2.1): a program that does not
/// ask for a family gets IPv4, as on most long paths, and the payload share
/// of 20-byte headers; one that asks for IPv6 gets it.
pub const PREFER_IPV4: &str = "precedence ::ffff:0:0/96 100\n";

/// Trains a TUN device holds until the emulator has read them; an Ethernet device has no such
/// queue. The link has its own queue, so this one should never be full: 10 000 single packets are
/// 120 ms at 1 Gbit/s, in which the emulator is certain to be scheduled.
const RING: u32 = 10_000;

/// One host of a lab.
#[derive(Debug)]
pub struct LabHost {
    /// Its name.
    pub name: String,
    /// Its IPv4 address.
    pub ipv4: Ipv4Addr,
    /// Its IPv6 address.
    pub ipv6: Ipv6Addr,
    /// Its namespace.
    pub namespace: NetNs,
    /// Its devices, by the link each is an end of.
    pub(crate) devices: Vec<HostDevice>,
}

/// One end of a link.
#[derive(Debug)]
pub(crate) struct HostDevice {
    pub(crate) link: usize,
    pub(crate) name: String,
    pub(crate) port: Port,
}

/// What is behind a device.
#[derive(Debug)]
pub(crate) enum Port {
    /// Its file, held until the end: the device and its counters last as long as a handle.
    Tun(Arc<Tun>),
    /// A device in the namespace between the hosts.
    Veth,
}

/// What every host starts with.
pub(crate) struct Defaults<'a> {
    /// Settings of the machine.
    inherited: Vec<(&'static str, String)>,
    /// Where its devices pass what they receive.
    cores: Option<&'a Cores>,
}

impl<'a> Defaults<'a> {
    pub(crate) fn read(cores: Option<&'a Cores>) -> Self {
        let read = |key| sysctl::read(key).ok().map(|value| (key, value));
        let keys = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];
        Defaults { inherited: keys.into_iter().filter_map(read).collect(), cores }
    }
}

impl LabHost {
    /// Creates host `index` of the plan, with its devices and routes.
    pub(crate) fn create(
        plan: &Plan,
        index: usize,
        table: &Table,
        defaults: &Defaults<'_>,
        between: Option<&Forwarding>,
    ) -> Result<Self, LabError> {
        let asked = &plan.hosts[index];
        let namespace =
            NetNs::create().map_err(LabError::system("creating a network namespace"))?;
        let devices = namespace
            .run(|| {
                // Some kernels start a namespace with built-in buffers, not the machine's.
                for (key, value) in &defaults.inherited {
                    set(key, value)?;
                }
                if let Some(cores) = defaults.cores {
                    cores.steer(index).map_err(LabError::system("assigning cores to devices"))?;
                }
                connect(plan, index, table, between)
            })
            .map_err(LabError::system("entering a network namespace"))??;
        Ok(LabHost::of(asked, namespace, devices))
    }

    /// Uses the machine itself as host `index`: creates devices in its namespace,
    /// which last as long as the lab, and changes none of its settings.
    pub(crate) fn machine(plan: &Plan, index: usize, table: &Table) -> Result<Self, LabError> {
        let asked = &plan.hosts[index];
        let namespace =
            NetNs::current().map_err(LabError::system("opening the network namespace"))?;
        let netlink = Netlink::open().map_err(LabError::system("opening netlink"))?;
        let mut devices = Vec::new();
        let mut numbers = Vec::new();
        for link in plan.links_at(index) {
            // The kernel takes the lowest free number: no clash is possible.
            let tun = Arc::new(Tun::create("longhaul%d")?);
            let name = tun.name().map_err(LabError::system("reading the device name"))?;
            numbers.push((link, start_device(&netlink, &name, plan.links[link].path.mtu())?));
            devices.push(HostDevice { link, name, port: Port::Tun(tun) });
        }
        // The machine keeps its own default route.
        let others = (0..plan.hosts.len()).filter(|to| *to != index);
        let hops = others.filter_map(|to| Some((table.next(index, to)?, Some(to)))).collect();
        add_routes(&netlink, plan, index, hops, &numbers, false)?;
        Ok(LabHost::of(asked, namespace, devices))
    }

    fn of(asked: &HostPlan, namespace: NetNs, devices: Vec<HostDevice>) -> Self {
        let HostPlan { name, ipv4, ipv6, .. } = asked;
        LabHost { name: name.clone(), ipv4: *ipv4, ipv6: *ipv6, namespace, devices }
    }

    /// Its end of a link.
    pub(crate) fn device(&self, link: usize) -> Option<&HostDevice> {
        self.devices.iter().find(|device| device.link == link)
    }

    /// The file of its end of a link.
    pub(crate) fn tun(&self, link: usize) -> Option<Arc<Tun>> {
        match &self.device(link)?.port {
            Port::Tun(tun) => Some(Arc::clone(tun)),
            Port::Veth => None,
        }
    }

    /// Records the times at which packets are put into its end of a link; `None` where the
    /// system does not permit that (an ordinary user's own machine as a host).
    pub(crate) fn transmit_times(&self, link: usize) -> Option<TransmitTimes> {
        let device = self.device(link)?;
        let open = || TransmitTimes::open(Netlink::open()?.index(&device.name)?);
        self.namespace.run(open).and_then(|times| times).ok()
    }

    /// What its end of a link has dropped.
    pub(crate) fn drops(&self, link: usize) -> Result<DeviceDrops, LabError> {
        let Some(device) = self.device(link) else { return Ok(DeviceDrops::default()) };
        self.namespace
            .run(|| Netlink::open()?.drops(&[&device.name]))
            .and_then(|drops| drops)
            .map(|drops| drops.into_iter().next().unwrap_or_default())
            .map_err(LabError::system("reading the device's counters"))
    }
}

/// Inside the namespace: devices, addresses, routes, settings.
fn connect(
    plan: &Plan,
    index: usize,
    table: &Table,
    between: Option<&Forwarding>,
) -> Result<Vec<HostDevice>, LabError> {
    let system = LabError::system;
    let asked = &plan.hosts[index];
    let netlink = Netlink::open().map_err(system("opening netlink"))?;
    let loopback = netlink.index("lo").map_err(system("finding the loopback device"))?;
    netlink.bring_up(loopback, None, None).map_err(system("bringing up the loopback device"))?;
    let mut devices = Vec::new();
    let mut numbers = Vec::new();
    let mut ipv6 = true;
    for link in plan.links_at(index) {
        let name = plan.device(index, link);
        let LinkPlan { path, ends, .. } = &plan.links[link];
        let port = match between {
            None => Port::Tun(Arc::new(Tun::create(&name)?)),
            Some(between) => {
                let end = usize::from(ends[0] != index);
                between
                    .add_device(&netlink, &name, link, end, longest_train(plan.paths_of(link)))
                    .map_err(system("creating a pair of devices"))?;
                Port::Veth
            }
        };
        // No router solicitations or multicast reports: unwanted traffic on
        // the link. A kernel without IPv6 sends none.
        ipv6 &= set(&format!("net.ipv6.conf.{name}.addr_gen_mode"), "1").is_ok();
        numbers.push((link, start_device(&netlink, &name, path.mtu())?));
        devices.push(HostDevice { link, name, port });
    }
    apply_settings(asked, plan, index, table)?;
    let hops = match table.of(plan, index) {
        HostRoutes::Default { link } => vec![(link, None)],
        HostRoutes::Each(hops) => hops.iter().map(|hop| (hop.link, Some(hop.to))).collect(),
    };
    add_routes(&netlink, plan, index, hops, &numbers, ipv6)?;
    Ok(devices)
}

/// Brings a device up; returns its index.
fn start_device(netlink: &Netlink, name: &str, mtu: u32) -> Result<u32, LabError> {
    let device = netlink.index(name).map_err(LabError::system("finding the device"))?;
    netlink
        .bring_up(device, Some(mtu), Some(RING))
        .map_err(LabError::system("bringing up the device"))?;
    Ok(device)
}

/// The first link of a route, and its destination; `None` is the default route.
type Hop = (usize, Option<usize>);

/// Addresses, on the first device, and routes.
fn add_routes(
    netlink: &Netlink,
    plan: &Plan,
    index: usize,
    hops: Vec<Hop>,
    numbers: &[(usize, u32)],
    ipv6: bool,
) -> Result<(), LabError> {
    let Some((_, first)) = numbers.first() else { return Ok(()) };
    let asked = &plan.hosts[index];
    let addresses = [IpAddr::V4(asked.ipv4), IpAddr::V6(asked.ipv6)];
    for address in addresses.into_iter().filter(|address| address.is_ipv4() || ipv6) {
        netlink.add_address(*first, address).map_err(LabError::system("setting an address"))?;
    }
    let everywhere = |v4: bool| -> IpAddr {
        if v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
    };
    let to_host = |to: usize, v4: bool| -> IpAddr {
        let to = &plan.hosts[to];
        if v4 { to.ipv4.into() } else { to.ipv6.into() }
    };
    let mut routes = Vec::new();
    for (link, to) in hops {
        let Some((_, device)) = numbers.iter().find(|(number, _)| *number == link) else {
            continue;
        };
        for v4 in [true, false].into_iter().filter(|v4| *v4 || ipv6) {
            let whole = if v4 { 32 } else { 128 };
            routes.push(Route {
                device: *device,
                prefix: to.map_or_else(|| everywhere(v4), |to| to_host(to, v4)),
                length: to.map_or(0, |_| whole),
                source: Some(if v4 { asked.ipv4.into() } else { asked.ipv6.into() }),
                congestion: Some(&asked.congestion),
            });
        }
    }
    netlink.add_routes(routes).map_err(LabError::system("setting the routes"))
}

/// The host's own settings.
fn apply_settings(
    asked: &HostPlan,
    plan: &Plan,
    index: usize,
    table: &Table,
) -> Result<(), LabError> {
    // Unprivileged ping, and no cached metrics of earlier connections: each
    // connection starts from scratch.
    set("net.ipv4.ping_group_range", "0 0")?;
    set("net.ipv4.tcp_no_metrics_save", "1")?;
    if asked.role == Role::Router {
        set("net.ipv4.ip_forward", "1")?;
        // Asymmetric routes of a plan are intended.
        for scope in ["all", "default"] {
            set(&format!("net.ipv4.conf.{scope}.rp_filter"), "0")?;
        }
        // Without IPv6 there is nothing to forward.
        let _ = set("net.ipv6.conf.all.forwarding", "1");
    }
    if asked.tuned {
        let needed = largest_buffer_need(plan, index, table);
        for key in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
            set(key, &tuned_buffer(key, needed))?;
        }
    }
    for (key, value) in &asked.sysctls {
        set(key, value)?;
    }
    Ok(())
}

/// Largest sum of BDP and queues over the paths from this host.
fn largest_buffer_need(plan: &Plan, from: usize, table: &Table) -> ByteCount {
    let most = (0..plan.hosts.len()).filter(|to| *to != from).map(|to| {
        let links = table.links_between(plan, from, to);
        let specs = links.iter().map(|link| &plan.links[*link].path);
        let rtt = specs.clone().map(|path| path.rtt().duration()).sum();
        let rate = specs.clone().filter_map(PathSpec::rate).min();
        let queues = specs.map(|path| path.queue_bytes().bytes()).sum();
        let bdp = rate.map_or(ByteCount::from_bytes(0), |rate| rate.bytes_in(rtt));
        bdp.plus(ByteCount::from_bytes(queues))
    });
    most.max().unwrap_or(ByteCount::from_bytes(0))
}

/// A buffer that fills the path: 4 x (BDP + queue), as only a share of a buffer
/// becomes window, and the sender keeps data until it is acknowledged.
fn tuned_buffer(key: &str, needed: ByteCount) -> String {
    let [least, initial, most] = sysctl::read_triple(key).unwrap_or([4096, 131_072, 6_291_456]);
    let needed = needed.times(4).rounded_up_to(1 << 20);
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

/// Refuses a congestion control that this kernel lacks.
pub(crate) fn check_congestion(name: &str) -> Result<(), LabError> {
    if let Some(reason) = control::simulated_only(name) {
        return Err(LabError::SimulatedOnly { reason });
    }
    let available = sysctl::read("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    if available.is_empty() || available.split(' ').any(|known| known == name) {
        return Ok(());
    }
    let name = name.chars().filter(|c| !c.is_control()).take(20).collect();
    Err(LabError::Congestion { name, available })
}

/// Refuses a router that reads headers which no kernel writes.
pub(crate) fn check_path(path: &PathSpec) -> Result<(), LabError> {
    if path.states().any(|(_, [up, down])| up.has_xcp_router() || down.has_xcp_router()) {
        let reason = "queue=xcp answers headers that no kernel writes: use it in longhaul sim";
        return Err(LabError::SimulatedOnly { reason: reason.to_owned() });
    }
    Ok(())
}

/// Refuses settings outside net.*: those belong to the whole machine.
pub(crate) fn check_settings(settings: &[(String, String)]) -> Result<(), LabError> {
    match settings.iter().find(|(key, _)| !key.starts_with("net.")) {
        Some((key, _)) => Err(LabError::Setting { key: key.clone() }),
        None => Ok(()),
    }
}
