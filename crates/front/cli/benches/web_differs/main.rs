//! "Why your numbers differ": what the page of `longhaul web` says that iperf3 and ndt7 would have
//! shown, beside what they show: `cargo bench -p longhaul-cli --bench web_differs [PATH…]`.
//!
//! On each of 20 lab paths the page, ndt7-client and an iperf3-compatible test run three times, one
//! after the other; medians within 5 % count. Runs are kept in target/web-differs.jsonl and not
//! repeated: an interrupted benchmark goes on where it ended. 18 of 20 are promised.

#[path = "../web_clients/peers.rs"]
mod peers;

use bench_harness::{Arguments, Fallible, heading, median, row};
use peers::Peers;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const LONGHAUL: &str = env!("CARGO_BIN_EXE_longhaul");
const HELP: &str = "cargo bench -p longhaul-cli --bench web_differs [PATH…]";

const RUNS: usize = 3;
/// Runs that a lab which is not valid may end, until one is left out.
const ATTEMPTS: usize = 3;
/// The deviation up to which a figure is right, and the paths on which both have to be.
const TOLERANCE: f64 = 0.05;
const PROMISED: usize = 18;

/// The paths. Of random losses a flow meets a dozen in ten seconds: two tests of iperf3 in turn differ by a
/// quarter there.
const PATHS: [(&str, &str); 20] = [
    ("adsl", "rate=10mbit,rtt=40ms"),
    ("adsl-far", "rate=10mbit,rtt=120ms"),
    ("cable", "rate=50mbit,rtt=20ms"),
    ("cable-far", "rate=50mbit,rtt=100ms"),
    ("cable-bloat", "rate=50mbit,rtt=20ms,queue=500ms"),
    ("vdsl", "rate=100mbit,rtt=10ms"),
    ("vdsl-mid", "rate=100mbit,rtt=50ms"),
    ("vdsl-far", "rate=100mbit,rtt=150ms"),
    ("vdsl-shallow", "rate=100mbit,rtt=50ms,queue=5ms"),
    ("fibre", "rate=300mbit,rtt=5ms"),
    ("fibre-mid", "rate=300mbit,rtt=30ms"),
    ("fibre-far", "rate=300mbit,rtt=80ms"),
    ("fibre-fast", "rate=500mbit,rtt=10ms"),
    ("fibre-fast-mid", "rate=500mbit,rtt=40ms"),
    ("loss-near", "rate=50mbit,rtt=20ms,loss=0.1%"),
    ("loss-mid", "rate=50mbit,rtt=50ms,loss=0.1%"),
    ("loss-far", "rate=50mbit,rtt=100ms,loss=0.1%"),
    ("loss-much", "rate=50mbit,rtt=50ms,loss=1%"),
    ("slow", "rate=2mbit,rtt=60ms"),
    ("mobile", "rate=20mbit,rtt=70ms"),
];

/// What ran, and the figures of each run, bit/s.
type Kept = BTreeMap<(String, String), Vec<f64>>;

fn main() -> ExitCode {
    bench_harness::run(HELP, measure)
}

fn measure(arguments: Arguments) -> Fallible<()> {
    let parts: Vec<_> = PATHS.iter().map(|(name, link)| (*name, (*name, *link))).collect();
    let paths = arguments.parts(&parts)?;
    let peers = Peers::find()?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/web-differs.jsonl");
    let mut kept = load(&file)?;
    heading();
    let mut right = 0;
    for (name, link) in &paths {
        for run in 0..RUNS {
            for (what, of) in METHODS {
                let all = kept.entry(((*name).to_owned(), what.to_owned())).or_default();
                if all.len() <= run {
                    let rates = match attempts(|| of(link, &peers)) {
                        Ok(rates) => rates,
                        Err(error) => {
                            println!("{name}: a run of {what} is left out: {error}");
                            continue;
                        }
                    };
                    keep(&file, name, &rates)?;
                    for (what, rate) in rates {
                        kept.entry(((*name).to_owned(), what.to_owned())).or_default().push(rate);
                    }
                }
            }
        }
        let of = |what: &str| {
            kept.get(&((*name).to_owned(), what.to_owned())).map_or(f64::NAN, |all| median(all))
        };
        let mut is_right = true;
        for (emulated, real) in [("page-iperf3", "iperf3"), ("page-ndt7", "ndt7")] {
            let (emulated, real) = (of(emulated), of(real));
            let share = emulated / real - 1.0;
            let is_near = share.abs() <= TOLERANCE;
            is_right &= is_near;
            let shown = format!("{:+.1} % of {:.1} Mbit/s", share * 100.0, real / 1e6);
            row(&format!("{name}: {link}"), "within 5 %", &shown, is_near);
        }
        right += usize::from(is_right);
    }
    let promised = (PROMISED * paths.len()).div_ceil(PATHS.len());
    let total = paths.len();
    row(
        "paths with both right",
        &format!("{promised} of {total}"),
        &right.to_string(),
        right >= promised,
    );
    if right >= promised { Ok(()) } else { Err("too few paths are right".into()) }
}

