//! Runs a lab with its programs.

use super::far_end::FarHost;
use super::stage::Stage;
use super::{LabDocument, LabEvent, LabHosts, LabRequest, PairRequest};
use crate::{Fault, Problem};
use lab::{EndSignal, Lab, LabError, LabHost, Session};
use tune::Buffers;

/// Runs a lab until its programs have ended, or `end_signal` has a signal, which the programs get
/// as well.
///
/// To be called in a sandbox ([`host::sandbox::run`]) whose process has one thread; with the
/// request as it is, [`crate::run`] does so.
///
/// # Errors
/// An invalid field, no privilege for a lab, a program that cannot be started.
pub fn run(
    request: &LabRequest,
    on_event: &mut dyn FnMut(LabEvent),
    end_signal: &EndSignal,
) -> Result<LabDocument, Problem> {
    let plan = request.checked_plan()?;
    let pair = match &request.hosts {
        LabHosts::Pair(pair) => Some(pair),
        LabHosts::Plan { .. } | LabHosts::Shape(_) => None,
    };
    let far_host = pair.map_or(FarHost::Own, PairRequest::far_host);
    far_host.check()?;
    // Without programs to wait for, the lab is there for commands from outside.
    let rests = pair.is_none() && plan.programs.iter().all(|program| program.background);
    let changing = request.changing || rests;
    let mut stage = Stage::build(&plan, request, far_host.index(), changing, on_event)?;
    for (name, value) in &request.environment {
        stage.reaper.set_variable(name, value);
    }
    let (name, hosts, links) = (stage.name.clone(), plan.hosts.len(), plan.links.len());
    on_event(LabEvent::Up { name, hosts, links });
    if let Some(pair) = pair {
        on_event(introduction(&stage.lab, &pair.congestion));
    }
    let _open = far_host.open(&stage.lab, on_event)?;
    let jobs = request.jobs(&plan);
    let session =
        Session { jobs: jobs.clone(), changes: plan.changes.clone(), duration: plan.duration };
    let mut observe = |event: lab::SessionEvent<'_>| on_event(LabEvent::of(&event, &plan));
    let ended = session.run(&stage.lab, &stage.reaper, end_signal, &mut observe);
    let ended = ended.map_err(start_problem)?;
    let report = stage.finish(request, on_event)?;
    Ok(LabDocument::new(&plan, &jobs, ended, &report))
}

/// A missing or non-executable program (exit codes 126 and 127 of the shell) is the request's fault.
fn start_problem(error: LabError) -> Problem {
    match error {
        LabError::Start { .. } => Problem::new(Fault::Request, error),
        LabError::ExitedBeforeListening { code: code @ (126 | 127), command, .. } => Problem::new(
            Fault::Request,
            format!("the command cannot start (exit code {code}): {command}"),
        ),
        other => failed(other),
    }
}

/// Something failed while the lab was there.
pub(super) fn failed(error: impl std::fmt::Display) -> Problem {
    Problem::new(Fault::Internal, error)
}

/// A lab that could not start.
pub(super) fn refused(error: LabError) -> Problem {
    let fault = match error {
        LabError::System { .. } | LabError::Tun(_) | LabError::Emulator(_) => Fault::Host,
        _ => Fault::Request,
    };
    Problem::new(fault, error)
}

fn introduction(lab: &Lab, congestion: &str) -> LabEvent {
    let buffers = |host: &LabHost| host.namespace.run(Buffers::read).and_then(|read| read).ok();
    let hosts = buffers(lab.client()).zip(buffers(lab.server()));
    let reached = hosts.and_then(|(client, server)| {
        tune::autotuned_rates(&client, &server, lab.path().rtt()).zip(lab.path().rate())
    });
    let autotuned = reached.filter(|([least, _], rate)| least < rate).map(|(rates, _)| rates);
    let (path, congestion) = (lab.path().to_string(), congestion.to_owned());
    LabEvent::Path { path, congestion, autotuned }
}
