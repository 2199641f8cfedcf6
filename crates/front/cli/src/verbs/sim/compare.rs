//! `longhaul sim compare`: the same flows in the simulator and in a lab.

use super::{FlowArgs, show};
use crate::console::{self, Console};
use crate::failure::{DONE, NOT_VALID, Outcome};
use crate::{inside, stop};
use clap::Args;
use longhaul::sim::{self, CompareRequest};
use record::SimVerdict;
use report::terminal;

const EXAMPLES: &str = "\
Examples:
  longhaul sim compare --link rate=50mbit,rtt=40ms,queue=0.1bdp -t 10
  longhaul sim compare --link rate=100mbit,rtt=20ms --flow cubic --flow bbr --runs 9
  longhaul sim compare --link rate=20mbit,rtt=50ms,loss=0.1% --json

Exit code: 0 if both agree or differ clearly; 3 if the runs cannot tell.";

/// Run flows in the simulator and under this machine's kernel, in turn
///
/// Each run in the simulator is followed by one in a lab, with the same seed of the path. Runs that
/// the machine could not emulate are repeated, and never counted.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompareArgs {
    #[command(flatten)]
    flows: FlowArgs,
    /// Runs of each kind, 1 to 100
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: u32,
    /// Deviation of the goodput that counts as agreement
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = tolerance)]
    within: f64,
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    json: bool,
}

pub(super) fn run(args: &CompareArgs, console: &mut Console) -> Outcome {
    let request =
        CompareRequest { sim: args.flows.request()?, runs: args.runs, tolerance: args.within };
    request.check()?;
    inside::sandbox(|| compare(&request, args.json, console))
}

fn compare(request: &CompareRequest, json: bool, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let mut shown = console.clone();
    let compared = sim::compare(request, &mut |event| show(&event, &mut shown), &stop);
    shown.clear();
    let compared = compared?;
    let text = match json {
        true => console::json(&compared)?,
        false => terminal::sim_comparison(&compared, &console.out),
    };
    console.print(&text);
    Ok(if compared.verdict == SimVerdict::CannotTell { NOT_VALID } else { DONE })
}

/// A share: `10%`, or `0.1`.
fn tolerance(text: &str) -> Result<f64, String> {
    let share = match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.trim().parse(),
    };
    match share {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("give a share above 0 and below 100 %, such as 10%".to_owned()),
    }
}
