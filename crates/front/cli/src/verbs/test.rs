//! `longhaul test`: measures a transfer and explains what limited it.

mod capture;
mod compare;
pub(super) mod cross_traffic;
mod decide;
mod find_rate;
pub(super) mod latency;
mod line_class;
mod modes;
mod one_screen;
mod path_mtu;
mod repeat;
mod udp_safeguard;
mod udt_fallback;

use super::probe_args::local_address;
use crate::console::Console;
use crate::failure::{FAILED, Failure, Outcome};
use crate::host_port;
use crate::output_path::OutputPath;
use crate::stop;
use crate::test_report::{self, Added, Forms};
use crate::token::TokenArgs;
use capture::{Captured, TestCapture};
use clap::Args;
use compare::Earlier;
use cross_traffic::InterfaceCounters;
use diagnose::repeats;
use modes::ModeArgs;
use path_mtu::Length;
use perf::client::{self, ClientConfig, Family};
use perf::{Event, PerfError, StopFlag};
use record::{Direction, Measurement, Protocol};
use report::terminal::{self, IntervalTable};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;
use udt_fallback::transfer;
use units::{BitRate, ByteCount, Rtt};

/// Measure throughput to a server and explain what limits it
///
/// HOST runs `longhaul server` or an iperf3 server (3.x). Sizes and rates may be
/// written as for iperf3: 96K is 96 x 1024 bytes, 200m is 200 Mbit/s.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TestArgs {
    /// Server: a name or an address, also HOST:PORT
    host: String,
    /// Server port, or a range: 5201-5210
    ///
    /// Of a range the first port is used whose server is not busy.
    #[arg(long, short, default_value = "5201", value_parser = host_port::ports)]
    port: RangeInclusive<u16>,
    /// Use UDP instead of TCP [default rate: 1 Mbit/s]
    #[arg(long, short)]
    udp: bool,
    /// Use UDT instead of TCP: congestion control over UDP
    ///
    /// The server must be `longhaul server`. If UDP is blocked, the test switches to TCP
    /// within 3 s; if UDP may be policed, it tries TCP for 3 s and continues over what carried
    /// more (--no-fallback: neither). -C (or --cc) selects udt (the default), srt,
    /// reno or cubic, or BBR version 3 (bbr), which implies --native.
    #[arg(long, conflicts_with = "udp")]
    udt: bool,
    /// UDT's native mode: encrypted, selective ACKs
    ///
    /// Packets are encrypted and authenticated, and acknowledged one by one. Both ends must be
    /// longhaul. -C selects bbr (version 3; the default), reno or cubic. The keys follow from the test's cookie: whoever can read the control connection can read
    /// the test. If UDP is blocked, the test fails instead of switching to plain TCP.
    #[arg(long, requires = "udt")]
    native: bool,
    /// Stay with UDT where UDP is blocked or policed
    #[arg(long, requires = "udt")]
    no_fallback: bool,
    /// Duration of the test, in seconds
    #[arg(long, short, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    time: f64,
    /// Bytes to transfer, instead of --time: 100M, 1GiB
    #[arg(long, short = 'n', value_name = "SIZE", conflicts_with = "time")]
    bytes: Option<ByteCount>,
    /// Parallel streams, 1 to 128
    #[arg(long, short = 'P', value_name = "STREAMS", default_value_t = 1)]
    #[arg(alias = "streams")]
    parallel: u32,
    /// Socket buffer size at both ends [default: autotuned]
    #[arg(long, short, value_name = "SIZE")]
    window: Option<ByteCount>,
    /// Leave TCP's buffers to the kernel on short paths too
    ///
    /// Below an RTT of 2 ms and from 5 Gbit/s on, an end that sends otherwise limits its unsent
    /// data to four BDPs, at least 1 MiB: data beyond the CPU's caches can cost throughput. With
    /// --compare, the buffers are the kernel's if they were in the earlier result.
    #[arg(long)]
    autotuning: bool,
    /// Rate limit of each stream: 50mbit; 0 is unlimited
    ///
    /// A bare number is in bit/s. Default: 1 Mbit/s with UDP, none with TCP.
    #[arg(long, short, value_name = "RATE", value_parser = rate_or_unlimited)]
    #[arg(alias = "bandwidth")]
    bitrate: Option<Pace>,
    /// Send UDP above 10 Mbit/s to other machines unasked
    ///
    /// UDP has no congestion control: on a path in use such a test takes the capacity of
    /// all other users. Without --yes it asks on a terminal, and warns elsewhere.
    #[arg(long)]
    yes: bool,
    /// Congestion control of the sender: cubic, bbr, reno
    #[arg(long, short = 'C', value_name = "NAME", alias = "cc")]
    congestion: Option<String>,
    /// Reverse the direction: the server sends
    #[arg(long, short = 'R')]
    reverse: bool,
    /// Send in both directions at once
    #[arg(long, short = 'd', conflicts_with = "reverse")]
    bidir: bool,
    /// Local address to bind to
    #[arg(long, short = 'B', value_name = "ADDRESS", value_parser = local_address)]
    bind: Option<IpAddr>,
    /// Use IPv4 only
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long = "ipv6")]
    ipv6: bool,
    /// Omit the first seconds from the result
    #[arg(long, short = 'O', value_name = "SECONDS", default_value_t = 0)]
    omit: u32,
    /// Size of each write (TCP) or datagram (UDP), in bytes
    ///
    /// auto: the largest UDP datagram that the path carries unfragmented, found by probes.
    #[arg(long, short = 'l', value_name = "SIZE", value_parser = path_mtu::length)]
    length: Option<Length>,
    #[command(flatten)]
    sockets: Sockets,
    /// Seconds between interval reports
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    #[arg(help_heading = "Output")]
    interval: f64,
    #[command(flatten)]
    forms: Forms,
    /// Save the measurement, for `longhaul explain FILE`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    save: Option<OutputPath>,
    /// Capture the headers of the test's packets to FILE
    ///
    /// pcapng, or pcap if FILE ends in .pcap: what is exchanged with the server's addresses and
    /// ports, on the interface of the route to it. Needs CAP_NET_RAW, as `longhaul capture` does.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    #[arg(conflicts_with_all = ["repeat", "find_rate"])]
    pcap: Option<OutputPath>,
    #[command(flatten)]
    modes: ModeArgs,
}

