//! Where packets come from: an interface, a filter, a socket.

use crate::CaptureError;
use crate::framing::Framing;
use bpf::FirstHeader;
use host::ethtool;
use host::interfaces::{self, Interface};
use host::packet_socket::{PacketCounter, PacketSocket, PacketSocketOptions};
use host::resolve::{self, Family};
use std::io;
use std::net::IpAddr;
use units::ByteCount;

/// Bytes of a packet that are kept by default: the headers that an analysis reads, of the
/// longest kind. Ethernet with a VLAN tag (18), IPv6 (40), UDP (8), VXLAN (8), and inside of
/// that Ethernet with a tag (18), IPv6 (40) and TCP with all its options (60).
pub const DEFAULT_SNAPLEN: u32 = 192;

/// Longest part of a packet that is kept, as in tcpdump.
pub const MAX_SNAPLEN: u32 = 262_144;

/// Memory for packets that wait to be written. A packet of 192 bytes takes about 300: this is
/// 0.2 s of full-size packets at 10 Gbit/s, and 10 s of them in super-segments.
pub const DEFAULT_BUFFER: ByteCount = ByteCount::from_bytes(64 << 20);

/// What to capture.
#[derive(Debug, Clone)]
pub struct CaptureConfig {
    /// The interface; `any` for all.
    pub interface: String,
    /// A filter in tcpdump's syntax (`bpf`); empty for every packet.
    pub filter: String,
    /// Bytes of a packet that are kept, at most [`MAX_SNAPLEN`].
    pub snaplen: u32,
    /// Memory for packets that wait to be written.
    pub buffer: ByteCount,
    /// Use the adapter's timestamps for received packets.
    pub hardware_timestamps: bool,
    /// Receive packets to other hosts, too.
    pub promiscuous: bool,
}

impl CaptureConfig {
    /// Headers of every packet of an interface.
    #[must_use]
    pub fn headers(interface: impl Into<String>) -> Self {
        CaptureConfig {
            interface: interface.into(),
            filter: String::new(),
            snaplen: DEFAULT_SNAPLEN,
            buffer: DEFAULT_BUFFER,
            hardware_timestamps: false,
            promiscuous: false,
        }
    }
}

/// An open socket, and what its packets begin with.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) socket: PacketSocket,
    pub(crate) framing: Framing,
    /// The interface's number; 0 for all.
    pub(crate) interface: u32,
    /// The loopback's number: what it sends, it receives as well.
    pub(crate) loopback: Option<u32>,
    /// Whether it is up.
    pub(crate) up: bool,
}

/// The interface of all.
const ANY: &str = "any";

/// Most addresses of a name in a filter.
const MAX_ADDRESSES: usize = 16;

impl Source {
    /// Opens it, with its counter.
    pub(crate) fn open(config: &CaptureConfig) -> Result<(Self, PacketCounter), CaptureError> {
        let system = |step| {
            let interface = config.interface.clone();
            move |source| CaptureError::System { interface, step, source }
        };
        let all = interfaces::list().map_err(system("listing the interfaces"))?;
        let interface = find(&all, &config.interface)?;
        let framing = Framing::of(interface);
        let first = match framing {
            Framing::Ethernet => FirstHeader::Ethernet,
            Framing::Ip | Framing::Cooked => FirstHeader::Network,
        };
        let snaplen = config.snaplen.clamp(1, MAX_SNAPLEN);
        let filter = bpf::compile(&config.filter, first, snaplen, &mut addresses)?;
        if config.hardware_timestamps {
            let stamps =
                interface.is_some_and(|it| ethtool::timestamps_all(&it.name).is_ok_and(|all| all));
            if !stamps {
                let interface = config.interface.clone();
                return Err(CaptureError::NoHardwareTimestamps { interface });
            }
        }
        let loopback = all.iter().find(|it| it.loopback).map(|it| it.index);
        let options = PacketSocketOptions {
            interface: interface.map_or(0, |it| it.index),
            link_layer: framing == Framing::Ethernet,
            filter: &filter,
            ring: config.buffer,
            hardware_timestamps: config.hardware_timestamps,
            only_received: interface.is_some_and(|it| it.loopback),
            promiscuous: config.promiscuous,
        };
        let (socket, counter) =
            PacketSocket::open(&options).map_err(|source| match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    CaptureError::NotPermitted { interface: config.interface.clone() }
                }
                _ => system("opening a packet socket")(source),
            })?;
        let source = Source {
            socket,
            framing,
            interface: options.interface,
            loopback,
            up: interface.is_none_or(|it| it.up),
        };
        Ok((source, counter))
    }
}

/// The interface of that name; `None` for all.
fn find<'a>(all: &'a [Interface], name: &str) -> Result<Option<&'a Interface>, CaptureError> {
    if name == ANY {
        return Ok(None);
    }
    all.iter().find(|it| it.name == name).map(Some).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
        CaptureError::NoInterface { name: name.to_owned(), known: known.join(", ") }
    })
}

/// The addresses of a name in a filter.
fn addresses(name: &str) -> Vec<IpAddr> {
    let found = resolve::resolve(name, 0, Family::Any, None, &|| false).ok().flatten();
    let mut addresses: Vec<IpAddr> =
        found.unwrap_or_default().into_iter().map(|address| address.ip()).collect();
    addresses.sort();
    addresses.dedup();
    addresses.truncate(MAX_ADDRESSES);
    addresses
}
