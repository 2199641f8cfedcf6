//! Configuration of a test.

mod check;
mod transport;

pub use transport::{EndAfter, RisingTrain, TcpOptions, Transport, UdpOptions, UdtOptions};

use crate::{auth::Credentials, control::Keepalive};
use control::{Algorithm, NATIVE_ALGORITHMS, UDT_ALGORITHMS};
use host::resolve::Family;
use iperf3_proto::{Params, datagram};
use record::{Direction, Protocol, TestSpec};
use serde::{Deserialize, Serialize};
use std::{net::IpAddr, ops::RangeInclusive, path::PathBuf, time::Duration};
use units::{BitRate, ByteCount};

/// Seconds of a test by default; recorded where bytes or blocks end it.
const DEFAULT_SECONDS: f64 = 10.0;

/// Configuration of one test. [`ClientConfig::new`] has the defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientConfig {
    /// The server's name or address.
    pub host: String,
    /// Its port; of a range, the next one is tried if a port is busy or closed.
    pub ports: RangeInclusive<u16>,
    /// Local address to connect from.
    pub bind: Option<IpAddr>,
    /// Network interface (`--bind-dev`).
    pub device: Option<String>,
    /// Local port of the first stream; the next ones follow (`--cport`).
    pub local_port: Option<u16>,
    /// Which IP version to use.
    pub family: Family,
    /// What carries the data.
    pub transport: Transport,
    /// Direction of the data.
    pub direction: Direction,
    /// What ends the test.
    pub end: EndAfter,
    /// Warm-up in seconds that the result omits: 0 to 600.
    pub omit_seconds: u32,
    /// Parallel streams in each direction: 1 to 128.
    pub streams: u32,
    /// Socket buffer size at both ends; `None` for the kernel's autotuning.
    pub window: Option<ByteCount>,
    /// Bytes of one write or datagram; `None` for 128 KiB, and for the control
    /// connection's MSS with UDP.
    pub block: Option<ByteCount>,
    /// Rate of each stream; `None` is unlimited.
    pub rate: Option<BitRate>,
    /// Blocks sent back to back at a limited rate, 1 to 1000.
    pub burst: Option<u32>,
    /// Pacing rate of the kernel (`--fq-rate`).
    pub fq_rate: Option<BitRate>,
    /// Congestion control of the sender; `None` for its host's default.
    pub congestion: Option<String>,
    /// Whether a test that the path or the server ends early still has a result: what this end
    /// measured, with [`Report::incomplete`](crate::client::Report::incomplete).
    pub keeps_incomplete: bool,
    /// The IP header's traffic class (RFC 2474: the DSCP is its upper six bits).
    pub tos: Option<u8>,
    /// IPv6 flow label, 1 to 2^20 - 1.
    pub flow_label: Option<u32>,
    /// Whether IP fragmentation of datagrams is forbidden.
    pub dont_fragment: bool,
    /// Whether the payload is a repeating pattern instead of random.
    pub repeating_payload: bool,
    /// File to send instead of generated data, or to write received data to (`-F`).
    pub file: Option<PathBuf>,
    /// Bytes of the file that are read before any of them is sent; `None`: a block.
    pub file_chunk: Option<ByteCount>,
    /// CPU core of this end's threads (`-A`).
    pub core: Option<u32>,
    /// CPU core of the server's threads.
    pub server_core: Option<u32>,
    /// Prefix of iperf3's output lines.
    pub title: Option<String>,
    /// Text that iperf3 includes in its JSON.
    pub extra_data: Option<String>,
    /// Whether the server's output is requested.
    pub get_server_output: bool,
    /// Login, for a server that requires one; its password is in no serialised request.
    #[serde(skip)]
    pub credentials: Option<Credentials>,
    /// Token, for a longhaul server that requires one. The server gets a proof that is valid
    /// there and nowhere else.
    pub token: Option<String>,
    /// The server's name in that proof, if `host` is an address that it was resolved to.
    pub server_name: Option<String>,
    /// Timeout without received data, if this end receives.
    #[serde(with = "units::seconds")]
    pub receive_timeout: Duration,
    /// TCP keepalive of the control connection; `None` for the default.
    pub keepalive: Option<Keepalive>,
    /// Interval between TCP_INFO samples after the first 2 s, which are sampled every 10 ms:
    /// at least 1 ms.
    #[serde(with = "units::seconds")]
    pub sample_every: Duration,
    /// Interval between interval reports: at least 10 ms.
    #[serde(with = "units::seconds")]
    pub report_every: Duration,
    /// Connect timeout.
    #[serde(with = "units::seconds")]
    pub connect_timeout: Duration,
    /// How long the CPU load is measured before the test; zero to skip it.
    #[serde(with = "units::seconds")]
    pub watch_load: Duration,
}

