//! Metrics of one destination's route, predicted and measured over eight lab paths, and measured over
//! one for which there is no prediction: `make bench`.
//!
//! An unmodified program sends over a path, in the order A B B A without and with the plan of
//! `tune plan --route`, applied and reverted with its journal. The measured gain has to be within
//! 15 % of the predicted one, and each rollback has to restore the routing table to the byte.

mod transfer;

use bench_harness::{Arguments, Fallible, heading, median, note, row};
use host::directory::Trust;
use host::kernel_route::KernelRoute;
use host::route_table;
use lab::{Lab, Options};
use record::{RoutePrefix, TuneRoutePlan};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use topology::Plan;
use transfer::Length;
use tune::{
    Decision, HostDisk, Identity, Lock, PERSISTED, RouteGoal, ThisHost, Tuner, advise_route,
};

/// The promised distance between measured and predicted gain.
const WITHIN: f64 = 0.15;

const HELP: &str = "\
cargo bench -p longhaul-verify --bench route -- [--rounds N] [CASE]...
--rounds N: transfers without and with the plan, each (4)
CASE: a part of the name of a case (all of them)";

/// A path, and what is asked of it.
struct Case {
    name: &'static str,
    rate: &'static str,
    rtt: &'static str,
    loss: &'static str,
    length: Length,
    congestion: Option<&'static str>,
    /// The largest send buffer of the client, bytes.
    send_buffer: u64,
}

const LONG: Length = Length::Seconds { all: 20, skipped: 4 };
/// Under random loss: CUBIC is in its steady state, and loses often enough for a mean.
const LOSSY: Length = Length::Seconds { all: 60, skipped: 20 };

const fn case(name: &'static str, path: [&'static str; 3], length: Length) -> Case {
    let [rate, rtt, loss] = path;
    Case { name, rate, rtt, loss, length, congestion: None, send_buffer: 64 << 20 }
}

const CASES: [Case; 9] = [
    case("1 % loss", ["100mbit", "50ms", "1%"], LOSSY),
    case("0.5 % loss", ["100mbit", "100ms", "0.5%"], LOSSY),
    case("0.3 % loss, 173 ms", ["50mbit", "173ms", "0.3%"], LOSSY),
    case("0.5 % loss, 20 Mbit/s", ["20mbit", "30ms", "0.5%"], LOSSY),
    case("0.2 % loss, 40 ms", ["100mbit", "40ms", "0.2%"], LOSSY),
    case("1 MB over 173 ms", ["100mbit", "173ms", "0%"], Length::Bytes(1_000_000)),
    case("300 kB over 100 ms", ["50mbit", "100ms", "0%"], Length::Bytes(300_000)),
    Case { congestion: Some("bbr"), ..case("no loss, no gain", ["100mbit", "50ms", "0%"], LONG) },
    Case {
        congestion: Some("bbr"),
        send_buffer: 512 << 10,
        ..case("a short send buffer", ["100mbit", "100ms", "0%"], LONG)
    },
];

fn main() -> ExitCode {
    bench_harness::run_in_sandbox(HELP, measure)
}

/// Runs all cases, or those named on the command line.
fn measure(mut arguments: Arguments) -> Fallible<()> {
    let rounds = arguments.count("--rounds")?.unwrap_or(4);
    let named = arguments.names()?;
    let is_asked = |name: &str| named.is_empty() || named.iter().any(|part| name.contains(&**part));
    heading();
    CASES.iter().filter(|case| is_asked(case.name)).try_for_each(|case| hold(case, rounds))
}

