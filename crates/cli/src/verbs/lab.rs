//! `longhaul lab`: programs behind an emulated path.

use crate::failure::{Code, Failure, NOT_VALID, Outcome};
use crate::inside;
use clap::{Args, Subcommand};
use host::program::{Program, Reaper};
use host::world;
use host::{signals, sysctl};
use lab::{Lab, LabError, LabHost, LabPlan, Listening, PathSpec};
use record::PathReport;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tune::Buffers;

/// How long a server program may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a server may go on after the command has ended before it is told
/// to end, and after that before it is killed.
const GRACE: Duration = Duration::from_millis(500);

/// How often the path is looked at while the command runs.
const GLANCE: Duration = Duration::from_millis(250);

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    verb: LabVerb,
}

#[derive(Debug, Subcommand)]
enum LabVerb {
    /// Run a program on a host behind an emulated path
    ///
    /// Makes two hosts inside this machine, `client` and `server`, joined by the
    /// path of --link, and runs CMD on the client. Both names resolve inside.
    /// CMD has the terminal to itself; what the lab says goes to standard error.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
}

const RUN_EXAMPLES: &str = "\
Examples:
  longhaul lab run --link rate=100mbit,rtt=173ms --server 'iperf3 -s -1' -- iperf3 -c server
  longhaul lab run --link rate=1gbit,rtt=50ms,loss=0.1% --tuned --cc bbr \\
      --server 'longhaul server --one-off' -- longhaul test server
  longhaul lab run --link rate=20mbit,rtt=600ms,queue=250ms -- ping -c 5 server

The link:
  rate=100mbit   bottleneck of each direction, counting IP bytes
  rtt=173ms      round trip without serialisation and queueing, half each way
  loss=0.1%      random loss, per direction and packet of MTU size [0]
  queue=1bdp     drop-tail queue: 1bdp, 1000p, 2MiB, 250ms [1bdp, at least 64 packets]
  overhead=38    framing bytes counted on each packet; 38 is Ethernet's [0]
  mtu=1500       largest IP packet [1500]
  seed=7         repeats a run's random losses [a new one each run]

Exit code: CMD's own; 2 where a program or the lab could not start;
3 where the machine could not carry the path, so that the result is not valid.";

