//! `longhaul test`: one transfer to a server, and what limited it.

mod baseline;
pub(super) mod crossed;
mod extras;
mod find_rate;
mod latency;
mod repeat;

use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::stop;
use crate::verdict::{self, Forms};
use clap::Args;
use crossed::Counters;
use diagnose::repeats;
use extras::Extras;
use probe::client::{self, ClientConfig, Family};
use probe::{Event, ProbeError, StopFlag};
use record::{Direction, Measurement, Protocol};
use report::terminal::{self, Counted, Interval, RowId, Way};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use units::{BitRate, ByteCount, Rtt};

/// Measure to a server and say what limited the transfer
///
/// HOST runs `longhaul server` or iperf3 (3.x) as a server. Short forms as in
/// iperf3 are understood: 96K is 96 x 1024 bytes, 200m is 200 Mbit/s.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TestArgs {
    /// The server's name or address
    host: String,
    /// The server's port, or several (5201-5210) of which the first that is free is taken
    #[arg(long, short, default_value = "5201", value_parser = ports)]
    port: RangeInclusive<u16>,
    /// Send datagrams, at 1 Mbit/s unless -b says otherwise
    #[arg(long, short)]
    udp: bool,
    /// Length of the test
    #[arg(long, short, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    time: f64,
    /// End after so many bytes instead: 100M, 1GiB
    #[arg(long, short = 'n', value_name = "SIZE", conflicts_with = "time")]
    bytes: Option<ByteCount>,
    /// Parallel streams in each direction, 1 to 128
    #[arg(long, short = 'P', value_name = "STREAMS", default_value_t = 1)]
    #[arg(visible_alias = "streams")]
    parallel: u32,
    /// Socket buffers at both ends: 64KiB, 4M [left to the kernel's autotuning]
    #[arg(long, short, value_name = "WINDOW")]
    window: Option<ByteCount>,
    /// Rate of each stream: 50mbit, 200m; 0 is as fast as it goes
    #[arg(long, short, value_name = "RATE", value_parser = rate_or_unlimited)]
    #[arg(visible_alias = "bandwidth")]
    bitrate: Option<Pace>,
    /// Congestion control of the sender: cubic, bbr, reno
    #[arg(long, short = 'C', value_name = "CONGESTION")]
    congestion: Option<String>,
    /// The server sends
    #[arg(long, short = 'R')]
    reverse: bool,
    /// Both send at the same time, over streams of their own
    #[arg(long, short = 'd', conflicts_with = "reverse")]
    bidir: bool,
    /// Local address to connect from
    #[arg(long, short = 'B', value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Only IPv4
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6")]
    ipv4: bool,
    /// Only IPv6
    #[arg(short = '6', long = "ipv6")]
    ipv6: bool,
    /// Seconds at the start that the result leaves out
    #[arg(long, short = 'O', value_name = "SECONDS", default_value_t = 0)]
    omit: u32,
    /// Bytes of one write, or of one datagram
    #[arg(long, short = 'l', value_name = "SIZE")]
    length: Option<ByteCount>,
    #[command(flatten)]
    sockets: Sockets,
    /// Time between rows
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: f64,
    #[command(flatten)]
    forms: Forms,
    /// Keep the measurement, for `longhaul explain FILE`
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    #[command(flatten)]
    extras: Extras,
}

