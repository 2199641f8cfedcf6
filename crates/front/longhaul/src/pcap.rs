//! The contents of capture files: summaries, conversations, TCP streams, single packets, and two
//! captures of one transfer aligned.
//!
//! [`run`] carries out a [`PcapRequest`] and returns its document. The functions of each view
//! ([`read`], [`streams::read`], [`packets::run`] and so on) pass on what they find while they
//! read, so nothing is collected that the caller does not keep.
//!
//! ```
//! use longhaul::pcap::{self, PcapDocument, PcapRequest};
//! use longhaul::StopFlag;
//!
//! # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/corpus/");
//! # let path = folder.to_owned() + "loss-middle.pcap.gz";
//! let request = PcapRequest::new(path);
//! let document = pcap::run(&request, &mut |_| (), &StopFlag::new())?;
//! let PcapDocument::Summary(summary) = document else { panic!("a summary was requested") };
//! assert_eq!(summary.files[0].conversations.len(), 1);
//! # Ok::<(), longhaul::Problem>(())
//! ```

mod analysis;
pub mod document;
mod expert;
pub mod follow;
mod handshake;
mod io;
mod io_bins;
mod merge;
mod packet_file;
pub mod packets;
mod page;
mod reading;
mod request;
mod rows;
pub mod streams;
pub mod table;
pub mod tables;

pub use analysis::Analysis;
pub(crate) use analysis::analyse;
pub use expert::{ExpertFound, expert};
pub use handshake::handshakes;
pub use io::{CountedPackets, io};
pub use merge::{Merged, merge};
pub use packet_fields::expert::Severity;
pub use page::{PageGraphs, graphs};
pub use reading::{Capture, not_listed, read};
pub use request::{
    ExpertRequest, FollowRequest, HandshakeRequest, IoRequest, ListRequest, MergeRequest,
    PacketsRequest, PcapRequest, PcapView, StreamEnd, StreamsRequest, Transport,
};
pub use rows::{ConversationLayer, ConversationRows, EndpointRows, top};
pub use tcp_analysis::Rules;

use crate::{Problem, StopFlag};
use document::conversations::{
    Conversation, ConversationsFile, Endpoint, EndpointsFile, conversations,
};
use document::merge::MergeDocument;
use document::packets::{Expert, FollowedPart, Io, ListedFile, Packet};
use document::streams::{HANDSHAKES_SCHEMA, HandshakesFile, STREAMS_SCHEMA, Stream, StreamsFile};
use document::{Files, HierarchyFile, SummaryFile};
use packet_fields::{PacketView, Summary};
use report::terminal::{ConversationRow, HandshakeStream};
use serde::Serialize;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::Path;

/// Conversations in a summary.
const TOP: usize = 5;

/// Rows of a list in a document that [`run`] returns; the functions of the views have no limit.
const MAX_ROWS: usize = 50_000;

/// The progress of reading a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadProgress {
    /// Its name.
    pub file: String,
    /// Bytes that were read.
    pub bytes: u64,
    /// Its size, if it is known.
    pub size_bytes: Option<u64>,
    /// Since the reading began.
    pub seconds: f64,
}

