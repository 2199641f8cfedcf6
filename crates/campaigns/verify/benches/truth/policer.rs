//! How often `test --decide` tells a policer from a shallow queue: pairs of both on the same rate, RTT
//! and depth, in labs, with the first test and the trains that follow as the command runs them.

use crate::options::Options;
use bench_harness::{Fallible, fresh_seed};
use control::Algorithm;
use diagnose::deciding::DROPPING_ALIKE;
use lab::{Lab, Options as LabOptions};
use perf::client::{self, ClientConfig, EndAfter, TcpOptions, Transport};
use perf::server::{Server, ServerConfig};
use perf::{ServerEvent, StopFlag};
use record::{Decided, Direction, Finding, Limit, Measurement};
use simulator::draws::{Draws, KERNEL_CONTROLS};
use std::time::Duration;
use topology::Plan;

/// The whole range of a pair: Mbit/s, ms, and the depth in BDPs, of at least some packets.
const RATES: (f64, f64) = (4.0, 400.0);
const RTTS: (f64, f64) = (12.0, 200.0);
const DEPTHS: (f64, f64) = (0.04, 0.3);
const MIN_PACKETS: f64 = 4.0;

/// Runs of a case until one is valid.
const ATTEMPTS: u32 = 2;

/// One pair.
#[derive(Debug, Clone, Copy)]
struct Pair {
    mbit: f64,
    rtt_ms: f64,
    bytes: f64,
    congestion: Algorithm,
    reverse: bool,
    seed: u64,
}

/// What a run showed.
struct Done {
    pair: Pair,
    truth: Limit,
    first: Finding,
    decided: Decided,
    /// With the answer.
    second: Finding,
    trains: u32,
    /// Other second tests.
    others: u32,
}

impl Pair {
    fn draw(seed: u64, number: usize) -> Self {
        let mut draws = Draws::new(seed, number);
        let (mbit, rtt_ms) = (draws.log(RATES.0, RATES.1), draws.log(RTTS.0, RTTS.1));
        let depth = draws.log(DEPTHS.0, DEPTHS.1) * mbit * rtt_ms * 125.0;
        Pair {
            mbit,
            rtt_ms,
            bytes: depth.max(MIN_PACKETS * 1500.0),
            congestion: draws.congestion(),
            reverse: draws.chance(0.4),
            seed: seed.wrapping_add(number as u64),
        }
    }

    fn path(&self, truth: Limit) -> String {
        let Pair { mbit, rtt_ms, bytes, seed, .. } = self;
        let bottleneck = match truth {
            Limit::Policer => {
                format!("rate={:.0}kbit,police={:.0}kbit:{bytes:.0}", mbit * 3e3, mbit * 1e3)
            }
            _ => format!("rate={:.0}kbit,queue={bytes:.0}", mbit * 1e3),
        };
        format!("{bottleneck},rtt={rtt_ms:.1}ms,seed={seed}")
    }

    fn words(&self) -> String {
        format!(
            "{:.1} Mbit/s x {:.0} ms, {:.2} BDP ({:.0} packets), {}{}",
            self.mbit,
            self.rtt_ms,
            self.bytes / (self.mbit * self.rtt_ms * 125.0),
            self.bytes / 1500.0,
            self.congestion.name(),
            if self.reverse { " -R" } else { "" }
        )
    }
}

/// Runs the pairs and prints the table.
pub(crate) fn measure(options: &Options) -> Fallible<()> {
    let seed = options.seed.unwrap_or_else(fresh_seed);
    println!("seed {seed}");
    let (part, of) = options.part;
    let mut all = Vec::new();
    let mut left_out = 0;
    for number in (0..options.runs).filter(|number| number % of == part % of) {
        let pair = Pair::draw(seed, number);
        for truth in [Limit::Policer, Limit::ShallowQueue] {
            match run_valid(pair, truth) {
                Ok(done) => {
                    println!("{number} {}", done.words());
                    all.push(done);
                }
                Err(why) => {
                    left_out += 1;
                    println!("{number} {} {}: left out: {why}", truth.name(), pair.words());
                }
            }
        }
    }
    println!("\nseed {seed}: {} runs, {left_out} left out", all.len());
    report(&all);
    Ok(())
}

impl Done {
    fn words(&self) -> String {
        let verdict = match self.decided.limit {
            None => "undecided",
            Some(limit) if limit == self.truth => "right",
            Some(limit) if !DROPPING_ALIKE.contains(&limit) => "another cause",
            Some(_) => "WRONG",
        };
        let name = |finding: &Finding| {
            let limit = finding.limit.map_or("none", Limit::name);
            let confidence = finding.confidence.map_or("", |confidence| confidence.name());
            format!("{limit} {confidence}")
        };
        format!(
            "{} {}: {verdict}, {} trains, {} other; {} -> {}; {}",
            self.truth.name(),
            self.pair.words(),
            self.trains,
            self.others,
            name(&self.first),
            name(&self.second),
            self.decided.sentence
        )
    }
}

