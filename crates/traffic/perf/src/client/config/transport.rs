//! What carries a test and what ends it, each with the options that it alone has.

use record::{EndCondition, Protocol};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// What carries a test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP.
    Tcp(TcpOptions),
    /// Numbered datagrams.
    Udp(UdpOptions),
    /// UDT: reliable, over UDP.
    Udt(UdtOptions),
}

/// Options of TCP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TcpOptions {
    /// Maximum segment size in bytes (`-M`).
    pub mss: Option<u32>,
    /// Whether Nagle's algorithm is disabled (`-N`).
    pub nodelay: bool,
    /// Whether connections use Multipath TCP (RFC 8684).
    pub mptcp: bool,
    /// Whether an end that sends limits its unsent data while the path is short, unless the
    /// test's window sets its buffer, or it uses Multipath TCP.
    pub limits_unsent: bool,
    /// Whether an end sends with zero copy (`-Z`); `None` for whichever uses less CPU.
    pub zerocopy: Option<bool>,
    /// Whether receivers discard the data without copying it.
    pub skip_rx_copy: bool,
    /// Timeout of unacknowledged data (RFC 5482); `None` for the kernel's default.
    pub send_timeout: Option<Duration>,
}

/// Options of UDP.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UdpOptions {
    /// A rate that rises, instead of a constant one.
    pub train: Option<RisingTrain>,
    /// Whether datagrams have 64-bit sequence numbers.
    pub wide_counters: bool,
    /// Whether to use segmentation offload (GSO) where available.
    pub segment: bool,
    /// Whether to use receive offload (GRO) where available.
    pub coalesce: bool,
}

/// A train of datagrams whose rate rises to the test's rate with the bytes sent.
///
/// The receiver records when each datagram arrived ([`record::Stream::train`]) and ends the test
/// after enough losses; its bytes end it otherwise. One stream in one direction, with a number of
/// bytes; needs longhaul at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RisingTrain {
    /// The first rate.
    pub from: BitRate,
    /// When the test ends at the latest, in seconds: what is lost never reaches the number of
    /// bytes.
    pub max_seconds: f64,
}

/// Options of UDT.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UdtOptions {
    /// Whether it is in its native mode, which BBR requires.
    pub native: bool,
    /// Whether the test ends with [`PerfError::Policed`](crate::PerfError::Policed) where the
    /// path may police UDP. It is looked for where this end sends.
    pub stops_if_policed: bool,
    /// Largest IP packet that the path is known to carry, bytes: UDT's are no longer. The server
    /// agrees to the smaller size of both ends.
    pub path_mtu: Option<u32>,
    /// Options of the test over TCP that replaces this one where UDP is blocked, or policed and
    /// TCP carries more; `None` to stay with UDT. Never in native mode, which is encrypted.
    pub fallback: Option<TcpOptions>,
}

/// What ends a test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndAfter {
    /// Time, warm-up excluded: above 0, at most 86400 s.
    Seconds(f64),
    /// Bytes over all streams of a direction.
    Bytes(ByteCount),
    /// Blocks over all streams of a direction.
    Blocks(u64),
}

impl Default for UdpOptions {
    fn default() -> Self {
        UdpOptions { train: None, wide_counters: false, segment: true, coalesce: true }
    }
}

impl Default for UdtOptions {
    fn default() -> Self {
        UdtOptions {
            native: false,
            stops_if_policed: false,
            path_mtu: None,
            fallback: Some(TcpOptions::default()),
        }
    }
}

impl Transport {
    /// The protocol.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        match self {
            Transport::Tcp(_) => Protocol::Tcp,
            Transport::Udp(_) => Protocol::Udp,
            Transport::Udt(_) => Protocol::Udt,
        }
    }

    /// The options of TCP, if that carries the test.
    #[must_use]
    pub const fn tcp(&self) -> Option<TcpOptions> {
        if let Transport::Tcp(options) = *self { Some(options) } else { None }
    }

    /// The options of UDP, if that carries the test.
    #[must_use]
    pub const fn udp(&self) -> Option<UdpOptions> {
        if let Transport::Udp(options) = *self { Some(options) } else { None }
    }

    /// The options of UDT, if that carries the test.
    #[must_use]
    pub const fn udt(&self) -> Option<UdtOptions> {
        if let Transport::Udt(options) = *self { Some(options) } else { None }
    }

    /// The options of TCP where the test uses it, at once or as the fallback.
    pub const fn any_tcp(&mut self) -> Option<&mut TcpOptions> {
        match self {
            Transport::Tcp(options) => Some(options),
            Transport::Udt(options) => options.fallback.as_mut(),
            Transport::Udp(_) => None,
        }
    }
}

impl From<Protocol> for Transport {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Tcp => Transport::Tcp(TcpOptions::default()),
            Protocol::Udp => Transport::Udp(UdpOptions::default()),
            Protocol::Udt => Transport::Udt(UdtOptions::default()),
        }
    }
}

impl EndAfter {
    /// The time, if that ends the test.
    #[must_use]
    pub const fn seconds(self) -> Option<f64> {
        if let EndAfter::Seconds(seconds) = self { Some(seconds) } else { None }
    }
}

impl From<EndAfter> for EndCondition {
    fn from(end: EndAfter) -> Self {
        match end {
            EndAfter::Seconds(_) => EndCondition::Time,
            EndAfter::Bytes(bytes) => EndCondition::Bytes(bytes),
            EndAfter::Blocks(blocks) => EndCondition::Blocks(blocks),
        }
    }
}
