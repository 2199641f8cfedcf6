//! `tune verify`.

use super::apply::asked;
use super::{Host, say};
use crate::console::Console;
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::host_port;
use crate::token::TokenArgs;
use crate::verbs::probe_args::seconds;
use crate::{console, stop};
use clap::{Args, value_parser};
use longhaul::cross_traffic;
use longhaul::tune::verify::{self, Family, Session};
use longhaul::tune::{TuneEvent, TuneVerifyEvent, TuneVerifyRequest};
use record::{Direction, VerifyReport};
use report::terminal;
use std::cell::RefCell;
use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;
use units::{BitRate, Rtt};

/// Apply settings step by step, measure each, and keep those that help
///
/// HOST runs `longhaul server` (or iperf3, which reports less). Tests alternate
/// between without and with each step; a step is kept if the gain is significant
/// (Welch's t test, 95 %) and at least 2 %, and reverted otherwise. Nothing is
/// changed at HOST: settings needed there are printed as commands.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct VerifyArgs {
    /// Server to test against
    #[arg(long, value_name = "HOST")]
    to: String,
    /// Server port
    #[arg(long, short, default_value_t = 5201, value_parser = value_parser!(u16).range(1..))]
    port: u16,
    /// Path rate, such as 1gbit [default: interface speed]
    #[arg(long)]
    rate: Option<BitRate>,
    /// Path RTT, such as 200ms [default: measured]
    #[arg(long)]
    rtt: Option<Rtt>,
    /// Reverse: the server sends, this host receives
    #[arg(long, short = 'R')]
    reverse: bool,
    /// Measure both directions, one after the other
    #[arg(long, conflicts_with = "reverse")]
    both: bool,
    /// Tests without each step and with it, 2 to 20
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(2..=20))]
    repeat: u32,
    /// Seconds per test [default: 100 RTTs, 10 to 60 s]
    #[arg(long, short, value_name = "SECONDS", value_parser = seconds)]
    time: Option<f64>,
    /// Parallel connections sharing the rate
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..=128))]
    streams: u32,
    /// Also try this congestion control: bbr, cubic
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Use IPv4 only
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long = "ipv6")]
    ipv6: bool,
    #[command(flatten)]
    token: TokenArgs,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

impl VerifyArgs {
    /// Splits `HOST:PORT`, and reads the token.
    pub(super) fn prepare(&mut self, console: &mut Console) -> Result<(), Failure> {
        self.token.read(console)?;
        host_port::split(&mut self.to, &mut self.port)
    }
}

const EXAMPLES: &str = "\
Examples:
  sudo longhaul tune verify --to server --rate 1gbit
  sudo longhaul tune verify --to server --rate 10gbit --rtt 200ms --both --yes
  sudo longhaul tune verify --to server --rate 1gbit --congestion bbr --repeat 5
  longhaul tune verify --to server --rate 100mbit --yes --in-lab client
  longhaul lab run --link rate=50mbit,rtt=100ms --server 'longhaul server' \\
      --sysctl 'net.ipv4.tcp_wmem=4096 16384 262144' \\
      -- longhaul tune verify --to server --rate 50mbit --yes

Ctrl-C reverts the current step and reports the kept ones; after a kill, run
`longhaul tune rollback`. The tests run at full rate: do not use a path that
others need.";

pub(super) fn run(args: &VerifyArgs, host: &Host<'_>, console: &mut Console) -> Outcome {
    let &Host { tuned, as_json, undo } = host;
    let request = request(args)?;
    let stop = stop::on_signals();
    let show = RefCell::new(Show { console, as_json, rates: Vec::new() });
    let mut on_event = |event| show.borrow_mut().event(&event);
    let session = Session::prepare(&request, tuned, &mut on_event, &stop)?;
    // Before the question: it may not be possible at all.
    let prepared = &session.prepared;
    let steps: Vec<_> = prepared.steps.iter().map(|one| (one.name, &*one.settings)).collect();
    let takes = (prepared.tests(), prepared.seconds);
    let goal = &prepared.goal;
    show.borrow_mut().result(|style| terminal::verify_plan(goal, &steps, takes, style));
    if !args.yes && !steps.is_empty() && !asked("Try these steps?")? {
        show.borrow_mut().console.say("nothing was changed");
        return Ok(FAILED);
    }
    let report = session.run();
    let console = show.into_inner().console;
    console.clear();
    let report = report?;
    let text = if as_json { console::json(&report)? } else { end(&report, undo, console) };
    console.print(&text);
    if report.interrupted {
        console::complain("interrupted; the current step was reverted");
    }
    Ok(if verify::is_complete(&report) { DONE } else { FAILED })
}

