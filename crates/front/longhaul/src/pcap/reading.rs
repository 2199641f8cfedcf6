//! Reads a capture to its end, with progress, and everything that is counted.

use super::{OnRead, ReadEvent, ReadProgress};
use crate::{Fault, Problem, StopFlag};
use capture::batch::Batch;
use capture::conversations::{Conversations, StreamNumber};
use capture::dissect::{Layers, NotUnderstood, NotUnderstoodCounts, TcpSegment};
use capture::file::{self, Broken, FileSummary, MAX_INTERFACES, Packet, Reader};
use capture::hierarchy::Hierarchy;
use capture::overview::Overview;
use capture::{LeftOut, MemoryBudget, Seed, TABLE_BYTES};
use host::{clock, file::open_regular, wait};
use packet_fields::iperf3_control::ControlConnections;
use std::cell::Cell;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tcp_analysis::Streams;

/// The parts of [`TABLE_BYTES`]: tables that grow while a file is read; those of what is shown of
/// it, or of a second reading. The rest is for iperf3's control connections.
pub(crate) const READING_BYTES: usize = TABLE_BYTES / 16 * 9;
pub(crate) const VIEW_BYTES: usize = TABLE_BYTES / 16 * 6;

/// The memory for the tables of a reading.
pub(crate) struct Tables {
    pub(crate) budget: MemoryBudget,
    is_tcp_alone: bool,
}

impl Tables {
    /// Of the first reading of a file.
    pub(crate) fn of_reading() -> Self {
        Tables { budget: MemoryBudget::new(READING_BYTES), is_tcp_alone: false }
    }

    /// Of a second one, while the tables of the first are there: only TCP streams get numbers.
    pub(crate) fn of_second_reading() -> Self {
        Tables { budget: MemoryBudget::new(VIEW_BYTES / 3), is_tcp_alone: true }
    }

    /// Of a part of the whole.
    pub(crate) fn of_bytes(bytes: usize) -> Self {
        Tables { budget: MemoryBudget::new(bytes), is_tcp_alone: false }
    }
}

/// A file that was read, as far as it could be.
pub struct Capture {
    /// The file's name as it was given, or `standard input`; not to be trusted.
    pub name: String,
    /// The file's description of itself.
    pub file: FileSummary,
    /// Totals of all packets.
    pub overview: Overview,
    /// Frames and bytes of each protocol.
    pub hierarchy: Hierarchy,
    /// The conversations of each layer.
    pub conversations: Conversations,
    /// Packets in headers that are not dissected.
    pub(crate) not_understood: NotUnderstoodCounts,
    /// Packets whose TCP options were captured in part; no stream has them, as in Wireshark.
    pub(crate) cut_headers: u64,
    /// Where it broke off.
    pub broken: Option<Broken>,
    /// True if the stop flag ended the reading.
    pub is_interrupted: bool,
    /// The part that an analysis of its streams omitted.
    pub(crate) not_analysed: Option<String>,
    /// The subflows of each MPTCP connection, as an analysis found them.
    pub(crate) mptcp: Vec<Vec<u32>>,
}

impl Capture {
    /// Remarks, as sentences.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(broken) = &self.broken {
            notes.push(format!("Broken: {broken}; the packets before it are shown."));
        }
        if self.is_interrupted {
            notes.push(format!("Interrupted after packet {}.", self.overview.packets));
        }
        if let Some(backwards) = self.file.backwards {
            notes.push(format!(
                "Times run backwards {} times, first at packet {}, by up to {:.6} s.",
                backwards.count,
                backwards.first_packet,
                backwards.largest_ns as f64 / 1e9
            ));
        }
        notes.extend(not_understood(&self.not_understood));
        let layers = ["Ethernet", "IP", "TCP", "UDP"].into_iter();
        for (layer, left_out) in layers.zip(self.conversations.left_out()) {
            let what = if layer == "IP" {
                "IP conversations without TCP and UDP".to_owned()
            } else {
                format!("{layer} conversations")
            };
            notes.extend(not_listed(&what, left_out));
        }
        notes.extend(self.not_analysed.clone());
        notes.extend(mptcp(&self.mptcp));
        notes
    }

    /// True if packets are missing: the file broke off, or the reading was stopped.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.broken.is_some() || self.is_interrupted
    }
}

