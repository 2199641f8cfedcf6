//! The namespace between hosts whose packets the kernel holds: each end of a link has a pair of
//! Ethernet devices to it, and what arrives from one end is forwarded to the other.
//!
//! ```text
//!   lab0 (veth) ── 0a ──> forwarding, held in queue 0 ──> 0b ── (veth) lab0
//!               <──── held in queue 3, forwarding <────
//! ```
//!
//! It has no addresses and no names for anyone: hop limits arrive as they were sent.

use crate::LabError;
use crate::cores::Cores;
use crate::queue_carrier::{QueueEnds, QueueNumbers};
use crate::watch::LinkDirection;
use host::netlink::{DeviceDrops, Netlink};
use host::netns::NetNs;
use host::packet_sender::PacketSender;
use host::train_sizes::TrainSizes;
use host::veth::Veth;
use host::{packet_queue, queue_rules, recvmsg, sysctl};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use topology::Plan;

/// Memory for packets that wait to be read below which a lab does without: at 10 Gbit/s, the
/// headers of 5 ms of trains.
const MIN_BUFFER: usize = 400 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Forwarding {
    namespace: NetNs,
    ipv6: bool,
    /// True if the devices of hosts can pass what they receive to cores of their own.
    pub(crate) steering: bool,
    /// The kernel gives packets a timestamp while a socket asks for it.
    #[expect(dead_code, reason = "holding it is the use")]
    timestamps: UdpSocket,
}

impl Forwarding {
    pub(crate) fn create() -> io::Result<Self> {
        let namespace = NetNs::create()?;
        let (ipv6, steering, timestamps) = namespace.run(|| -> io::Result<_> {
            sysctl::write("net.ipv4.ip_forward", "1")?;
            for scope in ["all", "default"] {
                sysctl::write(&format!("net.ipv4.conf.{scope}.rp_filter"), "0")?;
            }
            let ipv6 = sysctl::write("net.ipv6.conf.all.forwarding", "1").is_ok();
            let netlink = Netlink::open()?;
            netlink.bring_up(netlink.index("lo")?, None, None)?;
            let timestamps = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            recvmsg::prepare(&timestamps, false)?;
            Ok((ipv6, Cores::can_steer(), timestamps))
        })??;
        Ok(Forwarding { namespace, ipv6, steering, timestamps })
    }

    /// In a host's namespace: creates its device `name` for that end of a link, down.
    pub(crate) fn add_device(
        &self,
        netlink: &Netlink,
        name: &str,
        link: usize,
        end: usize,
        longest_train: Option<u32>,
    ) -> io::Result<()> {
        let peer = device(link, end);
        let pair = Veth { name, peer: &peer, address: address(link, end), longest_train };
        netlink.add_veth(pair, &self.namespace)
    }

    /// Connects the devices of all links, and returns what carries the packets of each
    /// direction.
    pub(crate) fn connect(&self, plan: &Plan) -> io::Result<Vec<[Box<QueueEnds>; 2]>> {
        self.namespace.run(|| {
            let netlink = Netlink::open()?;
            let mut queues = Vec::new();
            for (link, path) in plan.links.iter().map(|link| &link.path).enumerate() {
                for end in [0, 1] {
                    let name = device(link, end);
                    if self.ipv6 {
                        // No router solicitations or multicast reports.
                        sysctl::write(&format!("net.ipv6.conf.{name}.addr_gen_mode"), "1")?;
                    }
                    netlink.bring_up(netlink.index(&name)?, Some(path.mtu()), None)?;
                }
                for direction in [LinkDirection::Up, LinkDirection::Down] {
                    let (from, to) = ends(direction);
                    let to = netlink.index(&device(link, to))?;
                    netlink.forward(&device(link, from), to, table(link, direction), self.ipv6)?;
                    queues.push((device(link, from), numbers(link, direction)?.held));
                }
            }
            queue_rules::install(&queues)?;
            // A kernel that does not list its queues could lose packets unseen.
            packet_queue::lost(&[])?;
            let carriers = (0..plan.links.len()).map(|link| {
                let carrier = |direction| carrier(&netlink, link, direction);
                Ok([carrier(LinkDirection::Up)?, carrier(LinkDirection::Down)?])
            });
            carriers.collect::<io::Result<_>>()
        })?
    }

    /// Returns the packets that the devices and the queues of a link have dropped here.
    pub(crate) fn drops(&self, link: usize) -> Result<u64, LabError> {
        let names = [0, 1].map(|end| device(link, end));
        let dropped = || {
            let queues = [numbers(link, LinkDirection::Up)?, numbers(link, LinkDirection::Down)?];
            let lost = packet_queue::lost(queues.map(QueueNumbers::uncounted).as_flattened())?;
            let drops = Netlink::open()?.drops(&names)?;
            Ok(lost + drops.iter().map(DeviceDrops::total).sum::<u64>())
        };
        self.namespace
            .run(dropped)
            .and_then(|drops| drops)
            .map_err(LabError::system("reading the counters of a link"))
    }
}

fn carrier(netlink: &Netlink, link: usize, direction: LinkDirection) -> io::Result<Box<QueueEnds>> {
    let (from, to) = ends(direction);
    let sizes = TrainSizes::open(netlink.index(&device(link, from))?)?;
    let sender = PacketSender::open(&device(link, to), address(link, to))?;
    let carrier = QueueEnds::open(numbers(link, direction)?, sizes, sender)?;
    let buffer = carrier.buffer()?;
    if buffer < MIN_BUFFER {
        return Err(io::Error::other(format!(
            "the buffer for waiting packets is only {} KiB; raise net.core.rmem_max to 4 MiB",
            buffer >> 10
        )));
    }
    Ok(Box::new(carrier))
}

/// The ends that a direction leads from and to.
const fn ends(direction: LinkDirection) -> (usize, usize) {
    match direction {
        LinkDirection::Up => (0, 1),
        LinkDirection::Down => (1, 0),
    }
}

/// Name of the device towards an end of a link.
fn device(link: usize, end: usize) -> String {
    format!("{link}{}", if end == 0 { 'a' } else { 'b' })
}

/// A locally administered Ethernet address (IEEE 802, section 8.4).
fn address(link: usize, end: usize) -> [u8; 6] {
    let [.., high, low] = link.to_be_bytes();
    [0x02, 0, high, low, 0, u8::from(end == 1)]
}

/// Routing tables from 1000 on are free: the kernel has 253 to 255.
fn table(link: usize, direction: LinkDirection) -> u32 {
    let number = 2 * link + usize::from(direction == LinkDirection::Down);
    u32::try_from(number).unwrap_or(u32::MAX / 2).saturating_add(1000)
}

fn numbers(link: usize, direction: LinkDirection) -> io::Result<QueueNumbers> {
    let first = 6 * link + if direction == LinkDirection::Up { 0 } else { 3 };
    let number = |number: usize| u16::try_from(number).map_err(io::Error::other);
    Ok(QueueNumbers { held: number(first)?, cut: number(first + 1)?, moved: number(first + 2)? })
}