fn hold(case: &Case, rounds: usize) -> Fallible<()> {
    let link = format!("rate={},rtt={},loss={},queue=1bdp", case.rate, case.rtt, case.loss);
    let sysctls = [
        ("net.ipv4.tcp_wmem".to_owned(), format!("4096 16384 {}", case.send_buffer)),
        ("net.ipv4.tcp_rmem".to_owned(), format!("4096 131072 {}", 64 << 20)),
    ];
    let lab = Lab::start(&Plan::pair(link.parse()?, "cubic", &sysctls, false), Options::default())?;
    lab.begin();
    let server = lab.server().ipv4;
    let prefix: RoutePrefix = server.to_string().parse()?;
    let goal = RouteGoal {
        loss: Some(case.loss.parse()?),
        bytes: match case.length {
            Length::Bytes(bytes) => Some(units::ByteCount::from_bytes(bytes)),
            Length::Seconds { .. } => None,
        },
        congestion: case.congestion.map(str::to_owned),
        ..RouteGoal::new(prefix, case.rate.parse()?, case.rtt.parse()?)
    };
    let plan = lab.client().namespace.run(|| advise_route(&ThisHost, &ThisHost, &goal))??;
    let is_of_case = |one: &&record::RoutePrediction| one.bytes == goal.bytes;
    let predicted = plan.predictions.iter().find(is_of_case);
    let journals = tempfile::tempdir()?;
    let journals = journals.path().canonicalize()?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..2 * rounds {
        let is_with = round % 4 == 1 || round % 4 == 2;
        let once = || transfer::goodput(&lab, SocketAddr::from((server, 5001)), case.length);
        if is_with {
            with.push(with_plan(&lab, &plan, &journals, once)?);
        } else {
            without.push(once()?);
        }
    }
    // The plan predicts means, from which single transfers under loss differ to either side.
    let middle = |rates: &[f64]| match case.length {
        LOSSY => rates.iter().sum::<f64>() / rates.len() as f64,
        _ => median(rates),
    };
    let (without, with) = (middle(&without), middle(&with));
    let gain = with / without;
    let report = lab.finish()?.into_path();
    let doubt = if report.valid { "" } else { " not valid" };
    let measured = format!("{without:.2}, then {with:.2} Mbit/s");
    let what = format!("{}: {}, {measured}", case.name, plan.metrics);
    let Some(predicted) = predicted else {
        note(&format!("{what}, not predicted"), &format!("x {gain:.2}{doubt}"));
        return Ok(());
    };
    let off = gain / predicted.gain() - 1.0;
    let promised = format!("x {:.2}", predicted.gain());
    let measured = format!("x {gain:.2} ({:+.0} %){doubt}", off * 100.0);
    row(&what, &promised, &measured, off.abs() <= WITHIN);
    Ok(())
}

/// Measures with the plan applied, and reverts it.
fn with_plan(
    lab: &Lab,
    plan: &TuneRoutePlan,
    journals: &Path,
    once: impl FnOnce() -> Fallible<f64>,
) -> Fallible<f64> {
    let on_client = |work: &(dyn Fn(&Tuner<'_>, &Lock) -> Fallible<()> + Sync)| {
        lab.client().namespace.run(|| {
            let disk = HostDisk { journals: journals.to_owned(), trust: Trust::Owner };
            let lock = Lock::take(journals, Trust::Owner)?;
            let tuner = Tuner {
                settings: &ThisHost,
                routes: &ThisHost,
                disk: &disk,
                folder: journals,
                persisted: Path::new(PERSISTED),
                here: Identity::here(),
                now_s: host::clock::unix_seconds(),
            };
            work(&tuner, &lock)
        })?
    };
    let before = table(lab, plan.prefix)?;
    on_client(&|tuner, lock| Ok(tuner.apply_route(lock, plan).map(drop)?))?;
    let measured = once();
    on_client(&|tuner, lock| Ok(tuner.undo(lock, true, &mut |_| Decision::Keep).map(drop)?))?;
    match table(lab, plan.prefix)? == before {
        true => measured,
        false => Err("the rollback did not restore the routing table".into()),
    }
}

/// Every byte of the routes that cover the prefix.
fn table(lab: &Lab, prefix: RoutePrefix) -> Fallible<Vec<Vec<u8>>> {
    let all = lab.client().namespace.run(|| route_table::around(prefix))??;
    Ok(all.covering.iter().map(KernelRoute::body).collect())
}
