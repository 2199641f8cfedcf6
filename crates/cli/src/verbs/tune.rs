//! `longhaul tune`: this host's settings for a long path, with a way back.

mod apply;
mod goal;
mod in_lab;
mod rollback;
mod state;
mod verify;

use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use clap::{Args, Subcommand};
use goal::GoalArgs;
use host::{clock, identity};
use record::TunePlan;
use report::terminal;
use serde::Serialize;
use std::path::{Path, PathBuf};
use tune::{Identity, Ledger, PERSISTED, ThisHost};
use units::ByteCount;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TuneArgs {
    #[command(subcommand)]
    what: What,
    /// On a host of a running lab instead of this machine
    #[arg(long, global = true, value_name = "[LAB:]HOST")]
    in_lab: Option<String>,
    /// Print JSON instead
    #[arg(long, short = 'J', global = true)]
    json: bool,
    /// The folder of journals, where it is not to be looked for
    #[arg(long, global = true, hide = true)]
    journals: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul tune plan --rate 10gbit --rtt 200ms       what this host lacks for it; changes nothing
  longhaul tune plan --profile data-transfer-node-10g
  sudo longhaul tune apply --rate 10gbit --rtt 200ms --yes
  sudo longhaul tune verify --to server --rate 1gbit     in steps, each measured
  sudo longhaul tune status
  sudo longhaul tune rollback --yes                  everything as it was before

What was before is written to a journal before the first value is: below LONGHAUL_STATE_DIR,
else XDG_STATE_HOME/longhaul, else ~/.local/state/longhaul of the user who applies.";

#[derive(Debug, Subcommand)]
enum What {
    Plan(PlanArgs),
    Apply(apply::ApplyArgs),
    Rollback(rollback::RollbackArgs),
    Status(rollback::StatusArgs),
    Verify(verify::VerifyArgs),
}

/// Show what this host needs, as a diff with reasons, memory and risks
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
    let journals = || match &args.journals {
        Some(folder) => Ok(folder.clone()),
        None => state::folder().map(|folder| folder.join("tune")),
    };
    // Inside a lab we were told where the journals are.
    let undo = match &args.journals {
        Some(_) => "longhaul tune rollback, with the same --in-lab",
        None => "longhaul tune rollback",
    };
    match &args.what {
        What::Plan(PlanArgs { goal }) => {
            let plan = advise(goal)?;
            let text =
                if args.json { json(&plan)? } else { terminal::tune_plan(&plan, &console.out) };
            console.print(&text);
            Ok(DONE)
        }
        What::Apply(apply) => apply::run(apply, &journals()?, args.json, undo, console),
        What::Verify(verify) => verify::run(verify, &journals()?, args.json, undo, console),
        What::Rollback(rollback) => rollback::run(rollback, &journals()?, args.json, console),
        What::Status(_) => rollback::status(&journals()?, args.json, console),
    }
}

/// The plan for a goal, from the settings of this network namespace.
fn advise(args: &GoalArgs) -> Result<TunePlan, Failure> {
    let memory = identity::memory_bytes().map(ByteCount::from_bytes);
    tune::advise(&ThisHost, &args.goal()?, args.congestion(), memory).map_err(Failure::usage)
}

fn ledger(journals: &Path) -> Ledger<'_> {
    Ledger {
        settings: &ThisHost,
        disk: &ThisHost,
        folder: journals,
        persisted: Path::new(PERSISTED),
        here: Identity::here(),
        now_s: clock::unix_seconds(),
    }
}

fn json(document: &impl Serialize) -> Result<String, Failure> {
    Ok(serde_json::to_string_pretty(document).map_err(Failure::work)? + "\n")
}
