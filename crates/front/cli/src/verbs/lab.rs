//! `longhaul lab`: hosts and emulated paths on this machine.

mod attach;
mod check;
mod paths;
mod run;
mod stage;
mod up;

use crate::console::Console;
use crate::failure::{Outcome, with_flags};
use clap::{Args, Subcommand};
use longhaul::lab;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    verb: LabVerb,
}

const EXAMPLES: &str = "\
Examples:
  longhaul lab run --link geo -- ping -c 5 server    a satellite link
  longhaul lab shell --link rate=100mbit,rtt=173ms   a shell behind a long path
  longhaul lab up examples/dumbbell.toml             hosts, routers, programs
  longhaul lab check --link rate=1gbit,rtt=50ms      accuracy of the emulation";

#[derive(Debug, Subcommand)]
enum LabVerb {
    Run(run::RunArgs),
    Shell(run::ShellArgs),
    Up(up::UpArgs),
    Check(check::CheckArgs),
    Paths(paths::PathsArgs),
    Exec(attach::ExecArgs),
    Set(attach::SetArgs),
    #[command(visible_alias = "pcap")]
    Capture(attach::CaptureArgs),
    List(attach::ListArgs),
}

pub(crate) fn run(args: &LabArgs, console: &mut Console) -> Outcome {
    match &args.verb {
        LabVerb::Run(args) => run::run(args, console),
        LabVerb::Shell(args) => run::shell(args),
        LabVerb::Up(args) => up::run(args, console),
        LabVerb::Check(args) => check::run(args, console),
        LabVerb::Paths(args) => paths::run(args, console),
        LabVerb::Exec(args) => attach::exec(args, console),
        LabVerb::Set(args) => attach::set(args, console),
        LabVerb::Capture(args) => attach::capture(args),
        LabVerb::List(args) => attach::list(args, console),
    }
}

/// Checks the value of `--link`, reading the files that it names.
fn parse_link(text: &str) -> Result<String, String> {
    lab::parse_path(text).map_err(|problem| with_flags(&problem.message))?;
    Ok(text.to_owned())
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("use KEY=VALUE, such as net.ipv4.tcp_sack=0")?;
    lab::check_sysctl(key.trim()).map_err(|problem| with_flags(&problem.message))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
