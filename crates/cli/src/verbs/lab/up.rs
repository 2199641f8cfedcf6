//! `longhaul lab up`: many hosts, out of a plan or a shape.

use super::stage::{self, Stage, StageArgs};
use crate::console::Console;
use crate::failure::{Code, DONE, FAILED, Failure, Outcome};
use crate::inside;
use clap::Args;
use lab::{Job, LabReport, Session, SessionEnd, SessionEvent, Streams, Why};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use topology::plan::ProgramPlan;
use topology::{Plan, Shape, ShapeKind};
use units::Rtt;

/// Bring up hosts, routers, links and programs
///
/// What to build is a plan in TOML, or one of the built-in shapes. Hosts find
/// each other by name. Ctrl-C takes everything down again.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct UpArgs {
    /// The plan
    #[arg(value_name = "PLAN.toml", required_unless_present = "shape", conflicts_with = "shape")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Print how it went as JSON; what the programs write goes to standard error then
    #[arg(long, short = 'J')]
    json: bool,
    #[command(flatten)]
    stage: StageArgs,
}

#[derive(Debug, Clone, Args)]
struct ShapeArgs {
    /// A built-in topology: pair, dumbbell, chain, star
    #[arg(long, value_name = "KIND")]
    shape: Option<ShapeKind>,
    /// Pairs of a dumbbell
    #[arg(long, value_name = "N", requires = "shape")]
    pairs: Option<u32>,
    /// Hosts of a star
    #[arg(long, value_name = "N", requires = "shape")]
    hosts: Option<u32>,
    /// Routers of a chain
    #[arg(long, value_name = "N", requires = "shape")]
    routers: Option<u32>,
    /// The link that a dumbbell's pairs share
    #[arg(long, value_name = "PATH", requires = "shape")]
    bottleneck: Option<String>,
    /// The hosts' own links of a dumbbell
    #[arg(long, value_name = "PATH", requires = "shape")]
    access: Option<String>,
    /// The link of a pair, each link of a chain or a star
    #[arg(long, value_name = "PATH", requires = "shape")]
    path: Option<String>,
    /// Round trip of each pair of a dumbbell, from host to host
    #[arg(long, value_name = "TIME,…", value_delimiter = ',', requires = "shape")]
    rtts: Vec<Rtt>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul lab up examples/dumbbell.toml
  longhaul lab up --shape dumbbell --pairs 4 --bottleneck rate=100mbit,rtt=20ms --rtts 10ms,40ms,80ms,160ms
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

Exit code: 0, or 128 and the signal that ended it; 1 where a program failed; 2 where the plan is wrong or the lab could not start;
3 where the machine could not carry a link.";

pub(super) fn run(args: &UpArgs, console: &mut Console) -> Outcome {
    let plan = plan(args)?;
    inside::a_world(|| run_inside(&plan, args, console))
}

fn plan(args: &UpArgs) -> Result<Plan, Failure> {
    let mut read = |file: &str| std::fs::read_to_string(file);
    let plan = match (&args.plan, args.shape.shape) {
        (Some(path), _) => {
            let file = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("cannot read {file}: {error}")))?;
            Plan::parse(&file, &text, &mut read)
        }
        (None, Some(kind)) => {
            let ShapeArgs { pairs, hosts, routers, .. } = args.shape;
            let ShapeArgs { path, bottleneck, access, rtts, .. } = args.shape.clone();
            let shape = Shape { kind, path, pairs, hosts, routers, bottleneck, access, rtts };
            Plan::from_shape(&shape, &mut read)
        }
        (None, None) => return Err(Failure::usage("give a plan or a --shape")),
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
    let stage = Stage::build(plan, &args.stage, None)?;
    console.say(&format!(
        "lab {}: {} hosts, {} links{}",
        stage.name,
        plan.hosts.len(),
        plan.links.len(),
        if plan.programs.is_empty() { "; Ctrl-C takes it down" } else { "" }
    ));
    let session = Session {
        jobs: plan.programs.iter().map(|program| job(plan, program)).collect(),
        changes: plan.changes.clone(),
        duration: plan.duration,
    };
    let jobs = session.jobs.clone();
    let wide = plan.hosts.iter().map(|host| host.name.len()).max().unwrap_or_default();
    let mut show = |event: SessionEvent<'_>| show(&event, plan, wide, args.json, console);
    let ended = session.run(&stage.lab, &stage.reaper, &stage.ending, &mut show);
    let ended = ended.map_err(super::run::start_failure)?;
    let report = stage.finish(&args.stage)?;
    if args.json {
        let json = serde_json::to_string_pretty(&document(plan, &jobs, &ended, &report));
        console.print(&(json.map_err(Failure::work)? + "\n"));
    }
    let code = outcome(&jobs, &ended);
    Ok(stage::conclude(&report, code))
}

fn show(event: &SessionEvent<'_>, plan: &Plan, wide: usize, json: bool, console: &mut Console) {
    match event {
        SessionEvent::Line(job, line) => {
            let text = format!("{:wide$} | {}", job.host, printable(line));
            if json { console.say(&text) } else { console.log(&text) }
        }
        SessionEvent::NotListening(job, patience) => console.say(&format!(
            "lab: {} does not listen after {} s; going on all the same: {}",
            job.host,
            patience.as_secs(),
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

/// A foreign program's line, without what would move the cursor.
fn printable(line: &str) -> String {
    line.chars().filter(|c| *c == '\t' || !c.is_control()).collect()
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// A program that failed is told with its last lines; the lab's exit code says so.
fn outcome(jobs: &[Job], ended: &SessionEnd) -> Code {
    match ended.why {
        Why::Done | Why::Duration => DONE,
        Why::Signal(signal) => 128 + signal,
        Why::Broken => FAILED,
        Why::Failed(index) => {
            if let (Some(job), Some(end)) =
                (jobs.get(index), ended.ends.get(index).and_then(Option::as_ref))
            {
                let code = end.code.unwrap_or_default();
                eprintln!("longhaul: on {}, exit code {code}: {}", job.host, job.words);
                for line in &end.last_lines {
                    eprintln!("longhaul:   {}", printable(line));
                }
            }
            FAILED
        }
    }
}

fn document(
    plan: &Plan,
    jobs: &[Job],
    ended: &SessionEnd,
    report: &LabReport,
) -> serde_json::Value {
    let programs: serde_json::Value = jobs
        .iter()
        .zip(&ended.ends)
        .map(|(job, end)| {
            serde_json::json!({
                "on": job.host,
                "command": job.words,
                "started": end.is_some(),
                "exit_code": end.as_ref().and_then(|end| end.code),
                "stopped": end.as_ref().is_some_and(|end| end.told),
                "last_lines": end.as_ref().map(|end| end.last_lines.clone()).unwrap_or_default(),
            })
        })
        .collect();
    serde_json::json!({
        "schema": "longhaul.lab/1",
        "name": plan.name,
        "valid": report.links.iter().all(|link| link.path.valid),
        "hosts": plan.hosts.iter().map(|host| host.name.clone()).collect::<Vec<_>>(),
        "links": stage::links_json(&report.links),
        "programs": programs,
    })
}
