//! Options of every lab, and its messages on the terminal.

use crate::console;
use crate::failure::{Code, NOT_VALID, Outcome};
use crate::inside;
use crate::output_path::OutputPath;
use clap::Args;
use host::signals;
use longhaul::lab::{DriverChoice, EndSignal, LabDocument, LabEvent, LabRequest};
use record::PathReport;
use units::Rtt;

/// Options of every lab: name, accuracy, logs.
#[derive(Debug, Args)]
pub(super) struct StageArgs {
    /// Busy-wait on one CPU core for lower timing error
    #[arg(long)]
    accurate: bool,
    /// Packet driver: auto, tun, nfqueue
    ///
    /// `nfqueue` keeps packets in the kernel, for high rates; `tun` copies them and supports
    /// every link setting. `auto` uses `nfqueue` where it is available and supports every
    /// setting.
    #[arg(long, value_name = "DRIVER")]
    driver: Option<DriverChoice>,
    /// Omit the first seconds of the run from the report
    ///
    /// Validity and measured values cover the rest, with the same limits. Use this if the
    /// machine cannot emulate the start of the run.
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
    let (host, file) = text.split_once('=').ok_or("use HOST=FILE, such as client=trace.pcapng")?;
    Ok((host.to_owned(), file.into()))
}

impl StageArgs {
    /// Converts the options to a request, yet without hosts.
    pub(super) fn request(&self) -> LabRequest {
        let file = |file: &Option<OutputPath>| file.as_ref().map(|file| file.to_path_buf());
        let captures = self.pcap.iter();
        LabRequest {
            name: self.name.clone(),
            accurate: self.accurate,
            driver: self.driver,
            omit: self.omit,
            report: file(&self.report),
            packet_log: file(&self.packet_log),
            queue_log: file(&self.queue_log),
            captures: captures.map(|(host, file)| (host.clone(), file.to_path_buf())).collect(),
            ..LabRequest::default()
        }
    }
}

/// Runs a lab in a sandbox. `conclude` prints its result and says how the program ends.
pub(super) fn run(
    request: &LabRequest,
    on_event: &mut dyn FnMut(&LabEvent),
    conclude: impl FnOnce(&LabDocument) -> Outcome,
) -> Outcome {
    inside::sandbox(|| {
        let end_signal = EndSignal::default();
        end_on_signals(&end_signal);
        let mut observe = |event: LabEvent| {
            note(&event);
            on_event(&event);
        };
        let document = longhaul::lab::run(request, &mut observe, &end_signal)?;
        let code = conclude(&document)?;
        Ok(report_links(&document, code))
    })
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

/// Messages that every lab prints.
fn note(event: &LabEvent) {
    match event {
        LabEvent::NamesUnresolved { error, hosts } => {
            console::note(&format!("lab: host names do not resolve ({error}); use the addresses:"));
            for (address, name) in hosts {
                console::note(&format!("lab:   {address} {name}"));
            }
        }
        LabEvent::Path { path, congestion, autotuned } => {
            console::note(&format!("lab: {path}; {congestion}"));
            if let Some([least, most]) = autotuned {
                console::note(&format!(
                    "lab: with the hosts' TCP buffers, autotuning reaches about {least} to {most} per connection; use --tuned to size them for the path"
                ));
            }
        }
        LabEvent::MachineRelayed { ports } => {
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            let open = if ports.is_empty() { "none".to_owned() } else { ports.join(", ") };
            console::note(&format!(
                "lab: this machine is the host `machine`; its TCP ports are relayed as they open (open now: {open})"
            ));
        }
        LabEvent::MachineForwards => console::note(
            "lab: this machine is the host `machine` and forwards to its network; DNS needs a resolver that the client can reach",
        ),
        LabEvent::PacketsMissed { file, packets } => console::note(&format!(
            "lab: {} misses {packets} packets that arrived faster than they could be written",
            file.display()
        )),
        _ => {}
    }
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
fn report_links(document: &LabDocument, code: Code) -> Code {
    let many = document.links.len() > 1;
    for link in &document.links {
        let name = if many { format!("{}: ", link.link) } else { String::new() };
        // Unused links of a large lab are omitted.
        if !many || link.path.achieved.packets > 0 {
            console::note(&format!("lab: {name}{}", in_one_line(&link.path)));
        }
        if !link.path.valid {
            console::note(&format!("lab: {name}not valid: {}", link.path.reasons.join("; ")));
        }
    }
    if document.is_valid_or_interrupted() { code } else { NOT_VALID }
}
