//! Problems of requests: the error, whose fault it is, and what would be accepted instead.
//!
//! A [`Problem`] names a field of the request, never a flag or a form field: a command line
//! shows [`Field::Rate`] as `--rate`, a page as the label of its input. Messages of errors name
//! fields in the same way: `format!("give {}", Field::Rate)`, which [`with_names`] turns into the
//! front end's text.

mod field;

pub use field::{Field, stored, with_names};

use serde::{Deserialize, Serialize};
use std::fmt;

/// The party that can remove a problem.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The request: a value, a combination, a file that it names.
    Request,
    /// A file that was read: it is missing, damaged, or lacks what is wanted of it.
    Input,
    /// This host: a privilege, a missing program, a full disk.
    Host,
    /// The path or the far end: it does not answer, refuses, or broke off.
    Peer,
    /// Nobody: the caller asked to stop.
    Interrupted,
    /// Longhaul.
    Internal,
}

/// A value that would be accepted.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// The field of the request.
    pub field: Field,
    /// The accepted values, after "give": `a rate such as 1gbit`. Empty if the field says it.
    pub accepted: String,
}

/// The reason a request was not carried out.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The party that can remove it.
    pub fault: Fault,
    /// The error, with the remedy unless a field has it: one line, without a full stop; fields
    /// stand in it as `‹rate›`.
    pub message: String,
    /// The field that removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

impl Problem {
    /// A problem that no field of the request removes.
    pub fn new(fault: Fault, message: impl fmt::Display) -> Self {
        Problem { fault, message: message.to_string(), remedy: None }
    }

    /// A wrong value of `field`, which accepts `accepted`.
    pub fn field(field: Field, message: impl fmt::Display, accepted: impl Into<String>) -> Self {
        Problem::new(Fault::Request, message).with(field, accepted)
    }

    /// Adds the field that removes the problem.
    #[must_use]
    pub fn with(self, field: Field, accepted: impl Into<String>) -> Self {
        Problem { remedy: Some(Remedy { field, accepted: accepted.into() }), ..self }
    }

    /// The problem in one line; `name` is what the front end calls a field.
    pub fn line(&self, name: impl Fn(Field) -> String) -> String {
        let message = with_names(&self.message, &name);
        let Some(Remedy { field, accepted }) = &self.remedy else { return message };
        let comma = if accepted.is_empty() { "" } else { ", " };
        format!("{message}; give {}{comma}{accepted}", name(*field))
    }

    /// The fields that the problem is about: the one that removes it, then those that its message
    /// names, in its order.
    #[must_use]
    pub fn fields(&self) -> Vec<Field> {
        let position = |field: &Field| self.message.find(&field.to_string());
        let mut named: Vec<_> =
            Field::ALL.iter().filter_map(|field| Some((position(field)?, *field))).collect();
        named.sort_by_key(|(position, _)| *position);
        let remedy = self.remedy.iter().map(|remedy| remedy.field);
        remedy.chain(named.into_iter().map(|(_, field)| field)).collect()
    }
}

/// In the words of the API, whose fields have names.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line(|field| field.name().to_owned()))
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_its_fields_for_every_front_end() {
        let message = format!("{} is above {}", Field::Window, Field::Mss);
        let problem = Problem::field(Field::Rate, message, "as in 1gbit");
        assert_eq!(problem.fields(), [Field::Rate, Field::Window, Field::Mss]);
        assert_eq!(problem.to_string(), "window is above mss; give rate, as in 1gbit");
        let flag = |field: Field| format!("--{}", field.name());
        assert_eq!(problem.line(flag), "--window is above --mss; give --rate, as in 1gbit");
    }
}
