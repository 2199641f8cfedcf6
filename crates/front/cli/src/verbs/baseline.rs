//! `longhaul baseline`: a thorough measurement of a path in five minutes, for later comparison.

mod output;
mod rendering;

use super::probe_args::time;
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::output_path::OutputPath;
use crate::regression::RegressionArgs;
use crate::token::TokenArgs;
use crate::{host_port, input, stop};
use clap::{Args, value_parser};
use host::clock;
use host::resolve::Family;
use longhaul::baseline::{self, ArchitectureNote, BaselineRequest, ServerSource};
use output::Files;
use report::terminal;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::BitRate;

/// Measure a path thoroughly in 5 minutes, for later comparison
///
/// HOST runs `longhaul server` or an iperf3 server (3.x). Checks this host for power saving
/// and other traffic. Then tests TCP over IPv4 and IPv6, upload and download, with one stream
/// and with four, and measures the RTT under load. The tests run in random order, each at
/// least three times and as often as time allows. Prints medians with confidence intervals,
/// the differences, the limit of each condition and the first thing to do, and writes the same
/// as a page and as JSON.
///
/// Sends as fast as the path allows: run it only where you may use the whole capacity.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BaselineArgs {
    /// Server name or address
    #[arg(required_unless_present = "servers", conflicts_with = "servers")]
    host: Option<String>,
    /// Server port, or a range: 5201-5210
    ///
    /// With a range, each test uses the first port whose server is not busy.
    #[arg(long, short, default_value = "5201", value_parser = host_port::ports)]
    port: RangeInclusive<u16>,
    /// Use the nearest fast server from a public list
    ///
    /// FILE has lines HOST PORTS RATE LOCATION, such as `speedtest.example.net 5201-5210 10gbit
    /// Amsterdam`, or is the JSON of a public list, with the keys IP/HOST, PORT, GB/S and SITE.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["token", "token_file"])]
    servers: Option<PathBuf>,
    /// Minimum server rate [default: this host's link]
    #[arg(long, requires = "servers", conflicts_with = "host")]
    rate: Option<BitRate>,
    /// Seconds per test [default: 8, less if time is short]
    ///
    /// By default, tests are shortened, down to 1 s, until three rounds fit into the time.
    #[arg(long, value_name = "SECONDS", value_parser = time)]
    duration: Option<Duration>,
    /// Total time, in seconds
    ///
    /// At least three tests of each condition run in any case; if they take longer, a message
    /// says so before the first test.
    #[arg(long, value_name = "TIME", default_value = "300", value_parser = time)]
    within: Duration,
    /// Streams in multi-stream tests, 2 to 128
    #[arg(long, short = 'P', value_name = "N", default_value_t = 4)]
    #[arg(value_parser = value_parser!(u32).range(2..=128))]
    streams: u32,
    /// Seed for the test order [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Use IPv4 only
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long = "ipv6")]
    ipv6: bool,
    #[command(flatten)]
    token: TokenArgs,
    /// Record a part of the path: router, provider, ONT, switch, cable, NIC
    ///
    /// Repeatable. The result shows them, and --compare says which differ.
    #[arg(long = "note", value_name = "KEY=VALUE", value_parser = note)]
    note: Vec<ArchitectureNote>,
    /// Read such notes from a TOML file of lines KEY = "VALUE"
    #[arg(long, value_name = "FILE")]
    notes: Option<PathBuf>,
    /// Compare with an earlier baseline
    ///
    /// FILE is the JSON file that it wrote; the result lists the conditions that changed
    /// significantly.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    compare: Option<PathBuf>,
    #[command(flatten)]
    regression: RegressionArgs,
    /// Write NAME.html and NAME.json [default: baseline-HOST-TIME]
    #[arg(long, short, value_name = "NAME", help_heading = "Output")]
    output: Option<OutputPath>,
    /// Print the result as JSON
    #[arg(long, short = 'J', help_heading = "Output")]
    json: bool,
}

