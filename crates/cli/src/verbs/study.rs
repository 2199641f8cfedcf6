//! `longhaul study`: plans of measurement campaigns.

use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use crate::input;
use clap::{Args, Subcommand};
use report::terminal;
use std::path::PathBuf;
use study::Plan;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StudyArgs {
    #[command(subcommand)]
    verb: StudyVerb,
}

const EXAMPLES: &str = "\
Examples:
  longhaul study check window.toml          cells, tests and time of a plan
  longhaul study check window.toml --json

A plan has a question, a path, what varies, and what is sent:
  question = \"Does throughput follow window over round trip?\"
  [path]
  rate = \"100mbit\"
  rtt = \"50ms\"
  [factors]
  window = \"64KiB..1MiB x2\"
  streams = [1, 2, 4]
  [traffic]
  duration = \"5s\"
  [repeats]
  count = 3";

#[derive(Debug, Subcommand)]
enum StudyVerb {
    Check(CheckArgs),
}

/// Check a plan without running it: cells, tests and estimated time
#[derive(Debug, Args)]
struct CheckArgs {
    /// The plan, a TOML file
    plan: PathBuf,
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    json: bool,
}

pub(crate) fn run(args: &StudyArgs, console: &mut Console) -> Outcome {
    match &args.verb {
        StudyVerb::Check(args) => check(args, console),
    }
}

fn check(args: &CheckArgs, console: &mut Console) -> Outcome {
    let name = args.plan.display();
    let text = input::text(&args.plan, input::PLAN)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    let plan = Plan::parse(&text).map_err(|error| Failure::usage(format!("{name}, {error}")))?;
    let report = plan.report();
    let text = if args.json {
        console::json(&report)?
    } else {
        terminal::study_plan(&report, &console.out)
    };
    console.print(&text);
    Ok(DONE)
}
