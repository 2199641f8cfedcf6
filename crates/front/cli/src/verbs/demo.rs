//! `longhaul demo`: measure, explain, tune and verify, inside this machine.

use crate::console::{self, Console};
use crate::failure::{DONE, NOT_VALID, Outcome};
use crate::output_path::OutputPath;
use crate::test_report::check_writable;
use crate::{inside, stop};
use clap::Args;
use longhaul::demo::{self, DemoEvent, DemoRequest, DemoRun};
use longhaul::explain::page_run;
use report::html::Page;
use report::terminal::{self, Trace};
use units::BitRate;

/// Measure, explain, tune and verify one transfer in an emulated lab
///
/// Two hosts in network namespaces, connected by an emulated path of 100 Mbit/s
/// and 173 ms RTT (Germany to Australia). The receiver starts with a window of
/// 64 KiB, the maximum without window scaling. Takes less than a minute. No traffic
/// leaves this machine, and none of its settings change.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    json: bool,
    /// Write the result to a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<OutputPath>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul demo
  longhaul demo --html demo.html
  longhaul demo --json | jq '.before.sentence, .gain'";

pub(crate) fn run(args: &DemoArgs, console: &mut Console) -> Outcome {
    inside::sandbox(|| run_inside(args, console))
}

fn run_inside(args: &DemoArgs, console: &mut Console) -> Outcome {
    check_writable(args.html.as_deref())?;
    let stop = stop::on_signals();
    let request = DemoRequest::default();
    let mut show = Show { console, request: &request, json: args.json, rates: Vec::new() };
    show.introduce();
    let outcome = demo::run(&request, &mut |event| show.event(&event), &stop);
    console.clear();
    let outcome = outcome?;
    let report = &outcome.report;
    if args.json {
        console.print(&console::json(report)?);
    } else {
        let style = console.out;
        let traces = [
            Trace { label: "before", measurement: &outcome.before },
            Trace { label: "after", measurement: &outcome.after },
        ];
        console.print(&format!(
            "\n{}\n{}",
            terminal::plot(&traces, report.path.rate_bps, &style),
            terminal::summary(report, &style)
        ));
    }
    if let Some(file) = &args.html {
        let page = Page {
            title: "One transfer, before and after tuning".to_owned(),
            lead: report.before.sentence.clone(),
            path: Some(&report.path),
            runs: vec![
                page_run("before", &outcome.before, &report.before),
                page_run("after", &outcome.after, &report.after),
            ],
            decision: None,
            plan: &report.plan,
            gain: Some(report.gain),
            ..Page::default()
        };
        console.write("page", file, &report::html::page(&page))?;
    }
    if !report.path.valid {
        crate::console::complain(&format!("not valid: {}", report.path.reasons.join("; ")));
        return Ok(NOT_VALID);
    }
    Ok(DONE)
}

/// Shows progress and results.
struct Show<'a> {
    console: &'a mut Console,
    request: &'a DemoRequest,
    json: bool,
    rates: Vec<BitRate>,
}

impl Show<'_> {
    fn introduce(&mut self) {
        let DemoRequest { rate, rtt, .. } = self.request;
        self.console.say(&format!(
            "One TCP transfer between two hosts in network namespaces, connected by an emulated path of {rate} and {rtt} RTT."
        ));
        self.console.live("building the lab");
    }

    fn event(&mut self, event: &DemoEvent) {
        let style = self.console.err;
        match event {
            DemoEvent::LabReady => {
                let window = self.request.window;
                self.console.live(&format!("limiting the receiver's window to {window}"));
            }
            DemoEvent::Begins(run) => {
                self.rates.clear();
                self.console.step(match run {
                    DemoRun::Before => "1  Measure with the current settings",
                    DemoRun::After => "4  Apply the plan and measure again",
                });
            }
            DemoEvent::Interval { run, to_s, rate } => {
                let length = match run {
                    DemoRun::Before => self.request.before_s,
                    DemoRun::After => self.request.after_s,
                };
                self.rates.push(*rate);
                let line = terminal::progress(*to_s, Some(length), &self.rates, &style);
                self.console.live(&line);
            }
            DemoEvent::Explained(run, finding) => {
                self.console.say(&format!("   {}", finding.throughput_bps));
                self.console.step(match run {
                    DemoRun::Before => "2  Explain",
                    DemoRun::After => "5  Verify",
                });
                self.result(|style| terminal::finding(finding, style));
            }
            DemoEvent::Planned(plan) => {
                self.console.step("3  Plan");
                self.result(|style| terminal::plan(plan, style));
            }
        }
    }

    /// Prints a part of the result, unless it is to be JSON.
    fn result(&mut self, draw: impl FnOnce(&terminal::Style) -> String) {
        if !self.json {
            let style = self.console.out;
            self.console.print(&draw(&style));
        }
    }
}
