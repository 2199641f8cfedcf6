//! Labs that run already: which ones, their links changed, programs on their hosts.

use super::session::failed;
use super::stage::path_with_us;
use super::{ExecDocument, RunningLab, SetDocument, arguments};
use crate::{Fault, Field, Problem, input};
use host::cpu::Confinement;
use host::join::{HostNamespaces, JoinError};
use lab::LabError;
use lab::control::{self, Client, HostEntry, Inventory};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::process::Stdio;
use topology::{PathError, PathSpec};
use units::{BitRate, Rtt};

/// A change of a link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SetRequest {
    /// The lab's name; `None` if only one runs.
    pub lab: Option<String>,
    /// The link; `None` if there is only one.
    pub link: Option<String>,
    /// The settings to change, `KEY=VALUE,…`.
    pub settings: String,
}

impl SetRequest {
    /// Checks that there is something to change; the lab checks the settings.
    ///
    /// # Errors
    /// No settings.
    pub fn check(&self) -> Result<(), Problem> {
        if self.settings.trim().is_empty() {
            return Err(Problem::field(
                Field::Settings,
                "no settings",
                "KEY=VALUE, such as loss=1%",
            ));
        }
        Ok(())
    }
}

/// Connects to a running lab; without a name, to the only one.
///
/// # Errors
/// No lab has the name, or without a name several run.
pub fn connect(lab: Option<&str>) -> Result<Client, Problem> {
    Client::call(lab).map_err(|error| Problem::new(Fault::Request, error))
}

/// A host of a lab by its name.
///
/// # Errors
/// No host has it; the message lists those that exist.
pub fn host<'a>(inventory: &'a Inventory, name: &str) -> Result<&'a HostEntry, Problem> {
    inventory.hosts.iter().find(|host| host.name == name).ok_or_else(|| {
        let known: Vec<&str> = inventory.hosts.iter().map(|host| host.name.as_str()).collect();
        let error = LabError::NoHost { name: name.to_owned(), known: known.join(", ") };
        Problem::new(Fault::Request, error)
    })
}

/// The running labs of this user. `on_silent` gets the names of those that do not answer, and why.
///
/// # Errors
/// The kernel's list of sockets cannot be read.
pub fn list(on_silent: &mut dyn FnMut(&str, &LabError)) -> Result<Vec<RunningLab>, Problem> {
    let mut all = Vec::new();
    for name in control::running().map_err(failed)? {
        // A lab may have ended since it was listed.
        match Client::call(Some(&name)).and_then(|mut client| client.inventory()) {
            Ok(inventory) => all.push(RunningLab { name, inventory }),
            Err(LabError::NoLab { .. } | LabError::NoneRuns) => {}
            Err(error) => on_silent(&name, &error),
        }
    }
    Ok(all)
}

/// Changes a link.
///
/// # Errors
/// No such lab or link, or settings that it does not accept.
pub fn set(request: &SetRequest) -> Result<SetDocument, Problem> {
    let SetRequest { lab, link, settings } = request;
    let mut client = connect(lab.as_deref())?;
    let files = files_named(settings).map_err(|error| Problem::new(Fault::Request, error))?;
    client.set(link.as_deref(), settings, &files).map_err(problem)?;
    let link = match link {
        Some(link) => link.clone(),
        // Without a name there is one link alone.
        None => {
            let links = client.inventory().map_err(failed)?.links;
            links.into_iter().next().map_or_else(String::new, |link| link.name)
        }
    };
    Ok(SetDocument::new(&link, settings))
}

/// A refusal by the lab is the request's fault.
pub fn problem(error: LabError) -> Problem {
    match error {
        LabError::Refused { .. } => Problem::new(Fault::Request, error),
        other => failed(other),
    }
}

/// The files that the settings name, read with the rights of the user. The lab
/// reports other errors, as it alone knows the settings in effect.
fn files_named(settings: &str) -> Result<Vec<(String, String)>, PathError> {
    let (mut files, mut unread) = (Vec::new(), false);
    let any = PathSpec::new(BitRate::from_bps(1_000_000_000), Rtt::from_micros(1000));
    let tried = any.with(settings, &mut |name| {
        let text = input::of_a_path(name).inspect_err(|_| unread = true)?;
        files.push((name.to_owned(), text.clone()));
        Ok(text)
    });
    match tried {
        Err(error) if unread => Err(error),
        _ => Ok(files),
    }
}

/// A program on a host of a running lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecRequest {
    /// The lab's name; `None` if only one runs.
    #[serde(default)]
    pub lab: Option<String>,
    /// The host.
    pub host: String,
    /// The program with its arguments.
    #[serde(with = "arguments")]
    pub command: Vec<OsString>,
}

impl ExecRequest {
    /// Checks that there is a program.
    ///
    /// # Errors
    /// None, or one without a name.
    pub fn check(&self) -> Result<(), Problem> {
        if self.command.first().is_none_or(|name| name.is_empty()) {
            let accepted = "a program and its arguments";
            return Err(Problem::field(Field::Programs, "no program", accepted));
        }
        Ok(())
    }
}

/// Runs a program on a host, with this process's standard streams but for `output`. With
/// [`crate::run`], it reads nothing, and all its output goes to standard error.
///
/// To be called while the process has one thread; it stays in the lab's namespaces.
///
/// # Errors
/// No such lab or host, or a program that cannot be started.
pub fn exec(request: &ExecRequest, output: Stdio) -> Result<ExecDocument, Problem> {
    request.check()?;
    let ExecRequest { lab, host: on, command } = request;
    let mut client = connect(lab.as_deref())?;
    let inventory = client.inventory().map_err(failed)?;
    let entry = host(&inventory, on)?;
    let refused = |error: JoinError| match error {
        JoinError::Start { .. } => Problem::new(Fault::Request, error),
        other => failed(other),
    };
    let namespaces = HostNamespaces::open(client.connection(), entry.namespace).map_err(refused)?;
    // The program inherits it; on any core it would only disturb the lab.
    let _confinement = inventory.program_cores.as_deref().map(Confinement::begin);
    let code = namespaces.run(command, path_with_us().as_deref(), output).map_err(refused)?;
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    Ok(ExecDocument::new(on, words.join(" "), code))
}
