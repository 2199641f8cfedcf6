//! The facts as read, without a verdict. A fact that could not be read holds the reason.

use record::nic;
use serde::Serialize;
use std::collections::BTreeMap;
use units::{BitRate, ByteCount, Rtt};

/// A value, or why it is unavailable.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Fact<T> {
    /// It was read.
    Seen(T),
    /// It was not.
    Unread {
        /// Why, in words.
        not_readable: String,
    },
}

impl<T> Fact<T> {
    /// An unavailable fact.
    pub fn unread(why: impl Into<String>) -> Self {
        Fact::Unread { not_readable: why.into() }
    }

    /// The value, where there is one.
    pub fn seen(&self) -> Option<&T> {
        match self {
            Fact::Seen(value) => Some(value),
            Fact::Unread { .. } => None,
        }
    }

    /// Why there is no value; empty where there is one.
    #[must_use]
    pub fn why_not(&self) -> &str {
        match self {
            Fact::Seen(_) => "",
            Fact::Unread { not_readable } => not_readable,
        }
    }

    /// The value, mapped.
    pub fn map<U>(self, to: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Seen(value) => Fact::Seen(to(value)),
            Fact::Unread { not_readable } => Fact::Unread { not_readable },
        }
    }
}

impl<T> From<std::io::Result<T>> for Fact<T> {
    fn from(result: std::io::Result<T>) -> Self {
        use std::io::ErrorKind::{NotFound, PermissionDenied, Unsupported};
        match result {
            Ok(value) => Fact::Seen(value),
            Err(error) => Fact::unread(match error.kind() {
                NotFound => "not present on this host".to_owned(),
                PermissionDenied => "no permission to read it".to_owned(),
                Unsupported => "not reported by the driver".to_owned(),
                _ => error.to_string(),
            }),
        }
    }
}

/// Devices below a virtual one that are examined.
pub const MAX_PORTS: usize = 8;

/// The kernel's settings by their names with dots.
pub type Settings = BTreeMap<String, Fact<String>>;

/// A host.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    /// `uname -r`.
    pub kernel: Fact<String>,
    /// `/proc/cmdline`.
    pub boot_line: Fact<String>,
    /// The kernel's settings.
    pub settings: Settings,
    /// Whether this process may change them; otherwise why not.
    pub may_set: Fact<bool>,
    /// Memory.
    pub memory: Memory,
    /// Processors.
    pub cpu: Cpu,
    /// The device that sends the traffic.
    pub device: Fact<Device>,
    /// The hardware below a virtual device, as far as it is up: ports of a bridge, members of a
    /// bond, the device of a VLAN; at most [`MAX_PORTS`].
    pub ports: Vec<Device>,
    /// The path to the far end, where one was given.
    pub path: Option<PathFacts>,
    /// The disk, where a directory was given.
    pub disk: Option<Fact<DiskFacts>>,
}

/// Memory of the machine, and of TCP.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memory {
    /// All of it.
    pub total: Fact<ByteCount>,
    /// Available to programs without swapping.
    pub available: Fact<ByteCount>,
    /// Bytes of a page, in which `tcp_mem` counts.
    pub page_bytes: u64,
    /// Memory TCP uses now (proc(5), `/proc/net/sockstat`).
    pub tcp_holds: Fact<ByteCount>,
    /// Share of the last 10 s in which some program waited for memory, in % (PSI).
    pub stalled_percent: Fact<f64>,
    /// `TcpExt` counters since boot, by their names in `/proc/net/netstat`.
    pub tcp_counters: Fact<BTreeMap<String, u64>>,
}

/// Processors.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cpu {
    /// How many are online.
    pub online: Fact<usize>,
    /// The governors in use, each with how many processors it has.
    pub governors: Fact<BTreeMap<String, usize>>,
    /// The driver of frequencies.
    pub driver: Fact<String>,
    /// The least `scaling_max_freq`, MHz: what the processors may go up to.
    pub allowed_mhz: Fact<u64>,
    /// The largest `cpuinfo_max_freq`, MHz: what they could.
    pub able_mhz: Fact<u64>,
    /// Whether cores run two threads each.
    pub smt: Fact<bool>,
    /// The load of the last minute (proc_loadavg(5)).
    pub load: Fact<f64>,
    /// Packets dropped because a processor's queue was full, since boot (`softnet_stat`).
    pub backlog_drops: Fact<u64>,
}

/// One network device.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Why this one.
    pub chosen: String,
    /// Operational state: `up`, `down`, `unknown`.
    pub state: Fact<String>,
    /// Whether it is a hardware device.
    pub is_hardware: bool,
    /// The kernel's type (`DEVTYPE`): wlan, bridge, bond, vlan.
    pub kind: Option<String>,
    /// Devices beneath it.
    pub lower: Vec<String>,
    /// Mbit/s.
    pub speed_mbps: Fact<u32>,
    /// `full`, `half`.
    pub duplex: Fact<String>,
    /// Bytes of an IP packet.
    pub mtu: Fact<u32>,
    /// The kernel's driver.
    pub driver: Fact<String>,
    /// Queues of received packets.
    pub rx_queues: usize,
    /// Counters since the device appeared, by their names in `statistics/`.
    pub counters: BTreeMap<String, u64>,
    /// Its USB connection, if any.
    pub usb: Option<Usb>,
    /// Its PCI Express slot, if any.
    pub pci: Option<Pci>,
    /// Its Wi-Fi state, if any.
    pub wireless: Option<Wireless>,
    /// Its interrupts.
    pub interrupts: Fact<Interrupts>,
    /// What its driver reports.
    pub nic: Nic,
}

