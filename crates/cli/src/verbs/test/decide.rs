//! The second test of `--decide`.

use super::{TestArgs, config, transfer, udp_safeguard};
use crate::console::Console;
use crate::failure::Failure;
use perf::{StopFlag, client::ClientConfig};
use record::{Decided, Measurement};
use verify::decide::{Proposal, SecondTest, TrainTest, propose};

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
    let answer = answer(args, first, console, stop);
    first.decided = Some(answer.decided.clone()).filter(|decided| decided.throughput_bps.is_some());
    answer
}

fn answer(args: &TestArgs, first: &Measurement, console: &mut Console, stop: &StopFlag) -> Answer {
    match propose(first, &diagnose::explain(first)) {
        Proposal::Test(test) => second_test(args, &test, first, console, stop),
        Proposal::Train(test) => trains(args, test, console, stop),
        Proposal::Nothing(decided) => Answer { decided, failed: None },
    }
}

/// Why a second test has no answer.
const INTERRUPTED: &str = "The second test was interrupted.";
const FAILED: &str = "The second test failed.";

fn second_test(
    args: &TestArgs,
    test: &SecondTest,
    first: &Measurement,
    console: &mut Console,
    stop: &StopFlag,
) -> Answer {
    let interrupted = || test.undecided(INTERRUPTED.to_owned());
    if stop.is_raised() {
        return Answer { decided: interrupted(), failed: None };
    }
    let mut config = test.config(&config(args));
    config.limits_unsent = first.spec.limits_unsent;
    announce(args, &test.announcement(&config), &config, console);
    match transfer(args, &config, false, console, stop) {
        _ if stop.is_raised() => Answer { decided: interrupted(), failed: None },
        Ok(measured) => Answer { decided: test.answer(first, &measured.measurement), failed: None },
        Err(error) => Answer { decided: test.undecided(FAILED.to_owned()), failed: Some(error) },
    }
}

/// Sends trains of datagrams until one decides.
fn trains(args: &TestArgs, mut test: TrainTest, console: &mut Console, stop: &StopFlag) -> Answer {
    let first = config(args);
    while !stop.is_raised() {
        let config = test.config(&first);
        announce(args, &test.announcement(), &config, console);
        match transfer(args, &config, false, console, stop) {
            _ if stop.is_raised() => {}
            Ok(measured) => {
                if let Some(decided) = test.take(&measured.measurement) {
                    return Answer { decided, failed: None };
                }
            }
            Err(error) => {
                return Answer { decided: test.undecided(FAILED.to_owned()), failed: Some(error) };
            }
        }
    }
    Answer { decided: test.undecided(INTERRUPTED.to_owned()), failed: None }
}

/// Prints what follows, and what it does to others.
fn announce(args: &TestArgs, text: &str, config: &ClientConfig, console: &mut Console) {
    if args.forms.json {
        console.say(text);
    } else {
        console.print(&format!("\n{text}\n"));
    }
    udp_safeguard::warn(config, args.yes, console);
}
