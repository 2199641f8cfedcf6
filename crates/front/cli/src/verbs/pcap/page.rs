//! `longhaul pcap FILE --html PAGE`: graphs of the largest TCP streams, on a page.

use super::analysis::{self, Analysis, RulesArg};
use super::rows::ConversationRows;
use super::{ConversationLayer, Files, Shown, Summary, each, streams};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::output_path::OutputPath;
use crate::stop;
use capture::dissect::Direction;
use clap::Args;
use perf::StopFlag;
use report::html::{
    self, CapturePage, MAX_CONVERSATIONS, MAX_STREAMS, PageConversation, StreamGraphs,
    bytes_of_graphs,
};
use report::terminal::stream_sentences;
use std::collections::HashMap;
use std::path::Path;
use tcp_graphs::{Limits, Recorder};

#[derive(Debug, Args)]
pub(super) struct SummaryArgs {
    #[command(flatten)]
    pub(super) files: Files,
    /// Write a page with graphs of the 5 largest TCP streams
    ///
    /// Time-sequence graphs, throughput, RTT and windows, with zoom, the
    /// packets of the time span shown and the conversations. The page needs no
    /// network and is at most 5 MB.
    #[arg(long, value_name = "PAGE", conflicts_with_all = ["csv", "json", "parquet"])]
    html: Option<OutputPath>,
    /// Draw this TCP stream instead, by its number; repeatable
    #[arg(long, value_name = "N", requires = "html")]
    stream: Vec<u32>,
}

/// Streams with graphs unless others are asked for.
const STREAMS: usize = 5;

pub(super) fn run(args: &SummaryArgs, console: &mut Console) -> Outcome {
    let Some(page) = &args.html else { return each(&args.files, console, &Summary) };
    let [path] = &args.files.files[..] else {
        return Err(Failure::usage("--html shows one capture; run it once for each file"));
    };
    if path == Path::new("-") {
        return Err(Failure::usage(
            "--html reads the capture twice, which standard input does not allow; save it to a file",
        ));
    }
    if args.stream.len() > MAX_STREAMS {
        return Err(Failure::usage(format!("a page has graphs of at most {MAX_STREAMS} streams")));
    }
    let stop = stop::on_signals();
    let analysis =
        analysis::analyse(path, RulesArg::default(), &stop, console).map_err(Failure::work)?;
    let wanted = wanted(&analysis, &args.stream)?;
    console.print(&Summary.text(&analysis.capture, console));
    let streams = graphs(&analysis, path, &wanted, &stop, console).map_err(Failure::work)?;
    console.clear();
    if stop.is_raised() {
        return Err(Failure::work(format!("interrupted; {} was not written", page.display())));
    }
    let capture = &analysis.capture;
    let text = html::capture_page(&CapturePage {
        name: &capture.name,
        file: &capture.file,
        overview: &capture.overview,
        notes: &capture.notes(),
        conversations: &conversations(&analysis),
        conversation_count: capture.conversations.tcp().len() + capture.conversations.udp().len(),
        streams,
    });
    store::write(page, text.as_bytes()).map_err(Failure::work)?;
    console.say(&format!("page written to {}", page.display()));
    if wanted.is_empty() {
        console::note("the capture has no TCP stream with data; the page has no graphs");
    }
    Ok(if capture.broken.is_some() { FAILED } else { DONE })
}

/// The streams to draw.
fn wanted(analysis: &Analysis, asked: &[u32]) -> Result<Vec<u32>, Failure> {
    let mut wanted: Vec<u32> = Vec::new();
    for number in asked {
        if analysis.streams.get(*number).is_none() {
            let last = analysis.streams.len();
            return Err(Failure::usage(match last.checked_sub(1) {
                Some(last) => format!("no TCP stream {number}; the capture has 0 to {last}"),
                None => format!("no TCP stream {number}; the capture has none"),
            }));
        }
        if !wanted.contains(number) {
            wanted.push(*number);
        }
    }
    Ok(if asked.is_empty() { analysis.largest_of(STREAMS, 1) } else { wanted })
}

