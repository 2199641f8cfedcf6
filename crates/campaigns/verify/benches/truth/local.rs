//! Transfers inside this host, where the CPU's cost per byte decides: `--local`.
//!
//! The truth is what helps: the remedies of both findings. Each case is run as it is, with CUBIC
//! instead of BBR, and with socket buffers of 256 KiB and of 1 MiB, interleaved. A finding is right
//! where its remedy has at least [`HELPS`] times the goodput: CUBIC for *pacing-timers*, either size
//! for *memory*.
//! Where no variant has [`HELPS_NOT`] times the goodput, a finding is right that names neither.
//! Where the best is in between, the case is undecided and does not count.
//!
//! `--set development|held-out`: the rules of `diagnose` were adjusted on the first only.
//! `--save DIR` keeps the explained measurement of each case, `--load DIR` explains it again.
//! Needs root and ip(8).

mod cases;
mod hosts;

use crate::options::Options;
use bench_harness::Fallible;
use cases::{CASES, LocalCase};
use hosts::Hosts;
use perf::client::{self, ClientConfig, EndAfter};
use perf::server::{Server, ServerConfig};
use perf::{ServerEvent, StopFlag};
use record::{Direction, Limit, Measurement};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use units::ByteCount;

pub(crate) use cases::Set;

/// The gain from which a variant shows its cause, and below which it excludes it; the same as
/// those of the second tests in `diagnose::deciding`.
const HELPS: f64 = 1.2;
const HELPS_NOT: f64 = 1.05;

/// Length of a run, and rounds of all variants.
const SECONDS: f64 = 1.5;
const ROUNDS: usize = 3;

/// The smaller socket buffers.
const SMALLER: [u64; 2] = [256 << 10, 1 << 20];

/// A case that was run.
#[derive(Debug, Serialize, Deserialize)]
struct LocalRun {
    case: String,
    /// The gain with CUBIC instead of BBR; `None` if the case has no BBR.
    cubic: Option<f64>,
    /// The gain with each of [`SMALLER`].
    smaller: [f64; 2],
    /// The first run of the case as it is.
    measurement: Measurement,
}

/// Whether a finding is right; `None`: undecided.
fn is_right(found: Limit, run: &LocalRun) -> Option<bool> {
    let [quarter, whole] = run.smaller;
    let cubic = run.cubic.unwrap_or(1.0);
    let best = cubic.max(quarter).max(whole);
    if (HELPS_NOT..HELPS).contains(&best) {
        return None;
    }
    Some(match found {
        Limit::PacingTimers => cubic >= HELPS,
        Limit::Memory => quarter.max(whole) >= HELPS,
        _ => best < HELPS_NOT,
    })
}

pub(crate) fn measure(options: &Options) -> Fallible<()> {
    let (mut right, mut decided) = (0, 0);
    for case in CASES.iter().filter(|case| options.set.is_none_or(|set| set == case.set)) {
        let name = case.to_string();
        if options.only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let run = match &options.load {
            Some(folder) => load(folder, &name)?,
            None => run(case)?,
        };
        if let Some(folder) = &options.save {
            save(folder, &run)?;
        }
        let finding = diagnose::explain(&run.measurement);
        let found = finding.limit.unwrap_or(Limit::Unknown);
        let verdict = match is_right(found, &run) {
            None => "undecided",
            Some(is_right) => {
                decided += 1;
                right += usize::from(is_right);
                if is_right { "right" } else { "WRONG" }
            }
        };
        let cubic = run.cubic.map_or_else(|| "-".to_owned(), |gain| format!("{gain:.2}"));
        let [quarter, whole] = run.smaller;
        println!(
            "{verdict:<9} {name}: {}, gain with cubic {cubic}, -w 256K {quarter:.2}, -w 1M \
             {whole:.2}; found {}",
            finding.throughput_bps,
            found.name()
        );
        println!("          {}", finding.sentence);
        for remedy in &finding.remedies {
            println!("          {}: {}", remedy.command, remedy.why);
        }
    }
    println!("\n{right} of {decided} right");
    Ok(())
}

/// A change of the case.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Variant {
    AsIs,
    Cubic,
    Smaller(u64),
}

fn run(case: &LocalCase) -> Fallible<LocalRun> {
    let hosts = Hosts::start(case.device, case.largest_buffer)?;
    let mut variants = vec![Variant::AsIs];
    variants.extend(SMALLER.map(Variant::Smaller));
    variants.extend((case.congestion == "bbr").then_some(Variant::Cubic));
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); variants.len()];
    let mut first = None;
    for _ in 0..ROUNDS {
        for (variant, rates) in variants.iter().zip(&mut rates) {
            let measurement = transfer(case, *variant, &hosts)?;
            let bits = measurement.received().bytes() as f64 * 8.0;
            rates.push(bits / measurement.seconds().max(1e-3));
            if *variant == Variant::AsIs {
                first.get_or_insert(measurement);
            }
        }
    }
    let medians: Vec<f64> =
        rates.iter().filter_map(|rates| model::statistics::median(rates)).collect();
    let [as_is, quarter, whole, cubic @ ..] = &*medians else {
        return Err("nothing arrived".into());
    };
    let gain = |rate: &f64| rate / as_is.max(1.0);
    Ok(LocalRun {
        case: case.to_string(),
        cubic: cubic.first().map(gain),
        smaller: [quarter, whole].map(gain),
        measurement: first.ok_or("nothing arrived")?,
    })
}

fn transfer(case: &LocalCase, variant: Variant, hosts: &Hosts) -> Fallible<Measurement> {
    let mut config = ClientConfig {
        end: EndAfter::Seconds(SECONDS),
        streams: case.streams,
        congestion: Some(case.congestion.to_owned()),
        rate: case.rate,
        window: case.window.map(ByteCount::from_bytes),
        direction: if case.reverse { Direction::Reverse } else { Direction::Forward },
        watch_load: Duration::ZERO,
        ..ClientConfig::new(hosts.address.to_string())
    };
    match variant {
        Variant::AsIs => {}
        Variant::Cubic => config.congestion = Some("cubic".to_owned()),
        Variant::Smaller(bytes) => config.window = Some(ByteCount::from_bytes(bytes)),
    }
    let settings = ServerConfig { one_off: true, ..ServerConfig::default() };
    let listening = hosts.server.run(|| Server::bind(&settings))??;
    let done = StopFlag::new();
    std::thread::scope(|scope| {
        let serving =
            scope.spawn(|| hosts.server.run(|| listening.serve(&done, &|_: ServerEvent| ())));
        let measured = hosts.client.run(|| {
            client::run(&config, &mut |_| (), &StopFlag::new()).map(|report| report.measurement)
        });
        done.raise();
        let _ = serving.join();
        Ok(measured??)
    })
}

fn save(folder: &Path, run: &LocalRun) -> Fallible<()> {
    std::fs::create_dir_all(folder)?;
    Ok(std::fs::write(file(folder, &run.case), serde_json::to_vec(run)?)?)
}

fn load(folder: &Path, name: &str) -> Fallible<LocalRun> {
    let path = file(folder, name);
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(serde_json::from_slice(&bytes)?)
}

fn file(folder: &Path, name: &str) -> std::path::PathBuf {
    folder.join(format!("{}.json", name.replace(' ', "-")))
}
