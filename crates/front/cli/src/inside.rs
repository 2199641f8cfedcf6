//! Runs a command inside a sandbox of namespaces.

use crate::console;
use crate::failure::{Failure, Outcome};
use host::sandbox::{self, Ended};
use record::NextCommand;

/// The environment variable in which `lab run` tells its programs what to put before a command
/// that is to run in such a lab again.
pub(crate) const LAB_RUN: &str = "LONGHAUL_LAB_RUN";

/// Commands that need the path of the lab in which they were suggested.
const OVER_A_PATH: [&str; 5] = ["test ", "doctor --to", "trace ", "ping ", "baseline "];

/// A command to run next, as it works once the lab of `lab run`, if this is one, has ended.
pub(crate) fn after_this_lab(next: NextCommand) -> NextCommand {
    let own = next.command.strip_prefix("sudo ").unwrap_or(&next.command);
    let words = own.strip_prefix("longhaul ").unwrap_or_default();
    let needs_path = OVER_A_PATH.iter().any(|verb| words.starts_with(verb));
    match std::env::var(LAB_RUN) {
        Ok(lab) if needs_path => NextCommand { command: format!("{lab} {own}"), ..next },
        _ => next,
    }
}

/// Runs `work` in a new sandbox and passes on its exit code.
pub(crate) fn sandbox(work: impl FnOnce() -> Outcome) -> Outcome {
    let complain = |failure: Failure| {
        console::complain(&failure.to_string());
        failure.code
    };
    let ended = sandbox::run_or(
        || work().unwrap_or_else(complain),
        |error| complain(Failure::usage(error)),
    );
    match ended.map_err(Failure::usage)? {
        Ended::Code(code) => Ok(code),
        Ended::Signal(signal) => Err(Failure::work(format!(
            "the lab was killed by signal {signal}; its programs and devices ended with it"
        ))),
    }
}
