//! A lab with its logs, from the start to the validity report.

use super::session::{failed, refused};
use super::{LabEvent, LabRequest, LinkDocument};
use crate::{Fault, Problem};
use host::program::Reaper;
use host::{output_file, sandbox};
use lab::{Lab, LabError, LabReport, Options, PREFER_IPV4};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use topology::Plan;
use units::Rtt;

/// A running lab.
pub(super) struct Stage {
    pub(super) lab: Arc<Lab>,
    /// Its name, unique among the running labs of this user.
    pub(super) name: String,
    pub(super) reaper: Reaper,
    writers: Vec<(PathBuf, JoinHandle<std::io::Result<u64>>)>,
}

impl Stage {
    /// Starts it. `changing`: its links are meant to be changed while it runs.
    pub(super) fn build(
        plan: &Plan,
        request: &LabRequest,
        machine: Option<usize>,
        changing: bool,
        on_event: &mut dyn FnMut(LabEvent),
    ) -> Result<Self, Problem> {
        for file in [&request.queue_log, &request.report].into_iter().flatten() {
            store::check_writable(file).map_err(failed)?;
        }
        let reaper = Reaper::start(path_with_us());
        let LabRequest { accurate, driver, omit, .. } = *request;
        let omit = omit.map(Rtt::duration);
        let options = Options { accurate, driver, omit, machine, changing, ..Options::default() };
        let lab = Arc::new(Lab::start(plan, options).map_err(refused)?);
        cover_names(&lab, on_event);
        let name = match &request.name {
            Some(name) => lab::control::serve(name, &lab).map(|()| name.clone()),
            None => serve_under_some_name(&plan.name, &lab),
        };
        let name = name.map_err(refused)?;
        let mut stage = Stage { lab, name, reaper, writers: Vec::new() };
        stage.write_down(request)?;
        Ok(stage)
    }

    /// Starts the writers of logs and captures.
    fn write_down(&mut self, request: &LabRequest) -> Result<(), Problem> {
        if let Some(path) = &request.packet_log {
            let (file, watch) = (create(path)?, self.lab.watch(None, 0).map_err(failed)?);
            let names: Vec<String> = self.lab.links().map(|(name, _)| name.to_owned()).collect();
            let write = move || {
                lab::log::packets(&watch, &names, file)?;
                Ok(watch.missed())
            };
            self.writers.push((path.clone(), std::thread::spawn(write)));
        }
        for (host, path) in &request.captures {
            let watch = self.lab.watch(Some(host), usize::MAX).map_err(refused)?;
            let (file, lab, host) = (create(path)?, Arc::clone(&self.lab), host.clone());
            let write = move || {
                lab::capture::stream(&lab, &host, &watch, file)?;
                Ok(watch.missed())
            };
            self.writers.push((path.clone(), std::thread::spawn(write)));
        }
        Ok(())
    }

    /// Ends the emulation and writes the logs and reports.
    pub(super) fn finish(
        self,
        request: &LabRequest,
        on_event: &mut dyn FnMut(LabEvent),
    ) -> Result<LabReport, Problem> {
        let report = self.lab.finish().map_err(failed)?;
        for (path, writer) in self.writers {
            let unwritten = |why: String| failed(format!("cannot write {}: {why}", path.display()));
            let missed =
                writer.join().map_err(|_| unwritten("the writer thread panicked".to_owned()))?;
            let packets = missed.map_err(|error| unwritten(error.to_string()))?;
            if packets > 0 {
                on_event(LabEvent::PacketsMissed { file: path, packets });
            }
        }
        if let Some(path) = &request.queue_log {
            let mut log = Vec::new();
            lab::log::queues(&report.links, &mut log).map_err(failed)?;
            store::write(path, &log).map_err(failed)?;
        }
        if let Some(path) = &request.report {
            let json = match report.links.as_slice() {
                [only] => serde_json::to_string_pretty(&only.path),
                links => serde_json::to_string_pretty(
                    &links.iter().map(LinkDocument::of).collect::<Vec<_>>(),
                ),
            };
            let json = json.map_err(failed)? + "\n";
            store::write(path, json.as_bytes()).map_err(failed)?;
        }
        Ok(report)
    }
}

fn create(path: &Path) -> Result<File, Problem> {
    output_file::create(path).map_err(|error| {
        Problem::new(Fault::Request, format!("cannot write {}: {error}", path.display()))
    })
}

/// A default name that is taken gets a number appended.
fn serve_under_some_name(name: &str, lab: &Arc<Lab>) -> Result<String, LabError> {
    let mut number = 1;
    loop {
        let name = if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
        match lab::control::serve(&name, lab) {
            Err(LabError::NameTaken { .. }) if number < 1000 => number += 1,
            other => return other.map(|()| name),
        }
    }
}

/// PATH with the directory of this executable appended: `longhaul test` works in
/// a lab even where longhaul is not installed.
pub(super) fn path_with_us() -> Option<OsString> {
    let own = std::env::current_exe().ok()?;
    let known = std::env::var_os("PATH").filter(|path| !path.is_empty())?;
    let folders = std::env::split_paths(&known).chain(own.parent().map(Into::into));
    std::env::join_paths(folders).ok()
}

/// Makes the host names resolve for every program of the sandbox.
fn cover_names(lab: &Lab, on_event: &mut dyn FnMut(LabEvent)) {
    let known = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let names = lab.names() + &known;
    if let Err(error) = sandbox::bind_file(c"/etc/hosts", &names) {
        let hosts = lab.hosts().iter().map(|host| (host.ipv4, host.name.clone())).collect();
        on_event(LabEvent::NamesUnresolved { error: error.to_string(), hosts });
    }
    // Without that file the resolver keeps its default preference.
    let _ = sandbox::bind_file(c"/etc/gai.conf", PREFER_IPV4);
}