/// Output of the views' functions while they read.
pub enum ReadEvent<'a> {
    /// After two seconds, at most five times a second.
    Progress(&'a ReadProgress),
    /// Two long captures are compared.
    Comparing,
    /// A file was read for the first time; some views read it twice.
    Read(&'a Capture),
    /// A packet that matches the filter.
    Packet(&'a PacketView<'a>),
    /// The packets so far are shown; the next one may not arrive for a long time.
    Pause,
    /// The ends of the followed stream; the first one sent first.
    Stream([SocketAddr; 2]),
    /// Data that an end of it sent.
    Part(FollowedBytes<'a>),
}

/// Data that one end of a stream sent with a packet.
#[derive(Debug, Clone, Copy)]
pub struct FollowedBytes<'a> {
    /// True for the end that sent first.
    pub is_first: bool,
    /// The packet.
    pub packet: u64,
    /// Since the first packet of the stream, in ns.
    pub since_first_ns: i64,
    /// The bytes.
    pub data: &'a [u8],
    /// Bytes that were not captured, in the place of `data`.
    pub missing: u32,
}

/// Output goes here, until it returns [`ControlFlow::Break`]: of packets and parts that
/// ends the reading.
pub type OnRead<'a> = &'a mut dyn FnMut(ReadEvent<'_>) -> ControlFlow<()>;

/// Events of [`run`].
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PcapEvent {
    /// After two seconds, at most five times a second.
    Progress(ReadProgress),
    /// Two long captures are compared.
    Comparing,
    /// A file that cannot be read; the others are.
    Unreadable(Problem),
    /// A packet that matches the filter.
    Packet(Box<Packet>),
    /// Data that an end of a stream sent.
    Part(FollowedPart),
}

/// The result.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum PcapDocument {
    /// Of [`PcapView::Summary`].
    Summary(Files<SummaryFile>),
    /// Of [`PcapView::Hierarchy`].
    Hierarchy(Files<HierarchyFile>),
    /// Of [`PcapView::Conversations`].
    Conversations(Files<ConversationsFile<Vec<Conversation>>>),
    /// Of [`PcapView::Endpoints`].
    Endpoints(Files<EndpointsFile<Vec<Endpoint>>>),
    /// Of [`PcapView::Streams`].
    Streams(Files<StreamsFile<Vec<Stream>>>),
    /// Of [`PcapView::Handshakes`].
    Handshakes(Files<HandshakesFile<Vec<HandshakeStream>>>),
    /// Of [`PcapView::Packets`] and [`PcapView::Follow`], whose documents are events.
    Listed(ListedFile),
    /// Of [`PcapView::Expert`].
    Expert(Expert),
    /// Of [`PcapView::Io`].
    Io(Io),
    /// Of [`PcapView::Merge`].
    Merge(Box<MergeDocument>),
}

/// Reads the files, and returns the requested document.
///
/// # Errors
/// A wrong field of the request; a file that cannot be read, where there is no other.
pub fn run(
    request: &PcapRequest,
    on_event: &mut dyn FnMut(PcapEvent),
    stop: &StopFlag,
) -> Result<PcapDocument, Problem> {
    request.check()?;
    match &request.view {
        PcapView::Merge(view) => {
            let merged = merge(&request.files, view, &mut forward(on_event), stop)?;
            Ok(PcapDocument::Merge(Box::new(merged.document())))
        }
        PcapView::Summary => {
            let files = each(request, on_event, stop, |path, on_read| {
                read(path, on_read, stop).map(|capture| summary(&capture))
            })?;
            Ok(PcapDocument::Summary(Files::new(Files::<()>::SUMMARY, files)))
        }
        PcapView::Hierarchy => {
            let files = each(request, on_event, stop, |path, on_read| {
                read(path, on_read, stop).map(|capture| HierarchyFile::new(&capture))
            })?;
            Ok(PcapDocument::Hierarchy(Files::new(Files::<()>::HIERARCHY, files)))
        }
        PcapView::Conversations(view) => {
            let files = each(request, on_event, stop, |path, on_read| {
                let capture = read(path, on_read, stop)?;
                let all = ConversationRows::of(&capture.conversations, view.layer);
                let rows = conversations(&capture, all.iter(most(view.rows))).collect();
                Ok(ConversationsFile::new(&capture, view.layer, all.left_out(), rows))
            })?;
            Ok(PcapDocument::Conversations(Files::new(Files::<()>::CONVERSATIONS, files)))
        }
        PcapView::Endpoints(view) => {
            let files = each(request, on_event, stop, |path, on_read| {
                let capture = read(path, on_read, stop)?;
                let all = EndpointRows::of(&capture.conversations, view.layer);
                let rows = all.iter(most(view.rows)).map(Endpoint::from).collect();
                Ok(EndpointsFile::new(&capture, view.layer, all.left_out(), rows))
            })?;
            Ok(PcapDocument::Endpoints(Files::new(Files::<()>::ENDPOINTS, files)))
        }
        PcapView::Streams(view) => {
            let files = each(request, on_event, stop, |path, on_read| {
                let read = streams::read(path, view.rules, on_read, stop)?;
                let rows = read.rows(most(view.rows)).filter_map(|row| read.stream(&row)).collect();
                Ok(read.file(rows))
            })?;
            Ok(PcapDocument::Streams(Files::new(STREAMS_SCHEMA, files)))
        }
        PcapView::Handshakes(view) => {
            let files = each(request, on_event, stop, |path, on_read| {
                let (capture, mut all) = handshakes(path, view.stream, on_read, stop)?;
                all.truncate(most(view.rows));
                Ok(HandshakesFile::new(&capture, all))
            })?;
            Ok(PcapDocument::Handshakes(Files::new(HANDSHAKES_SCHEMA, files)))
        }
        PcapView::Packets(view) => {
            let list = packets(request.one_file()?, view, on_event, stop)?;
            Ok(PcapDocument::Listed(ListedFile::new(&list.capture, list.shown)))
        }
        PcapView::Follow(view) => {
            let found = parts(request.one_file()?, view, on_event, stop)?;
            Ok(PcapDocument::Listed(ListedFile::new(&found.capture, found.bytes)))
        }
        PcapView::Expert(view) => {
            let found = expert(request.one_file()?, view, &mut forward(on_event), stop)?;
            Ok(PcapDocument::Expert(found.document()))
        }
        PcapView::Io(view) => {
            let counted = io(request.one_file()?, view, &mut forward(on_event), stop)?;
            Ok(PcapDocument::Io(counted.document()))
        }
    }
}

/// Lists packets as events.
fn packets(
    path: &Path,
    request: &PacketsRequest,
    on_event: &mut dyn FnMut(PcapEvent),
    stop: &StopFlag,
) -> Result<packets::PacketList, Problem> {
    let mut summary = Summary::default();
    let mut on_read = |event: ReadEvent<'_>| {
        let ReadEvent::Packet(packet) = event else { return forward(on_event)(event) };
        summary.fill(packet);
        let packet = Packet::new(packet, &summary, request.packet.is_some());
        on_event(PcapEvent::Packet(Box::new(packet)));
        ControlFlow::Continue(())
    };
    packets::run(path, request, &mut on_read, stop)
}

