//! What runs, where and when.

use super::build::Find;
use super::error::{PlanError, Problem};
use super::written::ProgramText;
use super::{ProgramPlan, Wait, time};
use crate::toml_text::{Scalar, Spanned, short};
use std::time::Duration;

/// The programs, as written.
pub(super) fn read(
    written: &[Spanned<ProgramText>],
    duration: Option<Duration>,
    find: &Find<'_>,
) -> Result<Vec<ProgramPlan>, PlanError> {
    written.iter().map(|at| program(at.get_ref(), duration, find)).collect()
}

fn program(
    text: &ProgramText,
    duration: Option<Duration>,
    find: &Find<'_>,
) -> Result<ProgramPlan, PlanError> {
    let source = find.source;
    let command = text.command.get_ref().trim();
    if command.is_empty() || command.contains('\0') {
        return Err(source.error_at(&text.command, Problem::NoCommand));
    }
    let named = || short(command, 40);
    let host = find.host(&text.on, || format!("'{}'", named()))?;
    let moment = |key, at: &Option<Spanned<Scalar>>| -> Result<Option<Duration>, PlanError> {
        let Some(at) = at else { return Ok(None) };
        let time = time::parse(key, &at.get_ref().0).map_err(|wrong| source.error_at(at, wrong))?;
        Ok(Some(time))
    };
    let start = moment("start", &text.start)?.unwrap_or(Duration::ZERO);
    let stop = moment("stop", &text.stop)?;
    if let Some(at) = text.start.as_ref().filter(|_| duration.is_some_and(|end| start >= end)) {
        return Err(source.error_at(at, Problem::AfterTheEnd { what: "start" }));
    }
    if let (Some(stop), Some(at)) = (stop, &text.stop) {
        if stop <= start {
            return Err(source.error_at(at, Problem::StopBeforeStart { command: named() }));
        }
        if duration.is_some_and(|end| stop > end) {
            return Err(source.error_at(at, Problem::AfterTheEnd { what: "stop" }));
        }
    }
    let wait = match text.wait.as_ref().map(|wait| (wait, wait.get_ref().as_str())) {
        // Most background programs are servers; the clock has not begun, so a
        // moment for one that is not changes no time of any other.
        None if text.background && start.is_zero() => Wait::Briefly,
        None | Some((_, "no")) => Wait::No,
        Some((wait, "listening")) if !start.is_zero() => {
            return Err(source.error_at(wait, Problem::WaitLater { command: named() }));
        }
        Some((_, "listening")) => Wait::UntilListening,
        Some((wait, word)) => {
            return Err(source.error_at(wait, Problem::Wait { word: short(word, 32) }));
        }
    };
    Ok(ProgramPlan {
        host,
        command: command.to_owned(),
        background: text.background,
        wait,
        start,
        stop,
        line: source.line(&text.command),
    })
}
