//! A command as it is and through a pair of boxes, in alternation: the gain, its interval and its
//! price.
//!
//! ```text
//! request ── command lines ── schedule and statistics (verify::boosted)
//!                                  │ runs
//!                      ┌───────────┴───────────┐
//!                 this host                a lab of five hosts
//! ```

mod carried;
mod here;
mod in_lab;
mod next;
mod private_directory;
mod request;
mod service;
mod stage;
mod transfer;
mod words;

pub use request::{BoostVerifyRequest, VerifiedTest, VerifyLab, VerifyStage};

use crate::{Problem, StopFlag};
use record::{BoostRun, BoostVerification, BoostWay, command_line};
use serde::Serialize;
use std::ffi::OsString;
use units::BitRate;
use verify::boosted::{self, BoostProgress, BoostSchedule};

/// Events, in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoostVerifyEvent {
    /// The lab is being started.
    StartingLab,
    /// A run begins.
    Run {
        /// The way.
        way: BoostWay,
        /// Its number, from 1.
        number: u32,
        /// The number of runs.
        of: u32,
    },
    /// A run has ended.
    Ended(Box<BoostRun>),
    /// A CUBIC flow begins, alone or beside a transfer.
    Cubic {
        /// The transfer's way; `None`: alone.
        beside: Option<BoostWay>,
        /// Its length.
        seconds: f64,
    },
    /// The CUBIC flow has ended.
    CubicEnded {
        /// Its goodput at the receiver.
        goodput: BitRate,
    },
}

impl From<BoostProgress<'_>> for BoostVerifyEvent {
    fn from(progress: BoostProgress<'_>) -> Self {
        match progress {
            BoostProgress::Run { way, number, of } => BoostVerifyEvent::Run { way, number, of },
            BoostProgress::Ended(run) => BoostVerifyEvent::Ended(Box::new(run.clone())),
            BoostProgress::Cubic { beside, seconds } => BoostVerifyEvent::Cubic { beside, seconds },
            BoostProgress::CubicEnded(goodput) => BoostVerifyEvent::CubicEnded { goodput },
        }
    }
}

/// Runs the command directly and boosted, in turn. Programs of this executable are started: the
/// boxes, the test.
///
/// # Errors
/// An invalid field, a lab that cannot be started, a command that fails both ways.
pub fn run(
    request: &BoostVerifyRequest,
    on_event: &mut dyn FnMut(BoostVerifyEvent),
    stop: &StopFlag,
) -> Result<BoostVerification, Problem> {
    request.check()?;
    let command = words::command(request)?;
    let schedule = BoostSchedule {
        repeats: request.repeat,
        harm_rounds: if request.lab.is_some() { request.harm_rounds } else { 0 },
    };
    let shown = command_line(shown(&command, request));
    let far = request.boost.far.clone().filter(|_| request.lab.is_none());
    let mut document = match &request.lab {
        None => {
            let mut here = here::Here::new(request, command, on_event, stop)?;
            boosted::compare(boosted::run(schedule, &mut here)?, shown, far, None)
        }
        Some(lab) => {
            on_event(BoostVerifyEvent::StartingLab);
            let mut in_lab = in_lab::InLab::start(request, lab, command, on_event, stop)?;
            let done = boosted::run(schedule, &mut in_lab)?;
            let path = Some(lab.path());
            let mut document = boosted::compare(done, shown, far, path);
            document.notes.extend(in_lab.end());
            document
        }
    };
    document.next = next::of(&document, request);
    Ok(document)
}

/// The command line for people: the program of a test is this one.
fn shown(command: &[OsString], request: &BoostVerifyRequest) -> Vec<String> {
    let mut words: Vec<String> =
        command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if let (Some(first), Some(_)) = (words.first_mut(), request.test()) {
        "longhaul".clone_into(first);
    }
    words
}
