//! `longhaul sim`: flows over a path in virtual time.

mod advise;
mod compare;
mod run;

use super::probe_args::seconds;
use crate::console::Console;
use crate::failure::{Failure, Outcome, with_flags};
use clap::{Args, Subcommand};
use longhaul::lab;
use longhaul::sim::{SimEvent, SimPath, SimRequest};
use report::untrusted;
use std::path::PathBuf;

/// Simulate flows over a path, in virtual time
///
/// Nothing is sent and no privilege is needed: a thousand seconds at 10 Gbit/s take less than a
/// minute or two. A result repeats, bit by bit, with its seed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimArgs {
    #[command(subcommand)]
    verb: SimVerb,
}

const EXAMPLES: &str = "\
Examples:
  longhaul sim run --link rate=100mbit,rtt=50ms --flow cubic --flow bbr,start=10s
  longhaul sim compare --link rate=50mbit,rtt=40ms,queue=0.1bdp
  longhaul sim advise --rate 1gbit --rtt 100ms --loss 0.01%";

#[derive(Debug, Subcommand)]
enum SimVerb {
    Run(run::RunArgs),
    Compare(compare::CompareArgs),
    Advise(advise::AdviseArgs),
}

pub(crate) fn run(args: &SimArgs, console: &mut Console) -> Outcome {
    match &args.verb {
        SimVerb::Run(args) => run::run(args, console),
        SimVerb::Compare(args) => compare::run(args, console),
        SimVerb::Advise(args) => advise::run(args, console),
    }
}

/// The flows and their path.
#[derive(Debug, Args)]
struct FlowArgs {
    /// Lab plan (TOML) with two hosts and one link
    ///
    /// Its programs are flows: iperf3 -c, longhaul test. Those of --flow replace them.
    #[arg(value_name = "PLAN.toml", conflicts_with = "link")]
    plan: Option<PathBuf>,
    /// Path: a name (see `lab paths`), KEY=VALUE,… or both
    #[arg(long, value_name = "PATH", value_parser = parse_link)]
    link: Option<String>,
    /// Flows: CONTROL or 4xCONTROL, then ,KEY=VALUE…, repeatable [default: cubic]
    ///
    /// Keys: start=30s, stop=90s, rate=10mbit (of the application), bytes=100MB,
    /// pacing=50mbit, window=64KiB (of the receiver), delay=50ms (beside the path's), ecn=yes.
    /// psockets:8 is one flow over 8 Reno connections; xcp needs queue=xcp.
    #[arg(long = "flow", value_name = "FLOWS")]
    flows: Vec<String>,
    /// Seconds to simulate [default: the plan's, else 30]
    #[arg(long, short, value_name = "SECONDS", value_parser = seconds)]
    time: Option<f64>,
    /// Seed of the random numbers [default: the path's, else 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl FlowArgs {
    fn request(&self) -> Result<SimRequest, Failure> {
        let path = match (&self.plan, &self.link) {
            (Some(file), _) => {
                let name = file.display().to_string();
                let text = longhaul::input::plan(file)
                    .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
                SimPath::Plan { file: name, text }
            }
            (None, link) => SimPath::Link(link.clone().unwrap_or_default()),
        };
        let (flows, seconds, seed) = (self.flows.clone(), self.time, self.seed);
        Ok(SimRequest { path, flows, seconds, seed, control: None })
    }
}

/// Checks a path, reading the files that it names.
fn parse_link(text: &str) -> Result<String, String> {
    lab::parse_path(text).map_err(|problem| with_flags(&problem.message))?;
    Ok(text.to_owned())
}

/// Shows the progress on a live line.
fn show(event: &SimEvent, console: &mut Console) {
    match event {
        SimEvent::Started { packets: Some(packets), memory } => {
            console.live(&format!("up to {packets} packets, {memory} of memory"));
        }
        SimEvent::Started { packets: None, .. } => {}
        SimEvent::Simulated { at_s, of_s, packets } => {
            console.live(&format!("{at_s:.1} of {of_s} s simulated, {packets} packets"));
        }
        SimEvent::Run { number, of, what } => {
            console.live(&format!("run {number} of {of}: {}", untrusted::clean(what)));
        }
        SimEvent::NotValid { seed, reason } => {
            let reason = untrusted::clean(reason);
            console.say(&format!("lab run with seed {seed} is not valid, repeated: {reason}"));
        }
    }
}
