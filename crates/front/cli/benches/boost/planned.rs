//! What `longhaul boost plan` predicts for a path.

use crate::LONGHAUL;
use bench_harness::Fallible;
use record::{BoostKind, BoostOption, BoostPlan, BoostTransfer};
use std::process::Command;

/// The plan's only transfer, for these words of its command line.
pub(crate) fn transfer(words: &[String]) -> Fallible<BoostTransfer> {
    let output =
        Command::new(LONGHAUL).args(["boost", "plan", "--json", "--link"]).args(words).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let plan: BoostPlan = serde_json::from_slice(&output.stdout)?;
    plan.transfers.into_iter().next().ok_or_else(|| "the plan has no transfer".into())
}

pub(crate) fn option(of: &BoostTransfer, kind: BoostKind) -> Fallible<&BoostOption> {
    let found = of.options.iter().find(|one| one.kind == kind);
    found.ok_or_else(|| format!("the plan has no {}", kind.name()).into())
}

/// The lanes' settings in the commands of a pair; BBR for a pair that the plan advises against.
pub(crate) fn lanes(pair: &BoostOption) -> String {
    let mut settings =
        pair.commands.iter().filter_map(|command| command.find(" -C ").map(|at| &command[at..]));
    settings.next_back().unwrap_or(" -C bbr").to_owned()
}

/// The congestion control among the lanes' settings.
pub(crate) fn congestion(lanes: &str) -> &str {
    lanes.split_whitespace().nth(1).unwrap_or("bbr")
}
