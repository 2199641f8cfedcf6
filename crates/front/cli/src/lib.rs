//! `longhaul`: measures, explains, tunes and verifies transfers over long fat
//! networks.
//!
//! This crate handles the command line and the terminal; protocols and packets
//! are in the crates below. Each subcommand parses its arguments, calls those
//! crates and prints their results.

mod ask;
mod congestion_name;
mod console;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod examples;
mod failure;
mod host_port;
mod input;
mod inside;
#[cfg(test)]
mod next_commands;
mod output_path;
mod ratio;
mod read_progress;
mod regression;
mod stop;
mod test_report;
mod token;
mod unit;
mod usage_error;
mod verb_groups;
mod verbs;
mod web_flags;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use console::{Colour, Console};
use failure::{Failure, Outcome};

#[derive(Debug, Parser)]
#[command(
    name = "longhaul",
    version = env!("VERSION_AND_COMMIT"),
    about,
    propagate_version = true,
    max_term_width = 100,
    after_help = EXAMPLES
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// Use colour: auto, always, never
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    #[arg(alias = "colour", hide_possible_values = true)]
    color: Colour,
}

const EXAMPLES: &str = "\
Examples:
  longhaul demo              measure, explain, tune and verify an example
  longhaul server            on the far host (iperf3 -s works as well)
  longhaul test HOST         measure throughput and explain what limits it
  longhaul baseline HOST     measure a path thoroughly, to compare next week
  longhaul copy FILE HOST:   copy files over long paths, verified and resumable
  longhaul capture eth0 -w F capture the headers of packets
  longhaul pcap FILE         show the contents of a capture
  longhaul ping HOST         measure RTT and loss, with percentiles
  longhaul trace HOST        show the route, with loss and RTT of each hop
  longhaul doctor --to HOST  check this host for that path, with each fix
  longhaul watch             show running connections and what limits them
  longhaul bdp 100mbit 173ms
  longhaul tune plan --rate 10gbit --rtt 200ms
  longhaul calc transfer 10GB --rate 1gbit --rtt 100ms --loss 0.01%
  longhaul lab run --link rate=1gbit,rtt=50ms -- ping -c 3 server

Exit codes: 0 success, 1 failure, 2 usage error or missing privileges,
3 invalid result, 4 worse than the earlier result (--fail-if-worse).";

#[derive(Debug, Subcommand)]
enum Verb {
    Demo(verbs::demo::DemoArgs),
    Test(verbs::test::TestArgs),
    Baseline(verbs::baseline::BaselineArgs),
    Server(Box<verbs::server::ServerArgs>),
    Web(verbs::web::WebArgs),
    Copy(Box<verbs::copy::CopyArgs>),
    Boost(Box<verbs::boost::BoostArgs>),
    Agent(verbs::agent::AgentArgs),
    Iperf2(verbs::iperf2::Iperf2Args),
    Explain(verbs::explain::ExplainArgs),
    Capture(verbs::capture::CaptureArgs),
    Pcap(verbs::pcap::PcapArgs),
    Ping(verbs::ping::PingArgs),
    Trace(verbs::trace::TraceArgs),
    Doctor(Box<verbs::doctor::DoctorArgs>),
    Watch(verbs::watch::WatchArgs),
    Bdp(verbs::bdp::BdpArgs),
    /// Tune this host for a long fat path; every change can be reverted
    Tune(verbs::tune::TuneArgs),
    /// Calculate windows, loss limits, overhead and transfer times
    Calc(verbs::calc::CalcArgs),
    Iperf3(Box<verbs::iperf3::Iperf3Args>),
    /// Run programs over an emulated path inside this machine
    Lab(verbs::lab::LabArgs),
    Sim(verbs::sim::SimArgs),
    /// Measure every combination of settings, repeatedly, and compare
    Study(verbs::study::StudyArgs),
    Completions(verbs::shell::CompletionsArgs),
    Man(verbs::shell::ManArgs),
}

