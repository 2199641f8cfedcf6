//! `tune apply`.

use super::goal::{GoalArgs, Wanted};
use super::{Host, say};
use crate::ask;
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use clap::Args;
use host::signals;
use longhaul::tune::{self, RouteGoal};
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
  sudo longhaul tune apply --route 192.0.2.0/24 --rate 1gbit --rtt 100ms
  longhaul tune apply --rate 1gbit --rtt 100ms --yes --in-lab server

Each value is read back. Settings that cannot be changed here are skipped and
reported. Plans stack: each `longhaul tune rollback` reverts the last one.";

pub(super) fn run(args: &ApplyArgs, host: &Host<'_>, console: &mut Console) -> Outcome {
    let &Host { tuned, as_json, undo } = host;
    let goal = match args.goal.wanted()? {
        Wanted::Host(goal) => goal,
        Wanted::Route(goal) => return apply_route(&goal, args, host, console),
    };
    let plan = tune::plan(&goal)?;
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

fn apply_route(
    goal: &RouteGoal,
    args: &ApplyArgs,
    host: &Host<'_>,
    console: &mut Console,
) -> Outcome {
    let &Host { tuned, as_json, undo } = host;
    if args.persist {
        return Err(Failure::usage(
            "routes are set at each boot by the program that configures the network, such as \
             systemd-networkd or NetworkManager: set the metrics there, or omit --persist",
        ));
    }
    let undo = undo.replacen("rollback", &format!("rollback --route {}", goal.route), 1);
    let plan = tune::plan_route(goal)?;
    if !as_json {
        console.print(&terminal::tune_route_plan(&plan, &console.out));
        console.print("\n");
    }
    // Before the question: it may not be possible at all.
    let mut done = tuned.dry_run_route(&plan)?;
    if !args.dry_run {
        if !args.yes && !done.routes.is_empty() && !asked("Apply this plan?")? {
            console.say("nothing was changed");
            return Ok(FAILED);
        }
        signals::block();
        done = tuned.apply_route(&plan, &mut |event| say(&event, console))?;
    }
    let text = match as_json {
        true => console::json(&done)?,
        false => terminal::tune_route_applied(&done, &undo, &console.out),
    };
    console.print(&text);
    let short = done.routes.iter().any(|one| one.outcome == record::Outcome::Skipped);
    Ok(if short { FAILED } else { DONE })
}

/// Asks a yes/no question.
pub(super) fn asked(question: &str) -> Result<bool, Failure> {
    ask::yes(question, "--yes")
}
