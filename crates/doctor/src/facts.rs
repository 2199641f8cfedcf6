//! Everything that was seen, without a judgement. What could not be seen says
//! why instead.

use host::ethtool;
use serde::Serialize;
use std::collections::BTreeMap;
use units::{BitRate, ByteCount, Rtt};

/// A value, or why it cannot be had.
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
    /// A fact that cannot be had.
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

    /// Why there is none; empty where there is one.
    #[must_use]
    pub fn why_not(&self) -> &str {
        match self {
            Fact::Seen(_) => "",
            Fact::Unread { not_readable } => not_readable,
        }
    }

    /// The value made into another.
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
                NotFound => "it does not exist here".to_owned(),
                PermissionDenied => "this user may not read it".to_owned(),
                Unsupported => "the driver does not tell".to_owned(),
                _ => error.to_string(),
            }),
        }
    }
}

/// The kernel's settings by their names with dots.
pub type Settings = BTreeMap<String, Fact<String>>;

/// A host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    /// `uname -r`.
    pub kernel: Fact<String>,
    /// `/proc/cmdline`.
    pub boot_line: Fact<String>,
    /// The kernel's settings.
    pub settings: Settings,
    /// Whether they may be set from here; otherwise why not.
    pub may_set: Fact<bool>,
    /// Memory.
    pub memory: Memory,
    /// Processors.
    pub cpu: Cpu,
    /// The device that the traffic leaves by.
    pub device: Fact<Device>,
    /// The way to the far end, where one was named.
    pub path: Option<PathFacts>,
    /// The disk, where a folder was named.
    pub disk: Option<Fact<DiskFacts>>,
}

/// Memory of the machine, and of TCP.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memory {
    /// All of it.
    pub total: Fact<ByteCount>,
    /// What programs can still have without swapping.
    pub available: Fact<ByteCount>,
    /// Bytes of a page, in which `tcp_mem` counts.
    pub page_bytes: u64,
    /// What TCP holds now (proc(5), `/proc/net/sockstat`).
    pub tcp_holds: Fact<ByteCount>,
    /// Share of the last 10 s in which some program waited for memory, in % (PSI).
    pub stalled_percent: Fact<f64>,
    /// `TcpExt` counters since boot, by their names in `/proc/net/netstat`.
    pub tcp_counters: Fact<BTreeMap<String, u64>>,
}

/// Processors.
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Why this one.
    pub chosen: String,
    /// Whether it carries: `up`, `down`, `unknown`.
    pub state: Fact<String>,
    /// Whether it has hardware of its own behind it.
    pub is_hardware: bool,
    /// What kind the kernel calls it (`DEVTYPE`): wlan, bridge, bond, vlan.
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
    /// Counters since the device is there, by their names in `statistics/`.
    pub counters: BTreeMap<String, u64>,
    /// Where it hangs on USB.
    pub usb: Option<Usb>,
    /// Where it sits on PCI Express.
    pub pci: Option<Pci>,
    /// Where it is Wi-Fi.
    pub wireless: Option<Wireless>,
    /// Its interrupts.
    pub interrupts: Fact<Interrupts>,
    /// What its driver tells.
    pub nic: Nic,
}

/// What a driver tells of its device (ethtool(8)).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Nic {
    /// Places for packets.
    pub rings: Fact<ethtool::Rings>,
    /// Pause frames.
    pub pause: Fact<ethtool::Pause>,
    /// Trains of packets.
    pub offloads: Fact<ethtool::Offloads>,
    /// Sleep between packets.
    pub eee: Fact<ethtool::Eee>,
    /// How interrupts are gathered.
    pub coalescing: Fact<ethtool::Coalescing>,
    /// What both ends of the cable can do.
    pub line: Fact<ethtool::Line>,
    /// The queue discipline at its root (tc(8)).
    pub qdisc: Fact<String>,
    /// The rate at which a Wi-Fi device sends now.
    pub wireless_bps: Fact<BitRate>,
}

impl Nic {
    /// One of which nothing is known.
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
            wireless_bps: Fact::unread(why),
        }
    }
}

/// An adapter on USB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Usb {
    /// The bus' speed for it, Mbit/s: 12, 480, 5000, 10000.
    pub bus_mbps: Fact<u32>,
    /// `0bda:8156`.
    pub id: String,
    /// What it calls itself.
    pub product: String,
}

/// A card on PCI Express.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pci {
    /// Transfers of a lane, GT/s, and how many lanes.
    pub now: Fact<(f64, u32)>,
    /// The most that the card can.
    pub able: Fact<(f64, u32)>,
}

/// A Wi-Fi device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wireless {
    /// The signal, dBm.
    pub signal_dbm: Fact<i32>,
}

/// Who handles a device's interrupts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interrupts {
    /// How many lines it has.
    pub lines: usize,
    /// How many of its interrupts each processor handled, since boot.
    pub by_cpu: Vec<u64>,
}

/// The way to the far end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathFacts {
    /// The far end as it was named.
    pub host: String,
    /// Its address.
    pub address: String,
    /// How round trips were taken: `icmp` or `tcp`.
    pub method: String,
    /// The shortest round trip.
    pub rtt_ns: Fact<Rtt>,
    /// Probes sent.
    pub sent: u64,
    /// Probes lost.
    pub lost: u64,
    /// The largest packet that arrives.
    pub mtu: Fact<Mtu>,
    /// What a handshake agreed on.
    pub handshake: Fact<Shook>,
}

/// The largest packet of a way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mtu {
    /// The device's own MTU, with which it began; 65535 at most, as IP has no more.
    pub tried: u32,
    /// The largest that arrived.
    pub arrived: Option<u32>,
    /// Who called larger ones too big, and which MTU it named.
    pub told: Option<(String, u32)>,
    /// Echoes sent to find it.
    pub sent: u16,
}

/// What a handshake with the far end agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shook {
    /// The port.
    pub port: u16,
    /// Whether window scaling holds (RFC 7323).
    pub window_scale: bool,
    /// Shift of the far end's windows, as it arrived.
    pub peer_shift: u8,
    /// Shift of our own windows.
    pub own_shift: u8,
    /// Whether selective acknowledgements hold.
    pub sack: bool,
    /// Whether timestamps hold.
    pub timestamps: bool,
    /// Whether ECN was agreed on.
    pub ecn: bool,
    /// The largest segment to send, bytes, options of each segment included.
    pub segment_bytes: u32,
}

/// How fast a folder's disk is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiskFacts {
    /// The folder.
    pub folder: String,
    /// Bytes written and read.
    pub bytes: ByteCount,
    /// Writing, with the time until the disk had it all.
    pub write_bps: BitRate,
    /// Reading it back.
    pub read_bps: BitRate,
    /// How the page cache was kept out; where it was not, why.
    pub method: String,
    /// Whether the page cache or memory answered, and not a disk.
    pub is_memory: bool,
}
