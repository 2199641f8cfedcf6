//! Where in a file something stands.

use super::error::{PlanError, Problem};
use super::names::short;
use super::written::PlanText;
use serde::de::{Deserialize, Deserializer};
use std::cmp::Ordering;
use toml::Spanned;

/// A value, and the offset of its first byte in the file; `None` for what no
/// file says. Two are equal where their values are.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<T> {
    offset: Option<usize>,
    pub(super) value: T,
}

impl<T> At<T> {
    pub(super) const fn unplaced(value: T) -> Self {
        At { offset: None, value }
    }

    /// The place without the value.
    pub(super) const fn position(&self) -> At<()> {
        At { offset: self.offset, value: () }
    }

    /// Another value at the same place.
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> At<U> {
        At { offset: self.offset, value: change(self.value) }
    }

    /// For sorting by the order of writing.
    pub(super) const fn offset(&self) -> Option<usize> {
        self.offset
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        Ok(At { offset: Some(spanned.span().start), value: spanned.into_inner() })
    }
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for At<T> {}

impl<T: Ord> PartialOrd for At<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> Ord for At<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.cmp(&other.value)
    }
}

/// A file that was read, or nothing where a plan comes from elsewhere.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) file: Option<String>,
    /// Offsets of the ends of its lines, in order.
    ends: Vec<usize>,
}

impl Source {
    pub(super) fn new(file: &str, text: &str) -> Self {
        let ends = text.bytes().enumerate().filter_map(|(at, byte)| (byte == b'\n').then_some(at));
        Source { file: Some(short(file, 200)), ends: ends.collect() }
    }

    /// The file's text as TOML.
    pub(super) fn read(&self, text: &str) -> Result<PlanText, PlanError> {
        toml::from_str(text).map_err(|error| {
            // The reader's own words have the names of our keys; they are made
            // one line, and of bounded length.
            let words = error.message().replace('`', "'").replace('\n', ", ");
            let line = error.span().map(|span| self.line_of(span.start));
            let problem = Box::new(Problem::Toml(short(&words, 300)));
            PlanError { file: self.file.clone(), line, problem }
        })
    }

    /// The line of something, from 1.
    pub(super) fn line<T>(&self, at: &At<T>) -> Option<usize> {
        at.offset.map(|offset| self.line_of(offset))
    }

    fn line_of(&self, offset: usize) -> usize {
        1 + self.ends.partition_point(|end| *end < offset)
    }

    /// What is wrong at that place.
    pub(super) fn error_at<T>(&self, at: &At<T>, problem: Problem) -> PlanError {
        PlanError { file: self.file.clone(), line: self.line(at), problem: problem.into() }
    }

    /// What is wrong with the whole.
    pub(super) fn plan_error(&self, problem: Problem) -> PlanError {
        PlanError { file: self.file.clone(), line: None, problem: problem.into() }
    }
}