/// A sentence about packets that are not understood, with the most frequent kinds.
fn not_understood(counts: &NotUnderstoodCounts) -> Option<String> {
    const MAX: usize = 4;
    let kinds = counts.kinds();
    let one = |(what, count): &(NotUnderstood, u64)| format!("{} {what}", thousands(*count));
    let named: Vec<String> = match &kinds[..] {
        [] => return None,
        [(what, _)] => vec![what.to_string()],
        kinds => kinds.iter().take(MAX).map(one).collect(),
    };
    let more = if kinds.len() > MAX { ", and others" } else { "" };
    let total = counts.total();
    Some(format!(
        "{} packet{} not understood: {}{more}.",
        thousands(total),
        if total == 1 { "" } else { "s" },
        named.join(", ")
    ))
}

/// A sentence for each MPTCP connection with several subflows, of the first ones.
fn mptcp(connections: &[Vec<u32>]) -> Vec<String> {
    const MAX: usize = 8;
    const MAX_STREAMS: usize = 16;
    let several = connections.iter().filter(|streams| streams.len() > 1);
    let sentence = |streams: &Vec<u32>| {
        let numbers: Vec<String> = streams.iter().take(MAX_STREAMS).map(u32::to_string).collect();
        let more = if streams.len() > MAX_STREAMS { ", ..." } else { "" };
        format!("Streams {}{more} are subflows of one MPTCP connection.", numbers.join(", "))
    };
    let mut sentences: Vec<String> = several.clone().take(MAX).map(sentence).collect();
    let left = several.count().saturating_sub(MAX);
    if left > 0 {
        sentences.push(format!("{left} further MPTCP connections have several subflows."));
    }
    sentences
}

/// `12,000`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A sentence about conversations not listed because the memory for tables was used up.
#[must_use]
pub fn not_listed(what: &str, left_out: LeftOut) -> Option<String> {
    let LeftOut { flows, counts } = left_out;
    (counts.frames > 0).then(|| {
        format!(
            "About {flows} further {what} ({} packets, {} bytes) are not listed: tables are limited \
             to {} MiB.",
            counts.frames,
            counts.bytes,
            TABLE_BYTES >> 20
        )
    })
}

/// A sentence about streams that were not analysed, or not to their end, for the same reason.
pub(crate) fn not_analysed(streams: &Streams, conversations: &Conversations) -> Option<String> {
    let none = conversations.tcp().len().saturating_sub(streams.len());
    let cut = streams.cut();
    (none > 0 || cut > 0).then(|| {
        format!(
            "{none} TCP streams are not analysed, and {cut} only in part: tables are limited to \
             {} MiB.",
            TABLE_BYTES >> 20
        )
    })
}

/// Bytes that a source gave so far.
struct Counted<R> {
    source: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(to)?;
        self.bytes.set(self.bytes.get() + count as u64);
        Ok(count)
    }
}

/// Standard input that ends when a signal arrives, even where nothing is written to it.
struct Interruptible {
    input: File,
    stop: StopFlag,
}

/// The time that a signal may wait for the read of a silent pipe.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

impl Read for Interruptible {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while !self.stop.is_raised() {
            if wait::readable([self.input.as_fd()], Some(POLL_INTERVAL))? == [true] {
                return self.input.read(to);
            }
        }
        Ok(0)
    }
}

/// A packet as everything that looks at one gets it.
pub(crate) struct Dissected<'a> {
    pub(crate) packet: &'a Packet<'a>,
    pub(crate) layers: &'a Layers,
    pub(crate) segment: Option<&'a TcpSegment<'a>>,
    /// A segment whose options were captured in part, which is of no stream.
    pub(crate) cut: Option<&'a TcpSegment<'a>>,
    /// The conversation of the segment.
    pub(crate) stream: Option<StreamNumber>,
    pub(crate) conversations: &'a Conversations,
    /// The file's description of itself up to here.
    pub(crate) file: &'a FileSummary,
    /// True if the next packet may not arrive for a long time.
    pub(crate) is_last_of_batch: bool,
}

/// Reads `path`, or standard input for `-`.
///
/// # Errors
/// The file cannot be opened, or is no capture.
pub fn read(path: &Path, on_read: OnRead<'_>, stop: &StopFlag) -> Result<Capture, Problem> {
    read_packets(path, &Tables::of_reading(), stop, on_read, |_, _| ControlFlow::Continue(()))
}

