//! The result of `test` and `explain`: a measurement and its finding.

use crate::console::{self, Console};
use crate::failure::{Code, DONE, Failure, NOT_VALID, Outcome};
use crate::inside;
use crate::output_path::OutputPath;
use clap::Args;
use record::{
    CaptureReport, Comparison, Datagrams, Decided, Direction, Finding, LatencyUnderLoad,
    Measurement, PathReport, TestSpec, ToolResult,
};
use report::html::{Page, Run};
use report::terminal::{self, Rows, Trace};
use serde::Serialize;
use units::ByteCount;

/// The version of [`TestReport`] in JSON. Version 2 names limits more precisely: what was
/// `congestion` is `congestion-avoidance` or another limit, and `path-rate` and `loss` have
/// become narrower.
const TEST_SCHEMA: &str = "longhaul.test/2";

/// Output options of a result.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Forms {
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    pub(crate) json: bool,
    /// Write the result to a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<OutputPath>,
    /// Show each stream even above four, not only the sum
    #[arg(long)]
    each: bool,
}

impl Forms {
    pub(crate) fn rows(&self) -> Rows {
        if self.each { Rows::Each } else { Rows::Brief }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct TestReport<'a> {
    schema: &'static str,
    version: &'a str,
    #[serde(flatten)]
    finding: &'a Finding,
    /// What limited the reverse direction, in a bidirectional test.
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
    /// The answer of the second test, with `--decide`.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'a Decided>,
    /// The capture of its packets, with `--pcap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    capture: Option<&'a CaptureReport>,
    /// The other tool whose result it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a ToolResult>,
    notes: &'a [String],
}

/// What a result shows besides the measurement and its finding.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Added<'a> {
    /// The comparison with an earlier result.
    pub(crate) comparison: Option<&'a Comparison>,
    /// The answer of a second test; only JSON shows it here.
    pub(crate) decision: Option<&'a Decided>,
    /// The capture of its packets; only JSON shows it here.
    pub(crate) capture: Option<&'a CaptureReport>,
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
    unsent_limit_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    datagrams: &'a Option<Datagrams>,
}

/// Explains the measurement, prints the result and writes its page, as requested.
pub(crate) fn print(
    console: &mut Console,
    measurement: &Measurement,
    forms: &Forms,
    notes: &[String],
) -> Outcome {
    let code = print_with(console, measurement, &Added::default(), forms, notes)?;
    write_page(console, measurement, &Added::default(), forms)?;
    Ok(code)
}

/// Explains the measurement and prints the result, with what else is known.
pub(crate) fn print_with(
    console: &mut Console,
    measurement: &Measurement,
    added: &Added<'_>,
    forms: &Forms,
    notes: &[String],
) -> Outcome {
    let finding = explained(measurement);
    let parts = parts(measurement);
    let back = parts.get(1).map(|(_, part)| explained(part));
    if forms.json {
        let json = report(measurement, added, &finding, back.as_ref());
        console.print(&console::json(&json)?);
    } else {
        let style = console.out;
        let traces: Vec<Trace<'_>> =
            parts.iter().map(|(label, measurement)| Trace { label, measurement }).collect();
        let latency = measurement.latency.as_ref();
        let latency =
            latency.map_or(String::new(), |l| format!("\n{}\n", terminal::under_load(l, &style)));
        let compared =
            added.comparison.map_or(String::new(), |c| terminal::comparison(c, &style) + "\n");
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
            terminal::totals(measurement, forms.rows(), &style),
            terminal::plot(&traces, link, &style),
            terminal::notes(notes, &style),
        ));
    }
    Ok(code(measurement))
}

/// The exit code of a measurement: whether its path was emulated as configured.
pub(crate) fn code(measurement: &Measurement) -> Code {
    match &measurement.path {
        Some(path) if !path.valid => NOT_VALID,
        _ => DONE,
    }
}

/// Whether nothing at all arrived in a direction.
pub(crate) fn carried_nothing(measurement: &Measurement) -> bool {
    let of = |reverse| measurement.streams.iter().filter(move |stream| stream.reverse == reverse);
    let carried = |reverse| of(reverse).any(|stream| stream.received_bytes > 0);
    [false, true].into_iter().any(|reverse| of(reverse).count() > 0 && !carried(reverse))
}

/// The finding; its next command starts the lab again in which this test runs.
fn explained(measurement: &Measurement) -> Finding {
    let finding = diagnose::explain(measurement);
    if measurement.path.is_some() || measurement.tool.is_some() {
        return finding;
    }
    Finding { next: finding.next.map(inside::after_this_lab), ..finding }
}

/// The directions of a test, with what the plot calls them.
fn parts(measurement: &Measurement) -> Vec<(&'static str, Measurement)> {
    if measurement.spec.direction == Direction::Both {
        let one = |label, reverse| (label, measurement.one_direction(reverse));
        vec![one("sent", false), one("received", true)]
    } else {
        vec![("goodput", measurement.clone())]
    }
}

/// Checks that a result can be written, before the test that it is of.
pub(crate) fn check_writable(file: Option<&std::path::Path>) -> Result<(), Failure> {
    file.map_or(Ok(()), |file| store::check_writable(file).map_err(Failure::work))
}

/// Writes the result's page, if one was requested.
pub(crate) fn write_page(
    console: &mut Console,
    measurement: &Measurement,
    added: &Added<'_>,
    forms: &Forms,
) -> Result<(), Failure> {
    let Some(file) = &forms.html else { return Ok(()) };
    let parts = parts(measurement);
    let findings: Vec<Finding> = parts.iter().map(|(_, part)| explained(part)).collect();
    let runs = parts.iter().zip(&findings);
    let label = |label| if parts.len() > 1 { label } else { "transfer" };
    let page = Page {
        title: format!("Transfer to {}", measurement.spec.target),
        lead: findings.first().map_or_else(String::new, |finding| finding.sentence.clone()),
        path: measurement.path.as_ref(),
        runs: runs
            .map(|((name, measurement), finding)| Run { label: label(*name), measurement, finding })
            .collect(),
        decision: added.decision,
        comparison: added.comparison,
        ..Page::default()
    };
    store::write(file, report::html::page(&page).as_bytes()).map_err(Failure::work)?;
    console.say(&format!("page written to {}", file.display()));
    Ok(())
}

fn report<'a>(
    measurement: &'a Measurement,
    added: &Added<'a>,
    finding: &'a Finding,
    reverse: Option<&'a Finding>,
) -> TestReport<'a> {
    let retransmits = measurement.streams.iter().map(|stream| stream.retransmits);
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
        retransmits: retransmits.sum(),
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
                unsent_limit_bytes: stream.unsent_limit_bytes,
                datagrams: &stream.datagrams,
            })
            .collect(),
        sender_cpu: measurement.sender_cpu,
        sender_core_wait: measurement.sender_core_wait,
        receiver_cpu: measurement.receiver_cpu,
        receiver_core_wait: measurement.receiver_core_wait,
        path: &measurement.path,
        latency: &measurement.latency,
        comparison: added.comparison,
        decision: added.decision,
        capture: added.capture,
        tool: measurement.tool.as_ref(),
        notes: &measurement.notes,
    }
}
