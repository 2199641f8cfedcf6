//! `longhaul test`: measures a transfer and explains what limited it.

mod modes;
mod one_screen;
mod rendering;
mod request;
mod speed_test;

use super::probe_args::{local_address, seconds};
use crate::ask;
use crate::console::Console;
use crate::failure::{FAILED, Failure, Outcome};
use crate::host_port;
use crate::output_path::OutputPath;
use crate::stop;
use crate::test_report::{self, Forms};
use crate::token::TokenArgs;
use clap::Args;
use longhaul::test::{self, TestRequest};
use modes::ModeArgs;
use rendering::Rendering;
use request::{Length, Pace};
use speed_test::SpeedTestArgs;
use std::io::{self, IsTerminal};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use units::ByteCount;

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
    /// With a range, the first port whose server is not busy is used.
    #[arg(long, short, default_value = "5201", value_parser = host_port::ports)]
    port: RangeInclusive<u16>,
    /// Use UDP instead of TCP [default rate: 1 Mbit/s]
    #[arg(long, short)]
    udp: bool,
    /// Use UDT instead of TCP: congestion control over UDP
    ///
    /// The server must be `longhaul server`. If UDP is blocked, the test switches to TCP
    /// within 3 s; if UDP may be policed, it tries TCP for 3 s and continues over the faster of
    /// the two. --no-fallback disables both. -C (or --cc) selects udt (the default), srt,
    /// reno or cubic, or BBR version 3 (bbr), which implies --native.
    #[arg(long, conflicts_with = "udp")]
    udt: bool,
    /// UDT's native mode: encrypted, selective ACKs
    ///
    /// Packets are encrypted and authenticated, and acknowledged one by one. Both ends must be
    /// longhaul. -C selects bbr (version 3; the default), reno or cubic. The keys are derived from
    /// the test's cookie: anyone who can read the control connection can read the test. If UDP is
    /// blocked, the test fails instead of switching to plain TCP.
    #[arg(long, requires = "udt")]
    native: bool,
    /// Stay with UDT even if UDP is blocked or policed
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
    /// Leave TCP buffers to the kernel on short paths, too
    ///
    /// By default, at RTTs below 2 ms and rates from 5 Gbit/s on, a sending end limits its unsent
    /// data to four BDPs, at least 1 MiB: data beyond the CPU caches can cost throughput. With
    /// --compare, the buffers are left to the kernel if they were in the earlier result.
    #[arg(long)]
    autotuning: bool,
    /// Rate limit of each stream: 50mbit; 0 is unlimited
    ///
    /// A bare number is in bit/s. Default: 1 Mbit/s with UDP, none with TCP.
    #[arg(long, short, value_name = "RATE", value_parser = request::rate_or_unlimited)]
    #[arg(alias = "bandwidth")]
    bitrate: Option<Pace>,
    /// Do not ask before UDP above 10 Mbit/s to other hosts
    ///
    /// UDP has no congestion control: on a path in use, such a test takes capacity from all
    /// other users. Without --yes, longhaul asks on a terminal and prints a warning elsewhere.
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
    #[arg(long, short = 'l', value_name = "SIZE", value_parser = request::length)]
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
    /// Writes pcapng, or pcap if FILE ends in .pcap. Captures the traffic to and from the server's
    /// addresses and ports, on the interface of the route to it. Needs CAP_NET_RAW, like
    /// `longhaul capture`.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    #[arg(conflicts_with_all = ["repeat", "find_rate"])]
    pcap: Option<OutputPath>,
    #[command(flatten)]
    modes: ModeArgs,
    #[command(flatten)]
    other: SpeedTestArgs,
}

impl TestArgs {
    /// Splits `HOST:PORT`, and reads the token.
    pub(crate) fn prepare(&mut self, console: &mut Console) -> Result<(), Failure> {
        if self.other.is_given() {
            return Ok(());
        }
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
  longhaul test server --autotuning       kernel-sized buffers, as with iperf3
  longhaul test server --bidir            both directions at once
  longhaul test server -u -b 200mbit      UDP: loss, jitter, reordering
  longhaul test server --udt --cc cubic   UDT with CUBIC, not its own control
  longhaul test server --udt --cc bbr     UDT's native mode with BBR version 3
  longhaul test server --html result.html --save result.json
  longhaul test server --json | jq .sentence
  sudo longhaul test server --pcap test.pcapng
  longhaul test server --latency          RTT under load (bufferbloat)
  longhaul test server --brief            one screen: rate, RTT, cause, fix
  longhaul test server --decide           a second test if in doubt
  longhaul test server --repeat 5 --save before.json
  longhaul test server --repeat 5 --compare before.json
  longhaul test server --find-rate --loss-target 0.1%
  longhaul test --ndt7 wss://server       download and upload, as ndt7-client
  longhaul test --rpm https://server      responsiveness, as mach rpm";

pub(crate) fn run(args: &TestArgs, console: &mut Console) -> Outcome {
    if args.other.is_given() {
        return speed_test::run(args, console);
    }
    let request = request::of(args)?;
    request.check()?;
    if !may_send(&request, args.yes, console)? {
        return Ok(FAILED);
    }
    test_report::check_writable(args.save.as_deref())?;
    test_report::check_writable(args.forms.html.as_deref())?;
    let stop = stop::on_signals();
    let mut rendering = Rendering::new(args, console);
    let document = test::run(&request, &mut |event| rendering.event(event), &stop)?;
    rendering.document(&document, &stop)
}

/// Returns true if the test may run. UDP has no congestion control: above 10 Mbit/s to another
/// machine, asks where standard input and error are terminals and the user has not agreed (`--yes`);
/// otherwise prints one line. Never waits without a terminal.
fn may_send(request: &TestRequest, agreed: bool, console: &mut Console) -> Result<bool, Failure> {
    if agreed {
        return Ok(true);
    }
    let Some(impact) = request.udp_impact() else { return Ok(true) };
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        console.say(&impact);
        return ask::yes("Send it?", "--yes");
    }
    warn(&impact, console);
    Ok(true)
}

/// Prints what UDP does to others without asking.
fn warn(impact: &str, console: &mut Console) {
    console.say(&format!("warning: {impact} (--yes omits this)"));
}
