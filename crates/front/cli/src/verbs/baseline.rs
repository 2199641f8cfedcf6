//! `longhaul baseline`: everything about a path in five minutes, to compare with later.

mod host_checks;
mod output;
mod path;
mod rounds;
mod servers;

use super::probe_args::time;
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::host_port;
use crate::output_path::OutputPath;
use crate::regression::RegressionArgs;
use crate::stop;
use crate::token::TokenArgs;
use clap::{Args, value_parser};
use host::{clock, random};
use output::Files;
use perf::StopFlag;
use record::{BASELINE_SCHEMA, BaselineReport, ServerChoice};
use report::terminal;
use rounds::Rounds;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use units::BitRate;

/// Measure a path thoroughly in 5 minutes, to compare later
///
/// HOST runs `longhaul server` or an iperf3 server (3.x). Checks this host for power saving
/// and other traffic, then tests TCP over IPv4 and IPv6, up- and download, with one stream and
/// with four, and the RTT under load, in random order, as often as fits, at least three times
/// each. Prints medians with confidence intervals, what differs, what limits each condition,
/// and what to do first, and writes the same as a page and as JSON.
///
/// Sends as fast as the path allows: only where you may use all of it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BaselineArgs {
    /// Server name or address
    #[arg(required_unless_present = "servers", conflicts_with = "servers")]
    host: Option<String>,
    /// Server port, or a range: 5201-5210
    ///
    /// Of a range, each test uses the first port whose server is not busy.
    #[arg(long, short, default_value = "5201", value_parser = host_port::ports)]
    port: RangeInclusive<u16>,
    /// Use the nearest fast server of a public list
    ///
    /// Lines HOST PORTS RATE LOCATION, such as `speedtest.example.net 5201-5210 10gbit
    /// Amsterdam`, or the JSON of public lists, with IP/HOST, PORT, GB/S and SITE.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["token", "token_file"])]
    servers: Option<PathBuf>,
    /// Server rate needed [default: this host's link]
    #[arg(long, requires = "servers", conflicts_with = "host")]
    rate: Option<BitRate>,
    /// Duration of each test, in seconds [default: 8, or what fits]
    ///
    /// Without it, tests are as short as three rounds within the time need, down to 1 s.
    #[arg(long, value_name = "SECONDS", value_parser = time)]
    duration: Option<Duration>,
    /// Time for everything, in seconds
    ///
    /// Three tests of each condition are made in any case; if they take longer, that is said
    /// before the first one.
    #[arg(long, value_name = "TIME", default_value = "300", value_parser = time)]
    within: Duration,
    /// Streams of the tests with several, 2 to 128
    #[arg(long, short = 'P', value_name = "N", default_value_t = 4)]
    #[arg(value_parser = value_parser!(u32).range(2..=128))]
    streams: u32,
    /// Seed of the order of the tests [default: random]
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
    /// Compare with an earlier baseline
    ///
    /// FILE is the JSON that it wrote; the result says which conditions changed significantly.
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
  longhaul baseline server --within 120 -4    in 2 minutes, with shorter tests

Exit codes: 0 measured, 1 no test succeeded, or interrupted (what was measured
is reported and saved), 2 wrong usage, 4 worse than the baseline compared with
(--fail-if-worse).";

/// The server to measure to.
#[derive(Debug, Clone)]
struct Server {
    host: String,
    ports: RangeInclusive<u16>,
}

/// What cannot be measured: the command line, or this server.
enum Unmeasured {
    /// The next server would not help.
    Fatal(Failure),
    /// This server cannot be used.
    Server(Failure),
}

pub(crate) fn run(args: &BaselineArgs, console: &mut Console) -> Outcome {
    // Before anything is sent.
    let earlier = args.compare.as_deref().map(store::load_baseline_report).transpose();
    let earlier = earlier.map_err(Failure::usage)?;
    let list = args.servers.as_deref().map(servers::load).transpose()?;
    let begun = (clock::now(), clock::unix_seconds());
    let stop = stop::on_signals();
    let name = args.host.as_deref().unwrap_or("servers");
    let files = Files::new(args.output.as_deref(), name, begun.1)?;
    files.spare(args.compare.as_deref())?;
    let session = Session { args, stop: &stop, begun };
    let mut report = match &list {
        None => {
            let host = args.host.clone().unwrap_or_default();
            let server = Server { host, ports: args.port.clone() };
            session.measure(&server, console).map_err(|unmeasured| match unmeasured {
                Unmeasured::Fatal(failure) | Unmeasured::Server(failure) => failure,
            })?
        }
        Some(list) => session.nearest(list, console)?,
    };
    if let Some(earlier) = &earlier {
        match baseline::compare(earlier, &report) {
            Ok(comparison) => report.comparison = Some(comparison),
            Err(why) => report.notes.push(format!("not compared: {why}")),
        }
    }
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

/// One call of the command.
struct Session<'a> {
    args: &'a BaselineArgs,
    stop: &'a StopFlag,
    /// The start, and the same in seconds since 1970.
    begun: (Instant, u64),
}

