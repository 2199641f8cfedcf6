//! A measurement and what was found, as `test` and `explain` give them.

use crate::console::Console;
use crate::failure::{Failure, Outcome};
use clap::Args;
use record::{
    Comparison, Datagrams, Direction, Finding, LatencyUnderLoad, Measurement, PathReport, TestSpec,
};
use report::html::{Page, Run};
use report::terminal::{self, Trace};
use serde::Serialize;
use std::path::PathBuf;
use units::ByteCount;

/// The version of [`TestReport`] in JSON.
const TEST_SCHEMA: &str = "longhaul.test/1";

/// Ways to give a verdict.
#[derive(Debug, Args)]
pub(crate) struct Forms {
    /// Print the result as JSON instead: throughput_bps, limit, shares, sentence and more
    #[arg(long, short = 'J')]
    pub(crate) json: bool,
    /// Write the result as one self-contained page, curves and all
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct TestReport<'a> {
    schema: &'static str,
    version: &'a str,
    #[serde(flatten)]
    finding: &'a Finding,
    /// What limited the other direction, of a test in both.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse: Option<&'a Finding>,
    started_unix_s: u64,
    peer: &'a str,
    spec: &'a TestSpec,
    received_bytes: ByteCount,
    seconds: f64,
    retransmits: Option<u64>,
    streams: Vec<StreamTotal<'a>>,
    sender_cpu: Option<f64>,
    sender_core_wait: Option<f64>,
    receiver_cpu: Option<f64>,
    receiver_core_wait: Option<f64>,
    path: &'a Option<PathReport>,
    latency: &'a Option<LatencyUnderLoad>,
    comparison: Option<&'a Comparison>,
    notes: &'a [String],
}

/// One stream without its samples.
#[derive(Serialize)]
struct StreamTotal<'a> {
    id: u32,
    reverse: bool,
    congestion: &'a Option<String>,
    sent_bytes: u64,
    received_bytes: u64,
    sent_seconds: f64,
    received_seconds: f64,
    retransmits: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    datagrams: &'a Option<Datagrams>,
}

/// Explains the measurement and gives the verdict in the forms asked.
pub(crate) fn give(
    console: &mut Console,
    measurement: &Measurement,
    forms: &Forms,
    notes: &[String],
) -> Outcome {
    compared(console, measurement, None, forms, notes)
}

/// The same, beside an earlier result.
pub(crate) fn compared(
    console: &mut Console,
    measurement: &Measurement,
    comparison: Option<&Comparison>,
    forms: &Forms,
    notes: &[String],
) -> Outcome {
    let finding = diagnose::explain(measurement);
    let both = measurement.spec.direction == Direction::Both;
    let parts: Vec<(&str, Measurement)> = if both {
        vec![("sent", measurement.one_way(false)), ("received", measurement.one_way(true))]
    } else {
        vec![("goodput", measurement.clone())]
    };
    let back = parts.get(1).map(|(_, part)| diagnose::explain(part));
    if forms.json {
        let json = report(measurement, comparison, &finding, back.as_ref());
        let json = serde_json::to_string_pretty(&json);
        console.print(&(json.map_err(Failure::work)? + "\n"));
    } else {
        let style = console.out;
        let traces: Vec<Trace<'_>> =
            parts.iter().map(|(label, measurement)| Trace { label, measurement }).collect();
        let latency = measurement.latency.as_ref();
        let latency =
            latency.map_or(String::new(), |l| format!("\n{}\n", terminal::under_load(l, &style)));
        let compared = comparison.map_or(String::new(), |c| terminal::comparison(c, &style) + "\n");
        let link = measurement.path.as_ref().and_then(|path| path.rate_bps);
        let findings = match &back {
            None => terminal::finding(&finding, &style),
            Some(back) => format!(
                "To the server\n{}\nFrom the server\n{}",
                terminal::finding(&finding, &style),
                terminal::finding(back, &style),
            ),
        };
        console.print(&format!(
            "\n{}\n{}\n{findings}{latency}{compared}{}",
            terminal::totals(measurement, &style),
            terminal::plot(&traces, link, &style),
            terminal::notes(notes, &style),
        ));
    }
    if let Some(file) = &forms.html {
        let spec = &measurement.spec;
        let page = Page {
            title: format!("Transfer to {}", spec.target),
            lead: finding.sentence.clone(),
            path: measurement.path.as_ref(),
            runs: match (&parts[..], &back) {
                ([(_, there), (_, from)], Some(back)) => vec![
                    Run { label: "sent", measurement: there, finding: &finding },
                    Run { label: "received", measurement: from, finding: back },
                ],
                _ => vec![Run { label: "transfer", measurement, finding: &finding }],
            },
            plan: &[],
            gain: None,
        };
        store::write(file, report::html::page(&page).as_bytes()).map_err(Failure::work)?;
        console.say(&format!("page written to {}", file.display()));
    }
    Ok(match &measurement.path {
        Some(path) if !path.valid => crate::failure::NOT_VALID,
        _ => crate::failure::DONE,
    })
}

fn report<'a>(
    measurement: &'a Measurement,
    comparison: Option<&'a Comparison>,
    finding: &'a Finding,
    reverse: Option<&'a Finding>,
) -> TestReport<'a> {
    let again = measurement.streams.iter().map(|stream| stream.retransmits);
    TestReport {
        schema: TEST_SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        finding,
        reverse,
        started_unix_s: measurement.started_unix_s,
        peer: &measurement.peer,
        spec: &measurement.spec,
        received_bytes: measurement.received(),
        seconds: measurement.seconds(),
        retransmits: again.sum(),
        streams: measurement
            .streams
            .iter()
            .map(|stream| StreamTotal {
                id: stream.id,
                reverse: stream.reverse,
                congestion: &stream.congestion,
                sent_bytes: stream.sent_bytes,
                received_bytes: stream.received_bytes,
                sent_seconds: stream.sent_seconds,
                received_seconds: stream.received_seconds,
                retransmits: stream.retransmits,
                datagrams: &stream.datagrams,
            })
            .collect(),
        sender_cpu: measurement.sender_cpu,
        sender_core_wait: measurement.sender_core_wait,
        receiver_cpu: measurement.receiver_cpu,
        receiver_core_wait: measurement.receiver_core_wait,
        path: &measurement.path,
        latency: &measurement.latency,
        comparison,
        notes: &measurement.notes,
    }
}