/// Reads a file as [`read`] does, and shows each TCP segment with its stream's number to `see`.
///
/// # Errors
/// As above.
pub(crate) fn read_segments(
    path: &Path,
    tables: &Tables,
    stop: &StopFlag,
    on_read: OnRead<'_>,
    mut see: impl FnMut(&Packet<'_>, StreamNumber, &TcpSegment<'_>),
) -> Result<Capture, Problem> {
    read_packets(path, tables, stop, on_read, |found, _| {
        if let (Some(stream), Some(segment)) = (found.stream, found.segment) {
            see(found.packet, stream, segment);
        }
        ControlFlow::Continue(())
    })
}

/// The same, and shows each packet to `see`, until that has enough.
///
/// # Errors
/// As above.
pub(crate) fn read_packets(
    path: &Path,
    tables: &Tables,
    stop: &StopFlag,
    on_read: OnRead<'_>,
    see: impl FnMut(&Dissected<'_>, OnRead<'_>) -> ControlFlow<()>,
) -> Result<Capture, Problem> {
    if path == Path::new("-") {
        // Without the standard library's buffer, of which poll(2) knows nothing.
        let input = io::stdin().as_fd().try_clone_to_owned();
        let input =
            input.map_err(|error| problem(format!("cannot read standard input: {error}")))?;
        let source = Interruptible { input: File::from(input), stop: stop.clone() };
        return whole(("standard input", source, None), tables, stop, on_read, see);
    }
    let name = path.display().to_string();
    let file =
        open_regular(path).map_err(|error| problem(format!("cannot read {name}: {error}")))?;
    let size = file.metadata().ok().map(|metadata| metadata.len());
    whole((&name, file, size), tables, stop, on_read, see)
}

fn whole(
    (name, source, size): (&str, impl Read, Option<u64>),
    tables: &Tables,
    stop: &StopFlag,
    on_read: OnRead<'_>,
    mut see: impl FnMut(&Dissected<'_>, OnRead<'_>) -> ControlFlow<()>,
) -> Result<Capture, Problem> {
    let bytes = Rc::new(Cell::new(0));
    let source = Counted { source, bytes: Rc::clone(&bytes) };
    let mut progress = Progress { start: clock::now(), shown: None, bytes, size };
    let mut reader = Reader::new(source).map_err(|broken| match stop.is_raised() {
        true => {
            Problem::new(Fault::Interrupted, format!("{name}: interrupted before the first packet"))
        }
        false => problem(cannot_read(name, &broken)),
    })?;
    let seed = seed();
    let (mut batch, mut overview) = (Batch::new(seed), Overview::default());
    let mut hierarchy = Hierarchy::new(seed);
    let mut conversations = match tables.is_tcp_alone {
        true => Conversations::of_tcp(seed, &tables.budget),
        false => Conversations::within(seed, &tables.budget),
    };
    let mut iperf3 = ControlConnections::within(&tables.budget);
    let (mut rounds, mut cut_headers) = (0_u32, 0);
    let mut not_understood = NotUnderstoodCounts::default();
    let broken = 'file: loop {
        let packets = match reader.next_packets() {
            Ok(Some(packets)) => packets,
            Ok(None) => break None,
            // A signal ends standard input anywhere.
            Err(_) if stop.is_raised() => break None,
            Err(broken) => break Some(broken),
        };
        batch.prepare(&packets, &conversations);
        let mut left = packets.count();
        for (packet, layers, stream) in batch.each(&packets) {
            left = left.saturating_sub(1);
            overview.add(&packet, layers);
            not_understood.add(layers.not_understood());
            let segment = layers.tcp(packet.data);
            let segment = segment.as_ref();
            let cut =
                if segment.is_none() { layers.tcp_with_cut_options(packet.data) } else { None };
            cut_headers += u64::from(cut.is_some());
            let stream = conversations.add_expected(&packet, layers, segment, stream);
            let named = iperf3.name(layers, segment, stream);
            let layers = named.as_ref().unwrap_or(layers);
            hierarchy.add(layers, packet.original_len);
            let (packet, conversations) = (&packet, &conversations);
            let is_last_of_batch = left == 0;
            let cut = cut.as_ref();
            let file = packets.summary();
            let found = Dissected {
                packet,
                layers,
                segment,
                cut,
                stream,
                conversations,
                file,
                is_last_of_batch,
            };
            if see(&found, on_read).is_break() {
                break 'file None;
            }
        }
        // Some milliseconds of packets.
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(512) {
            if stop.is_raised() {
                break None;
            }
            progress.show(name, on_read);
        }
    };
    let file = reader.summary().clone();
    let (name, is_interrupted) = (name.to_owned(), stop.is_raised());
    let (not_analysed, mptcp) = (None, Vec::new());
    Ok(Capture {
        name,
        file,
        overview,
        hierarchy,
        conversations,
        not_understood,
        cut_headers,
        broken,
        is_interrupted,
        not_analysed,
        mptcp,
    })
}

