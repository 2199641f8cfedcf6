//! `longhaul lab up`: a lab from a plan or a built-in topology.

use super::document::LabDocument;
use super::stage::{self, Stage, StageArgs};
use crate::console::{self, Console};
use crate::failure::{Code, DONE, FAILED, Failure, Outcome};
use crate::{input, inside};
use clap::Args;
use lab::{EndReason, Job, Session, SessionEnd, SessionEvent, Streams};
use report::untrusted;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use topology::plan::ProgramPlan;
use topology::{Plan, Shape, ShapeKind};
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
    let plan = plan(args)?;
    inside::sandbox(|| run_inside(&plan, args, console))
}

fn plan(args: &UpArgs) -> Result<Plan, Failure> {
    let plan = match (&args.plan, args.shape.shape) {
        (Some(path), _) => {
            let file = path.display().to_string();
            let text = input::text(path, input::PLAN)
                .map_err(|error| Failure::usage(format!("cannot read {file}: {error}")))?;
            Plan::parse(&file, &text, &mut input::of_a_path)
        }
        (None, Some(kind)) => {
            let ShapeArgs { pairs, hosts, routers, .. } = args.shape;
            let ShapeArgs { path, bottleneck, access, rtts, .. } = args.shape.clone();
            let shape = Shape { kind, path, pairs, hosts, routers, bottleneck, access, rtts };
            Plan::from_shape(&shape, &mut input::of_a_path)
        }
        (None, None) => {
            return Err(Failure::usage("no plan given; name a plan file or use --shape"));
        }
    };
    plan.map_err(Failure::usage)
}

fn job(plan: &Plan, program: &ProgramPlan) -> Job {
    Job {
        host: plan.hosts[program.host].name.clone(),
        arguments: ["/bin/sh", "-c", &program.command].map(OsString::from).into(),
        words: program.command.clone(),
        background: program.background,
        wait: program.wait,
        start: program.start,
        stop: program.stop,
        streams: Streams::Lines,
    }
}

fn run_inside(plan: &Plan, args: &UpArgs, console: &mut Console) -> Outcome {
    // Without programs to wait for, the lab is there for commands from outside.
    let changing = plan.programs.iter().all(|program| program.background);
    let stage = Stage::build(plan, &args.stage, None, changing)?;
    console.say(&format!(
        "lab {}: {} hosts, {} links{}",
        stage.name,
        plan.hosts.len(),
        plan.links.len(),
        if plan.programs.is_empty() { "; press Ctrl-C to end it" } else { "" }
    ));
    let session = Session {
        jobs: plan.programs.iter().map(|program| job(plan, program)).collect(),
        changes: plan.changes.clone(),
        duration: plan.duration,
    };
    let jobs = session.jobs.clone();
    let wide = plan.hosts.iter().map(|host| host.name.len()).max().unwrap_or_default();
    let mut show = |event: SessionEvent<'_>| show(&event, plan, wide, args.json, console);
    let ended = session.run(&stage.lab, &stage.reaper, &stage.end_signal, &mut show);
    let ended = ended.map_err(super::run::start_failure)?;
    let report = stage.finish(&args.stage)?;
    if args.json {
        console.print(&console::json(&LabDocument::new(plan, &jobs, &ended, &report))?);
    }
    let code = outcome(&jobs, &ended);
    Ok(stage::conclude(&report, code))
}

fn show(event: &SessionEvent<'_>, plan: &Plan, wide: usize, json: bool, console: &mut Console) {
    match event {
        SessionEvent::Line(job, line) => {
            let text = format!("{:wide$} | {}", job.host, untrusted::shown(line, false));
            if json { console.say(&text) } else { console.log(&text) }
        }
        SessionEvent::NotListening(job, timeout) => console.say(&format!(
            "lab: {} is not listening after {} s; continuing anyway: {}",
            job.host,
            timeout.as_secs(),
            job.words
        )),
        SessionEvent::Ended(job, code) if *code != 0 => {
            console.say(&format!("lab: on {}, exit code {code}: {}", job.host, job.words));
        }
        SessionEvent::Changed(change) => {
            let link = &plan.links[change.link].name;
            console.say(&format!("lab: {} s: {link}: {}", seconds(change.at), change.set));
        }
        SessionEvent::Begun | SessionEvent::Started(_) | SessionEvent::Ended(..) => {}
    }
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// The exit code of the lab; a failed program is reported with its last lines.
fn outcome(jobs: &[Job], ended: &SessionEnd) -> Code {
    match ended.why {
        EndReason::Done | EndReason::Duration => DONE,
        EndReason::Signal(signal) => 128 + signal,
        EndReason::Broken => FAILED,
        EndReason::Failed(index) => {
            if let (Some(job), Some(end)) =
                (jobs.get(index), ended.ends.get(index).and_then(Option::as_ref))
            {
                let code = end.code.unwrap_or_default();
                console::note(&format!(
                    "longhaul: on {}, exit code {code}: {}",
                    job.host, job.words
                ));
                for line in &end.last_lines {
                    console::note(&format!("longhaul:   {}", untrusted::shown(line, false)));
                }
            }
            FAILED
        }
    }
}
