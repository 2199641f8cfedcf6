//! iperf3's flags. Where two forms of a flag are taken, both are iperf3's.

use super::values::{
    Affinity, Bounded, Burst, CappedRate, KeepAlive, Ports, affinity, buffer, burst, capped_rate,
    dscp, format, keepalive, milliseconds, number, ports, rate, report_interval, size, tos, under,
};
use clap::Args;
use report::iperf3::number::Format;
use std::path::PathBuf;

/// Stand in for iperf3 3.21: its flags, its text, its JSON
///
/// Takes what scripts written for iperf3 give it and prints what they read.
/// A link to this program that is called iperf3 does the same without the verb.
/// Sizes count 1024 (K, M, G, T), rates 1000.
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
    /// Serve tests
    #[arg(long, short, help_heading = "Server", conflicts_with_all = ["client", "ClientFlags"])]
    pub(crate) server: bool,
    #[command(flatten)]
    pub(crate) server_flags: ServerFlags,
    /// Test to this server; HOST%DEVICE goes over that interface
    #[arg(long, short, value_name = "HOST", help_heading = "Client")]
    #[arg(conflicts_with = "ServerFlags")]
    pub(crate) client: Option<String>,
    #[command(flatten)]
    pub(crate) client_flags: ClientFlags,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  longhaul iperf3 -s -D -I /run/iperf3.pid      a server in the background
  longhaul iperf3 -c server -P 4 -t 30 -J       four streams, the result as JSON
  longhaul iperf3 -c server -u -b 50M --bidir   datagrams both ways, 50 Mbit/s each
  ln -s $(command -v longhaul) ~/bin/iperf3     scripts that call iperf3 go on as they are";

/// For either end.
#[derive(Debug, Args)]
pub(crate) struct CommonFlags {
    /// Port of the server, or a range such as 5201-5210: the first that is free
    #[arg(long, short, value_name = "PORT", default_value = "5201", value_parser = ports)]
    pub(crate) port: Ports,
    /// Unit of the rates: k, m, g, t for bits, K, M, G, T for bytes
    #[arg(long, short, value_name = "UNIT", value_parser = format)]
    pub(crate) format: Option<Format>,
    /// Seconds between rows, 0.1 to 60; 0 for one row at the end
    #[arg(long, short, value_name = "SECONDS", default_value = "1")]
    #[arg(value_parser = report_interval)]
    pub(crate) interval: f64,
    /// Keep the process id in this file while running
    #[arg(long, short = 'I', value_name = "FILE")]
    pub(crate) pidfile: Option<PathBuf>,
    /// Send this file, or write what arrives to it
    #[arg(long, short = 'F', value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Core to run on; after a comma the server's, where this is the client
    #[arg(long, short = 'A', value_name = "N[,M]", value_parser = affinity)]
    pub(crate) affinity: Option<Affinity>,
    /// Local address; ADDRESS%DEVICE goes over that interface
    #[arg(long, short = 'B', value_name = "ADDRESS")]
    pub(crate) bind: Option<String>,
    /// Interface to go over
    #[arg(long, value_name = "DEVICE")]
    pub(crate) bind_dev: Option<String>,
    /// Say more
    #[arg(long, short = 'V')]
    pub(crate) verbose: bool,
    /// One JSON document at the end
    #[arg(long, short = 'J')]
    pub(crate) json: bool,
    /// A line of JSON for the start, each interval and the end
    #[arg(long)]
    pub(crate) json_stream: bool,
    /// With --json-stream: the whole document as well
    #[arg(long)]
    pub(crate) json_stream_full_output: bool,
    /// Append the output to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) logfile: Option<PathBuf>,
    /// Write out every line at once; always so here
    #[arg(long)]
    pub(crate) forceflush: bool,
    /// Put the time before each line, in a form of strftime(3)
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "%c ")]
    pub(crate) timestamps: Option<String>,
    /// Milliseconds without data after which a receiver gives up (default: 120000)
    #[arg(long, value_name = "MS", value_parser = number::<ReceiveTimeout>)]
    pub(crate) rcv_timeout: Option<u32>,
    /// Milliseconds that sent data may stay without acknowledgement
    #[arg(long, value_name = "MS", value_parser = number::<SendTimeout>)]
    pub(crate) snd_timeout: Option<u32>,
    /// Probe a silent control connection: seconds before, seconds between, count
    #[arg(long, value_name = "IDLE/INTERVAL/COUNT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "", value_parser = keepalive)]
    pub(crate) cntl_ka: Option<KeepAlive>,
    /// Multipath TCP
    #[arg(long, short)]
    pub(crate) mptcp: bool,
    /// Only IPv4
    #[arg(short = '4', long = "version4", overrides_with = "version6")]
    pub(crate) version4: bool,
    /// Only IPv6
    #[arg(short = '6', long = "version6")]
    pub(crate) version6: bool,
    /// The padding of logins before iperf3 3.17
    #[arg(long)]
    pub(crate) use_pkcs1_padding: bool,
    /// Accepted, and without effect
    #[arg(long, short, value_name = "LEVEL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "4")]
    pub(crate) debug: Option<String>,
    /// Which version this stands in for
    #[arg(long, short = 'v')]
    pub(crate) version: bool,
}

