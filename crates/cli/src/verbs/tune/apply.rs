//! `tune apply`.

use super::goal::GoalArgs;
use super::{advise, json, ledger};
use crate::console::Console;
use crate::failure::{DONE, FAILED, Failure, Outcome};
use clap::Args;
use host::signals;
use report::terminal;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use tune::{JournalError, LedgerError, Lock, LockError};

/// Apply a plan to this host, after writing down what was before
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ApplyArgs {
    #[command(flatten)]
    goal: GoalArgs,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Also at each boot, by /etc/sysctl.d/90-longhaul.conf
    #[arg(long)]
    pub(super) persist: bool,
    /// Say what would be set, and set nothing
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  sudo longhaul tune apply --rate 10gbit --rtt 200ms
  sudo longhaul tune apply --profile data-transfer-node-40g --yes --persist
  longhaul tune apply --rate 1gbit --rtt 100ms --dry-run
  longhaul tune apply --rate 1gbit --rtt 100ms --yes --in-lab server

Each value is read back. What may not be changed here is left out and named. Applied plans
pile up; each longhaul tune rollback undoes the last.";

pub(super) fn run(
    args: &ApplyArgs,
    journals: &Path,
    as_json: bool,
    undo: &str,
    console: &mut Console,
) -> Outcome {
    let plan = advise(&args.goal)?;
    if !as_json {
        console.print(&terminal::tune_plan(&plan, &console.out));
        console.print("\n");
    }
    let ledger = ledger(journals);
    // Before anything is asked: it may not be possible at all.
    let mut done = ledger.rehearse(&plan, args.persist).map_err(failed)?;
    if !args.dry_run {
        let idle = plan.settings.is_empty() && !args.persist;
        if !args.yes && !idle && !asked("Apply this plan?")? {
            console.say("nothing was changed");
            return Ok(FAILED);
        }
        let lock = Lock::take(journals).map_err(locked)?;
        // It takes a moment, and half of it is nothing to stop at.
        signals::block();
        done = ledger.apply(&lock, &plan, args.persist).map_err(failed)?;
    }
    let text = if as_json { json(&done)? } else { terminal::tuned(&done, undo, &console.out) };
    console.print(&text);
    let short = done.settings.iter().all(|one| one.outcome == record::Outcome::Skipped);
    let unkept = args.persist && done.persisted.is_none() && done.journal.is_some();
    Ok(if short && !done.settings.is_empty() || unkept { FAILED } else { DONE })
}

/// The answer to a question of yes or no.
pub(super) fn asked(question: &str) -> Result<bool, Failure> {
    Ok(answer(&format!("{question} [y/N] "))?.eq_ignore_ascii_case("y"))
}

/// The first letter of an answer; only a terminal is asked.
pub(super) fn answer(question: &str) -> Result<String, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("there is no terminal to ask at; --yes does it without asking"));
    }
    let _ = io::stderr().write_all(question.as_bytes());
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(Failure::work)?;
    Ok(line.trim_start().chars().take(1).collect())
}

pub(super) fn failed(error: LedgerError) -> Failure {
    match error {
        LedgerError::NotPermitted { .. } => Failure::usage(error),
        LedgerError::Journal(error) => unfit(error),
        other => Failure::work(other),
    }
}

/// A folder that cannot be used is the set-up's fault.
pub(super) fn unfit(error: JournalError) -> Failure {
    match error {
        JournalError::Access { .. } => Failure::usage(error),
        other => Failure::work(other),
    }
}

pub(super) fn locked(error: LockError) -> Failure {
    match error {
        LockError::Taken(_) => Failure::work(error),
        LockError::Access { .. } => Failure::usage(error),
    }
}
