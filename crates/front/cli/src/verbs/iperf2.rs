//! `longhaul iperf2`: an iperf 2 client and server, with iperf 2's output.

use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use clap::{ArgAction, ArgGroup, Args};
use host::address::{self, AddressError};
use host::lock::lock;
use host::resolve::Family;
use iperf2::client::{self, ClientConfig};
use iperf2::output::{csv, text, text::Text};
use iperf2::server::{Limits, Server, ServerConfig, Trust};
use iperf2::{Event, Iperf2Error, Options};
use iperf2_proto::{Amount, Format, Mode, Pace, quantity};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

/// Run an iperf 2 client or server
///
/// Compatible with iperf 2.0.5 to 2.1.8, in protocol and output. As in iperf 2,
/// lower-case suffixes are powers of 1000 and upper-case ones powers of 1024:
/// `-b 50m` is 50 Mbit/s, `-n 20K` is 20 480 bytes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_version_flag = true)]
#[command(group = ArgGroup::new("end").required(true).args(["server", "client"]))]
pub(crate) struct Iperf2Args {
    /// Run as a server
    #[arg(long, short)]
    server: bool,
    /// Run as a client of this server
    #[arg(long, short, value_name = "HOST")]
    client: Option<String>,
    /// Use UDP instead of TCP
    #[arg(long, short)]
    udp: bool,
    /// Server port
    #[arg(long, short, default_value_t = iperf2_proto::DEFAULT_PORT)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Seconds [client: 10, server: no limit]
    #[arg(long, short, value_name = "SECONDS", value_parser = seconds)]
    time: Option<Duration>,
    /// Bytes per stream, instead of a duration: 20K
    #[arg(long, short, value_name = "BYTES", value_parser = quantity::parse)]
    #[arg(conflicts_with_all = ["time", "server"])]
    num: Option<u64>,
    /// Rate per stream: 50m, 1000pps [default UDP: 1M]
    #[arg(long, short, value_name = "RATE", value_parser = Pace::parse)]
    #[arg(conflicts_with = "server")]
    bandwidth: Option<Pace>,
    /// Number of parallel streams, 1 to 128
    #[arg(long, short = 'P', value_name = "STREAMS", default_value_t = 1)]
    #[arg(conflicts_with = "server")]
    parallel: u32,
    /// Report interval in seconds [default: none]
    #[arg(long, short, value_name = "SECONDS", value_parser = interval)]
    interval: Option<Duration>,
    /// Bytes per write (128K) or datagram (1470)
    ///
    /// The default for UDP over IPv6 is 1450.
    #[arg(long, short, value_name = "LENGTH", value_parser = length)]
    len: Option<u32>,
    /// Socket buffer size [default: kernel's choice]
    #[arg(long, short, value_name = "WINDOW", value_parser = quantity::parse)]
    window: Option<u64>,
    /// Unit: kmga for bits, KMGA for bytes
    #[arg(long, short, value_name = "FORMAT", value_parser = Format::parse)]
    format: Option<Format>,
    /// Then test in reverse, over a new connection
    #[arg(long, short = 'r', group = "direction", conflicts_with = "server")]
    tradeoff: bool,
    /// Test both directions, over two connections
    #[arg(long, short, group = "direction", conflicts_with = "server")]
    dualtest: bool,
    /// Reverse: the server sends
    #[arg(long, short = 'R', group = "direction", conflicts_with = "server")]
    reverse: bool,
    /// Test both directions over one connection
    #[arg(long, group = "direction", conflicts_with = "server")]
    full_duplex: bool,
    /// Client port for -d and -r [default: --port]
    #[arg(long, short = 'L', value_name = "PORT", conflicts_with = "server")]
    #[arg(value_parser = clap::value_parser!(u16).range(1024..))]
    listenport: Option<u16>,
    /// Local address; as a client also a port
    ///
    /// 10.0.0.1 or 10.0.0.1:4000.
    #[arg(long, short = 'B', value_name = "ADDRESS", value_parser = bind)]
    bind: Option<SocketAddr>,
    /// Use IPv6 only
    #[arg(long = "ipv6_domain", short = 'V', short_alias = '6', conflicts_with = "ipv4")]
    ipv6: bool,
    /// Use IPv4 only
    #[arg(short = '4')]
    ipv4: bool,
    /// TCP maximum segment size in bytes
    #[arg(long, short = 'M', value_name = "BYTES")]
    mss: Option<u32>,
    /// Set TCP_NODELAY: disable Nagle's algorithm
    #[arg(long, short = 'N')]
    nodelay: bool,
    /// Congestion control, such as cubic or bbr
    #[arg(long, short = 'Z', value_name = "NAME")]
    tcp_congestion: Option<String>,
    /// TOS byte: 0 to 255, 0x.., ef, cs1, af11, lowdelay
    #[arg(long, short = 'S', value_name = "TOS", value_parser = text::tos)]
    tos: Option<u8>,
    /// C: print CSV, with dates in UTC
    #[arg(long, short = 'y', value_name = "STYLE", value_parser = ["C", "c"])]
    #[arg(hide_possible_values = true)]
    reportstyle: Option<String>,
    /// Accepted for compatibility, without effect
    #[arg(long, short)]
    enhanced: bool,
    /// Print one JSON document at the end
    #[arg(long, conflicts_with_all = ["reportstyle", "server"])]
    json: bool,
    /// Maximum concurrent streams
    ///
    /// Streams in both directions count.
    #[arg(long, value_name = "N", default_value_t = Limits::default().streams)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024), conflicts_with = "client")]
    max_streams: u32,
    /// Maximum streams per client address [default: half]
    ///
    /// An IPv6 /64 counts as one address; the default is half of --max-streams.
    #[arg(long, value_name = "N", conflicts_with = "client")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    max_per_address: Option<u32>,
    /// Maximum test duration in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().duration.as_secs())]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400), conflicts_with = "client")]
    max_time: u64,
    /// Send UDP tests to unverified addresses
    ///
    /// Source addresses can be forged: anyone can make this server flood a victim.
    #[arg(long, conflicts_with = "client")]
    trust_udp: bool,
    /// Print version
    #[arg(long, short = 'v', action = ArgAction::Version)]
    version: Option<bool>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul iperf2 -s
  longhaul iperf2 -c HOST -i 1 -w 4M -P 4   four streams, reports every second
  longhaul iperf2 -s -u
  longhaul iperf2 -c HOST -u -b 50m         UDP, with loss and jitter
  longhaul iperf2 -c HOST -r -L 5002        one direction, then the other
  longhaul iperf2 -c HOST -t 60 -y C        CSV output

Not supported: --bounceback, --isochronous, --trip-times, --permit-key,
multicast, -F, -I, -D, -1, -U, -X and any option not listed above.";

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.01..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "give 0.01 to 86400 seconds".to_owned())
}

