//! `longhaul tune`: plans, applies and reverts this host's settings for a long path.

mod apply;
mod goal;
mod in_lab;
mod rollback;
mod state;
mod verify;

use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use clap::{Args, Subcommand};
use goal::GoalArgs;
use host::{clock, identity};
use record::TunePlan;
use report::terminal;
use serde::Serialize;
use state::State;
use std::path::{Path, PathBuf};
use tune::{HostDisk, Identity, Lock, PERSISTED, ThisHost, Tuner};
use units::ByteCount;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TuneArgs {
    #[command(subcommand)]
    what: What,
    /// Run on a host of a running lab instead
    #[arg(long, global = true, value_name = "[LAB:]HOST")]
    in_lab: Option<String>,
    /// Print JSON instead
    #[arg(long, short = 'J', global = true)]
    json: bool,
    /// Directory of journals (internal)
    #[arg(long, global = true, hide = true)]
    journals: Option<PathBuf>,
}

impl TuneArgs {
    /// Splits `HOST:PORT`, and reads the token.
    pub(crate) fn prepare(&mut self, console: &mut Console) -> Result<(), Failure> {
        match &mut self.what {
            What::Verify(verify) => verify.prepare(console),
            _ => Ok(()),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  longhaul tune plan --rate 10gbit --rtt 200ms       print, change nothing
  longhaul tune plan --profile data-transfer-node-10g
  sudo longhaul tune apply --rate 10gbit --rtt 200ms --yes
  sudo longhaul tune verify --to HOST --rate 1gbit   measure each step
  sudo longhaul tune status
  sudo longhaul tune rollback --yes                  restore previous values

The previous values are written to a journal before any value is changed. For
root it is below /var/lib/longhaul, or below LONGHAUL_STATE_DIR if only root
can write to every directory of its path; for other users it is below
LONGHAUL_STATE_DIR, XDG_STATE_HOME/longhaul or ~/.local/state/longhaul.";

#[derive(Debug, Subcommand)]
enum What {
    Plan(PlanArgs),
    Apply(apply::ApplyArgs),
    Rollback(rollback::RollbackArgs),
    Status(rollback::StatusArgs),
    Verify(verify::VerifyArgs),
}

/// Print the settings to change as a diff, with reasons and risks
#[derive(Debug, Args)]
#[command(after_help = PLAN_EXAMPLES)]
struct PlanArgs {
    #[command(flatten)]
    goal: GoalArgs,
}

const PLAN_EXAMPLES: &str = "\
Examples:
  longhaul tune plan --rate 10gbit --rtt 200ms
  longhaul tune plan --rate 100gbit --rtt 100ms --streams 8
  longhaul tune plan --profile server --congestion bbr --json
  longhaul tune plan --rate 1gbit --rtt 100ms --in-lab server

Needs no privileges and changes nothing.";

pub(crate) fn run(args: &TuneArgs, console: &mut Console) -> Outcome {
    if let Some(place) = &args.in_lab {
        let persist = matches!(&args.what, What::Apply(apply) if apply.persist);
        return in_lab::run(place, persist);
    }
    // In a lab, --journals names the directory.
    let undo = match &args.journals {
        Some(_) => "longhaul tune rollback, with the same --in-lab",
        None => "longhaul tune rollback",
    };
    if let What::Plan(PlanArgs { goal }) = &args.what {
        let plan = advise(goal)?;
        let text = if args.json { json(&plan)? } else { terminal::tune_plan(&plan, &console.out) };
        console.print(&text);
        return Ok(DONE);
    }
    let (disk, earlier) = match &args.journals {
        Some(path) => {
            let State { directory, trust, .. } = State::at(path)?;
            (HostDisk { journals: directory, trust }, Vec::new())
        }
        None => {
            let state = State::find()?;
            let earlier = state.earlier();
            (state.journals(), earlier)
        }
    };
    let tuner = tuner(&disk);
    state::adopt(&tuner, &disk, &earlier, console)?;
    let host = Host { tuner: &tuner, disk: &disk, as_json: args.json, undo };
    match &args.what {
        What::Plan(_) => Ok(DONE),
        What::Apply(apply) => apply::run(apply, &host, console),
        What::Verify(verify) => verify::run(verify, &host, console),
        What::Rollback(rollback) => rollback::run(rollback, &host, console),
        What::Status(_) => rollback::status(&host, console),
    }
}

/// Where the journals of this host are, for an agent.
pub(crate) fn journals() -> Result<HostDisk, Failure> {
    State::find().map(State::journals)
}

/// The host that the subcommands work on, and the output format.
struct Host<'a> {
    tuner: &'a Tuner<'a>,
    disk: &'a HostDisk,
    as_json: bool,
    /// The command that reverts it.
    undo: &'a str,
}

impl Host<'_> {
    /// Locks the journals, and sets those aside whose network namespace is gone.
    fn lock(&self, console: &mut Console) -> Result<Lock, Failure> {
        let lock = Lock::take(&self.disk.journals, self.disk.trust).map_err(apply::locked)?;
        let gone = self.tuner.set_aside_gone(&lock, identity::network_namespace_exists);
        for path in gone.map_err(apply::unfit)? {
            console.say(&format!(
                "a network namespace that was tuned is gone, as that of an ended lab: its journal is \
                 now {}",
                path.display()
            ));
        }
        Ok(lock)
    }
}

/// The plan for a goal, from the settings of this network namespace.
fn advise(args: &GoalArgs) -> Result<TunePlan, Failure> {
    let memory = identity::memory_bytes().map(ByteCount::from_bytes);
    tune::advise(&ThisHost, &args.goal()?, args.congestion(), memory).map_err(Failure::usage)
}

fn tuner(disk: &HostDisk) -> Tuner<'_> {
    Tuner {
        settings: &ThisHost,
        disk,
        folder: &disk.journals,
        persisted: Path::new(PERSISTED),
        here: Identity::here(),
        now_s: clock::unix_seconds(),
    }
}

fn json(document: &impl Serialize) -> Result<String, Failure> {
    console::json(document)
}