impl Default for ClientConfig {
    /// Without the host.
    fn default() -> Self {
        ClientConfig::new("")
    }
}

impl ClientConfig {
    /// Ten seconds of TCP over one stream to `host`, at an unlimited rate.
    #[must_use]
    pub fn new(host: impl Into<String>) -> Self {
        ClientConfig {
            host: host.into(),
            ports: iperf3_proto::DEFAULT_PORT..=iperf3_proto::DEFAULT_PORT,
            bind: None,
            device: None,
            local_port: None,
            family: Family::Any,
            transport: Protocol::Tcp.into(),
            direction: Direction::Forward,
            end: EndAfter::Seconds(DEFAULT_SECONDS),
            omit_seconds: 0,
            streams: 1,
            window: None,
            block: None,
            rate: None,
            burst: None,
            fq_rate: None,
            congestion: None,
            keeps_incomplete: false,
            tos: None,
            flow_label: None,
            dont_fragment: false,
            repeating_payload: false,
            file: None,
            file_chunk: None,
            core: None,
            server_core: None,
            title: None,
            extra_data: None,
            get_server_output: false,
            credentials: None,
            token: None,
            server_name: None,
            receive_timeout: Duration::from_secs(120),
            keepalive: None,
            sample_every: Duration::from_millis(100),
            report_every: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(10),
            watch_load: Duration::from_millis(150),
        }
    }

    /// Whether this end sends, in one direction at least.
    pub(crate) fn sends(&self) -> bool {
        self.direction != Direction::Reverse
    }

    /// Whether this end receives, in one direction at least.
    pub(crate) fn receives(&self) -> bool {
        self.direction != Direction::Forward
    }

    fn asks_for_limit(&self) -> bool {
        let asked = self.transport.tcp().is_some_and(|tcp| tcp.limits_unsent && !tcp.mptcp);
        asked && self.window.is_none()
    }

    /// The request as recorded in the measurement.
    pub(crate) fn spec(&self, port: u16) -> TestSpec {
        let tcp = self.transport.tcp().unwrap_or_default();
        TestSpec {
            is_part_of_both: false,
            target: self.host.clone(),
            port,
            protocol: self.transport.protocol(),
            direction: self.direction,
            seconds: self.end.seconds().unwrap_or(DEFAULT_SECONDS),
            end: self.end.into(),
            omit_s: self.omit_seconds,
            streams: self.streams,
            window_bytes: self.window,
            limits_unsent: self.asks_for_limit(),
            rate_bps: self.rate,
            burst: self.burst,
            fq_rate_bps: self.fq_rate,
            congestion: self.congestion.clone(),
            mss_bytes: tcp.mss.map(|mss| ByteCount::from_bytes(mss.into())),
            block_bytes: self.block,
            zerocopy: tcp.zerocopy,
            skip_rx_copy: tcp.skip_rx_copy,
            nodelay: tcp.nodelay,
            native: self.is_native(),
            mptcp: tcp.mptcp,
            tos: self.tos,
            flow_label: self.flow_label,
            dont_fragment: self.dont_fragment,
            file: self.file.as_ref().map(|file| file.to_string_lossy().into_owned()),
            bind: self.bind.map(|address| address.to_string()),
            device: self.device.clone(),
        }
    }

    /// The test over TCP that replaces this one, if UDT carries it and may be replaced. UDT's own
    /// congestion controls do not exist there: the host's default replaces them.
    #[must_use]
    pub fn fallback(&self) -> Option<Self> {
        let tcp = self.transport.udt().filter(|_| !self.is_native())?.fallback?;
        let udt_only = |name: &str| matches!(Algorithm::for_udt(name), Some(Algorithm::Udt(_)));
        let congestion = self.congestion.clone().filter(|name| !udt_only(name));
        Some(ClientConfig { transport: Transport::Tcp(tcp), congestion, ..self.clone() })
    }