/// Only for a server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerFlags {
    /// Go on in the background
    #[arg(long, short = 'D')]
    pub(crate) daemon: bool,
    /// Serve one test and exit
    #[arg(long, short = '1')]
    pub(crate) one_off: bool,
    /// Most bit/s of a test, all streams together
    #[arg(long, value_name = "RATE[/SECONDS]", value_parser = capped_rate)]
    pub(crate) server_bitrate_limit: Option<CappedRate>,
    /// Longest test that is served, in seconds; 0 for any
    #[arg(long, value_name = "SECONDS", value_parser = number::<Duration>)]
    pub(crate) server_max_duration: Option<u32>,
    /// Seconds after which an idle server begins anew
    #[arg(long, value_name = "SECONDS", value_parser = number::<IdleTimeout>)]
    pub(crate) idle_timeout: Option<u32>,
    /// The private key (PEM) that clients' logins are encrypted for
    #[arg(long, value_name = "FILE", requires = "authorized_users_path")]
    pub(crate) rsa_private_key_path: Option<PathBuf>,
    /// Who may test: a line for each, name,sha256
    #[arg(long, value_name = "FILE", requires = "rsa_private_key_path")]
    pub(crate) authorized_users_path: Option<PathBuf>,
    /// Seconds that a client's clock may be off (default: 10)
    #[arg(long, value_name = "SECONDS", value_parser = number::<Skew>)]
    pub(crate) time_skew_threshold: Option<u32>,
    #[arg(long, hide = true)]
    pub(crate) in_background: bool,
}

