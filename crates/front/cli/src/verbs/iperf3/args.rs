//! iperf3's flags. Where a flag has two names, both are iperf3's.

use crate::output_path::OutputPath;
use clap::Args;
use iperf3_proto::values::{
    Affinity, Bounded, Burst, CappedRate, KeepAlive, Ports, affinity, buffer, burst, capped_rate,
    dscp, keepalive, milliseconds, number, ports, rate, report_interval, size, tos, under,
};
use report::iperf3::number::Format;
use std::path::PathBuf;

/// Drop-in replacement for iperf3 3.21: same flags, text and JSON
///
/// Runs scripts written for iperf3 unchanged. A link named iperf3 to this program
/// needs no subcommand. K, M, G and T are powers of 1024 in sizes and of 1000 in
/// rates.
#[derive(Debug, Args)]
#[command(
    disable_version_flag = true,
    args_override_self = true,
    infer_long_args = true,
    after_help = EXAMPLES
)]
pub(crate) struct Iperf3Args {
    #[command(flatten)]
    pub(crate) common: CommonFlags,
    /// Run as server
    #[arg(long, short, help_heading = "Server", conflicts_with_all = ["client", "ClientFlags"])]
    pub(crate) server: bool,
    #[command(flatten)]
    pub(crate) server_flags: ServerFlags,
    /// Run as client of HOST; HOST%DEVICE binds to an interface
    #[arg(long, short, value_name = "HOST", help_heading = "Client")]
    #[arg(conflicts_with = "ServerFlags")]
    pub(crate) client: Option<String>,
    #[command(flatten)]
    pub(crate) client_flags: ClientFlags,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  longhaul iperf3 -s -D -I /run/iperf3.pid     a server in the background
  longhaul iperf3 -c server -P 4 -t 30 -J      four streams, JSON output
  longhaul iperf3 -c server -u -b 50M --bidir  UDP in both directions
  ln -s $(command -v longhaul) ~/bin/iperf3    replace iperf3 in scripts";

/// Flags of both ends.
#[derive(Debug, Args)]
pub(crate) struct CommonFlags {
    /// Server port, or a range to choose from
    #[arg(long, short, value_name = "PORT", default_value = "5201", value_parser = ports)]
    pub(crate) port: Ports,
    /// Unit of rates: k, m, g, t for bits; K, M, G, T for bytes
    #[arg(long, short, value_name = "UNIT", value_parser = format)]
    pub(crate) format: Option<Format>,
    /// Seconds between interval reports, 0.1 to 60; 0: none
    #[arg(long, short, value_name = "SECONDS", default_value = "1")]
    #[arg(value_parser = report_interval)]
    pub(crate) interval: f64,
    /// Write the process id to this file while running
    #[arg(long, short = 'I', value_name = "FILE")]
    pub(crate) pidfile: Option<OutputPath>,
    /// Send this file, or replace it with the received data
    ///
    /// Received data goes to a temporary file that replaces FILE once a test with data
    /// has ended: no client can empty FILE, and of concurrent tests the last to end
    /// wins. Writing stops when the file system is nearly full (1 GiB free, or 5 %
    /// of a small one). A bidirectional test sends the previous contents.
    #[arg(long, short = 'F', value_name = "FILE")]
    pub(crate) file: Option<OutputPath>,
    /// CPU to run on; after a comma, the server's
    #[arg(long, short = 'A', value_name = "N[,M]", value_parser = affinity)]
    pub(crate) affinity: Option<Affinity>,
    /// Local address to bind to; ADDRESS%DEVICE: also an interface
    #[arg(long, short = 'B', value_name = "ADDRESS")]
    pub(crate) bind: Option<String>,
    /// Network interface to bind to
    #[arg(long, value_name = "DEVICE")]
    pub(crate) bind_dev: Option<String>,
    /// Print more details
    #[arg(long, short = 'V')]
    pub(crate) verbose: bool,
    /// Print one JSON document at the end
    #[arg(long, short = 'J')]
    pub(crate) json: bool,
    /// Print a line of JSON for the start, each interval and the end
    #[arg(long)]
    pub(crate) json_stream: bool,
    /// With --json-stream, print the whole document as well
    #[arg(long)]
    pub(crate) json_stream_full_output: bool,
    /// Append the output to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) logfile: Option<OutputPath>,
    /// Flush after every line (always the case)
    #[arg(long)]
    pub(crate) forceflush: bool,
    /// Print the time before each line, in a strftime(3) format
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "%c ")]
    pub(crate) timestamps: Option<String>,
    /// Receive timeout, in milliseconds [default: 120000]
    #[arg(long, value_name = "MS", value_parser = number::<ReceiveTimeout>)]
    pub(crate) rcv_timeout: Option<u32>,
    /// Timeout for unacknowledged data, in milliseconds
    #[arg(long, value_name = "MS", value_parser = number::<SendTimeout>)]
    pub(crate) snd_timeout: Option<u32>,
    /// TCP keepalive of the control connection, in seconds
    #[arg(long, value_name = "IDLE/INTERVAL/COUNT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "", value_parser = keepalive)]
    pub(crate) cntl_ka: Option<KeepAlive>,
    /// Use Multipath TCP
    #[arg(long, short)]
    pub(crate) mptcp: bool,
    /// Use IPv4 only
    #[arg(short = '4', long = "version4", overrides_with = "version6")]
    pub(crate) version4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long = "version6")]
    pub(crate) version6: bool,
    /// Use PKCS #1 v1.5 padding, as before iperf3 3.17
    #[arg(long)]
    pub(crate) use_pkcs1_padding: bool,
    /// Accepted for compatibility, without effect
    #[arg(long, short, value_name = "LEVEL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "4")]
    pub(crate) debug: Option<String>,
    /// Print the iperf3 version that this replaces
    #[arg(long, short = 'v')]
    pub(crate) version: bool,
}