/// The first of [`ATTEMPTS`] that a disturbed lab does not end.
fn attempts(run: impl Fn() -> Fallible<Rates>) -> Fallible<Rates> {
    let mut last = run();
    for _ in 1..ATTEMPTS {
        if last.is_ok() {
            break;
        }
        last = run();
    }
    last
}

type Rates = Vec<(&'static str, f64)>;
type Method = fn(&str, &Peers) -> Fallible<Rates>;

/// What runs on a path; the page gives two figures, of which one says whether it ran.
const METHODS: [(&str, Method); 3] = [("page-iperf3", page), ("ndt7", ndt7), ("iperf3", iperf3)];

fn page(link: &str, peers: &Peers) -> Fallible<Rates> {
    let script: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/web_clients/browser.mjs");
    let command = ["node".to_owned(), script.display().to_string(), "page".to_owned()];
    let result: Value = last_line(&in_lab(link, &web(), &command, peers)?)?;
    let rate = |method: &str| {
        let all = result["differs"].as_array().into_iter().flatten();
        let mut of = all.filter(|one| one["method"] == method);
        let rate = of.next().and_then(|one| one["rate"].as_f64());
        rate.ok_or_else(|| format!("no {method} in {result}"))
    };
    Ok(vec![("page-iperf3", rate("iperf3")?), ("page-ndt7", rate("ndt7")?)])
}

fn ndt7(link: &str, peers: &Peers) -> Fallible<Rates> {
    let flags = ["--no-locate", "--server", "server:8080", "--no-tls", "--no-upload"];
    let program = peers.program("ndt7-client");
    let flags = flags.into_iter().chain(["--format", "json"]).map(str::to_owned);
    let command: Vec<String> = [program].into_iter().chain(flags).collect();
    let summary: Value = last_line(&in_lab(link, &web(), &command, peers)?)?;
    let rate = summary["Summary"]["Download"]["ThroughputMbps"].as_f64();
    Ok(vec![("ndt7", rate.ok_or("no rate of ndt7-client")? * 1e6)])
}

fn iperf3(link: &str, peers: &Peers) -> Fallible<Rates> {
    let flags = ["test", "server", "-R", "--autotuning", "--json"].map(str::to_owned);
    let command: Vec<String> = [LONGHAUL.to_owned()].into_iter().chain(flags).collect();
    let text = in_lab(link, &format!("{LONGHAUL} server"), &command, peers)?;
    let report: Value = serde_json::from_str(&text)?;
    Ok(vec![("iperf3", report["average_bps"].as_f64().ok_or("no rate of the test")?)])
}

fn web() -> String {
    format!("{LONGHAUL} web --listen 0.0.0.0:8080 --host-name server")
}

fn last_line(text: &str) -> Fallible<Value> {
    let line = text.lines().rfind(|line| line.starts_with('{')).ok_or("no result")?;
    Ok(serde_json::from_str(line)?)
}

/// The output of a command beside a server.
fn in_lab(link: &str, server: &str, command: &[String], peers: &Peers) -> Fallible<String> {
    let output = Command::new("timeout")
        .args(["120", LONGHAUL, "lab", "run", "--link", link, "--server", server, "--"])
        .args(command)
        .env("WEB_CLIENTS", &peers.folder)
        .output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = error.lines().rev().take(5).collect();
    Err(format!("{link}: {}: {}", output.status, last.join(" | ")).into())
}

fn keep(file: &Path, path: &str, rates: &[(&str, f64)]) -> Fallible<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    for (what, rate) in rates {
        writeln!(file, "{}", json!({"path": path, "what": what, "rate": rate}))?;
    }
    Ok(())
}

fn load(file: &Path) -> Fallible<Kept> {
    let mut kept = Kept::new();
    let text = std::fs::read_to_string(file).unwrap_or_default();
    for line in text.lines() {
        let one: Value = serde_json::from_str(line)?;
        let name = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let rate = one["rate"].as_f64().ok_or("a kept run has no rate")?;
        kept.entry((name("path"), name("what"))).or_default().push(rate);
    }
    Ok(kept)
}
