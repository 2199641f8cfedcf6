//! Ways into a running lab: `lab exec`, `lab set`, `lab pcap`, `lab list`.

use super::stage::path_with_us;
use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use clap::Args;
use host::join::{Entrance, JoinError};
use lab::LabError;
use lab::control::{self, Caller};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;

/// Which of the running labs.
#[derive(Debug, Args)]
struct Which {
    /// The lab's name, where several run (`longhaul lab list`)
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
}

impl Which {
    fn call(&self) -> Result<Caller, Failure> {
        Caller::call(self.lab.as_deref()).map_err(Failure::usage)
    }
}

/// Run a program on a host of a running lab
#[derive(Debug, Args)]
#[command(after_help = EXEC_EXAMPLES)]
pub(super) struct ExecArgs {
    #[command(flatten)]
    which: Which,
    /// The host
    #[arg(value_name = "HOST")]
    host: String,
    /// The program, and its arguments; a shell where none is given
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const EXEC_EXAMPLES: &str = "\
Examples:
  longhaul lab exec server iperf3 -s
  longhaul lab exec client ping -c 3 server
  longhaul lab exec --lab dumbbell client1

Exit code: the program's own; 137 where the lab ended before it.";

/// Change a link of a running lab
#[derive(Debug, Args)]
#[command(after_help = SET_EXAMPLES)]
pub(super) struct SetArgs {
    #[command(flatten)]
    which: Which,
    /// The link, where there are several, and what to change: KEY=VALUE,…
    #[arg(value_names = ["LINK", "SETTINGS"], num_args = 1..=2, required = true)]
    words: Vec<String>,
}

const SET_EXAMPLES: &str = "\
Examples:
  longhaul lab set loss=1%
  longhaul lab set wan rate=10mbit,up.loss=2%
  longhaul lab set --lab dumbbell wan queue=fq_codel

`longhaul lab run --help` lists the keys. Changes are part of the lab's report.";

/// Capture at a host of a running lab, with each packet's fate
#[derive(Debug, Args)]
#[command(after_help = PCAP_EXAMPLES)]
pub(super) struct PcapArgs {
    #[command(flatten)]
    which: Which,
    /// The host; all its links are captured, each as an interface
    #[arg(value_name = "HOST")]
    host: String,
    /// Write to FILE (pcapng) instead of standard output
    #[arg(long, short, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Bytes of each packet that are kept, from the IP header on
    #[arg(long, short = 's', value_name = "BYTES", default_value_t = 65_535)]
    bytes: u32,
}

const PCAP_EXAMPLES: &str = "\
Examples:
  longhaul lab pcap client -w trace.pcapng
  longhaul lab pcap server -s 128 | wireshark -k -i -

Ctrl-C ends it. Each packet has a comment: delivered, marked or dropped and why, and how
long it waited in the queue. Packets the host sends are shown when they enter the link,
lost ones too; packets it receives, when they come.";

/// List the running labs, their hosts and links
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(super) struct ListArgs {
    /// Print them as JSON instead
    #[arg(long, short = 'J')]
    json: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  longhaul lab list
  longhaul lab list --json | jq '.[].hosts[].name'";

pub(super) fn exec(args: &ExecArgs) -> Outcome {
    let mut caller = args.which.call()?;
    let inventory = caller.inventory().map_err(Failure::work)?;
    let Some(host) = inventory.hosts.iter().find(|host| host.name == args.host) else {
        let known: Vec<&str> = inventory.hosts.iter().map(|host| host.name.as_str()).collect();
        let error = LabError::NoHost { name: args.host.clone(), known: known.join(", ") };
        return Err(Failure::usage(error));
    };
    let shell = || std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let command = match args.command.as_slice() {
        [] => vec![shell().unwrap_or_else(|| "/bin/sh".into())],
        words => words.to_vec(),
    };
    let failed = |error: JoinError| match error {
        JoinError::Start { .. } => Failure::usage(error),
        other => Failure::work(other),
    };
    let entrance = Entrance::open(caller.connection(), host.namespace).map_err(failed)?;
    entrance.run(&command, path_with_us().as_deref()).map_err(failed)
}

pub(super) fn set(args: &SetArgs) -> Outcome {
    let (link, settings) = match args.words.as_slice() {
        [settings] => (None, settings),
        [link, settings, ..] => (Some(link.as_str()), settings),
        [] => return Err(Failure::usage("nothing to set; write KEY=VALUE, such as loss=1%")),
    };
    args.which.call()?.set(link, settings).map_err(|error| match error {
        LabError::Refused { .. } => Failure::usage(error),
        other => Failure::work(other),
    })?;
    Ok(DONE)
}

pub(super) fn pcap(args: &PcapArgs) -> Outcome {
    if args.write.is_none() && io::stdout().is_terminal() {
        return Err(Failure::usage(
            "a capture is not for a terminal; write it with -w FILE, or pipe it to wireshark -k -i -",
        ));
    }
    let caller = args.which.call()?;
    let bytes = usize::try_from(args.bytes).unwrap_or(usize::MAX);
    let mut stream = caller.capture(&args.host, bytes).map_err(|error| match error {
        LabError::Refused { .. } => Failure::usage(error),
        other => Failure::work(other),
    })?;
    // Only now: a name mistyped shall cost no older file.
    let mut out: Box<dyn Write> = match &args.write {
        Some(path) => Box::new(File::create(path).map_err(|error| {
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
                    Err(error) => return Err(Failure::work(format!("cannot write it: {error}"))),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(DONE),
            Err(error) => return Err(Failure::work(format!("the capture broke off: {error}"))),
        }
    }
}

pub(super) fn list(args: &ListArgs, console: &mut Console) -> Outcome {
    let names = control::running().map_err(Failure::work)?;
    let mut all = Vec::new();
    for name in names {
        // One that ends just now is none any more.
        match Caller::call(Some(&name)).and_then(|mut caller| caller.inventory()) {
            Ok(inventory) => all.push((name, inventory)),
            Err(LabError::NoLab { .. } | LabError::NoneRuns) => {}
            Err(error) => console.say(&format!("{name} does not answer: {error}")),
        }
    }
    if args.json {
        let one = |(name, inventory): &(String, control::Inventory)| {
            serde_json::json!({
                "name": name, "hosts": inventory.hosts, "links": inventory.links,
            })
        };
        let list: serde_json::Value = all.iter().map(one).collect();
        let json = serde_json::to_string_pretty(&list).map_err(Failure::work)?;
        console.print(&(json + "\n"));
        return Ok(DONE);
    }
    if all.is_empty() {
        console.say("no lab is running");
    }
    for (name, inventory) in all {
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
