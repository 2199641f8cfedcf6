//! Explains the largest TCP streams of a capture file.

use super::ExplainArgs;
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use crate::test_report;
use crate::verbs::pcap::analysis::{self, RulesArg};
use capture::file::{Decompressed, HEAD, is_capture as is_capture_head};
use host::file;
use std::io::Read;
use std::path::Path;

/// Transfers that are explained one after the other.
const MAX: usize = 5;

/// Whether the file begins as a capture, also as one that is compressed.
pub(super) fn is_capture(path: &Path) -> bool {
    let Ok(file) = file::open_regular(path) else { return false };
    let mut head = Vec::new();
    let plain = Decompressed::new(file).map(|plain| plain.take(HEAD as u64));
    let read = plain.and_then(|mut plain| plain.read_to_end(&mut head));
    // The error of a damaged one is that of captures, which are what is compressed most.
    is_capture_head(&head) || (read.is_err() && head.is_empty())
}

/// Explains the largest streams, or the one that `--connection` names.
pub(super) fn run(args: &ExplainArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let path = &args.file;
    let analysis =
        analysis::analyse(path, RulesArg::default(), &stop, console).map_err(Failure::work)?;
    let wanted = match &args.connection {
        None => analysis.largest(MAX),
        Some(which) => vec![vec![which.parse().map_err(|_| {
            Failure::usage("--connection of a capture is a stream's number, as in `pcap streams`")
        })?]],
    };
    let explained = analysis.explain(path, &wanted, &stop, console).map_err(Failure::work)?;
    console.clear();
    let notes = analysis.notes();
    if explained.is_empty() {
        let notes: String = notes.iter().map(|note| format!("; {note}")).collect();
        return Err(Failure::work(format!(
            "{} has no TCP stream with data to explain{}",
            path.display(),
            notes.trim_end_matches('.')
        )));
    }
    if args.connection.is_none() && (args.forms.json || args.forms.html.is_some()) {
        let first = explained.first().map(|one| named(&one.streams)).unwrap_or_default();
        console.say(&format!("{first}, the largest; --connection selects another one"));
    }
    let single = args.forms.json || args.forms.html.is_some();
    let mut code = DONE;
    for one in explained.iter().take(if single { 1 } else { MAX }) {
        if !single {
            console.print(&format!("{}\n", named(&one.streams)));
        }
        let mut measurement = one.measurement.clone();
        if single {
            measurement.notes.extend(notes.iter().cloned());
        }
        let said = &measurement.notes;
        let outcome = test_report::print(console, &measurement, &args.forms, said)?;
        if outcome != DONE {
            code = FAILED;
        }
    }
    let first = wanted.first().and_then(|transfer| transfer.first());
    if !single {
        notes.iter().for_each(|note| console::note(note));
    }
    for sentence in first.map(|stream| analysis.test_sentences(*stream)).unwrap_or_default() {
        console::note(&sentence);
    }
    Ok(code)
}

/// `stream 3`, or `streams 3, 4, 5`.
fn named(streams: &[u32]) -> String {
    let numbers: Vec<String> = streams.iter().map(u32::to_string).collect();
    format!("stream{} {}", if numbers.len() > 1 { "s" } else { "" }, numbers.join(", "))
}
