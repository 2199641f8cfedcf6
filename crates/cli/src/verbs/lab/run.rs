//! `longhaul lab run` and `lab shell`: a program on the client, behind a path.

use super::machine::{self, FarEnd};
use super::stage::{self, Stage, StageArgs};
use super::{parse_path, setting};
use crate::failure::{Failure, Outcome};
use crate::inside;
use clap::Args;
use lab::{Job, Lab, LabError, LabHost, Session, SessionEvent, Streams, Why};
use std::ffi::OsString;
use std::time::Duration;
use topology::plan::Wait;
use topology::{PathSpec, Plan};
use tune::Buffers;

/// The pair of hosts and the path between them.
#[derive(Debug, Args)]
pub(super) struct PairArgs {
    /// The path: a name (`longhaul lab paths`), KEY=VALUE,…, or both
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    link: PathSpec,
    /// Congestion control of both hosts
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    cc: String,
    /// Set a kernel setting on both hosts, such as net.ipv4.tcp_sack=0 (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    sysctl: Vec<(String, String)>,
    /// Give both hosts buffers that fill the path: 4 x (BDP + queue)
    #[arg(long)]
    tuned: bool,
    /// A command line to start on the server first; CMD starts once it listens
    #[arg(long, value_name = "CMD")]
    server: Option<String>,
    /// What is at the far end: a host of the lab's own, or this machine, as the
    /// host `machine`, whose TCP services are reached through the path
    #[arg(long, value_name = "END", default_value = "server", conflicts_with = "server")]
    far_end: FarEnd,
    /// With --far-end machine, reach the machine's network as well (root)
    #[arg(long)]
    nat: bool,
    #[command(flatten)]
    stage: StageArgs,
}

const RUN_EXAMPLES: &str = "\
Examples:
  longhaul lab run --link rate=100mbit,rtt=173ms --server 'iperf3 -s -1' -- iperf3 -c server
  longhaul lab run --link rate=1gbit,rtt=50ms,loss=0.1% --tuned --cc bbr \\
      --server 'longhaul server --one-off' -- longhaul test server
  longhaul lab run --link geo -- ping -c 5 server
  longhaul lab run --link rate=20mbit,rtt=40ms,queue=fq_codel --server 'iperf3 -s -1' -- iperf3 -c server
  longhaul lab run --link lte --far-end machine -- curl http://machine:8080/

