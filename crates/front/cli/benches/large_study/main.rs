//! What `longhaul study report` promises of a large study: `cargo bench -p longhaul-cli --bench
//! large_study`.
//!
//! A study of 100 000 cells is begun in the lab, until its first run is stored; that run, with
//! its measurement of 100 samples or more, is then stored for every other cell as well, with
//! another goodput. The report is made five times, as text and as a page; the most memory is
//! that of the kernel's accounts.

use bench_harness::{Fallible, heading, median, row};
use host::clock;
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

const LONGHAUL: &str = env!("CARGO_BIN_EXE_longhaul");

const CELLS: u32 = 100_000;
const REPORTS: usize = 5;

/// Promised: time in seconds, and memory in MB.
const SECONDS: f64 = 10.0;
const MEGABYTES: f64 = 1000.0;

/// How long the first run may take.
const FIRST_RUN: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    bench_harness::run("cargo bench -p longhaul-cli --bench large_study", |arguments| {
        arguments.end()?;
        measure()
    })
}

fn measure() -> Fallible<()> {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    begin(folder.path(), &results)?;
    fill(&results)?;
    let page = folder.path().join("page.html");
    let mut reports = Vec::new();
    for _ in 0..REPORTS {
        reports.push(report(&results, &page)?);
    }
    let seconds: Vec<f64> = reports.iter().map(|one| one.0).collect();
    let seconds = median(&seconds);
    let megabytes = reports.iter().map(|one| one.1).fold(0.0, f64::max);
    heading();
    row("report of 100 000 cells, median", "< 10 s", &format!("{seconds:.2} s"), seconds < SECONDS);
    row("most memory", "< 1 GB", &format!("{megabytes:.0} MB"), megabytes < MEGABYTES);
    Ok(())
}

/// Runs the study until its first run is stored.
fn begin(folder: &Path, results: &Path) -> Fallible<()> {
    let list = |text: &dyn Fn(u32) -> String, count: u32| {
        (1..=count).map(text).collect::<Vec<_>>().join(", ")
    };
    let plan = folder.join("plan.toml");
    let text = format!(
        "question = \"Is a large study reported in time?\"\n[path]\n[factors]\n\
         streams = [{}]\nrate = [{}]\nrtt = [{}]\n[traffic]\nduration = \"1s\"\n\
         [repeats]\norder = \"plan\"\n",
        list(&|n| n.to_string(), 100),
        list(&|n| format!("\"{}mbit\"", n + 9), 100),
        list(&|n| format!("\"{}ms\"", 10 * n), 10)
    );
    fs::write(&plan, text)?;
    let mut study = Command::new(LONGHAUL)
        .args(["study", "run"])
        .arg(&plan)
        .arg("--out")
        .arg(results)
        .args(["--serial", "--attempts", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let store = results.join("study.db");
    let give_up = clock::now() + FIRST_RUN;
    loop {
        let stored = Connection::open(&store).and_then(|store| {
            store.query_row("SELECT count(*) FROM measurement", [], |r| r.get(0))
        });
        if stored.is_ok_and(|count: u32| count > 0) {
            break;
        }
        if clock::now() > give_up || study.try_wait()?.is_some() {
            let _ = study.kill();
            return Err("no run was stored".into());
        }
        thread::sleep(Duration::from_millis(100));
    }
    study.kill()?;
    study.wait()?;
    // What it had running ends with its sandbox.
    thread::sleep(Duration::from_secs(1));
    Ok(())
}

/// Stores the first run for every other cell.
fn fill(results: &Path) -> Fallible<()> {
    let store = Connection::open(results.join("study.db"))?;
    let first = "WHERE cell = (SELECT min(cell) FROM run)";
    store.execute_batch(&format!(
        "PRAGMA synchronous = OFF;
         BEGIN;
         CREATE TEMP TABLE one_run AS SELECT * FROM run {first};
         CREATE TEMP TABLE one_flow AS SELECT * FROM flow {first};
         CREATE TEMP TABLE one_measurement AS SELECT * FROM measurement {first};
         DELETE FROM run; DELETE FROM flow; DELETE FROM measurement;
         UPDATE one_run SET status = 'valid', reason = '';
         CREATE TEMP TABLE number AS WITH RECURSIVE counted(n) AS
             (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n + 1 < {CELLS})
             SELECT n FROM counted;
         INSERT INTO run SELECT part, n, repeat, status, attempts, started_unix_s, took_s, test_s,
             reason FROM one_run, number;
         INSERT INTO flow SELECT part, n, repeat, flow, position, began_s, seconds,
             throughput_bps * (1 + n % 97), steady_bps, sent_bps, retransmits, min_rtt_ms,
             mean_rtt_ms, window_bytes, loss, out_of_order, jitter_ms, \"limit\", probability,
             series_bps, decrease_factor, acks_per_packet, light_acks_per_packet, naks,
             increases, increases_by_alpha, growth_over_alpha, disk_bps, disk_series_bps,
             nak_series FROM one_flow, number;
         INSERT INTO measurement SELECT part, n, repeat, flow, json_gz FROM one_measurement, number;
         COMMIT;"
    ))?;
    let bytes: u32 =
        store.query_row("SELECT length(json_gz) FROM measurement", [], |r| r.get(0))?;
    println!("{CELLS} runs, each with a measurement of {bytes} bytes, compressed");
    Ok(())
}

/// Seconds, and the most memory in MB.
fn report(results: &Path, page: &Path) -> Fallible<(f64, f64)> {
    let began = clock::now();
    let mut child = Command::new(LONGHAUL)
        .args(["study", "report"])
        .arg(results)
        .arg("--html")
        .arg(page)
        .stdout(Stdio::null())
        .spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut kilobytes = 0.0_f64;
    let ended = loop {
        // VmHWM is the peak, so that its last value is the most but for what came after it.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|text| text.trim().strip_suffix(" kB")?.parse().ok());
        kilobytes = kilobytes.max(peak.unwrap_or(0.0));
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        thread::sleep(Duration::from_millis(2));
    };
    if !ended.success() {
        return Err(format!("the report ended with {ended}").into());
    }
    Ok((began.elapsed().as_secs_f64(), kilobytes / 1e3))
}
