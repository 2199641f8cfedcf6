//! `tune rollback` and `tune status`.

use super::apply::{answer, asked, failed, locked, unfit};
use super::{json, ledger};
use crate::console::Console;
use crate::failure::{DONE, FAILED, Outcome};
use clap::Args;
use host::signals;
use record::{State, TuneStatus};
use report::terminal;
use std::path::Path;
use tune::{Decision, Foreign, Lock};

/// Put everything back as it was before the last apply
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RollbackArgs {
    /// Do not ask; what someone else has changed since is left, and said
    #[arg(long, short)]
    yes: bool,
    /// Overwrite what someone else has changed since
    #[arg(long, requires = "yes")]
    force: bool,
    /// Undo every apply, the last first
    #[arg(long)]
    all: bool,
}

const EXAMPLES: &str = "\
Examples:
  sudo longhaul tune rollback
  sudo longhaul tune rollback --yes --all
  sudo longhaul tune rollback --yes --force
  longhaul tune rollback --yes --in-lab server

Works as well after an apply that was killed, or a machine that lost power. Exit code 1
where a value was left because someone else has changed it.";

/// Show what is applied, since when, and what differs now
#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub(super) struct StatusArgs {}

const STATUS_EXAMPLES: &str = "\
Examples:
  sudo longhaul tune status
  sudo longhaul tune status --json | jq '.applied[].settings[] | select(.standing != \"as-set\")'";

pub(super) fn run(
    args: &RollbackArgs,
    journals: &Path,
    as_json: bool,
    console: &mut Console,
) -> Outcome {
    let ledger = ledger(journals);
    let status = ledger.status().map_err(unfit)?;
    say_where(&status, journals, console);
    if !args.yes && !status.applied.is_empty() {
        console.say(&terminal::tune_status(&status, &console.err));
        let question = match (args.all, status.applied.len()) {
            (true, many) if many > 1 => format!("Undo all {many}?"),
            (false, many) if many > 1 => "Undo the last of them?".to_owned(),
            _ => "Undo it?".to_owned(),
        };
        if !asked(&question)? {
            console.say("nothing was changed");
            return Ok(FAILED);
        }
    }
    let lock = Lock::take(journals).map_err(locked)?;
    if args.yes {
        signals::block();
    }
    let done = ledger.undo(&lock, args.all, &mut |foreign| match (args.force, args.yes) {
        (true, _) => Decision::Overwrite,
        (false, true) => Decision::Keep,
        (false, false) => decide(foreign),
    });
    let done = done.map_err(failed)?;
    let text = if as_json { json(&done)? } else { terminal::untuned(&done, &console.out) };
    console.print(&text);
    let kept = |state| matches!(state, State::Failed | State::Left);
    let unfinished = done.settings.iter().any(|one| kept(one.state) && !one.note.is_empty());
    Ok(if unfinished { FAILED } else { DONE })
}

/// With sudo, or without, it is another user's home that is looked at.
fn say_where(status: &TuneStatus, journals: &Path, console: &mut Console) {
    if status.applied.is_empty() {
        let folder = journals.display();
        console.say(&format!("no journals in {folder}; another user's are in another folder"));
    }
}

fn decide(foreign: &Foreign<'_>) -> Decision {
    let Foreign { key, now, set, before } = foreign;
    let what = match (now, set, before) {
        (Some(now), Some(set), Some(before)) => {
            format!(
                "{key} is {now}: someone else has set it since ({set} was set, {before} before)."
            )
        }
        _ => format!("{key} has been changed by someone else since."),
    };
    let question = format!("{what}\n[o]verwrite it with what was before, or [l]eave it? ");
    match answer(&question).as_deref() {
        Ok("o" | "O") => Decision::Overwrite,
        Ok("l" | "L") => Decision::Accept,
        _ => Decision::Keep,
    }
}

pub(super) fn status(journals: &Path, as_json: bool, console: &mut Console) -> Outcome {
    let status = ledger(journals).status().map_err(unfit)?;
    say_where(&status, journals, console);
    let text = if as_json { json(&status)? } else { terminal::tune_status(&status, &console.out) };
    console.print(&text);
    Ok(DONE)
}