/// What is asked of the sockets.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sockets")]
struct Sockets {
    /// Largest segment, bytes
    #[arg(long, short = 'M', value_name = "BYTES")]
    mss: Option<u32>,
    /// Send small writes at once (TCP_NODELAY)
    #[arg(long, short = 'N')]
    nodelay: bool,
    /// Traffic class: the IP header's byte
    #[arg(long, short = 'S', value_name = "BYTE")]
    tos: Option<u8>,
    /// Use Multipath TCP where both ends have it
    #[arg(long)]
    mptcp: bool,
    /// Send pages by reference; without it, as costs less here (TCP)
    #[arg(long, short = 'Z')]
    zerocopy: bool,
    /// Copy what is sent, whatever it costs (TCP)
    #[arg(long, conflicts_with = "zerocopy")]
    no_zerocopy: bool,
    /// Throw away what arrives without copying it (TCP)
    #[arg(long)]
    skip_rx_copy: bool,
    /// Hand datagrams to the kernel one by one, not in trains that it cuts (UDP)
    #[arg(long)]
    no_segmentation: bool,
    /// Take datagrams from the kernel one by one, not in trains (UDP)
    #[arg(long)]
    no_coalescing: bool,
    /// Refuse datagrams over the path's MTU instead of fragmenting them (UDP)
    #[arg(long)]
    dont_fragment: bool,
    /// Interface to send over
    #[arg(long, value_name = "INTERFACE")]
    device: Option<String>,
    /// A word that admits to a server with --tokens; LONGHAUL_TOKEN hides it from others
    #[arg(long, value_name = "WORD")]
    token: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul test server                     ten seconds, one connection
  longhaul test server -R -P 8 -t 30       the server sends, eight connections
  longhaul test server -C bbr -w 4M        another congestion control, fixed buffers
  longhaul test server --bidir             both ways at once
  longhaul test server -u -b 200mbit       datagrams at a rate: loss, jitter, reordering
  longhaul test server --html result.html --save result.json
  longhaul test server --json | jq .sentence
  longhaul test server --latency           what the load adds to round trips
  longhaul test server --repeat 5 --save before.json
  longhaul test server --repeat 5 --baseline before.json
  longhaul test server --find-rate --loss-target 0.1%";

/// UDP's rate where none is asked, as with iperf3: a test nobody thought about
/// must not flood a path.
const UDP_RATE: BitRate = BitRate::from_bps(1_000_000);

/// A rate, or none.
#[derive(Debug, Clone, Copy)]
struct Pace(Option<BitRate>);

/// iperf3 says `-b 0` for no limit.
fn rate_or_unlimited(text: &str) -> Result<Pace, String> {
    if text == "0" {
        return Ok(Pace(None));
    }
    text.parse().map(|rate| Pace(Some(rate))).map_err(|error: units::ParseError| error.to_string())
}

/// A port, or the first and last of several.
fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err("ports are 1 to 65535, or a range such as 5201-5210".to_owned()),
    }
}

/// Seconds as iperf3 takes them, or a time with its unit.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    if let Ok(plain) = text.parse::<f64>() {
        return if plain.is_finite() && plain > 0.0 {
            Ok(plain)
        } else {
            Err("give a number of seconds above 0, such as 10".to_owned())
        };
    }
    text.parse::<Rtt>().map(Rtt::secs_f64).map_err(|error| error.to_string())
}

/// A test, and what is known beside its measurement.
struct Measured {
    measurement: Measurement,
    /// Notes that the user was told as it began.
    told: Vec<String>,
    /// Bytes that passed the interface and were not its own.
    others: Option<u64>,
}

pub(crate) fn run(args: &TestArgs, console: &mut Console) -> Outcome {
    if args.extras.find_rate {
        return find_rate::run(args, console);
    }
    let earlier = args.extras.baseline.as_deref().map(baseline::load).transpose()?;
    if let Some(count) = args.extras.repeat {
        return repeat::run(args, count, earlier.as_deref(), console);
    }
    let stop = stop::on_signals();
    let Measured { measurement, told, .. } = measure(args, console, &stop)?;
    if let Some(file) = &args.save {
        store::save(file, &measurement).map_err(Failure::work)?;
    }
    let compared =
        earlier.map(|earlier| repeats::compare(&earlier, &[repeats::figures(&measurement)]));
    let rest: Vec<String> =
        measurement.notes.iter().filter(|note| !told.contains(note)).cloned().collect();
    let code = verdict::compared(console, &measurement, compared.as_ref(), &args.forms, &rest)?;
    if let Some(file) = &args.save {
        console.say(&format!("measurement kept in {}", file.display()));
    }
    Ok(if stop.is_raised() { crate::failure::FAILED } else { code })
}