The link, up (client to server) and down alike, or one way with up. and down. before a key:
  rate=100mbit   bottleneck, counting IP bytes; unlimited; trace:FILE (mahimahi's format)
  burst=64KiB    token bucket: so much at once after a pause
  rtt=173ms      round trip without serialisation and queueing, half each way; or delay=
  jitter=5ms     normal:, uniform:, exponential: or pareto:5ms; overtake=yes lets packets pass
  loss=0.1%      per packet of MTU size; ge:P:R[:BAD[:GOOD]] Gilbert-Elliott; list:3+7+10-20;
                 replay:FILE (a --packet-log)
  bursts=10p@5s  so many lost in a row, every 5 s;  blackhole=2s@7s  dark 2 s of every 7 s
  reorder=1%:5ms duplicate=0.1% corrupt=0.01% police=10mbit:64KiB window-scale=strip
  queue=1bdp     drop-tail: 1bdp, 1000p, 2MiB, 250ms; or drop-head, codel, fq_codel, red, pie with
                 limit=, target=, interval=, ecn=, ...; mark=20p marks above that [1bdp, at least 64p]
  overhead=38    framing bytes counted on each packet; 38 is Ethernet's [0]
  mtu=1500       largest IP packet; up.mtu=1400 drops longer ones in silence [1500]
  seed=7         repeats a run's draws [a new one each run]
  @5s.rate=2mbit changes while it runs; repeat=30s begins again

Exit code: CMD's own; 2 where a program or the lab could not start;
3 where the machine could not carry the path, so that the result is not valid.";

/// Run a program on the client of two hosts with an emulated path between them
///
/// The hosts are called `client` and `server`. Both names resolve inside.
/// CMD has the terminal to itself; what the lab says goes to standard error.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pair: PairArgs,
    /// The program to run on the client, and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const SHELL_EXAMPLES: &str = "\
Examples:
  longhaul lab shell --link transatlantic
  longhaul lab shell --link leo --server 'longhaul server'
  longhaul lab shell --link rate=5mbit,rtt=300ms,loss=1%

In the shell, `server` is the far host. From another terminal:
  longhaul lab exec server iperf3 -s
  longhaul lab set loss=5%
  longhaul lab pcap client -w trace.pcapng

`longhaul lab run --help` lists what a link can be.";

/// Open a shell on the client, behind an emulated path
#[derive(Debug, Args)]
#[command(after_help = SHELL_EXAMPLES)]
pub(super) struct ShellArgs {
    #[command(flatten)]
    pair: PairArgs,
}

pub(super) fn run(args: &RunArgs) -> Outcome {
    let words = words(&args.command);
    inside::a_world(|| run_inside(&args.pair, &args.command, words))
}

pub(super) fn shell(args: &ShellArgs) -> Outcome {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let command = [shell.unwrap_or_else(|| "/bin/sh".into())];
    let words = words(&command);
    inside::a_world(|| {
        eprintln!("lab: a shell on the client; the far host is `server`; exit ends the lab");
        run_inside(&args.pair, &command, words)
    })
}

fn words(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

fn run_inside(args: &PairArgs, command: &[OsString], words: String) -> Outcome {
    let mut plan = Plan::pair(args.link.clone(), &args.cc, &args.sysctl, args.tuned);
    let far_end = machine::FarHost::of(args.far_end, args.nat, &mut plan)?;
    let stage = Stage::build(&plan, &args.stage, far_end.place())?;
    introduce(&stage.lab, &args.cc);
    let _open = far_end.open(&stage.lab)?;
    let mut jobs = Vec::new();
    if let Some(line) = &args.server {
        jobs.push(Job {
            host: "server".to_owned(),
            // A shell reads the line as people write it; for a single program
            // it leaves nothing of itself behind.
            arguments: ["/bin/sh", "-c", line].map(OsString::from).into(),
            words: line.clone(),
            background: true,
            wait: Wait::UntilListening,
            start: Duration::ZERO,
            stop: None,
            streams: Streams::Errors,
        });
    }
    jobs.push(Job {
        host: "client".to_owned(),
        arguments: command.to_vec(),
        words,
        background: false,
        wait: Wait::No,
        start: Duration::ZERO,
        stop: None,
        streams: Streams::Terminal,
    });
    let session = Session { jobs, ..Session::default() };
    let ended = session.run(&stage.lab, &stage.reaper, &stage.ending, &mut |event| {
        if let SessionEvent::NotListening(_, patience) = event {
            eprintln!(
                "lab: the server does not listen after {} s; starting the command all the same",
                patience.as_secs()
            );
        }
    });
    let ended = ended.map_err(start_failure)?;
    let report = stage.finish(&args.stage)?;
    let code = ended.ends.last().and_then(|end| end.as_ref()?.code);
    let code = match (code, ended.why) {
        (Some(code), _) => code,
        (None, Why::Signal(signal)) => 128 + signal,
        (None, _) => crate::failure::FAILED,
    };
    Ok(stage::conclude(&report, code))
}

/// What a shell answers where it finds no such program, or may not start it,
/// is the user's to mend.
pub(super) fn start_failure(error: LabError) -> Failure {
    match error {
        LabError::Start { .. } => Failure::usage(error),
        LabError::NeverListened { code: code @ (126 | 127), command, .. } => {
            Failure::usage(format!("the command cannot start (exit code {code}): {command}"))
        }
        other => Failure::work(other),
    }
}

fn introduce(lab: &Lab, congestion: &str) {
    eprintln!("lab: {}; {congestion}", lab.path());
    let buffers = |host: &LabHost| host.namespace.run(Buffers::read).and_then(|read| read);
    let (Ok(client), Ok(server)) = (buffers(lab.client()), buffers(lab.server())) else {
        return;
    };
    let share = model::INITIAL_WINDOW_SHARE;
    let allowed = tune::allowed_rate(&client, &server, share, lab.path().rtt());
    if let Some((allowed, rate)) = allowed.zip(lab.path().rate())
        && allowed < rate
    {
        eprintln!(
            "lab: the hosts' buffers allow one connection about {allowed}; --tuned sets what the path needs"
        );
    }
}
