//! Flags of the speed test in browsers, for the verbs that serve it.

use clap::Args;
use longhaul::systemd_unit;
use std::net::{IpAddr, SocketAddr};
use units::ByteCount;
use web::{Origin, Peer, Tls, WebLimits, WebRequest};

/// Seconds that a stop may take: a run, and its last messages.
pub(crate) const STOP_S: u64 = 120;
/// Threads of a flow at most, and those beside flows.
const THREADS: u64 = 128;

#[derive(Debug, Args)]
pub(crate) struct WebFlags {
    /// Also serve tests of responsiveness here: networkQuality, mach rpm
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = host::address::parse_listen)]
    responsiveness: Option<SocketAddr>,
    /// Encrypt: self-signed, credentials (of systemd), or CERTIFICATE,KEY
    #[arg(long, value_name = "HOW")]
    tls: Option<Tls>,
    /// Also answer requests for this host name; repeatable
    #[arg(long, value_name = "NAME")]
    host_name: Vec<String>,
    /// Name of this server with an A record alone, or its IPv4 address
    #[arg(long, value_name = "NAME")]
    ipv4_name: Option<String>,
    /// Name of this server with an AAAA record alone
    #[arg(long, value_name = "NAME")]
    ipv6_name: Option<String>,
    /// Do not measure loss by WebTransport on UDP
    #[arg(long)]
    no_webtransport: bool,
    /// Serve only clients whose URL has ?token=TOKEN
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Page of a second server, for "Wi-Fi, line or far away?"
    #[arg(long, value_name = "URL")]
    peer: Option<Peer>,
    /// Also measure for the page at this URL, whose peer this is; repeatable
    #[arg(long, value_name = "URL")]
    allow_origin: Vec<Origin>,
    /// Let visitors keep results in this file and share them
    #[arg(long, value_name = "FILE")]
    history: Option<std::path::PathBuf>,
    /// Log each transfer of Cloudflare's client, with its time
    #[arg(long)]
    log_transfers: bool,
    /// Maximum bytes of a run, both directions together
    #[arg(long, value_name = "SIZE", default_value = "4GB")]
    max_bytes_per_run: ByteCount,
    /// Maximum concurrent runs; others get 429
    #[arg(long, value_name = "N", default_value_t = WebLimits::default().runs)]
    max_runs: u32,
    /// Maximum concurrent runs of an address, or of an IPv6 /64
    #[arg(long, value_name = "N", default_value_t = WebLimits::default().runs_per_address)]
    max_runs_per_address: u32,
    /// Believe X-Forwarded-For of this reverse proxy; repeatable
    ///
    /// Limits then count the clients that it names. Without it they count the proxy.
    #[arg(long, value_name = "ADDRESS", value_parser = proxy_address)]
    trusted_proxy: Vec<IpAddr>,
}

impl WebFlags {
    /// The request that they result in.
    pub(crate) fn request(&self, listen: SocketAddr) -> WebRequest {
        let (runs, runs_per_address) = (self.max_runs, self.max_runs_per_address);
        WebRequest {
            listen,
            responsiveness: self.responsiveness,
            webtransport: !self.no_webtransport,
            peer: self.peer.clone(),
            allow_origins: self.allow_origin.clone(),
            history: self.history.clone(),
            log_transfers: self.log_transfers,
            tls: self.tls.clone().unwrap_or_default(),
            names: self.host_name.clone(),
            ipv4_name: self.ipv4_name.clone(),
            ipv6_name: self.ipv6_name.clone(),
            trusted_proxies: self.trusted_proxy.clone(),
            token: self.token.clone(),
            limits: WebLimits { runs, runs_per_address, ..WebLimits::default() },
            max_bytes_per_run: self.max_bytes_per_run,
            ..WebRequest::default()
        }
    }

    /// Whether a port of these servers needs a capability.
    pub(crate) fn has_low_port(&self, listen: SocketAddr) -> bool {
        is_low(listen) || self.responsiveness.is_some_and(is_low)
    }

    /// Threads, and memory in bytes, that serving them takes at most.
    pub(crate) fn most(&self) -> (u64, u64) {
        let flows = u64::from(self.max_runs) * 6;
        let buffered = flows + u64::from(WebLimits::default().transfers);
        (flows + THREADS, systemd_unit::memory_max(256 << 20, buffered))
    }
}

fn proxy_address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "not an IPv4 or IPv6 address".to_owned())
}

/// Whether a server needs a capability for its port.
pub(crate) fn is_low(address: SocketAddr) -> bool {
    (1..1024).contains(&address.port())
}
