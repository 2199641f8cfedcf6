//! A capture from the first packet to the last.

use crate::framing::Framing;
use crate::output::{OpenOutput, Output};
use crate::source::Source;
use crate::{CaptureConfig, CaptureError};
use capture::write::{self, CaptureCounters, CapturedInterface, CapturedPacket, WriteFormat};
use host::packet_socket::{self, PacketCounter, PacketCounts, PacketSocket, RingPacket};
use host::privileges::User;
use host::{clock, interfaces};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use units::ByteCount;

/// How often progress is reported.
const PROGRESS: Duration = Duration::from_secs(1);
/// How often it is looked whether to stop.
const POLL: Duration = Duration::from_millis(100);

/// When a capture ends by itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// After so many packets.
    pub packets: Option<u64>,
    /// After this time.
    pub duration: Option<Duration>,
}

/// What happens during a capture.
#[derive(Debug)]
pub enum Event<'a> {
    /// A second has passed.
    Progress(&'a Totals),
    /// The interface is down; its packets are captured once it is up again.
    Down,
}

/// Why a capture ended.
#[derive(Debug)]
pub enum Ending {
    /// A limit was reached.
    Limit,
    /// The caller asked for it.
    Stopped,
    /// The reader of the pipe has closed it.
    ReaderGone,
    /// The interface was removed.
    Removed,
    /// Nothing more could be written: the disk is full, for example.
    Write(io::Error),
    /// Reading from the socket failed.
    Read(io::Error),
}

/// What was captured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// Packets that were written, also those in files that have been overwritten since.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Packets that the filter accepted.
    pub accepted: u64,
    /// Those of them that the kernel dropped: the buffer was full.
    pub dropped: u64,
    /// Packets with a timestamp of the adapter.
    pub hardware_timestamps: u64,
    /// Length of the capture.
    pub elapsed: Duration,
    /// The files, oldest first; empty for a pipe.
    pub files: Vec<PathBuf>,
}

/// A capture whose socket and files are open.
#[derive(Debug)]
pub struct LiveCapture {
    source: Source,
    output: OpenOutput,
    counting: Counting,
    began: Instant,
    /// Packets that were taken from the ring; some may still be in the buffer.
    taken: u64,
    totals: Totals,
}

