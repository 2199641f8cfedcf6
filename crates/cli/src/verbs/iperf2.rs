//! `longhaul iperf2`: either end of a test with iperf 2, in its own form.

mod csv;
mod document;
mod text;

use crate::console::Console;
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use clap::{ArgAction, ArgGroup, Args};
use iperf2::{Amount, Format, Mode, Pace, figures};
use probe::iperf2::client::{self, ClientConfig};
use probe::iperf2::server::{Limits, Server, ServerConfig, Trust};
use probe::iperf2::{Event, Iperf2Error, Options};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use text::Text;

/// Either end of a test with iperf 2
///
/// Speaks the protocol of iperf 2 (2.0.5 to 2.1.8) and prints its rows. As
/// there, small letters are powers of 1000 and capitals powers of 1024:
/// `-b 50m` is 50 Mbit/s, `-n 20K` is 20 480 bytes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_version_flag = true)]
#[command(group = ArgGroup::new("end").required(true).args(["server", "client"]))]
pub(crate) struct Iperf2Args {
    /// Serve tests
    #[arg(long, short)]
    server: bool,
    /// Test to a server
    #[arg(long, short, value_name = "HOST")]
    client: Option<String>,
    /// Datagrams (UDP) instead of TCP
    #[arg(long, short)]
    udp: bool,
    /// Port of the server
    #[arg(long, short, default_value_t = iperf2::DEFAULT_PORT)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Seconds to send, or to serve [client: 10, server: for ever]
    #[arg(long, short, value_name = "SECONDS", value_parser = seconds)]
    time: Option<Duration>,
    /// Bytes of each stream instead: 20K, 1G
    #[arg(long, short, value_name = "BYTES", value_parser = figures::parse)]
    #[arg(conflicts_with_all = ["time", "server"])]
    num: Option<u64>,
    /// Rate of each stream: 50m, 1G, 1000pps [UDP: 1M]
    #[arg(long, short, value_name = "RATE", value_parser = Pace::parse)]
    #[arg(conflicts_with = "server")]
    bandwidth: Option<Pace>,
    /// Streams at the same time, 1 to 128
    #[arg(long, short = 'P', value_name = "STREAMS", default_value_t = 1)]
    #[arg(conflicts_with = "server")]
    parallel: u32,
    /// Seconds between rows [one row at the end]
    #[arg(long, short, value_name = "SECONDS", value_parser = interval)]
    interval: Option<Duration>,
    /// Bytes of a write or datagram [TCP: 128K, UDP: 1470, over IPv6 1450]
    #[arg(long, short, value_name = "LENGTH", value_parser = length)]
    len: Option<u32>,
    /// Socket buffers [left to the kernel]
    #[arg(long, short, value_name = "WINDOW", value_parser = figures::parse)]
    window: Option<u64>,
    /// Rows in bits or BYTES: one letter of kmgaKMGA
    #[arg(long, short, value_name = "FORMAT", value_parser = Format::parse)]
    format: Option<Format>,
    /// Afterwards the server sends, over a connection of its own
    #[arg(long, short = 'r', group = "way", conflicts_with = "server")]
    tradeoff: bool,
    /// At the same time the server sends, over a connection of its own
    #[arg(long, short, group = "way", conflicts_with = "server")]
    dualtest: bool,
    /// The server sends, over the client's connection
    #[arg(long, short = 'R', group = "way", conflicts_with = "server")]
    reverse: bool,
    /// Both send over one connection
    #[arg(long, group = "way", conflicts_with = "server")]
    full_duplex: bool,
    /// Where to listen for -d and -r [the server's port]
    #[arg(long, short = 'L', value_name = "PORT", conflicts_with = "server")]
    #[arg(value_parser = clap::value_parser!(u16).range(1024..))]
    listenport: Option<u16>,
    /// Our address, and for a client its port: 10.0.0.1:4000
    #[arg(long, short = 'B', value_name = "ADDRESS", value_parser = bind)]
    bind: Option<SocketAddr>,
    /// Only IPv6
    #[arg(long = "ipv6_domain", short = 'V', short_alias = '6', conflicts_with = "ipv4")]
    ipv6: bool,
    /// Only IPv4
    #[arg(short = '4')]
    ipv4: bool,
    /// Largest segment
    #[arg(long, short = 'M', value_name = "BYTES")]
    mss: Option<u32>,
    /// No Nagle's algorithm
    #[arg(long, short = 'N')]
    nodelay: bool,
    /// Congestion control: cubic, bbr, reno
    #[arg(long, short = 'Z', value_name = "NAME")]
    tcp_congestion: Option<String>,
    /// Type of service: a number, 0x.., ef, cs1, af11, lowdelay
    #[arg(long, short = 'S', value_name = "TOS", value_parser = text::tos)]
    tos: Option<u8>,
    /// C: rows as comma-separated values, their dates in UTC
    #[arg(long, short = 'y', value_name = "STYLE", value_parser = ["C", "c"])]
    reportstyle: Option<String>,
    /// Accepted; rows stay as they are
    #[arg(long, short)]
    enhanced: bool,
    /// One document in the end instead of rows
    #[arg(long, conflicts_with_all = ["reportstyle", "server"])]
    json: bool,
    /// Streams that clients may have at the same time
    #[arg(long, value_name = "N", default_value_t = Limits::default().streams)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024), conflicts_with = "client")]
    max_streams: u32,
    /// Longest that a client may have this server send, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().duration.as_secs())]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400), conflicts_with = "client")]
    max_time: u64,
    /// Send datagrams to whoever asks, though addresses can be forged
    #[arg(long, conflicts_with = "client")]
    trust_udp: bool,
    /// Print version
    #[arg(long, short = 'v', action = ArgAction::Version)]
    version: Option<bool>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul iperf2 -s
  longhaul iperf2 -c HOST -i 1 -w 4M -P 4   four connections, a row a second
  longhaul iperf2 -s -u
  longhaul iperf2 -c HOST -u -b 50m         datagrams, and what the server lost
  longhaul iperf2 -c HOST -r -L 5002        one way, then the other
  longhaul iperf2 -c HOST -t 60 -y C        comma-separated values

Not carried: --bounceback, --isochronous, --trip-times, --permit-key, multicast,
-F, -I, -D, -1, -U, -X and what else is not listed above.";

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.01..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "give 0.01 to 86400 seconds".to_owned())
}

