//! Tuning a host of a running lab: the same command, run in there.

use super::state;
use crate::failure::{Failure, Outcome};
use crate::verbs::in_lab;
use std::path::Path;

/// Runs this command on a host, named `HOST` or `LAB:HOST`, with a folder of
/// journals of its own.
pub(super) fn run(place: &str, persist: bool) -> Outcome {
    if persist {
        return Err(Failure::usage(
            "a lab's host has no next boot, and the file would be the machine's: leave --persist out",
        ));
    }
    let place = in_lab::find(place)?;
    let labs = state::folder()?.join("labs");
    forget_the_ended(&labs);
    let journals = labs.join(place.process.to_string()).join(&place.host);
    in_lab::run(&place, &["--journals".into(), journals.into_os_string()])
}

/// A lab that has ended took its settings along: its journals go too.
fn forget_the_ended(labs: &Path) {
    for entry in std::fs::read_dir(labs).into_iter().flatten().flatten() {
        let process = entry.file_name();
        if !Path::new("/proc").join(process).exists() {
            // What cannot be removed is another user's, and does no harm.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
