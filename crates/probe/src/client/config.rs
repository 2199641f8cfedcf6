//! What a test is asked to be.

use crate::{
    ProbeError,
    socket::{Family, MAX_WINDOW},
};
use host::tcp_info;
use iperf3::{Params, params};
use record::{Direction, TestSpec};
use socket2::{Domain, Protocol, Socket, Type};
use std::{net::IpAddr, time::Duration};
use units::{BitRate, ByteCount};

/// One test to run.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientConfig {
    /// The server's name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Local address to connect from.
    pub bind: Option<IpAddr>,
    /// Which IP version to use.
    pub family: Family,
    /// Length in seconds, the warm-up not counted: over 0, at most 86400.
    /// Not looked at where `bytes` ends the test.
    pub seconds: f64,
    /// Seconds at the start that the result leaves out: 0 to 600.
    pub omit_seconds: u32,
    /// Bytes over all streams that end the test instead of the time.
    pub bytes: Option<ByteCount>,
    /// Parallel TCP connections: 1 to 128.
    pub streams: u32,
    /// Socket buffers, at both ends; `None` leaves them to the kernel's autotuning.
    pub window: Option<ByteCount>,
    /// Bytes of one write, at most 1 MiB; `None` for 128 KiB.
    pub block: Option<ByteCount>,
    /// Rate of each stream; `None` is as fast as it goes.
    pub rate: Option<BitRate>,
    /// Congestion control of the sending end; `None` for its host's own.
    pub congestion: Option<String>,
    /// Which way the data goes.
    pub direction: Direction,
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
    /// Ten seconds over one stream to `host`, as fast as it goes.
    #[must_use]
    pub fn new(host: impl Into<String>) -> Self {
        ClientConfig {
            host: host.into(),
            port: iperf3::DEFAULT_PORT,
            bind: None,
            family: Family::Any,
            seconds: 10.0,
            omit_seconds: 0,
            bytes: None,
            streams: 1,
            window: None,
            block: None,
            rate: None,
            congestion: None,
            direction: Direction::Forward,
            sample_every: Duration::from_millis(100),
            report_every: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(10),
            watch_load: Duration::from_millis(150),
        }
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
        if self.port == 0 {
            return wrong("port 0".to_owned(), "ports are 1 to 65535; iperf3's is 5201");
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
        if let Some(block) =
            self.block.filter(|b| !(1..=params::MAX_BLOCK as u64).contains(&b.bytes()))
        {
            return wrong(format!("a block of {block}"), "a write is 1 byte to 1 MiB");
        }
        if self.rate == Some(BitRate::ZERO) || self.rate > Some(BitRate::MAX) {
            return wrong(
                "the rate".to_owned(),
                "it is 1bit to 100tbit; leave it out for no limit",
            );
        }
        if self.bytes == Some(ByteCount::ZERO) {
            return wrong("a test of 0 bytes".to_owned(), "give at least one byte");
        }
        if self.sample_every < Duration::from_millis(1) {
            return wrong("the sample interval".to_owned(), "it is 1 ms or more");
        }
        if self.report_every < Duration::from_millis(10) {
            return wrong("the report interval".to_owned(), "it is 10 ms or more");
        }
        self.check_congestion()
    }

    /// Tries the congestion control on a socket of its own: better refused
    /// now than after connecting. When the server sends, its kernel decides.
    fn check_congestion(&self) -> Result<(), ProbeError> {
        if let (Some(name), Direction::Forward) = (&self.congestion, self.direction)
            && let Ok(socket) = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
        {
            tcp_info::set_congestion(&socket, name)?;
        }
        Ok(())
    }

    /// What the measurement says was asked.
    pub(crate) fn spec(&self) -> TestSpec {
        TestSpec {
            target: self.host.clone(),
            port: self.port,
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
    pub(crate) fn params(&self) -> Params {
        let int = |bytes: Option<ByteCount>| {
            bytes.map_or(0, |bytes| i64::try_from(bytes.bytes()).unwrap_or(i64::MAX))
        };
        Params {
            tcp: true,
            omit: i64::from(self.omit_seconds),
            // Whole seconds on the wire; we end the test ourselves at the exact time.
            time: if self.bytes.is_some() { 0 } else { self.seconds.ceil() as i64 },
            num: int(self.bytes),
            parallel: i64::from(self.streams),
            reverse: self.direction == Direction::Reverse,
            window: int(self.window),
            len: self.block.map_or(i64::from(iperf3::DEFAULT_BLOCK), |block| int(Some(block))),
            bandwidth: self.rate.map_or(0, |rate| i64::try_from(rate.bps()).unwrap_or(i64::MAX)),
            pacing_timer: 1000,
            congestion: self.congestion.clone(),
            client_version: Some(format!("longhaul {}", crate::VERSION)),
            longhaul: Some(crate::extra::announcement()),
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
        assert!(refused(|c| c.host = String::new()) && refused(|c| c.port = 0));
        assert!(refused(|c| c.omit_seconds = 601) && refused(|c| c.bytes = Some(ByteCount::ZERO)));
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
        let asked = config.params();
        assert_eq!((asked.time, asked.bandwidth, asked.len), (3, 0, 131_072));
        assert_eq!(asked.check(), Ok(()));
    }
}
