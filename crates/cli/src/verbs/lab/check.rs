//! `longhaul lab check`: what this machine makes of a path.

use super::parse_path;
use super::stage;
use crate::console::Console;
use crate::failure::{DONE, Failure, NOT_VALID, Outcome};
use crate::{inside, stop};
use clap::Args;
use lab::{Lab, Options};
use record::PathReport;
use report::terminal;
use std::time::Duration;
use topology::{PathSpec, Plan};

/// Measure an emulated path by itself, before you trust it
///
/// Two hosts, the path between them, and datagrams that fill it for some
/// seconds each way: rate, idle round trip, loss, and how late packets were
/// released, each asked and achieved.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArgs {
    /// The path: a name (`longhaul lab paths`), KEY=VALUE,…, or both
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    link: PathSpec,
    /// Spend a core on accuracy: the emulator never sleeps
    #[arg(long)]
    accurate: bool,
    /// Seconds to fill the path for, each way
    #[arg(long, short = 't', value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    seconds: Duration,
    /// Print the certificate as JSON instead
    #[arg(long, short = 'J')]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul lab check --link rate=1gbit,rtt=50ms
  longhaul lab check --link geo --accurate
  longhaul lab check --link rate=10gbit,rtt=100ms,loss=0.1% --json | jq '.valid, .achieved'

Exit code: 0; 3 where this machine cannot carry the path.";

fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "write seconds from 0.1 to 3600".to_owned();
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    if !(0.1..=3600.0).contains(&seconds) {
        return Err(wrong());
    }
    Ok(Duration::from_secs_f64(seconds))
}

pub(super) fn run(args: &CheckArgs, console: &mut Console) -> Outcome {
    inside::a_world(|| run_inside(args, console))
}

fn run_inside(args: &CheckArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let plan = Plan::pair(args.link.clone(), "cubic", &[], false);
    console.live("building the lab and measuring the idle path");
    let lab = Lab::start(&plan, Options { accurate: args.accurate, ..Options::default() })
        .map_err(Failure::usage)?;
    console.live(&format!("filling the path for {:.1} s each way", args.seconds.as_secs_f64()));
    lab::check::fill(&lab, args.seconds, &|| stop.is_raised()).map_err(Failure::work)?;
    console.clear();
    let report = lab.finish().map_err(Failure::work)?.into_path();
    if stop.is_raised() {
        return Err(Failure::work("interrupted"));
    }
    if args.json {
        let json = serde_json::to_string_pretty(&report).map_err(Failure::work)?;
        console.print(&(json + "\n"));
    } else {
        console.print(&table(&report));
        console.print(&terminal::path(&report, &console.out.clone()));
        console.say(&format!("lab: {}", stage::in_one_line(&report)));
    }
    Ok(if report.valid { DONE } else { NOT_VALID })
}

/// Asked and achieved, a line each.
fn table(report: &PathReport) -> String {
    let did = &report.achieved;
    let none = || "-".to_owned();
    let ms = |value: f64| format!("{value:.2} ms");
    let percent = |share: f64| format!("{:.4} %", share * 100.0);
    let lateness = did.lateness_us;
    let rows = [
        (
            "rate",
            report.rate_bps.map_or_else(|| "unlimited".to_owned(), |rate| rate.to_string()),
            did.rate_bps.map_or_else(none, |rate| rate.to_string()),
        ),
        ("idle round trip", ms(report.rtt.millis_f64()), did.idle_rtt_ms.map_or_else(none, ms)),
        ("loss", did.loss_expected.map_or_else(none, percent), did.loss.map_or_else(none, percent)),
        ("lateness, median", none(), format!("{} µs", lateness.p50)),
        ("lateness, 99 %", none(), format!("{} µs", lateness.p99)),
        ("lateness, worst", none(), format!("{} µs", lateness.max)),
        ("lost unasked", "0".to_owned(), did.drops.unasked.to_string()),
        ("CPU of its busiest thread", none(), format!("{:.0} %", report.cpu * 100.0)),
    ];
    let mut text = format!("{:27}{:>16}{:>16}\n", "", "asked", "achieved");
    for (what, asked, achieved) in rows {
        text += &format!("{what:27}{asked:>16}{achieved:>16}\n");
    }
    text
}
