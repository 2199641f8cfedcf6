//! `longhaul boost status`: what running boxes carry.

use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Outcome};
use crate::stop;
use clap::Args;
use longhaul::boost::status::{BoostStatus, StatusRequest, status};
use report::terminal;
use std::io::{self, IsTerminal};
use std::time::Duration;

/// Show flows, bytes and CPU time of running boxes, and what was not boosted
///
/// Without URL, the boxes of this user on this host: near, far and run. With URL, boxes anywhere that
/// run with --metrics.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StatusArgs {
    /// Metrics of a box, such as http://192.0.2.1:9201
    #[arg(value_name = "URL")]
    url: Vec<String>,
    /// Show it every second, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Print JSON, with --watch one line for each second
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul boost status
  longhaul boost status --watch
  longhaul boost status http://127.0.0.1:9201 --json

Exit code: 0 if a box answers, else 1.";

/// Time between two readings, and the interval at which an interruption is noticed.
const INTERVAL: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(50);

pub(super) fn run(args: &StatusArgs, console: &mut Console) -> Outcome {
    let request = StatusRequest { urls: args.url.clone() };
    let stop = stop::on_signals();
    let mut found = status(&request, &stop)?;
    if !args.watch {
        let text = match args.json {
            true => console::json(&found)?,
            false => terminal::boost_status(&found, None, &console.out),
        };
        console.print(&text);
        return Ok(if found.boxes.is_empty() { FAILED } else { DONE });
    }
    let mut earlier: Option<BoostStatus> = None;
    while !stop.is_raised() && console.is_open() {
        if args.json {
            console.print(&console::json_line(&found)?);
        } else if io::stdout().is_terminal() && io::stderr().is_terminal() {
            console.frame(&terminal::boost_status(&found, earlier.as_ref(), &console.err));
        } else {
            let text = terminal::boost_status(&found, earlier.as_ref(), &console.out);
            console.print(&format!("{text}\n"));
        }
        for _ in 0..INTERVAL.as_millis() / POLL.as_millis() {
            if stop.is_raised() {
                return Ok(DONE);
            }
            std::thread::sleep(POLL);
        }
        earlier = Some(std::mem::replace(&mut found, status(&request, &stop)?));
    }
    Ok(DONE)
}
