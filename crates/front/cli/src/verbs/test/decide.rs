//! The second test of `--decide`.

use super::{TestArgs, config, transfer, udp_safeguard};
use crate::console::Console;
use crate::failure::Failure;
use perf::{StopFlag, client::ClientConfig};
use record::{Decided, Measurement};
use verify::decide::decide;

/// The answer, and the error that ended the second test.
pub(super) struct Answer {
    pub(super) decided: Decided,
    pub(super) failed: Option<Failure>,
}

/// Runs the test that decides between the likely limits of `first`, if there is one, and adds its
/// answer to it.
pub(super) fn run(
    args: &TestArgs,
    first: &mut Measurement,
    console: &mut Console,
    stop: &StopFlag,
) -> Answer {
    let mut second = |announcement: &str, config: &ClientConfig| {
        if stop.is_raised() {
            return Ok(None);
        }
        if args.forms.json {
            console.say(announcement);
        } else {
            console.print(&format!("\n{announcement}\n"));
        }
        udp_safeguard::warn(config, args.yes, console);
        match transfer(args, config, false, console, stop) {
            _ if stop.is_raised() => Ok(None),
            measured => measured.map(|measured| Some(measured.measurement)),
        }
    };
    let answer = match decide(first, &config(args), &mut second) {
        Ok(decided) => Answer { decided, failed: None },
        Err((decided, error)) => Answer { decided, failed: Some(error) },
    };
    let ran = answer.decided.throughput_bps.is_some();
    first.decided = ran.then(|| answer.decided.clone());
    answer
}
