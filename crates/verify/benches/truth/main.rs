//! How often a diagnosis is right: `cargo bench -p longhaul-verify --bench truth`.
//!
//! Transfers over emulated paths of 10 Mbit/s to 2 Gbit/s and 5 to 250 ms, each
//! held by one cause that was made on purpose, are explained without the path's
//! certificate, as on a real path. Prints the confusion matrix, the share that
//! is right and the share that is wrong though called sure.
//!
//! Options, after `--`: `--runs N` (300), `--seed N` of the draws, `--part I/N`
//! to share the work among processes, `--only CAUSE`, `--without CAUSE`, `--save DIR` keeps every measurement and
//! `--load DIR` explains kept ones again.

mod cases;
mod draws;
mod run;
mod table;

use cases::case;
use host::world::{self, Ended};
use record::{Confidence, Limit, Measurement};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use table::Table;

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A measurement and what held it.
#[derive(Serialize, Deserialize)]
struct Labelled {
    truth: Limit,
    case: String,
    measurement: Measurement,
}

struct Options {
    runs: usize,
    seed: u64,
    part: (usize, usize),
    only: Option<String>,
    without: Option<String>,
    save: Option<PathBuf>,
    load: Option<PathBuf>,
}

fn main() {
    // `cargo test --benches` only asks whether it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let work = || {
        let done = options().and_then(|options| match &options.load {
            Some(folder) => explain_kept(folder),
            None => measure(&options),
        });
        i32::from(done.inspect_err(|error| eprintln!("{error}")).is_err())
    };
    match world::run(work) {
        Ok(Ended::Code(code)) => std::process::exit(code),
        other => {
            eprintln!("{other:?}");
            std::process::exit(1);
        }
    }
}

fn options() -> Fallible<Options> {
    let mut options = Options {
        runs: 300,
        seed: 2,
        part: (0, 1),
        only: None,
        without: None,
        save: None,
        load: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--bench" => {}
            "--runs" => options.runs = value()?.parse()?,
            "--seed" => options.seed = value()?.parse()?,
            "--part" => {
                let value = value()?;
                let (part, of) = value.split_once('/').ok_or("--part is I/N")?;
                options.part = (part.parse()?, of.parse::<usize>()?.max(1));
            }
            "--without" => options.without = Some(value()?),
            "--only" => options.only = Some(value()?),
            "--save" => options.save = Some(value()?.into()),
            "--load" => options.load = Some(value()?.into()),
            other => return Err(format!("no option {other}").into()),
        }
    }
    Ok(options)
}

fn measure(options: &Options) -> Fallible<()> {
    let (part, of) = options.part;
    let (mut table, mut left_out) = (Table::default(), 0);
    for number in (0..options.runs).filter(|number| number % of == part % of) {
        let case = case(options.seed, number);
        let named = |name: &Option<String>| name.as_deref() == Some(case.truth.name());
        if (options.only.is_some() && !named(&options.only)) || named(&options.without) {
            continue;
        }
        let words = format!("{number} {} {} {:.1} s", case.path, case.congestion, case.seconds);
        let Some(measurement) = run::run(&case).map_err(|error| format!("{words}: {error}"))?
        else {
            left_out += 1;
            println!("{:<15} not valid, left out  {words}", case.truth.name());
            continue;
        };
        let labelled = Labelled { truth: case.truth, case: words, measurement };
        if let Some(folder) = &options.save {
            std::fs::create_dir_all(folder)?;
            let name = format!("{}-{number:04}.json", options.seed);
            std::fs::write(folder.join(name), serde_json::to_vec(&labelled)?)?;
        }
        judge(labelled, &mut table);
    }
    println!("\n{table}\nleft out, as the machine was busy: {left_out}");
    Ok(())
}

fn explain_kept(folder: &Path) -> Fallible<()> {
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Fallible<_>>()?;
    names.sort();
    let mut table = Table::default();
    for name in names {
        judge(serde_json::from_slice(&std::fs::read(name)?)?, &mut table);
    }
    println!("\n{table}");
    Ok(())
}

/// Whether what the case set up held the transfer at all: a label is only as true
/// as that. Told by the kernel's counts, not by what is diagnosed.
fn held(truth: Limit, measurement: &Measurement) -> bool {
    let mut streams = measurement.streams.iter().map(|stream| &stream.sender);
    match truth {
        // At times the kernel takes several times as much: with tcp_wmem at 86 kB and
        // CUBIC, 560 kB were written and not acknowledged.
        Limit::SendBuffer => measurement.host.tcp_wmem.is_none_or(|[_, _, most]| {
            streams.all(|samples| {
                samples.iter().all(|s| s.written_bytes.saturating_sub(s.acked_bytes) <= 2 * most)
            })
        }),
        // One that dropped what slow start sent and nothing after held nothing.
        Limit::Policer => streams.any(|samples| {
            let end = samples.last().map_or(0.0, |last| last.t_s);
            let lost_by = |share: f64| {
                samples.iter().take_while(|s| s.t_s <= share * end).last().map(|s| s.retransmits)
            };
            lost_by(1.0) > lost_by(1.0 / 3.0)
        }),
        _ => true,
    }
}

fn judge(labelled: Labelled, table: &mut Table) {
    let Labelled { truth, case, measurement } = labelled;
    if !held(truth, &measurement) {
        println!("{:<15} held nothing, left out {case}", truth.name());
        return;
    }
    // As over a real path, of which there is no certificate.
    let finding = diagnose::explain(&Measurement { path: None, ..measurement });
    let found = finding.limit.unwrap_or(Limit::Unknown);
    let sure = finding.confidence == Some(Confidence::Sure);
    table.add(truth, found, sure);
    if found != truth {
        let doubt = if sure { "SURE" } else { "" };
        println!("{:<15} found {:<15} {doubt:<4} {case}", truth.name(), found.name());
        println!("    {}", finding.sentence);
    }
}
