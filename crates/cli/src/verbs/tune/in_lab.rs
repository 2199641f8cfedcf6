//! Tuning a host of a running lab: the same command, run in there.

use super::state;
use crate::failure::{Failure, Outcome};
use host::join::{Entrance, JoinError};
use lab::LabError;
use lab::control::Caller;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Runs this command on a host, named `HOST` or `LAB:HOST`, with a folder of
/// journals of its own.
pub(super) fn run(place: &str, persist: bool) -> Outcome {
    if persist {
        return Err(Failure::usage(
            "a lab's host has no next boot, and the file would be the machine's: leave --persist out",
        ));
    }
    let (lab, host) = match place.split_once(':') {
        Some((lab, host)) => (Some(lab), host),
        None => (None, place),
    };
    let mut caller = Caller::call(lab).map_err(Failure::usage)?;
    let inventory = caller.inventory().map_err(Failure::work)?;
    let Some(entry) = inventory.hosts.iter().find(|entry| entry.name == host) else {
        let known: Vec<&str> = inventory.hosts.iter().map(|host| host.name.as_str()).collect();
        let error = LabError::NoHost { name: host.to_owned(), known: known.join(", ") };
        return Err(Failure::usage(error));
    };
    let process = caller.connection().peer_pid().ok_or(JoinError::Ended).map_err(Failure::work)?;
    let labs = state::folder()?.join("labs");
    forget_the_ended(&labs);
    let journals = labs.join(process.to_string()).join(&entry.name);
    let entrance = Entrance::open(caller.connection(), entry.namespace).map_err(Failure::work)?;
    entrance.run(&command(journals)?, None).map_err(Failure::work)
}

/// This command again, for where it then is.
fn command(journals: PathBuf) -> Result<Vec<OsString>, Failure> {
    let own = std::env::current_exe().map_err(Failure::work)?;
    let mut command = vec![own.into_os_string()];
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--in-lab") => drop(words.next()),
            Some(text) if text.starts_with("--in-lab=") => {}
            _ => command.push(word),
        }
    }
    command.extend(["--journals".into(), journals.into_os_string()]);
    Ok(command)
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
