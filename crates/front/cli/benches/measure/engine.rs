//! Throughput beside iperf3's versions and the bare pair, for every shape of a TCP test, over the
//! veth pair and over loopback: `-- engine` runs all (an hour), `-- engine-short` one stream and
//! four.

use crate::{
    OURS,
    bars::{self, Group},
    number,
    options::Options,
    pair::{self, Pair},
    run_between,
};
use bench_harness::{Fallible, Ratios, best, median, row};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 5;
const SECONDS: &str = "-t2";
const DIRECTIONS: [&[&str]; 3] = [&[], &["-R"], &["--bidir"]];
const PROMISED: f64 = 1.05;
/// Where the bare pair is no faster than that: this share of it.
const OF_BARE: f64 = 0.97;

/// Between which ends.
#[derive(Clone, Copy)]
enum Between {
    Veth,
    Loopback,
}

/// A run's goodput, Gbit/s, and its CPU time at both ends, percent of a core per Gbit/s.
struct Run {
    rate: f64,
    cost: f64,
}

/// What takes turns.
enum Program<'a> {
    Ours,
    Peer(&'a str),
    Bare,
}

pub(crate) fn all(pair: &Pair, options: &Options) -> Fallible<()> {
    shapes(pair, options, &["1", "4", "16", "64"])
}

pub(crate) fn short(pair: &Pair, options: &Options) -> Fallible<()> {
    shapes(pair, options, &["1", "4"])
}

fn shapes(pair: &Pair, asked: &Options, streams: &[&str]) -> Fallible<()> {
    let peers = peers();
    let names: Vec<_> = peers.iter().map(|peer| file_name(peer)).collect();
    println!("  beside {}", names.join(", "));
    let programs: Vec<_> = [Program::Ours]
        .into_iter()
        .chain(peers.iter().map(|peer| Program::Peer(peer)))
        .chain([Program::Bare])
        .collect();
    let mut groups = Vec::new();
    for path in [Between::Veth, Between::Loopback] {
        for direction in DIRECTIONS {
            for zerocopy in [&[][..], &["-Z"]] {
                for streams in streams {
                    let options = [&["-P", *streams], direction, zerocopy].concat();
                    let rounds = asked.rounds.unwrap_or(ROUNDS);
                    if asked.includes(&name(path, &options)) {
                        groups.push(shape(pair, path, &programs, &options, rounds)?);
                    }
                }
            }
        }
    }
    if groups.is_empty() {
        return Err("no such shape; one is 'veth -P 4 -R'".into());
    }
    let programs: Vec<_> =
        ["longhaul".to_owned()].into_iter().chain(names).chain(["bare pair".to_owned()]).collect();
    bars::write(asked, &programs, &groups, "Gbit/s")
}

fn name(path: Between, options: &[&str]) -> String {
    let path = match path {
        Between::Veth => "veth",
        Between::Loopback => "loopback",
    };
    format!("{path} {}", options.join(" "))
}

/// The program's name without its directory.
pub(crate) fn file_name(program: &str) -> String {
    Path::new(program).file_name().map_or(program.to_owned(), |name| name.display().to_string())
}

/// The versions of iperf3 that scripts/bench-peers has built; without them, the system's.
pub(crate) fn peers() -> Vec<String> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/bench-peers/bin");
    let built = std::fs::read_dir(built).into_iter().flatten().flatten();
    let mut built: Vec<_> = built.map(|entry| entry.path().display().to_string()).collect();
    built.sort();
    if built.is_empty() { vec!["iperf3".to_owned()] } else { built }
}

