//! What `longhaul watch --record` kept, explained.

use super::ExplainArgs;
use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use crate::verdict;
use record::{ConnectionId, Finding};
use report::terminal::{self, Watched};
use serde::Serialize;
use store::Recorded;
use watch::Transfer;

/// The version of [`Explained`] in JSON.
const SCHEMA: &str = "longhaul.explained-recording/1";

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

/// Explains every connection, or the one asked for as if it had been a test.
pub(super) fn run(args: &ExplainArgs, console: &mut Console) -> Outcome {
    let recording = store::load_recording(&args.file).map_err(Failure::work)?;
    let head = &recording.head;
    let all: Vec<(&Recorded, Transfer)> = recording
        .connections
        .iter()
        .filter_map(|one| Some((one, watch::transfer(&one.who, &one.seen, Some(head))?)))
        .collect();
    if all.is_empty() {
        return Err(Failure::work(format!(
            "{} holds no connection that carried anything; record for longer, or with traffic",
            args.file.display()
        )));
    }
    if let Some(which) = &args.connection {
        let (_, transfer) = chosen(&all, which)?;
        let measurement = &transfer.measurement;
        return verdict::give(console, measurement, &args.forms, &measurement.notes);
    }
    if args.forms.html.is_some() {
        return Err(Failure::usage(
            "a page shows one connection: choose it, as in --connection 1 --html FILE",
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
        serde_json::to_string_pretty(&explained).map_err(Failure::work)? + "\n"
    } else {
        let rows: Vec<Watched<'_>> = all.iter().map(|(one, transfer)| row(one, transfer)).collect();
        terminal::watched(&rows, &console.out)
    };
    console.print(&text);
    Ok(DONE)
}

/// By its number in the table, its id, or one of its ends.
fn chosen<'a, 'b>(
    all: &'b [(&'a Recorded, Transfer)],
    which: &str,
) -> Result<&'b (&'a Recorded, Transfer), Failure> {
    let number = which.parse().ok().and_then(|number: usize| all.get(number.checked_sub(1)?));
    let named = |who: &ConnectionId| who.id == which || who.remote == which || who.local == which;
    number.or_else(|| all.iter().find(|(one, _)| named(&one.who))).ok_or_else(|| {
        let which: String = which.chars().filter(|c| !c.is_control()).take(60).collect();
        Failure::usage(format!(
            "there is no connection '{which}' in it: give a number from 1 to {}, or HOST:PORT",
            all.len()
        ))
    })
}

fn span(one: &Recorded) -> (f64, f64) {
    let at = |seen: Option<&record::Seen>| seen.map_or(0.0, |seen| seen.sent.t_s);
    (at(one.seen.first()), at(one.seen.last()))
}

fn of<'a>(one: &'a Recorded, transfer: &'a Transfer) -> One<'a> {
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

fn row<'a>(one: &'a Recorded, transfer: &'a Transfer) -> Watched<'a> {
    let stream = transfer.measurement.streams.first();
    Watched {
        who: &one.who,
        seconds: span(one),
        bytes: transfer.measurement.received().bytes(),
        sends: stream.is_some_and(|stream| !stream.reverse),
        retransmits: stream.and_then(|stream| stream.retransmits).unwrap_or(0),
        finding: &transfer.finding,
    }
}