/// Only for a client.
#[derive(Debug, Args)]
#[command(next_help_heading = "Client")]
pub(crate) struct ClientFlags {
    /// Datagrams instead of TCP
    #[arg(long, short)]
    pub(crate) udp: bool,
    /// Milliseconds that connecting may take
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pub(crate) connect_timeout: Option<u64>,
    /// bit/s of each stream, 0 for no limit [UDP 1 Mbit/s, TCP no limit]; after
    /// a slash how many blocks go at once
    #[arg(long, short, value_name = "RATE[/BURST]", alias = "bandwidth", value_parser = burst)]
    pub(crate) bitrate: Option<Burst>,
    /// For servers before 3.17: µs between looks at the rate
    #[arg(long, value_name = "US", value_parser = size)]
    pub(crate) pacing_timer: Option<u64>,
    /// bit/s at which the kernel paces each stream
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) fq_rate: Option<u64>,
    #[arg(long, hide = true)]
    pub(crate) no_fq_socket_pacing: bool,
    /// Seconds of the test; 0 goes on until it is stopped (default: 10)
    #[arg(long, short, value_name = "SECONDS", value_parser = number::<Duration>)]
    #[arg(conflicts_with_all = ["bytes", "blockcount"])]
    pub(crate) time: Option<u32>,
    /// End after so many bytes instead
    #[arg(long, short = 'n', value_name = "SIZE", value_parser = size, conflicts_with = "blockcount")]
    pub(crate) bytes: Option<u64>,
    /// End after so many blocks instead
    #[arg(long, short = 'k', value_name = "COUNT", value_parser = size)]
    pub(crate) blockcount: Option<u64>,
    /// Bytes of a write or a datagram [TCP 128K, UDP what fits the path]
    #[arg(long, short, value_name = "SIZE", value_parser = size)]
    pub(crate) length: Option<u64>,
    /// Local port of the first stream
    #[arg(long, value_name = "PORT", value_parser = number::<Port>)]
    pub(crate) cport: Option<u32>,
    /// Streams at the same time, 1 to 128
    #[arg(long, short = 'P', value_name = "N", default_value = "1")]
    #[arg(value_parser = number::<Streams>)]
    pub(crate) parallel: u32,
    /// The server sends
    #[arg(long, short = 'R', conflicts_with = "bidir")]
    pub(crate) reverse: bool,
    /// Both ends send
    #[arg(long)]
    pub(crate) bidir: bool,
    /// Socket buffers at both ends
    #[arg(long, short, value_name = "SIZE", value_parser = buffer)]
    pub(crate) window: Option<u64>,
    /// Congestion control of the sender
    #[arg(long, short = 'C', value_name = "NAME", alias = "linux-congestion")]
    pub(crate) congestion: Option<String>,
    /// Largest TCP segment, bytes
    #[arg(long, short = 'M', value_name = "BYTES", value_parser = number::<Mss>)]
    pub(crate) set_mss: Option<u32>,
    /// Send small writes at once
    #[arg(long, short = 'N')]
    pub(crate) no_delay: bool,
    /// Type of service, 0 to 255; also octal (0…) and hexadecimal (0x…)
    #[arg(long, short = 'S', value_name = "N", value_parser = tos)]
    pub(crate) tos: Option<u8>,
    /// The same as a DSCP: 0 to 63, or a name such as ef, af41, cs1
    #[arg(long, value_name = "DSCP", value_parser = dscp, overrides_with = "tos")]
    pub(crate) dscp: Option<u8>,
    /// IPv6 flow label, 1 to 1048575
    #[arg(long, short = 'L', value_name = "N", value_parser = under::<FlowLabel>)]
    pub(crate) flowlabel: Option<u32>,
    /// Send without copying
    #[arg(long, short = 'Z')]
    pub(crate) zerocopy: bool,
    /// Receive without copying
    #[arg(long)]
    pub(crate) skip_rx_copy: bool,
    /// Seconds at the start that the result leaves out, 0 to 600
    #[arg(long, short = 'O', value_name = "SECONDS", default_value = "0")]
    #[arg(value_parser = number::<Omit>)]
    pub(crate) omit: u32,
    /// Put this before each line
    #[arg(long, short = 'T', value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) title: Option<String>,
    /// Put this into the JSON
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) extra_data: Option<String>,
    /// Print the server's output too
    #[arg(long)]
    pub(crate) get_server_output: bool,
    /// Number datagrams with 64 bits
    #[arg(long)]
    pub(crate) udp_counters_64bit: bool,
    /// A pattern as payload instead of random bytes
    #[arg(long)]
    pub(crate) repeating_payload: bool,
    /// Refuse datagrams that would have to be cut up
    #[arg(long)]
    pub(crate) dont_fragment: bool,
    /// Let the kernels cut and join datagrams; they do where they can, also without it
    #[arg(long)]
    pub(crate) gsro: bool,
    /// Hand datagrams over one by one
    #[arg(long, conflicts_with = "gsro")]
    pub(crate) no_gsro: bool,
    /// Name to log in with; IPERF3_PASSWORD or the terminal gives the password
    #[arg(long, value_name = "NAME", requires = "rsa_public_key_path")]
    pub(crate) username: Option<String>,
    /// The server's public key (PEM) for the login
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
            const LEAST: u32 = $least;
            const MOST: u32 = $most;
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
    Port: 1 to 65_535 "as ports go";
    FlowLabel: 1 to 1_048_575 "as flow labels go";
    IdleTimeout: 1 to 86_400 "seconds";
    Skew: 1 to 86_400 "seconds";
    ReceiveTimeout: 100 to 86_400_000 "milliseconds";
    SendTimeout: 0 to 86_400_000 "milliseconds";
}
