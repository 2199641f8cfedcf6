//! The page of a capture: time-sequence graphs, throughput, RTT and windows of its largest
//! TCP streams, its conversations, and the packets of a time span.
//!
//! The data for the graphs comes from `tcp-graphs`, as columns of numbers in base64; a script
//! without any library draws it on canvases. The document is at most [`MAX_BYTES`] long.

mod cards;
mod controls;
mod tables;

use super::markup::Markup;
use super::{CSS, document, footer};
use crate::calendar;
use crate::terminal::{ConversationRow, StreamRow, address};
use crate::wording::{counted, grouped};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capture::file::FileSummary;
use capture::overview::Overview;
use record::Finding;
use serde_json::{Value, json};
use tcp_analysis::Flags;
use tcp_graphs::{Encoded, Mark};
use units::{BitRate, ByteCount};

const STYLE: &str = include_str!("capture/capture.css");
const SCRIPT: &str = concat!(
    include_str!("capture/decode.js"),
    include_str!("capture/reduce.js"),
    include_str!("capture/plot.js"),
    include_str!("capture/graphs.js"),
    include_str!("capture/view.js"),
    include_str!("capture/cursor.js"),
    include_str!("capture/input.js"),
    include_str!("capture/tables.js"),
);

/// Bytes of the whole document at most.
pub const MAX_BYTES: usize = 5_000_000;

/// Conversations in the page, those with most bytes; a row takes less than 250 bytes.
pub const MAX_CONVERSATIONS: usize = 2000;

/// Bytes of the document without the graphs: styles, script, conversations, notes.
const OTHER_BYTES: usize = 800_000;

/// Characters of a note, a name, a sentence at most, and notes.
const MAX_TEXT: usize = 1000;
const MAX_NOTES: usize = 50;

/// Streams with graphs at most.
pub const MAX_STREAMS: usize = 20;

/// Bytes for the graphs of each of `streams`, before they are in base64.
#[must_use]
pub fn bytes_of_graphs(streams: usize) -> usize {
    (MAX_BYTES - OTHER_BYTES) / 4 * 3 / streams.clamp(1, MAX_STREAMS)
}

/// The contents of a capture's page.
#[derive(Debug)]
pub struct CapturePage<'a> {
    /// Name of the file.
    pub name: &'a str,
    /// The file's own description.
    pub file: &'a FileSummary,
    /// Totals.
    pub overview: &'a Overview,
    /// Further notes, as sentences.
    pub notes: &'a [String],
    /// TCP and UDP conversations, those with most bytes first: at least [`MAX_CONVERSATIONS`], if
    /// there are as many.
    pub conversations: &'a [PageConversation],
    /// How many there are.
    pub conversation_count: usize,
    /// The streams with graphs, the one to show first.
    pub streams: Vec<StreamGraphs>,
}

/// A conversation to list.
#[derive(Debug, Clone, Copy)]
pub struct PageConversation {
    /// Ends and traffic.
    pub row: ConversationRow,
    /// Retransmissions of a TCP stream, in both directions.
    pub retransmissions: Option<u64>,
}

/// A stream with graphs.
#[derive(Debug)]
pub struct StreamGraphs {
    /// Its number.
    pub stream: u32,
    /// Sides A and B, as `ADDRESS:PORT`.
    pub ends: [String; 2],
    /// Payload that each side sent, in bytes.
    pub payload: [u64; 2],
    /// 0 to show the data of side A first, 1 for that of side B.
    pub side: usize,
    /// Its figures, in the direction that carried more.
    pub row: StreamRow,
    /// Its data segments and those that were retransmitted; `None` if no data was captured.
    pub segments: Option<(u32, u32)>,
    /// Its limit; `None` if it was not explained.
    pub finding: Option<Finding>,
    /// Further sentences about it.
    pub about: Vec<String>,
    /// Its graphs.
    pub graphs: Encoded,
}

/// The page as one HTML document.
#[must_use]
pub fn capture(page: &CapturePage<'_>) -> String {
    let mut m = Markup::new();
    document(&mut m, page.name, &[CSS, STYLE], SCRIPT, |m| {
        m.element("main", &[], |m| {
            header(m, page);
            cards::write(m, page);
            notes(m, page);
            controls::graphs(m, page);
            tables::packets(m, page);
            tables::conversations(m);
            tables::shortcuts(m);
        });
        footer(m, env!("CARGO_PKG_VERSION"));
        m.data("capture-data", &data(page));
    });
    m.finish()
}