fn shape(
    pair: &Pair,
    path: Between,
    programs: &[Program<'_>],
    options: &[&str],
    rounds: usize,
) -> Fallible<Group> {
    let runs = bench_harness::rounds(programs, rounds, |program, round| match program {
        Program::Ours => run(pair, path, &OURS, options),
        Program::Peer(peer) => run(pair, path, &[peer], options),
        Program::Bare => Ok(Run { rate: bare_run(pair, path, options, round)?, cost: f64::NAN }),
    })?;
    let of = |figure: fn(&Run) -> f64| -> Vec<Vec<f64>> {
        runs.iter().map(|runs| runs.iter().map(figure).collect()).collect()
    };
    let (rates, costs) = (of(|run| run.rate), of(|run| run.cost));
    let ([ours, peers @ .., bare], [our_cost, peer_costs @ .., _]) = (&rates[..], &costs[..])
    else {
        return Err("no program to compare with".into());
    };
    let faster = Ratios::of(ours, &best(peers, f64::max));
    let of_bare = Ratios::of(ours, bare);
    let cheaper = Ratios::of(our_cost, &best(peer_costs, f64::min));
    let name = name(path, options);
    row(
        &format!("{name}: {:.1} Gbit/s", median(ours)),
        &PROMISED.to_string(),
        &faster.to_string(),
        faster.median() >= PROMISED || of_bare.median() >= OF_BARE,
    );
    let kept = of_bare.median() >= OF_BARE;
    row("  of the bare pair", &OF_BARE.to_string(), &of_bare.to_string(), kept);
    row("  CPU per bit", "1.00", &cheaper.to_string(), cheaper.median() <= 1.0);
    let rates = rates.iter().map(|rates| Some(median(rates))).collect();
    Ok(Group { shape: name, rates })
}

fn ends(path: Between) -> (usize, &'static str) {
    match path {
        Between::Veth => (1, pair::SERVER),
        Between::Loopback => (0, "127.0.0.1"),
    }
}

fn run(pair: &Pair, path: Between, program: &[&str], options: &[&str]) -> Fallible<Run> {
    let options = [&[SECONDS][..], options].concat();
    let report = run_between(pair, ends(path), program, &options)?;
    let of = |path: &str| Some(number(&report, path)).filter(|rate| rate.is_finite());
    let rate = of("/end/sum_received/bits_per_second").unwrap_or(f64::NAN)
        + of("/end/sum_received_bidir_reverse/bits_per_second").unwrap_or(0.0);
    let rate = rate / 1e9;
    let cpu = number(&report, "/end/cpu_utilization_percent/host_total")
        + number(&report, "/end/cpu_utilization_percent/remote_total");
    Ok(Run { rate, cost: cpu / rate })
}

/// The bare pair's goodput; of both directions, if they are asked for, at the same time.
fn bare_run(pair: &Pair, path: Between, options: &[&str], round: usize) -> Fallible<f64> {
    let streams = options.get(1).copied().unwrap_or("1");
    let by_reference = options.contains(&"-Z");
    let (server, address) = ends(path);
    let client = if server == 0 { address } else { pair::CLIENT };
    let directions = [(0, server, address), (server, 0, client)];
    let directions = match (options.contains(&"--bidir"), options.contains(&"-R")) {
        (true, _) => &directions[..],
        (false, true) => &directions[1..],
        (false, false) => &directions[..1],
    };
    // Over loopback the senders' threads do the receivers' part as well, as in traffic.rs.
    let cores = host::cpu::cores() as usize;
    let share = if server == 0 && directions.len() == 1 { cores } else { cores.div_ceil(2) };
    let threads = if by_reference { "reference".to_owned() } else { share.to_string() };
    let reads = bare_reads(path, streams, directions.len(), by_reference);
    let program = std::env::current_exe()?;
    let mut receivers = Vec::new();
    for (at, (_, to, _)) in directions.iter().enumerate() {
        let port = (6000 + 2 * round + at).to_string();
        let mut receiver = Command::new(&program);
        receiver.args(["--bare", "receive", &port, streams]).args(reads).stdout(Stdio::piped());
        receivers.push(pair.spawn(*to, &mut receiver)?);
    }
    std::thread::sleep(Duration::from_millis(200));
    let mut senders = Vec::new();
    for (at, (from, _, address)) in directions.iter().enumerate() {
        let port = (6000 + 2 * round + at).to_string();
        let mut sender = Command::new(&program);
        sender.args(["--bare", "send", address, &port, streams, &threads, "2"]);
        senders.push(pair.spawn(*from, &mut sender)?);
    }
    for mut sender in senders {
        sender.wait()?;
    }
    let mut sum = 0.0;
    for receiver in receivers {
        let output = receiver.wait_with_output()?;
        sum += String::from_utf8(output.stdout)?.trim().parse::<f64>()?;
    }
    Ok(sum)
}

/// Bytes of a read, of its buffer, and that wake the receiver, as in reads.rs.
fn bare_reads(
    path: Between,
    streams: &str,
    directions: usize,
    by_reference: bool,
) -> [&'static str; 3] {
    const LONG: &str = "524288";
    const SHORT: &str = "131072";
    const SMALL: &str = "16384";
    match (path, streams, directions) {
        (_, "1", 1) => [LONG, LONG, LONG],
        (Between::Loopback, ..) if by_reference => [LONG, SMALL, "1"],
        (Between::Veth, _, 1) if !by_reference => [SHORT, SHORT, SHORT],
        _ => [LONG, SMALL, LONG],
    }
}