impl BaselineArgs {
    /// Splits `HOST:PORT`, and reads the token.
    pub(crate) fn prepare(&mut self, console: &mut Console) -> Result<(), Failure> {
        self.token.read(console)?;
        match &mut self.host {
            Some(host) => host_port::split(host, &mut self.port),
            None => Ok(()),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  longhaul baseline server                    5 minutes; writes a page and JSON
  longhaul baseline server -o monday          monday.html and monday.json
  longhaul baseline server --compare monday.json
  longhaul baseline server -p 5201-5210 -4    the first free port, IPv4 only
  longhaul baseline --servers list.txt --rate 2.5gbit
  longhaul baseline server --note 'router=FRITZ!Box 7590' --note cable=Cat6
  longhaul baseline server --within 120 -4    in 2 minutes, with shorter tests

Exit codes: 0 measured, 1 no test succeeded, or interrupted (the results so far
are reported and saved), 2 usage error, 4 worse than the earlier baseline
(--fail-if-worse).";

pub(crate) fn run(args: &BaselineArgs, console: &mut Console) -> Outcome {
    // Before anything is sent.
    let request = request(args)?;
    request.check()?;
    let stop = stop::on_signals();
    let name = args.host.as_deref().unwrap_or("servers");
    let files = Files::new(args.output.as_deref(), name, clock::unix_seconds())?;
    files.spare(args.compare.as_deref())?;
    let report =
        baseline::run(&request, &mut |event| rendering::event(event, &request, console), &stop);
    console.clear();
    let report = report?;
    let text = if args.json {
        console::json(&report)?
    } else {
        format!("\n{}", terminal::baseline(&report, &console.out))
    };
    // The files first: they are kept even if nobody reads the output.
    files.write(&report, console)?;
    console.print(&text);
    let code = if report.interrupted { FAILED } else { DONE };
    Ok(args.regression.code_of_baseline(code, report.comparison.as_ref()))
}

/// Converts the arguments to a request; reads the earlier baseline and the list of servers.
fn request(args: &BaselineArgs) -> Result<BaselineRequest, Failure> {
    let compare = args.compare.as_deref().map(store::load_baseline_report).transpose();
    let compare = compare.map_err(Failure::usage)?.map(Box::new);
    let server = match &args.servers {
        Some(file) => list(file, args.rate)?,
        None => ServerSource::Host {
            host: args.host.clone().unwrap_or_default(),
            ports: args.port.clone(),
            token: args.token.value(),
        },
    };
    Ok(BaselineRequest {
        server,
        family: Family::from_flags(args.ipv4, args.ipv6),
        duration: args.duration.map(|duration| duration.as_secs_f64()),
        within: args.within,
        streams: args.streams,
        seed: args.seed,
        architecture: notes(args)?,
        compare,
    })
}

/// `KEY=VALUE`.
fn note(text: &str) -> Result<ArchitectureNote, &'static str> {
    let (part, text) = text.split_once('=').ok_or("give KEY=VALUE, as in router=FRITZ!Box")?;
    Ok(ArchitectureNote { part: part.trim().to_owned(), text: text.trim().to_owned() })
}

fn notes(args: &BaselineArgs) -> Result<Vec<ArchitectureNote>, Failure> {
    let mut notes = Vec::new();
    if let Some(file) = &args.notes {
        let name = file.display().to_string();
        let text = input::text(file, input::LIST)
            .map_err(|error| Failure::usage(format!("cannot read '{name}': {error}")))?;
        notes = baseline::architecture(&name, &text)?;
    }
    notes.extend(args.note.iter().cloned());
    Ok(notes)
}

fn list(file: &Path, rate: Option<BitRate>) -> Result<ServerSource, Failure> {
    let name = file.display().to_string();
    let text = input::text(file, input::LIST)
        .map_err(|error| Failure::usage(format!("cannot read '{name}': {error}")))?;
    Ok(ServerSource::List { name, text, rate })
}
