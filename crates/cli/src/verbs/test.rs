//! `longhaul test`: one transfer to a server, and what limited it.

use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::stop;
use crate::verdict::{self, Forms};
use clap::Args;
use probe::client::{self, ClientConfig, Family};
use probe::{Event, ProbeError};
use record::Direction;
use report::terminal::{self, Interval, RowId};
use std::net::IpAddr;
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
    /// The server's port
    #[arg(long, short, default_value_t = 5201)]
    port: u16,
    /// Length of the test
    #[arg(long, short, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    time: f64,
    /// End after so many bytes instead: 100M, 1GiB
    #[arg(long, short = 'n', value_name = "SIZE", conflicts_with = "time")]
    bytes: Option<ByteCount>,
    /// Parallel connections, 1 to 128
    #[arg(long, short = 'P', value_name = "STREAMS", default_value_t = 1)]
    #[arg(visible_alias = "streams")]
    parallel: u32,
    /// Socket buffers at both ends: 64KiB, 4M [left to the kernel's autotuning]
    #[arg(long, short, value_name = "WINDOW")]
    window: Option<ByteCount>,
    /// Rate of each connection: 50mbit, 200m; 0 is as fast as it goes
    #[arg(long, short, value_name = "RATE", value_parser = rate_or_unlimited)]
    #[arg(visible_alias = "bandwidth")]
    bitrate: Option<Pace>,
    /// Congestion control of the sender: cubic, bbr, reno
    #[arg(long, short = 'C', value_name = "CONGESTION")]
    congestion: Option<String>,
    /// The server sends
    #[arg(long, short = 'R')]
    reverse: bool,
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
    /// Bytes of one write
    #[arg(long, short = 'l', value_name = "SIZE")]
    length: Option<ByteCount>,
    /// Time between rows
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: f64,
    #[command(flatten)]
    forms: Forms,
    /// Keep the measurement, for `longhaul explain FILE`
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul test server                     ten seconds, one connection
  longhaul test server -R -P 8 -t 30       the server sends, eight connections
  longhaul test server -C bbr -w 4M        another congestion control, fixed buffers
  longhaul test server --html result.html --save result.json
  longhaul test server --json | jq .sentence";

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

/// Seconds as iperf3 takes them, or a time with its unit.
fn seconds(text: &str) -> Result<f64, String> {
    if let Ok(plain) = text.parse::<f64>() {
        return if plain.is_finite() && plain > 0.0 {
            Ok(plain)
        } else {
            Err("give a number of seconds above 0, such as 10".to_owned())
        };
    }
    text.parse::<Rtt>().map(Rtt::secs_f64).map_err(|error| error.to_string())
}

pub(crate) fn run(args: &TestArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let mut told = Vec::new();
    let live = !args.forms.json;
    let measured = client::run(
        &config(args),
        &mut |event| match event {
            Event::Connected(started) => {
                let (peer, notes) = (started.peer, started.notes);
                for note in &notes {
                    let style = console.err;
                    console.say(terminal::notes(std::slice::from_ref(note), &style).trim_end());
                }
                told = notes;
                if live {
                    let style = console.out;
                    let head = terminal::interval_header(&style);
                    console.print(&format!("Connected to {peer}\n{head}\n"));
                }
            }
            // A last row of a few milliseconds would say nothing.
            Event::Interval(interval)
                if live && interval.to_s - interval.from_s >= args.interval / 10.0 =>
            {
                let style = console.out;
                console.print(&(terminal::interval_row(&row(&interval), &style) + "\n"));
            }
            Event::Interval(_) => {}
        },
        &stop,
    );
    let measurement = measured.map_err(failure)?.measurement;
    if let Some(file) = &args.save {
        store::save(file, &measurement).map_err(Failure::work)?;
    }
    let rest: Vec<String> =
        measurement.notes.iter().filter(|note| !told.contains(note)).cloned().collect();
    let code = verdict::give(console, &measurement, &args.forms, &rest)?;
    if let Some(file) = &args.save {
        console.say(&format!("measurement kept in {}", file.display()));
    }
    Ok(if stop.is_raised() { crate::failure::FAILED } else { code })
}

fn config(args: &TestArgs) -> ClientConfig {
    ClientConfig {
        ports: args.port..=args.port,
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
        rate: args.bitrate.and_then(|pace| pace.0),
        congestion: args.congestion.clone(),
        direction: if args.reverse { Direction::Reverse } else { Direction::Forward },
        // A day at most: longer is refused where the length of the test is.
        report_every: Duration::from_secs_f64(args.interval.min(86_400.0)),
        ..ClientConfig::new(&args.host)
    }
}

pub(crate) fn failure(error: ProbeError) -> Failure {
    if error.is_usage() { Failure::usage(error) } else { Failure::work(error) }
}

pub(crate) fn row(interval: &probe::Interval) -> Interval {
    Interval {
        id: interval.stream.map_or(RowId::Sum, RowId::Stream),
        from_s: interval.from_s,
        to_s: interval.to_s,
        bytes: interval.bytes,
        rate: interval.rate,
        retransmits: interval.retransmits,
        cwnd: interval.cwnd,
        rtt: interval.rtt,
    }
}