    /// Whether a UDT test is in native mode: BBR is only there.
    #[must_use]
    pub fn is_native(&self) -> bool {
        let bbr = [Algorithm::Bbr.name(), Algorithm::Bbr3.name()];
        let is_bbr = || self.congestion.as_deref().is_some_and(|name| bbr.contains(&name));
        self.transport.udt().is_some_and(|udt| udt.native || is_bbr())
    }

    /// The parameters sent to the server.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked to lie within a day of seconds first"
    )]
    pub(crate) fn params(&self, control_mss: u32) -> Params {
        let int = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let bytes = |bytes: Option<ByteCount>| bytes.map_or(0, |bytes| int(bytes.bytes()));
        let tcp = self.transport.tcp().unwrap_or_default();
        let options = self.transport.udp().unwrap_or_default();
        let udp = self.transport.udp().is_some();
        let (time, num, blockcount) = match self.end {
            // Whole seconds on the wire; the client ends the test at the exact time.
            EndAfter::Seconds(seconds) => (seconds.ceil() as i64, 0, 0),
            EndAfter::Bytes(bytes) => (0, int(bytes.bytes()), 0),
            EndAfter::Blocks(blocks) => (0, 0, int(blocks)),
        };
        let block = self.block.unwrap_or_else(|| {
            ByteCount::from_bytes(u64::from(match control_mss {
                _ if !udp => iperf3_proto::DEFAULT_BLOCK,
                // A segment's payload fits a datagram: UDP's header is shorter than TCP's.
                mss if i64::from(mss) >= datagram::MIN_LENGTH
                    && i64::from(mss) <= datagram::MAX_LENGTH =>
                {
                    mss
                }
                _ => datagram::DEFAULT_LENGTH,
            }))
        });
        let mut longhaul = crate::extra::announcement();
        let off = |on: bool| (!on).then_some(false);
        if self.transport.udt().is_some() {
            let native = self.is_native();
            let default = if native { NATIVE_ALGORITHMS[0] } else { UDT_ALGORITHMS[0] };
            longhaul.udt =
                Some(self.congestion.clone().unwrap_or_else(|| default.name().to_owned()));
            longhaul.native = native.then_some(true);
        }
        longhaul.segment = off(options.segment);
        longhaul.coalesce = off(options.coalesce);
        longhaul.train = options.train.map(|train| train.from.bps());
        longhaul.limit_unsent = self.asks_for_limit().then_some(true);
        longhaul.zerocopy = off(tcp.zerocopy != Some(false));
        let rate = |rate: Option<BitRate>| rate.map_or(0, |rate| int(rate.bps()));
        Params {
            tcp: !udp,
            udp,
            omit: i64::from(self.omit_seconds),
            server_affinity: self.server_core.map(i64::from),
            time,
            num,
            blockcount,
            mss: tcp.mss.map_or(0, i64::from),
            nodelay: tcp.nodelay,
            parallel: i64::from(self.streams),
            reverse: self.direction == Direction::Reverse,
            bidirectional: self.direction == Direction::Both,
            mptcp: tcp.mptcp,
            window: bytes(self.window),
            len: int(block.bytes()),
            bandwidth: rate(self.rate),
            fqrate: rate(self.fq_rate),
            pacing_timer: 1000,
            burst: self.burst.map_or(0, i64::from),
            tos: self.tos.map_or(0, i64::from),
            flowlabel: self.flow_label.map_or(0, i64::from),
            title: self.title.clone(),
            extra_data: self.extra_data.clone(),
            congestion: self.congestion.clone(),
            get_server_output: self.get_server_output,
            udp_counters_64bit: options.wide_counters,
            repeating_payload: self.repeating_payload,
            zerocopy: i64::from(tcp.zerocopy == Some(true)),
            dont_fragment: self.dont_fragment,
            skip_rx_copy: i64::from(tcp.skip_rx_copy),
            client_version: Some(format!("longhaul {}", crate::VERSION)),
            longhaul: Some(longhaul),
            ..Params::default()
        }
    }
}
