//! The command after a verdict.

use super::request::{BoostVerifyRequest, VerifyStage};
use record::{BoostVerdict, BoostVerification, CommandHost, NextCommand, command_line};

/// What to do with the result.
pub(super) fn of(
    document: &BoostVerification,
    request: &BoostVerifyRequest,
) -> Option<NextCommand> {
    if document.interrupted {
        return None;
    }
    let (words, why) = match document.verdict {
        BoostVerdict::Gain => (
            vec!["boost", "pair", "--far", request.boost.far.as_deref().unwrap_or("FAR")],
            "makes the keys of boxes that stay, for every application",
        ),
        BoostVerdict::NoGain | BoostVerdict::CannotTell => (
            plan(request),
            match document.verdict {
                BoostVerdict::CannotTell => "predicts what each way to accelerate would gain",
                _ => "shows what limits the transfer, and which other way would help",
            },
        ),
    };
    let command = command_line(std::iter::once("longhaul").chain(words));
    Some(NextCommand { command, on: CommandHost::Here, why: why.to_owned() })
}

fn plan(request: &BoostVerifyRequest) -> Vec<&str> {
    let mut words = vec!["boost", "plan"];
    match &request.lab {
        Some(lab) => match &lab.stage {
            VerifyStage::Link(link) => words.extend(["--link", link]),
            VerifyStage::Plan { .. } => words.push("HOST"),
        },
        None if request.test.host.is_empty() => words.push("HOST"),
        None => words.extend(["--", &request.test.host]),
    }
    words
}
