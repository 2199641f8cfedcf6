//! `longhaul lab run` and `lab shell`: a program on the client, behind an emulated path.

use super::parse_link;
use super::setting;
use super::stage::{self, StageArgs};
use crate::console::{self, Console};
use crate::failure::{FAILED, Failure, Outcome};
use crate::inside;
use clap::{Args, ValueEnum};
use longhaul::lab::{
    EndReason, FarEnd, LabDocument, LabEvent, LabHosts, LabProgram, LabRequest, PairRequest,
    ProgramOutput,
};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The pair of hosts and the path between them.
#[derive(Debug, Args)]
pub(super) struct PairArgs {
    /// Path: a name (see `lab paths`), KEY=VALUE,… or both
    #[arg(long, value_name = "PATH", value_parser = parse_link)]
    link: String,
    /// Congestion control on both hosts
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    cc: String,
    /// Set a sysctl on both hosts (repeatable)
    ///
    /// Such as net.ipv4.tcp_sack=0.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    sysctl: Vec<(String, String)>,
    /// Set TCP buffers of both hosts to 4 x (BDP + queue)
    #[arg(long)]
    tuned: bool,
    /// Server command, started before CMD
    ///
    /// CMD starts once the server listens.
    #[arg(long, value_name = "CMD")]
    server: Option<String>,
    /// Far end: server, machine
    ///
    /// `machine` is this machine, under the host name `machine`; its TCP services
    /// are reachable through the path.
    #[arg(long, value_name = "END", default_value = "server", conflicts_with = "server")]
    #[arg(hide_possible_values = true)]
    far_end: End,
    /// Forward to this machine's network
    ///
    /// Needs root and --far-end machine.
    #[arg(long)]
    nat: bool,
    #[command(flatten)]
    stage: StageArgs,
}

const RUN_EXAMPLES: &str = "\
Examples:
  longhaul lab run --link rate=100mbit,rtt=173ms \\
      --server 'iperf3 -s -1' -- iperf3 -c server
  longhaul lab run --link rate=1gbit,rtt=50ms,loss=0.1% --tuned --cc bbr \\
      --server 'longhaul server --one-off' -- longhaul test server
  longhaul lab run --link geo -- ping -c 5 server
  longhaul lab run --link rate=20mbit,rtt=40ms,queue=fq_codel \\
      --server 'iperf3 -s -1' -- iperf3 -c server
  longhaul lab run --link lte --far-end machine -- curl http://machine:8080/
";

const RUN_EXAMPLES_SHORT: &str = "\
Examples:
  longhaul lab run --link geo -- ping -c 5 server
  longhaul lab run --link rate=100mbit,rtt=173ms \\
      --server 'iperf3 -s -1' -- iperf3 -c server

`longhaul lab run --help` lists the keys of --link.";

const RUN_EXIT_CODES: &str = "\
Exit code: that of CMD; 2 if a program or the lab could not start; 3 if the run
is not valid because this machine could not emulate the path.";

/// The examples, every key of a link, and the exit codes.
fn run_help() -> String {
    format!("{RUN_EXAMPLES}\n{}\n\n{RUN_EXIT_CODES}", topology::key_help())
}

/// Run a program on a client with an emulated path to a server
///
/// The lab has two hosts, `client` and `server`, whose names resolve inside it.
/// CMD runs on the client and uses the terminal; lab messages go to standard
/// error.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES_SHORT, after_long_help = run_help())]
pub(super) struct RunArgs {
    #[command(flatten)]
    pair: PairArgs,
    /// Print the result as JSON
    ///
    /// Output of CMD goes to standard error.
    #[arg(long, short = 'J')]
    json: bool,
    /// Program to run on the client, with its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const SHELL_EXAMPLES: &str = "\
Examples:
  longhaul lab shell --link transatlantic
  longhaul lab shell --link leo --server 'longhaul server'
  longhaul lab shell --link rate=5mbit,rtt=300ms,loss=1%

In the shell, `server` is the far host. From another terminal:
  longhaul lab exec server iperf3 -s
  longhaul lab set loss=5%
  longhaul lab capture client -w trace.pcapng

`longhaul lab run --help` lists the keys of --link.";

/// Open a shell on the client, behind an emulated path
#[derive(Debug, Args)]
#[command(after_help = SHELL_EXAMPLES)]
pub(super) struct ShellArgs {
    #[command(flatten)]
    pair: PairArgs,
}

/// The far end of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum End {
    /// A host of the lab
    Server,
    /// This machine
    Machine,
}