/// A file that cannot be read.
fn problem(message: String) -> Problem {
    Problem::new(Fault::Input, message)
}

fn cannot_read(name: &str, broken: &Broken) -> String {
    let remedy = match broken.problem {
        file::Problem::UnknownFormat => "; save it as pcap or pcapng",
        file::Problem::TooManyInterfaces => {
            return format!("{name}: more than {MAX_INTERFACES} interfaces");
        }
        _ => "",
    };
    format!("cannot read {name}: {}{remedy}", broken.problem)
}

/// Secrets for hash tables, from the standard library's random state.
fn seed() -> Seed {
    Seed([0_u64, 1].map(|word| RandomState::new().hash_one(word)))
}

/// Progress of one file, shown after two seconds.
struct Progress {
    start: Instant,
    shown: Option<Instant>,
    bytes: Rc<Cell<u64>>,
    size: Option<u64>,
}

impl Progress {
    fn show(&mut self, name: &str, on_read: OnRead<'_>) {
        const QUIET: Duration = Duration::from_secs(2);
        const INTERVAL: Duration = Duration::from_millis(200);
        let now = clock::now();
        let elapsed = now.duration_since(self.start);
        if elapsed < QUIET || self.shown.is_some_and(|last| now.duration_since(last) < INTERVAL) {
            return;
        }
        self.shown = Some(now);
        // Only the stop flag ends a reading between packets.
        let _ = on_read(ReadEvent::Progress(&ReadProgress {
            file: name.to_owned(),
            bytes: self.bytes.get(),
            size_bytes: self.size,
            seconds: elapsed.as_secs_f64(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcap::document::conversations::ConversationsFile;
    use crate::pcap::{ConversationLayer, ConversationRows};
    use tcp_analysis::Rules;

    /// A pcap file of so many SYNs, each of a flow of its own.
    fn syns(count: u32) -> Vec<u8> {
        let header = [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 101_u32];
        let mut file = header.map(u32::to_le_bytes).as_flattened().to_vec();
        for flow in 0..count {
            file.extend([1, flow, 40, 40].map(u32::to_le_bytes).as_flattened());
            file.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
            file.extend((0x0a00_0000 + flow).to_be_bytes());
            file.extend([192, 0, 2, 1, 4, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 1, 0]);
            file.extend([0; 4]);
        }
        file
    }

    /// In the notes, which text, JSON and pages have, and in the JSON of conversations.
    #[test]
    fn what_the_tables_have_no_room_for_is_said() {
        let tables = Tables::of_bytes(4 << 20);
        let mut streams = Streams::within(Rules::default(), &tables.budget);
        let stop = StopFlag::new();
        let on_read = &mut |_: ReadEvent<'_>| ControlFlow::Continue(());
        let source = ("syns", &syns(20_000)[..], None);
        let mut capture = whole(source, &tables, &stop, on_read, |found, _| {
            if let (Some(stream), Some(segment)) = (found.stream, found.segment) {
                streams.add(stream, found.packet.number, found.packet.time_ns, segment);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        capture.not_analysed = not_analysed(&streams, &capture.conversations);
        let listed = capture.conversations.tcp().len();
        assert!((1000..10_000).contains(&listed), "{listed}");
        let left_out = 20_000 - listed as u64;
        let notes = capture.notes().join("\n");
        let packets = format!("({left_out} packets, {} bytes) are not listed", left_out * 40);
        assert!(notes.contains("further TCP conversations") && notes.contains(&packets), "{notes}");
        assert!(notes.contains("limited to 512 MiB"), "{notes}");
        let is_said =
            notes.contains(&format!("{} TCP streams are not analysed", listed - streams.len()));
        assert_eq!(is_said, streams.len() < listed, "{notes}");
        let rows = ConversationRows::of(&capture.conversations, ConversationLayer::Tcp);
        let file = ConversationsFile::new(&capture, ConversationLayer::Tcp, rows.left_out(), ());
        let json = serde_json::to_value(file).unwrap();
        assert_eq!(json["not_listed"]["packets"], left_out);
        assert_eq!(json["not_listed"]["bytes"], left_out * 40);
        let flows = json["not_listed"]["conversations"].as_u64().unwrap();
        assert!(flows.abs_diff(left_out) < left_out / 10, "{flows} of {left_out}");
    }
}
