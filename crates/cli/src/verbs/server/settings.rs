//! The flags of a server, and the configuration they make.

use clap::Args;
use probe::client::Family;
use probe::server::{Limits, ServerConfig};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use units::{BitRate, ByteCount};

#[derive(Debug, Args)]
pub(crate) struct ListenArgs {
    /// Port to listen on, by TCP and UDP
    #[arg(long, short, default_value_t = 5201)]
    pub(super) port: u16,
    /// Address to listen on [all of both IP versions]
    #[arg(long, short = 'B', value_name = "ADDRESS", conflicts_with_all = ["ipv4", "ipv6"])]
    bind: Option<IpAddr>,
    /// Interface to listen on
    #[arg(long, value_name = "INTERFACE", visible_alias = "bind-dev")]
    device: Option<String>,
    /// Only IPv4
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6")]
    ipv4: bool,
    /// Only IPv6
    #[arg(short = '6', long = "ipv6")]
    ipv6: bool,
    /// Serve one test and exit
    #[arg(long, short = '1')]
    one_off: bool,
    /// With --one-off: exit when no test has begun after so many seconds
    #[arg(long, value_name = "SECONDS", requires = "one_off")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    idle_timeout: Option<u64>,
    /// Write what arrives to a file; each test begins it anew
    #[arg(long, short = 'F', value_name = "FILE")]
    file: Option<PathBuf>,
    /// Core for the threads that carry data, where a client asks for none
    #[arg(long, short = 'A', value_name = "CORE")]
    affinity: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// Tests at the same time; further clients are told that it is busy
    #[arg(long, value_name = "N", default_value_t = Limits::default().sessions)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) max_tests: u32,
    /// Tests at the same time from one address
    #[arg(long, value_name = "N", default_value_t = Limits::default().sessions_per_address)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    max_per_address: u32,
    /// Streams of one test, in each direction
    #[arg(long, value_name = "N", default_value_t = Limits::default().streams)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=128))]
    pub(super) max_streams: u32,
    /// Longest test, in seconds, the warm-up included
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().duration.as_secs())]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) max_time: u64,
    /// Rate of one test, all its streams together, over 5 seconds: 1gbit
    #[arg(long, value_name = "RATE", value_parser = some_rate)]
    max_rate: Option<BitRate>,
    /// Bytes of one test, both directions together: 10GB
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    max_bytes: Option<ByteCount>,
    /// Connections that have not yet said who they are; beyond it the oldest is closed
    #[arg(long, value_name = "N", default_value_t = half_open())]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(super) max_half_open: u32,
    /// Seconds a connection may take to say who it is, and a client to bring its next stream
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().handshake.as_secs())]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=600))]
    handshake_timeout: u64,
    /// Seconds a client that is to send may send nothing
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().receive.as_secs())]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    rcv_timeout: u64,
}

fn half_open() -> u32 {
    u32::try_from(Limits::default().half_open).unwrap_or(64)
}

fn some_rate(text: &str) -> Result<BitRate, String> {
    let rate: BitRate = text.parse().map_err(|error: units::ParseError| error.to_string())?;
    if rate.bps() == 0 { Err("give a rate above 0, such as 1gbit".to_owned()) } else { Ok(rate) }
}

fn some_bytes(text: &str) -> Result<ByteCount, String> {
    let size: ByteCount = text.parse().map_err(|error: units::ParseError| error.to_string())?;
    if size == ByteCount::ZERO {
        Err("give a size above 0, such as 10GB".to_owned())
    } else {
        Ok(size)
    }
}

#[derive(Debug, Args)]
pub(crate) struct AdmissionArgs {
    /// Words of which a longhaul client must know one, one a line; other clients
    /// are turned away
    #[arg(long, value_name = "FILE")]
    pub(super) tokens: Option<PathBuf>,
    /// RSA key that iperf3's logins are opened with (PEM, no passphrase)
    #[arg(long, value_name = "FILE", requires = "users")]
    #[arg(visible_alias = "rsa-private-key-path")]
    pub(super) private_key: Option<PathBuf>,
    /// Who may log in: lines of user,hash; the hash is the SHA-256 of {user}password
    #[arg(long, value_name = "FILE", requires = "private_key")]
    #[arg(visible_alias = "authorized-users-path")]
    pub(super) users: Option<PathBuf>,
    /// Logins are padded as iperf3 did before 3.17 (PKCS #1 v1.5)
    #[arg(long, requires = "private_key", visible_alias = "use-pkcs1-padding")]
    pub(super) pkcs1: bool,
    /// Furthest, in seconds, that the clock of a client that logs in may be off
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    #[arg(visible_alias = "time-skew-threshold")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub(super) time_skew: u64,
}

/// All but who may use it.
pub(super) fn config(listen: &ListenArgs, limits: &LimitArgs) -> ServerConfig {
    ServerConfig {
        bind: listen.bind,
        device: listen.device.clone(),
        family: match (listen.ipv4, listen.ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        },
        port: listen.port,
        one_off: listen.one_off,
        idle_timeout: listen.idle_timeout.map(Duration::from_secs),
        limits: Limits {
            sessions: limits.max_tests,
            sessions_per_address: limits.max_per_address,
            streams: limits.max_streams,
            rate: limits.max_rate,
            bytes: limits.max_bytes,
            duration: Duration::from_secs(limits.max_time),
            handshake: Duration::from_secs(limits.handshake_timeout),
            half_open: usize::try_from(limits.max_half_open).unwrap_or(usize::MAX),
            receive: Duration::from_secs(limits.rcv_timeout),
            ..Limits::default()
        },
        file: listen.file.clone(),
        core: listen.affinity,
        ..ServerConfig::default()
    }
}
