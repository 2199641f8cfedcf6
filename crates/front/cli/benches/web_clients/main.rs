//! Clients of other speed tests against `longhaul web`:
//! `cargo bench -p longhaul-cli --bench web_clients [--runs N] [NAME…]`.
//!
//! Each client runs in a lab of 100 Mbit/s x 50 ms. Those of ndt7 must show what the server counts,
//! to 3 %; Cloudflare's must show what its own rule gives for the server's times, to 5 %; the
//! responsiveness that `mach rpm` shows must be ours to 10 %. Clients are fetched by
//! `scripts/web-clients`; one that is missing is an error.

mod cloudflare_rule;
mod output;
mod peers;

use bench_harness::{Arguments, Fallible, heading, median, note, row};
use output::Figures;
use peers::Peers;
use std::path::Path;
use std::process::{Command, ExitCode};

const LONGHAUL: &str = env!("CARGO_BIN_EXE_longhaul");
const HELP: &str = "cargo bench -p longhaul-cli --bench web_clients [--runs N] [ndt7-ws|ndt7-wss|ndt7-js|cloudflare|mach]";

/// Runs of a client, all of which must succeed, and those whose figures are compared of the slow
/// ones.
const RUNS: usize = 10;
const COMPARED: usize = 5;

/// A client.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Client {
    Ndt7 { tls: bool },
    Ndt7Js,
    Cloudflare,
    Mach,
}

const CLIENTS: [(&str, Client); 5] = [
    ("ndt7-ws", Client::Ndt7 { tls: false }),
    ("ndt7-wss", Client::Ndt7 { tls: true }),
    ("ndt7-js", Client::Ndt7Js),
    ("cloudflare", Client::Cloudflare),
    ("mach", Client::Mach),
];

fn main() -> ExitCode {
    bench_harness::run(HELP, measure)
}