/// The long flags of all commands, without hyphens, also those that help does not show.
#[doc(hidden)]
#[must_use]
pub fn long_flags() -> std::collections::BTreeSet<String> {
    fn add(command: &clap::Command, all: &mut std::collections::BTreeSet<String>) {
        for argument in command.get_arguments() {
            all.extend(
                argument.get_long_and_visible_aliases().into_iter().flatten().map(str::to_owned),
            );
        }
        command.get_subcommands().for_each(|below| add(below, all));
    }
    let mut all = std::collections::BTreeSet::new();
    add(&Cli::command(), &mut all);
    all
}

/// Runs the program with the arguments of this process, and ends it with the exit code.
pub fn main() {
    // In the background of a script it is to end with SIGINT as well, as iperf3 does.
    host::signals::restore_interrupts();
    let arguments = verbs::iperf3::with_verb(std::env::args_os().collect());
    let command = verb_groups::grouped(Cli::command());
    let mut cli = command
        .clone()
        .try_get_matches_from(&arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .unwrap_or_else(|error| usage_error::exit(&error, &command, &arguments));
    failure::set_verb(usage_error::verb(&command, &arguments).0);
    let console = &mut Console::new(cli.color);
    let outcome = cli.verb.prepare(console).and_then(|()| cli.verb.run(console));
    let code = outcome.unwrap_or_else(|failure| {
        console.clear();
        console::complain(&usage_error::refused(&failure, &command, &arguments));
        failure.code
    });
    std::process::exit(code);
}

impl Verb {
    /// Splits `HOST:PORT` where a host is given, and reads the token.
    fn prepare(&mut self, console: &mut Console) -> Result<(), Failure> {
        match self {
            Verb::Test(args) => args.prepare(console),
            Verb::Baseline(args) => args.prepare(console),
            Verb::Ping(args) => args.split_port(),
            Verb::Trace(args) => args.split_port(),
            Verb::Doctor(args) => args.split_port(),
            Verb::Tune(args) => args.prepare(console),
            _ => Ok(()),
        }
    }

    fn run(&self, console: &mut Console) -> Outcome {
        match self {
            Verb::Demo(args) => verbs::demo::run(args, console),
            Verb::Test(args) => verbs::test::run(args, console),
            Verb::Baseline(args) => verbs::baseline::run(args, console),
            Verb::Server(args) => verbs::server::run(args, console),
            Verb::Web(args) => verbs::web::run(args, console),
            Verb::Copy(args) => verbs::copy::run(args, console),
            Verb::Boost(args) => verbs::boost::run(args, console),
            Verb::Agent(args) => verbs::agent::run(args, console),
            Verb::Iperf2(args) => verbs::iperf2::run(args, console),
            Verb::Explain(args) => verbs::explain::run(args, console),
            Verb::Capture(args) => verbs::capture::run(args, console),
            Verb::Pcap(args) => verbs::pcap::run(args, console),
            Verb::Ping(args) => verbs::ping::run(args, console),
            Verb::Trace(args) => verbs::trace::run(args, console),
            Verb::Doctor(args) => verbs::doctor::run(args, console),
            Verb::Watch(args) => verbs::watch::run(args, console),
            Verb::Bdp(args) => verbs::bdp::run(args, console),
            Verb::Tune(args) => verbs::tune::run(args, console),
            Verb::Calc(args) => verbs::calc::run(args, console),
            Verb::Iperf3(args) => Ok(verbs::iperf3::run(args)),
            Verb::Lab(args) => verbs::lab::run(args, console),
            Verb::Sim(args) => verbs::sim::run(args, console),
            Verb::Study(args) => verbs::study::run(args, console),
            Verb::Completions(args) => verbs::shell::completions(args, Cli::command(), console),
            Verb::Man(args) => verbs::shell::man(args, Cli::command(), console),
        }
    }
}
