//! Commands for a running lab: `lab exec`, `lab set`, `lab capture`, `lab list`.

use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use crate::output_path::OutputPath;
use clap::Args;
use host::output_file;
use longhaul::lab::RunningLab;
use longhaul::lab::running::{self, ExecRequest, SetRequest};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::process::Stdio;

/// Selects a running lab.
#[derive(Debug, Args)]
struct Which {
    /// Name of the lab, if several are running (`lab list`)
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
}

/// Run a program on a host of a running lab
#[derive(Debug, Args)]
#[command(after_help = EXEC_EXAMPLES)]
pub(super) struct ExecArgs {
    #[command(flatten)]
    which: Which,
    /// Print the result as JSON
    ///
    /// Output of CMD goes to standard error.
    #[arg(long, short = 'J')]
    json: bool,
    /// Host to run it on
    #[arg(value_name = "HOST")]
    host: String,
    /// Program with its arguments [default: a shell]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const EXEC_EXAMPLES: &str = "\
Examples:
  longhaul lab exec server iperf3 -s
  longhaul lab exec client ping -c 3 server
  longhaul lab exec --lab dumbbell client1
  longhaul lab exec --json client ping -c 3 server

Exit code: that of the program; 137 if the lab ended first.";

/// Change a link of a running lab
#[derive(Debug, Args)]
#[command(after_help = SET_EXAMPLES)]
pub(super) struct SetArgs {
    #[command(flatten)]
    which: Which,
    /// Print the change as JSON
    #[arg(long, short = 'J')]
    json: bool,
    /// Link, if there are several; settings KEY=VALUE,…
    #[arg(value_names = ["LINK", "SETTINGS"], num_args = 1..=2, required = true)]
    words: Vec<String>,
}

const SET_EXAMPLES: &str = "\
Examples:
  longhaul lab set loss=1%
  longhaul lab set wan rate=10mbit,up.loss=2%
  longhaul lab set --lab dumbbell wan queue=fq_codel

`longhaul lab run --help` lists the keys. The lab's report lists the changes.";

/// Capture packets on a host of a running lab
#[derive(Debug, Args)]
#[command(after_help = CAPTURE_EXAMPLES)]
pub(super) struct CaptureArgs {
    #[command(flatten)]
    which: Which,
    /// Host whose links are captured, one interface per direction
    #[arg(value_name = "HOST")]
    host: String,
    /// Output file (pcapng) [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    write: Option<OutputPath>,
    /// Snapshot length, from the IP header
    #[arg(long, short = 's', value_name = "BYTES", default_value_t = 65_535)]
    bytes: u32,
}

const CAPTURE_EXAMPLES: &str = "\
Examples:
  longhaul lab capture client -w trace.pcapng
  longhaul lab capture server -s 128 | wireshark -k -i -

Ctrl-C ends the capture. The comment of each packet tells whether it was
delivered, ECN-marked or dropped (and why), and gives its queueing delay.
Packets that the host sends, including dropped ones, are timestamped when they
enter the link; packets that it receives, when they arrive.";

/// List the running labs, their hosts and links
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(super) struct ListArgs {
    /// Print JSON
    #[arg(long, short = 'J')]
    json: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  longhaul lab list
  longhaul lab list --json | jq '.[].hosts[].name'";

pub(super) fn exec(args: &ExecArgs, console: &mut Console) -> Outcome {
    let shell = || std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let command = match args.command.as_slice() {
        [] => vec![shell().unwrap_or_else(|| "/bin/sh".into())],
        words => words.to_vec(),
    };
    let output = if args.json { Stdio::from(io::stderr()) } else { Stdio::inherit() };
    let (lab, host) = (args.which.lab.clone(), args.host.clone());
    let document = running::exec(&ExecRequest { lab, host, command }, output)?;
    if args.json {
        console.print(&console::json(&document)?);
    }
    Ok(document.exit_code)
}

pub(super) fn set(args: &SetArgs, console: &mut Console) -> Outcome {
    let (link, settings) = match args.words.as_slice() {
        [settings] => (None, settings.clone()),
        [link, settings, ..] => (Some(link.clone()), settings.clone()),
        [] => return Err(Failure::usage("no settings given; use KEY=VALUE, such as loss=1%")),
    };
    let document = running::set(&SetRequest { lab: args.which.lab.clone(), link, settings })?;
    if args.json {
        console.print(&console::json(&document)?);
    }
    Ok(DONE)
}

pub(super) fn capture(args: &CaptureArgs) -> Outcome {
    if args.write.is_none() && io::stdout().is_terminal() {
        return Err(Failure::usage(
            "cannot write a capture to a terminal; use -w FILE, or pipe it to wireshark -k -i -",
        ));
    }
    let client = running::connect(args.which.lab.as_deref())?;
    let bytes = usize::try_from(args.bytes).unwrap_or(usize::MAX);
    let mut stream = client.capture(&args.host, bytes).map_err(running::problem)?;
    // Only now: a mistyped host name must not overwrite a file.
    let mut out: Box<dyn Write> = match &args.write {
        Some(path) => Box::new(output_file::create(path).map_err(|error| {
            Failure::usage(format!("cannot write {}: {error}", path.display()))
        })?),
        None => Box::new(io::stdout()),
    };
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(DONE),
            Ok(length) => {
                let written = out.write_all(&buffer[..length]).and_then(|()| out.flush());
                match written {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(DONE),
                    Err(error) => {
                        return Err(Failure::work(format!("cannot write the capture: {error}")));
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(DONE),
            Err(error) => {
                return Err(Failure::work(format!("the capture was interrupted: {error}")));
            }
        }
    }
}

pub(super) fn list(args: &ListArgs, console: &mut Console) -> Outcome {
    let all = running::list(&mut |name, error| {
        console.say(&format!("{name} does not answer: {error}"));
    })?;
    if args.json {
        console.print(&console::json(&all)?);
        return Ok(DONE);
    }
    if all.is_empty() {
        console.say("no lab is running");
    }
    for RunningLab { name, inventory } in all {
        let mut text = format!("{name}\n");
        for host in inventory.hosts {
            text += &format!("  {:16} {}  {}\n", host.name, host.ipv4, host.ipv6);
        }
        for link in inventory.links {
            let [from, to] = link.between;
            text += &format!("  {:16} {from} - {to}: {}\n", link.name, link.path);
        }
        console.print(&text);
    }
    Ok(DONE)
}
