//! The file of a plan.

use super::error::{PlanError, Problem};
use super::written::PlanText;
use crate::toml_text::{Spanned, TomlText, short};

/// A file that was read, or nothing where a plan comes from elsewhere.
#[derive(Debug, Default)]
pub(super) struct Source<'a> {
    pub(super) file: Option<String>,
    text: TomlText<'a>,
}

impl<'a> Source<'a> {
    pub(super) fn new(file: &str, text: &'a str) -> Self {
        Source { file: Some(short(file, 200)), text: TomlText::new(text) }
    }

    /// The file's text as TOML.
    pub(super) fn read(&self) -> Result<PlanText, PlanError> {
        self.text.read().map_err(|error| {
            let line = error.at.map(|(line, _)| line);
            let problem = Box::new(Problem::Toml(error.problem));
            PlanError { file: self.file.clone(), line, problem }
        })
    }

    /// The line of something, from 1.
    pub(super) fn line<T>(&self, at: &Spanned<T>) -> Option<usize> {
        self.text.position(&at.span()).map(|(line, _)| line)
    }

    /// What is wrong at that place.
    pub(super) fn error_at<T>(&self, at: &Spanned<T>, problem: Problem) -> PlanError {
        PlanError { file: self.file.clone(), line: self.line(at), problem: problem.into() }
    }

    /// What is wrong with the whole.
    pub(super) fn plan_error(&self, problem: Problem) -> PlanError {
        PlanError { file: self.file.clone(), line: None, problem: problem.into() }
    }
}

/// Text of a shape that no file says.
pub(super) fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

/// The position of something without its value.
pub(super) fn position<T>(at: &Spanned<T>) -> Spanned<()> {
    Spanned::new(at.span(), ())
}
