//! What UDT promises over emulated paths: `cargo bench -p longhaul-cli --bench udt`, or with names,
//! some of it. Medians of three; libudt 4.11 and the kernel's TCP run alternately with ours.
//!
//! A path that the machine cannot emulate in time is named instead of measured: 10 Gbit/s takes
//! more than two cores.

use bench_harness::{Arguments, Fallible, heading, median, note, row};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

const LONGHAUL: &str = env!("CARGO_BIN_EXE_longhaul");
const PEER_SOURCE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../traffic/udt-socket/tests/interop/peer.cpp");
const REPEATS: usize = 3;
/// Payload of a packet of 1500 bytes: UDT has a header of 16 bytes.
const PAYLOAD: f64 = 1456.0 / 1500.0;
/// The same in native mode.
const NATIVE_PAYLOAD: f64 = 1431.0 / 1500.0;
/// The lab's exit code where the emulation was not valid.
const NOT_VALID: i32 = 3;

const HELP: &str = "\
cargo bench -p longhaul-cli --bench udt -- [PART]...
Parts: ramp, loss, collapse, cubic, fast (all of them)";

fn main() -> ExitCode {
    bench_harness::run(HELP, measure)
}

type Part = fn() -> Fallible<()>;

fn measure(arguments: Arguments) -> Fallible<()> {
    let parts: [(&str, Part); 5] = [
        ("ramp", ramp),
        ("loss", loss),
        ("collapse", collapse),
        ("cubic", beside_cubic),
        ("fast", fast),
    ];
    let asked = arguments.parts(&parts)?;
    heading();
    asked.into_iter().try_for_each(|part| part())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// What a program printed in a lab; `None` if the emulation was not valid.
fn in_lab(link: &str, server: &str, command: &[&str]) -> Fallible<Option<String>> {
    let ended = Command::new(LONGHAUL)
        .args(["lab", "run", "--tuned", "--link", link, "--server", server, "--"])
        .args(command)
        .stdin(Stdio::null())
        .output()?;
    match ended.status.code() {
        Some(0) => Ok(Some(String::from_utf8(ended.stdout)?)),
        Some(NOT_VALID) => Ok(None),
        code => {
            let said = String::from_utf8_lossy(&ended.stderr);
            Err(format!("{link}: {command:?} ended with {code:?}:\n{said}").into())
        }
    }
}

/// Median goodput of valid runs of `longhaul test` with these options, bit/s.
fn tested(link: &str, options: &[&str]) -> Fallible<Option<f64>> {
    let mut rates = Vec::new();
    for _ in 0..REPEATS {
        rates.extend(tested_once(link, options)?);
    }
    Ok(model::statistics::median(&rates))
}

fn tested_once(link: &str, options: &[&str]) -> Fallible<Option<f64>> {
    let command = [&[LONGHAUL, "test", "server", "--json"], options].concat();
    let printed = in_lab(link, &format!("{LONGHAUL} server"), &command)?;
    printed.map(|text| goodput(&text)).transpose()
}

fn goodput(text: &str) -> Fallible<f64> {
    let document: Value = serde_json::from_str(text)?;
    let value = |key: &str| document[key].as_f64().ok_or(format!("no {key}"));
    Ok(value("received_bytes")? * 8.0 / value("seconds")?)
}

/// A row about the share of a rate.
fn share_row(what: &str, promised: f64, measured: Option<f64>, of: f64) {
    match measured {
        Some(rate) => {
            let share = rate / of;
            let kept = share >= promised;
            row(what, &format!(">= {:.0} %", promised * 100.0), &percent(share), kept);
        }
        None => note(what, "not valid here"),
    }
}

/// The payload rate is reached within 3 s with BBR and 10 s with UDT's own control.
fn ramp() -> Fallible<()> {
    let link = "rate=1gbit,rtt=50ms";
    let bbr = tested(link, &["--udt", "-C", "bbr", "-O", "3", "-t", "5"])?;
    share_row("1 Gbit/s x 50 ms, bbr, from 3 s", 0.95, bbr, 1e9 * NATIVE_PAYLOAD);
    let udt = tested(link, &["--udt", "-O", "10", "-t", "5"])?;
    share_row("1 Gbit/s x 50 ms, udt, from 10 s", 0.95, udt, 1e9 * PAYLOAD);
    Ok(())
}

fn loss() -> Fallible<()> {
    for loss in ["0.1%", "1%"] {
        let link = format!("rate=1gbit,rtt=100ms,loss={loss}");
        let rate = tested(&link, &["--udt", "-C", "bbr", "-O", "5", "-t", "10"])?;
        let what = format!("1 Gbit/s x 100 ms, loss {loss}, bbr");
        share_row(&what, 0.9, rate, 1e9 * NATIVE_PAYLOAD);
    }
    Ok(())
}

/// Under loss UDT's own control collapses as the library's does.
fn collapse() -> Fallible<()> {
    const SECONDS: &str = "20";
    let link = "rate=100mbit,rtt=50ms,loss=1%";
    let directory = tempfile::tempdir()?;
    let peer = build_peer(directory.path())?;
    // What the receiver counted: the sender's count has what is still in its buffer of 256 MB.
    let received = directory.path().join("received");
    let server = format!(
        "{peer} throughput listen 0.0.0.0 9500 {SECONDS} > {received}",
        received = received.display()
    );
    // A second for the receiver to notice the end and to print.
    let client = format!("{peer} throughput connect 10.0.0.2 9500 {SECONDS}; sleep 1");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        ours.extend(tested_once(link, &["--udt", "-t", SECONDS])?);
        if in_lab(link, &server, &["sh", "-c", &client])?.is_none() {
            continue;
        }
        let printed = fs::read_to_string(&received)?;
        // Bytes, seconds, and seconds of CPU, below a line that says that it listens.
        let figures = printed.lines().last().unwrap_or_default();
        let mut fields = figures.split_whitespace().map(str::parse::<f64>);
        let (Some(Ok(bytes)), Some(Ok(seconds))) = (fields.next(), fields.next()) else {
            return Err(format!("the peer printed {printed:?}").into());
        };
        theirs.push(bytes * 8.0 / seconds);
    }
    let (ours, theirs) = (median(&ours), median(&theirs));
    let ratio = ours / theirs;
    let kept = (0.5..=2.0).contains(&ratio);
    row("100 Mbit/s x 50 ms, loss 1 %, udt over libudt", "0.5 to 2", &format!("{ratio:.2}"), kept);
    note("ours", &format!("{:.1} Mbit/s", ours / 1e6));
    note("libudt 4.11", &format!("{:.1} Mbit/s", theirs / 1e6));
    Ok(())
}

