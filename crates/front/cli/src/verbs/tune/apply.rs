//! `tune apply`.

use super::goal::GoalArgs;
use super::{Host, say};
use crate::ask;
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use clap::Args;
use host::signals;
use longhaul::tune;
use record::TunePlan;
use report::terminal;

/// Apply a plan to this host, after journaling the previous values
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ApplyArgs {
    #[command(flatten)]
    goal: GoalArgs,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    /// Also apply at each boot
    ///
    /// Writes /etc/sysctl.d/90-longhaul.conf.
    #[arg(long)]
    pub(super) persist: bool,
    /// Print what would be set; change nothing
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  sudo longhaul tune apply --rate 10gbit --rtt 200ms
  sudo longhaul tune apply --profile data-transfer-node-40g --yes --persist
  longhaul tune apply --rate 1gbit --rtt 100ms --dry-run
  longhaul tune apply --rate 1gbit --rtt 100ms --yes --in-lab server

Each value is read back. Settings that cannot be changed here are skipped and
reported. Plans stack: each `longhaul tune rollback` reverts the last one.";

pub(super) fn run(args: &ApplyArgs, host: &Host<'_>, console: &mut Console) -> Outcome {
    let &Host { tuned, as_json, undo } = host;
    let plan = tune::plan(&args.goal.goal()?)?;
    if !as_json {
        // The settings that it leaves alone are for `tune plan`.
        let changes = TunePlan { unchanged: Vec::new(), ..plan.clone() };
        console.print(&terminal::tune_plan(&changes, &console.out));
        console.print("\n");
    }
    // Before the question: it may not be possible at all.
    let mut done = tuned.dry_run(&plan, args.persist)?;
    if !args.dry_run {
        let idle = plan.settings.is_empty() && !args.persist;
        if !args.yes && !idle && !asked("Apply this plan?")? {
            console.say("nothing was changed");
            return Ok(FAILED);
        }
        // Not interruptible: it is short, and half a plan is useless.
        signals::block();
        done = tuned.apply(&plan, args.persist, &mut |event| say(&event, console))?;
    }
    let text = if as_json {
        console::json(&done)?
    } else {
        terminal::tune_applied(&done, undo, &console.out)
    };
    console.print(&text);
    let short = done.settings.iter().all(|one| one.outcome == record::Outcome::Skipped);
    let unkept = args.persist && done.persisted.is_none() && done.journal.is_some();
    Ok(if short && !done.settings.is_empty() || unkept { FAILED } else { DONE })
}

/// Asks a yes/no question.
pub(super) fn asked(question: &str) -> Result<bool, Failure> {
    ask::yes(question, "--yes")
}
