//! `longhaul study`: measurement campaigns.

mod hosts;
mod results;
mod run;

use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use crate::usage_error::nearest;
use clap::{Args, Subcommand};
use longhaul::study::StudyPlan;
use record::{PlannedRun, StudyPlanReport};
use report::terminal;
use std::path::Path;
use study::{BuiltIn, Study};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StudyArgs {
    #[command(subcommand)]
    verb: StudyVerb,
}

const EXAMPLES: &str = "\
Examples:
  longhaul study list                             built-in studies
  longhaul study run edge-cloud --quick           one of them, in its short form
  longhaul study check window.toml                cells, runs and time of a plan
  longhaul study run window.toml --out results    run it; again: resume it
  longhaul study run window.toml --in sim         simulate it in virtual time
  longhaul study report results --html page.html
  longhaul study compare cubic.study bbr.study    the difference, cell by cell
  longhaul study compare cubic.study bbr.study --html differ.html
  longhaul study export results --csv > runs.csv

A plan has a question, a path, factors that vary, and traffic:
  question = \"Does throughput follow window over round trip?\"
  [path]
  rate = \"100mbit\"
  rtt = \"50ms\"
  [factors]
  window = \"64KiB..1MiB x2\"
  streams = [1, 2, 4]
  [traffic]
  duration = \"5s\"
  [repeats]
  count = 3";

#[derive(Debug, Subcommand)]
enum StudyVerb {
    Check(CheckArgs),
    Run(run::RunArgs),
    Report(results::ReportArgs),
    Compare(results::CompareArgs),
    Merge(results::MergeArgs),
    Export(results::ExportArgs),
    List(ListArgs),
}

/// Check a plan without running it: cells, runs and estimated time
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longhaul study check window.toml
  longhaul study check edge-cloud --quick --json")]
struct CheckArgs {
    /// The plan, a TOML file, or the name of a built-in study
    #[arg(value_name = "PLAN|NAME")]
    plan: String,
    /// Check the short form
    #[arg(long)]
    quick: bool,
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    json: bool,
}

/// List the built-in studies, with the published results they reproduce
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longhaul study list
  longhaul study list --json | jq -r '.studies[].name'")]
struct ListArgs {
    /// Print only the names, one per line
    #[arg(long)]
    names: bool,
    /// Print JSON
    #[arg(long, short = 'J', conflicts_with = "names")]
    json: bool,
}

pub(crate) fn run(args: &StudyArgs, console: &mut Console) -> Outcome {
    match &args.verb {
        StudyVerb::Check(args) => check(args, console),
        StudyVerb::Run(args) => run::run(args, console),
        StudyVerb::Report(args) => results::report(args, console),
        StudyVerb::Compare(args) => results::compare(args, console),
        StudyVerb::Merge(args) => results::merge(args, console),
        StudyVerb::Export(args) => results::export(args, console),
        StudyVerb::List(args) => list(args, console),
    }
}

fn list(args: &ListArgs, console: &mut Console) -> Outcome {
    let list = longhaul::study::list();
    let studies = list.studies.iter();
    let text = if args.json {
        console::json(&list)?
    } else if args.names {
        studies.map(|study| format!("{}\n", study.name)).collect()
    } else {
        let studies = studies.map(|study| (study.name.as_str(), study.question.as_str()));
        terminal::studies(studies, &console.out)
    };
    console.print(&text);
    Ok(DONE)
}

fn check(args: &CheckArgs, console: &mut Console) -> Outcome {
    let study = find(&args.plan, None)?.study(args.quick)?;
    show_plan(&study, &study.planned(false, None), args.json, console)
}

/// The totals of its plans, as they would run.
fn show_plan(study: &Study, runs: &[PlannedRun], json: bool, console: &mut Console) -> Outcome {
    for (part, run) in study.parts.iter().zip(runs) {
        let report = StudyPlanReport { run: Some(run.clone()), ..part.plan.report() };
        let text = if json {
            console::json(&report)?
        } else {
            let text = terminal::study_plan(&report, &console.out);
            if study.parts.len() > 1 { format!("{}\n{text}\n", part.name) } else { text }
        };
        console.print(&text);
    }
    Ok(DONE)
}

/// The plan of a file, or a built-in study; `only` one of its trends.
fn find(plan: &str, only: Option<&str>) -> Result<StudyPlan, Failure> {
    if BuiltIn::named(plan).is_some() {
        let (name, only) = (plan.to_owned(), only.map(str::to_owned));
        return Ok(StudyPlan::BuiltIn { name, only });
    }
    if only.is_some() {
        return Err(Failure::usage("--only is for built-in studies; see longhaul study list"));
    }
    let path = Path::new(plan);
    let text = longhaul::input::plan(path).map_err(|error| {
        let known: Vec<&str> = study::BUILT_IN.iter().map(|known| known.name).collect();
        let meant = nearest(plan, known.iter().copied());
        let known = known.join(", ");
        let error = format!("cannot read {plan}: {error}; built-in studies are {known}");
        Failure::usage(error).meaning(plan, meant)
    })?;
    let name = path.file_stem().map_or_else(|| plan.to_owned(), |n| n.to_string_lossy().into());
    Ok(StudyPlan::Text { name, file: plan.to_owned(), text })
}
