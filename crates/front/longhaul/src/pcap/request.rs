//! Requests of captures.

use super::rows::ConversationLayer;
use super::{Rules, Severity, packets};
use crate::{Field, Problem};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files, and the view of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PcapRequest {
    /// Capture files; `-` for standard input.
    pub files: Vec<PathBuf>,
    /// The view.
    pub view: PcapView,
}

/// A view of capture files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PcapView {
    /// Format, time, rate, drops and the largest conversations.
    #[default]
    Summary,
    /// Frames and bytes of each protocol.
    Hierarchy,
    /// Conversations, those with most bytes first.
    Conversations(ListRequest),
    /// The traffic that each address sent and received.
    Endpoints(ListRequest),
    /// TCP streams: goodput, retransmissions, RTT, limit.
    Streams(StreamsRequest),
    /// SYN, SYN-ACK and ACK of TCP streams.
    Handshakes(HandshakeRequest),
    /// Packets of one file, one event each.
    Packets(PacketsRequest),
    /// Data that both ends of a stream of one file sent, one event for each part.
    Follow(FollowRequest),
    /// Expert information on one file.
    Expert(ExpertRequest),
    /// Packets and bytes of one file per interval.
    Io(IoRequest),
    /// Two captures of one transfer, aligned.
    Merge(MergeRequest),
}

/// A list of rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListRequest {
    /// Layer of the addresses.
    pub layer: ConversationLayer,
    /// Rows at most; 0 for all.
    pub rows: usize,
}

/// TCP streams.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamsRequest {
    /// Rows at most; 0 for all.
    pub rows: usize,
    /// The version of Wireshark whose rules apply to flags.
    pub rules: Rules,
}

/// Handshakes of TCP streams.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandshakeRequest {
    /// That of this stream alone.
    pub stream: Option<u32>,
    /// Rows at most; 0 for all.
    pub rows: usize,
}

/// Packets, or one of them with its fields and bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PacketsRequest {
    /// A display filter in Wireshark's syntax; empty for all.
    pub filter: String,
    /// The number of a packet, from 1, in the place of a filter.
    pub packet: Option<u64>,
    /// Packets at most; 0 for all.
    pub rows: u64,
    /// The version of Wireshark whose rules apply to flags.
    pub rules: Rules,
    /// Writes the packets to a capture file in the place of showing them. The file appears when
    /// it is complete.
    pub write: Option<PathBuf>,
}

/// Data that both ends of a stream sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FollowRequest {
    /// Number of the stream.
    pub stream: u32,
    /// Protocol of the stream.
    pub transport: Transport,
    /// One end alone.
    pub end: Option<StreamEnd>,
    /// Bytes at most; 0 for all.
    pub bytes: u64,
}

/// The protocol of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A TCP stream.
    #[default]
    Tcp,
    /// A UDP conversation.
    Udp,
}

/// An end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamEnd {
    /// The end that sent first.
    First,
    /// The other end.
    Second,
}

/// Expert information.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExpertRequest {
    /// A display filter in Wireshark's syntax; empty for all.
    pub filter: String,
    /// The least severity.
    pub severity: Severity,
    /// The version of Wireshark whose rules apply to flags.
    pub rules: Rules,
}

impl Default for ExpertRequest {
    fn default() -> Self {
        let (filter, rules) = (String::new(), Rules::default());
        ExpertRequest { filter, severity: Severity::Chat, rules }
    }
}

/// Packets and bytes per interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IoRequest {
    /// Display filters in Wireshark's syntax, a curve for each; none for one of all packets.
    pub filters: Vec<String>,
    /// The interval in seconds; `None`: by the duration.
    #[serde(with = "units::seconds::option")]
    pub interval: Option<Duration>,
    /// The version of Wireshark whose rules apply to flags.
    pub rules: Rules,
}

/// Two captures of one transfer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MergeRequest {
    /// True if both captures have the times of one clock.
    pub same_clock: bool,
}

/// Most curves.
const MAX_CURVES: usize = 8;

impl PcapRequest {
    /// The summary of a file.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        PcapRequest { files: vec![file.into()], view: PcapView::Summary }
    }

    /// Checks the request before a file is opened.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        match &self.view {
            PcapView::Merge(_) => return check_pair(&self.files),
            PcapView::Packets(view) => view.check()?,
            PcapView::Expert(view) => view.check()?,
            PcapView::Io(view) => view.check()?,
            PcapView::Follow(_) => {}
            _ if self.files.is_empty() => {
                return Err(Problem::field(Field::Files, "no capture file", ""));
            }
            _ => return Ok(()),
        }
        self.one_file().map(drop)
    }

    /// The only file.
    pub(super) fn one_file(&self) -> Result<&Path, Problem> {
        if let [path] = &self.files[..] {
            return Ok(path);
        }
        let message = format!("{} capture files", self.files.len());
        Err(Problem::field(Field::Files, message, "one of them"))
    }
}

pub(super) fn check_pair(files: &[PathBuf]) -> Result<(), Problem> {
    let [a, b] = files else {
        let message = format!("{} capture files", files.len());
        return Err(Problem::field(Field::Files, message, "two of them"));
    };
    if a.as_os_str() == "-" && a == b {
        let message = "standard input is one capture";
        return Err(Problem::field(Field::Files, message, "a file for the other"));
    }
    Ok(())
}

impl PacketsRequest {
    /// Checks the request.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        if self.packet.is_some() && !self.filter.is_empty() {
            let message = "a packet number excludes a filter";
            return Err(Problem::field(Field::Packet, message, "or a filter"));
        }
        packets::compile(&self.filter).map(drop)
    }
}

impl ExpertRequest {
    /// Checks the request.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        packets::compile(&self.filter).map(drop)
    }
}

impl IoRequest {
    /// Checks the request.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        if self.filters.len() > MAX_CURVES {
            return Err(Problem::new(
                crate::Fault::Request,
                format!("at most {MAX_CURVES} filters have curves"),
            ));
        }
        self.filters.iter().try_for_each(|filter| packets::compile(filter).map(drop))
    }
}