/// One test, its rows printed as they come.
fn measure(args: &TestArgs, console: &mut Console, stop: &StopFlag) -> Result<Measured, Failure> {
    let mut told = Vec::new();
    let mut counters = None;
    let live = !args.forms.json;
    let config = config(args);
    let (protocol, both) = (config.protocol, args.bidir);
    let port = args.extras.latency_port.unwrap_or(latency::PORT);
    if args.extras.latency && args.port.contains(&port) {
        return Err(Failure::usage(format!(
            "round trips cannot be taken at port {port}, where the server takes each for a \
             client; give another --latency-port, a closed one serves"
        )));
    }
    let progress = &mut |event| match event {
        Event::Connected(started) => {
            counters = Counters::towards(started.peer.ip(), started.local.ip());
            let (peer, notes) = (started.peer, started.notes);
            for note in &notes {
                let style = console.err;
                console.say(terminal::notes(std::slice::from_ref(note), &style).trim_end());
            }
            told = notes;
            if live {
                let style = console.out;
                let head = terminal::interval_header(protocol, &style);
                console.print(&format!("Connected to {peer}\n{head}\n"));
            }
        }
        // A last row of a few milliseconds would say nothing.
        Event::Interval(interval)
            if live && interval.to_s - interval.from_s >= args.interval / 10.0 =>
        {
            let style = console.out;
            console.print(&(terminal::interval_row(&row(&interval, both), &style) + "\n"));
        }
        Event::Interval(_) => {}
    };
    let measured = if args.extras.latency {
        latency::around(&config, port, progress, stop)
    } else {
        client::run(&config, progress, stop)
    };
    let measurement = measured.map_err(failure)?.measurement;
    let others = counters.and_then(|counters: Counters| counters.others(&measurement));
    Ok(Measured { measurement, told, others })
}

fn config(args: &TestArgs) -> ClientConfig {
    ClientConfig {
        ports: args.port.clone(),
        protocol: if args.udp { Protocol::Udp } else { Protocol::Tcp },
        bind: args.bind,
        family: match (args.ipv4, args.ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        },
        seconds: args.time,
        omit_seconds: args.omit,
        bytes: args.bytes,
        streams: args.parallel,
        window: args.window,
        block: args.length,
        rate: match args.bitrate {
            Some(pace) => pace.0,
            None => args.udp.then_some(UDP_RATE),
        },
        congestion: args.congestion.clone(),
        direction: match (args.bidir, args.reverse) {
            (true, _) => Direction::Both,
            (_, true) => Direction::Reverse,
            _ => Direction::Forward,
        },
        mss: args.sockets.mss,
        nodelay: args.sockets.nodelay,
        tos: args.sockets.tos,
        mptcp: args.sockets.mptcp,
        zerocopy: match (args.sockets.zerocopy, args.sockets.no_zerocopy) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
        skip_rx_copy: args.sockets.skip_rx_copy,
        segment: !args.sockets.no_segmentation,
        coalesce: !args.sockets.no_coalescing,
        dont_fragment: args.sockets.dont_fragment,
        device: args.sockets.device.clone(),
        token: args.sockets.token.clone().or_else(|| std::env::var("LONGHAUL_TOKEN").ok()),
        // A counter of 32 bits is used up in minutes at 100 Gbit/s.
        wide_counters: args.udp,
        // A day at most: longer is refused where the length of the test is.
        report_every: Duration::from_secs_f64(args.interval.min(86_400.0)),
        ..ClientConfig::new(&args.host)
    }
}

pub(crate) fn failure(error: ProbeError) -> Failure {
    if error.is_usage() { Failure::usage(error) } else { Failure::work(error) }
}

pub(crate) fn row(interval: &probe::Interval, both: bool) -> Interval {
    let sending = interval.sending;
    Interval {
        id: interval.stream.map_or(RowId::Sum, RowId::Stream),
        way: both.then_some(if sending { Way::There } else { Way::Back }),
        from_s: interval.from_s,
        to_s: interval.to_s,
        bytes: interval.bytes,
        rate: interval.rate,
        retransmits: interval.retransmits,
        cwnd: interval.cwnd,
        rtt: interval.rtt,
        datagrams: interval.datagrams.map(|of| Counted {
            jitter: (!sending).then_some(of.jitter),
            lost: (!sending).then_some(of.lost),
            total: of.packets,
        }),
    }
}
