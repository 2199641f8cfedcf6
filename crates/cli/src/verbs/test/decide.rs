//! The second test of `--decide`.

use super::{TestArgs, config, transfer, udp_safeguard};
use crate::console::Console;
use crate::failure::Failure;
use perf::StopFlag;
use record::{Decided, Measurement};
use verify::decide::{Proposal, propose};

/// The answer, and the error that ended the second test.
pub(super) struct Answer {
    pub(super) decided: Decided,
    pub(super) failed: Option<Failure>,
}

/// Runs the test that decides between the likely limits of `first`, if there is one.
pub(super) fn run(
    args: &TestArgs,
    first: &Measurement,
    console: &mut Console,
    stop: &StopFlag,
) -> Answer {
    let test = match propose(first, &diagnose::explain(first)) {
        Proposal::Test(test) => test,
        Proposal::Nothing(decided) => return Answer { decided, failed: None },
    };
    let interrupted = || test.undecided("The second test was interrupted.".to_owned());
    if stop.is_raised() {
        return Answer { decided: interrupted(), failed: None };
    }
    let mut config = test.config(&config(args));
    config.limits_unsent = first.spec.limits_unsent;
    let announcement = test.announcement(&config);
    if args.forms.json {
        console.say(&announcement);
    } else {
        console.print(&format!("\n{announcement}\n"));
    }
    udp_safeguard::warn(&config, args.yes, console);
    match transfer(args, &config, false, console, stop) {
        _ if stop.is_raised() => Answer { decided: interrupted(), failed: None },
        Ok(measured) => Answer { decided: test.answer(first, &measured.measurement), failed: None },
        Err(error) => {
            let decided = test.undecided("The second test failed.".to_owned());
            Answer { decided, failed: Some(error) }
        }
    }
}
