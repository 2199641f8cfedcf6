//! Explains the largest TCP streams of a capture file.

use super::ExplainArgs;
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use crate::test_report;
use crate::verbs::pcap::analysis::{self, RulesArg};
use host::file;
use std::io::Read;
use std::path::Path;

/// Transfers that are explained one after the other.
const MOST: usize = 5;

/// Whether the file begins as a capture, or as something compressed, which measurements and
/// recordings are not.
pub(super) fn is_capture(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = file::open_regular(path).map(|mut file| file.read_exact(&mut magic));
    if !matches!(read, Ok(Ok(()))) {
        return false;
    }
    let pcap = [0xa1b2_c3d4_u32, 0xa1b2_3c4d].map(|it| [it.to_be_bytes(), it.to_le_bytes()]);
    pcap.as_flattened().contains(&magic)
        || magic == [0x0a, 0x0d, 0x0d, 0x0a]
        || magic[..2] == [0x1f, 0x8b]
        || magic == [0x28, 0xb5, 0x2f, 0xfd]
}

/// Explains the largest streams, or the one that `--connection` names.
pub(super) fn run(args: &ExplainArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let path = &args.file;
    let analysis =
        analysis::analyse(path, RulesArg::default(), &stop, console).map_err(Failure::work)?;
    let wanted = match &args.connection {
        None => analysis.largest(MOST),
        Some(which) => vec![vec![which.parse().map_err(|_| {
            Failure::usage("--connection of a capture is a stream's number, as in `pcap streams`")
        })?]],
    };
    let explained = analysis.explain(path, &wanted, &stop, console).map_err(Failure::work)?;
    console.clear();
    if explained.is_empty() {
        return Err(Failure::work(format!(
            "{} has no TCP stream with data to explain",
            path.display()
        )));
    }
    if args.connection.is_none() && (args.forms.json || args.forms.html.is_some()) {
        let first = explained.first().map(|one| named(&one.streams)).unwrap_or_default();
        console.say(&format!("{first}, the largest; --connection selects another one"));
    }
    let single = args.forms.json || args.forms.html.is_some();
    let mut code = DONE;
    for one in explained.iter().take(if single { 1 } else { MOST }) {
        if !single {
            console.print(&format!("{}\n", named(&one.streams)));
        }
        let notes = &one.measurement.notes;
        let outcome = test_report::print(console, &one.measurement, &args.forms, notes)?;
        if outcome != DONE {
            code = FAILED;
        }
    }
    let first = wanted.first().and_then(|transfer| transfer.first());
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
