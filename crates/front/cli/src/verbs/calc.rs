//! `longhaul calc`: calculators for paths, each with its equation.

mod cdn;
mod distance;
mod line;
mod loss;
mod overhead;
mod transfer;
mod udt;
mod wan;
mod window;

use crate::console::{self, Console};
use crate::failure::{DONE, Outcome};
use clap::{Args, Subcommand};
use longhaul::calc::{self, CalcRequest};
use report::terminal;
use units::ByteCount;

/// MSS over an MTU of 1500: IPv4 with TCP timestamps.
const MSS: ByteCount = ByteCount::from_bytes(1448);

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CalcArgs {
    #[command(subcommand)]
    what: What,
    /// Print the result as JSON
    #[arg(long, short = 'J', global = true)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul calc window --rate 100mbit --rtt 173ms  window for a path
  longhaul calc window --window 64KiB --rtt 173ms  throughput of a window
  longhaul calc cubic --rtt 100ms --loss 1% --rate 10gbit
  longhaul calc wan --rate 100mbit --rtt 173ms --loss 0.1% --ratio 3:1
  longhaul calc overhead --rate 2.5gbit            line rate to payload rate
  longhaul calc line 941mbit                       link behind a TCP goodput
  longhaul calc distance Eugene Paris --rtt 163.6ms
  longhaul calc transfer 10GB --rate 1gbit --rtt 100ms --loss 0.01%
  longhaul calc cdn 1MB --rate 100mbit --rtt 170ms --edge-rtt 4ms";

#[derive(Debug, Subcommand)]
enum What {
    Window(window::WindowArgs),
    Scale(window::ScaleArgs),
    Mathis(loss::MathisArgs),
    Pftk(loss::PftkArgs),
    Cubic(loss::CubicArgs),
    Bbr(loss::BbrArgs),
    Wan(wan::WanArgs),
    Overhead(overhead::OverheadArgs),
    Line(line::LineArgs),
    Distance(distance::DistanceArgs),
    Transfer(transfer::TransferArgs),
    Cdn(cdn::CdnArgs),
    Udt(udt::UdtArgs),
}

pub(crate) fn run(args: &CalcArgs, console: &mut Console) -> Outcome {
    let result = calc::run(&request(&args.what))?;
    let text = if args.json {
        console::json(&result)?
    } else {
        terminal::calc_result(&result, &console.out)
    };
    console.print(&text);
    Ok(DONE)
}

fn request(what: &What) -> CalcRequest {
    match what {
        What::Window(args) => args.request(),
        What::Scale(args) => args.request(),
        What::Mathis(args) => args.request(),
        What::Pftk(args) => args.request(),
        What::Cubic(args) => args.request(),
        What::Bbr(args) => args.request(),
        What::Wan(args) => args.request(),
        What::Overhead(args) => args.request(),
        What::Line(args) => args.request(),
        What::Distance(args) => args.request(),
        What::Transfer(args) => args.request(),
        What::Cdn(args) => args.request(),
        What::Udt(args) => args.request(),
    }
}