/// Flags of the server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerFlags {
    /// Run in the background as a daemon
    #[arg(long, short = 'D')]
    pub(crate) daemon: bool,
    /// Serve one test, then exit
    #[arg(long, short = '1')]
    pub(crate) one_off: bool,
    /// Maximum total rate of a test, in bit/s
    #[arg(long, value_name = "RATE[/SECONDS]", value_parser = capped_rate)]
    pub(crate) server_bitrate_limit: Option<CappedRate>,
    /// Maximum duration of a test, in seconds; 0: no limit
    #[arg(long, value_name = "SECONDS", value_parser = number::<Duration>)]
    pub(crate) server_max_duration: Option<u32>,
    /// Restart an idle server after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = number::<IdleTimeout>)]
    pub(crate) idle_timeout: Option<u32>,
    /// RSA private key for logins (PEM)
    #[arg(long, value_name = "FILE", requires = "authorized_users_path")]
    pub(crate) rsa_private_key_path: Option<PathBuf>,
    /// Users for logins: lines of name,sha256
    #[arg(long, value_name = "FILE", requires = "rsa_private_key_path")]
    pub(crate) authorized_users_path: Option<PathBuf>,
    /// Maximum clock skew of a login, in seconds [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = number::<Skew>)]
    pub(crate) time_skew_threshold: Option<u32>,
    #[arg(long, hide = true)]
    pub(crate) in_background: bool,
}