impl TestArgs {
    /// Splits `HOST:PORT`, and reads the token.
    pub(crate) fn prepare(&mut self, console: &mut Console) -> Result<(), Failure> {
        self.sockets.token.read(console)?;
        host_port::split(&mut self.host, &mut self.port)
    }
}

/// Socket options.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sockets")]
struct Sockets {
    /// TCP maximum segment size (MSS), in bytes
    #[arg(long, short = 'M', value_name = "BYTES")]
    mss: Option<u32>,
    /// Disable Nagle's algorithm (TCP_NODELAY)
    #[arg(long, short = 'N')]
    nodelay: bool,
    /// IP type-of-service byte (DSCP and ECN), 0 to 255
    #[arg(long, short = 'S', value_name = "BYTE")]
    tos: Option<u8>,
    /// Use Multipath TCP if both ends support it
    #[arg(long)]
    mptcp: bool,
    /// Force zero-copy [default: whichever uses less CPU]
    #[arg(long, short = 'Z')]
    zerocopy: bool,
    /// Never use zero-copy
    #[arg(long, conflicts_with = "zerocopy")]
    no_zerocopy: bool,
    /// Discard received TCP data without copying it
    #[arg(long)]
    skip_rx_copy: bool,
    /// Disable UDP segmentation offload (GSO)
    #[arg(long)]
    no_segmentation: bool,
    /// Disable UDP receive offload (GRO)
    #[arg(long)]
    no_coalescing: bool,
    /// Do not fragment UDP datagrams: set DF
    #[arg(long)]
    dont_fragment: bool,
    /// Network interface to bind to
    #[arg(long, value_name = "INTERFACE")]
    device: Option<String>,
    #[command(flatten)]
    token: TokenArgs,
}

const EXAMPLES: &str = "\
Examples:
  longhaul test server                    10 s, one TCP stream
  longhaul test server -R -P 8 -t 30      the server sends, 8 streams, 30 s
  longhaul test server -C bbr -w 4M       BBR, fixed socket buffers
  longhaul test server --autotuning       the kernel's buffers, as iperf3's
  longhaul test server --bidir            both directions at once
  longhaul test server -u -b 200mbit      UDP: loss, jitter, reordering
  longhaul test server --udt --cc cubic   UDT, CUBIC instead of its own control
  longhaul test server --udt --cc bbr     UDT's native mode with BBR version 3
  longhaul test server --html result.html --save result.json
  longhaul test server --json | jq .sentence
  sudo longhaul test server --pcap test.pcapng
  longhaul test server --latency          RTT under load (bufferbloat)
  longhaul test server --brief            one screen: rate, RTT, cause, fix
  longhaul test server --decide           a second test if in doubt
  longhaul test server --repeat 5 --save before.json
  longhaul test server --repeat 5 --compare before.json
  longhaul test server --find-rate --loss-target 0.1%";

/// Default rate of UDP, as in iperf3: a test must not flood a path by default.
const UDP_RATE: BitRate = BitRate::from_bps(1_000_000);

/// A test that bytes end is given up when nothing has arrived for so long.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A rate limit, or none.
#[derive(Debug, Clone, Copy)]
struct Pace(Option<BitRate>);

