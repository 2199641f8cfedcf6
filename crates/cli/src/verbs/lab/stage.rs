//! A lab set up for programs, and taken down with its certificate.

use crate::failure::{Code, Failure, NOT_VALID};
use clap::Args;
use host::program::Reaper;
use host::{signals, world};
use lab::{Ending, Lab, LabError, LabReport, LinkReport, Options, PREFER_IPV4};
use record::PathReport;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use topology::Plan;

/// What every lab can write down, and how it is found.
#[derive(Debug, Args)]
pub(super) struct StageArgs {
    /// Spend a core on accuracy: the emulator never sleeps
    #[arg(long)]
    accurate: bool,
    /// How `lab exec`, `lab set` and `lab pcap` find this lab
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Write what each link was asked and what it did to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the fate of each packet to FILE, as CSV; loss=replay:FILE repeats its drops
    #[arg(long, value_name = "FILE")]
    packet_log: Option<PathBuf>,
    /// Write the queues over time to FILE, as CSV
    #[arg(long, value_name = "FILE")]
    queue_log: Option<PathBuf>,
    /// Capture at HOST's ends of its links, with each packet's fate, to FILE (pcapng)
    #[arg(long, value_name = "HOST=FILE", value_parser = capture)]
    pcap: Vec<(String, PathBuf)>,
}

fn capture(text: &str) -> Result<(String, PathBuf), String> {
    let (host, file) =
        text.split_once('=').ok_or("write HOST=FILE, such as client=trace.pcapng")?;
    Ok((host.to_owned(), file.into()))
}

/// A lab that stands.
pub(super) struct Stage {
    pub(super) lab: Arc<Lab>,
    /// By which others find it.
    pub(super) name: String,
    pub(super) reaper: Reaper,
    pub(super) ending: Ending,
    writers: Vec<(PathBuf, JoinHandle<std::io::Result<u64>>)>,
}

impl Stage {
    /// Builds it. From here on signals end it in good order.
    pub(super) fn build(
        plan: &Plan,
        args: &StageArgs,
        machine: Option<usize>,
    ) -> Result<Self, Failure> {
        let ending = Ending::default();
        end_on_signals(&ending);
        let reaper = Reaper::start(path_with_us());
        let lab = Arc::new(
            Lab::start(plan, Options { accurate: args.accurate, machine })
                .map_err(Failure::usage)?,
        );
        cover_names(&lab);
        let name = match &args.name {
            Some(name) => lab::control::serve(name, &lab).map(|()| name.clone()),
            None => serve_under_some_name(&plan.name, &lab),
        };
        let name = name.map_err(Failure::usage)?;
        let mut stage = Stage { lab, name, reaper, ending, writers: Vec::new() };
        stage.write_down(args)?;
        Ok(stage)
    }

    /// Starts what writes logs and captures.
    fn write_down(&mut self, args: &StageArgs) -> Result<(), Failure> {
        if let Some(path) = &args.packet_log {
            let (file, watch) = (create(path)?, self.lab.watch(None, 0).map_err(Failure::work)?);
            let names: Vec<String> = self.lab.links().map(|(name, _)| name.to_owned()).collect();
            let write = move || {
                lab::log::packets(&watch, &names, file)?;
                Ok(watch.missed())
            };
            self.writers.push((path.clone(), std::thread::spawn(write)));
        }
        for (host, path) in &args.pcap {
            let watch = self.lab.watch(Some(host), usize::MAX).map_err(Failure::usage)?;
            let (file, lab, host) = (create(path)?, Arc::clone(&self.lab), host.clone());
            let write = move || {
                lab::capture::stream(&lab, &host, &watch, file)?;
                Ok(watch.missed())
            };
            self.writers.push((path.clone(), std::thread::spawn(write)));
        }
        Ok(())
    }

    /// Ends the emulation, and writes down what there is to write.
    pub(super) fn finish(self, args: &StageArgs) -> Result<LabReport, Failure> {
        let report = self.lab.finish().map_err(Failure::work)?;
        for (path, writer) in self.writers {
            let failed =
                |why: String| Failure::work(format!("cannot write {}: {why}", path.display()));
            let missed = writer.join().map_err(|_| failed("its thread died".to_owned()))?;
            let missed = missed.map_err(|error| failed(error.to_string()))?;
            if missed > 0 {
                eprintln!(
                    "lab: {} lacks {missed} packets that came faster than they could be written",
                    path.display()
                );
            }
        }
        if let Some(path) = &args.queue_log {
            let mut log = Vec::new();
            lab::log::queues(&report.links, &mut log).map_err(Failure::work)?;
            store::write(path, &log).map_err(Failure::work)?;
        }
        if let Some(path) = &args.report {
            let json = match report.links.as_slice() {
                [only] => serde_json::to_string_pretty(&only.path),
                links => serde_json::to_string_pretty(&links_json(links)),
            };
            let json = json.map_err(Failure::work)? + "\n";
            store::write(path, json.as_bytes()).map_err(Failure::work)?;
        }
        Ok(report)
    }
}