fn interval(text: &str) -> Result<Duration, String> {
    // iperf 2 takes 0 for no interval.
    if text == "0" { Ok(Duration::ZERO) } else { seconds(text) }
}

fn length(text: &str) -> Result<u32, String> {
    let bytes = quantity::parse(text).map_err(|error| error.to_string())?;
    u32::try_from(bytes)
        .map_err(|_| format!("'{text}' is too large; give at most 4294967295 bytes"))
}

fn bind(text: &str) -> Result<SocketAddr, AddressError> {
    // An address with a port: 10.0.0.1:4000, [fe80::1%eth0]:4000.
    if let Some((address, port)) = text.rsplit_once(':')
        && (address.ends_with(']') || !address.contains(':'))
        && let Ok(port) = port.parse()
    {
        return address::parse(address).map(|address| address::with_port(address, port));
    }
    address::parse(text)
}

pub(crate) fn run(args: &Iperf2Args, console: &mut Console) -> Outcome {
    if args.enhanced {
        console.say("-e has no effect");
    }
    match &args.client {
        Some(host) => run_client(args, host, console),
        None => run_server(args, console),
    }
}

fn failure(error: Iperf2Error) -> Failure {
    if error.is_usage() { Failure::usage(error) } else { Failure::work(error) }
}

fn options(args: &Iperf2Args) -> Options {
    Options {
        window: args.window,
        mss: args.mss,
        nodelay: args.nodelay,
        congestion: args.tcp_congestion.clone(),
        tos: args.tos,
    }
}