fn run_valid(pair: Pair, truth: Limit) -> Fallible<Done> {
    let mut last = run(pair, truth);
    for _ in 1..ATTEMPTS {
        if last.is_ok() {
            break;
        }
        last = run(pair, truth);
    }
    last
}

fn run(pair: Pair, truth: Limit) -> Fallible<Done> {
    let plan = Plan::pair(pair.path(truth).parse()?, pair.congestion.name(), &[], true);
    let lab = Lab::start(&plan, LabOptions::default())?;
    let config = ClientConfig {
        transport: Transport::Tcp(TcpOptions { limits_unsent: true, ..TcpOptions::default() }),
        end: EndAfter::Seconds((4.0 + pair.rtt_ms * 0.015).min(6.0)),
        direction: if pair.reverse { Direction::Reverse } else { Direction::Forward },
        watch_load: Duration::ZERO,
        report_every: Duration::from_secs(60),
        ..ClientConfig::new(lab.server().ipv4.to_string())
    };
    let [client, server] = [lab.client(), lab.server()].map(|host| &host.namespace);
    let listening = server.run(|| Server::bind(&ServerConfig::default()))??;
    let served = StopFlag::new();
    let done = std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(|| listening.serve(&served, &|_: ServerEvent| ())));
        let done = client.run(|| decide(pair, truth, &config));
        served.raise();
        let _ = serving.join();
        done
    })?;
    let report = lab.finish()?;
    let reasons: Vec<String> =
        report.links.into_iter().flat_map(|link| link.path.reasons).collect();
    if reasons.is_empty() { done } else { Err(reasons.join("; ").into()) }
}

/// As `longhaul test --decide` does it.
fn decide(pair: Pair, truth: Limit, config: &ClientConfig) -> Fallible<Done> {
    let transfer = |config: &ClientConfig| -> Fallible<Measurement> {
        Ok(client::run(config, &mut |_| (), &StopFlag::new())?.measurement)
    };
    let mut measured = transfer(config)?;
    let first = diagnose::explain(&measured);
    let (mut trains, mut others) = (0, 0);
    let mut second = |_: &str, config: &ClientConfig| {
        let is_train = config.transport.udp().is_some_and(|udp| udp.train.is_some());
        *(if is_train { &mut trains } else { &mut others }) += 1;
        transfer(config).map(Some)
    };
    let decided = verify::decide::decide(&measured, config, &mut second).map_err(|(_, e)| e)?;
    measured.decided = Some(decided.clone());
    let second = diagnose::explain(&measured);
    Ok(Done { pair, truth, first, decided, second, trains, others })
}

/// The share of runs that a train was chosen for, that were decided, and that were wrong.
fn report(all: &[Done]) {
    let row = |name: &str, chosen: &dyn Fn(&Done) -> bool| {
        let of: Vec<&Done> = all.iter().filter(|done| chosen(done)).collect();
        let count = |holds: &dyn Fn(&Done) -> bool| of.iter().filter(|done| holds(done)).count();
        let answer = |done: &Done| done.decided.limit.filter(|it| DROPPING_ALIKE.contains(it));
        let decided = count(&|done| answer(done).is_some());
        let wrong = count(&|done| answer(done).is_some_and(|limit| limit != done.truth));
        let tried = count(&|done| done.trains > 0);
        let sure = count(&|done| {
            done.second.confidence == Some(record::Confidence::Sure)
                && done.second.limit == Some(done.truth)
        });
        println!("{name:<28}{:>6}{tried:>8}{decided:>9}{wrong:>7}{sure:>11}", of.len());
    };
    println!(
        "{:<28}{:>6}{:>8}{:>9}{:>7}{:>11}",
        "", "runs", "trains", "decided", "wrong", "then sure"
    );
    row("all", &|_| true);
    for limit in [Limit::Policer, Limit::ShallowQueue] {
        row(limit.name(), &|done| done.truth == limit);
    }
    for (low, high) in [(4.0, 20.0), (20.0, 80.0), (80.0, 400.0)] {
        let within = |done: &Done| (low..high).contains(&done.pair.mbit);
        row(&format!("{low} to {high} Mbit/s"), &within);
    }
    for control in KERNEL_CONTROLS {
        row(control.name(), &|done| done.pair.congestion == control);
    }
    row("-R", &|done| done.pair.reverse);
    let sent = all.iter().filter(|done| done.trains > 1).count();
    println!("more than one train in {sent}");
}
