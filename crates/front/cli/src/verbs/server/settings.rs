//! The server's flags, and the request they result in.

use super::ServerArgs;
use crate::output_path::OutputPath;
use clap::Args;
use longhaul::server::{Family, Limits, ServerRequest};
use perf::server::{TokenName, TokenNameError};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::{BitRate, ByteCount};

#[derive(Debug, Args)]
pub(crate) struct ListenArgs {
    /// TCP and UDP port to listen on
    #[arg(long, short, default_value_t = 5201)]
    pub(super) port: u16,
    /// Address to listen on [default: all]
    #[arg(long, short = 'B', value_name = "ADDRESS", conflicts_with_all = ["ipv4", "ipv6"])]
    #[arg(value_parser = host::address::parse)]
    bind: Option<SocketAddr>,
    /// Network interface to bind to
    #[arg(long, value_name = "INTERFACE", visible_alias = "bind-dev")]
    device: Option<String>,
    /// Use IPv4 only
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long = "ipv6")]
    ipv6: bool,
    /// Serve one test, then exit
    #[arg(long, short = '1')]
    one_off: bool,
    /// Seconds to wait for a test with --one-off
    #[arg(long, value_name = "SECONDS", requires = "one_off")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    idle_timeout: Option<u64>,
    /// Write received data to FILE, replacing it
    #[arg(long, short = 'F', value_name = "FILE")]
    file: Option<OutputPath>,
    /// CPU for the data threads [default: any]
    ///
    /// A client's choice takes precedence.
    #[arg(long, short = 'A', value_name = "CORE")]
    affinity: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// Maximum concurrent tests; others get "server busy"
    #[arg(long, value_name = "N", default_value_t = Limits::default().sessions)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) max_tests: u32,
    /// Maximum per client address [default: half of --max-tests]
    ///
    /// An address gets the same share of --max-total-streams and --max-memory.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    max_per_address: Option<u32>,
    /// Maximum streams per test, in each direction
    #[arg(long, value_name = "N", default_value_t = Limits::default().streams)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=128))]
    pub(super) max_streams: u32,
    /// Maximum streams of all tests, in both directions
    #[arg(long, value_name = "N", default_value_t = Limits::default().total_streams)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(super) max_total_streams: u32,
    /// Maximum buffer memory of all tests
    #[arg(long, value_name = "SIZE", value_parser = some_bytes, default_value = "640MiB")]
    pub(super) max_memory: ByteCount,
    /// Maximum duration of a test, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().duration.as_secs())]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) max_time: u64,
    /// Maximum total rate of a test, in both directions: 1gbit
    #[arg(long, value_name = "RATE", value_parser = some_rate)]
    max_rate: Option<BitRate>,
    /// Maximum bytes of a test, in both directions: 10GB
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    max_bytes: Option<ByteCount>,
    /// Maximum connections with an incomplete handshake
    #[arg(long, value_name = "N", default_value_t = half_open())]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(super) max_half_open: u32,
    /// Maximum per address [default: --max-half-open / 10, at least 4]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    max_half_open_per_address: Option<u32>,
    /// Handshake and stream-setup timeout, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().handshake.as_secs())]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=600))]
    handshake_timeout: u64,
    /// Timeout for data from a sending client, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().receive.as_secs())]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    rcv_timeout: u64,
}

fn half_open() -> u32 {
    u32::try_from(Limits::default().half_open).unwrap_or(u32::MAX)
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
    /// Serve only longhaul clients with a token in FILE
    ///
    /// FILE has one token per line. Use random tokens (openssl rand -hex 16): a short one can be
    /// guessed from one overheard test. A token admits one test at this server, with the
    /// parameters that the client requested; it neither encrypts nor authenticates the data or
    /// the results.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Name of this server behind NAT, for --tokens
    ///
    /// A name or address, with its port if that differs; repeatable. A token proof is valid only
    /// at the server whose address the client connected to. Behind NAT, that is not this
    /// server's own address: give the name that clients use, or the public address.
    #[arg(long, value_name = "NAME", requires = "tokens", value_parser = token_name)]
    token_name: Vec<String>,
    /// RSA private key for iperf3 logins
    ///
    /// PEM without a passphrase.
    #[arg(long, value_name = "FILE", requires = "users")]
    #[arg(alias = "rsa-private-key-path")]
    private_key: Option<PathBuf>,
    /// Users for iperf3 logins: lines of user,hash
    ///
    /// The hash is the SHA-256 of {user}password, as for iperf3.
    #[arg(long, value_name = "FILE", requires = "private_key")]
    #[arg(alias = "authorized-users-path")]
    users: Option<PathBuf>,
    /// Use PKCS #1 v1.5 padding, as iperf3 did before 3.17
    #[arg(long, requires = "private_key", alias = "use-pkcs1-padding")]
    pkcs1: bool,
    /// Maximum clock skew in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    #[arg(alias = "time-skew-threshold")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=86_400))]
    time_skew: u64,
}

fn token_name(text: &str) -> Result<String, TokenNameError> {
    text.parse::<TokenName>().map(|_| text.to_owned())
}

fn count(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

fn limits(args: &LimitArgs) -> Limits {
    Limits {
        sessions: args.max_tests,
        sessions_per_address: args.max_per_address,
        streams: args.max_streams,
        total_streams: args.max_total_streams,
        memory: args.max_memory,
        rate: args.max_rate,
        bytes: args.max_bytes,
        duration: Duration::from_secs(args.max_time),
        handshake: Duration::from_secs(args.handshake_timeout),
        half_open: count(args.max_half_open),
        half_open_per_address: args.max_half_open_per_address.map(count),
        receive: Duration::from_secs(args.rcv_timeout),
        ..Limits::default()
    }
}

/// The request that the flags make.
pub(super) fn request(args: &ServerArgs) -> ServerRequest {
    let ServerArgs { listen, admission, copies, .. } = args;
    ServerRequest {
        bind: listen.bind,
        device: listen.device.clone(),
        family: Family::from_flags(listen.ipv4, listen.ipv6),
        port: listen.port,
        one_off: listen.one_off,
        idle_timeout_s: listen.idle_timeout,
        file: listen.file.as_deref().map(Path::to_owned),
        core: listen.affinity,
        limits: limits(&args.limits),
        interval: Duration::from_secs(args.interval),
        reports_intervals: args.verbose,
        tokens: admission.tokens.clone(),
        token_names: admission.token_name.clone(),
        private_key: admission.private_key.clone(),
        users: admission.users.clone(),
        pkcs1: admission.pkcs1,
        time_skew: Duration::from_secs(admission.time_skew),
        metrics: args.metrics,
        metrics_hosts: args.metrics_host.clone(),
        root: copies.root.as_deref().map(Path::to_owned),
        writable: copies.writable,
        copy_port: copies.copy_port,
        max_copies: copies.max_copies,
    }
}
