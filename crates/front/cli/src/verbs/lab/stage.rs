//! A lab with its logs, from the start to the validity report.

use super::document::LinkDocument;
use crate::console;
use crate::failure::{Code, Failure, NOT_VALID};
use crate::output_path::OutputPath;
use crate::test_report;
use clap::Args;
use host::program::Reaper;
use host::{output_file, sandbox, signals};
use lab::{EndSignal, Lab, LabError, LabReport, Options, PREFER_IPV4};
use record::PathReport;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use topology::{DriverChoice, Plan};
use units::Rtt;

/// Options of every lab: name, accuracy, logs.
#[derive(Debug, Args)]
pub(super) struct StageArgs {
    /// Busy-wait on one CPU core for lower timing error
    #[arg(long)]
    accurate: bool,
    /// What carries packets: auto, tun, nfqueue
    ///
    /// `nfqueue` holds them in the kernel, which carries high rates; `tun` copies them, and can
    /// carry out every setting of a link. `auto` takes `nfqueue` where it is available and can
    /// carry out every setting.
    #[arg(long, value_name = "DRIVER")]
    driver: Option<DriverChoice>,
    /// Leave the first seconds of the run out of the report
    ///
    /// Validity and measured values cover the rest, by the same limits: for a start that this
    /// machine cannot emulate.
    #[arg(long, value_name = "TIME")]
    omit: Option<Rtt>,
    /// Name of the lab, for `lab exec` and others
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Write a report on each link to FILE (JSON)
    #[arg(long, value_name = "FILE")]
    report: Option<OutputPath>,
    /// Write a record per packet to FILE (CSV)
    ///
    /// `loss=replay:FILE` reads it.
    #[arg(long, value_name = "FILE")]
    packet_log: Option<OutputPath>,
    /// Write the queue lengths over time to FILE (CSV)
    #[arg(long, value_name = "FILE")]
    queue_log: Option<OutputPath>,
    /// Capture the packets of HOST to FILE (pcapng)
    ///
    /// Dropped packets are included.
    #[arg(long, value_name = "HOST=FILE", value_parser = capture)]
    pcap: Vec<(String, OutputPath)>,
}

fn capture(text: &str) -> Result<(String, OutputPath), String> {
    let (host, file) =
        text.split_once('=').ok_or("write HOST=FILE, such as client=trace.pcapng")?;
    Ok((host.to_owned(), file.into()))
}

/// A running lab.
pub(super) struct Stage {
    pub(super) lab: Arc<Lab>,
    /// Its name, unique among the running labs of this user.
    pub(super) name: String,
    pub(super) reaper: Reaper,
    pub(super) end_signal: EndSignal,
    writers: Vec<(OutputPath, JoinHandle<std::io::Result<u64>>)>,
}

impl Stage {
    /// Starts it. From here on a signal ends it cleanly. `changing`: its links are meant to be
    /// changed while it runs.
    pub(super) fn build(
        plan: &Plan,
        args: &StageArgs,
        machine: Option<usize>,
        changing: bool,
    ) -> Result<Self, Failure> {
        for file in [&args.queue_log, &args.report] {
            test_report::check_writable(file.as_deref())?;
        }
        let end_signal = EndSignal::default();
        end_on_signals(&end_signal);
        let reaper = Reaper::start(path_with_us());
        let StageArgs { accurate, driver, omit, .. } = *args;
        let omit = omit.map(Rtt::duration);
        let options = Options { accurate, driver, omit, machine, changing, ..Options::default() };
        let lab = Arc::new(Lab::start(plan, options).map_err(Failure::usage)?);
        cover_names(&lab);
        let name = match &args.name {
            Some(name) => lab::control::serve(name, &lab).map(|()| name.clone()),
            None => serve_under_some_name(&plan.name, &lab),
        };
        let name = name.map_err(Failure::usage)?;
        let mut stage = Stage { lab, name, reaper, end_signal, writers: Vec::new() };
        stage.write_down(args)?;
        Ok(stage)
    }

    /// Starts the writers of logs and captures.
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

