//! `longhaul pcap merge`: two captures of one transfer, aligned.

use super::Files;
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Outcome};
use crate::read_progress;
use crate::stop;
use clap::Args;
use longhaul::Fault;
use longhaul::pcap::{self, MergeRequest, PcapRequest, PcapView, tables};
use report::terminal::{self, MergedCapture};

/// Align two captures of one transfer
///
/// The captures are made at both ends, or at any two points. Packets are matched by
/// their contents, even across NAT and where one capture has GSO or GRO super-segments.
/// The clocks may differ.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct MergeArgs {
    #[command(flatten)]
    pub(super) files: Files,
    /// Assume that one clock timestamped both captures
    #[arg(long)]
    pub(super) same_clock: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul pcap merge client.pcap server.pcap
  longhaul pcap merge client.pcap server.pcap --csv > packets.csv
  ssh server cat s.pcap | longhaul pcap merge client.pcap - --json
  longhaul pcap merge inside.pcap outside.pcap --same-clock   one host, two interfaces

The clock offset is known to within half of the minimum RTT; the estimate
assumes that the minimum delays of both directions are equal.

Exit codes: 0 aligned, 1 a file could not be read to its end, or the captures
have no packet in common, 2 usage error.";

pub(super) fn run(files: &Files, same_clock: bool, console: &mut Console) -> Outcome {
    let view = MergeRequest { same_clock };
    let request = PcapRequest { files: files.files.clone(), view: PcapView::Merge(view.clone()) };
    request.check()?;
    let stop = stop::on_signals();
    let merged = pcap::merge(&request.files, &view, &mut read_progress::progress(console), &stop);
    console.clear();
    let merged = match merged {
        Err(problem) if problem.fault == Fault::Interrupted => return Ok(FAILED),
        merged => merged?,
    };
    if files.json {
        console.print(&console::json(&merged.document())?);
    } else if files.csv || files.parquet.is_some() {
        let mut table = files.table();
        table.add(tables::merged(&merged.merge.rows), &mut |text| console.print(text))?;
        super::finish(table, console)?;
    } else {
        let [a, b] = [0, 1].map(|side| MergedCapture {
            name: &merged.captures[side].name,
            point: merged.points[side].as_deref(),
        });
        let text = terminal::capture_merge(&merged.merge, [a, b], &merged.notes, &console.out);
        console.print(&text);
    }
    if files.is_whole() {
        for note in &merged.notes {
            console.say(note);
        }
    }
    let is_broken = merged.captures.iter().any(|capture| capture.broken.is_some());
    Ok(if is_broken { FAILED } else { DONE })
}
