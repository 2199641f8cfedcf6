//! `longhaul sim run`: flows over a path, simulated once.

use super::{FlowArgs, show};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::output_path::OutputPath;
use crate::stop;
use crate::test_report::check_writable;
use clap::Args;
use longhaul::explain::page_run;
use longhaul::sim::{self, SimRequest, SimResult};
use record::SimEnd;
use report::html::{Page, SimPage, sim_page};
use report::terminal;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  longhaul sim run --link rate=100mbit,rtt=50ms,queue=1bdp
  longhaul sim run --link rate=1gbit,rtt=20ms --flow 4xcubic --flow bbr,start=30s -t 120
  longhaul sim run --link geo --flow cubic,bytes=100MB --flow reno,rate=1mbit
  longhaul sim run --link rate=10gbit,rtt=100ms -t 1000 -o run.json
  longhaul sim run --link rate=50mbit,rtt=40ms --control ./aimd --flow own --flow cubic
  longhaul explain run.json

`longhaul lab run --help` lists the keys of --link.";

/// Simulate flows, and show the share of each and what limits it
///
/// Data goes from the client to the server of the path. Flows that start without a stop last
/// until the end. Ctrl-C ends the simulation; what was simulated until then is shown.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RunArgs {
    #[command(flatten)]
    flows: FlowArgs,
    /// Program that controls the flows named own (see longhaul_control.h)
    #[arg(long, value_name = "PROGRAM")]
    control: Option<PathBuf>,
    /// Save the measurement with every sample, for `explain`
    #[arg(long, short = 'o', value_name = "FILE")]
    save: Option<OutputPath>,
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    json: bool,
    /// Write the result to a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<OutputPath>,
}

pub(super) fn run(args: &RunArgs, console: &mut Console) -> Outcome {
    let request = SimRequest { control: args.control.clone(), ..args.flows.request()? };
    request.check()?;
    check_writable(args.save.as_deref())?;
    check_writable(args.html.as_deref())?;
    let stop = stop::on_signals();
    let mut shown = console.clone();
    let result = sim::run(&request, &mut |event| show(&event, &mut shown), &stop);
    shown.clear();
    let result = result?;
    let text = match args.json {
        true => console::json(&result)?,
        false => terminal::sim(&result.report, &console.out),
    };
    console.print(&text);
    save(args, &result, console)?;
    Ok(if result.report.ended == SimEnd::Complete { DONE } else { FAILED })
}

fn save(args: &RunArgs, result: &SimResult, console: &mut Console) -> Result<(), Failure> {
    let SimResult { report, measurement, trace } = result;
    if let Some(file) = &args.save {
        store::save(file, measurement).map_err(Failure::work)?;
        console.say(&format!("measurement saved to {}", file.display()));
    }
    let Some(file) = &args.html else { return Ok(()) };
    let page = Page {
        title: "Simulated flows".to_owned(),
        lead: report.finding.sentence.clone(),
        path: measurement.path.as_ref(),
        runs: vec![page_run("simulation", measurement, &report.finding)],
        ..Page::default()
    };
    console.write("page", file, &sim_page(&SimPage { page, report, trace }))
}
