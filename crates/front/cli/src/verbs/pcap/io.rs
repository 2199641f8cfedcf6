//! `longhaul pcap io`: packets or bits per interval, of all packets and of those that pass
//! filters.

use super::analysis::RulesArg;
use super::io_bins::Bins;
use super::packets;
use super::reading::{self, Dissected, Tables};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use crate::verbs::probe_args::time;
use clap::{Args, ValueEnum};
use packet_fields::Filter;
use packet_fields::Tracker;
use report::terminal::{self, IoCurve};
use serde_json::json;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// Draw packets or bits per interval, of all packets or by filters
///
/// As Wireshark's "I/O Graphs": one curve for each display filter, or one of all
/// packets.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct IoArgs {
    /// Capture file; '-' for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Display filters, a curve for each; quote each of them
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
    /// Interval, such as 100ms [default: by the duration]
    #[arg(long, short = 'i', value_name = "TIME", value_parser = time)]
    interval: Option<Duration>,
    /// What is counted: bits, bytes, packets
    #[arg(long, short = 'u', value_enum, value_name = "UNIT", default_value = "bits")]
    #[arg(hide_possible_values = true)]
    unit: Unit,
    /// Version of Wireshark whose analysis rules apply
    #[arg(long, value_enum, value_name = "VERSION", default_value = "wireshark-4.4")]
    rules: RulesArg,
    /// Print JSON
    #[arg(long, short = 'J')]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul pcap io trace.pcap
  longhaul pcap io trace.pcap tcp udp --unit packets
  longhaul pcap io trace.pcap 'tcp.port == 5201' tcp.analysis.retransmission -i 100ms
  longhaul pcap io trace.pcap tcp.analysis.retransmission --json

Exit codes: 0 read, 1 the file could not be read to its end, 2 wrong usage.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Unit {
    /// Bits per second
    Bits,
    /// Bytes per second
    Bytes,
    /// Packets per interval
    Packets,
}

impl From<Unit> for terminal::IoUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Bits => terminal::IoUnit::Bits,
            Unit::Bytes => terminal::IoUnit::Bytes,
            Unit::Packets => terminal::IoUnit::Packets,
        }
    }
}

/// Most filters.
const MAX_FILTERS: usize = 8;

pub(super) fn run(args: &IoArgs, console: &mut Console) -> Outcome {
    if args.filters.len() > MAX_FILTERS {
        return Err(Failure::usage(format!("at most {MAX_FILTERS} filters have curves")));
    }
    let filters: Vec<Option<Filter>> = if args.filters.is_empty() {
        vec![None]
    } else {
        args.filters.iter().map(|text| packets::compile(text)).collect::<Result<_, _>>()?
    };
    let mut bins = Bins::new(filters.len(), args.interval);
    let stop = stop::on_signals();
    let tables = Tables::of_reading();
    let mut tracker = Tracker::within(args.rules.rules(), &tables.budget);
    let read = reading::read_packets(&args.file, &tables, &stop, console, |found, _| {
        let Dissected { packet, layers, segment, stream, conversations, .. } = *found;
        let view = tracker.add(packet, layers, segment, stream, conversations);
        let bin = bins.at(packet.time_ns);
        for (curve, filter) in filters.iter().enumerate() {
            if filter.as_ref().is_none_or(|filter| filter.matches(&view)) {
                bins.count(curve, bin, packet.original_len);
            }
        }
        ControlFlow::Continue(())
    });
    let mut capture = read.map_err(Failure::work)?;
    capture.not_analysed = reading::not_analysed(tracker.streams(), &capture.conversations);
    let mut notes = capture.notes();
    notes.extend(bins.finish());
    let label = |filter: &Option<Filter>| {
        filter.as_ref().map_or_else(|| "all packets".to_owned(), Filter::to_string)
    };
    if args.json {
        let curves = filters.iter().zip(bins.curves()).map(|(filter, bins)| {
            json!({
                "filter": filter.as_ref().map(Filter::to_string),
                "packets": bins.iter().map(|bin| bin.packets).collect::<Vec<_>>(),
                "bytes": bins.iter().map(|bin| bin.bytes).collect::<Vec<_>>(),
            })
        });
        let document = json!({
            "schema": "longhaul.pcap-io/1",
            "version": env!("CARGO_PKG_VERSION"),
            "file": report::untrusted::clean(&capture.name),
            "interval_s": bins.interval_s(),
            "start_unix_s": bins.start_ns() as f64 / 1e9,
            "curves": curves.collect::<Vec<_>>(),
            "notes": notes,
        });
        console.print(&console::json(&document)?);
    } else {
        let curves: Vec<IoCurve> = filters
            .iter()
            .zip(bins.curves())
            .map(|(filter, bins)| IoCurve { label: label(filter), bins: bins.to_vec() })
            .collect();
        let unit = args.unit.into();
        let graph = terminal::capture_io(&curves, bins.interval_s(), unit, &console.out);
        let notes: String = notes.iter().map(|note| format!("{note}\n")).collect();
        let name = report::untrusted::clean(&capture.name);
        console.print(&format!("{name}\n{graph}{notes}"));
    }
    Ok(if capture.broken.is_some() || capture.is_interrupted { FAILED } else { DONE })
}
