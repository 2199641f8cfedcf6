//! Working inside a world of one's own.

use crate::console;
use crate::failure::{Failure, Outcome};
use host::world::{self, Ended};

/// Does the work in a world of its own and passes its exit code on.
pub(crate) fn a_world(work: impl FnOnce() -> Outcome) -> Outcome {
    let ended = world::run(|| match work() {
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