fn interval(text: &str) -> Result<Duration, String> {
    // The real program takes 0 for none.
    if text == "0" { Ok(Duration::ZERO) } else { seconds(text) }
}

fn length(text: &str) -> Result<u32, String> {
    let bytes = figures::parse(text)?;
    u32::try_from(bytes).map_err(|_| format!("'{text}' is too long for one write"))
}

fn bind(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0));
    address
        .or_else(|_| text.parse())
        .map_err(|_| format!("'{text}' is no address; give one such as 10.0.0.1 or 10.0.0.1:4000"))
}

pub(crate) fn run(args: &Iperf2Args, console: &mut Console) -> Outcome {
    if args.enhanced {
        console.say("-e: the rows stay as they are without it");
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

fn every(args: &Iperf2Args) -> Option<Duration> {
    args.interval.filter(|interval| !interval.is_zero())
}

fn run_client(args: &Iperf2Args, host: &str, console: &mut Console) -> Outcome {
    let config = ClientConfig {
        port: args.port,
        v6: match (args.ipv4, args.ipv6) {
            (true, _) => Some(false),
            (_, true) => Some(true),
            _ => None,
        },
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
        interval: every(args),
        listen_port: args.listenport,
        options: options(args),
        ..ClientConfig::new(host)
    };
    let stop = stop::on_signals();
    let mut text = Text::new(args.format.unwrap_or_default(), args.udp, args.window, true);
    text.pace = args.udp.then(|| (config.clone(), args.bandwidth));
    if args.json {
        let told = Mutex::new(document::Document::new(&config));
        let tell = |event| told.lock().unwrap_or_else(PoisonError::into_inner).take(&event);
        client::run(&config, &tell, &stop).map_err(failure)?;
        let told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
        console.print(&told.print()?);
    } else {
        let print = Print::new(args, text, console);
        client::run(&config, &|event| print.take(&event), &stop).map_err(failure)?;
    }
    Ok(if stop.is_raised() { FAILED } else { DONE })
}

fn run_server(args: &Iperf2Args, console: &mut Console) -> Outcome {
    let config = ServerConfig {
        bind: args
            .bind
            .map(|bind| bind.ip())
            .or_else(|| args.ipv4.then(|| IpAddr::from([0, 0, 0, 0]))),
        port: args.port,
        udp: args.udp,
        length: args.len.map(|length| length.clamp(1, 1 << 24)),
        interval: every(args),
        time: args.time,
        options: options(args),
        limits: Limits {
            streams: args.max_streams,
            duration: Duration::from_secs(args.max_time),
            trust: if args.trust_udp { Trust::Everybody } else { Trust::default() },
            ..Limits::default()
        },
    };
    let stop = stop::on_signals();
    let server = Server::bind(&config).map_err(failure)?;
    let text = Text::new(args.format.unwrap_or_default(), args.udp, args.window, false);
    if args.reportstyle.is_none() {
        console.print(&text.listening(server.local_addr().port(), server.buffer()));
    }
    let print = Print::new(args, text, console);
    server.serve(&stop, &|event| print.take(&event)).map_err(failure)?;
    Ok(DONE)
}

/// Prints what the threads tell, in the form that was asked.
struct Print<'c> {
    csv: bool,
    to: Mutex<(Text, &'c mut Console)>,
}

impl<'c> Print<'c> {
    fn new(args: &Iperf2Args, text: Text, console: &'c mut Console) -> Self {
        Print { csv: args.reportstyle.is_some(), to: Mutex::new((text, console)) }
    }

    fn take(&self, event: &Event) {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        let (text, console) = &mut *to;
        match event {
            Event::Trouble { peer, why } => console.say(&format!("{peer}: {}", printable(why))),
            Event::NoReport { label, tries } => console.say(&format!(
                "[{:3}] no report came after {tries} tries; is a firewall between?",
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

/// What came over the network may hold anything.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}
