//! The page of a capture: time-sequence graphs, throughput, RTT and windows of its largest
//! TCP streams, its conversations, and the packets of a time span.
//!
//! What is drawn comes from `tcp-graphs`, as columns of numbers in base64; a script without
//! any library draws it on canvases. The document is at most [`MOST_BYTES`] long.

use super::markup::Markup;
use super::{CSS, document, footer};
use crate::calendar;
use crate::terminal::{ConversationRow, address};
use crate::wording::grouped;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capture::file::FileSummary;
use capture::overview::Overview;
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
pub const MOST_BYTES: usize = 5_000_000;

/// Conversations in the page, those with most bytes; a row takes less than 250 bytes.
const MOST_CONVERSATIONS: usize = 2000;

/// Bytes of the document without the graphs: styles, script, conversations, notes.
const OTHER_BYTES: usize = 800_000;

/// Characters of a note, a name, a sentence at most, and notes.
const MOST_TEXT: usize = 1000;
const MOST_NOTES: usize = 50;

/// Streams with graphs at most.
pub const MOST_STREAMS: usize = 20;

/// Bytes for the graphs of each of `streams`, before they are in base64.
#[must_use]
pub fn bytes_of_graphs(streams: usize) -> usize {
    (MOST_BYTES - OTHER_BYTES) / 4 * 3 / streams.clamp(1, MOST_STREAMS)
}

/// The contents of a capture's page.
#[derive(Debug)]
pub struct CapturePage<'a> {
    /// Name of the file.
    pub name: &'a str,
    /// What it says of itself.
    pub file: &'a FileSummary,
    /// Totals.
    pub overview: &'a Overview,
    /// What else to know, as sentences.
    pub notes: &'a [String],
    /// TCP and UDP conversations, those with most bytes first.
    pub conversations: &'a [PageConversation],
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
    /// Sentences about it: its limit, the capture point.
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
            graphs(m, page);
            packets(m, page);
            conversations(m);
            shortcuts(m);
        });
        footer(m, env!("CARGO_PKG_VERSION"));
        m.data("capture-data", &data(page));
    });
    m.finish()
}

/// At most so many characters: names and sentences come from files.
fn short(text: &str) -> String {
    crate::untrusted::excerpt(text, MOST_TEXT)
}

fn header(m: &mut Markup, page: &CapturePage<'_>) {
    let overview = page.overview;
    m.element("header", &[], |m| {
        m.leaf("p", &[("class", &"eyebrow")], &"Capture");
        m.leaf("h1", &[], &short(page.name));
        let mut lead = format!(
            "{} packets, {} on the wire",
            grouped(overview.packets),
            ByteCount::from_bytes(overview.bytes).decimal()
        );
        if overview.packets > 0 {
            lead += &format!(" in {:.6} s", overview.seconds());
            if let Some(rate) = overview.rate_bps() {
                lead += &format!(" ({})", BitRate::from_bps_f64(rate));
            }
            lead += &format!(
                ", from {} on. Times are relative to the first packet.",
                calendar::utc(overview.first_ns / 1_000_000_000)
            );
        }
        m.leaf("p", &[("class", &"lead")], &lead);
        if !page.notes.is_empty() {
            m.element("ul", &[("class", &"notes")], |m| {
                for note in page.notes.iter().take(MOST_NOTES) {
                    m.leaf("li", &[], &short(note));
                }
            });
        }
        m.element("noscript", &[], |m| {
            m.leaf("p", &[("class", &"alert")], &"The graphs need JavaScript, which is off here.");
        });
    });
}

