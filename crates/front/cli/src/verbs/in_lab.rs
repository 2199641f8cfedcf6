//! Runs the same command on a host of a running lab.

use crate::failure::{Failure, Outcome};
use host::join::{HostNamespaces, JoinError};
use lab::control::Client;
use longhaul::lab::running;
use std::ffi::OsString;
use std::process::Stdio;

/// A host of a running lab.
pub(super) struct LabHost {
    client: Client,
    /// The lab's process.
    pub(super) process: u32,
    /// The host's name.
    pub(super) host: String,
    namespace: i32,
}

/// Finds it by `HOST`, or `LAB:HOST` where several labs run.
pub(super) fn find(place: &str) -> Result<LabHost, Failure> {
    let (lab, host) = match place.split_once(':') {
        Some((lab, host)) => (Some(lab), host),
        None => (None, place),
    };
    let mut client = running::connect(lab)?;
    let inventory = client.inventory().map_err(Failure::work)?;
    let entry = running::host(&inventory, host)?;
    let process = client.connection().peer_pid().ok_or(JoinError::Ended).map_err(Failure::work)?;
    let (host, namespace) = (entry.name.clone(), entry.namespace);
    Ok(LabHost { client, process, host, namespace })
}

/// Runs this command there without `--in-lab` and with the `added` arguments.
pub(super) fn run(place: &LabHost, added: &[OsString]) -> Outcome {
    let connection = place.client.connection();
    let namespaces = HostNamespaces::open(connection, place.namespace).map_err(Failure::work)?;
    namespaces.run(&command(added)?, None, Stdio::inherit()).map_err(Failure::work)
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
