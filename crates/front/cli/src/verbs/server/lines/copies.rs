//! The lines of copies.

use super::{Form, Log, stamped};
use crate::failure::with_flags;
use ::copy::Event;
use serde_json::{Value, json};
use std::time::Instant;
use units::ByteCount;

impl Log {
    /// The lines of a copy's event, preceded by a count of suppressed ones.
    pub(in crate::verbs::server) fn copy_lines(
        &mut self,
        event: &Event,
        now: Instant,
    ) -> Vec<String> {
        let mut lines = self.suppressed(now, false);
        let limit = match event {
            Event::Refused { .. } => &mut self.limits.connections,
            Event::Began { .. } | Event::Ended { .. } => &mut self.limits.tests,
        };
        if limit.admits(now, 1) {
            lines.push(match self.form {
                Form::Text { .. } => text(event),
                Form::Json => stamped(document(event)),
            });
        }
        lines
    }
}

fn text(event: &Event) -> String {
    match event {
        Event::Began { from, what } => format!("copy for {from}: {what}"),
        Event::Ended { from, figures, error } => {
            let bytes = ByteCount::from_bytes(figures.bytes);
            let end = match error {
                None => "complete".to_owned(),
                Some(error) => error.to_string(),
            };
            format!("copy for {from}: {} entries, {bytes}: {end}", figures.entries)
        }
        Event::Refused { from, reason } => format!("copy for {from} refused: {reason}"),
    }
}

fn document(event: &Event) -> Value {
    match event {
        Event::Began { from, what } => {
            json!({ "event": "copy_started", "client": from, "request": what })
        }
        Event::Ended { from, figures, error } => json!({
            "event": "copy_finished",
            "client": from,
            "entries": figures.entries,
            "bytes": figures.bytes,
            "problems": figures.problems,
            "error": error.as_ref().map(|error| with_flags(&error.to_string())),
        }),
        Event::Refused { from, reason } => {
            json!({ "event": "copy_refused", "client": from, "reason": with_flags(reason) })
        }
    }
}
