//! `longhaul sim advise`: which congestion control a path is best used with.

use super::super::probe_args::seconds;
use super::{parse_link, show};
use crate::console::{self, Console};
use crate::failure::{DONE, Outcome};
use crate::output_path::OutputPath;
use crate::stop;
use crate::test_report::check_writable;
use clap::Args;
use longhaul::sim::{self, AdviseRequest};
use report::html::sim_advice_page;
use report::terminal;
use std::fmt::Display;
use std::str::FromStr;
use units::{BitRate, LossRatio, Rtt};

const EXAMPLES: &str = "\
Examples:
  longhaul sim advise --rate 100mbit --rtt 173ms
  longhaul sim advise --rate 1gbit --rtt 100ms --loss 0.01% --queue 0.1bdp
  longhaul sim advise --rate 50mbit --rtt 40ms --aqm fq_codel
  longhaul sim advise --link geo --json --html advice.html";

/// Compare congestion controls over a path, and name the best one
///
/// Each control is simulated alone and beside a CUBIC flow, several times. The answer has its reason,
/// and its price: the queueing delay, and the harm to the CUBIC flow.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct AdviseArgs {
    /// Bottleneck rate, with unit: 100mbit, 2.5gbit
    #[arg(long, value_name = "RATE", required_unless_present = "link")]
    #[arg(value_parser = written::<BitRate>)]
    rate: Option<String>,
    /// Round-trip time of the idle path: 173ms, 250us
    #[arg(long, value_name = "TIME", required_unless_present = "link")]
    #[arg(value_parser = written::<Rtt>)]
    rtt: Option<String>,
    /// Random loss of data packets: 0.01%
    #[arg(long, value_name = "SHARE", value_parser = written::<LossRatio>)]
    loss: Option<String>,
    /// Size of the queue: 0.1bdp, 100p, 1MB, 50ms [default: 1bdp]
    #[arg(long, value_name = "SIZE")]
    queue: Option<String>,
    /// Queue discipline: codel, fq_codel, pie, red, dualpi2
    #[arg(long, value_name = "NAME")]
    aqm: Option<String>,
    /// Path instead: a name (see `lab paths`), KEY=VALUE,… or both
    #[arg(long, value_name = "PATH", value_parser = parse_link)]
    #[arg(conflicts_with_all = ["rate", "rtt", "loss", "queue", "aqm"])]
    link: Option<String>,
    /// Seconds of each run [default: 300 round trips, 20 to 120]
    #[arg(long, short, value_name = "SECONDS", value_parser = seconds)]
    time: Option<f64>,
    /// Runs with each control, 1 to 50
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: u32,
    /// Seed of the first run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    json: bool,
    /// Write the plots and the figures to a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<OutputPath>,
}

impl AdviseArgs {
    fn link(&self) -> String {
        if let Some(link) = &self.link {
            return link.clone();
        }
        let given = [("rate", &self.rate), ("rtt", &self.rtt), ("loss", &self.loss)];
        let given = given.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
        let mut keys: Vec<String> = given.map(|(key, value)| format!("{key}={value}")).collect();
        match (&self.aqm, &self.queue) {
            (Some(aqm), size) => {
                keys.push(format!("queue={aqm}"));
                keys.extend(size.as_ref().map(|size| format!("limit={size}")));
            }
            (None, Some(size)) => keys.push(format!("queue={size}")),
            (None, None) => {}
        }
        keys.join(",")
    }
}

/// Checks a value, and keeps it as written: the path shows it again.
fn written<T: FromStr<Err: Display>>(text: &str) -> Result<String, String> {
    text.parse::<T>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

pub(super) fn run(args: &AdviseArgs, console: &mut Console) -> Outcome {
    let request =
        AdviseRequest { link: args.link(), seconds: args.time, runs: args.runs, seed: args.seed };
    request.check()?;
    check_writable(args.html.as_deref())?;
    let stop = stop::on_signals();
    let mut shown = console.clone();
    let advice = sim::advise(&request, &mut |event| show(&event, &mut shown), &stop);
    shown.clear();
    let advice = advice?;
    let text = match args.json {
        true => console::json(&advice)?,
        false => terminal::sim_advice(&advice, &console.out),
    };
    console.print(&text);
    if let Some(file) = &args.html {
        console.write("page", file, &sim_advice_page(&advice))?;
    }
    Ok(DONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_values_as_written() {
        let text = |text: &str| Some(text.to_owned());
        let args = AdviseArgs {
            rate: text("1.5gbit"),
            rtt: text("173ms"),
            loss: text("0.01%"),
            queue: text("0.1bdp"),
            aqm: None,
            link: None,
            time: None,
            runs: 5,
            seed: 1,
            json: false,
            html: None,
        };
        assert_eq!(args.link(), "rate=1.5gbit,rtt=173ms,loss=0.01%,queue=0.1bdp");
        assert!(written::<BitRate>("fast").is_err());
    }
}
