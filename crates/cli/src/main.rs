//! `longhaul`: measures, explains, tunes and verifies transfers over long fat
//! networks.
//!
//! This floor knows the command line and the terminal, and nothing of
//! protocols or packets: each verb parses its arguments, calls the floors
//! below and prints what they say.

mod console;
mod failure;
mod inside;
mod stop;
mod verbs;
mod verdict;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use console::{Colour, Console};
use failure::USAGE;

#[derive(Debug, Parser)]
#[command(
    name = "longhaul",
    version,
    about,
    propagate_version = true,
    max_term_width = 100,
    after_help = EXAMPLES
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// When to write colours
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    #[arg(visible_alias = "colour", hide_possible_values = true)]
    color: Colour,
}

const EXAMPLES: &str = "\
Examples:
  longhaul demo                        the whole loop in under a minute, inside this machine
  longhaul server                      on the far host (a real iperf3 -s serves as well)
  longhaul test HOST                   measure to it, and say what limited the transfer
  longhaul ping HOST                   round trips to it, with percentiles
  longhaul trace HOST                  the way there, with each hop's loss
  longhaul doctor --to HOST            what of this host stands in the way, and the remedy
  longhaul watch                       running connections, and what limits each
  longhaul bdp 100mbit 173ms           what a path needs, with the equations
  longhaul tune plan --rate 10gbit --rtt 200ms   what this host lacks for a path
  longhaul calc transfer 10GB --rate 1gbit --rtt 100ms --loss 0.01%
  longhaul lab run --link rate=1gbit,rtt=50ms -- ping -c 3 server

Exit codes: 0 done, 1 the work failed, 2 wrong usage or privileges, 3 the result is not valid.";

#[derive(Debug, Subcommand)]
enum Verb {
    Demo(verbs::demo::DemoArgs),
    Test(verbs::test::TestArgs),
    Server(verbs::server::ServerArgs),
    Iperf2(verbs::iperf2::Iperf2Args),
    Explain(verbs::explain::ExplainArgs),
    Ping(verbs::ping::PingArgs),
    Trace(verbs::trace::TraceArgs),
    Doctor(Box<verbs::doctor::DoctorArgs>),
    Watch(verbs::watch::WatchArgs),
    Bdp(verbs::bdp::BdpArgs),
    /// This host's settings for a long path, with a way back
    Tune(verbs::tune::TuneArgs),
    /// Calculators: windows, loss, overhead, transfers, each with its equation
    Calc(verbs::calc::CalcArgs),
    Iperf3(Box<verbs::iperf3::Iperf3Args>),
    /// Programs behind an emulated path, inside this machine
    Lab(verbs::lab::LabArgs),
    Completions(verbs::shell::CompletionsArgs),
    Man(verbs::shell::ManArgs),
}

fn main() {
    let arguments = verbs::iperf3::with_verb(std::env::args_os().collect());
    let as_iperf3 = arguments.get(1).is_some_and(|verb| verb == "iperf3");
    let cli = Cli::try_parse_from(&arguments).unwrap_or_else(|error| refuse(&error, as_iperf3));
    let console = &mut Console::new(cli.color);
    let outcome = match &cli.verb {
        Verb::Demo(args) => verbs::demo::run(args, console),
        Verb::Test(args) => verbs::test::run(args, console),
        Verb::Server(args) => verbs::server::run(args, console),
        Verb::Iperf2(args) => verbs::iperf2::run(args, console),
        Verb::Explain(args) => verbs::explain::run(args, console),
        Verb::Ping(args) => verbs::ping::run(args, console),
        Verb::Trace(args) => verbs::trace::run(args, console),
        Verb::Doctor(args) => verbs::doctor::run(args, console),
        Verb::Watch(args) => verbs::watch::run(args, console),
        Verb::Bdp(args) => verbs::bdp::run(args, console),
        Verb::Tune(args) => verbs::tune::run(args, console),
        Verb::Calc(args) => verbs::calc::run(args, console),
        Verb::Iperf3(args) => Ok(verbs::iperf3::run(args)),
        Verb::Lab(args) => verbs::lab::run(args, console),
        Verb::Completions(args) => verbs::shell::completions(args, Cli::command(), console),
        Verb::Man(args) => verbs::shell::man(args, Cli::command(), console),
    };
    let code = outcome.unwrap_or_else(|failure| {
        console.clear();
        console::complain(&failure.to_string());
        failure.code
    });
    std::process::exit(code);
}

/// Help and version go where they were asked for; everything else is said in
/// one line, of which clap makes several.
fn refuse(error: &clap::Error, as_iperf3: bool) -> ! {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
        _ => {}
    }
    let text = error.render().to_string();
    let message: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .collect();
    let message = message.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    if as_iperf3 {
        let given = verbs::iperf3::given(error, &Cli::command());
        verbs::iperf3::refuse(given.as_deref().unwrap_or(message));
    }
    console::complain(&format!("{message}; --help shows what can be given"));
    std::process::exit(USAGE)
}
