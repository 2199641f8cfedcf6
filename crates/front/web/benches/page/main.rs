//! The speed test's page over emulated paths: headless Chromium beside `longhaul test`, queues and
//! their grades, RTTs under load beside a ping, and whether what it advises helps. `make bench` runs all
//! but the last.

#[path = "../../tests/web/page.rs"]
#[expect(dead_code, reason = "the tests of the protocol use the rest")]
#[expect(clippy::unwrap_used, clippy::expect_used, reason = "assertions of the protocol's tests")]
mod page;

mod advice;
mod browser;
mod hosts;
mod latency;
mod menu;
mod queues;
mod rates;
mod together;

use bench_harness::{Arguments, Fallible};
use std::process::ExitCode;

const HELP: &str = "\
cargo bench -p longhaul-web --bench page -- [OPTION]... [PART]...
PART: rates   Chromium's rates beside those of longhaul test
      queues  bufferbloat grade and RPM of a FIFO and of FQ-CoDel; a slow uplink
      latency RTT under load beside a concurrent ping, with a FIFO of 500 ms and with FQ-CoDel
      advice  whether the advice helps: a run of the page, and each action of a menu
(rates and queues)
  --rounds N     rounds of rates (3)
  --runs N       cases of advice, half downloads, half uploads (120)
  --seed N       of the cases of advice (1)
  --store FILE   results of advice, a line each; those that are there are not measured again";

fn main() -> ExitCode {
    bench_harness::run_in_sandbox(HELP, measure)
}

#[derive(Clone, Copy)]
enum Part {
    Rates,
    Queues,
    Latency,
    Advice,
}

fn measure(mut arguments: Arguments) -> Fallible<()> {
    let rounds = arguments.count("--rounds")?.unwrap_or(3);
    let set = advice::Set {
        runs: arguments.count("--runs")?.unwrap_or(120),
        seed: arguments.value("--seed")?.unwrap_or(1),
        store: arguments.value("--store")?,
    };
    let known = [
        ("rates", Part::Rates),
        ("queues", Part::Queues),
        ("latency", Part::Latency),
        ("advice", Part::Advice),
    ];
    let parts = match arguments.is_empty() {
        true => vec![Part::Rates, Part::Queues, Part::Latency],
        false => arguments.parts(&known)?,
    };
    for part in parts {
        match part {
            Part::Rates => rates::measure(rounds)?,
            Part::Queues => queues::measure()?,
            Part::Latency => latency::measure()?,
            Part::Advice => advice::measure(&set)?,
        }
    }
    Ok(())
}
