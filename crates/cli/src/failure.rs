//! How a verb ends: its exit code, and one line where it failed.

use std::fmt;

/// A verb's exit code. 0 done, 1 the work failed, 2 wrong usage or
/// privileges, 3 the result is not valid; `lab run` passes a program's own on.
pub(crate) type Code = i32;

pub(crate) const DONE: Code = 0;
pub(crate) const FAILED: Code = 1;
pub(crate) const USAGE: Code = 2;
pub(crate) const NOT_VALID: Code = 3;

/// Why a verb could not do its work: one line for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    line: String,
}

impl Failure {
    /// The user or the system's set-up is at fault.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Failure { code: USAGE, line: error.to_string() }
    }

    /// The work itself failed.
    pub(crate) fn work(error: impl fmt::Display) -> Self {
        Failure { code: FAILED, line: error.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

pub(crate) type Outcome = Result<Code, Failure>;
