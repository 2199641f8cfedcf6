//! Reads a capture to its end, with progress, and everything that is counted.

use crate::console::Console;
use capture::Seed;
use capture::batch::Batch;
use capture::conversations::{Conversations, StreamNumber};
use capture::dissect::{Layers, TcpSegment};
use capture::file::{Broken, FileSummary, MAX_INTERFACES, Packet, Problem, Reader};
use capture::hierarchy::Hierarchy;
use capture::overview::Overview;
use host::{clock, file};
use perf::StopFlag;
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount};

/// A file that was read, as far as it could be.
pub(super) struct Capture {
    pub(super) name: String,
    pub(super) file: FileSummary,
    pub(super) overview: Overview,
    pub(super) hierarchy: Hierarchy,
    pub(super) conversations: Conversations,
    /// Where it broke off.
    pub(super) broken: Option<Broken>,
    /// Whether a signal ended the reading.
    pub(super) is_interrupted: bool,
}

impl Capture {
    /// What else to know, as sentences.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(broken) = &self.broken {
            notes.push(format!("Broken: {broken}; what comes before it is shown."));
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
        let unknown = self.file.interfaces.iter().find(|it| it.link.name().is_none());
        if let Some(interface) = unknown {
            notes.push(format!(
                "Packets of {} are counted, and not dissected: the type is unknown.",
                interface.link
            ));
        }
        let not_counted = self.conversations.not_counted();
        if not_counted > 0 {
            notes.push(format!("Too many conversations: {not_counted} packets are not in them."));
        }
        notes
    }

    /// The text with the file's name above it, and notes below.
    pub(super) fn headed(&self, text: &str) -> String {
        let notes: String = self.notes().iter().map(|note| format!("{note}\n")).collect();
        format!("{}\n{text}{notes}", report::untrusted::clean(&self.name))
    }
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

/// Reads `path`, or standard input for `-`.
///
/// # Errors
/// One line: the file cannot be opened, or is no capture.
pub(super) fn read(path: &Path, stop: &StopFlag, console: &mut Console) -> Result<Capture, String> {
    read_packets(path, stop, console, |_, _, _| {})
}

/// The same, and shows each TCP segment with the number of its stream to `see`.
///
/// # Errors
/// As above.
pub(super) fn read_segments(
    path: &Path,
    stop: &StopFlag,
    console: &mut Console,
    mut see: impl FnMut(&Packet<'_>, StreamNumber, &TcpSegment<'_>),
) -> Result<Capture, String> {
    read_packets(path, stop, console, |packet, _, tcp| {
        if let Some((stream, segment)) = tcp {
            see(packet, stream, segment);
        }
    })
}

/// The same, and shows each packet to `see`, with the TCP segment in it.
///
/// # Errors
/// As above.
pub(super) fn read_packets(
    path: &Path,
    stop: &StopFlag,
    console: &mut Console,
    see: impl FnMut(&Packet<'_>, &Layers, Option<(StreamNumber, &TcpSegment<'_>)>),
) -> Result<Capture, String> {
    if path == Path::new("-") {
        return whole("standard input", io::stdin().lock(), None, stop, console, see);
    }
    let name = path.display().to_string();
    let file = file::open_regular(path).map_err(|error| format!("cannot read {name}: {error}"))?;
    let size = file.metadata().ok().map(|metadata| metadata.len());
    whole(&name, file, size, stop, console, see)
}

fn whole(
    name: &str,
    source: impl Read,
    size: Option<u64>,
    stop: &StopFlag,
    console: &mut Console,
    mut see: impl FnMut(&Packet<'_>, &Layers, Option<(StreamNumber, &TcpSegment<'_>)>),
) -> Result<Capture, String> {
    let bytes = Rc::new(Cell::new(0));
    let source = Counted { source, bytes: Rc::clone(&bytes) };
    let mut progress = Progress { start: clock::now(), shown: None, bytes, size };
    let mut reader = Reader::new(source).map_err(|broken| cannot_read(name, &broken))?;
    let seed = seed();
    let (mut batch, mut overview) = (Batch::default(), Overview::default());
    let (mut hierarchy, mut conversations) = (Hierarchy::new(seed), Conversations::new(seed));
    let mut is_interrupted = false;
    let mut rounds = 0_u32;
    let broken = loop {
        let packets = match reader.next_packets() {
            Ok(Some(packets)) => packets,
            Ok(None) => break None,
            Err(broken) => break Some(broken),
        };
        batch.prepare(&packets, &conversations);
        for (packet, layers, stream) in batch.each(&packets) {
            overview.add(&packet, layers);
            hierarchy.add(layers, packet.original_len);
            let segment = layers.tcp(packet.data);
            let stream = conversations.add_expected(&packet, layers, segment.as_ref(), stream);
            see(&packet, layers, stream.zip(segment.as_ref()));
        }
        // Some milliseconds of packets.
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(512) {
            if stop.is_raised() {
                is_interrupted = true;
                break None;
            }
            progress.show(name, console);
        }
    };
    console.clear();
    let file = reader.summary().clone();
    let name = name.to_owned();
    Ok(Capture { name, file, overview, hierarchy, conversations, broken, is_interrupted })
}

fn cannot_read(name: &str, broken: &Broken) -> String {
    let remedy = match broken.problem {
        Problem::UnknownFormat => "; save it as pcap or pcapng",
        Problem::TooManyInterfaces => {
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
    fn show(&mut self, name: &str, console: &mut Console) {
        const QUIET: Duration = Duration::from_secs(2);
        const INTERVAL: Duration = Duration::from_millis(200);
        let now = clock::now();
        let elapsed = now.duration_since(self.start);
        if elapsed < QUIET || self.shown.is_some_and(|last| now.duration_since(last) < INTERVAL) {
            return;
        }
        self.shown = Some(now);
        let read = ByteCount::from_bytes(self.bytes.get());
        let of = self.size.filter(|size| *size > 0).map_or(String::new(), |size| {
            let share = read.as_f64() / size as f64;
            format!(
                " of {} ({})",
                ByteCount::from_bytes(size).decimal(),
                units::percent_with(share.min(1.0), 2)
            )
        });
        let rate = BitRate::of(read, elapsed);
        console.live(&format!("reading {name}: {}{of}, {rate}", read.decimal()));
    }
}