#[derive(Debug, Args)]
struct RunArgs {
    /// The path: rate=RATE,rtt=TIME[,loss=SHARE][,queue=SIZE][,overhead=BYTES][,mtu=BYTES][,seed=N]
    #[arg(long, value_name = "PATH")]
    link: PathSpec,
    /// A command line to start on the server first; CMD starts once it listens
    #[arg(long, value_name = "CMD")]
    server: Option<String>,
    /// Congestion control of both hosts
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    cc: String,
    /// Set a kernel setting on both hosts, such as net.ipv4.tcp_sack=0 (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    sysctl: Vec<(String, String)>,
    /// Give both hosts buffers that fill the path: 4 x (BDP + queue)
    #[arg(long)]
    tuned: bool,
    /// Write what the path was asked and what it did to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The program to run on the client, and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) =
        text.split_once('=').ok_or("write KEY=VALUE, such as net.ipv4.tcp_sack=0")?;
    sysctl::path(key.trim()).map_err(|error| error.to_string())?;
    if !key.trim().starts_with("net.") {
        return Err(LabError::Setting { key: key.trim().to_owned() }.to_string());
    }
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

pub(crate) fn run(args: &LabArgs) -> Outcome {
    match &args.verb {
        LabVerb::Run(args) => inside::a_world(|| run_inside(args)),
    }
}

fn run_inside(args: &RunArgs) -> Outcome {
    let plan = LabPlan {
        path: args.link.clone(),
        congestion: args.cc.clone(),
        sysctls: args.sysctl.clone(),
        tuned: args.tuned,
    };
    let running = Running::default();
    running.end_on_signals();
    let reaper = Reaper::start(path_with_us());
    let lab = Lab::start(&plan).map_err(Failure::usage)?;
    cover_names(&lab);
    introduce(&lab, &plan);

    let server = match &args.server {
        Some(line) => Some(start_server(&lab, &reaper, &running, line)?),
        None => None,
    };
    if let Some(signal) = running.ending() {
        return Ok(128 + signal);
    }
    let client = start(lab.client(), &reaper, &args.command, true)?;
    running.add(&client);
    let code = wait_for(&client, &lab);
    if let Some(server) = server {
        end(&server);
    }
    let report = lab.finish().map_err(Failure::work)?;
    if let Some(file) = &args.report {
        let json = serde_json::to_string_pretty(&report).map_err(Failure::work)? + "\n";
        store::write(file, json.as_bytes()).map_err(Failure::work)?;
    }
    Ok(conclude(&report, code))
}

/// The search path with our own folder at its end: `longhaul test` works in a
/// lab where longhaul is not installed.
fn path_with_us() -> Option<OsString> {
    let own = std::env::current_exe().ok()?;
    let known = std::env::var_os("PATH").filter(|path| !path.is_empty())?;
    let folders = std::env::split_paths(&known).chain(own.parent().map(Into::into));
    std::env::join_paths(folders).ok()
}

/// Lets the hosts' names resolve for every program of this world.
fn cover_names(lab: &Lab) {
    let known = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let names = lab.names() + &known;
    if let Err(error) = world::cover_file(c"/etc/hosts", &names) {
        let (client, server) = (lab.client().ipv4, lab.server().ipv4);
        eprintln!(
            "lab: the hosts' names do not resolve here ({error}); use client {client} and server {server}"
        );
    }
    // A system without that file keeps its own preference.
    let _ = world::cover_file(c"/etc/gai.conf", lab::PREFER_IPV4);
}

fn introduce(lab: &Lab, plan: &LabPlan) {
    eprintln!("lab: {}; {}", lab.path(), plan.congestion);
    let buffers = |host: &LabHost| host.namespace.run(Buffers::read).and_then(|read| read);
    let (Ok(client), Ok(server)) = (buffers(lab.client()), buffers(lab.server())) else {
        return;
    };
    let share = model::INITIAL_WINDOW_SHARE;
    if let Some(allowed) = tune::allowed_rate(&client, &server, share, lab.path().rtt)
        && allowed < lab.path().rate
    {
        eprintln!(
            "lab: the hosts' buffers allow one connection about {allowed}; --tuned sets what the path needs"
        );
    }
}

/// The programs that run, so that a signal to the lab reaches them.
#[derive(Clone, Default)]
struct Running {
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    programs: Vec<Program>,
    /// The signal that ends the lab.
    ending: Option<i32>,
}

impl Running {
    fn hold(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A program that starts while the lab is ending is told at once.
    fn add(&self, program: &Program) {
        let mut known = self.hold();
        if let Some(signal) = known.ending {
            program.signal(signal);
        }
        known.programs.push(program.clone());
    }

    /// The signal that came before the command was started.
    fn ending(&self) -> Option<i32> {
        self.hold().ending
    }

    /// The first signal goes on to the programs, which a terminal has told
    /// already; the lab then ends as they do. A second one ends everything.
    fn end_on_signals(&self) {
        let running = self.clone();
        std::thread::spawn(move || {
            let (first, from_program) = signals::wait_for_ending();
            let mut known = running.hold();
            known.ending = Some(first);
            if known.programs.is_empty() {
                std::process::exit(128 + first);
            }
            if from_program {
                known.programs.iter().for_each(|program| program.signal(first));
            }
            drop(known);
            std::process::exit(128 + signals::wait_for_second());
        });
    }
}

/// Waits for the command's end. A path that broke off would leave it waiting
/// for as long as TCP does.
fn wait_for(client: &Program, lab: &Lab) -> Code {
    loop {
        if let Some(code) = client.wait_at_most(GLANCE) {
            return code;
        }
        if !lab.is_carried() {
            end(client);
        }
    }
}

fn start(
    host: &LabHost,
    reaper: &Reaper,
    command: &[OsString],
    foreground: bool,
) -> Result<Program, Failure> {
    reaper.start_program(&host.namespace, command, foreground).map_err(|source| {
        let program =
            command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Failure::usage(LabError::Start { program, host: host.name, source })
    })
}

fn start_server(
    lab: &Lab,
    reaper: &Reaper,
    running: &Running,
    line: &str,
) -> Result<Program, Failure> {
    // A shell reads the line as people write it; for a single program it
    // leaves nothing of itself behind.
    let command = ["/bin/sh", "-c", line].map(OsString::from);
    let server = start(lab.server(), reaper, &command, false)?;
    running.add(&server);
    match lab::wait_until_listening(lab.server(), &server, PATIENCE).map_err(Failure::work)? {
        Listening::Yes => {}
        Listening::NotYet => {
            eprintln!(
                "lab: the server does not listen after {} s; starting the command all the same",
                PATIENCE.as_secs()
            );
        }
        // What a shell answers where it finds no such program, or may not start it.
        Listening::Ended(code @ (126 | 127)) => {
            return Err(Failure::usage(format!(
                "the server's command cannot start (exit code {code}): {line}"
            )));
        }
        Listening::Ended(code) => {
            return Err(Failure::work(format!(
                "the server ended with exit code {code} before it listened: {line}"
            )));
        }
    }
    Ok(server)
}

/// A server that has not ended by itself is asked to, then made to.
fn end(server: &Program) {
    for signal in [libc_signal::TERM, libc_signal::KILL] {
        if server.wait_at_most(GRACE).is_some() {
            return;
        }
        server.signal(signal);
    }
    let _ = server.wait_at_most(GRACE);
}

mod libc_signal {
    //! Numbers fixed by POSIX.
    pub(super) const TERM: i32 = 15;
    pub(super) const KILL: i32 = 9;
}

fn conclude(report: &PathReport, code: Code) -> Code {
    let did = &report.achieved;
    let rate = did.rate_bps.map_or("never busy long enough to tell its rate".to_owned(), |rate| {
        format!("{rate} while busy")
    });
    let idle = did.idle_rtt_ms.map_or("not measured".to_owned(), |rtt| format!("{rtt:.2} ms"));
    let micros = |late: u64| units::Rtt::from_micros(late).to_string();
    eprintln!(
        "lab: carried {} packets, {rate}; idle RTT {idle}; {} lost by chance, {} dropped by the queue; late by {} (median), {} (99 %), {} (worst); seed {}",
        did.packets,
        did.lost,
        did.queue_drops,
        micros(did.lateness_p50_us),
        micros(did.lateness_p99_us),
        micros(did.lateness_max_us),
        report.seed
    );
    if !report.valid {
        eprintln!("lab: NOT VALID: {}", report.reasons.join("; "));
        return NOT_VALID;
    }
    code
}