    /// Ends the emulation and writes the logs and reports.
    pub(super) fn finish(self, args: &StageArgs) -> Result<LabReport, Failure> {
        let report = self.lab.finish().map_err(Failure::work)?;
        for (path, writer) in self.writers {
            let failed =
                |why: String| Failure::work(format!("cannot write {}: {why}", path.display()));
            let missed =
                writer.join().map_err(|_| failed("the writer thread panicked".to_owned()))?;
            let missed = missed.map_err(|error| failed(error.to_string()))?;
            if missed > 0 {
                console::note(&format!(
                    "lab: {} misses {missed} packets that arrived faster than they could be written",
                    path.display()
                ));
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
                links => serde_json::to_string_pretty(&LinkDocument::of(links)),
            };
            let json = json.map_err(Failure::work)? + "\n";
            store::write(path, json.as_bytes()).map_err(Failure::work)?;
        }
        Ok(report)
    }
}

fn create(path: &Path) -> Result<File, Failure> {
    output_file::create(path)
        .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}

/// A default name that is taken gets a number appended.
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

/// The first signal is forwarded to the programs, unless it came from a terminal,
/// which signals them itself; the lab then ends with them. A second one exits.
fn end_on_signals(end_signal: &EndSignal) {
    let end_signal = end_signal.clone();
    std::thread::spawn(move || {
        let (first, from_program) = signals::wait_for_termination();
        if !end_signal.on_signal(first, from_program) {
            std::process::exit(128 + first);
        }
        std::process::exit(128 + signals::wait_for_second());
    });
}

/// PATH with the directory of this executable appended: `longhaul test` works in
/// a lab even where longhaul is not installed.
pub(super) fn path_with_us() -> Option<OsString> {
    let own = std::env::current_exe().ok()?;
    let known = std::env::var_os("PATH").filter(|path| !path.is_empty())?;
    let folders = std::env::split_paths(&known).chain(own.parent().map(Into::into));
    std::env::join_paths(folders).ok()
}

/// Makes the host names resolve for every program of the sandbox.
fn cover_names(lab: &Lab) {
    let known = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let names = lab.names() + &known;
    if let Err(error) = sandbox::bind_file(c"/etc/hosts", &names) {
        console::note(&format!("lab: host names do not resolve ({error}); use the addresses:"));
        for host in lab.hosts() {
            console::note(&format!("lab:   {} {}", host.ipv4, host.name));
        }
    }
    // Without that file the resolver keeps its default preference.
    let _ = sandbox::bind_file(c"/etc/gai.conf", PREFER_IPV4);
}

/// The measured values of a path, in one line.
pub(super) fn in_one_line(report: &PathReport) -> String {
    let did = &report.achieved;
    let rate = did.rate_bps.map_or("not busy long enough to measure the rate".to_owned(), |rate| {
        format!("{rate} while busy")
    });
    let idle = report::idle_rtt(did, 2).unwrap_or("not measured".to_owned());
    let micros = |late: u64| units::Rtt::from_micros(late).to_string();
    let drops = did.drops;
    let part = match did.from_s {
        0.0 => String::new(),
        from => format!("from {from:.2} s on: "),
    };
    let others = [
        (drops.aqm, "dropped by AQM"),
        (drops.policer, "dropped by the policer"),
        (drops.too_long, "over the MTU"),
        (drops.bursts, "lost in bursts"),
        (drops.blackhole, "lost in blackholes"),
        (did.marked, "ECN-marked"),
        (did.duplicated, "duplicated"),
        (did.corrupted, "corrupted"),
        (did.reordered, "reordered"),
    ];
    let others: String = others
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!(", {count} {what}"))
        .collect();
    format!(
        "{part}delivered {} packets, {rate}; idle RTT {idle}; {} random losses, {} queue drops{others}; release delay {} (median), {} (99 %), {} (max); driver {}; seed {}",
        did.packets,
        did.lost,
        drops.queue,
        micros(did.lateness_us.p50),
        micros(did.lateness_us.p99),
        micros(did.lateness_us.max),
        report.asked.driver.name(),
        report.seed
    )
}

/// Reports on the links; an invalid run has an exit code of its own.
pub(super) fn conclude(report: &LabReport, code: Code) -> Code {
    let mut valid = true;
    let many = report.links.len() > 1;
    for link in &report.links {
        let name = if many { format!("{}: ", link.name) } else { String::new() };
        // Unused links of a large lab are omitted.
        if !many || link.path.achieved.packets > 0 {
            console::note(&format!("lab: {name}{}", in_one_line(&link.path)));
        }
        if !link.path.valid {
            valid = false;
            console::note(&format!("lab: {name}not valid: {}", link.path.reasons.join("; ")));
        }
    }
    if valid { code } else { NOT_VALID }
}
