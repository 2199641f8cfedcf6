//! Configuration of a test.

mod check;

use crate::{auth::Credentials, control::Keepalive};
use control::{Algorithm, NATIVE_ALGORITHMS, UDT_ALGORITHMS};
use host::resolve::Family;
use iperf3_proto::{Params, datagram};
use record::{Direction, EndCondition, Protocol, TestSpec};
use serde::{Deserialize, Serialize};
use std::{net::IpAddr, ops::RangeInclusive, path::PathBuf, time::Duration};
use units::{BitRate, ByteCount};

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
    /// Transport protocol.
    pub protocol: Protocol,
    /// Direction of the data.
    pub direction: Direction,
    /// Duration in seconds, warm-up excluded: above 0, at most 86400. Unused if
    /// `bytes` or `blocks` ends the test.
    pub seconds: f64,
    /// Warm-up in seconds that the result omits: 0 to 600.
    pub omit_seconds: u32,
    /// Bytes over all streams that end the test instead of `seconds`.
    pub bytes: Option<ByteCount>,
    /// Blocks over all streams that end the test instead of `seconds`.
    pub blocks: Option<u64>,
    /// Parallel streams in each direction: 1 to 128.
    pub streams: u32,
    /// Socket buffer size at both ends; `None` for the kernel's autotuning.
    pub window: Option<ByteCount>,
    /// Whether an end that sends limits its unsent data while the path is short, unless `window`
    /// sets its buffer.
    pub limits_unsent: bool,
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
    /// Maximum segment size in bytes (`-M`).
    pub mss: Option<u32>,
    /// Whether Nagle's algorithm is disabled (`-N`).
    pub nodelay: bool,
    /// Whether UDT is in its native mode, which BBR requires.
    pub native: bool,
    /// Whether a UDT test ends with [`PerfError::Policed`](crate::PerfError::Policed) where the
    /// path may police UDP. It is looked for where this end sends.
    pub stops_if_policed: bool,
    /// Whether a test that the path or the server ends early still has a result: what this end
    /// measured, with [`Report::incomplete`](crate::client::Report::incomplete).
    pub keeps_incomplete: bool,
    /// Whether connections use Multipath TCP (RFC 8684).
    pub mptcp: bool,
    /// The IP header's traffic class (RFC 2474: the DSCP is its upper six bits).
    pub tos: Option<u8>,
    /// IPv6 flow label, 1 to 2^20 - 1.
    pub flow_label: Option<u32>,
    /// Whether IP fragmentation of datagrams is forbidden.
    pub dont_fragment: bool,
    /// Whether TCP sends with zero copy (`-Z`); `None` for whichever uses less CPU.
    pub zerocopy: Option<bool>,
    /// Whether TCP receivers discard the data without copying it.
    pub skip_rx_copy: bool,
    /// Whether to use UDP segmentation offload (GSO) where available.
    pub segment: bool,
    /// Whether to use UDP receive offload (GRO) where available.
    pub coalesce: bool,
    /// The first rate of a train, which rises to `rate` with the bytes sent; `None` for other tests.
    /// The receiver records when each datagram arrived ([`record::Stream::train`]) and ends the
    /// test after enough losses; `bytes` end it otherwise, or `seconds`. One UDP stream in one
    /// direction; needs longhaul at the other end.
    pub train: Option<BitRate>,
    /// Whether datagrams have 64-bit sequence numbers.
    pub wide_counters: bool,
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
    /// Timeout of unacknowledged data (RFC 5482); `None` for the kernel's default.
    pub send_timeout: Option<Duration>,
    /// TCP keepalive of the control connection; `None` for the default.
    pub keepalive: Option<Keepalive>,
    /// Interval between TCP_INFO samples after the first 2 s, which are sampled every 10 ms:
    /// at least 1 ms.
    #[serde(with = "units::seconds")]
    pub sample_every: Duration,
    /// Interval between interval reports: at least 10 ms.
    #[serde(with = "units::seconds")]
    pub report_every: Duration,
    /// Largest IP packet that the path is known to carry, bytes: UDT's are no longer. The server
    /// agrees to the smaller size of both ends.
    pub path_mtu: Option<u32>,
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
            path_mtu: None,
            family: Family::Any,
            protocol: Protocol::Tcp,
            direction: Direction::Forward,
            seconds: 10.0,
            omit_seconds: 0,
            bytes: None,
            blocks: None,
            streams: 1,
            window: None,
            limits_unsent: false,
            block: None,
            rate: None,
            burst: None,
            fq_rate: None,
            congestion: None,
            mss: None,
            nodelay: false,
            native: false,
            stops_if_policed: false,
            keeps_incomplete: false,
            mptcp: false,
            tos: None,
            flow_label: None,
            dont_fragment: false,
            zerocopy: None,
            skip_rx_copy: false,
            segment: true,
            coalesce: true,
            train: None,
            wide_counters: false,
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
            send_timeout: None,
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
        let settable = self.protocol == Protocol::Tcp && !self.mptcp;
        self.limits_unsent && settable && self.window.is_none()
    }

    /// Whether time ends the test.
    pub(crate) fn is_timed(&self) -> bool {
        self.bytes.is_none() && self.blocks.is_none()
    }

    /// The request as recorded in the measurement.
    pub(crate) fn spec(&self, port: u16) -> TestSpec {
        TestSpec {
            is_part_of_both: false,
            target: self.host.clone(),
            port,
            protocol: self.protocol,
            direction: self.direction,
            seconds: self.seconds,
            end: match (self.bytes, self.blocks) {
                (Some(bytes), _) => EndCondition::Bytes(bytes),
                (None, Some(blocks)) => EndCondition::Blocks(blocks),
                (None, None) => EndCondition::Time,
            },
            omit_s: self.omit_seconds,
            streams: self.streams,
            window_bytes: self.window,
            limits_unsent: self.asks_for_limit(),
            rate_bps: self.rate,
            burst: self.burst,
            fq_rate_bps: self.fq_rate,
            congestion: self.congestion.clone(),
            mss_bytes: self.mss.map(|mss| ByteCount::from_bytes(mss.into())),
            block_bytes: self.block,
            zerocopy: self.zerocopy,
            skip_rx_copy: self.skip_rx_copy,
            nodelay: self.nodelay,
            native: self.protocol == Protocol::Udt && self.is_native(),
            mptcp: self.mptcp,
            tos: self.tos,
            flow_label: self.flow_label,
            dont_fragment: self.dont_fragment,
            file: self.file.as_ref().map(|file| file.to_string_lossy().into_owned()),
            bind: self.bind.map(|address| address.to_string()),
            device: self.device.clone(),
        }
    }

    /// The same test over TCP. UDT's own congestion controls do not exist there: the host's
    /// default replaces them.
    #[must_use]
    pub fn over_tcp(&self) -> Self {
        let udt_only = |name: &str| matches!(Algorithm::for_udt(name), Some(Algorithm::Udt(_)));
        let congestion = self.congestion.clone().filter(|name| !udt_only(name));
        ClientConfig {
            protocol: Protocol::Tcp,
            native: false,
            stops_if_policed: false,
            congestion,
            ..self.clone()
        }
    }

    /// Whether a UDT test is in native mode: BBR is only there.
    #[must_use]
    pub fn is_native(&self) -> bool {
        let bbr = [Algorithm::Bbr.name(), Algorithm::Bbr3.name()];
        self.native || self.congestion.as_deref().is_some_and(|name| bbr.contains(&name))
    }

    /// The parameters sent to the server.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked to lie within a day of seconds first"
    )]
    pub(crate) fn params(&self, control_mss: u32) -> Params {
        let int = |bytes: Option<ByteCount>| {
            bytes.map_or(0, |bytes| i64::try_from(bytes.bytes()).unwrap_or(i64::MAX))
        };
        let udp = self.protocol == Protocol::Udp;
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
        if self.protocol == Protocol::Udt {
            let native = self.is_native();
            let default = if native { NATIVE_ALGORITHMS[0] } else { UDT_ALGORITHMS[0] };
            longhaul.udt =
                Some(self.congestion.clone().unwrap_or_else(|| default.name().to_owned()));
            longhaul.native = native.then_some(true);
        }
        longhaul.segment = off(self.segment);
        longhaul.coalesce = off(self.coalesce);
        longhaul.train = self.train.map(BitRate::bps);
        longhaul.limit_unsent = self.asks_for_limit().then_some(true);
        longhaul.zerocopy = off(self.zerocopy != Some(false));
        let rate = |rate: Option<BitRate>| {
            rate.map_or(0, |rate| i64::try_from(rate.bps()).unwrap_or(i64::MAX))
        };
        Params {
            tcp: !udp,
            udp,
            omit: i64::from(self.omit_seconds),
            server_affinity: self.server_core.map(i64::from),
            // Whole seconds on the wire; the client ends the test at the exact time.
            time: if self.is_timed() { self.seconds.ceil() as i64 } else { 0 },
            num: int(self.bytes),
            blockcount: self.blocks.map_or(0, |blocks| i64::try_from(blocks).unwrap_or(i64::MAX)),
            mss: self.mss.map_or(0, i64::from),
            nodelay: self.nodelay,
            parallel: i64::from(self.streams),
            reverse: self.direction == Direction::Reverse,
            bidirectional: self.direction == Direction::Both,
            mptcp: self.mptcp,
            window: int(self.window),
            len: int(Some(block)),
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
            udp_counters_64bit: self.wide_counters,
            repeating_payload: self.repeating_payload,
            zerocopy: i64::from(self.zerocopy == Some(true)),
            dont_fragment: self.dont_fragment,
            skip_rx_copy: i64::from(self.skip_rx_copy),
            client_version: Some(format!("longhaul {}", crate::VERSION)),
            longhaul: Some(longhaul),
            ..Params::default()
        }
    }
}
