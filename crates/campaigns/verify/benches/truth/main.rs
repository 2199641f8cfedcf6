//! How often a diagnosis is right: `cargo bench -p longhaul-verify --bench truth`.
//!
//! Draws cases from families of paths and traffic, runs each in the simulated twin or in
//! the lab, and explains what was measured as on a real path, without a path report. The
//! true limit is computed from what happened in the run (`docs/design/ground-truth.md`).
//! Prints the share of right findings by family, the confusion matrix, findings that are
//! wrong with confidence "sure", and how well the probabilities are calibrated.
//!
//! `--help` lists the options.

mod congestion;
mod export;
mod fixed_windows;
mod lab_capture;
mod lab_run;
mod lab_truth;
mod local;
mod options;
mod policer;
mod removal;
mod show;
#[path = "kernel/show.rs"]
mod show_lab;
mod stored;

use bench_harness::{Fallible, fresh_seed};
use lab_run::{LabRun, ThreadShare};
use options::Options;
use record::Measurement;
use simulator::score::{self, Calibration, Confusion, Scored};
use simulator::{Scenario, Truth};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use stored::Run;

fn main() -> ExitCode {
    bench_harness::run(options::HELP, |arguments| {
        let options = options::parse(arguments)?;
        if options.twin || options.load.is_some() {
            return work(&options);
        }
        bench_harness::in_sandbox(|| work(&options))
    })
}

fn work(options: &Options) -> Fallible<()> {
    match &options.load {
        _ if options.local => local::measure(options),
        _ if options.decide_policer => policer::measure(options),
        _ if options.fixed_windows => fixed_windows::measure(options),
        _ if options.removal => removal::measure(options),
        Some(folder) => explain_stored(options, folder),
        None => match options.show {
            Some(number) => show(options, number),
            None => measure(options),
        },
    }
}

/// Cases that are run before their results are written: bounds the memory.
const CHUNK: usize = 256;

fn measure(options: &Options) -> Fallible<()> {
    let seed = options.seed.unwrap_or_else(fresh_seed);
    println!("seed {seed}");
    let cases = options.cases(seed);
    if options.congestion {
        return congestion::measure(options, seed, &cases);
    }
    let mut out = export::create(options)?;
    let mut scored = Vec::new();
    let mut left_out = 0;
    let started = host::clock::now();
    // A run in the lab is written at once: an hour of them may be broken off.
    let (size, threads) = if options.twin { (CHUNK, threads()) } else { (1, 1) };
    for chunk in cases.chunks(size) {
        for (case, done) in in_parallel(options, seed, chunk, threads)? {
            let Some((run, truth, one)) = done else {
                left_out += 1;
                println!("not valid, left out: {case}");
                continue;
            };
            if let Some(folder) = &options.save {
                stored::save(folder, &run)?;
            }
            if let Some(out) = &mut out {
                out.run(case, &run, &truth, one.from_tcp_info)?;
            }
            tell(&one, &run.case, options.labels);
            scored.push(one);
        }
    }
    if let Some(out) = out {
        out.finish()?;
    }
    println!("\nseed {seed}: {} runs, {left_out} not valid", scored.len());
    println!("{:.1} s", started.elapsed().as_secs_f64());
    report(options, &scored)
}

type Done<'a> = (&'a Scenario, Option<(Run, Truth, Scored)>);

/// Runs of a case in the lab until one is valid.
const LAB_ATTEMPTS: u32 = 2;

/// Runs cases on some threads; the results are in the order of the cases.
fn in_parallel<'a>(
    options: &Options,
    seed: u64,
    cases: &'a [Scenario],
    threads: usize,
) -> Fallible<Vec<Done<'a>>> {
    each_in_parallel(cases, threads, |case| run(options, seed, case))
}

