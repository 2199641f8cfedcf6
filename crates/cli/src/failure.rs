//! How a subcommand ends: its exit code, and a one-line error.

use report::untrusted;
use std::fmt;

/// Exit code: 0 success, 1 failure, 2 usage error or missing privileges, 3
/// invalid result; `lab run` passes on the exit code of its program.
pub(crate) type Code = i32;

pub(crate) const DONE: Code = 0;
pub(crate) const FAILED: Code = 1;
pub(crate) const USAGE: Code = 2;
pub(crate) const NOT_VALID: Code = 3;
pub(crate) const WORSE: Code = 4;

/// Why a subcommand failed: one line for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    line: String,
}

impl Failure {
    /// The command line or the system's configuration is wrong.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Failure { code: USAGE, line: untrusted::line(&error.to_string(), false) }
    }

    /// The operation failed.
    pub(crate) fn work(error: impl fmt::Display) -> Self {
        Failure { code: FAILED, line: untrusted::line(&error.to_string(), false) }
    }

    /// The same, where a file's path is a detail of ours, by a name that the user knows.
    pub(crate) fn with_name(self, path: &str, name: &str) -> Self {
        Failure { line: self.line.replace(path, name), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

pub(crate) type Outcome = Result<Code, Failure>;
