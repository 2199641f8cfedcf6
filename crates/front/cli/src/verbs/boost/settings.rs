//! Flags of both boxes.

use clap::Args;
use longhaul::boost::BoxSettings;
use std::net::SocketAddr;
use std::path::PathBuf;
use units::ByteCount;

#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct BoxArgs {
    /// Key of this box, as longhaul boost pair makes it
    ///
    /// Only its owner should be able to read the file. A far box takes one for each near box.
    #[arg(long, value_name = "FILE", help_heading = "Between the boxes")]
    key_file: Vec<PathBuf>,
    /// No encryption and no keys between the boxes: labs only
    #[arg(long, conflicts_with = "key_file", help_heading = "Between the boxes")]
    insecure: bool,
    /// Congestion control between the boxes [default: the system's]
    ///
    /// What this box sends: give it at both.
    #[arg(long, short = 'C', value_name = "NAME", visible_alias = "cc")]
    #[arg(help_heading = "Between the boxes")]
    congestion: Option<String>,
    /// Socket buffer of each lane: 2 BDP or more [default: autotuned]
    ///
    /// Without it the kernel adapts buffers up to net.ipv4.tcp_wmem and tcp_rmem. With it, sizes
    /// above net.core.wmem_max and rmem_max need root.
    #[arg(long, value_name = "SIZE", help_heading = "Between the boxes")]
    buffer: Option<ByteCount>,
    /// Compress with zstd what gains by it: give it at both boxes
    ///
    /// Blocks that gain under 5 %, TLS, SSH, and flows for which the CPU would be the limit are sent as
    /// they are.
    #[arg(long, help_heading = "Between the boxes")]
    compress: bool,
    /// Maximum concurrent flows; further ones are refused
    #[arg(long, value_name = "N", default_value_t = BoxSettings::default().max_flows)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Limits")]
    max_flows: u64,
    /// Seconds without data after which a flow is reset
    #[arg(long, value_name = "SECONDS", default_value_t = BoxSettings::default().idle_timeout_s)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=604_800), help_heading = "Limits")]
    idle_timeout: u64,
    /// Seconds that flows have to end after SIGTERM
    #[arg(long, value_name = "SECONDS", default_value_t = BoxSettings::default().drain_s)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=86_400), help_heading = "Limits")]
    drain: u64,
    /// Serve Prometheus metrics at http://127.0.0.1:PORT/metrics
    ///
    /// ADDRESS:PORT listens on another address.
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = host::address::parse_listen)]
    #[arg(help_heading = "Output")]
    metrics: Option<SocketAddr>,
    /// Log each event as a line of JSON
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
    /// Log every flow that ends, not only failed ones
    #[arg(long, short, help_heading = "Output")]
    verbose: bool,
}

impl BoxArgs {
    pub(super) fn settings(&self) -> BoxSettings {
        BoxSettings {
            key_files: self.key_file.clone(),
            insecure: self.insecure,
            congestion: self.congestion.clone(),
            buffer: self.buffer,
            compress: self.compress,
            idle_timeout_s: self.idle_timeout,
            drain_s: self.drain,
            max_flows: self.max_flows,
            reports_flows: self.verbose,
            metrics: self.metrics,
        }
    }
}