/// Flags of the client.
#[derive(Debug, Args)]
#[command(next_help_heading = "Client")]
pub(crate) struct ClientFlags {
    /// Use UDP instead of TCP
    #[arg(long, short)]
    pub(crate) udp: bool,
    /// Connect timeout, in milliseconds
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pub(crate) connect_timeout: Option<u64>,
    /// Rate limit of each stream, in bit/s; 0: none
    ///
    /// After a slash, the number of blocks sent in a burst. Default: 1 Mbit/s with
    /// UDP, none with TCP.
    #[arg(long, short, value_name = "RATE[/BURST]", alias = "bandwidth", value_parser = burst)]
    pub(crate) bitrate: Option<Burst>,
    /// Pacing interval in µs, for servers before 3.17
    #[arg(long, value_name = "US", value_parser = size)]
    pub(crate) pacing_timer: Option<u64>,
    /// Pacing rate of each stream in the kernel, in bit/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) fq_rate: Option<u64>,
    #[arg(long, hide = true)]
    pub(crate) no_fq_socket_pacing: bool,
    /// Duration in seconds; 0: until interrupted [default: 10]
    #[arg(long, short, value_name = "SECONDS", value_parser = number::<Duration>)]
    #[arg(conflicts_with_all = ["bytes", "blockcount"])]
    pub(crate) time: Option<u32>,
    /// Number of bytes to transfer, instead of a duration
    #[arg(long, short = 'n', value_name = "SIZE", value_parser = size, conflicts_with = "blockcount")]
    pub(crate) bytes: Option<u64>,
    /// Number of blocks to transfer, instead of a duration
    #[arg(long, short = 'k', value_name = "COUNT", value_parser = size)]
    pub(crate) blockcount: Option<u64>,
    /// Size of a write or datagram [default: 128K, UDP path MTU]
    #[arg(long, short, value_name = "SIZE", value_parser = size)]
    pub(crate) length: Option<u64>,
    /// Local port of the first stream
    #[arg(long, value_name = "PORT", value_parser = number::<Port>)]
    pub(crate) cport: Option<u32>,
    /// Parallel streams, 1 to 128
    #[arg(long, short = 'P', value_name = "N", default_value = "1")]
    #[arg(value_parser = number::<Streams>)]
    pub(crate) parallel: u32,
    /// Reverse the direction: the server sends
    #[arg(long, short = 'R', conflicts_with = "bidir")]
    pub(crate) reverse: bool,
    /// Send in both directions at once
    #[arg(long)]
    pub(crate) bidir: bool,
    /// Socket buffer size at both ends
    #[arg(long, short, value_name = "SIZE", value_parser = buffer)]
    pub(crate) window: Option<u64>,
    /// Congestion control algorithm of the sender
    #[arg(long, short = 'C', value_name = "NAME", alias = "linux-congestion")]
    pub(crate) congestion: Option<String>,
    /// TCP maximum segment size (MSS), in bytes
    #[arg(long, short = 'M', value_name = "BYTES", value_parser = number::<Mss>)]
    pub(crate) set_mss: Option<u32>,
    /// Disable Nagle's algorithm (TCP_NODELAY)
    #[arg(long, short = 'N')]
    pub(crate) no_delay: bool,
    /// IP type-of-service byte, 0 to 255, also as 0x… or 0…
    #[arg(long, short = 'S', value_name = "N", value_parser = tos)]
    pub(crate) tos: Option<u8>,
    /// DSCP, 0 to 63 or a name: ef, af41, cs1
    #[arg(long, value_name = "DSCP", value_parser = dscp, overrides_with = "tos")]
    pub(crate) dscp: Option<u8>,
    /// IPv6 flow label, 1 to 1048575
    #[arg(long, short = 'L', value_name = "N", value_parser = under::<FlowLabel>)]
    pub(crate) flowlabel: Option<u32>,
    /// Send with zero-copy
    #[arg(long, short = 'Z')]
    pub(crate) zerocopy: bool,
    /// Discard received data without copying it
    #[arg(long)]
    pub(crate) skip_rx_copy: bool,
    /// Omit the first seconds from the result, 0 to 600
    #[arg(long, short = 'O', value_name = "SECONDS", default_value = "0")]
    #[arg(value_parser = number::<Omit>)]
    pub(crate) omit: u32,
    /// Prefix of every output line
    #[arg(long, short = 'T', value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) title: Option<String>,
    /// Extra text for the JSON output
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) extra_data: Option<String>,
    /// Print the server's output as well
    #[arg(long)]
    pub(crate) get_server_output: bool,
    /// Use 64-bit packet counters
    #[arg(long)]
    pub(crate) udp_counters_64bit: bool,
    /// Send a repeating pattern instead of random bytes
    #[arg(long)]
    pub(crate) repeating_payload: bool,
    /// Do not fragment UDP datagrams: set DF
    #[arg(long)]
    pub(crate) dont_fragment: bool,
    /// Use UDP segmentation and receive offload (default)
    #[arg(long)]
    pub(crate) gsro: bool,
    /// Disable UDP segmentation and receive offload
    #[arg(long, conflicts_with = "gsro")]
    pub(crate) no_gsro: bool,
    /// User name for the login; password from $IPERF3_PASSWORD
    ///
    /// Without the environment variable the terminal prompts for it.
    #[arg(long, value_name = "NAME", requires = "rsa_public_key_path")]
    pub(crate) username: Option<String>,
    /// RSA public key of the server for the login (PEM)
    #[arg(long, value_name = "FILE", requires = "username")]
    pub(crate) rsa_public_key_path: Option<PathBuf>,
    #[arg(long, hide = true)]
    pub(crate) sctp: bool,
    #[arg(long, hide = true, value_name = "N")]
    pub(crate) nstreams: Option<String>,
    #[arg(long, short = 'X', hide = true, value_name = "NAME")]
    pub(crate) xbind: Option<String>,
}

macro_rules! bounds {
    ($($name:ident: $least:literal to $most:literal $what:literal;)*) => {$(
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name;
        impl Bounded for $name {
            const MIN: u32 = $least;
            const MAX: u32 = $most;
            const WHAT: &'static str = $what;
        }
    )*};
}

// iperf3's own limits (src/iperf.h).
bounds! {
    Duration: 0 to 86_400 "seconds";
    Omit: 0 to 600 "seconds";
    Streams: 1 to 128 "streams";
    Mss: 1 to 32_767 "bytes";
    Port: 1 to 65_535 "for a port";
    FlowLabel: 1 to 1_048_575 "for a flow label";
    IdleTimeout: 1 to 86_400 "seconds";
    Skew: 1 to 86_400 "seconds";
    ReceiveTimeout: 100 to 86_400_000 "milliseconds";
    SendTimeout: 0 to 86_400_000 "milliseconds";
}

fn format(text: &str) -> Result<Format, String> {
    Format::from_letter(text)
        .ok_or_else(|| "give k, m, g or t for bits, K, M, G or T for bytes".to_owned())
}
