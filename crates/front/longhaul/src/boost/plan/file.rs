//! The transfers of a file.

use super::situation::{Asked, ObservedPorts, Situation};
use super::{PlanEvent, PlannedFile, Sourced, traffic};
use crate::explain::{self, Explained, Transfer, capture, recording};
use crate::pcap::ReadEvent;
use crate::{Problem, StopFlag};
use record::Measurement;
use std::ops::ControlFlow;

/// Reads whatever `explain` reads.
pub(super) fn read(
    file: &PlannedFile,
    asked: &Asked,
    on_event: &mut dyn FnMut(PlanEvent),
    stop: &StopFlag,
) -> Result<Sourced, Problem> {
    let mut on_read = |event: ReadEvent<'_>| {
        if let ReadEvent::Progress(progress) = event {
            on_event(PlanEvent::Progress(progress.clone()));
        }
        ControlFlow::Continue(())
    };
    let (path, which) = (&file.file, file.connection.as_deref());
    let of = |Transfer { name, measurement }: Transfer, ports: Option<ObservedPorts>| {
        Situation::of_measurement(&name, &measurement, ports, asked)
    };
    if store::is_recording(path) {
        let found = recording::transfers(path, which)?;
        let situations = found.into_iter().map(|(one, service)| {
            let peer = one.measurement.spec.port;
            of(one, service.map(|service| ObservedPorts { service, peer }))
        });
        return Ok(Sourced { situations: flat(situations)?, traffic: None, notes: Vec::new() });
    }
    if explain::is_capture(path) {
        let found = capture::read(path, which, &mut on_read, stop)?;
        let traffic = traffic::shares(&found.capture);
        if found.transfers.count == 0 && (which.is_some() || traffic.is_none()) {
            return Err(capture::without_data(path, &found.transfers.notes));
        }
        let ports = found.service_ports.into_iter();
        let situations = found.transfers.transfers.into_iter().zip(ports).map(|(one, service)| {
            let peer = one.measurement.spec.port;
            of(one, service.map(|service| ObservedPorts { service, peer }))
        });
        return Ok(Sourced {
            situations: flat(situations)?,
            traffic,
            notes: found.transfers.notes,
        });
    }
    let (transfers, notes) = match explain::explain(file, &mut on_read, stop)? {
        Explained::Measurement(measurement) => {
            let notes = measurement.notes.clone();
            (vec![Transfer { name: String::new(), measurement: *measurement }], notes)
        }
        Explained::Transfers(found) => (found.transfers, found.notes),
        // Recordings are read above.
        Explained::Recording(_) => (Vec::new(), Vec::new()),
    };
    let situations = transfers.into_iter().map(|one| {
        let ports = ports_of_ss(&one.measurement);
        of(one, ports)
    });
    Ok(Sourced { situations: flat(situations)?, traffic: None, notes })
}

fn flat(
    situations: impl Iterator<Item = Result<Vec<Situation>, Problem>>,
) -> Result<Vec<Situation>, Problem> {
    Ok(situations.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The ports of a connection that `ss` shows, which names it by both ends.
fn ports_of_ss(measurement: &Measurement) -> Option<ObservedPorts> {
    let tool = measurement.tool.as_ref().filter(|tool| tool.tool == "ss")?;
    let (local, peer) = tool.transfer.split_once(" to ")?;
    let port = |end: &str| end.rsplit_once(':')?.1.parse::<u16>().ok().filter(|port| *port > 0);
    let (local, peer) = (port(local)?, port(peer)?);
    Some(ObservedPorts { service: local.min(peer), peer })
}