fn end(report: &VerifyReport, undo: &str, console: &Console) -> String {
    format!("\n{}", terminal::verify_report(report, undo, &console.out))
}

fn request(args: &VerifyArgs) -> Result<TuneVerifyRequest, Failure> {
    if args.rate == Some(BitRate::ZERO) {
        return Err(Failure::usage("the rate cannot be zero; give one such as --rate 10gbit"));
    }
    if args.rtt == Some(Rtt::ZERO) {
        return Err(Failure::usage("an RTT of zero needs no window; omit --rtt to measure it"));
    }
    let (rate, rate_from) = match args.rate {
        Some(rate) => (rate, "asked".to_owned()),
        None => interface(&args.to, args.port).ok_or_else(|| {
            Failure::usage(
                "the interface towards the server reports no speed; give --rate (such as 1gbit)",
            )
        })?,
    };
    Ok(TuneVerifyRequest {
        port: args.port,
        rate_from,
        rtt: args.rtt,
        directions: match (args.both, args.reverse) {
            (true, _) => vec![Direction::Forward, Direction::Reverse],
            (_, true) => vec![Direction::Reverse],
            _ => vec![Direction::Forward],
        },
        repeat: args.repeat,
        seconds: args.time,
        streams: args.streams,
        congestion: args.congestion.clone(),
        family: Family::from_flags(args.ipv4, args.ipv6),
        token: args.token.value(),
        ..TuneVerifyRequest::new(&args.to, rate)
    })
}

/// The speed of the interface towards a host, found without sending. `None` for
/// a virtual interface, whose speed is meaningless.
fn interface(host: &str, port: u16) -> Option<(BitRate, String)> {
    let peer = (host, port).to_socket_addrs().ok()?.next()?;
    let any: IpAddr = if peer.is_ipv4() { [0; 4].into() } else { [0u16; 8].into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(peer).ok()?;
    let device = cross_traffic::device_towards(peer.ip(), socket.local_addr().ok()?.ip())?;
    let folder = Path::new("/sys/class/net").join(&device);
    if !folder.join("device").exists() {
        return None;
    }
    // In Mbit/s; -1 where there is no link (sysfs-class-net).
    let text = std::fs::read_to_string(folder.join("speed")).ok()?;
    let mbit: u64 = text.trim().parse().ok().filter(|mbit| *mbit > 0)?;
    Some((BitRate::from_bps(mbit.checked_mul(1_000_000)?), format!("the speed of {device}")))
}

/// Shows progress.
struct Show<'a> {
    console: &'a mut Console,
    as_json: bool,
    /// Of the intervals of the running test.
    rates: Vec<BitRate>,
}

impl Show<'_> {
    /// Prints a part of the result, unless the output is JSON.
    fn result(&mut self, draw: impl FnOnce(&terminal::Style) -> String) {
        if !self.as_json {
            let style = self.console.out;
            self.console.print(&draw(&style));
        }
    }

    fn event(&mut self, event: &TuneEvent) {
        let TuneEvent::Verify(event) = event else { return say(event, self.console) };
        match event {
            TuneVerifyEvent::MeasureRtt => {
                self.rates.clear();
                self.console.say("measuring the RTT");
            }
            TuneVerifyEvent::Begins { number, of, name } => {
                self.console.step(&format!("Step {number} of {of}: {name}"));
            }
            TuneVerifyEvent::Test { with, direction, number, of, seconds } => {
                self.rates.clear();
                let how = if *with { "with it" } else { "without it" };
                let way = if *direction == Direction::Reverse { ", reverse" } else { "" };
                let width = of.to_string().len();
                self.console.say(&format!("test {number:width$} of {of}, {how}{way}: {seconds} s"));
            }
            TuneVerifyEvent::Interval { to_s, of_s, rate } => {
                self.rates.push(*rate);
                let style = self.console.err;
                self.console.live(&terminal::progress(*to_s, Some(*of_s), &self.rates, &style));
            }
            TuneVerifyEvent::Tested(run) => {
                let limit = run.limit.map_or(String::new(), |l| format!(", {}", l.name()));
                self.console.say(&format!("  {}{limit}", run.throughput_bps));
            }
            TuneVerifyEvent::Ended(step) => {
                self.result(|style| format!("\n{}", terminal::verify_step(step, style)));
            }
        }
    }
}
