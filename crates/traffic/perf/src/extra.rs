//! Longhaul's protocol extension: one optional key in the parameters
//! ([`Extension`]) and one in the results (samples, CPU, notes). iperf3 ignores
//! unknown keys, and so do all versions of longhaul: new keys may be added at any time.
//! What an earlier version would misread increases the [`RESULTS_FORMAT`].

mod columns;

use crate::socket::MAX_WINDOW;
use columns::Table;
use iperf3_proto::{
    Decoder, Extension, Results,
    lenient::{self, Scalar},
};
use record::{Datagrams, LossBurst, ReceiverSample, Sample, TimedDatagram};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use serde_json::value::RawValue;
use units::Rtt;

/// The format of the extension of the results. Formats so far:
///
/// 1. Samples at one interval; without the key `format`.
/// 2. Samples that may be closer to each other at the start of a test. Version 1 reads them,
///    as every sample has its time. With the arrival times of a train, if the client asked for
///    them: versions that do not know these never ask.
pub(crate) const RESULTS_FORMAT: u32 = 2;

/// Maximum streams read from a peer, both directions together.
const MAX_STREAMS: usize = 256;
/// Maximum loss burst classes: one per length up to 8, then one per power of two.
const MAX_BURSTS: usize = 70;
/// Maximum notes read from a peer.
const MAX_NOTES: usize = 16;
/// Maximum characters of a note.
const MAX_NOTE_CHARS: usize = 300;
/// Maximum characters of a version.
const VERSION: usize = 32;
/// Maximum characters of a congestion control's name (`TCP_CA_NAME_MAX`).
const CONGESTION: usize = 16;

/// The client's extension of the parameters.
pub(crate) fn announcement() -> Extension {
    Extension { version: Some(crate::VERSION.to_owned()), ..Extension::default() }
}

/// The version in a peer's extension, sanitized and truncated for printing.
pub(crate) fn announced_version(extension: &Extension) -> Option<String> {
    extension.version.as_deref().map(printable)
}

fn printable(version: &str) -> String {
    version.chars().filter(char::is_ascii_graphic).take(VERSION).collect()
}

/// The extension of the results.
#[derive(Debug, Default)]
pub(crate) struct Extra {
    pub(crate) version: String,
    pub(crate) cpu: ThreadShares,
    /// That end's notes.
    pub(crate) notes: Vec<String>,
    pub(crate) streams: Vec<ExtraStream>,
}

/// CPU of that end's busiest threads, as shares of one core.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ThreadShares {
    /// CPU of the busiest sending thread.
    pub(crate) sender: Option<f64>,
    /// How long that thread waited for a core.
    pub(crate) sender_wait: Option<f64>,
    /// CPU of the busiest receiving thread.
    pub(crate) receiver: Option<f64>,
    /// How long that thread waited for a core.
    pub(crate) receiver_wait: Option<f64>,
}

/// One stream's data of that end.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ExtraStream {
    pub(crate) id: u32,
    pub(crate) congestion: Option<String>,
    /// The limit of unsent bytes at that end, if it sends and has one.
    pub(crate) unsent_limit_bytes: Option<u64>,
    /// Datagrams received at that end; UDP only.
    pub(crate) datagrams: Option<Datagrams>,
    /// When datagrams arrived at that end; in a train only.
    pub(crate) train: Vec<TimedDatagram>,
    pub(crate) sender: Vec<Sample>,
    pub(crate) receiver: Vec<ReceiverSample>,
}

/// Results for a longhaul client.
#[derive(Serialize)]
pub(crate) struct ExtendedResults<'a> {
    #[serde(flatten)]
    pub(crate) results: &'a Results,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) longhaul: Option<ExtraMessage<'a>>,
}

/// The extension as sent, with samples as columns.
#[derive(Serialize)]
pub(crate) struct ExtraMessage<'a> {
    pub(crate) version: &'a str,
    /// [`RESULTS_FORMAT`].
    pub(crate) format: u32,
    pub(crate) sender_cpu: Option<f64>,
    pub(crate) sender_core_wait: Option<f64>,
    pub(crate) receiver_cpu: Option<f64>,
    pub(crate) receiver_core_wait: Option<f64>,
    pub(crate) notes: &'a [String],
    pub(crate) streams: Vec<StreamMessage<'a>>,
}

/// One stream of the extension as sent.
pub(crate) struct StreamMessage<'a> {
    pub(crate) id: u32,
    pub(crate) congestion: Option<&'a str>,
    pub(crate) unsent_limit_bytes: Option<u64>,
    pub(crate) datagrams: Option<Datagrams>,
    pub(crate) train: &'a [TimedDatagram],
    pub(crate) sender: &'a [Sample],
    pub(crate) receiver: &'a [ReceiverSample],
}

impl Serialize for StreamMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("congestion", &self.congestion)?;
        if let Some(limit) = self.unsent_limit_bytes {
            map.serialize_entry("unsent_limit_bytes", &limit)?;
        }
        map.serialize_entry("datagrams", &self.datagrams)?;
        if !self.train.is_empty() {
            map.serialize_entry("train", &Table(self.train))?;
        }
        map.serialize_entry("sender", &Table(self.sender))?;
        map.serialize_entry("receiver", &Table(self.receiver))?;
        map.end()
    }
}

/// Locates the extension in a peer's results.
#[derive(Deserialize)]
struct Located<'a> {
    #[serde(borrow, default)]
    longhaul: Option<&'a RawValue>,
}

