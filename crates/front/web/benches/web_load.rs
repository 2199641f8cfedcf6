//! What one server carries: `cargo bench -p longhaul-web --bench web_load`.
//!
//! The server is a process of its own, of the same build. First 200 visitors, each at 5 Mbit/s in
//! both directions, in halves by requests and by WebSockets, carry out whole runs beside 1,000
//! WebSockets on which nothing is said. Then 10,000 such WebSockets of 2,500 addresses are opened
//! at a server with the default limits. How visitors keep to their rate, and what that leaves out,
//! is in `tests/load/visitor.rs`.

#[path = "../tests/load/visitor.rs"]
mod visitor;

use bench_harness::{Fallible, heading, median, row};
use host::{clock, limits, memory};
use longhaul::StopFlag;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use visitor::{Socket, Visitor, address, idle};
use web::{WebEvent, WebRequest};

const VISITORS: u32 = 200;
const RATE: f64 = 5e6;
const IDLE: u32 = 1000;
const CROWD: u32 = 10_000;
/// WebSockets of an address in the crowd.
const OF_AN_ADDRESS: u32 = 4;
/// Of the crowd, how many connect at a time.
const AT_A_TIME: usize = 100;
const MAX_RESIDENT: f64 = 300e6;
/// In the environment of the process that is the server: its limit of runs.
const SERVE: &str = "LONGHAUL_BENCH_RUNS";

fn main() -> ExitCode {
    if let Some(runs) = std::env::var(SERVE).ok().and_then(|runs| runs.parse().ok()) {
        return serve(runs);
    }
    bench_harness::run("cargo bench -p longhaul-web --bench web_load", |arguments| {
        let is_bench = arguments.is_bench();
        arguments.end()?;
        // `cargo test --benches` only checks that it builds: `tests/load` is its small version.
        if !is_bench {
            return Ok(());
        }
        limits::raise_open_files()?;
        heading();
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(visitors())?;
        runtime.block_on(crowd())
    })
}

fn serve(runs: u32) -> ExitCode {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut request = WebRequest { listen, ..WebRequest::default() };
    request.limits.runs = runs;
    let on_event = &mut |event: WebEvent| match event {
        WebEvent::Listening { address, .. } => println!("{address}"),
        WebEvent::RunFailed { why, .. } => eprintln!("a run failed: {why}"),
        _ => {}
    };
    match web::serve(&request, on_event, &StopFlag::new(), &StopFlag::new()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// A server, and the most memory that it has had.
struct Server {
    child: Child,
    address: SocketAddr,
    most: Arc<AtomicU64>,
}

impl Server {
    fn start(runs: u32) -> Fallible<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .env(SERVE, runs.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        let output = child.stdout.take().ok_or("the server has no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let (most, process) = (Arc::new(AtomicU64::new(0)), child.id());
        let seen = Arc::clone(&most);
        std::thread::spawn(move || {
            while let Some(resident) = memory::resident_of(process).filter(|own| own.bytes() > 0) {
                seen.fetch_max(resident.bytes(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        Ok(Server { child, address: line.trim().parse()?, most })
    }

    fn memory_row(&self, what: &str) {
        let most = self.most.load(Ordering::Relaxed) as f64;
        let text = format!("{:.0} MB", most / 1e6);
        row(what, "300 MB", &text, most > 0.0 && most < MAX_RESIDENT);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn visitors() -> Fallible<()> {
    let server = Server::start(VISITORS + IDLE + 64)?;
    let at = server.address;
    let until = clock::now() + Duration::from_secs(40);
    let mut idles = JoinSet::new();
    for number in 0..IDLE {
        idles.spawn(idle(at, 10_000 + number / OF_AN_ADDRESS, until));
    }
    let mut visits = JoinSet::new();
    for number in 0..VISITORS {
        visits.spawn(Visitor::new(at, number, RATE).run());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (mut rates, mut errors) = ([Vec::new(), Vec::new()], Vec::new());
    while let Some(visit) = visits.join_next().await {
        match visit? {
            Ok(result) => {
                for (rates, direction) in rates.iter_mut().zip(["download", "upload"]) {
                    rates.extend(result[direction]["several_flows"].as_f64());
                }
            }
            Err(error) => errors.push(error),
        }
    }
    let mut opened = 0;
    while let Some(idle) = idles.join_next().await {
        match idle? {
            Ok(count) => opened += count,
            Err(error) => errors.push(error),
        }
    }
    let finished = rates[0].len().min(rates[1].len());
    row(
        "visitors with a result",
        &VISITORS.to_string(),
        &finished.to_string(),
        finished == VISITORS as usize,
    );
    row("errors", "0", &errors.len().to_string(), errors.is_empty());
    for (rates, direction) in rates.iter().zip(["download", "upload"]) {
        let rate = median(rates);
        let text = format!("{:.2} Mbit/s", rate / 1e6);
        row(&format!("median {direction}"), "4 Mbit/s", &text, rate >= 0.8 * RATE);
    }
    server.memory_row("resident, most");
    println!("  idle WebSockets: {IDLE} at a time, {opened} in all");
    for error in errors.iter().take(5) {
        println!("  {error}");
    }
    if errors.is_empty() { Ok(()) } else { Err("there were errors".into()) }
}

async fn crowd() -> Fallible<()> {
    let server = Server::start(WebRequest::default().limits.runs)?;
    let at = server.address;
    let permits = Arc::new(Semaphore::new(AT_A_TIME));
    let mut opening = JoinSet::new();
    for number in 0..CROWD {
        let permits = Arc::clone(&permits);
        opening.spawn(async move {
            let _permit = permits.acquire_owned().await;
            Socket::open(at, address(number / OF_AN_ADDRESS), "/api/run").await
        });
    }
    let (mut open, mut told, mut others) = (Vec::new(), 0, 0);
    while let Some(opened) = opening.join_next().await {
        match opened? {
            Ok(Ok(socket)) => open.push(socket),
            Ok(Err(head)) => {
                let head = head.to_lowercase();
                let is_told = head.starts_with("http/1.1 429 ") && head.contains("retry-after: ");
                told += u32::from(is_told);
                others += u32::from(!is_told);
            }
            Err(_) => others += 1,
        }
    }
    let served = open.len() as u32;
    row(
        "crowd: served, or told to come later",
        &CROWD.to_string(),
        &(served + told).to_string(),
        others == 0,
    );
    server.memory_row("crowd: resident, most");
    // Whoever says nothing is closed.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let visit = Visitor::new(at, 60_000, 100e6).run().await;
    row(
        "crowd: a visitor afterwards",
        "served",
        if visit.is_ok() { "served" } else { "refused" },
        visit.is_ok(),
    );
    println!("  of the crowd {served} were served, {told} told");
    drop(open);
    Ok(())
}
