//! `longhaul iperf3`: iperf3's flags, text and JSON, with longhaul's endpoints.
//!
//! | module | holds |
//! |---|---|
//! | [`args`] | flags and their values |
//! | [`setting`] | settings of either end from the flags |
//! | [`observer`], [`output`] | output of events as text and JSON |
//! | [`client`], [`server`] | the two ends |

mod args;
mod client;
mod observer;
mod output;
mod server;
mod setting;

pub(crate) use args::Iperf3Args;

use crate::console;
use crate::failure::{Code, DONE, FAILED, Failure, USAGE};
use clap::error::{ContextKind, ContextValue};
use host::background;
use host::pid_file::PidFile;
use output::Output;
use std::ffi::OsString;
use std::path::Path;

/// Exit codes are iperf3's: 0, or 1 for any error.
pub(crate) fn run(args: &Iperf3Args) -> Code {
    work(args).unwrap_or_else(|failure| {
        let kind = if failure.code == USAGE { "parameter error" } else { "error" };
        print_error(&format!("{kind} - {failure}"));
        FAILED
    })
}

/// For a flag that conflicts with a group, clap names the whole group; this names
/// only the flags that were given.
pub(crate) fn given(error: &clap::Error, command: &clap::Command) -> Option<String> {
    let ContextValue::Strings(group) = error.get(ContextKind::PriorArg)? else { return None };
    let ContextValue::String(flag) = error.get(ContextKind::InvalidArg)? else { return None };
    let words: Vec<String> = std::env::args().skip(1).collect();
    let verb = command.find_subcommand("iperf3")?;
    let is_given = |long: &str, short: Option<char>| {
        words.iter().any(|word| match word.strip_prefix("--") {
            Some(name) => name
                .split('=')
                .next()
                .is_some_and(|name| name == long || (name.len() > 2 && long.starts_with(name))),
            None => word.starts_with('-') && short.is_some_and(|short| word.contains(short)),
        })
    };
    let named: Vec<&str> = verb
        .get_arguments()
        .filter_map(|flag| Some((flag.get_long()?, flag.get_short())))
        .filter(|(long, short)| {
            let listed = group
                .iter()
                .any(|text| text.split([' ', '[', '=']).next() == Some(&format!("--{long}")));
            listed && is_given(long, *short)
        })
        .map(|(long, _)| long)
        .collect();
    let flag = flag.split(' ').next().unwrap_or_default();
    (!named.is_empty()).then(|| format!("{flag} cannot be used with --{}", named.join(", --")))
}

/// Prints a one-line usage error and exits.
pub(crate) fn refuse(what: &str) -> ! {
    print_error(&format!("parameter error - {what}; see --help"));
    std::process::exit(FAILED)
}

fn print_error(what: &str) {
    console::note(&format!("iperf3: {what}"));
}

/// Inserts the subcommand where the program was called as `iperf3`.
pub(crate) fn with_verb(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().and_then(|name| Path::new(name).file_name());
    if name.is_some_and(|name| name == "iperf3") {
        arguments.insert(1, OsString::from("iperf3"));
    }
    arguments
}

fn work(args: &Iperf3Args) -> Result<Code, Failure> {
    if args.common.version {
        return Ok(version());
    }
    if !args.server && args.client.is_none() {
        refuse("give -c HOST to run a client, or -s to run a server");
    }
    if args.server_flags.daemon && !args.server_flags.in_background {
        return detach();
    }
    let mut output = Output::open(args)?;
    let kept = args.common.pidfile.as_deref().map(PidFile::write).transpose();
    let _kept = kept.map_err(Failure::work)?;
    match &args.client {
        Some(host) => client::run(args, host, &mut output),
        None => server::run(args, output),
    }
}

/// Starts this program again in the background, and waits until it listens.
fn detach() -> Result<Code, Failure> {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_else(|| OsString::from("longhaul"));
    let mut arguments: Vec<OsString> = arguments.collect();
    arguments.push(OsString::from("--in-background"));
    let started = background::start(name, &arguments)
        .map_err(|error| Failure::work(format!("cannot start in the background: {error}")))?;
    started.messages.lines().for_each(console::note);
    Ok(if started.is_ready { DONE } else { FAILED })
}

/// Programs parse the first word and number.
fn version() -> Code {
    let text = format!(
        "{} (longhaul {})\n{}\nOptional features available: CPU affinity setting, IPv6 flow label, \
         TCP congestion algorithm setting, sendfile / zerocopy, socket pacing, authentication, \
         bind to device, support IPv4 don't fragment, POSIX threads, GSO/GRO support\n",
        report::iperf3::VERSION,
        env!("CARGO_PKG_VERSION"),
        observer::system()
    );
    console::help(&text, false, false);
    DONE
}

#[cfg(test)]
mod tests {
    use super::with_verb;
    use std::ffi::OsString;

    #[test]
    fn a_link_called_iperf3_selects_the_subcommand() {
        let with = |words: &[&str]| with_verb(words.iter().map(OsString::from).collect());
        assert_eq!(with(&["/usr/bin/iperf3", "-s"]), ["/usr/bin/iperf3", "iperf3", "-s"]);
        assert_eq!(with(&["longhaul", "iperf3"]), ["longhaul", "iperf3"]);
        assert!(with(&[]).is_empty());
    }
}
