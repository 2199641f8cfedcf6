//! `longhaul calc`: one question about a path at a time, with its equation.

mod loss;
mod overhead;
mod transfer;
mod udt;
mod wan;
mod window;

use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use clap::{Args, Subcommand};
use model::calc::{CalcError, Sheet};
use report::terminal;
use units::ByteCount;

/// Payload of a full segment over an MTU of 1500: IPv4 with timestamps.
const MSS: ByteCount = ByteCount::from_bytes(1448);

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CalcArgs {
    #[command(subcommand)]
    what: What,
    /// Print JSON instead
    #[arg(long, short = 'J', global = true)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul calc window --rate 100mbit --rtt 173ms         the window that a path takes
  longhaul calc window --window 64KiB --rtt 173ms         the rate that a window gives
  longhaul calc cubic --rtt 100ms --loss 1% --rate 10gbit what loss leaves, what it may be
  longhaul calc wan --rate 100mbit --rtt 173ms --loss 0.1% --ratio 3:1
  longhaul calc overhead --rate 2.5gbit                   from line rate to payload
  longhaul calc transfer 10GB --rate 1gbit --rtt 100ms --loss 0.01%";

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
    Transfer(transfer::TransferArgs),
    Udt(udt::UdtArgs),
}

pub(crate) fn run(args: &CalcArgs, console: &mut Console) -> Outcome {
    let sheet = answer(&args.what).map_err(Failure::usage)?;
    let text = if args.json {
        serde_json::to_string_pretty(&sheet).map_err(Failure::work)? + "\n"
    } else {
        terminal::sheet(&sheet, &console.out)
    };
    console.print(&text);
    Ok(DONE)
}

fn answer(what: &What) -> Result<Sheet, CalcError> {
    match what {
        What::Window(args) => args.sheet(),
        What::Scale(args) => args.sheet(),
        What::Mathis(args) => args.sheet(),
        What::Pftk(args) => args.sheet(),
        What::Cubic(args) => args.sheet(),
        What::Bbr(args) => args.sheet(),
        What::Wan(args) => args.sheet(),
        What::Overhead(args) => args.sheet(),
        What::Transfer(args) => args.sheet(),
        What::Udt(args) => args.sheet(),
    }
}
