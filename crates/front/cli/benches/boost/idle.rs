//! 10,000 flows that carried a byte each way and then nothing: memory and pipes of each box.

use crate::relay::boost;
use bench_harness::{Fallible, row};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

const FLOWS: usize = 10_000;
const SHORT: usize = 1_000;
/// One connection carries 2,048 flows at most.
const MUX_FLOWS: usize = 2_000;
/// Resident memory of a box, MB.
const MOST_MB: f64 = 200.0;
/// Files of a process beside its flows.
const OTHER_FILES: usize = 200;
/// Time after which flows are idle.
const SETTLED: Duration = Duration::from_secs(3);

/// Answers each connection's byte, and keeps the connection.
fn keep(listener: TcpListener) {
    thread::spawn(move || {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept() {
            let mut byte = [0];
            // Those that tried the ports end without one.
            if stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {
                open.push(stream);
            }
        }
    });
}

/// Flows of which this process has both ends, and far two sockets each, within the limit of open files
/// (proc(5)), which is raised where that is allowed.
fn possible() -> Fallible<usize> {
    let pid = std::process::id().to_string();
    let raised = Command::new("prlimit").args(["--pid", &pid, "--nofile=65536"]).output()?;
    let text = fs::read_to_string("/proc/self/limits")?;
    let limit = text.lines().find_map(|line| line.strip_prefix("Max open files"));
    let limit: usize = limit.and_then(|line| line.split_whitespace().next()).ok_or("?")?.parse()?;
    let flows = FLOWS.min(limit.saturating_sub(OTHER_FILES) / 2);
    if flows < FLOWS && !raised.status.success() {
        println!("  {limit} open files are allowed, so there are {flows} flows");
    }
    Ok(flows)
}

/// Resident memory of a process, MB (proc(5), in kB there).
fn resident(pid: u32) -> Fallible<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim_end_matches("kB").trim().parse::<f64>()? * 1024.0 / 1e6)
}

fn pipes(pid: u32) -> Fallible<usize> {
    let open = fs::read_dir(format!("/proc/{pid}/fd"))?.flatten();
    let targets = open.filter_map(|one| fs::read_link(one.path()).ok());
    Ok(targets.filter(|target| target.to_string_lossy().starts_with("pipe:")).count())
}

pub(crate) fn measure(is_short: bool) -> Fallible<()> {
    let count = if is_short { SHORT } else { possible()? };
    for (name, flags, count) in
        [("lanes", &[][..], count), ("--mux", &["--mux"][..], count.min(MUX_FLOWS))]
    {
        let most_mb = MOST_MB * count as f64 / FLOWS as f64;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let chain = boost(listener.local_addr()?, [flags, &[]])?;
        keep(listener);
        let at_first: Vec<usize> =
            chain.programs.iter().map(|program| pipes(program.id())).collect::<Fallible<_>>()?;
        let mut open = Vec::with_capacity(count);
        for number in 0..count {
            let told = |error| format!("flow {number}: {error}");
            let mut stream = TcpStream::connect(("127.0.0.1", chain.port)).map_err(told)?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            stream.write_all(&[1]).map_err(told)?;
            stream.read_exact(&mut [0]).map_err(told)?;
            open.push(stream);
        }
        thread::sleep(SETTLED);
        let titles = ["far", "near"].iter().zip(at_first);
        for ((title, at_first), program) in titles.zip(&chain.programs) {
            let memory = resident(program.id())?;
            let pipes = pipes(program.id())?.saturating_sub(at_first);
            row(
                &format!("boost: {count} idle flows, {name}, {title}: RSS, pipes"),
                &format!("{most_mb:.0} MB, 0"),
                &format!("{memory:.0} MB, {pipes}"),
                memory <= most_mb && pipes == 0,
            );
        }
    }
    Ok(())
}
