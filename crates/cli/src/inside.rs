//! Runs a command inside a sandbox of namespaces.

use crate::console;
use crate::failure::{Failure, Outcome};
use host::sandbox::{self, Ended};

/// Runs `work` in a new sandbox and passes on its exit code.
pub(crate) fn sandbox(work: impl FnOnce() -> Outcome) -> Outcome {
    let ended = sandbox::run(|| match work() {
        Ok(code) => code,
        Err(failure) => {
            console::complain(&failure.to_string());
            failure.code
        }
    });
    match ended.map_err(Failure::usage)? {
        Ended::Code(code) => Ok(code),
        Ended::Signal(signal) => Err(Failure::work(format!(
            "the lab was killed by signal {signal}; its programs and devices ended with it"
        ))),
    }
}
