//! `longhaul lab check`: how accurately this machine emulates a path.

use super::parse_link;
use super::stage;
use crate::console::{self, Console};
use crate::failure::{DONE, NOT_VALID, Outcome};
use crate::{inside, stop};
use clap::Args;
use longhaul::lab::DriverChoice;
use longhaul::lab::check::{self, LabCheckEvent, LabCheckRequest};
use record::{PathReport, RequestedPath};
use report::terminal;
use std::time::Duration;
use units::percent_with;

/// Measure how accurately this machine emulates a path
///
/// Starts two hosts and saturates the path between them with UDP in each
/// direction. Compares the configured rate, idle RTT and loss with the measured
/// ones, and reports how late packets were released.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArgs {
    /// Path: a name (see `lab paths`), KEY=VALUE,… or both
    #[arg(long, value_name = "PATH", value_parser = parse_link)]
    link: String,
    /// Busy-wait on one CPU core for lower timing error
    #[arg(long)]
    accurate: bool,
    /// Packet driver: auto, tun, nfqueue
    #[arg(long, value_name = "DRIVER")]
    driver: Option<DriverChoice>,
    /// Seconds of load in each direction
    #[arg(long, short = 't', value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    seconds: Duration,
    /// Print the report as JSON
    #[arg(long, short = 'J')]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul lab check --link rate=1gbit,rtt=50ms
  longhaul lab check --link geo --accurate
  longhaul lab check --link rate=10gbit,rtt=100ms -J | jq '.valid, .achieved'

Exit code: 0 if valid; 3 if this machine cannot emulate the path.";

fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "give 0.1 to 3600 seconds".to_owned();
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    if !(0.1..=3600.0).contains(&seconds) {
        return Err(wrong());
    }
    Ok(Duration::from_secs_f64(seconds))
}

pub(super) fn run(args: &CheckArgs, console: &mut Console) -> Outcome {
    inside::sandbox(|| run_inside(args, console))
}

fn run_inside(args: &CheckArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let (link, load) = (args.link.clone(), args.seconds);
    let CheckArgs { accurate, driver, .. } = *args;
    let request = LabCheckRequest { link, accurate, driver, load };
    let mut show = |event| match event {
        LabCheckEvent::Idle => console.live("starting the lab and measuring the idle RTT"),
        LabCheckEvent::Load { seconds } => {
            console.live(&format!("saturating the path for {seconds:.1} s in each direction"));
        }
    };
    let report = check::run(&request, &mut show, &stop);
    console.clear();
    let report = report?;
    if args.json {
        console.print(&console::json(&report)?);
    } else {
        console.print(&table(&report));
        let RequestedPath { driver, driver_reason, .. } = &report.asked;
        console.print(&format!("driver: {} ({driver_reason})\n", driver.name()));
        console.print(&terminal::path(&report, &console.out.clone()));
        console.say(&format!("lab: {}", stage::in_one_line(&report)));
    }
    Ok(if report.valid { DONE } else { NOT_VALID })
}

/// Configured and measured values, a line each.
fn table(report: &PathReport) -> String {
    let did = &report.achieved;
    let none = || "-".to_owned();
    let idle = report::idle_rtt(did, 2).unwrap_or_else(none);
    let configured_idle = report.asked.mean_rtt_ms;
    let is_mean = (configured_idle - report.rtt.millis_f64()).abs() > 1e-6;
    let idle_name = match did.idle_rtt_error_ms {
        Some(_) => "idle RTT, mean ± std error",
        None if is_mean => "idle RTT, mean",
        None => "idle RTT",
    };
    // The configured ratio as everywhere else.
    let loss_is_constant = did.loss_expected == Some(report.loss.fraction());
    let expected = |share| match loss_is_constant {
        true => report.loss.to_string(),
        false => percent_with(share, 4),
    };
    let percent = |share: f64| percent_with(share, 4);
    let lateness = did.lateness_us;
    let rows = [
        (
            "rate",
            report.rate_bps.map_or_else(|| "unlimited".to_owned(), |rate| rate.to_string()),
            did.rate_bps.map_or_else(none, |rate| rate.to_string()),
        ),
        (idle_name, format!("{configured_idle:.2} ms"), idle),
        (
            "loss",
            did.loss_expected.map_or_else(none, expected),
            did.loss.map_or_else(none, percent),
        ),
        ("release delay, median", none(), format!("{} µs", lateness.p50)),
        ("release delay, 99 %", none(), format!("{} µs", lateness.p99)),
        ("release delay, max", none(), format!("{} µs", lateness.max)),
        ("unintended losses", "0".to_owned(), did.drops.unintended.to_string()),
        ("CPU, busiest thread", none(), units::percent(report.cpu)),
    ];
    let mut text = format!("{:27}{:>16}{:>16}\n", "", "configured", "measured");
    for (what, asked, achieved) in rows {
        text += &format!("{what:27}{asked:>16}{achieved:>16}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Achieved;

    /// The configured and the measured value of a row.
    fn row(report: &PathReport, name: &str) -> String {
        let text = table(report);
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or(&text);
        line[name.len()..].split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_configured_loss_is_printed_as_everywhere_else() {
        let mut report = PathReport { loss: "3.226%".parse().unwrap(), ..PathReport::default() };
        report.achieved.loss = Some(0.034_567);
        report.achieved.loss_expected = Some(report.loss.fraction());
        assert_eq!(row(&report, "loss"), format!("{} 3.457 %", report.loss));
        // Of directions that differ.
        report.achieved.loss_expected = Some(0.016_129_03);
        assert_eq!(row(&report, "loss"), "1.613 % 3.457 %");
    }

    #[test]
    fn jitter_compares_means() {
        let mut report = PathReport { rtt: "40ms".parse().unwrap(), ..PathReport::default() };
        report.asked.mean_rtt_ms = 43.333;
        report.achieved =
            Achieved { idle_rtt_ms: Some(42.1), idle_rtt_error_ms: Some(2.04), ..report.achieved };
        assert_eq!(row(&report, "idle RTT, mean ± std error"), "43.33 ms 42.10 ± 2.04 ms");
        report.asked.mean_rtt_ms = 40.0;
        report.achieved.idle_rtt_error_ms = None;
        assert_eq!(row(&report, "idle RTT"), "40.00 ms 42.10 ms");
    }
}
