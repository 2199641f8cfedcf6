//! The result of `test` and `explain`: a measurement and its finding.

use crate::console::{self, Console};
use crate::failure::{Code, DONE, Failure, NOT_VALID, Outcome};
use crate::inside;
use crate::output_path::OutputPath;
use clap::Args;
use longhaul::explain::page_run;
use longhaul::test::{TestReport, directions};
use record::{Comparison, Decided, Finding, Measurement};
use report::html::Page;
use report::terminal::{self, Rows, Trace};

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
    /// Show each stream, even if more than four
    #[arg(long)]
    each: bool,
}

impl Forms {
    pub(crate) fn rows(&self) -> Rows {
        if self.each { Rows::Each } else { Rows::Brief }
    }
}

/// Explains the measurement, prints the result and writes its page, as requested.
pub(crate) fn print(
    console: &mut Console,
    measurement: &Measurement,
    forms: &Forms,
    notes: &[String],
) -> Outcome {
    let code = print_with(console, measurement, TestReport::new(measurement), forms, notes)?;
    write_page(console, measurement, None, None, forms)?;
    Ok(code)
}

/// Prints the result with its notes.
pub(crate) fn print_with(
    console: &mut Console,
    measurement: &Measurement,
    mut report: TestReport,
    forms: &Forms,
    notes: &[String],
) -> Outcome {
    report.finding = in_this_lab(report.finding, measurement);
    report.reverse = report.reverse.map(|finding| in_this_lab(finding, measurement));
    if forms.json {
        console.print(&console::json(&report)?);
    } else {
        let parts = directions(measurement);
        let style = console.out;
        let traces: Vec<Trace<'_>> =
            parts.iter().map(|(label, measurement)| Trace { label, measurement }).collect();
        let latency = measurement.latency.as_ref();
        let latency =
            latency.map_or(String::new(), |l| format!("\n{}\n", terminal::under_load(l, &style)));
        let compared = report
            .comparison
            .as_ref()
            .map_or(String::new(), |c| terminal::comparison(c, &style) + "\n");
        let link = measurement.path.as_ref().and_then(|path| path.rate_bps);
        let findings = match &report.reverse {
            None => terminal::finding(&report.finding, &style),
            Some(back) => format!(
                "To the server\n{}\nFrom the server\n{}",
                terminal::finding(&report.finding, &style),
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

/// Returns true if nothing at all arrived in a direction.
pub(crate) fn carried_nothing(measurement: &Measurement) -> bool {
    let of = |reverse| measurement.streams.iter().filter(move |stream| stream.reverse == reverse);
    let carried = |reverse| of(reverse).any(|stream| stream.received_bytes > 0);
    [false, true].into_iter().any(|reverse| of(reverse).count() > 0 && !carried(reverse))
}

/// The finding; its next command starts the lab again in which this test runs.
fn in_this_lab(finding: Finding, measurement: &Measurement) -> Finding {
    if measurement.path.is_some() || measurement.tool.is_some() {
        return finding;
    }
    Finding { next: finding.next.map(inside::after_this_lab), ..finding }
}

/// Checks that a result can be written, before the test that it is of.
pub(crate) fn check_writable(file: Option<&std::path::Path>) -> Result<(), Failure> {
    file.map_or(Ok(()), |file| store::check_writable(file).map_err(Failure::work))
}

/// Writes the result's page, if one was requested.
pub(crate) fn write_page(
    console: &mut Console,
    measurement: &Measurement,
    comparison: Option<&Comparison>,
    decision: Option<&Decided>,
    forms: &Forms,
) -> Result<(), Failure> {
    let Some(file) = &forms.html else { return Ok(()) };
    let parts = directions(measurement);
    let explained = |part: &Measurement| in_this_lab(diagnose::explain(part), part);
    let findings: Vec<Finding> = parts.iter().map(|(_, part)| explained(part)).collect();
    let runs = parts.iter().zip(&findings);
    let label = |label| if parts.len() > 1 { label } else { "transfer" };
    let page = Page {
        title: format!("Transfer to {}", measurement.spec.target),
        lead: findings.first().map_or_else(String::new, |finding| finding.sentence.clone()),
        path: measurement.path.as_ref(),
        runs: runs
            .map(|((name, measurement), finding)| page_run(label(*name), measurement, finding))
            .collect(),
        decision,
        comparison,
        ..Page::default()
    };
    console.write("page", file, &report::html::page(&page))
}
