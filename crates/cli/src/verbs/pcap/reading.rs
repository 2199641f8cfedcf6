//! Reads a capture to its end, with progress, and everything that is counted.

use crate::console::Console;
use capture::Seed;
use capture::batch::Batch;
use capture::conversations::{Conversations, StreamNumber};
use capture::dissect::{Layers, TcpSegment};
use capture::file::{Broken, FileSummary, MAX_INTERFACES, Packet, Problem, Reader};
use capture::hierarchy::Hierarchy;
use capture::overview::Overview;
use host::{clock, file, wait};
use perf::StopFlag;
use std::cell::Cell;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
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
    /// Packets whose TCP options were captured in part; no stream has them, as in Wireshark.
    pub(super) cut_headers: u64,
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

/// Standard input that ends when a signal arrives, even where nothing is written to it.
struct Interruptible {
    input: File,
    stop: StopFlag,
}

/// How long a signal may wait for the read of a silent pipe.
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
pub(super) struct Dissected<'a> {
    pub(super) packet: &'a Packet<'a>,
    pub(super) layers: &'a Layers,
    pub(super) segment: Option<&'a TcpSegment<'a>>,
    /// The conversation of the segment.
    pub(super) stream: Option<StreamNumber>,
    pub(super) conversations: &'a Conversations,
    /// Whether the next one may be long in coming.
    pub(super) is_last_of_batch: bool,
}

/// Reads `path`, or standard input for `-`.
///
/// # Errors
/// One line: the file cannot be opened, or is no capture.
pub(super) fn read(path: &Path, stop: &StopFlag, console: &mut Console) -> Result<Capture, String> {
    read_packets(path, stop, console, |_, _| ControlFlow::Continue(()))
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
    read_packets(path, stop, console, |found, _| {
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
pub(super) fn read_packets(
    path: &Path,
    stop: &StopFlag,
    console: &mut Console,
    see: impl FnMut(&Dissected<'_>, &mut Console) -> ControlFlow<()>,
) -> Result<Capture, String> {
    if path == Path::new("-") {
        // Without the standard library's buffer, of which poll(2) knows nothing.
        let input = io::stdin().as_fd().try_clone_to_owned();
        let input = input.map_err(|error| format!("cannot read standard input: {error}"))?;
        let source = Interruptible { input: File::from(input), stop: stop.clone() };
        return whole("standard input", source, None, stop, console, see);
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
    mut see: impl FnMut(&Dissected<'_>, &mut Console) -> ControlFlow<()>,
) -> Result<Capture, String> {
    let bytes = Rc::new(Cell::new(0));
    let source = Counted { source, bytes: Rc::clone(&bytes) };
    let mut progress = Progress { start: clock::now(), shown: None, bytes, size };
    let mut reader = Reader::new(source).map_err(|broken| match stop.is_raised() {
        true => format!("{name}: interrupted before the first packet"),
        false => cannot_read(name, &broken),
    })?;
    let seed = seed();
    let (mut batch, mut overview) = (Batch::new(seed), Overview::default());
    let (mut hierarchy, mut conversations) = (Hierarchy::new(seed), Conversations::new(seed));
    let (mut rounds, mut cut_headers) = (0_u32, 0);
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
            hierarchy.add(layers, packet.original_len);
            let segment = layers.tcp(packet.data);
            let segment = segment.as_ref();
            if segment.is_none() && layers.tcp_with_cut_options(packet.data).is_some() {
                cut_headers += 1;
            }
            let stream = conversations.add_expected(&packet, layers, segment, stream);
            let (packet, conversations) = (&packet, &conversations);
            let is_last_of_batch = left == 0;
            let found =
                Dissected { packet, layers, segment, stream, conversations, is_last_of_batch };
            if see(&found, console).is_break() {
                break 'file None;
            }
        }
        // Some milliseconds of packets.
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(512) {
            if stop.is_raised() {
                break None;
            }
            progress.show(name, console);
        }
    };
    console.clear();
    let file = reader.summary().clone();
    let (name, is_interrupted) = (name.to_owned(), stop.is_raised());
    Ok(Capture {
        name,
        file,
        overview,
        hierarchy,
        conversations,
        cut_headers,
        broken,
        is_interrupted,
    })
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
