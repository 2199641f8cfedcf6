//! What a test is asked to be.

use crate::{
    ProbeError,
    auth::Credentials,
    control::Keepalive,
    socket::{Family, MAX_WINDOW},
};
use host::tcp_info;
use iperf3::{Params, datagram, params};
use record::{Direction, Protocol, TestSpec};
use socket2::{Domain, Socket, Type};
use std::{net::IpAddr, ops::RangeInclusive, path::PathBuf, time::Duration};
use units::{BitRate, ByteCount};

/// One test to run. [`ClientConfig::new`] has the defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientConfig {
    /// The server's name or address.
    pub host: String,
    /// Its port; of several the next is tried where one is busy or closed.
    pub ports: RangeInclusive<u16>,
    /// Local address to connect from.
    pub bind: Option<IpAddr>,
    /// Interface to send over (`--bind-dev`).
    pub device: Option<String>,
    /// Local port of the first stream; the next ones follow (`--cport`).
    pub local_port: Option<u16>,
    /// Which IP version to use.
    pub family: Family,
    /// What carries the data.
    pub protocol: Protocol,
    /// Which way the data goes.
    pub direction: Direction,
    /// Length in seconds, the warm-up not counted: over 0, at most 86400.
    /// Not looked at where `bytes` or `blocks` ends the test.
    pub seconds: f64,
    /// Seconds at the start that the result leaves out: 0 to 600.
    pub omit_seconds: u32,
    /// Bytes over all streams that end the test instead of the time.
    pub bytes: Option<ByteCount>,
    /// Blocks over all streams that do.
    pub blocks: Option<u64>,
    /// Parallel streams in each direction: 1 to 128.
    pub streams: u32,
    /// Socket buffers, at both ends; `None` leaves them to the kernel's autotuning.
    pub window: Option<ByteCount>,
    /// Bytes of one write or datagram; `None` for 128 KiB, and for what fits
    /// the path's segment with UDP.
    pub block: Option<ByteCount>,
    /// Rate of each stream; `None` is as fast as it goes.
    pub rate: Option<BitRate>,
    /// Blocks sent back to back where there is a rate, 1 to 1000.
    pub burst: Option<u32>,
    /// Rate for the kernel's own pacing (`--fq-rate`).
    pub fq_rate: Option<BitRate>,
    /// Congestion control of the sending end; `None` for its host's own.
    pub congestion: Option<String>,
    /// Largest segment, bytes (`-M`).
    pub mss: Option<u32>,
    /// Whether small writes go at once (`-N`).
    pub nodelay: bool,
    /// Whether connections use Multipath TCP (RFC 8684).
    pub mptcp: bool,
    /// The IP header's traffic class (RFC 2474: the DSCP is its upper six bits).
    pub tos: Option<u8>,
    /// IPv6 flow label, 1 to 2^20 - 1.
    pub flow_label: Option<u32>,
    /// Whether datagrams over the path's MTU are refused, not fragmented.
    pub dont_fragment: bool,
    /// Whether TCP sends pages by reference (`-Z`); `None` as costs each sender less.
    pub zerocopy: Option<bool>,
    /// Whether TCP receivers throw the data away without copying it.
    pub skip_rx_copy: bool,
    /// Whether the kernel may cut datagrams out of trains, where it can.
    pub segment: bool,
    /// Whether the kernel may hand over datagrams in trains, where it can.
    pub coalesce: bool,
    /// Whether datagrams are numbered with 64 bits.
    pub wide_counters: bool,
    /// Whether the payload is a pattern rather than random.
    pub repeating_payload: bool,
    /// What to send instead of made-up bytes; where this end receives, the
    /// file that is written (`-F`).
    pub file: Option<PathBuf>,
    /// The core of this end's threads (`-A`).
    pub core: Option<u32>,
    /// The core of the server's.
    pub server_core: Option<u32>,
    /// A word that iperf3 puts before its lines.
    pub title: Option<String>,
    /// Text that iperf3 carries along into its JSON.
    pub extra_data: Option<String>,
    /// Whether the server's own output is asked for.
    pub get_server_output: bool,
    /// A login for a server that asks for one.
    pub credentials: Option<Credentials>,
    /// A word of admittance for a longhaul server that asks for one.
    pub token: Option<String>,
    /// How long nothing may arrive where this end receives.
    pub receive_timeout: Duration,
    /// How long sent data may stay unacknowledged (RFC 5482); `None` for the kernel's own limit.
    pub send_timeout: Option<Duration>,
    /// Probes of a silent control connection; `None` for our own.
    pub keepalive: Option<Keepalive>,
    /// Time between samples of the kernel's state: 1 ms or more.
    pub sample_every: Duration,
    /// Time between report rows: 10 ms or more.
    pub report_every: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long the machine's own load is watched before the test; zero not to.
    pub watch_load: Duration,
}