/// At most so many characters: names and sentences come from files.
fn short(text: &str) -> String {
    crate::untrusted::excerpt(text, MAX_TEXT)
}

fn header(m: &mut Markup, page: &CapturePage<'_>) {
    let overview = page.overview;
    m.element("header", &[], |m| {
        m.leaf("p", &[("class", &"eyebrow")], &"Capture");
        m.leaf("h1", &[], &short(page.name));
        let mut lead = format!(
            "{}, {} on the wire",
            counted(grouped(overview.packets), "packet"),
            ByteCount::from_bytes(overview.bytes).decimal()
        );
        if overview.packets > 0 {
            lead += &format!(" in {:.6} s", overview.seconds());
            if let Some(rate) = overview.rate_bps() {
                lead += &format!(" ({})", BitRate::from_bps_f64(rate));
            }
            lead += &format!(
                ", starting at {}. Times are relative to the first packet.",
                calendar::utc(overview.first_ns / 1_000_000_000)
            );
        }
        m.leaf("p", &[("class", &"note")], &lead);
        m.element("noscript", &[], |m| {
            m.leaf("p", &[("class", &"alert")], &"The graphs need JavaScript, which is off here.");
        });
    });
}

/// Caveats about the file; folded, the rest of its own description.
fn notes(m: &mut Markup, page: &CapturePage<'_>) {
    let file = page.file;
    let mut notes = page.notes.to_vec();
    if let Some(count) = file.dropped().filter(|count| *count > 0) {
        notes.push(format!(
            "{} dropped while capturing: segments that are missing here may have arrived.",
            counted(grouped(count), "packet")
        ));
    }
    list(m, &notes);
    let by = &file.captured_by;
    let by = (!by.is_empty()).then(|| format!("Captured by {}.", by.join(", ")));
    let comments = file.comments.iter().map(|comment| format!("Comment: {comment}"));
    let about: Vec<String> = by.into_iter().chain(comments).collect();
    if !about.is_empty() {
        m.element("details", &[("class", &"about")], |m| {
            m.leaf("summary", &[], &"File information");
            list(m, &about);
        });
    }
}

fn list(m: &mut Markup, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    m.element("ul", &[("class", &"notes")], |m| {
        for note in notes.iter().take(MAX_NOTES) {
            m.leaf("li", &[], &short(note));
        }
    });
}

/// The data that the script reads.
fn data(page: &CapturePage<'_>) -> Value {
    let first_ns = page.overview.first_ns;
    let conversations: Vec<Value> = page
        .conversations
        .iter()
        .take(MAX_CONVERSATIONS)
        .map(|conversation| {
            let PageConversation { row, retransmissions } = conversation;
            let traffic = &row.traffic;
            let seconds = |ns: u64| ns as f64 / 1e9;
            let [a, b] = &traffic.each;
            json!([
                if row.stream.is_some() { "TCP" } else { "UDP" },
                row.stream,
                address(&row.ends[0]),
                address(&row.ends[1]),
                seconds(traffic.first_ns.saturating_sub(first_ns)),
                seconds(traffic.last_ns.saturating_sub(traffic.first_ns)),
                a.frames,
                a.bytes,
                b.frames,
                b.bytes,
                retransmissions,
            ])
        })
        .collect();
    let streams: Vec<Value> = page
        .streams
        .iter()
        .map(|stream| {
            let graphs = &stream.graphs;
            json!({
                "number": stream.stream,
                "ends": stream.ends,
                "payload": stream.payload,
                "side": stream.side,
                "widthNs": graphs.width_ns,
                "bins": graphs.bins.each_ref().map(|bytes| STANDARD.encode(bytes)),
                "packets": graphs.packets.each_ref().map(|bytes| STANDARD.encode(bytes)),
                "kept": graphs.kept,
                "packetCount": graphs.packet_count,
            })
        })
        .collect();
    json!({
        "conversations": conversations,
        "conversationCount": page.conversation_count,
        "streams": streams,
        "marks": Mark::ALL.map(Mark::name),
        "flags": Flags::ALL.map(|(_, name)| name),
    })
}