fn graphs(m: &mut Markup, page: &CapturePage<'_>) {
    m.element("section", &[("id", &"graphs"), ("aria-label", &"Graphs of a TCP stream")], |m| {
        if page.streams.is_empty() {
            m.leaf("p", &[("class", &"empty")], &"No TCP stream with data to draw.");
            return;
        }
        tools(m, page);
        m.leaf("p", &[("id", &"message"), ("class", &"note"), ("role", &"status")], &"");
        m.leaf("p", &[("id", &"about"), ("class", &"note")], &"");
        m.leaf("p", &[("id", &"said"), ("aria-live", &"polite")], &"");
        figure(m, "sequence", "Time–sequence", |m| {
            key(m, "k-data", false, "segments");
            key(m, "k-ack", false, "ACK");
            key(m, "k-window", true, "right edge of the window");
            key(m, "k-sack", false, "SACK");
        });
        m.leaf("ul", &[("id", &"marks"), ("class", &"keys"), ("aria-label", &"Marks")], &"");
        figure(m, "throughput", "Throughput and goodput", |m| {
            key(m, "k-data", false, "throughput: payload sent, retransmissions included");
            key(m, "k-ack", false, "goodput: first acknowledged, by ACK or SACK");
        });
        figure(m, "rtt", "RTT", |m| {
            key(m, "k-data", false, "from a segment at the capture point to its ACK");
        });
        figure(m, "windows", "Windows and bytes in flight", |m| {
            key(m, "k-data", false, "in flight: sent and not yet acknowledged");
            key(m, "k-window", true, "receive window");
        });
    });
}

fn button(m: &mut Markup, id: &'static str, label: &'static str, text: &'static str) {
    m.leaf(
        "button",
        &[("type", &"button"), ("id", &id), ("aria-label", &label), ("title", &label)],
        &text,
    );
}

fn tools(m: &mut Markup, page: &CapturePage<'_>) {
    m.element("div", &[("class", &"tools"), ("role", &"toolbar"), ("aria-label", &"View")], |m| {
        m.element("label", &[("class", &"group")], |m| {
            m.text(&"Stream");
            m.element("select", &[("id", &"stream")], |m| {
                for stream in &page.streams {
                    let [a, b] = &stream.ends;
                    let name = format!("{}: {a} – {b}", stream.stream);
                    m.leaf("option", &[("value", &stream.stream)], &name);
                }
            });
        });
        m.element("span", &[("class", &"group")], |m| {
            m.text(&"Data");
            button(m, "direction", "Switch the direction", "");
        });
        m.element("span", &[("class", &"group")], |m| {
            button(m, "earlier", "Pan to earlier", "←");
            button(m, "later", "Pan to later", "→");
            button(m, "zoom-in", "Zoom in", "+");
            button(m, "zoom-out", "Zoom out", "−");
            button(m, "reset", "Show the whole stream", "Reset");
        });
        m.element("span", &[("class", &"group")], |m| {
            button(m, "previous", "Previous event", "‹ Event");
            button(m, "next", "Next event", "Event ›");
        });
        m.element("span", &[("class", &"group")], |m| {
            toggle(m, "stevens", "Stevens", "Time–sequence graph by Stevens: data segments alone");
            toggle(m, "drag", "Drag pans", "Drag to pan instead of zooming to a time span");
        });
        m.element("label", &[("class", &"group")], |m| {
            m.text(&"Average over");
            m.shape(
                "input",
                &[
                    ("type", &"range"),
                    ("id", &"average"),
                    ("min", &0),
                    ("max", &30),
                    ("value", &6),
                    ("title", &"Moving average of throughput and goodput"),
                ],
            );
            m.leaf("output", &[("id", &"average-text"), ("for", &"average")], &"");
        });
        m.leaf("output", &[("id", &"span"), ("aria-label", &"Time span")], &"");
    });
}

fn toggle(m: &mut Markup, id: &'static str, text: &'static str, title: &'static str) {
    m.leaf(
        "button",
        &[("type", &"button"), ("id", &id), ("aria-pressed", &"false"), ("title", &title)],
        &text,
    );
}

fn figure(m: &mut Markup, kind: &'static str, title: &'static str, keys: impl FnOnce(&mut Markup)) {
    let class = format!("graph {kind}");
    m.element("figure", &[("class", &class), ("data-graph", &kind)], |m| {
        m.leaf("h3", &[], &title);
        m.element("ul", &[("class", &"keys")], keys);
        m.element("div", &[("class", &"frame")], |m| {
            let label = format!(
                "{title} over time. Arrows pan, + and − zoom, 0 resets, Shift and arrows move \
                 the cursor, n and p go to the next and previous event."
            );
            m.leaf("canvas", &[("tabindex", &0), ("role", &"img"), ("aria-label", &label)], &"");
            for class in ["hair-line", "selection", "tip"] {
                m.leaf("div", &[("class", &class), ("hidden", &"")], &"");
            }
        });
    });
}