/// Each link's report under its name.
pub(super) fn links_json(links: &[LinkReport]) -> serde_json::Value {
    let one = |link: &LinkReport| {
        let mut value = serde_json::to_value(&link.path).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.insert("link".to_owned(), link.name.clone().into());
            object.insert("between".to_owned(), link.between.to_vec().into());
        }
        value
    };
    links.iter().map(one).collect()
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path)
        .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}

/// Nobody insists on the name, so where it is taken a number makes it another.
fn serve_under_some_name(name: &str, lab: &Arc<Lab>) -> Result<String, LabError> {
    let mut number = 1;
    loop {
        let name = if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
        match lab::control::serve(&name, lab) {
            Err(LabError::NameTaken { .. }) if number < 1000 => number += 1,
            other => return other.map(|()| name),
        }
    }
}

/// The first signal goes on to the programs, which a terminal has told
/// already; the lab then ends as they do. A second one ends everything.
fn end_on_signals(ending: &Ending) {
    let ending = ending.clone();
    std::thread::spawn(move || {
        let (first, from_program) = signals::wait_for_ending();
        if !ending.came(first, from_program) {
            std::process::exit(128 + first);
        }
        std::process::exit(128 + signals::wait_for_second());
    });
}

/// The search path with our own folder at its end: `longhaul test` works in a
/// lab where longhaul is not installed.
pub(super) fn path_with_us() -> Option<OsString> {
    let own = std::env::current_exe().ok()?;
    let known = std::env::var_os("PATH").filter(|path| !path.is_empty())?;
    let folders = std::env::split_paths(&known).chain(own.parent().map(Into::into));
    std::env::join_paths(folders).ok()
}

/// Lets the hosts' names resolve for every program of this world.
fn cover_names(lab: &Lab) {
    let known = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let names = lab.names() + &known;
    if let Err(error) = world::cover_file(c"/etc/hosts", &names) {
        eprintln!("lab: the hosts' names do not resolve here ({error}); use their addresses:");
        for host in lab.hosts() {
            eprintln!("lab:   {} {}", host.ipv4, host.name);
        }
    }
    // A system without that file keeps its own preference.
    let _ = world::cover_file(c"/etc/gai.conf", PREFER_IPV4);
}

/// What a path did, in one line.
pub(super) fn in_one_line(report: &PathReport) -> String {
    let did = &report.achieved;
    let rate = did.rate_bps.map_or("never busy long enough to tell its rate".to_owned(), |rate| {
        format!("{rate} while busy")
    });
    let idle = did.idle_rtt_ms.map_or("not measured".to_owned(), |rtt| format!("{rtt:.2} ms"));
    let micros = |late: u64| units::Rtt::from_micros(late).to_string();
    let drops = did.drops;
    let others = [
        (drops.aqm, "dropped by its management"),
        (drops.policer, "dropped by the policer"),
        (drops.too_long, "too long"),
        (drops.bursts, "lost in bursts"),
        (drops.blackhole, "lost in blackholes"),
        (did.marked, "marked"),
        (did.duplicated, "doubled"),
        (did.corrupted, "corrupted"),
        (did.reordered, "held back"),
    ];
    let others: String = others
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!(", {count} {what}"))
        .collect();
    format!(
        "carried {} packets, {rate}; idle RTT {idle}; {} lost by chance, {} dropped by the queue{others}; late by {} (median), {} (99 %), {} (worst); seed {}",
        did.packets,
        did.lost,
        drops.queue,
        micros(did.lateness_us.p50),
        micros(did.lateness_us.p99),
        micros(did.lateness_us.max),
        report.seed
    )
}

/// Says how the links did; a run that is not valid has its own exit code.
pub(super) fn conclude(report: &LabReport, code: Code) -> Code {
    let mut valid = true;
    let many = report.links.len() > 1;
    for link in &report.links {
        let name = if many { format!("{}: ", link.name) } else { String::new() };
        // Of many links those that did nothing are passed over.
        if !many || link.path.achieved.packets > 0 {
            eprintln!("lab: {name}{}", in_one_line(&link.path));
        }
        if !link.path.valid {
            valid = false;
            eprintln!("lab: {name}NOT VALID: {}", link.path.reasons.join("; "));
        }
    }
    if valid { code } else { NOT_VALID }
}
