//! Throughput beside iperf3's versions and the bare pair, for every shape of a TCP test, over the
//! veth pair and over loopback: `-- engine` runs all (an hour), `-- engine-short` one stream and
//! four.
//!
//! Rounds alternate; the ratio is that of each round to the best of the others in it, its
//! interval the least and the largest of five, which hold the median with a probability of 94 %.

use crate::{
    Fallible, OURS,
    bars::{self, Group},
    median, number,
    pair::{self, Pair},
    row, run_between,
};
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

pub(crate) fn all(pair: &Pair) -> Fallible<()> {
    shapes(pair, &["1", "4", "16", "64"])
}

pub(crate) fn short(pair: &Pair) -> Fallible<()> {
    shapes(pair, &["1", "4"])
}

fn shapes(pair: &Pair, streams: &[&str]) -> Fallible<()> {
    let peers = peers();
    let names: Vec<_> = peers.iter().map(|peer| file_name(peer)).collect();
    println!("  beside {}", names.join(", "));
    let mut groups = Vec::new();
    for path in [Between::Veth, Between::Loopback] {
        for direction in DIRECTIONS {
            for zerocopy in [&[][..], &["-Z"]] {
                for streams in streams {
                    let options = [&["-P", *streams], direction, zerocopy].concat();
                    if !is_asked(&name(path, &options)) {
                        continue;
                    }
                    groups.push(shape(pair, path, &peers, streams, &options)?);
                }
            }
        }
    }
    let programs: Vec<_> =
        ["longhaul".to_owned()].into_iter().chain(names).chain(["bare pair".to_owned()]).collect();
    bars::write(&programs, &groups, "Gbit/s")
}

/// Whether the shape is one of `--shapes 'veth -P 4 -R,loopback -P 1'`; without it all are.
fn is_asked(shape: &str) -> bool {
    value_of("--shapes").is_none_or(|list| list.split(',').any(|one| one.trim() == shape))
}

/// The argument after `option`.
fn value_of(option: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != option).nth(1)
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
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench-peers/bin");
    let built = std::fs::read_dir(built).into_iter().flatten().flatten();
    let mut built: Vec<_> = built.map(|entry| entry.path().display().to_string()).collect();
    built.sort();
    if built.is_empty() { vec!["iperf3".to_owned()] } else { built }
}

fn shape(
    pair: &Pair,
    path: Between,
    peers: &[String],
    streams: &str,
    options: &[&str],
) -> Fallible<Group> {
    // The bare pair copies.
    let has_bare = !options.contains(&"-Z");
    let rounds = value_of("--rounds").map_or(Ok(ROUNDS), |rounds| rounds.parse())?;
    let (mut ours, mut theirs, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let mut all = Vec::new();
        for peer in peers {
            all.push(run(pair, path, &[peer], options)?);
        }
        if has_bare {
            bare.push(bare_run(pair, path, streams, options, round)?);
        }
        ours.push(run(pair, path, &OURS, options)?);
        theirs.push(all);
    }
    let rates: Vec<f64> = ours.iter().map(|run| run.rate).collect();
    let ratios = |of: fn(&Run) -> f64, best: fn(f64, f64) -> f64| -> Vec<f64> {
        let rounds = ours.iter().zip(&theirs);
        rounds
            .map(|(our, all)| of(our) / all.iter().map(of).reduce(best).unwrap_or(f64::NAN))
            .collect()
    };
    let faster = ratios(|run| run.rate, f64::max);
    let costs = ratios(|run| run.cost, f64::min);
    let of_bare = (!bare.is_empty()).then(|| median(&rates) / median(&bare));
    let least = faster.iter().copied().fold(f64::MAX, f64::min);
    let most = faster.iter().copied().fold(0.0, f64::max);
    let name = name(path, options);
    let of_peer = |at: usize| -> Vec<f64> { theirs.iter().map(|all| all[at].rate).collect() };
    let medians = [Some(median(&rates))]
        .into_iter()
        .chain((0..peers.len()).map(|at| Some(median(&of_peer(at)))))
        .chain([has_bare.then(|| median(&bare))])
        .collect();
    let group = Group { shape: name.clone(), rates: medians };
    let bare = of_bare.map_or(String::new(), |ratio| format!(", {ratio:.2} of bare"));
    let what = format!("{name}: {:.1} Gbit/s{bare}", median(&rates));
    let kept = median(&faster) >= PROMISED || of_bare.is_some_and(|ratio| ratio >= OF_BARE);
    row(&what, "1.05", &format!("{:.2} [{least:.2}, {most:.2}]", median(&faster)), kept);
    row(
        &format!("{name}: CPU per bit"),
        "1.00",
        &format!("{:.2}", median(&costs)),
        median(&costs) <= 1.0,
    );
    Ok(group)
}

fn ends(path: Between) -> (usize, &'static str) {
    match path {
        Between::Veth => (1, pair::SERVER),
        Between::Loopback => (0, "127.0.0.1"),
    }
}

fn run(pair: &Pair, path: Between, program: &[&str], options: &[&str]) -> Fallible<Run> {
    let options = [&[SECONDS, "-O0.3"][..], options].concat();
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
fn bare_run(
    pair: &Pair,
    path: Between,
    streams: &str,
    options: &[&str],
    round: usize,
) -> Fallible<f64> {
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
    // As in reads.rs.
    let reads = match streams {
        "1" if directions.len() == 1 => ["524288", "524288"],
        _ if server == 0 || directions.len() == 2 => ["524288", "16384"],
        _ => ["131072", "131072"],
    };
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
        let (port, share) = ((6000 + 2 * round + at).to_string(), share.to_string());
        let mut sender = Command::new(&program);
        sender.args(["--bare", "send", address, &port, streams, &share, "2"]);
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