fn key(m: &mut Markup, class: &'static str, dashed: bool, text: &'static str) {
    m.element("li", &[], |m| {
        let class = format!("{class}{}", if dashed { " dashed" } else { "" });
        m.leaf("i", &[("class", &class)], &"").text(&text);
    });
}

fn packets(m: &mut Markup, page: &CapturePage<'_>) {
    if page.streams.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Packets in the time span");
        m.leaf("p", &[("id", &"packet-count"), ("class", &"note")], &"");
        table(
            m,
            "packet-rows",
            "Packets",
            &["No.", "Time (s)", "From", "Flags", "Seq", "Len", "Ack", "Window", "Notes"],
            &[2, 3, 8],
        );
    });
}

fn conversations(m: &mut Markup) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Conversations");
        m.element("label", &[("class", &"search")], |m| {
            m.text(&"Search");
            m.shape(
                "input",
                &[
                    ("type", &"search"),
                    ("id", &"search"),
                    ("placeholder", &"address, port, tcp, udp, stream"),
                    ("autocomplete", &"off"),
                ],
            );
            m.leaf("span", &[("id", &"conversation-count"), ("role", &"status")], &"");
        });
        m.leaf(
            "p",
            &[("class", &"note")],
            &"Side A sent the first packet. A button shows the stream's graphs; for those of \
              another stream: longhaul pcap FILE --html PAGE --stream NUMBER.",
        );
        table(
            m,
            "conversation-rows",
            "Conversations",
            &[
                "Stream",
                "A",
                "B",
                "Start (s)",
                "Duration (s)",
                "Frames A → B",
                "Bytes A → B",
                "Rate A → B",
                "Frames B → A",
                "Bytes B → A",
                "Rate B → A",
                "Retrans.",
            ],
            &[0, 1, 2],
        );
    });
}

fn table(
    m: &mut Markup,
    id: &'static str,
    label: &'static str,
    columns: &[&'static str],
    left: &[usize],
) {
    let attributes: super::markup::Attributes<'_> = &[
        ("class", &"table scroll"),
        ("tabindex", &0),
        ("role", &"region"),
        ("aria-label", &label),
    ];
    m.element("div", attributes, |m| {
        m.element("table", &[], |m| {
            m.element("thead", &[], |m| {
                m.element("tr", &[], |m| {
                    for (place, column) in columns.iter().enumerate() {
                        let class = if left.contains(&place) { "left" } else { "" };
                        m.leaf("th", &[("scope", &"col"), ("class", &class)], column);
                    }
                });
            });
            m.leaf("tbody", &[("id", &id)], &"");
        });
    });
}

fn shortcuts(m: &mut Markup) {
    const KEYS: [(&str, &str); 9] = [
        ("← →", "pan"),
        ("+ −", "zoom, about the cursor where it is visible"),
        ("0", "show the whole stream"),
        ("Home End", "go to its beginning, its end"),
        ("Shift ← →", "move the cursor by 10 pixels; , and . by one"),
        ("n p", "next, previous event: retransmission, loss, zero window"),
        ("d", "switch the direction"),
        ("s", "time–sequence graph by Stevens, or by tcptrace"),
        ("wheel, drag", "zoom; with Shift: pan. Double-click zooms in"),
    ];
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Keys");
        m.element("dl", &[("class", &"shortcuts")], |m| {
            for (keys, what) in KEYS {
                m.element("dt", &[], |m| {
                    m.leaf("kbd", &[], &keys);
                });
                m.leaf("dd", &[], &what);
            }
        });
    });
}

/// What the script reads.
fn data(page: &CapturePage<'_>) -> Value {
    let first_ns = page.overview.first_ns;
    let conversations: Vec<Value> = page
        .conversations
        .iter()
        .take(MOST_CONVERSATIONS)
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
            let about: Vec<String> = stream.about.iter().map(|text| short(text)).collect();
            json!({
                "number": stream.stream,
                "ends": stream.ends,
                "payload": stream.payload,
                "side": stream.side,
                "about": about,
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
        "conversationCount": page.conversations.len(),
        "streams": streams,
        "marks": Mark::ALL.map(Mark::name),
        "flags": Flags::ALL.map(|(_, name)| name),
    })
}