impl Session<'_> {
    /// Measures to the nearest server of a list that is fast enough and can be used.
    fn nearest(
        &self,
        list: &servers::LoadedList,
        console: &mut Console,
    ) -> Result<BaselineReport, Failure> {
        let mut choice = servers::choose(list, self.args, self.stop, console)?;
        loop {
            let chosen = choice.servers.iter().find(|server| server.rejected.is_none());
            let Some(chosen) = chosen else { return Err(servers::none_usable(&choice)) };
            let server =
                Server { host: chosen.host.clone(), ports: chosen.ports.0..=chosen.ports.1 };
            console.say(&servers::chosen(chosen));
            match self.measure(&server, console) {
                Ok(report) => {
                    return Ok(BaselineReport { choice: Some(choice), ..report });
                }
                Err(Unmeasured::Fatal(failure)) => return Err(failure),
                Err(Unmeasured::Server(failure)) => {
                    console.say(&format!("{}: {failure}", server.host));
                    self.reject(&mut choice, &failure)?;
                }
            }
        }
    }

    fn reject(&self, choice: &mut ServerChoice, failure: &Failure) -> Result<(), Failure> {
        if self.stop.is_raised() {
            return Err(Failure::work("interrupted before the first test ended; run it again"));
        }
        if baseline::reject_chosen(choice, &format!("cannot be used: {failure}")) {
            Ok(())
        } else {
            Err(servers::none_usable(choice))
        }
    }

    /// Measures to one server.
    fn measure(
        &self,
        server: &Server,
        console: &mut Console,
    ) -> Result<BaselineReport, Unmeasured> {
        let args = self.args;
        let host = host_checks::Examined::towards(server, args, self.stop, console)?;
        let seed = args.seed.unwrap_or_else(random::seed);
        let elapsed = clock::now().saturating_duration_since(self.begun.0);
        let left = args.within.saturating_sub(elapsed);
        let fitting = || rounds::fitting_duration(&host.paths, args.streams, left);
        let duration = args.duration.unwrap_or_else(fitting);
        let asked = rounds::Asked {
            server,
            paths: &host.paths,
            duration,
            within: args.within,
            streams: args.streams,
            seed,
            token: self.token(),
        };
        let measured = Rounds::run(&asked, self.begun.0, console, self.stop)?;
        Ok(self.report(server, seed, host, measured))
    }

    /// The token, unless the server was chosen from a list: whoever runs it is nobody to prove
    /// anything to.
    fn token(&self) -> Option<String> {
        self.args.token.value().filter(|_| self.args.servers.is_none())
    }

    fn report(
        &self,
        server: &Server,
        seed: u64,
        host: host_checks::Examined,
        measured: Rounds,
    ) -> BaselineReport {
        let args = self.args;
        let paths = measured.with_failures(host.paths);
        let conditions = measured.summaries();
        let mut notes = measured.notes;
        if self.stop.is_raised() {
            notes.push(format!(
                "interrupted in round {}: what was measured until then is reported",
                measured.rounds
            ));
        }
        let mut report = BaselineReport {
            schema: BASELINE_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_s: self.begun.1,
            took_s: clock::now().saturating_duration_since(self.begun.0).as_secs_f64(),
            host: measured.host,
            link_bps: host.link,
            target: server.host.clone(),
            port: *server.ports.start(),
            peer: measured.peer,
            seed,
            within_s: args.within.as_secs_f64(),
            duration_s: measured.duration.as_secs_f64(),
            rounds: measured.rounds,
            interrupted: self.stop.is_raised(),
            checks: host.checks,
            differences: baseline::differences(&conditions),
            links: baseline::links(&conditions, &paths),
            paths,
            conditions,
            steps: Vec::new(),
            comparison: None,
            choice: None,
            notes,
        };
        report.steps = baseline::steps(&report);
        report
    }
}