impl LiveCapture {
    /// Opens the socket, then the output. From here on packets are captured, and no privilege
    /// is needed. Files are created for `user` if there is one.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn open(
        config: &CaptureConfig,
        output: Output,
        format: WriteFormat,
        user: Option<User>,
    ) -> Result<Self, CaptureError> {
        let source = Source::open(config)?;
        let mut header = Vec::new();
        let interface = CapturedInterface {
            name: &config.interface,
            link: source.0.framing.link_type(),
            snaplen: config.snaplen,
            filter: &config.filter,
        };
        let application = concat!("longhaul ", env!("CARGO_PKG_VERSION"));
        write::begin(&mut header, format, application, &[interface]);
        let output = OpenOutput::open(output, format, header, user)?;
        let (source, counter) = source;
        Ok(LiveCapture {
            source,
            output,
            counting: Counting::new(counter),
            began: clock::now(),
            taken: 0,
            totals: Totals::default(),
        })
    }

    /// Memory for packets that wait to be written; less than asked for where the kernel has
    /// too little.
    #[must_use]
    pub fn buffer(&self) -> ByteCount {
        self.source.socket.ring_size()
    }

    /// Captures until a limit, an error, or `stop` returns true. Files are complete afterwards,
    /// whatever ended it.
    pub fn run(
        mut self,
        limits: Limits,
        stop: &dyn Fn() -> bool,
        observe: &mut dyn FnMut(Event<'_>),
    ) -> (Totals, Ending) {
        if !self.source.up {
            observe(Event::Down);
        }
        let ending = match self.capture(limits, stop, observe) {
            Ok(ending) => self.drain(limits, ending),
            Err(ending) => ending,
        };
        let ending = self.finish(ending);
        (self.totals, ending)
    }

    fn capture(
        &mut self,
        limits: Limits,
        stop: &dyn Fn() -> bool,
        observe: &mut dyn FnMut(Event<'_>),
    ) -> Result<Ending, Ending> {
        let mut due = PROGRESS;
        loop {
            let elapsed = self.began.elapsed();
            if stop() {
                return Ok(Ending::Stopped);
            }
            let left = limits.duration.map(|duration| duration.saturating_sub(elapsed));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Ending::Limit);
            }
            if elapsed >= due {
                due = elapsed + PROGRESS;
                self.count().map_err(Ending::Read)?;
                observe(Event::Progress(&self.totals));
            }
            match self.block(left.map_or(POLL, |left| left.min(POLL)), limits.packets) {
                Ok(_) if limits.packets == Some(self.taken) => return Ok(Ending::Limit),
                Ok(true) => {}
                // Nothing is there: what was captured is in the file, for whoever reads it.
                Ok(false) => self.output.flush().map_err(write_failed)?,
                Err(Failed::Socket(error)) if packet_socket::is_down(&error) => {
                    let all = interfaces::list().map_err(Ending::Read)?;
                    if !all.iter().any(|it| it.index == self.source.interface) {
                        return Ok(Ending::Removed);
                    }
                    observe(Event::Down);
                }
                Err(Failed::Socket(error)) => return Err(Ending::Read(error)),
                Err(Failed::Output(error)) => return Err(write_failed(error)),
            }
        }
    }

    /// Takes the next block of packets; false if there is none in time.
    fn block(&mut self, timeout: Duration, limit: Option<u64>) -> Result<bool, Failed> {
        let Source { socket, framing, loopback, .. } = &mut self.source;
        let Some(block) = socket.next_block(timeout).map_err(Failed::Socket)? else {
            return Ok(false);
        };
        for packet in block.packets() {
            // What is sent on the loopback is received there as well.
            if *loopback == Some(packet.interface) && packet.is_outgoing() {
                self.counting.skipped += 1;
                continue;
            }
            if limit == Some(self.taken) {
                break;
            }
            if self.output.is_full(packet.data.len()) {
                let counters = self.counting.of_file().map_err(Failed::Socket)?;
                self.output.finish(&counters).map_err(Failed::Output)?;
                self.output.rotate().map_err(Failed::Output)?;
            }
            self.taken += 1;
            self.totals.bytes += u64::from(packet.original_len);
            self.totals.hardware_timestamps += u64::from(packet.by_hardware);
            push(&mut self.output, *framing, &packet).map_err(Failed::Output)?;
        }
        Ok(true)
    }

    /// Takes what was captured before the end and is still in the ring.
    fn drain(&mut self, limits: Limits, ending: Ending) -> Ending {
        let full = |taken| limits.packets == Some(taken);
        if full(self.taken) || self.source.socket.stop().is_err() {
            return ending;
        }
        // A block that is not full is handed over after at most two timeouts.
        let until = clock::now() + 3 * PacketSocket::longest_delay();
        while clock::now() < until && self.count().is_ok() {
            let is_all = self.taken + self.totals.dropped >= self.totals.accepted;
            if is_all || full(self.taken) {
                break;
            }
            match self.block(PacketSocket::longest_delay(), limits.packets) {
                Ok(_) => {}
                Err(Failed::Output(error)) => return write_failed(error),
                Err(Failed::Socket(_)) => break,
            }
        }
        ending
    }

    /// Completes the file.
    fn finish(&mut self, ending: Ending) -> Ending {
        let counted = self.count();
        let counters = self.counting.of_file().unwrap_or_default();
        let ending = match ending {
            Ending::Write(_) | Ending::ReaderGone => {
                // Without these the file is whole as well.
                let _ = self.output.statistics(&counters);
                ending
            }
            ending => match self.output.finish(&counters) {
                Ok(()) => ending,
                Err(error) => {
                    let _ = self.output.statistics(&counters);
                    write_failed(error)
                }
            },
        };
        self.totals.packets = self.output.written;
        self.totals.files = self.output.files();
        match counted {
            Err(error) if matches!(ending, Ending::Limit | Ending::Stopped) => Ending::Read(error),
            _ => ending,
        }
    }

    fn count(&mut self) -> io::Result<()> {
        let counts = self.counting.now()?;
        (self.totals.accepted, self.totals.dropped) = (counts.accepted, counts.dropped);
        self.totals.elapsed = self.began.elapsed();
        self.totals.packets = self.taken;
        Ok(())
    }
}

/// What failed.
enum Failed {
    Socket(io::Error),
    Output(io::Error),
}

fn write_failed(error: io::Error) -> Ending {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Ending::ReaderGone
    } else {
        Ending::Write(error)
    }
}

#[inline]
fn push(output: &mut OpenOutput, framing: Framing, packet: &RingPacket<'_>) -> io::Result<()> {
    let inserted = framing.inserted(packet);
    output.push(&CapturedPacket {
        interface: 0,
        time_ns: packet.time_ns,
        original_len: packet.original_len.saturating_add(inserted.length()),
        data: &inserted.with(packet.data),
        inbound: Some(!packet.is_outgoing()),
        comment: "",
    })
}

/// The kernel's counters, in all and of the current file.
#[derive(Debug)]
struct Counting {
    counter: PacketCounter,
    /// Accepted packets that are left out.
    skipped: u64,
    /// When the current file began, and what was counted before.
    file: (u64, PacketCounts),
}

impl Counting {
    fn new(counter: PacketCounter) -> Self {
        Counting { counter, skipped: 0, file: (now_ns(), PacketCounts::default()) }
    }

    fn now(&mut self) -> io::Result<PacketCounts> {
        let PacketCounts { accepted, dropped } = self.counter.counts()?;
        Ok(PacketCounts { accepted: accepted.saturating_sub(self.skipped), dropped })
    }

    /// Since the file was begun; the next one begins. Packets that wait in the ring count for
    /// the file before.
    fn of_file(&mut self) -> io::Result<CaptureCounters> {
        let (counts, ended_ns) = (self.now()?, now_ns());
        let (started_ns, before) = std::mem::replace(&mut self.file, (ended_ns, counts));
        Ok(CaptureCounters {
            started_ns,
            ended_ns,
            received: counts.accepted.saturating_sub(before.accepted),
            dropped: counts.dropped.saturating_sub(before.dropped),
            delivered: 0,
        })
    }
}

fn now_ns() -> u64 {
    u64::try_from(clock::unix_time().as_nanos()).unwrap_or(u64::MAX)
}
