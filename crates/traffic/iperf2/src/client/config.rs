//! The configuration of a client's test.

use crate::error::Iperf2Error;
use crate::sockets::Options;
use crate::udp;
use host::resolve::Family;
use iperf2_proto::{Amount, Mode, Pace};
use std::net::SocketAddr;
use std::time::Duration;

/// Maximum number of streams of one test.
pub const MAX_STREAMS: u32 = 128;

/// The configuration of a test.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Name or address of the server.
    pub host: String,
    /// Server port.
    pub port: u16,
    /// Which IP version to use.
    pub family: Family,
    /// Local address and port; port 0 for any.
    pub bind: Option<SocketAddr>,
    /// UDP instead of TCP.
    pub udp: bool,
    /// Who sends.
    pub mode: Mode,
    /// Number of streams, 1 to [`MAX_STREAMS`].
    pub streams: u32,
    /// When the test ends.
    pub amount: Amount,
    /// Bytes per write or datagram.
    pub length: Option<u32>,
    /// Rate per stream; if `None`, unlimited over TCP, 1M over UDP.
    pub pace: Option<Pace>,
    /// Report interval.
    pub interval: Option<Duration>,
    /// Local port for the reverse connection of `-d` and `-r`.
    pub listen_port: Option<u16>,
    /// Socket options.
    pub options: Options,
}

impl ClientConfig {
    /// Ten seconds over one TCP connection.
    #[must_use]
    pub fn new(host: &str) -> Self {
        ClientConfig {
            host: host.to_owned(),
            port: iperf2_proto::DEFAULT_PORT,
            family: Family::Any,
            bind: None,
            udp: false,
            mode: Mode::Normal,
            streams: 1,
            amount: Amount::Time(Duration::from_secs(10)),
            length: None,
            pace: None,
            interval: None,
            listen_port: None,
            options: Options::default(),
        }
    }

    /// Bytes per write or datagram, for a server of one IP version.
    #[must_use]
    pub fn block(&self, v6: bool) -> u32 {
        self.length.unwrap_or(match (self.udp, v6) {
            (false, _) => iperf2_proto::DEFAULT_BLOCK,
            (true, false) => iperf2_proto::DEFAULT_DATAGRAM_V4,
            (true, true) => iperf2_proto::DEFAULT_DATAGRAM_V6,
        })
    }

    pub(super) fn check(&self) -> Result<(), Iperf2Error> {
        let usage = |line: String| Err(Iperf2Error::Usage(line));
        if !(1..=MAX_STREAMS).contains(&self.streams) {
            return usage(format!("-P {}: give 1 to {MAX_STREAMS} streams", self.streams));
        }
        // Every datagram contains the header.
        let min = if self.udp { 76 } else { 1 };
        let max = if self.udp { udp::MAX_PAYLOAD } else { 1 << 24 };
        match self.length {
            Some(length) if !(min..=max).contains(&length) => {
                usage(format!("-l {length}: give {min} to {max} bytes"))
            }
            _ => Ok(()),
        }
    }
}