fn build_peer(directory: &Path) -> Fallible<String> {
    let program = directory.join("peer");
    let built = Command::new("g++")
        .args(["-O2", "-std=c++17", "-o"])
        .arg(&program)
        .args([PEER_SOURCE, "-ludt", "-lpthread"])
        .status()
        .map_err(|error| format!("g++: {error}"))?;
    if !built.success() {
        return Err("libudt's peer does not compile: apt-get install g++ libudt-dev".into());
    }
    Ok(program.display().to_string())
}

/// One flow of BBR in native mode and one of CUBIC share a queue of one BDP.
fn beside_cubic() -> Fallible<()> {
    let link = "rate=100mbit,rtt=50ms,queue=1bdp";
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("cubic");
    let both = format!(
        "{LONGHAUL} test server -C cubic -O 5 -t 40 --json > {file} & \
         {LONGHAUL} test server --udt -C bbr -O 5 -t 40 --json; wait",
        file = file.display()
    );
    let mut shares = Vec::new();
    for _ in 0..REPEATS {
        let printed = in_lab(link, &format!("{LONGHAUL} server"), &["sh", "-c", &both])?;
        let Some(printed) = printed else { continue };
        let (bbr, cubic) = (goodput(&printed)?, goodput(&fs::read_to_string(&file)?)?);
        shares.push(bbr / (bbr + cubic));
    }
    let share = median(&shares);
    let kept = (0.25..=0.75).contains(&share);
    row("100 Mbit/s x 50 ms, share of bbr beside CUBIC", "25 to 75 %", &percent(share), kept);
    Ok(())
}

/// Long fast paths beside the kernel's BBR, from the fastest down to one that is emulated in time.
fn fast() -> Fallible<()> {
    for gbit in ["10", "5", "2.5"] {
        let link = format!("rate={gbit}gbit,rtt=100ms");
        let (mut kernel, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..REPEATS {
            kernel.extend(tested_once(&link, &["-C", "bbr", "-O", "5", "-t", "10"])?);
            ours.extend(tested_once(&link, &["--udt", "-C", "bbr", "-O", "5", "-t", "10"])?);
        }
        let median = model::statistics::median;
        let what = format!("{gbit} Gbit/s x 100 ms, bbr over the kernel's BBR");
        if let (Some(kernel), Some(ours)) = (median(&kernel), median(&ours)) {
            share_row(&what, 0.8, Some(ours), kernel);
            note("ours", &format!("{:.2} Gbit/s", ours / 1e9));
            note("the kernel's TCP", &format!("{:.2} Gbit/s", kernel / 1e9));
            return Ok(());
        }
        note(&what, "not valid here");
    }
    Ok(())
}
