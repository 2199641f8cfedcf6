//! `longhaul study run`.

use super::hosts::{self, HostArgs};
use super::results::{code, shown};
use crate::ask;
use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use crate::output_path::OutputPath;
use crate::{inside, stop};
use clap::{Args, ValueEnum};
use longhaul::study::{StudyEvent, StudyRequest};
use record::{RunStatus, StudyProgram, StudyRun, StudyTestbed};
use report::terminal;
use report::untrusted::clean;
use std::path::{Path, PathBuf};
use study::{Shard, Study};
use units::{BitRate, ByteCount};

/// Run a study in emulated labs, between real hosts or in the simulator
///
/// Each cell runs in its own lab inside this machine or, if the plan has [hosts], between those
/// hosts over your ssh, or, with --in sim, in the simulator's virtual time. Each result is stored before the next run begins: to resume a study
/// that was stopped or killed, repeat the command. Runs in which the machine could not emulate
/// the path are repeated, and marked invalid if they remain so.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longhaul study run edge-cloud --quick          a built-in study, its short form
  longhaul study run window.toml --out results    a plan of your own; again: resume it
  longhaul study run window.toml --in sim         in virtual time, on all cores
  longhaul study run window.toml --in sim --shard 2/8
  longhaul study run window.toml --dry-run")]
pub(super) struct RunArgs {
    /// The plan, a TOML file, or the name of a built-in study
    #[arg(value_name = "PLAN|NAME")]
    plan: String,
    /// Run the short form
    #[arg(long)]
    quick: bool,
    /// Run the full form (default); takes precedence over --quick
    #[arg(long)]
    full: bool,
    /// Run only one part of a built-in study, or what one trend needs
    #[arg(long, value_name = "PART|TREND")]
    only: Option<String>,
    /// Directory for the results [default: NAME.study]
    #[arg(long, value_name = "DIR")]
    out: Option<OutputPath>,
    /// Print what would run, and stop
    #[arg(long)]
    dry_run: bool,
    /// Maximum attempts to get a valid run
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    attempts: u32,
    /// Run one cell at a time [default: two where both together load the machine lightly]
    #[arg(long)]
    serial: bool,
    /// Where to run [default: in labs, or between the plan's hosts]
    #[arg(long = "in", value_name = "TESTBED")]
    testbed: Option<InTestbed>,
    /// Run every N-th cell, from the I-th on, for many machines: I/N
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Leave out the cells that the simulator cannot run
    #[arg(long)]
    skip_unsupported: bool,
    /// Run the programs of the plan without asking
    ///
    /// They run on the lab's hosts: as nobody if root runs the study, otherwise as its user.
    #[arg(long)]
    allow_commands: bool,
    /// Keep a capture of each cell in DIR/captures
    ///
    /// Captures the headers of the cell's first run at the first client, as pcapng, with the fate
    /// of each packet. At most 1000 captures; not between real hosts.
    #[arg(long)]
    pcap: bool,
    /// Maximum size of a capture; further packets are omitted
    #[arg(long, value_name = "SIZE", default_value = "100MB", requires = "pcap")]
    pcap_max: ByteCount,
    #[command(flatten)]
    hosts: HostArgs,
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    json: bool,
}

/// Where a study runs.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum InTestbed {
    /// In labs
    Lab,
    /// In virtual time
    Sim,
}

impl From<InTestbed> for StudyTestbed {
    fn from(testbed: InTestbed) -> Self {
        match testbed {
            InTestbed::Lab => StudyTestbed::Lab,
            InTestbed::Sim => StudyTestbed::Simulator,
        }
    }
}

impl RunArgs {
    fn is_quick(&self) -> bool {
        self.quick && !self.full
    }
}

pub(super) fn run(args: &RunArgs, console: &mut Console) -> Outcome {
    let plan = super::find(&args.plan, args.only.as_deref())?;
    let study = plan.study(args.is_quick())?;
    let folder = args.out.as_deref().map_or_else(|| default_folder(&study, args), Path::to_owned);
    let mut request = StudyRequest {
        quick: args.is_quick(),
        attempts: args.attempts,
        serial: args.serial,
        testbed: args.testbed.map(StudyTestbed::from),
        shard: args.shard,
        skip_unsupported: args.skip_unsupported,
        capture: args.pcap.then_some(args.pcap_max),
        ..StudyRequest::new(plan, folder)
    };
    request.check_testbed(&study)?;
    if args.dry_run {
        return super::show_plan(&study, &request.planned(&study)?, args.json, console);
    }
    if args.pcap && study.real_hosts().is_some() {
        return Err(Failure::usage(
            "--pcap works in labs only; between real hosts, run longhaul capture on one of them",
        ));
    }
    if request.runs_in(&study) == StudyTestbed::Simulator {
        return run_inside(&request, &study, args.json, console);
    }
    request.check_folder(&study)?;
    request.allow_commands = allowed(args, &study, console)?;
    request.allow_sysctls = request.allow_commands && hosts::allowed(&args.hosts, &study, console)?;
    if !request.allow_sysctls {
        return Ok(DONE);
    }
    request.access = args.hosts.access(console)?;
    if study.real_hosts().is_some() {
        return run_inside(&request, &study, args.json, console);
    }
    inside::sandbox(|| run_inside(&request, &study, args.json, console))
}