/// What a driver reports about its device (ethtool(8)).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Nic {
    /// Ring sizes.
    pub rings: Fact<nic::Rings>,
    /// Pause frames.
    pub pause: Fact<nic::Pause>,
    /// Offloads.
    pub offloads: Fact<nic::Offloads>,
    /// Energy-Efficient Ethernet.
    pub eee: Fact<nic::Eee>,
    /// Interrupt coalescing.
    pub coalescing: Fact<nic::Coalescing>,
    /// Link modes of both ends.
    pub line: Fact<nic::Line>,
    /// The queue discipline at its root (tc(8)).
    pub qdisc: Fact<String>,
    /// How a Wi-Fi device sends now.
    pub wifi: Fact<nic::WifiLink>,
}

impl Nic {
    /// A device whose driver reports nothing.
    #[must_use]
    pub fn unread(why: &str) -> Self {
        Nic {
            rings: Fact::unread(why),
            pause: Fact::unread(why),
            offloads: Fact::unread(why),
            eee: Fact::unread(why),
            coalescing: Fact::unread(why),
            line: Fact::unread(why),
            qdisc: Fact::unread(why),
            wifi: Fact::unread(why),
        }
    }
}

/// An adapter on USB.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Usb {
    /// The bus' speed for it, Mbit/s: 12, 480, 5000, 10000.
    pub bus_mbps: Fact<u32>,
    /// `0bda:8156`.
    pub id: String,
    /// The product name.
    pub product: String,
}

/// A card on PCI Express.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pci {
    /// Transfers of a lane, GT/s, and how many lanes.
    pub now: Fact<(f64, u32)>,
    /// The card's maximum.
    pub able: Fact<(f64, u32)>,
}

/// A Wi-Fi device.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wireless {
    /// The signal, dBm.
    pub signal_dbm: Fact<i32>,
}

/// Which CPUs handle a device's interrupts.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interrupts {
    /// Number of IRQs.
    pub lines: usize,
    /// How many of its interrupts each processor handled, since boot.
    pub by_cpu: Vec<u64>,
}

/// The path to the far end.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathFacts {
    /// The far end as selected with --device.
    pub host: String,
    /// Its address.
    pub address: String,
    /// How RTTs were measured: `icmp` or `tcp`.
    pub method: String,
    /// The shortest round trip.
    pub rtt_ns: Fact<Rtt>,
    /// The shortest of the echo requests, where they were sent and answered.
    pub echo_rtt_ns: Fact<Rtt>,
    /// Probes sent.
    pub sent: u64,
    /// Probes lost.
    pub lost: u64,
    /// The largest packet that arrives.
    pub mtu: Fact<Mtu>,
    /// TCP options negotiated by a handshake.
    pub handshake: Fact<HandshakeFacts>,
}

/// The path MTU search.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mtu {
    /// The device's own MTU, with which it began; 65535 at most, as IP has no more.
    pub tried: u32,
    /// The largest that was answered.
    pub arrived: Option<u32>,
    /// The router that reported larger packets as too big, and the MTU it named.
    pub told: Option<(String, u32)>,
    /// Echoes sent to find it.
    pub sent: u16,
}

/// TCP options negotiated with the far end.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HandshakeFacts {
    /// The port.
    pub port: u16,
    /// Whether window scaling was negotiated (RFC 7323).
    pub window_scale: bool,
    /// Shift of the far end's windows, as it arrived.
    pub peer_shift: u8,
    /// Shift of our own windows.
    pub own_shift: u8,
    /// Whether SACK was negotiated.
    pub sack: bool,
    /// Whether timestamps were negotiated.
    pub timestamps: bool,
    /// Whether ECN was negotiated.
    pub ecn: bool,
    /// The largest segment to send, bytes, options of each segment included.
    pub segment_bytes: u32,
    /// RTT of the SYN, µs; 0 if the kernel does not report it.
    pub rtt_us: u32,
}

/// Disk throughput.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiskFacts {
    /// The folder.
    pub folder: String,
    /// Bytes written and read.
    pub bytes: ByteCount,
    /// Write rate, including the final sync.
    pub write_bps: BitRate,
    /// Read rate.
    pub read_bps: BitRate,
    /// How the page cache was bypassed, or why not.
    pub method: String,
    /// Whether the file system is in memory.
    pub is_memory: bool,
}

/// The link rate that the host's device reports.
#[must_use]
pub fn link_rate(facts: &Facts) -> Option<BitRate> {
    let device = facts.device.seen()?;
    let wifi = device.wireless.as_ref().and_then(|_| device.nic.wifi.seen());
    let wireless = wifi.map(|link| link.rate_bps);
    let speed = device.speed_mbps.seen().map(|mbps| u64::from(*mbps) * 1_000_000);
    wireless.or(speed.map(BitRate::from_bps)).filter(|rate| rate.bps() > 0)
}

impl Facts {
    /// A host of which nothing can be read.
    #[must_use]
    pub fn unread(why: &str) -> Self {
        Facts {
            kernel: Fact::unread(why),
            boot_line: Fact::unread(why),
            settings: Settings::new(),
            may_set: Fact::unread(why),
            memory: Memory {
                total: Fact::unread(why),
                available: Fact::unread(why),
                page_bytes: 4096,
                tcp_holds: Fact::unread(why),
                stalled_percent: Fact::unread(why),
                tcp_counters: Fact::unread(why),
            },
            cpu: Cpu {
                online: Fact::unread(why),
                governors: Fact::unread(why),
                driver: Fact::unread(why),
                allowed_mhz: Fact::unread(why),
                able_mhz: Fact::unread(why),
                smt: Fact::unread(why),
                load: Fact::unread(why),
                backlog_drops: Fact::unread(why),
            },
            device: Fact::unread(why),
            ports: Vec::new(),
            path: None,
            disk: None,
        }
    }
}
