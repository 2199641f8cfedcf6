//! `tune rollback` and `tune status`.

use super::apply::asked;
use super::{Host, say};
use crate::ask;
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Outcome};
use clap::Args;
use host::signals;
use longhaul::tune::{Decision, Foreign};
use record::{RevertOutcome, RoutePrefix, TuneStatus};
use report::terminal;
use std::path::Path;

/// Restore the values from before the last apply
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RollbackArgs {
    /// Do not ask; skip values changed by others
    #[arg(long, short)]
    yes: bool,
    /// Overwrite values that others have since changed
    #[arg(long, requires = "yes")]
    force: bool,
    /// Revert every apply, latest first
    #[arg(long)]
    all: bool,
    /// Revert only metrics of the route to PREFIX
    #[arg(long, value_name = "PREFIX")]
    route: Option<RoutePrefix>,
}

const EXAMPLES: &str = "\
Examples:
  sudo longhaul tune rollback
  sudo longhaul tune rollback --yes --all
  sudo longhaul tune rollback --yes --force
  sudo longhaul tune rollback --yes --route 192.0.2.0/24
  longhaul tune rollback --yes --in-lab server

Also works after a killed apply or a power failure. Exit code 1 if a value was
skipped because someone else has changed it.";

/// Show applied plans, their age, and values that differ now
#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub(super) struct StatusArgs {
    /// Show only metrics of the route to PREFIX
    #[arg(long, value_name = "PREFIX")]
    route: Option<RoutePrefix>,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  sudo longhaul tune status
  sudo longhaul tune status --json | jq '.applied[].settings[].standing'";

pub(super) fn run(args: &RollbackArgs, host: &Host<'_>, console: &mut Console) -> Outcome {
    let &Host { tuned, as_json, .. } = host;
    let status = tuned.status()?;
    say_where(&status, tuned.journals(), console);
    let status = of_route(status, args.route, console);
    if !args.yes && !status.applied.is_empty() {
        console.say(&terminal::tune_status(&status, &console.err));
        let question = match (args.all, status.applied.len()) {
            (true, many) if many > 1 => format!("Revert all {many}?"),
            (false, many) if many > 1 => "Revert the last one?".to_owned(),
            _ => "Revert it?".to_owned(),
        };
        if !asked(&question)? {
            console.say("nothing was changed");
            return Ok(FAILED);
        }
    }
    if args.yes {
        signals::block();
    }
    let mut decide = |foreign: &Foreign<'_>| match (args.force, args.yes) {
        (true, _) => Decision::Overwrite,
        (false, true) => Decision::Keep,
        (false, false) => ask_about(foreign),
    };
    let done =
        tuned.rollback(args.route, args.all, &mut |event| say(&event, console), &mut decide)?;
    let text = if as_json {
        console::json(&done)?
    } else {
        terminal::tune_rolled_back(&done, &console.out)
    };
    console.print(&text);
    let kept = |state| matches!(state, RevertOutcome::Failed | RevertOutcome::Left);
    let settings = done.settings.iter().map(|one| (one.state, &one.note));
    let routes = done.routes.iter().map(|one| (one.state, &one.note));
    let unfinished = settings.chain(routes).any(|(state, note)| kept(state) && !note.is_empty());
    Ok(if unfinished { FAILED } else { DONE })
}

/// Root and other users have different directories.
fn say_where(status: &TuneStatus, journals: &Path, console: &mut Console) {
    if status.applied.is_empty() {
        let folder = journals.display();
        console.say(&format!("no journals in {folder}; each user has a separate directory"));
    }
}

fn ask_about(foreign: &Foreign<'_>) -> Decision {
    let Foreign { key, now, set, before } = foreign;
    let what = match (now, set, before) {
        (Some(now), Some(set), Some(before)) => {
            format!("{key} is {now}: changed by someone else (set to {set}, before that {before}).")
        }
        _ => format!("{key} was changed by someone else."),
    };
    let question = format!("{what}\n[o]verwrite it with the previous value, or [l]eave it? ");
    match ask::letter(&question, "--yes").as_deref() {
        Ok("o" | "O") => Decision::Overwrite,
        Ok("l" | "L") => Decision::Accept,
        _ => Decision::Keep,
    }
}

/// The status without plans that are not for the route to a prefix, if there is one.
fn of_route(
    mut status: TuneStatus,
    route: Option<RoutePrefix>,
    console: &mut Console,
) -> TuneStatus {
    let Some(prefix) = route else { return status };
    let routes = status.applied.iter().flat_map(|plan| &plan.routes);
    let prefixes: Vec<String> = routes.map(|one| one.prefix.to_string()).collect();
    let applied = !status.applied.is_empty();
    status.applied.retain(|plan| plan.routes.iter().any(|one| one.prefix == prefix));
    if applied && status.applied.is_empty() {
        let others = match prefixes.is_empty() {
            true => "no route".to_owned(),
            false => prefixes.join(", "),
        };
        console.say(&format!("no plan for {prefix} is applied; plans are for {others}"));
    }
    status
}

pub(super) fn status(args: &StatusArgs, host: &Host<'_>, console: &mut Console) -> Outcome {
    let &Host { tuned, as_json, .. } = host;
    let status = tuned.status()?;
    say_where(&status, tuned.journals(), console);
    let status = of_route(status, args.route, console);
    let text = if as_json {
        console::json(&status)?
    } else {
        terminal::tune_status(&status, &console.out)
    };
    console.print(&text);
    Ok(DONE)
}