fn report_interval(args: &Iperf2Args) -> Option<Duration> {
    args.interval.filter(|interval| !interval.is_zero())
}

fn run_client(args: &Iperf2Args, host: &str, console: &mut Console) -> Outcome {
    let config = ClientConfig {
        port: args.port,
        family: Family::from_flags(args.ipv4, args.ipv6),
        bind: args.bind,
        udp: args.udp,
        mode: match (args.tradeoff, args.dualtest, args.reverse, args.full_duplex) {
            (true, ..) => Mode::TradeOff,
            (_, true, ..) => Mode::Dual,
            (_, _, true, _) => Mode::Reverse,
            (.., true) => Mode::FullDuplex,
            _ => Mode::Normal,
        },
        streams: args.parallel,
        amount: match (args.num, args.time) {
            (Some(bytes), _) => Amount::Bytes(bytes),
            (_, time) => Amount::Time(time.unwrap_or(Duration::from_secs(10))),
        },
        length: args.len,
        pace: args.bandwidth,
        interval: report_interval(args),
        listen_port: args.listenport,
        options: options(args),
        ..ClientConfig::new(host)
    };
    let stop = stop::on_signals();
    let mut text = Text::new(args.format.unwrap_or_default(), args.udp, args.window, true);
    text.pace = args.udp.then(|| (config.clone(), args.bandwidth));
    if args.json {
        let document = longhaul::iperf2::run(&config, &stop)?;
        console.print(&console::json(&document)?);
    } else {
        let printer = Printer::new(args, text, console);
        client::run(&config, &|event| printer.take(&event), &stop).map_err(failure)?;
    }
    Ok(if stop.is_raised() { FAILED } else { DONE })
}

fn run_server(args: &Iperf2Args, console: &mut Console) -> Outcome {
    let config = ServerConfig {
        bind: args.bind.or_else(|| args.ipv4.then(|| SocketAddr::from(([0, 0, 0, 0], 0)))),
        port: args.port,
        udp: args.udp,
        length: args.len.map(|length| length.clamp(1, 1 << 24)),
        interval: report_interval(args),
        time: args.time,
        options: options(args),
        limits: Limits {
            streams: args.max_streams,
            streams_per_address: args.max_per_address,
            duration: Duration::from_secs(args.max_time),
            trust: if args.trust_udp { Trust::All } else { Trust::default() },
            ..Limits::default()
        },
    };
    let stop = stop::on_signals();
    let server = Server::bind(&config).map_err(failure)?;
    let text = Text::new(args.format.unwrap_or_default(), args.udp, args.window, false);
    if args.reportstyle.is_none() {
        console.print(&text.listening(server.local_addr().port(), server.buffer()));
    }
    let printer = Printer::new(args, text, console);
    server.serve(&stop, &|event| printer.take(&event)).map_err(failure)?;
    Ok(DONE)
}

/// Prints events as text or CSV.
struct Printer<'c> {
    csv: bool,
    to: Mutex<(Text, &'c mut Console)>,
}

impl<'c> Printer<'c> {
    fn new(args: &Iperf2Args, text: Text, console: &'c mut Console) -> Self {
        Printer { csv: args.reportstyle.is_some(), to: Mutex::new((text, console)) }
    }

    fn take(&self, event: &Event) {
        let mut to = lock(&self.to);
        let (text, console) = &mut *to;
        match event {
            &Event::Suppressed { streams, intervals, errors } => console.say(&format!(
                "log rate limit: suppressed {streams} streams, {intervals} interval reports and {errors} \
                 errors"
            )),
            Event::PeerError { peer, reason } => console.say(&format!("{peer}: {}", printable(reason))),
            Event::NoReport { label, attempts } => console.say(&format!(
                "[{:3}] no server report after {attempts} attempts; check for a firewall on the path",
                label.id
            )),
            event if self.csv => {
                let date = csv::date(host::clock::unix_seconds());
                if let Some(line) = csv::line(event, &date) {
                    console.print(&line);
                }
            }
            event => console.print(&text.lines(event)),
        }
    }
}

/// Removes control characters from text that came over the network.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}