impl ClientConfig {
    /// Ten seconds of TCP over one stream to `host`, as fast as it goes.
    #[must_use]
    pub fn new(host: impl Into<String>) -> Self {
        ClientConfig {
            host: host.into(),
            ports: iperf3::DEFAULT_PORT..=iperf3::DEFAULT_PORT,
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

    /// Judges every setting before a packet is sent.
    pub(crate) fn check(&self) -> Result<(), ProbeError> {
        let wrong = |what: String, remedy: &str| {
            Err(ProbeError::Setting { what, remedy: remedy.to_owned() })
        };
        // 253 characters is the longest name DNS has (RFC 1035); 255 leaves room for brackets.
        if self.host.is_empty() || self.host.len() > 255 || self.host.contains(['\0', '\n']) {
            return wrong(
                "the server's name is not one".to_owned(),
                "give a host name or an address",
            );
        }
        if *self.ports.start() == 0 {
            return wrong("port 0".to_owned(), "ports are 1 to 65535; iperf3's is 5201");
        }
        if self.ports.is_empty() {
            return wrong("a range of no ports".to_owned(), "write the lower port first");
        }
        let most_seconds = f64::from(u32::try_from(params::MAX_TIME_S).unwrap_or(u32::MAX));
        if !(self.seconds > 0.0 && self.seconds <= most_seconds) {
            return wrong(
                format!("a test of {} s", self.seconds),
                "its length is over 0 and at most 86400 seconds",
            );
        }
        if i64::from(self.omit_seconds) > params::MAX_OMIT_S {
            return wrong(
                format!("a warm-up of {} s", self.omit_seconds),
                "at most 600 seconds can be left out",
            );
        }
        if !(1..=params::MAX_STREAMS).contains(&i64::from(self.streams)) {
            return wrong(format!("{} streams", self.streams), "1 to 128 can run side by side");
        }
        if let Some(window) = self.window.filter(|w| *w == ByteCount::ZERO || *w > MAX_WINDOW) {
            return wrong(
                format!("a window of {window}"),
                "TCP windows are 1 byte to 1 GiB (RFC 7323: the scale is at most 14)",
            );
        }
        if let Some(block) = self.block {
            let bytes = i64::try_from(block.bytes()).unwrap_or(i64::MAX);
            match self.protocol {
                Protocol::Tcp if !(1..=params::MAX_BLOCK).contains(&bytes) => {
                    return wrong(format!("a block of {block}"), "a write is 1 byte to 1 MiB");
                }
                Protocol::Udp
                    if !(datagram::LEAST_LENGTH..=datagram::MOST_LENGTH).contains(&bytes) =>
                {
                    return wrong(
                        format!("a datagram of {block}"),
                        "its payload is 16 to 65507 bytes",
                    );
                }
                _ => {}
            }
        }
        if self.rate == Some(BitRate::ZERO) || self.rate > Some(BitRate::MAX) {
            return wrong(
                "the rate".to_owned(),
                "it is 1bit to 100tbit; leave it out for no limit",
            );
        }
        if self.bytes == Some(ByteCount::ZERO) || self.blocks == Some(0) {
            return wrong("a test of 0 bytes".to_owned(), "give at least one byte");
        }
        if self.burst.is_some_and(|burst| !(1..=1000).contains(&burst)) {
            return wrong("the burst".to_owned(), "1 to 1000 blocks can go back to back");
        }
        // RFC 9293 section 3.7.1: a segment carries at least 536 - 20 - 20 bytes by default,
        // and Linux takes no less than 88.
        if self.mss.is_some_and(|mss| !(88..=32_767).contains(&mss)) {
            return wrong("the segment size".to_owned(), "it is 88 to 32767 bytes");
        }
        if self.flow_label.is_some_and(|label| !(1..1 << 20).contains(&label)) {
            return wrong("the flow label".to_owned(), "it has 20 bits: 1 to 1048575");
        }
        if let Some(core) = self.core.filter(|core| *core >= host::cpu::cores()) {
            return wrong(format!("core {core}"), "cores count from 0, and this machine has fewer");
        }
        self.check_ports()?;
        if self.sample_every < Duration::from_millis(1) {
            return wrong("the sample interval".to_owned(), "it is 1 ms or more");
        }
        if self.report_every < Duration::from_millis(10) {
            return wrong("the report interval".to_owned(), "it is 10 ms or more");
        }
        self.check_congestion()
    }

    /// Every stream has a local port of its own where they are given.
    fn check_ports(&self) -> Result<(), ProbeError> {
        let Some(first) = self.local_port else { return Ok(()) };
        let both = u32::from(self.direction == Direction::Both) + 1;
        if first == 0 || u32::from(first) + self.streams * both > 1 << 16 {
            return Err(ProbeError::Setting {
                what: format!("local ports from {first}"),
                remedy: "each stream takes the next one, from 1 up to 65535".to_owned(),
            });
        }
        Ok(())
    }

    /// Tries the congestion control on a socket of its own: better refused
    /// now than after connecting. When the server sends, its kernel decides.
    fn check_congestion(&self) -> Result<(), ProbeError> {
        if let Some(name) = self.congestion.as_ref().filter(|_| self.sends())
            && let Ok(socket) = Socket::new(Domain::IPV4, Type::STREAM, None)
        {
            tcp_info::set_congestion(&socket, name)?;
        }
        Ok(())
    }

    /// What the measurement says was asked.
    pub(crate) fn spec(&self, port: u16) -> TestSpec {
        TestSpec {
            target: self.host.clone(),
            port,
            protocol: self.protocol,
            direction: self.direction,
            seconds: self.seconds,
            streams: self.streams,
            window_bytes: self.window,
            rate_bps: self.rate,
            congestion: self.congestion.clone(),
        }
    }

    /// What the server is asked.
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
                _ if !udp => iperf3::DEFAULT_BLOCK,
                // What fits a segment fits a datagram: UDP's header is shorter than TCP's.
                mss if i64::from(mss) >= datagram::LEAST_LENGTH
                    && i64::from(mss) <= datagram::MOST_LENGTH =>
                {
                    mss
                }
                _ => datagram::DEFAULT_LENGTH,
            }))
        });
        let mut longhaul = crate::extra::announcement();
        for (name, on) in [
            ("segment", self.segment),
            ("coalesce", self.coalesce),
            ("zerocopy", self.zerocopy != Some(false)),
        ] {
            if !on {
                longhaul[name] = false.into();
            }
        }
        let rate = |rate: Option<BitRate>| {
            rate.map_or(0, |rate| i64::try_from(rate.bps()).unwrap_or(i64::MAX))
        };
        Params {
            tcp: !udp,
            udp,
            omit: i64::from(self.omit_seconds),
            server_affinity: self.server_core.map(i64::from),
            // Whole seconds on the wire; we end the test ourselves at the exact time.
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
    fn what_is_asked_passes_iperf3s_own_bounds() {
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