/// Follows a stream, as events.
fn parts(
    path: &Path,
    request: &FollowRequest,
    on_event: &mut dyn FnMut(PcapEvent),
    stop: &StopFlag,
) -> Result<follow::Followed, Problem> {
    let mut on_read = |event: ReadEvent<'_>| {
        let ReadEvent::Part(part) = event else { return forward(on_event)(event) };
        on_event(PcapEvent::Part(part.document(request.stream)));
        ControlFlow::Continue(())
    };
    follow::run(path, request, &mut on_read, stop)
}

/// Progress as events.
fn forward(on_event: &mut dyn FnMut(PcapEvent)) -> impl FnMut(ReadEvent<'_>) -> ControlFlow<()> {
    move |event| {
        match event {
            ReadEvent::Progress(progress) => on_event(PcapEvent::Progress(progress.clone())),
            ReadEvent::Comparing => on_event(PcapEvent::Comparing),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Reads each file; those that cannot be read are events, unless it is the only one.
fn each<F>(
    request: &PcapRequest,
    on_event: &mut dyn FnMut(PcapEvent),
    stop: &StopFlag,
    mut read: impl FnMut(&Path, OnRead<'_>) -> Result<F, Problem>,
) -> Result<Vec<F>, Problem> {
    let mut files = Vec::new();
    for path in &request.files {
        let file = read(path, &mut forward(on_event));
        match file {
            Ok(file) => files.push(file),
            Err(problem) if request.files.len() == 1 => return Err(problem),
            Err(problem) => on_event(PcapEvent::Unreadable(problem)),
        }
        if stop.is_raised() {
            break;
        }
    }
    Ok(files)
}

/// Rows of a list; 0 means all.
fn most(rows: usize) -> usize {
    if rows == 0 { MAX_ROWS } else { rows.min(MAX_ROWS) }
}

/// The summary of a file, with its largest conversations.
#[must_use]
pub fn summary(capture: &Capture) -> SummaryFile {
    let (layer, rows) = top(&capture.conversations);
    let shown: Vec<ConversationRow> = rows.iter(TOP).collect();
    SummaryFile::new(capture, layer, &shown)
}
