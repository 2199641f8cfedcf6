//! The loss that WebTransport shows, through a relay that loses datagrams:
//! `cargo bench -p longhaul-web --bench web_loss`.
//!
//! Whole runs of the page's protocol with short downloads, several at a time; the step of datagrams
//! lasts as long as the page's.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "in a benchmark they are assertions")]

#[path = "../../tests/web/page.rs"]
#[expect(dead_code, reason = "the tests of the protocol use the rest")]
mod page;
#[path = "../../tests/web/session.rs"]
mod session;

use bench_harness::{Fallible, fresh_seed, heading, note, row};
use page::{Server, carry_out_with, hello_by_requests, short};
use serde_json::{Value, json};
use session::{Relay, receive};
use std::process::ExitCode;
use std::thread;
use units::ByteCount;
use web::{WebLimits, WebRequest};

/// Loss, and the half-width of its interval that is promised, in percent.
const LOSSES: [(f64, f64); 3] = [(0.1, 0.3), (1.0, 0.7), (5.0, 1.5)];
const RUNS: usize = 20;
/// The intervals that hold the true value, of all.
const HOLD: usize = 53;
const TOGETHER: usize = 4;
const MIN_DATAGRAMS: u64 = 2000;

fn main() -> ExitCode {
    let help = "cargo bench -p longhaul-web --bench web_loss [-- --seed N]";
    bench_harness::run(help, |mut arguments| {
        let seed = arguments.value("--seed")?.unwrap_or_else(fresh_seed);
        arguments.end()?;
        measure(seed)
    })
}

fn measure(seed: u64) -> Fallible<()> {
    let limits = WebLimits { runs_per_address: 64, ..WebLimits::default() };
    // Few bytes end each transfer at once.
    let max_bytes_per_run = ByteCount::from_bytes(40_000_000);
    let request = WebRequest { step_seconds: 5.0, limits, max_bytes_per_run, ..short() };
    let server = Server::start(request);
    heading();
    note("seed", &seed.to_string());
    let mut all = 0;
    for (percent, width) in LOSSES {
        let results = runs(&server, percent, seed);
        let of = |loss: &Value, name: &str| loss[name].as_f64().unwrap_or(f64::NAN) * 100.0;
        let holds = |loss: &&Value| (of(loss, "low")..=of(loss, "high")).contains(&percent);
        let held = results.iter().filter(holds).count();
        let half = |loss: &Value| (of(loss, "high") - of(loss, "low")) / 2.0;
        let widest = results.iter().map(half).fold(0.0, f64::max);
        let is_enough = |loss: &Value| {
            loss["from"] == "webtransport" && loss["sent"].as_u64() >= Some(MIN_DATAGRAMS)
        };
        let other: Vec<&Value> = results.iter().filter(|loss| !is_enough(loss)).collect();
        for loss in &other {
            note("not counted by WebTransport", &loss.to_string());
        }
        let counted = other.is_empty() && results.len() == RUNS;
        let what = format!("{percent} % loss over WebTransport: half-width of the 95 % interval");
        let measured = format!("{widest:.2} points at most; {held} of {RUNS} hold it");
        row(&what, &format!("at most {width} points"), &measured, counted && widest <= width);
        all += held;
    }
    let promised = format!("at least {HOLD} of {}", RUNS * LOSSES.len());
    row("intervals that hold the true loss", &promised, &all.to_string(), all >= HOLD);
    Ok(())
}

/// The losses that runs showed.
fn runs(server: &Server, percent: f64, seed: u64) -> Vec<Value> {
    let mut results = Vec::new();
    for first in (0..RUNS).step_by(TOGETHER) {
        let address = server.address;
        let started: Vec<_> = (first..(first + TOGETHER).min(RUNS))
            .map(|number| {
                let seed = (seed << 16 | (number as u64) << 8 | percent as u64)
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15);
                thread::spawn(move || run(address, percent / 100.0, seed))
            })
            .collect();
        results.extend(started.into_iter().filter_map(|run| run.join().ok()));
    }
    results
}

fn run(address: std::net::SocketAddr, loss: f64, seed: u64) -> Value {
    let relay = Relay::start(address, loss, seed);
    let mut hello = hello_by_requests();
    hello["transports"] = json!(["http", "webtransport"]);
    hello["thorough"] = json!(false);
    let told = carry_out_with(address, &hello, |run, step| {
        let datagrams = &step["datagrams"];
        let certificate = datagrams["certificate"].as_str().unwrap();
        let count = datagrams["count"].as_u64().unwrap() as usize;
        let path = format!("/api/run/{run}/datagrams");
        receive(relay.address, certificate, &path, count).map(|received| received.hex())
    });
    told.messages.last().map(|result| result["loss"].clone()).unwrap_or_default()
}