fn measure(mut arguments: Arguments) -> Fallible<()> {
    let runs = arguments.count("--runs")?.unwrap_or(RUNS);
    let clients = arguments.parts(&CLIENTS)?;
    let peers = Peers::find()?;
    heading();
    let mut failed = Vec::new();
    for client in clients {
        let (name, _) = CLIENTS.iter().find(|(_, one)| *one == client).ok_or("no client")?;
        let all: Vec<Fallible<Figures>> =
            (0..runs).map(|_| one(client, &peers)).inspect(|run| complain(name, run)).collect();
        let good: Vec<Figures> = all.into_iter().flatten().collect();
        let is_complete = good.len() == runs;
        row(
            &format!("{name}: runs without an error"),
            &format!("{runs} of {runs}"),
            &good.len().to_string(),
            is_complete,
        );
        let is_right = compare(name, client, &good, &peers)?;
        if !(is_complete && is_right) {
            failed.push(*name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

fn complain(name: &str, run: &Fallible<Figures>) {
    if let Err(error) = run {
        eprintln!("{name}: {error}");
    }
}

/// Compares what a client shows with what is true.
fn compare(name: &str, client: Client, runs: &[Figures], peers: &Peers) -> Fallible<bool> {
    match client {
        Client::Ndt7 { .. } | Client::Ndt7Js => {
            let worst = runs.iter().flat_map(Figures::deviations).fold(0.0, f64::max);
            let is_right = worst <= 0.03 && !runs.is_empty();
            let shown = format!("{:.2} %", worst * 100.0);
            row(&format!("{name}: from the server's count"), "<= 3 %", &shown, is_right);
            Ok(is_right)
        }
        Client::Cloudflare => {
            let of = |get: fn(&Figures) -> f64| median(&runs.iter().map(get).collect::<Vec<_>>());
            let (down, up) = (of(|run| run.down) / 1e6, of(|run| run.up) / 1e6);
            note(&format!("{name}: shown"), &format!("{down:.1} down, {up:.1} Mbit/s up"));
            let compared = runs.get(..COMPARED).unwrap_or(runs);
            let near = compared.iter().filter(|run| run.worst() <= 0.05).count();
            let worst = compared.iter().map(Figures::worst).fold(0.0, f64::max);
            let is_right = near == compared.len() && !compared.is_empty();
            let shown = format!("{near} of {}, worst {:.2} %", compared.len(), worst * 100.0);
            row(&format!("{name}: from its rule at the server"), "<= 5 %", &shown, is_right);
            Ok(is_right)
        }
        Client::Mach => {
            let ours: Vec<Figures> =
                (0..COMPARED).map(|_| own_rpm(peers)).collect::<Fallible<_>>()?;
            let mut is_right = !runs.is_empty();
            for which in ["down", "up"] {
                let get = |run: &Figures| if which == "down" { run.down } else { run.up };
                let of = |runs: &[Figures]| median(&runs.iter().map(get).collect::<Vec<_>>());
                let (theirs, own) = (of(runs), of(&ours));
                let is_near = (theirs / own - 1.0).abs() <= 0.1;
                let shown = format!("{theirs:.0}, ours {own:.0}");
                row(&format!("{name}: RPM {which}"), "within 10 % of ours", &shown, is_near);
                is_right &= is_near;
            }
            Ok(is_right)
        }
    }
}

/// One run of a client, in a lab of its own.
fn one(client: Client, peers: &Peers) -> Fallible<Figures> {
    let browser = |which: &str| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/web_clients/browser.mjs");
        vec!["node".to_owned(), script.display().to_string(), which.to_owned()]
    };
    let (tls, command) = match client {
        Client::Ndt7 { tls } => {
            let security = if tls { "--no-verify" } else { "--no-tls" };
            let flags = ["--no-locate", "--server", "server:8080", security, "--format", "json"];
            let program = peers.program("ndt7-client");
            (tls, [program].into_iter().chain(flags.map(str::to_owned)).collect())
        }
        Client::Ndt7Js => (false, browser("ndt7")),
        Client::Cloudflare => (false, browser("cloudflare")),
        Client::Mach => {
            let url = "https://server:8081/.well-known/nq";
            let flags = ["rpm", "-c", url, "--insecure", "--disable-aim-scores"];
            let program = peers.program("mach");
            (true, [program].into_iter().chain(flags.map(str::to_owned)).collect())
        }
    };
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("events");
    let text = in_lab(tls, &command, peers, Some(&log))?;
    match client {
        Client::Ndt7 { .. } => output::ndt7_client(&text),
        Client::Ndt7Js => output::ndt7_js(&text),
        Client::Cloudflare => output::cloudflare(&text, cloudflare_rule::rates(&log)?),
        Client::Mach => output::mach(&text),
    }
}

/// Our own responsiveness, as `mach` measures it.
fn own_rpm(peers: &Peers) -> Fallible<Figures> {
    let flags = ["test", "--rpm", "https://server:8081", "--insecure", "--json"];
    let command: Vec<String> = [LONGHAUL].into_iter().chain(flags).map(str::to_owned).collect();
    output::own_rpm(&in_lab(true, &command, peers, None)?)
}

/// The output of a command beside a server, 100 Mbit/s x 50 ms away, whose events go to `log`.
fn in_lab(tls: bool, command: &[String], peers: &Peers, log: Option<&Path>) -> Fallible<String> {
    let tls = if tls { " --tls self-signed" } else { "" };
    let mut server = format!(
        "{LONGHAUL} web --listen 0.0.0.0:8080 --responsiveness 0.0.0.0:8081 --host-name server{tls}"
    );
    if let Some(log) = log {
        server = format!("sh -c 'exec {server} --json --log-transfers >{} 2>&1'", log.display());
    }
    let output = Command::new("timeout")
        .args(["180", LONGHAUL, "lab", "run", "--link", "rate=100mbit,rtt=50ms"])
        .args(["--server", &server, "--"])
        .args(command)
        .env("WEB_CLIENTS", &peers.folder)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = error.lines().rev().take(5).collect();
    Err(format!("{}: {}", output.status, last.join(" | ")).into())
}
