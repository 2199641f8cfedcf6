//! `longhaul lab`: hosts and emulated paths inside this machine.

mod check;
mod machine;
mod paths;
mod run;
mod stage;
mod up;
mod ways_in;

use crate::console::Console;
use crate::failure::Outcome;
use clap::{Args, Subcommand};
use host::sysctl;
use lab::LabError;
use std::path::PathBuf;
use topology::{PathSpec, UserPaths};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    verb: LabVerb,
}

const EXAMPLES: &str = "\
Examples:
  longhaul lab run --link geo -- ping -c 5 server         a program behind a satellite
  longhaul lab shell --link rate=100mbit,rtt=173ms        a shell behind a long path
  longhaul lab up examples/dumbbell.toml                  many hosts, routers, programs
  longhaul lab check --link rate=1gbit,rtt=50ms           what this machine makes of a path";

#[derive(Debug, Subcommand)]
enum LabVerb {
    Run(run::RunArgs),
    Shell(run::ShellArgs),
    Up(up::UpArgs),
    Check(check::CheckArgs),
    Paths(paths::PathsArgs),
    Exec(ways_in::ExecArgs),
    Set(ways_in::SetArgs),
    Pcap(ways_in::PcapArgs),
    List(ways_in::ListArgs),
}

pub(crate) fn run(args: &LabArgs, console: &mut Console) -> Outcome {
    match &args.verb {
        LabVerb::Run(args) => run::run(args),
        LabVerb::Shell(args) => run::shell(args),
        LabVerb::Up(args) => up::run(args, console),
        LabVerb::Check(args) => check::run(args, console),
        LabVerb::Paths(args) => paths::run(args, console),
        LabVerb::Exec(args) => ways_in::exec(args),
        LabVerb::Set(args) => ways_in::set(args),
        LabVerb::Pcap(args) => ways_in::pcap(args),
        LabVerb::List(args) => ways_in::list(args, console),
    }
}

/// A path as `--link` takes it; files it names are read here.
fn parse_path(text: &str) -> Result<PathSpec, String> {
    let own = own_paths()?;
    PathSpec::parse_among(text, &own, &mut |file| std::fs::read_to_string(file))
        .map_err(|error| error.to_string())
}

/// The user's own paths: longhaul/paths.toml in the folder of the user's
/// settings (XDG Base Directory); none where there is no such file.
fn own_paths() -> Result<UserPaths, String> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
    let Some(file) = folder.map(|folder| folder.join("longhaul/paths.toml")) else {
        return Ok(UserPaths::default());
    };
    let name = file.display().to_string();
    match std::fs::read_to_string(&file) {
        Ok(text) => UserPaths::parse(&name, &text).map_err(|error| error.to_string()),
        // None, or another user's, as with a HOME that was kept across sudo.
        Err(_) => Ok(UserPaths::default()),
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) =
        text.split_once('=').ok_or("write KEY=VALUE, such as net.ipv4.tcp_sack=0")?;
    sysctl::path(key.trim()).map_err(|error| error.to_string())?;
    if !key.trim().starts_with("net.") {
        return Err(LabError::Setting { key: key.trim().to_owned() }.to_string());
    }
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
