//! `longhaul boost`: a pair of boxes that split TCP connections.

mod edge;
mod far;
mod lines;
mod near;
mod pair;
mod plan;
mod run;
mod settings;
mod status;
mod verify;

use crate::console::{self, Console};
use crate::failure::{DONE, Outcome};
use crate::stop;
use clap::{Args, Subcommand};
use longhaul::boost::{BoostDocument, BoostEvent};
use longhaul::{Problem, StopFlag};

/// Accelerate unchanged TCP applications, with a box at each end
///
/// Each connection is split in three: from the application to the near box, between the boxes,
/// and from the far box to the target. Window and congestion control of the long part are
/// those of the boxes. A host that already has large buffers and BBR gains nothing.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BoostArgs {
    #[command(subcommand)]
    verb: BoostVerb,
}

const EXAMPLES: &str = "\
Examples:
  longhaul boost plan --link rate=100mbit,rtt=173ms --window 64KiB
  longhaul boost pair --far far.example --forward 8080:origin.example:80
  longhaul boost far --listen 0.0.0.0:7425 --key-file far.key --allow origin.example:80
  longhaul boost near --far far.example --key-file near.key --forward 8080:origin.example:80
  longhaul boost run --far far.example --key-file near.key -- git clone URL
  longhaul boost run --solo -- curl -O https://example.com/file
  longhaul boost verify --far far.example --key-file near.key -- curl -o x URL
  longhaul boost edge --origin https://origin.example";

#[derive(Debug, Subcommand)]
enum BoostVerb {
    Near(near::NearArgs),
    Far(far::FarArgs),
    Run(run::RunArgs),
    Pair(pair::PairArgs),
    Plan(plan::PlanArgs),
    Verify(verify::VerifyArgs),
    Status(status::StatusArgs),
    Edge(edge::EdgeArgs),
}

pub(crate) fn run(args: &BoostArgs, console: &mut Console) -> Outcome {
    match &args.verb {
        BoostVerb::Near(args) => near::run(args, console),
        BoostVerb::Far(args) => far::run(args, console),
        BoostVerb::Run(args) => run::run(args),
        BoostVerb::Pair(args) => pair::run(args, console),
        BoostVerb::Plan(args) => plan::run(args, console),
        BoostVerb::Verify(args) => verify::run(args, console),
        BoostVerb::Status(args) => status::run(args, console),
        BoostVerb::Edge(args) => edge::run(args, console),
    }
}

/// Runs a box with a log of its events, and prints what it has carried.
fn run_box(
    is_json: bool,
    console: &mut Console,
    serve: impl FnOnce(
        &mut dyn FnMut(BoostEvent),
        &StopFlag,
        &StopFlag,
    ) -> Result<BoostDocument, Problem>,
) -> Outcome {
    let (stop, drain) = stop::for_server();
    let mut log = console.clone();
    let mut on_event = |event: BoostEvent| log.log(&lines::line(&event, is_json));
    let document = serve(&mut on_event, &stop, &drain)?;
    if is_json {
        console.print(&console::json_line(&document)?);
    } else {
        console.print(&lines::summary(&document));
    }
    Ok(DONE)
}
