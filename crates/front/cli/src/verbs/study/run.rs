//! `longhaul study run`.

use super::hosts::{self, HostArgs};
use super::pages;
use super::results::Results;
use crate::ask;
use crate::console::Console;
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::output_path::OutputPath;
use crate::{console, inside, stop};
use campaign::{CampaignError, CaptureOptions, Event, HostAccess, Options, Progress, Store};
use clap::Args;
use record::{RunStatus, StudyProgram, StudyRun};
use report::terminal;
use report::untrusted::clean;
use std::path::{Path, PathBuf};
use study::{Part, Run, Study};
use units::{BitRate, ByteCount};

/// Run a study in emulated labs or between real hosts, or resume one
///
/// Every cell runs in a lab of its own, inside this machine, unless the plan has [hosts]: then
/// it runs between those, over your ssh. Each result is stored before
/// the next run begins: a study that was stopped or killed resumes where it was when the same
/// command is run again. Runs during which the machine could not emulate the path are
/// repeated, and marked as invalid if they stay so.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longhaul study run edge-cloud --quick          a built-in study, its short form
  longhaul study run window.toml --out results    a plan of your own; again: resume it
  longhaul study run window.toml --dry-run")]
pub(super) struct RunArgs {
    /// The plan, a TOML file, or the name of a built-in study
    #[arg(value_name = "PLAN|NAME")]
    plan: String,
    /// Run its short form
    #[arg(long)]
    quick: bool,
    /// Run its full form, which is the default and takes precedence over --quick
    #[arg(long)]
    full: bool,
    /// Run only what one trend of a built-in study needs
    #[arg(long, value_name = "TREND")]
    only: Option<String>,
    /// Directory of the results [default: NAME.study]
    #[arg(long, value_name = "DIR")]
    out: Option<OutputPath>,
    /// Print what would run, and stop
    #[arg(long)]
    dry_run: bool,
    /// Attempts at a run until it is valid
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    attempts: u32,
    /// Run one cell at a time [default: two where both together load the machine lightly]
    #[arg(long)]
    serial: bool,
    /// Run the programs of the plan without asking
    ///
    /// They run in the lab's hosts: as nobody if root runs the study, otherwise as its user.
    #[arg(long)]
    allow_commands: bool,
    /// Keep a capture of each cell in DIR/captures
    ///
    /// Of its first run: the headers at the first client, as pcapng, with the fate of each packet.
    /// At most 1000 captures; not between real hosts.
    #[arg(long)]
    pcap: bool,
    /// Maximum size of a capture; further packets are left out
    #[arg(long, value_name = "SIZE", default_value = "100MB", requires = "pcap")]
    pcap_max: ByteCount,
    #[command(flatten)]
    hosts: HostArgs,
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    json: bool,
}

impl RunArgs {
    fn is_quick(&self) -> bool {
        self.quick && !self.full
    }
}

pub(super) fn run(args: &RunArgs, console: &mut Console) -> Outcome {
    let study = super::find(&args.plan, args.is_quick(), args.only.as_deref())?;
    if args.dry_run {
        super::show_plan(&study, args.json, console)?;
        return Ok(DONE);
    }
    if args.pcap && study.real_hosts().is_some() {
        return Err(Failure::usage(
            "--pcap keeps captures of labs; between real hosts, run longhaul capture on one of them",
        ));
    }
    let folder = args.out.as_deref().map_or_else(|| default_folder(&study, args), Path::to_owned);
    check_folder(&study, &folder)?;
    if !allowed(args, &study, console)? || !hosts::allowed(&args.hosts, &study, console)? {
        return Ok(DONE);
    }
    let access = args.hosts.access(console)?;
    if study.real_hosts().is_some() {
        return run_inside(args, &study, &folder, &access, console);
    }
    inside::sandbox(|| run_inside(args, &study, &folder, &access, console))
}

/// The files of programs, and disks, cover /dev/shm while a study runs.
fn check_folder(study: &Study, folder: &Path) -> Result<(), Failure> {
    const COVERED: &str = "/dev/shm";
    let folder = std::path::absolute(folder).map_err(Failure::usage)?;
    // Of a directory that is yet to be made, the ones above it.
    let real = folder.ancestors().find_map(|above| above.canonicalize().ok());
    let covers = !study.programs().is_empty() || study.sends_files();
    if covers && real.is_some_and(|real| real.starts_with(COVERED)) {
        let problem = format!(
            "a study with programs or files cannot write below {COVERED}; give another --out"
        );
        return Err(Failure::usage(problem));
    }
    Ok(())
}