/// As with iperf3, a bare number is in bit/s, and 0 means no limit.
fn rate_or_unlimited(text: &str) -> Result<Pace, String> {
    if text == "0" {
        return Ok(Pace(None));
    }
    let is_bare = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let text = if is_bare { &format!("{text}bit") } else { text };
    text.parse().map(|rate| Pace(Some(rate))).map_err(|error: units::ParseError| error.to_string())
}

/// A number of seconds as in iperf3, or a time with its unit.
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

/// A measurement, and what is not part of it.
struct Measured {
    measurement: Measurement,
    /// Notes already printed when the test began.
    printed: Vec<String>,
    /// Bytes of other traffic that passed the interface during the test.
    cross_traffic: Option<u64>,
    /// Why the server's results are missing, if the test failed.
    incomplete: Option<String>,
}

impl Measured {
    /// The measurement, unless the test failed.
    fn complete(self) -> Result<Self, Failure> {
        match self.incomplete {
            Some(why) => Err(Failure::work(why)),
            None => Ok(self),
        }
    }
}

pub(crate) fn run(args: &TestArgs, console: &mut Console) -> Outcome {
    if args.length == Some(Length::Auto) {
        // A signal ends the process: nothing runs yet.
        let length = path_mtu::datagram_length(args, &StopFlag::new())?;
        console
            .say(&format!("datagrams of {} B: the largest that is not fragmented", length.bytes()));
        return run(&TestArgs { length: Some(Length::Bytes(length)), ..args.clone() }, console);
    }
    if !udp_safeguard::allows(&offered(args), args.yes, console)? {
        return Ok(FAILED);
    }
    test_report::check_writable(args.save.as_deref())?;
    test_report::check_writable(args.forms.html.as_deref())?;
    if args.modes.find_rate {
        return find_rate::run(args, console);
    }
    let earlier = args.modes.compare.as_deref().map(compare::load).transpose()?;
    if let Some(count) = args.modes.repeat {
        return repeat::run(args, count, earlier.as_ref(), console);
    }
    let stop = stop::on_signals();
    let capture = args.pcap.as_deref();
    let capture = capture.map(|file| TestCapture::start(args, file, &stop)).transpose()?;
    one_screen::announce(args, console);
    let measured = measure(args, earlier.as_ref(), console, &stop);
    let captured = capture.map(TestCapture::finish);
    let Measured { mut measurement, printed, incomplete, .. } = measured?;
    measurement.notes.extend(line_class::note(&measurement));
    if let Some(file) = &args.save {
        store::save(file, &measurement).map_err(Failure::work)?;
    }
    let compared =
        earlier.map(|earlier| repeats::compare(&earlier.runs, &[repeats::figures(&measurement)]));
    let rest: Vec<String> =
        measurement.notes.iter().filter(|note| !printed.contains(note)).cloned().collect();
    // JSON is one document: it waits for the second test.
    let early = (args.modes.decide && args.forms.json)
        .then(|| decide::run(args, &mut measurement, console, &stop));
    let added = Added {
        comparison: compared.as_ref(),
        decision: early.as_ref().map(|answer| &answer.decided),
        capture: captured.as_ref().map(|captured| &captured.report),
    };
    let code = if args.modes.brief {
        one_screen::print(console, &measurement, &added, &rest)
    } else {
        test_report::print_with(console, &measurement, &added, &args.forms, &rest)?
    };
    let late = (args.modes.decide && !args.forms.json)
        .then(|| decide::run(args, &mut measurement, console, &stop));
    if let Some(answer) = &late {
        let style = console.out;
        let text = terminal::decision(&answer.decided, &style);
        // With a train's answer the finding is another one.
        let finding = diagnose::explain(&measurement);
        let before = diagnose::explain(&Measurement { decided: None, ..measurement.clone() });
        let changed =
            if finding == before { String::new() } else { terminal::finding(&finding, &style) };
        console.print(&format!("\n{text}{changed}"));
    }
    let answer = early.or(late);
    if let Some(file) = args.save.as_ref().filter(|_| measurement.decided.is_some()) {
        store::save(file, &measurement).map_err(Failure::work)?;
    }
    let decision = answer.as_ref().map(|answer| &answer.decided);
    let added = Added { comparison: compared.as_ref(), decision, capture: None };
    test_report::write_page(console, &measurement, &added, &args.forms)?;
    if let Some(file) = &args.save {
        console.say(&format!("measurement saved to {}", file.display()));
    }
    if let Some(Captured { report, .. }) = &captured {
        let file = report.files.join(" ");
        let (packets, dropped) = (report.packets, report.dropped_packets);
        console.say(&format!("{packets} packets captured in {file}, {dropped} dropped"));
    }
    let failed = answer.and_then(|answer| answer.failed);
    if let Some(failed) = failed.or_else(|| captured.and_then(|captured| captured.failed)) {
        return Err(failed);
    }
    if let Some(why) = incomplete {
        return Err(Failure::work(why));
    }
    let is_failed = stop.is_raised() || test_report::carried_nothing(&measurement);
    let code = if is_failed { FAILED } else { code };
    Ok(args.modes.regression.code_of(code, compared.as_ref()))
}