/// What is kept of each of `streams`: together at most 100 MB.
fn limits(streams: usize) -> Limits {
    let streams = streams.max(1);
    Limits { bins: 65_536 / streams, packets: (131_072 / streams).min(40_000) }
}

/// Reads the file again, and records the packets of these streams.
fn graphs(
    analysis: &Analysis,
    path: &Path,
    wanted: &[u32],
    stop: &StopFlag,
    console: &mut Console,
) -> Result<Vec<StreamGraphs>, String> {
    if wanted.is_empty() || stop.is_raised() {
        return Ok(Vec::new());
    }
    let payload = |number: u32| {
        analysis.streams.get(number).map_or([0; 2], |(_, connection)| {
            [Direction::AToB, Direction::BToA].map(|side| connection.traffic(side).2)
        })
    };
    let start_ns = analysis.capture.overview.first_ns;
    let is_sorted = analysis.capture.file.backwards.is_none();
    let mut recorders: HashMap<u32, Recorder> = wanted
        .iter()
        .map(|number| {
            let carries = payload(*number).map(|bytes| bytes > 0);
            (*number, Recorder::new(start_ns, is_sorted, carries, limits(wanted.len())))
        })
        .collect();
    // As `pcap streams` explains them: those of one test together.
    let transfers = analysis.transfers_of(wanted);
    let explained = analysis.explain_packets(path, &transfers, stop, console, |it| {
        if let Some(recorder) = recorders.get_mut(&it.stream) {
            recorder.add(it.connection, it.place.packet, it.place.time_ns, it.segment, &it.found);
        }
    })?;
    let most = bytes_of_graphs(wanted.len());
    let each = wanted.iter().filter_map(|number| {
        let number = *number;
        let recorder = recorders.remove(&number)?;
        let (key, connection) = analysis.streams.get(number)?;
        let direction = connection.data_direction();
        let row = streams::row(number, key, connection, &explained, analysis);
        let (_, packets, _) = connection.traffic(direction);
        let again = connection.retransmissions(direction).total();
        let own = explained.iter().find(|one| one.streams.contains(&number));
        let mut about: Vec<String> = stream_sentences(&row).iter().map(|it| sentence(it)).collect();
        about.extend(analysis.test_sentences(number).iter().map(|text| sentence(text)));
        if connection.lacks_syn(direction.reverse())
            && connection.proven_scale(direction.reverse()).is_none()
        {
            about.push("Windows are shown without their scale.".to_owned());
        }
        Some(StreamGraphs {
            stream: number,
            ends: [Direction::AToB, Direction::BToA]
                .map(|side| analysis::end(key, side).to_string()),
            payload: payload(number),
            side: direction.index(),
            segments: (packets > 0).then_some((packets, again)),
            finding: own.map(|one| diagnose::explain(&one.measurement)),
            row,
            about,
            graphs: recorder.finish().encode(most),
        })
    });
    Ok(each.collect())
}

/// The text with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut chars = text.trim_end_matches('.').chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

/// TCP and UDP conversations, those with most bytes first.
fn conversations(analysis: &Analysis) -> Vec<PageConversation> {
    let all = &analysis.capture.conversations;
    let mut listed: Vec<PageConversation> = Vec::new();
    for layer in [ConversationLayer::Tcp, ConversationLayer::Udp] {
        let rows = ConversationRows::of(all, layer);
        listed.extend(rows.iter(MAX_CONVERSATIONS).map(|row| PageConversation {
            row,
            retransmissions: retransmissions(analysis, row.stream),
        }));
    }
    listed.sort_by_key(|conversation| std::cmp::Reverse(conversation.row.traffic.bytes()));
    listed.truncate(MAX_CONVERSATIONS);
    listed
}

fn retransmissions(analysis: &Analysis, stream: Option<usize>) -> Option<u64> {
    let (_, connection) = analysis.streams.get(u32::try_from(stream?).ok()?)?;
    let each = [Direction::AToB, Direction::BToA];
    Some(each.iter().map(|side| u64::from(connection.retransmissions(*side).total())).sum())
}