impl PairArgs {
    /// A lab with a program on the client.
    fn request(&self, command: Vec<OsString>) -> Result<LabRequest, Failure> {
        let far_end = match (self.far_end, self.nat) {
            (End::Server, false) => FarEnd::Host { server: self.server.clone() },
            (End::Server, true) => {
                return Err(Failure::usage("--nat requires --far-end machine"));
            }
            (End::Machine, false) => FarEnd::Machine,
            (End::Machine, true) => FarEnd::MachineWithNat,
        };
        let pair = PairRequest {
            link: self.link.clone(),
            congestion: self.cc.clone(),
            sysctls: self.sysctl.clone(),
            tuned: self.tuned,
            far_end,
            programs: vec![LabProgram { host: "client".to_owned(), command }],
        };
        Ok(LabRequest {
            hosts: LabHosts::Pair(pair),
            output: ProgramOutput::Inherited,
            ..self.stage.request()
        })
    }
}

pub(super) fn run(args: &RunArgs, console: &mut Console) -> Outcome {
    let output = if args.json { ProgramOutput::StandardError } else { ProgramOutput::Inherited };
    let environment = vec![(inside::LAB_RUN.to_owned(), before_command())];
    let request = LabRequest { output, environment, ..args.pair.request(args.command.clone())? };
    stage::run(&request, &mut show, |document| {
        if args.json {
            console.print(&console::json(document)?);
        }
        Ok(code(document))
    })
}

pub(super) fn shell(args: &ShellArgs) -> Outcome {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let shell = shell.unwrap_or_else(|| "/bin/sh".into());
    let request = LabRequest { changing: true, ..args.pair.request(prompted(shell))? };
    console::note(
        "lab: shell on host `client`; the far host is `server`; type exit to end the lab",
    );
    stage::run(&request, &mut show, |document| Ok(code(document)))
}

fn show(event: &LabEvent) {
    if let LabEvent::NotListening { seconds, .. } = event {
        console::note(&format!(
            "lab: the server is not listening after {seconds} s; starting the command anyway"
        ));
    }
}

/// The exit code of the command.
fn code(document: &LabDocument) -> i32 {
    let code = document.programs.last().and_then(|command| command.exit_code);
    match (code, document.why) {
        (Some(code), _) => code,
        (None, EndReason::Signal(signal)) => 128 + signal,
        (None, _) => FAILED,
    }
}

/// The shell with the place in its prompt. The start-up files of bash and zsh may set a prompt of
/// their own: bash is told to put the place before it.
fn prompted(shell: OsString) -> Vec<OsString> {
    const PLACE: &str = "(lab client)";
    let name = Path::new(&shell).file_name().unwrap_or_default().to_string_lossy();
    let (directory, end) = match name.as_ref() {
        "bash" => (" \\w", "\\$"),
        "zsh" => (" %~", "%#"),
        _ => ("", "$"),
    };
    let mut prompt_command =
        OsString::from(format!("case $PS1 in *'{PLACE}'*) ;; *) PS1=\"{PLACE} $PS1\" ;; esac"));
    if let Some(own) = std::env::var_os("PROMPT_COMMAND").filter(|own| !own.is_empty()) {
        prompt_command = [own, prompt_command].join(OsStr::new("\n"));
    }
    let set = |name: &str, value: OsString| [OsString::from(name), value].join(OsStr::new("="));
    vec![
        "/usr/bin/env".into(),
        "LONGHAUL_LAB=client".into(),
        set("PS1", format!("{PLACE}{directory} {end} ").into()),
        set("PROMPT_COMMAND", prompt_command),
        shell,
    ]
}

/// This command line up to CMD, for a shell.
fn before_command() -> String {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let words = words.take_while(|word| word != "--");
    let words = std::iter::once("longhaul".to_owned()).chain(words);
    record::command_line(words.chain(["--".to_owned()]))
}

#[cfg(test)]
mod tests {
    use super::prompted;
    use std::process::Command;

    #[test]
    fn the_prompt_begins_with_the_place_once() {
        let own =
            "PS1='mine> '; eval \"$PROMPT_COMMAND\"; eval \"$PROMPT_COMMAND\"; printf %s \"$PS1\"";
        let plain = "printf %s \"$PS1\"";
        for (shell, script, prompt) in
            [("bash", own, "(lab client) mine> "), ("sh", plain, "(lab client) $ ")]
        {
            let command = prompted(shell.into());
            let output =
                Command::new(&command[0]).args(&command[1..]).args(["-c", script]).output();
            assert_eq!(String::from_utf8_lossy(&output.unwrap().stdout), prompt, "{shell}");
        }
    }
}