/// Whether the programs that the plan brings may run. Asked each time: results that are there
/// may have come with the plan.
fn allowed(args: &RunArgs, study: &Study, console: &mut Console) -> Result<bool, Failure> {
    let programs = study.programs();
    let programs = programs.iter().filter(|program| !program.built_in);
    let programs: Vec<StudyProgram> = programs.map(|program| program.report()).collect();
    if programs.is_empty() || args.allow_commands {
        return Ok(true);
    }
    console.say("The plan runs programs, in its lab's hosts:");
    console.say(&terminal::study_programs(&programs, &console.err));
    ask::yes("Run them?", "--allow-commands, after reading them")
}

fn default_folder(study: &Study, args: &RunArgs) -> PathBuf {
    let quick = if args.is_quick() { "-quick" } else { "" };
    let only = args.only.as_ref().map_or(String::new(), |only| format!("-{only}"));
    PathBuf::from(format!("{}{quick}{only}.study", study.name))
}

fn run_inside(
    args: &RunArgs,
    study: &Study,
    folder: &Path,
    access: &HostAccess,
    console: &mut Console,
) -> Outcome {
    let stop = stop::on_signals();
    let mut store = Store::open(folder, study).map_err(Failure::usage)?;
    let mut show = Show { console };
    show.introduce(study, folder);
    let captures = CaptureOptions { folder: folder.to_owned(), max_size: args.pcap_max };
    let options = Options {
        attempts: args.attempts,
        parallel: if args.serial { 1 } else { 2 },
        captures: args.pcap.then_some(captures),
    };
    let ended =
        campaign::run(study, &mut store, &options, access, &mut |event| show.event(&event), &stop);
    console.clear();
    match ended {
        Err(error @ CampaignError::Interrupted) => {
            console::complain(&error.to_string());
            return Ok(FAILED);
        }
        other => other.map_err(Failure::work)?,
    }
    let results = Results::of(study.clone(), &store)?;
    let page = pages::write_all(&results, &store, folder)?;
    console.print(&results.shown(args.json, &console.out)?);
    console.say(&format!("page written to {}", page.display()));
    if args.pcap {
        console.say(&format!("captures in {}", campaign::captures_folder(folder).display()));
    }
    Ok(results.code())
}

/// Shows progress.
struct Show<'a> {
    console: &'a mut Console,
}

impl Show<'_> {
    fn introduce(&mut self, study: &Study, folder: &Path) {
        let about = report::long_time(study.estimate().as_secs_f64());
        self.console.say(&study.question);
        let what = match study.real_hosts() {
            None => "Each run is an emulated lab in this machine.".to_owned(),
            Some(hosts) => format!(
                "From {} to {}.",
                hosts.client_names().join(", "),
                hosts.server_names().join(", ")
            ),
        };
        let (runs, folder) = (study.runs(), folder.display());
        self.console.say(&format!("{runs} runs in {folder}, about {about} in all. {what}"));
    }

    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Begins { progress, part, run, attempt, .. } => {
                let again =
                    if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                let name = name(part, *run);
                let line = format!(
                    "{}/{}  {} left  {name}, repeat {}{again}",
                    progress.done + 1,
                    progress.all,
                    left(progress),
                    run.repeat
                );
                self.console.live(&line);
            }
            Event::Retried { part, run, reason } => {
                let reason = clean(reason);
                self.console.say(&format!("trying {} again: {reason}", name(part, *run)));
            }
            Event::Ended { progress, part, run } => {
                let name = name(part, Run { cell: run.cell, repeat: run.repeat });
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

/// The run's part and its cell's values.
fn name(part: &Part, run: Run) -> String {
    let label = part.plan.label(&part.plan.cell(run.cell));
    if part.name.is_empty() { label } else { format!("{} {label}", part.name) }
}

fn left(progress: &Progress) -> String {
    report::long_time(progress.left.as_secs_f64())
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