/// What every format of the extension has.
#[derive(Deserialize)]
struct Head {
    #[serde(default, deserialize_with = "lenient::short_text::<VERSION, _>")]
    version: Option<String>,
    /// Missing in format 1.
    #[serde(default)]
    format: Option<Scalar>,
}

impl Head {
    /// Whether this version can read the rest.
    fn is_known(&self) -> bool {
        self.format.is_none_or(|format| {
            matches!(format, Scalar::Unsigned(number) if number <= u64::from(RESULTS_FORMAT))
        })
    }
}

/// The extension as received: bounded, with samples still as text.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct ReadExtra<'a> {
    #[serde(deserialize_with = "lenient::short_text::<VERSION, _>")]
    version: Option<String>,
    sender_cpu: Option<f64>,
    sender_core_wait: Option<f64>,
    receiver_cpu: Option<f64>,
    receiver_core_wait: Option<f64>,
    #[serde(deserialize_with = "lenient::bounded::<_, MAX_NOTES, _>")]
    notes: Vec<Note>,
    #[serde(borrow, deserialize_with = "lenient::bounded::<_, MAX_STREAMS, _>")]
    streams: Vec<ReadStream<'a>>,
}

#[derive(Deserialize)]
struct Note(#[serde(deserialize_with = "lenient::short_text::<MAX_NOTE_CHARS, _>")] Option<String>);

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct ReadStream<'a> {
    id: u32,
    #[serde(deserialize_with = "lenient::short_text::<CONGESTION, _>")]
    congestion: Option<String>,
    unsent_limit_bytes: Option<u64>,
    datagrams: Option<ReadDatagrams>,
    #[serde(borrow)]
    train: Option<&'a RawValue>,
    #[serde(borrow)]
    sender: Option<&'a RawValue>,
    #[serde(borrow)]
    receiver: Option<&'a RawValue>,
}

/// [`Datagrams`], with a bounded list.
#[derive(Deserialize)]
struct ReadDatagrams {
    length_bytes: u32,
    sent: Option<u64>,
    received: u64,
    lost: u64,
    duplicates: u64,
    reordered: u64,
    reorder_extent: u64,
    jitter_ms: f64,
    #[serde(deserialize_with = "lenient::bounded::<_, MAX_BURSTS, _>")]
    loss_bursts: Vec<LossBurst>,
}

impl From<ReadDatagrams> for Datagrams {
    fn from(read: ReadDatagrams) -> Self {
        Datagrams {
            length_bytes: read.length_bytes,
            sent: read.sent,
            received: read.received,
            lost: read.lost,
            duplicates: read.duplicates,
            reordered: read.reordered,
            reorder_extent: read.reorder_extent,
            jitter: Rtt::from_secs(read.jitter_ms / 1e3),
            loss_bursts: read.loss_bursts,
            fragmentation: None,
        }
    }
}

impl Extra {
    /// Parses the extension in a peer's results; `None` if missing or invalid.
    pub(crate) fn read(message: &Decoder) -> Option<Self> {
        let located: Located<'_> = message.finish().ok()?;
        Extra::parse(located.longhaul?.get())
    }

    fn parse(text: &str) -> Option<Self> {
        let head: Head = serde_json::from_str(text).ok()?;
        if !head.is_known() {
            return Some(Extra::of_newer(printable(&head.version?)));
        }
        let read: ReadExtra<'_> = serde_json::from_str(text).ok()?;
        let share = |cpu: Option<f64>| cpu.filter(|share| share.is_finite() && *share >= 0.0);
        let notes = read.notes.into_iter().filter_map(|Note(text)| text);
        Some(Extra {
            version: printable(&read.version?),
            cpu: ThreadShares {
                sender: share(read.sender_cpu),
                sender_wait: share(read.sender_core_wait),
                receiver: share(read.receiver_cpu),
                receiver_wait: share(read.receiver_core_wait),
            },
            // A peer's notes are printed to the terminal: no control characters.
            notes: notes.map(|note| note.chars().filter(|c| !c.is_control()).collect()).collect(),
            streams: read.streams.into_iter().map(ReadStream::parse).collect(),
        })
    }

    /// The extension of a peer whose format this version cannot read.
    fn of_newer(version: String) -> Self {
        let note = format!(
            "longhaul {version} at the other end sends its samples in a newer format: they are \
             missing here; use the same version at both ends"
        );
        Extra { version, notes: vec![note], ..Extra::default() }
    }

    /// Removes and returns the samples of a stream.
    pub(crate) fn take_samples(&mut self, id: u32) -> (Vec<Sample>, Vec<ReceiverSample>) {
        let stream = self.streams.iter_mut().find(|stream| stream.id == id);
        stream.map_or_else(Default::default, |stream| {
            (std::mem::take(&mut stream.sender), std::mem::take(&mut stream.receiver))
        })
    }
}

impl ReadStream<'_> {
    fn parse(self) -> ExtraStream {
        ExtraStream {
            id: self.id,
            congestion: self.congestion,
            unsent_limit_bytes: self
                .unsent_limit_bytes
                .filter(|bytes| *bytes <= MAX_WINDOW.bytes()),
            datagrams: self.datagrams.map(Datagrams::from),
            train: self.train.map(|text| columns::rows(text.get())).unwrap_or_default(),
            sender: self.sender.map(|text| columns::rows(text.get())).unwrap_or_default(),
            receiver: self.receiver.map(|text| columns::rows(text.get())).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
