//! Graphs of the largest TCP streams, for a page.

use super::analysis::{self, Analysis};
use super::rows::{ConversationLayer, ConversationRows};
use super::{OnRead, ReadEvent, Rules, streams};
use crate::{Fault, Problem, StopFlag};
use capture::dissect::PacketDirection;
use report::html::{
    CapturePage, MAX_CONVERSATIONS, MAX_STREAMS, PageConversation, StreamGraphs, bytes_of_graphs,
    capture_page,
};
use report::terminal::stream_sentences;
use std::collections::HashMap;
use std::path::Path;
use tcp_graphs::{Limits, Recorder};

/// Streams with graphs by default.
const STREAMS: usize = 5;

/// The graphs of a file.
pub struct PageGraphs {
    /// The file with its streams.
    pub analysis: Analysis,
    /// The graphs of each stream.
    pub streams: Vec<StreamGraphs>,
}

impl PageGraphs {
    /// The page.
    #[must_use]
    pub fn html(self) -> String {
        let capture = &self.analysis.capture;
        let all = &capture.conversations;
        capture_page(&CapturePage {
            name: &capture.name,
            file: &capture.file,
            overview: &capture.overview,
            notes: &capture.notes(),
            conversations: &conversations(&self.analysis),
            conversation_count: all.tcp().len() + all.udp().len(),
            streams: self.streams,
        })
    }
}

/// Reads a file twice, and draws the TCP streams of these numbers, or the largest ones.
///
/// # Errors
/// Too many streams, or one that the file does not have; the file cannot be opened, or is no
/// capture.
pub fn graphs(
    path: &Path,
    asked: &[u32],
    on_read: OnRead<'_>,
    stop: &StopFlag,
) -> Result<PageGraphs, Problem> {
    if asked.len() > MAX_STREAMS {
        let message = format!("a page has graphs of at most {MAX_STREAMS} streams");
        return Err(Problem::new(Fault::Request, message));
    }
    let analysis = analysis::analyse(path, Rules::default(), on_read, stop)?;
    let wanted = wanted(&analysis, asked)?;
    // Only the stop flag ends the second reading.
    let _ = on_read(ReadEvent::Read(&analysis.capture));
    let streams = drawn(&analysis, path, &wanted, on_read, stop)?;
    Ok(PageGraphs { analysis, streams })
}

/// The streams to draw.
fn wanted(analysis: &Analysis, asked: &[u32]) -> Result<Vec<u32>, Problem> {
    let mut wanted: Vec<u32> = Vec::new();
    for number in asked {
        if analysis.streams.get(*number).is_none() {
            let last = analysis.streams.len();
            let known = match last.checked_sub(1) {
                Some(last) => format!("no TCP stream {number}; the capture has 0 to {last}"),
                None => format!("no TCP stream {number}; the capture has none"),
            };
            return Err(Problem::new(Fault::Request, known));
        }
        if !wanted.contains(number) {
            wanted.push(*number);
        }
    }
    Ok(if asked.is_empty() { analysis.largest_of(STREAMS, 1) } else { wanted })
}

/// The graphs' data of each of `streams`: together at most 100 MB.
fn limits(streams: usize) -> Limits {
    let streams = streams.max(1);
    Limits { bins: 65_536 / streams, packets: (131_072 / streams).min(40_000) }
}

/// Reads the file again, and records the packets of these streams.
fn drawn(
    analysis: &Analysis,
    path: &Path,
    wanted: &[u32],
    on_read: OnRead<'_>,
    stop: &StopFlag,
) -> Result<Vec<StreamGraphs>, Problem> {
    if wanted.is_empty() || stop.is_raised() {
        return Ok(Vec::new());
    }
    let payload = |number: u32| {
        analysis.streams.get(number).map_or([0; 2], |(_, connection)| {
            [PacketDirection::AToB, PacketDirection::BToA].map(|side| connection.traffic(side).2)
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
    // As in the list of streams: those of one test are explained together.
    let transfers = analysis.transfers_of(wanted);
    let explained = analysis.explain_packets(path, &transfers, on_read, stop, |it| {
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
            ends: [PacketDirection::AToB, PacketDirection::BToA]
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
    let each = [PacketDirection::AToB, PacketDirection::BToA];
    Some(each.iter().map(|side| u64::from(connection.retransmissions(*side).total())).sum())
}