/// Returns true if the programs that the plan brings may run. Asks each time: results that exist
/// already may have come with the plan.
fn allowed(args: &RunArgs, study: &Study, console: &mut Console) -> Result<bool, Failure> {
    let programs = study.programs();
    let programs = programs.iter().filter(|program| !program.built_in);
    let programs: Vec<StudyProgram> = programs.map(|program| program.report()).collect();
    if programs.is_empty() || args.allow_commands {
        return Ok(true);
    }
    console.say("The plan runs these programs on its lab's hosts:");
    console.say(&terminal::study_programs(&programs, &console.err));
    ask::yes("Run them?", "--allow-commands, after reading them")
}

fn default_folder(study: &Study, args: &RunArgs) -> PathBuf {
    let quick = if args.is_quick() { "-quick" } else { "" };
    let only = args.only.as_ref().map_or(String::new(), |only| format!("-{only}"));
    let shard = args.shard.map_or(String::new(), |shard| format!("-{}", shard.file_name()));
    let testbed = args.testbed.map_or("", |testbed| match testbed {
        InTestbed::Lab => "",
        InTestbed::Sim => "-sim",
    });
    PathBuf::from(format!("{}{quick}{only}{testbed}{shard}.study", study.name))
}

fn run_inside(request: &StudyRequest, study: &Study, json: bool, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let mut show = Show { console, study, request };
    let report = longhaul::study::run(request, &mut |event| show.event(&event), &stop);
    console.clear();
    let report = report?;
    console.print(&shown(&report, json, &console.out)?);
    console.say(&format!("page written to {}", request.page().display()));
    if let Some(folder) = request.captures_folder() {
        console.say(&format!("captures in {}", folder.display()));
    }
    Ok(code(&report))
}

/// Shows progress.
struct Show<'a> {
    console: &'a mut Console,
    study: &'a Study,
    request: &'a StudyRequest,
}

impl Show<'_> {
    fn introduce(&mut self) {
        let Show { study, request, .. } = *self;
        self.console.say(&study.question);
        let (runs, folder) = (study.runs(), request.folder.display());
        let shard =
            request.shard.map_or(String::new(), |shard| format!(", of which shard {shard}"));
        if request.runs_in(study) == StudyTestbed::Simulator {
            let what = "Each run is simulated in virtual time.";
            return self.console.say(&format!("{runs} runs in {folder}{shard}. {what}"));
        }
        let about = report::long_time(study.estimate().as_secs_f64());
        let what = match study.real_hosts() {
            None => "Each run uses an emulated lab inside this machine.".to_owned(),
            Some(hosts) => format!(
                "From {} to {}.",
                hosts.client_names().join(", "),
                hosts.server_names().join(", ")
            ),
        };
        self.console
            .say(&format!("{runs} runs in {folder}{shard}, about {about} in total. {what}"));
    }

    fn event(&mut self, event: &StudyEvent) {
        match event {
            StudyEvent::Opened => self.introduce(),
            StudyEvent::Begins { progress, name, repeat, attempt } => {
                let again =
                    if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                let (done, all) = (progress.done + 1, progress.all);
                let left = report::long_time(progress.left_s);
                let line = format!("{done}/{all}  {left} left  {name}, repeat {repeat}{again}");
                self.console.live(&line);
            }
            StudyEvent::Retried { name, reason } => {
                self.console.say(&format!("retrying {name}: {}", clean(reason)));
            }
            StudyEvent::Ended { progress, name, run } => {
                self.console.say(&format!(
                    "{:>width$}/{}  {name}  {}",
                    progress.done,
                    progress.all,
                    outcome(run),
                    width = progress.all.to_string().len()
                ));
            }
        }
    }
}

fn outcome(run: &StudyRun) -> String {
    let rate = BitRate::from_bps_f64(run.throughput_bps());
    let again =
        if run.attempts > 1 { format!(" ({} attempts)", run.attempts) } else { String::new() };
    let reason = clean(&run.reason);
    match run.status {
        RunStatus::Valid => format!("{rate}{again}"),
        RunStatus::Invalid => format!("{rate}, not valid: {reason}{again}"),
        RunStatus::Failed => format!("failed: {reason}{again}"),
    }
}
