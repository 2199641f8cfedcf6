//! Explains a recording of `longhaul watch --record`.

use super::ExplainArgs;
use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use crate::test_report;
use record::{ConnectionId, Finding, command_line};
use report::terminal::{self, ConnectionSummary};
use report::untrusted;
use serde::Serialize;
use store::RecordedConnection;
use watch::Transfer;

/// The version of [`Explained`] in JSON. Version 2 has the findings of `longhaul.test/2`.
const SCHEMA: &str = "longhaul.explained-recording/2";

/// What `--json` prints.
#[derive(Serialize)]
struct Explained<'a> {
    schema: &'static str,
    version: &'a str,
    started_unix_s: u64,
    interval_s: f64,
    connections: Vec<One<'a>>,
}

#[derive(Serialize)]
struct One<'a> {
    #[serde(flatten)]
    who: &'a ConnectionId,
    from_s: f64,
    to_s: f64,
    bytes: u64,
    sends: bool,
    retransmits: Option<u64>,
    #[serde(flatten)]
    finding: &'a Finding,
}

/// Explains every connection, or the selected one like a test.
pub(super) fn run(args: &ExplainArgs, console: &mut Console) -> Outcome {
    let recording = store::load_recording(&args.file).map_err(Failure::work)?;
    let head = &recording.head;
    let all: Vec<(&RecordedConnection, Transfer)> = recording
        .connections
        .iter()
        .filter_map(|one| Some((one, watch::transfer(&one.who, &one.samples, Some(head))?)))
        .collect();
    if all.is_empty() {
        return Err(Failure::work(format!(
            "{} contains no connection with traffic; record for longer",
            args.file.display()
        )));
    }
    if let Some(which) = &args.connection {
        let (_, transfer) = select(&all, which)?;
        let measurement = &transfer.measurement;
        return test_report::print(console, measurement, &args.forms, &measurement.notes);
    }
    if args.forms.html.is_some() {
        return Err(Failure::usage(
            "--html shows one connection; select it with --connection, as in --connection 1 --html FILE",
        ));
    }
    let text = if args.forms.json {
        let explained = Explained {
            schema: SCHEMA,
            version: &head.version,
            started_unix_s: head.started_unix_s,
            interval_s: head.interval_s,
            connections: all.iter().map(|(one, transfer)| of(one, transfer)).collect(),
        };
        console::json(&explained)?
    } else {
        let rows: Vec<ConnectionSummary<'_>> =
            all.iter().map(|(one, transfer)| row(one, transfer)).collect();
        let words = ["longhaul", "explain", &args.file.to_string_lossy(), "--connection", "1"];
        let next = terminal::next_command(&command_line(words), &console.out);
        format!("{}\n{next}", terminal::recorded_connections(&rows, &console.out))
    };
    console.print(&text);
    Ok(DONE)
}

/// The connection by its number in the table, its id, or its local or remote address.
fn select<'a, 'b>(
    all: &'b [(&'a RecordedConnection, Transfer)],
    which: &str,
) -> Result<&'b (&'a RecordedConnection, Transfer), Failure> {
    let number = which.parse().ok().and_then(|number: usize| all.get(number.checked_sub(1)?));
    let named = |who: &ConnectionId| who.id == which || who.remote == which || who.local == which;
    number.or_else(|| all.iter().find(|(one, _)| named(&one.who))).ok_or_else(|| {
        let which = untrusted::excerpt(which, 60);
        Failure::usage(format!(
            "the recording has no connection '{which}'; give a number from 1 to {}, or HOST:PORT",
            all.len()
        ))
    })
}

fn span(one: &RecordedConnection) -> (f64, f64) {
    let at =
        |sample: Option<&record::ConnectionSample>| sample.map_or(0.0, |sample| sample.sent.t_s);
    (at(one.samples.first()), at(one.samples.last()))
}

fn of<'a>(one: &'a RecordedConnection, transfer: &'a Transfer) -> One<'a> {
    let ((from_s, to_s), stream) = (span(one), transfer.measurement.streams.first());
    One {
        who: &one.who,
        from_s,
        to_s,
        bytes: transfer.measurement.received().bytes(),
        sends: stream.is_some_and(|stream| !stream.reverse),
        retransmits: stream.and_then(|stream| stream.retransmits),
        finding: &transfer.finding,
    }
}

fn row<'a>(one: &'a RecordedConnection, transfer: &'a Transfer) -> ConnectionSummary<'a> {
    let stream = transfer.measurement.streams.first();
    ConnectionSummary {
        who: &one.who,
        seconds: span(one),
        bytes: transfer.measurement.received().bytes(),
        sends: stream.is_some_and(|stream| !stream.reverse),
        retransmits: stream.and_then(|stream| stream.retransmits).unwrap_or(0),
        finding: &transfer.finding,
    }
}
