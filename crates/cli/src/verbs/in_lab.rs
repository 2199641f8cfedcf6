//! A command of ours again, on a host of a running lab.

use crate::failure::{Failure, Outcome};
use host::join::{Entrance, JoinError};
use lab::LabError;
use lab::control::Caller;
use std::ffi::OsString;

/// A host of a lab that runs.
pub(super) struct Place {
    caller: Caller,
    /// The lab's process.
    pub(super) process: u32,
    /// The host's name.
    pub(super) host: String,
    namespace: i32,
}

/// Finds it by `HOST`, or `LAB:HOST` where several labs run.
pub(super) fn find(place: &str) -> Result<Place, Failure> {
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
    let (host, namespace) = (entry.name.clone(), entry.namespace);
    Ok(Place { caller, process, host, namespace })
}

/// Runs this command there, without its `--in-lab` and with what is `added`.
pub(super) fn run(place: &Place, added: &[OsString]) -> Outcome {
    let connection = place.caller.connection();
    let entrance = Entrance::open(connection, place.namespace).map_err(Failure::work)?;
    entrance.run(&command(added)?, None).map_err(Failure::work)
}

fn command(added: &[OsString]) -> Result<Vec<OsString>, Failure> {
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
    command.extend_from_slice(added);
    Ok(command)
}
