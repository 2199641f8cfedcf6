//! `longhaul lab`: hosts and emulated paths on this machine.

mod attach;
mod check;
mod document;
mod machine;
mod paths;
mod run;
mod stage;
mod up;

use crate::console::Console;
use crate::failure::Outcome;
use crate::input;
use clap::{Args, Subcommand};
use host::file::ReadError;
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

/// Parses the value of `--link`, reading the files that it names.
fn parse_path(text: &str) -> Result<PathSpec, String> {
    let own = own_paths()?;
    PathSpec::parse_among(text, &own, &mut input::of_a_path).map_err(|error| error.to_string())
}

/// The user's own paths: longhaul/paths.toml in the configuration directory (XDG
/// Base Directory); none without that file.
fn own_paths() -> Result<UserPaths, String> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
    let Some(file) = folder.map(|folder| folder.join("longhaul/paths.toml")) else {
        return Ok(UserPaths::default());
    };
    let name = file.display().to_string();
    match input::text(&file, input::PLAN) {
        Ok(text) => UserPaths::parse(&name, &text).map_err(|error| error.to_string()),
        Err(error @ (ReadError::TooLarge { .. } | ReadError::NotText)) => {
            Err(format!("cannot read {name}: {error}"))
        }
        // Missing, or another user's, as with a HOME that sudo preserved.
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