/// What `work` makes of each case, in their order.
fn each_in_parallel<'a, T: Send>(
    cases: &'a [Scenario],
    threads: usize,
    work: impl Fn(&'a Scenario) -> Fallible<T> + Sync,
) -> Fallible<Vec<T>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Fallible<T>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let index = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(case) = cases.get(index)
                {
                    let one = work(case);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((index, one));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn run<'a>(options: &Options, seed: u64, case: &'a Scenario) -> Fallible<Done<'a>> {
    let words = case.to_string();
    let captures = options.vantage.captured_host().is_some();
    let (intervals, cpu_limited, measurement, captured) = if options.twin {
        let failed = |error| format!("{words}: {error}");
        let (run, captured) = if captures {
            let (run, captures) = case.run_captured(seed).map_err(failed)?;
            (run, Some(captures.measurements))
        } else {
            (case.run(seed).map_err(failed)?, None)
        };
        (run.intervals, false, run.measurement, captured)
    } else {
        // A test that fails on a busy machine is no finding either.
        match lab_run::run_valid(case, seed, LAB_ATTEMPTS, captures) {
            Ok(run) if run.not_valid.is_empty() => {
                let cpu_limited = is_cpu_limited(&run);
                let captured = run.captured(case);
                (run.truth, cpu_limited, run.measurement, captured)
            }
            Ok(run) => {
                eprintln!("{words}: not valid: {}", run.not_valid.join("; "));
                return Ok((case, None));
            }
            Err(error) => {
                eprintln!("{words}: {error}");
                return Ok((case, None));
            }
        }
    };
    let number = case.number;
    let run = Run { seed, number, case: words, intervals, cpu_limited, measurement, captured };
    let truth = run.truth(case)?;
    let scored = scored(options, case, &run, &truth)?;
    Ok((case, Some((run, truth, scored))))
}

/// The finding of a measurement beside its truth; as on a real path, without a path report.
fn scored(options: &Options, case: &Scenario, run: &Run, truth: &Truth) -> Fallible<Scored> {
    let explain = |seen: Measurement| diagnose::explain(&Measurement { path: None, ..seen });
    let seen = run.seen_from(options.vantage)?;
    let finding = (!options.labels).then(|| explain(seen));
    let mut scored = Scored::new(case, truth, finding);
    if options.vantage.captured_host().is_some() && !options.labels {
        scored.from_tcp_info = explain(run.measurement.clone()).limit;
    }
    Ok(scored)
}

/// A thread that uses a core, or waits for one, for this share of an interval is CPU-limited.
const CORE_FULL: f64 = 0.95;

/// Whether a thread was CPU-limited for most of a run.
fn is_cpu_limited(run: &LabRun) -> bool {
    let full = |share: ThreadShare| share.used + share.waited >= CORE_FULL;
    let limited = run.hosts.iter().filter(|h| full(h.sender_cpu) || full(h.receiver_cpu));
    2 * limited.count() > run.hosts.len()
}

fn show(options: &Options, number: usize) -> Fallible<()> {
    let seed = options.seed.ok_or("--show needs --seed")?;
    let case = options.case(seed, number);
    if !options.twin {
        let run = lab_run::run_valid(&case, seed, LAB_ATTEMPTS, false)?;
        println!("{}", show_lab::Table { case: &case, run: &run });
        return Ok(());
    }
    let run = case.run(seed)?;
    println!("{case}");
    show::show(&run.intervals, &run.truth);
    let finding = diagnose::explain(&Measurement { path: None, ..run.measurement });
    println!("{}", finding.sentence);
    Ok(())
}

fn explain_stored(options: &Options, folder: &Path) -> Fallible<()> {
    let mut out = export::create(options)?;
    let mut all = Vec::new();
    for run in stored::load(folder)? {
        let case = options.case(run.seed, run.number);
        if case.to_string() != run.case {
            return Err(format!("the families have changed since this run: {}", run.case).into());
        }
        let truth = run.truth(&case)?;
        let one = scored(options, &case, &run, &truth)?;
        if let Some(out) = &mut out {
            out.run(&case, &run, &truth, one.from_tcp_info)?;
        }
        tell(&one, &run.case, options.labels);
        all.push(one);
    }
    if let Some(out) = out {
        out.finish()?;
    }
    report(options, &all)
}

fn report(options: &Options, scored: &[Scored]) -> Fallible<()> {
    println!("{}", score::labels(scored));
    if !options.labels {
        let calibration = Calibration::of(scored);
        println!("{}", Confusion::of(scored));
        println!("{}", score::segments(scored));
        if options.vantage.captured_host().is_some() {
            println!("{}", score::agreement(scored));
        }
        println!("{calibration}");
        if let Some(file) = &options.diagram {
            std::fs::write(file, score::reliability_diagram(calibration.bins()))?;
        }
    }
    Ok(())
}

/// Prints a finding that is wrong, or with `labels` the truth.
fn tell(one: &Scored, case: &str, labels: bool) {
    let told = if labels { Some(one.label(case)) } else { one.mistake(case) };
    told.iter().for_each(|text| println!("{text}"));
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