/// One test, its interval reports printed as they arrive; `earlier`: what it is compared with.
fn measure(
    args: &TestArgs,
    earlier: Option<&Earlier>,
    console: &mut Console,
    stop: &StopFlag,
) -> Result<Measured, Failure> {
    let mut config = config(args);
    // What differs must be the path, not the windows.
    config.limits_unsent &= earlier.is_none_or(|earlier| earlier.limits_unsent);
    let is_probed = args.modes.latency || args.modes.brief;
    transfer(args, &config, is_probed, console, stop)
}

/// The same as requested by `config`, with RTT probes to the port `probed`.
fn attempt(
    args: &TestArgs,
    config: &ClientConfig,
    probed: Option<u16>,
    console: &mut Console,
    stop: &StopFlag,
) -> Result<Measured, PerfError> {
    let (mut printed, mut counters, mut table) = (Vec::new(), None, None);
    let mut server = None;
    let live = !args.forms.json && !args.modes.brief;
    let (protocol, both, rows) = (config.protocol, args.bidir, args.forms.rows());
    let progress = &mut |event| match event {
        Event::Connected(started) => {
            counters = InterfaceCounters::towards(started.peer, started.local);
            let (peer, notes) = (started.peer, started.notes);
            server = Some(peer);
            for note in notes.iter().filter(|_| !args.modes.brief) {
                let style = console.err;
                console.say(terminal::notes(std::slice::from_ref(note), &style).trim_end());
            }
            printed = if args.modes.brief { Vec::new() } else { notes };
            if live {
                let style = console.out;
                let ids = started.streams.iter().map(|stream| stream.id).collect();
                let new = table.insert(IntervalTable::new(protocol, ids, both, rows));
                console.print(&format!("Connected to {peer}\n{}\n", new.header(&style)));
            }
        }
        // The last interval may last a few milliseconds only: its rate means nothing.
        Event::Interval(interval) if interval.to_s - interval.from_s >= args.interval / 10.0 => {
            let style = console.out;
            let row = table.as_mut().and_then(|table| table.row(&interval, &style));
            if let Some(row) = row {
                console.print(&(row + "\n"));
            }
        }
        Event::Interval(_) => {}
    };
    let report = match probed {
        Some(port) => latency::around(config, port, latency::IDLE, progress, stop)?,
        None => client::run(config, progress, stop)?,
    };
    let (mut measurement, incomplete) = (report.measurement, report.incomplete);
    let cross_traffic =
        counters.and_then(|counters: InterfaceCounters| counters.cross_traffic(&measurement));
    if let Some(server) = server {
        path_mtu::examine(&mut measurement, incomplete.is_some(), (server, args.bind), stop);
    }
    Ok(Measured { measurement, printed, cross_traffic, incomplete })
}

/// What the test may send at most: a rate search sends UDP up to its limit.
fn offered(args: &TestArgs) -> ClientConfig {
    let config = config(args);
    if !args.modes.find_rate {
        return config;
    }
    let rate = args.bitrate.and_then(|pace| pace.0);
    ClientConfig { protocol: Protocol::Udp, rate, ..config }
}

fn config(args: &TestArgs) -> ClientConfig {
    ClientConfig {
        ports: args.port.clone(),
        protocol: match (args.udp, args.udt) {
            (true, _) => Protocol::Udp,
            (_, true) => Protocol::Udt,
            _ => Protocol::Tcp,
        },
        native: args.native,
        bind: args.bind,
        family: Family::from_flags(args.ipv4, args.ipv6),
        seconds: args.time,
        omit_seconds: args.omit,
        bytes: args.bytes,
        streams: args.parallel,
        window: args.window,
        limits_unsent: !args.autotuning,
        block: args.length.and_then(Length::bytes),
        rate: args.bitrate.map_or_else(|| args.udp.then_some(UDP_RATE), |pace| pace.0),
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
        keeps_incomplete: true,
        token: args.sockets.token.value(),
        // A 32-bit packet counter wraps within minutes at 100 Gbit/s.
        wide_counters: args.udp,
        // A stall that time does not end.
        receive_timeout: match args.bytes {
            Some(_) => STALL_TIMEOUT,
            None => ClientConfig::new("").receive_timeout,
        },
        // At most a day, as for the duration of a test.
        report_every: Duration::from_secs_f64(args.interval.min(86_400.0)),
        ..ClientConfig::new(&args.host)
    }
}

pub(crate) fn failure(error: PerfError) -> Failure {
    if error.is_usage() { Failure::usage(error) } else { Failure::work(error) }
}
