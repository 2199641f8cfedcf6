//! The transfers of a file.

use super::situation::Situation;
use super::{PlanEvent, PlannedFile, Sourced, traffic};
use crate::explain::{self, Explained, Transfer, capture, recording};
use crate::pcap::ReadEvent;
use crate::{Problem, StopFlag};
use std::ops::ControlFlow;
use units::BitRate;

/// Reads whatever `explain` reads.
pub(super) fn read(
    file: &PlannedFile,
    rate: Option<BitRate>,
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
    let of = |Transfer { name, measurement }: Transfer, port: Option<u16>| {
        Situation::of_transfer(name, &measurement, port, rate)
    };
    if store::is_recording(path) {
        let found = recording::transfers(path, which)?;
        let situations = found.into_iter().map(|(one, port)| of(one, port)).collect();
        return Ok(Sourced { situations, traffic: None, notes: Vec::new() });
    }
    if explain::is_capture(path) {
        let found = capture::read(path, which, &mut on_read, stop)?;
        let ports = found.service_ports.into_iter();
        let situations =
            found.transfers.transfers.into_iter().zip(ports).map(|(one, port)| of(one, port));
        return Ok(Sourced {
            situations: situations.collect(),
            traffic: traffic::shares(&found.capture.conversations),
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
    let situations = transfers.into_iter().map(|one| of(one, None)).collect();
    Ok(Sourced { situations, traffic: None, notes })
}
