//! `longhaul pcap FILE --html PAGE`: graphs of the largest TCP streams, on a page.

use super::{Files, Shown, each};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::output_path::OutputPath;
use crate::read_progress;
use crate::stop;
use clap::Args;
use longhaul::pcap::{self, ReadEvent};
use std::ops::ControlFlow;
use std::path::Path;

#[derive(Debug, Args)]
pub(super) struct SummaryArgs {
    #[command(flatten)]
    pub(super) files: Files,
    /// Write a page with graphs of the 5 largest TCP streams
    ///
    /// Time-sequence graphs, throughput, RTT and windows, with zoom, the
    /// packets in the visible time span and the conversations. The page needs
    /// no network and is at most 5 MB.
    #[arg(long, value_name = "PAGE", conflicts_with_all = ["csv", "json", "parquet"])]
    html: Option<OutputPath>,
    /// Draw this TCP stream instead, by number; repeatable
    #[arg(long, value_name = "N", requires = "html")]
    stream: Vec<u32>,
}

pub(super) fn run(args: &SummaryArgs, console: &mut Console) -> Outcome {
    let Some(page) = &args.html else { return each(&args.files, console, &Shown::Summary) };
    let [path] = &args.files.files[..] else {
        return Err(Failure::usage("--html shows one capture; run it once for each file"));
    };
    if path == Path::new("-") {
        return Err(Failure::usage(
            "--html reads the capture twice, which standard input does not allow; save it to a file",
        ));
    }
    let stop = stop::on_signals();
    let mut on_read = |event: ReadEvent<'_>| {
        if let ReadEvent::Read(capture) = event {
            console.print(&Shown::Summary.text(capture, console));
            return ControlFlow::Continue(());
        }
        read_progress::progress(console)(event)
    };
    let graphs = pcap::graphs(path, &args.stream, &mut on_read, &stop);
    console.clear();
    let graphs = graphs?;
    if stop.is_raised() {
        return Err(Failure::work(format!("interrupted; {} was not written", page.display())));
    }
    let is_broken = graphs.analysis.capture.broken.is_some();
    let is_empty = graphs.streams.is_empty();
    console.write("page", page, &graphs.html())?;
    if is_empty {
        console::note("the capture has no TCP stream with data; the page has no graphs");
    }
    Ok(if is_broken { FAILED } else { DONE })
}
