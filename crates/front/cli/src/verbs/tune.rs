//! `longhaul tune`: plans, applies and reverts this host's settings for a long path.

mod apply;
mod goal;
mod rollback;
mod verify;

use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use crate::verbs::in_lab;
use clap::{Args, Subcommand};
use goal::{GoalArgs, Wanted};
use longhaul::tune::{self, TuneEvent, TunedHost};
use report::terminal;
use std::path::PathBuf;

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
  longhaul tune plan --route 192.0.2.0/24 --rate 1gbit --rtt 100ms --loss 0.1%
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
  longhaul tune plan --route 192.0.2.0/24 --rate 1gbit --rtt 100ms
  longhaul tune plan --route 2001:db8::/32 --rate 1gbit --rtt 100ms --congestion bbr

With --route, programs need not be changed, and traffic to other destinations
is not affected. Needs no privileges and changes nothing.";

pub(crate) fn run(args: &TuneArgs, console: &mut Console) -> Outcome {
    if let Some(place) = &args.in_lab {
        return run_in_lab(place, args);
    }
    // In a lab, --journals names the directory.
    let undo = match &args.journals {
        Some(_) => "longhaul tune rollback, with the same --in-lab",
        None => "longhaul tune rollback",
    };
    if let What::Plan(PlanArgs { goal }) = &args.what {
        return plan(goal, args.json, console);
    }
    let tuned = match &args.journals {
        Some(path) => TunedHost::at(path)?,
        None => TunedHost::find(&mut |event| say(&event, console))?,
    };
    let host = Host { tuned: &tuned, as_json: args.json, undo };
    match &args.what {
        What::Plan(_) => Ok(DONE),
        What::Apply(apply) => apply::run(apply, &host, console),
        What::Verify(verify) => verify::run(verify, &host, console),
        What::Rollback(rollback) => rollback::run(rollback, &host, console),
        What::Status(status) => rollback::status(status, &host, console),
    }
}

fn plan(goal: &GoalArgs, as_json: bool, console: &mut Console) -> Outcome {
    let text = match goal.wanted()? {
        Wanted::Host(goal) => {
            let plan = tune::plan(&goal)?;
            match as_json {
                true => console::json(&plan)?,
                false => terminal::tune_plan(&plan, &console.out),
            }
        }
        Wanted::Route(goal) => {
            let plan = tune::plan_route(&goal)?;
            match as_json {
                true => console::json(&plan)?,
                false => terminal::tune_route_plan(&plan, &console.out),
            }
        }
    };
    console.print(&text);
    Ok(DONE)
}

/// Runs this command on a host, given as `HOST` or `LAB:HOST`, with its own directory of journals.
fn run_in_lab(place: &str, args: &TuneArgs) -> Outcome {
    if matches!(&args.what, What::Apply(apply) if apply.persist) {
        return Err(Failure::usage(
            "a lab host never boots, and the file would affect this machine: omit --persist",
        ));
    }
    let place = in_lab::find(place)?;
    let journals = tune::lab_journals(place.process, &place.host)?;
    in_lab::run(&place, &["--journals".into(), journals.into_os_string()])
}

/// The host that the subcommands work on, and the output format.
struct Host<'a> {
    tuned: &'a TunedHost,
    as_json: bool,
    /// The command that reverts it.
    undo: &'a str,
}

/// Prints a message about journals.
fn say(event: &TuneEvent, console: &mut Console) {
    let text = match event {
        TuneEvent::JournalMoved { from, to } => {
            format!("moved the journal {} to {}", from.display(), to.display())
        }
        TuneEvent::JournalIgnored { path, why } => {
            format!("ignored {}: {why}; check it by hand, then remove it", path.display())
        }
        TuneEvent::NamespaceGone { journal } => format!(
            "a tuned network namespace no longer exists, for example that of an ended lab: its \
             journal is now {}",
            journal.display()
        ),
        TuneEvent::Verify(_) => return,
    };
    console.say(&text);
}
