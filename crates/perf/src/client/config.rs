//! Configuration of a test.

use crate::{PerfError, auth::Credentials, control::Keepalive, socket::MAX_WINDOW};
use control::{Algorithm, UDT_ALGORITHMS};
use host::resolve::Family;
use host::tcp_info;
use iperf3_proto::{Params, datagram, params};
use record::{Direction, EndCondition, Protocol, TestSpec};
use socket2::{Domain, Socket, Type};
use std::{net::IpAddr, ops::RangeInclusive, path::PathBuf, time::Duration};
use units::{BitRate, ByteCount};

/// Configuration of one test. [`ClientConfig::new`] has the defaults.
#[derive(Debug, Clone, PartialEq)]
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
    /// Whether datagrams have 64-bit sequence numbers.
    pub wide_counters: bool,
    /// Whether the payload is a repeating pattern instead of random.
    pub repeating_payload: bool,
    /// File to send instead of generated data, or to write received data to (`-F`).
    pub file: Option<PathBuf>,
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
    /// Login, for a server that requires one.
    pub credentials: Option<Credentials>,
    /// Token, for a longhaul server that requires one.
    pub token: Option<String>,
    /// Timeout without received data, if this end receives.
    pub receive_timeout: Duration,
    /// Timeout of unacknowledged data (RFC 5482); `None` for the kernel's default.
    pub send_timeout: Option<Duration>,
    /// TCP keepalive of the control connection; `None` for the default.
    pub keepalive: Option<Keepalive>,
    /// Interval between TCP_INFO samples after the first 2 s, which are sampled every 10 ms:
    /// at least 1 ms.
    pub sample_every: Duration,
    /// Interval between interval reports: at least 10 ms.
    pub report_every: Duration,
    /// Connect timeout.
    pub connect_timeout: Duration,
    /// How long the CPU load is measured before the test; zero to skip it.
    pub watch_load: Duration,
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
            protocol: Protocol::Tcp,
            direction: Direction::Forward,
            seconds: 10.0,
            omit_seconds: 0,
            bytes: None,
            blocks: None,
            streams: 1,
            window: None,
            block: None,
            rate: None,
            burst: None,
            fq_rate: None,
            congestion: None,
            mss: None,
            nodelay: false,
            mptcp: false,
            tos: None,
            flow_label: None,
            dont_fragment: false,
            zerocopy: None,
            skip_rx_copy: false,
            segment: true,
            coalesce: true,
            wide_counters: false,
            repeating_payload: false,
            file: None,
            core: None,
            server_core: None,
            title: None,
            extra_data: None,
            get_server_output: false,
            credentials: None,
            token: None,
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

    /// Whether time ends the test.
    pub(crate) fn is_timed(&self) -> bool {
        self.bytes.is_none() && self.blocks.is_none()
    }

    /// Checks every setting before a packet is sent.
    pub(crate) fn check(&self) -> Result<(), PerfError> {
        let wrong = |what: String, remedy: &str| {
            Err(PerfError::Setting { what, remedy: remedy.to_owned() })
        };
        // 253 characters is the longest name DNS has (RFC 1035); 255 leaves room for brackets.
        if self.host.is_empty() || self.host.len() > 255 || self.host.contains(['\0', '\n']) {
            return wrong("invalid server name".to_owned(), "give a host name or an address");
        }
        if *self.ports.start() == 0 {
            return wrong("port 0".to_owned(), "ports are 1 to 65535; iperf3's is 5201");
        }
        if self.ports.is_empty() {
            return wrong("empty port range".to_owned(), "write the lower port first");
        }
        let most_seconds = f64::from(u32::try_from(params::MAX_TIME_S).unwrap_or(u32::MAX));
        if !(self.seconds > 0.0 && self.seconds <= most_seconds) {
            return wrong(
                format!("invalid duration of {} s", self.seconds),
                "a duration is above 0 and at most 86400 seconds",
            );
        }
        if i64::from(self.omit_seconds) > params::MAX_OMIT_S {
            return wrong(
                format!("invalid omitted time of {} s", self.omit_seconds),
                "at most 600 seconds can be omitted",
            );
        }
        if !(1..=params::MAX_STREAMS).contains(&i64::from(self.streams)) {
            return wrong(format!("{} streams", self.streams), "a test has 1 to 128 streams");
        }
        if let Some(window) = self.window.filter(|w| *w == ByteCount::ZERO || *w > MAX_WINDOW) {
            return wrong(
                format!("invalid window of {window}"),
                "TCP windows are 1 byte to 1 GiB (RFC 7323: the scale is at most 14)",
            );
        }
        if let Some(block) = self.block {
            let bytes = i64::try_from(block.bytes()).unwrap_or(i64::MAX);
            match self.protocol {
                Protocol::Tcp | Protocol::Udt if !(1..=params::MAX_BLOCK).contains(&bytes) => {
                    return wrong(
                        format!("invalid block length of {block}"),
                        "a TCP block is 1 byte to 1 MiB",
                    );
                }
                Protocol::Udp
                    if !(datagram::MIN_LENGTH..=datagram::MAX_LENGTH).contains(&bytes) =>
                {
                    return wrong(
                        format!("invalid datagram length of {block}"),
                        "a datagram's payload is 16 to 65507 bytes",
                    );
                }
                _ => {}
            }
        }
        if self.rate == Some(BitRate::ZERO) || self.rate > Some(BitRate::MAX) {
            return wrong(
                "invalid rate".to_owned(),
                "a rate is 1bit to 100tbit; omit it for no limit",
            );
        }
        if self.bytes == Some(ByteCount::ZERO) || self.blocks == Some(0) {
            return wrong("a test of 0 bytes".to_owned(), "give at least one byte");
        }
        if self.burst.is_some_and(|burst| !(1..=1000).contains(&burst)) {
            return wrong("invalid burst".to_owned(), "a burst is 1 to 1000 blocks");
        }
        // RFC 9293 section 3.7.1: the default send MSS is 536 bytes; Linux accepts 88 and more.
        if self.mss.is_some_and(|mss| !(88..=32_767).contains(&mss)) {
            return wrong("invalid segment size".to_owned(), "an MSS is 88 to 32767 bytes");
        }
        if self.flow_label.is_some_and(|label| !(1..1 << 20).contains(&label)) {
            return wrong("invalid flow label".to_owned(), "a flow label is 1 to 1048575");
        }
        if let Some(core) = self.core.filter(|core| *core >= host::cpu::cores()) {
            return wrong(format!("no CPU core {core}"), "cores are numbered from 0");
        }
        self.check_ports()?;
        if self.sample_every < Duration::from_millis(1) {
            return wrong("invalid sample interval".to_owned(), "it is at least 1 ms");
        }
        if self.report_every < Duration::from_millis(10) {
            return wrong("invalid report interval".to_owned(), "it is at least 10 ms");
        }
        self.check_congestion()
    }

    /// Checks that each stream has its own local port, if a first one is given.
    fn check_ports(&self) -> Result<(), PerfError> {
        let Some(first) = self.local_port else { return Ok(()) };
        let both = u32::from(self.direction == Direction::Both) + 1;
        if first == 0 || u32::from(first) + self.streams * both > 1 << 16 {
            return Err(PerfError::Setting {
                what: format!("invalid local ports from {first}"),
                remedy: "each stream uses the next port, from 1 to 65535".to_owned(),
            });
        }
        Ok(())
    }

    /// Tries the congestion control on a socket before connecting. If the server
    /// sends, its kernel decides. UDT has its own.
    fn check_congestion(&self) -> Result<(), PerfError> {
        if self.protocol == Protocol::Udt {
            return match self.congestion.as_deref().map(|name| (name, Algorithm::for_udt(name))) {
                Some((name, None)) => Err(PerfError::Setting {
                    what: format!("UDT has no congestion control {name}"),
                    remedy: format!("choose one of {}", udt_algorithms()),
                }),
                _ => Ok(()),
            };
        }
        if let Some(name) = self.congestion.as_ref().filter(|_| self.sends())
            && let Ok(socket) = Socket::new(Domain::IPV4, Type::STREAM, None)
        {
            tcp_info::set_congestion(&socket, name)?;
        }
        Ok(())
    }

    /// The request as recorded in the measurement.
    pub(crate) fn spec(&self, port: u16) -> TestSpec {
        TestSpec {
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
            rate_bps: self.rate,
            burst: self.burst,
            fq_rate_bps: self.fq_rate,
            congestion: self.congestion.clone(),
            mss_bytes: self.mss.map(|mss| ByteCount::from_bytes(mss.into())),
            block_bytes: self.block,
            zerocopy: self.zerocopy,
            skip_rx_copy: self.skip_rx_copy,
            nodelay: self.nodelay,
            mptcp: self.mptcp,
            tos: self.tos,
            flow_label: self.flow_label,
            dont_fragment: self.dont_fragment,
            file: self.file.as_ref().map(|file| file.to_string_lossy().into_owned()),
            bind: self.bind.map(|address| address.to_string()),
            device: self.device.clone(),
        }
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
        longhaul.udt = (self.protocol == Protocol::Udt).then(|| {
            self.congestion.clone().unwrap_or_else(|| UDT_ALGORITHMS[0].name().to_owned())
        });
        longhaul.segment = off(self.segment);
        longhaul.coalesce = off(self.coalesce);
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

/// The names of UDT's congestion controls.
fn udt_algorithms() -> String {
    UDT_ALGORITHMS.map(Algorithm::name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut ClientConfig)) -> bool {
        let mut config = ClientConfig::new("host");
        change(&mut config);
        match config.check() {
            Ok(()) => false,
            Err(error) => {
                assert!(error.is_usage() && !error.to_string().contains('\n'), "{error}");
                true
            }
        }
    }

    #[test]
    fn bounds_hold_on_both_sides() {
        assert!(!refused(|_| ()));
        assert!(!refused(|c| c.streams = 128) && refused(|c| c.streams = 129));
        assert!(refused(|c| c.streams = 0));
        assert!(!refused(|c| c.window = Some(MAX_WINDOW)));
        assert!(refused(|c| c.window = Some(MAX_WINDOW.plus(ByteCount::from_bytes(1)))));
        assert!(!refused(|c| c.seconds = 0.1));
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 86_401.0] {
            assert!(refused(|c| c.seconds = seconds), "{seconds}");
        }
        assert!(refused(|c| c.host = String::new()) && refused(|c| c.ports = 0..=0));
        assert!(refused(|c| c.omit_seconds = 601) && refused(|c| c.bytes = Some(ByteCount::ZERO)));
        assert!(refused(|c| c.blocks = Some(0)) && refused(|c| c.burst = Some(1001)));
        assert!(refused(|c| c.mss = Some(87)) && !refused(|c| c.mss = Some(88)));
        assert!(refused(|c| c.flow_label = Some(1 << 20)) && refused(|c| c.core = Some(9999)));
        let reversed = RangeInclusive::new(5210, 5201);
        assert!(refused(|c| c.ports = reversed.clone()));
        let last = |port| move |c: &mut ClientConfig| c.local_port = Some(port);
        assert!(!refused(last(65_535)) && refused(last(0)));
        assert!(refused(|c| {
            c.local_port = Some(65_535);
            c.direction = Direction::Both;
        }));
        let datagram = |bytes| {
            move |c: &mut ClientConfig| {
                c.protocol = Protocol::Udp;
                c.block = Some(ByteCount::from_bytes(bytes));
            }
        };
        assert!(refused(datagram(15)) && !refused(datagram(16)));
        assert!(refused(datagram(65_508)) && !refused(datagram(65_507)));
        assert!(refused(|c| c.congestion = Some("nonesuch".into())));
        assert!(!refused(|c| {
            c.congestion = Some("nonesuch".into());
            c.direction = Direction::Reverse;
        }));
    }

    #[test]
    fn the_record_keeps_everything_that_was_requested() {
        let mut config = ClientConfig::new("host");
        assert_eq!(config.spec(5201).duration_s(), Some(10.0));
        config.blocks = Some(3);
        assert_eq!(config.spec(5201).end, EndCondition::Blocks(3));
        config.bytes = Some(ByteCount::from_bytes(5));
        config.mss = Some(1400);
        config.omit_seconds = 2;
        config.fq_rate = Some(BitRate::from_bps(1_000));
        config.block = Some(ByteCount::from_bytes(4096));
        config.zerocopy = Some(false);
        let spec = config.spec(5201);
        assert_eq!(spec.end, EndCondition::Bytes(ByteCount::from_bytes(5)));
        assert_eq!((spec.duration_s(), spec.omit_s), (None, 2));
        assert_eq!(spec.mss_bytes, Some(ByteCount::from_bytes(1400)));
        assert_eq!(spec.fq_rate_bps, Some(BitRate::from_bps(1_000)));
        assert_eq!(spec.block_bytes, Some(ByteCount::from_bytes(4096)));
        assert_eq!(spec.zerocopy, Some(false));
    }

    #[test]
    fn parameters_are_within_iperf3s_bounds() {
        let mut config = ClientConfig::new("host");
        config.seconds = 2.5;
        let asked = config.params(1448);
        assert_eq!((asked.time, asked.bandwidth, asked.len), (3, 0, 131_072));
        assert_eq!(asked.check(), Ok(()));
        config.protocol = Protocol::Udp;
        assert_eq!(config.params(1448).len, 1448);
        assert_eq!(config.params(70_000).len, 1460);
        assert_eq!(config.params(1448).check(), Ok(()));
    }
}
