//! `longhaul lab up`: a lab from a plan or a built-in topology.

use super::stage::{self, StageArgs};
use crate::console::{self, Console};
use crate::failure::{Code, DONE, FAILED, Failure, Outcome};
use clap::Args;
use longhaul::input;
use longhaul::lab::{EndReason, LabDocument, LabEvent, LabHosts, LabRequest, Shape, ShapeKind};
use report::untrusted;
use std::path::PathBuf;
use units::Rtt;

/// Start a lab of hosts, routers, links and programs
///
/// The lab is described by a plan (TOML) or a built-in topology (--shape). Host
/// names resolve inside the lab. Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct UpArgs {
    /// Plan to run
    #[arg(value_name = "PLAN.toml", required_unless_present = "shape", conflicts_with = "shape")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Print the result as JSON
    ///
    /// Output of the programs goes to standard error.
    #[arg(long, short = 'J')]
    json: bool,
    #[command(flatten)]
    stage: StageArgs,
}

#[derive(Debug, Clone, Args)]
struct ShapeArgs {
    /// Built-in topology: pair, dumbbell, chain, star
    #[arg(long, value_name = "KIND")]
    shape: Option<ShapeKind>,
    /// Number of host pairs (dumbbell)
    #[arg(long, value_name = "N", requires = "shape")]
    pairs: Option<u32>,
    /// Number of hosts (star)
    #[arg(long, value_name = "N", requires = "shape")]
    hosts: Option<u32>,
    /// Number of routers (chain)
    #[arg(long, value_name = "N", requires = "shape")]
    routers: Option<u32>,
    /// Link shared by all pairs (dumbbell)
    #[arg(long, value_name = "PATH", requires = "shape")]
    bottleneck: Option<String>,
    /// Access link of each host (dumbbell)
    #[arg(long, value_name = "PATH", requires = "shape")]
    access: Option<String>,
    /// Each link (pair, chain, star)
    #[arg(long, value_name = "PATH", requires = "shape")]
    path: Option<String>,
    /// RTT of each pair, end to end (dumbbell)
    #[arg(long, value_name = "TIME,…", value_delimiter = ',', requires = "shape")]
    rtts: Vec<Rtt>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul lab up examples/dumbbell.toml
  longhaul lab up --shape dumbbell --pairs 2 --rtts 40ms,80ms \\
      --bottleneck rate=100mbit,rtt=20ms
  longhaul lab up --shape star --hosts 64 --path rate=100mbit,rtt=10ms
Then, from another terminal:
  longhaul lab list
  longhaul lab exec client1 ping server1
  longhaul lab set bottleneck loss=1%

A plan:
  [host.alice]
  [host.bob]
  [[link]]
  between = [\"alice\", \"bob\"]
  path = \"rate=100mbit,rtt=50ms\"
  [[run]]
  on = \"bob\"
  command = \"iperf3 -s\"
  background = true
  [[run]]
  on = \"alice\"
  command = \"iperf3 -c bob -t 5\"

Exit code: 0; 128 plus the number of the signal that ended the lab; 1 if a
program failed; 2 if the plan is invalid or the lab could not start; 3 if the
run is not valid because this machine could not emulate a link.";

pub(super) fn run(args: &UpArgs, console: &mut Console) -> Outcome {
    let request = LabRequest { hosts: hosts(args)?, ..args.stage.request() };
    let plan = request.plan()?;
    let width = plan.hosts.iter().map(|host| host.name.len()).max().unwrap_or_default();
    let has_programs = !plan.programs.is_empty();
    let mut shown = console.clone();
    let mut show = |event: &LabEvent| show(event, has_programs, width, args.json, &mut shown);
    stage::run(&request, &mut show, |document| {
        if args.json {
            console.print(&console::json(document)?);
        }
        Ok(code(document))
    })
}

fn hosts(args: &UpArgs) -> Result<LabHosts, Failure> {
    let ShapeArgs { pairs, hosts, routers, .. } = args.shape;
    let ShapeArgs { path, bottleneck, access, rtts, .. } = args.shape.clone();
    match (&args.plan, args.shape.shape) {
        (Some(path), _) => {
            let file = path.display().to_string();
            let text = input::plan(path)
                .map_err(|error| Failure::usage(format!("cannot read {file}: {error}")))?;
            Ok(LabHosts::Plan { file, text })
        }
        (None, Some(kind)) => {
            let shape = Shape { kind, path, pairs, hosts, routers, bottleneck, access, rtts };
            Ok(LabHosts::Shape(shape))
        }
        (None, None) => Err(Failure::usage("no plan given; name a plan file or use --shape")),
    }
}

fn show(event: &LabEvent, has_programs: bool, width: usize, json: bool, console: &mut Console) {
    match event {
        LabEvent::Up { name, hosts, links } => console.say(&format!(
            "lab {name}: {hosts} hosts, {links} links{}",
            if has_programs { "" } else { "; press Ctrl-C to end it" }
        )),
        LabEvent::Line { host, line } => {
            let text = format!("{host:width$} | {}", untrusted::shown(line, false));
            if json { console.say(&text) } else { console.log(&text) }
        }
        LabEvent::NotListening { host, command, seconds } => console.say(&format!(
            "lab: {host} is not listening after {seconds} s; continuing anyway: {command}"
        )),
        LabEvent::Exited { host, command, code } if *code != 0 => {
            console.say(&format!("lab: on {host}, exit code {code}: {command}"));
        }
        LabEvent::Changed { at_s, link, set } => {
            console.say(&format!("lab: {at_s} s: {link}: {set}"));
        }
        _ => {}
    }
}

/// The exit code of the lab; a failed program is reported with its last lines.
fn code(document: &LabDocument) -> Code {
    match document.why {
        EndReason::Done | EndReason::Duration => DONE,
        EndReason::Signal(signal) => 128 + signal,
        EndReason::Broken => FAILED,
        EndReason::Failed(index) => {
            if let Some(program) = document.programs.get(index) {
                let code = program.exit_code.unwrap_or_default();
                console::note(&format!(
                    "longhaul: on {}, exit code {code}: {}",
                    program.on, program.command
                ));
                for line in &program.last_lines {
                    console::note(&format!("longhaul:   {}", untrusted::shown(line, false)));
                }
            }
            FAILED
        }
    }
}
