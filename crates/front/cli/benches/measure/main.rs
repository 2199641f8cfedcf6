//! The measuring's promised figures, beside Debian's iperf3 in the same run:
//! `cargo bench -p longhaul-cli --bench measure`, or with names, some of them.
//!
//! Two hosts, a veth pair, plain settings, five alternating runs, medians.

mod bare;
mod bars;
mod crowd;
mod engine;
mod options;
mod pair;
mod stamps;
mod udp;
mod unsent;

use bench_harness::{Arguments, Fallible, heading, note, row};
use options::Options;
use pair::Pair;
use serde_json::Value;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

const REPEATS: usize = 5;
const LONGHAUL: &str = env!("CARGO_BIN_EXE_longhaul");
/// iperf3's own words for both programs: longhaul speaks them too.
const OURS: [&str; 2] = [LONGHAUL, "iperf3"];

const HELP: &str = "\
cargo bench -p longhaul-cli --bench measure -- [OPTION]... [PART]...
Parts: engine-short, udp, paced, crowd, unsent, paths (all of them), and engine
  --rounds N    rounds of the engine (5)
  --shapes LIST shapes of the engine, such as 'veth -P 4 -R,loopback -P 1' (all)
  --svg FILE    a picture of the figures of udp or of the engine";

fn main() -> ExitCode {
    // The far end of the bare pair is this program as well.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, of_pair)) if first == "--bare" => {
            bench_harness::run(HELP, |_| bare::main(of_pair))
        }
        _ => bench_harness::run_in_sandbox(HELP, measure),
    }
}

type Part = fn(&Pair, &Options) -> Fallible<()>;

fn measure(arguments: Arguments) -> Fallible<()> {
    let parts: [(&str, Part); 7] = [
        ("engine-short", engine::short),
        ("engine", engine::all),
        ("udp", udp::unlimited),
        ("paced", udp::paced),
        ("crowd", crowd),
        ("unsent", unsent::veth),
        ("paths", unsent::paths),
    ];
    let options = Options::read(arguments, &parts.map(|(name, _)| (name, name)))?;
    heading();
    let pair = Pair::start()?;
    for (name, part) in parts {
        if options.parts.contains(&name) {
            part(&pair, &options)?;
        }
    }
    Ok(())
}

/// One run of a program against a server of its own kind over the veth pair: its JSON.
fn run(pair: &Pair, program: &[&str], options: &[&str]) -> Fallible<Value> {
    run_between(pair, (1, pair::SERVER), program, options)
}

/// As [`run`], with the server at another host or address.
fn run_between(
    pair: &Pair,
    (host, address): (usize, &str),
    program: &[&str],
    options: &[&str],
) -> Fallible<Value> {
    let mut server = Command::new(program[0]);
    server.args(&program[1..]).args(["-s", "-1"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = pair.spawn(host, &mut server)?;
    let mut report = Value::Null;
    // The server needs a moment to listen.
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(100));
        let mut client = Command::new(program[0]);
        client.args(&program[1..]).args(["-c", address, "-J"]).args(options);
        let client = client.stdout(Stdio::piped()).stderr(Stdio::null());
        let output = pair.spawn(0, client)?.wait_with_output()?;
        report = serde_json::from_slice(&output.stdout)?;
        if report.get("error").is_none() {
            break;
        }
    }
    let _ = server.kill();
    let _ = server.wait();
    match report.get("error") {
        None => Ok(report),
        Some(error) => Err(format!("{}: {error}", program[0]).into()),
    }
}

fn number(report: &Value, path: &str) -> f64 {
    report.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

fn crowd(pair: &Pair, _: &Options) -> Fallible<()> {
    let mut server = Command::new(LONGHAUL);
    server
        .args(["server", "--max-tests", "200", "--max-per-address", "200"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut server = pair.spawn(1, &mut server)?;
    std::thread::sleep(Duration::from_millis(500));
    let mut clients = Vec::new();
    for _ in 0..100 {
        // Behind a gate: who starts programs one by one would be slowed by those that run.
        let mut client = Command::new("sh");
        client.args(["-c", "read _; exec \"$@\"", "sh", LONGHAUL, "iperf3", "-c", pair::SERVER]);
        client.args(["-P5", "-t20", "-i1", "-J"]);
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        clients.push(pair.spawn(0, &mut client)?);
    }
    std::thread::sleep(Duration::from_millis(500));
    clients.iter_mut().for_each(|client| drop(client.stdin.take()));
    // Read side by side: a document longer than a pipe holds would stop its client.
    let readers: Vec<_> = clients
        .into_iter()
        .map(|client| std::thread::spawn(|| client.wait_with_output()))
        .collect();
    let mut reports = Vec::new();
    for reader in readers {
        let output = reader.join().map_err(|_| "a reader panicked")??;
        reports.push(serde_json::from_slice::<Value>(&output.stdout)?);
    }
    let served = reports.iter().filter(|report| crowd::was_served(report, 5)).count();
    let shares = crowd::shares(&reports);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id()))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: f64 =
        peak.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0.0);
    let _ = server.kill();
    let _ = server.wait();
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    let jain = sum * sum / (shares.len() as f64 * squares);
    row("500 streams of 100 clients: clients served", "100", &format!("{served}"), served == 100);
    row("  Jain's index of their rates", "0.95", &format!("{jain:.3}"), jain >= 0.95);
    let megabytes = peak * 1024.0 / 1e6;
    row(
        "  the server's memory at most",
        "200 MB",
        &format!("{megabytes:.0} MB"),
        megabytes < 200.0,
    );
    note("  all together", &format!("{:.1} Gbit/s", sum / 1e9));
    Ok(())
}
