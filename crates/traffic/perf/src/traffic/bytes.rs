//! TCP: writes and reads, unlimited or at a rate.

use super::{
    Traffic, chunks::Chunks, default_slices, gather, gather::Gather, is_pause,
    low_water_mark::LowWaterMark, reads::Reads, received::Received, sending_threads, within_host,
    zerocopy_trial::ZerocopyTrial,
};
use crate::{
    PerfError,
    pacing::Pacer,
    plan::Plan,
    stream::{SOCKET_TIMEOUT, Stream},
};
use host::{bulk, clock, cpu};
use record::Protocol;
use std::{
    fs::File,
    io::{self, Write},
    thread,
    time::{Duration, Instant},
};

/// How often a sender that waits for its disk looks for the end of the test.
const READ_WAIT: Duration = Duration::from_millis(50);

/// Data source and sink of a test.
pub(super) struct Load {
    /// A block of generated data; empty if this end only receives.
    pub(super) block: Vec<u8>,
    /// The same block in a file, for zero copy.
    pub(super) pages: Option<File>,
    /// The file to send.
    pub(super) file: Option<File>,
    /// The file for received data.
    received: Option<Received>,
    reads: Reads,
    /// See [`default_slices`].
    pub(super) default_slices: bool,
}

impl Load {
    pub(super) fn prepare(plan: &Plan, streams: &[Stream]) -> Result<Self, PerfError> {
        let senders = streams.iter().filter(|stream| stream.sending).count();
        let receivers = streams.len() - senders;
        let (sends, receives) = (senders > 0, receivers > 0);
        let block = if sends { plan.payload(plan.block) } else { Vec::new() };
        // A rate-limited stream has time to copy; with more streams than sending threads the
        // trials would differ and make the streams unequal.
        let alone = streams.len() <= sending_threads(streams);
        let worth = alone && plan.rate.is_none() && plan.file.is_none();
        let by_reference =
            sends && plan.zerocopy.unwrap_or(worth) && plan.protocol == Protocol::Tcp;
        let pages = if by_reference { bulk::file_to_send(&block).ok() } else { None };
        let (mut file, mut received) = (None, None);
        if let Some(path) = plan.file.as_ref().filter(|_| plan.protocol != Protocol::Udp) {
            let failed = |source| PerfError::File { path: path.clone(), source };
            if sends {
                file = match bulk::open_to_send(path) {
                    // In a bidirectional test the file may not exist yet.
                    Err(error) if receives && error.kind() == io::ErrorKind::NotFound => None,
                    opened => Some(opened.map_err(failed)?),
                };
            }
            if receives && plan.protocol == Protocol::Tcp {
                received = Some(Received::create(path).map_err(failed)?);
            }
        }
        let reads = match received {
            Some(_) => Reads::stored(),
            None => {
                Reads::of(receivers, senders, within_host(streams), plan.zerocopy == Some(true))
            }
        };
        let default_slices = default_slices(streams, plan);
        Ok(Load { block, pages, file, received, reads, default_slices })
    }

    /// Whether received data is written to a file, rather than to a device.
    pub(super) fn keeps_file(&self) -> bool {
        self.received.as_ref().is_some_and(Received::is_kept)
    }

    /// Moves the received file to its path.
    pub(super) fn keep_received(&self, plan: &Plan) -> Result<(), PerfError> {
        let (Some(received), Some(path)) = (&self.received, &plan.file) else { return Ok(()) };
        received.keep().map_err(|source| PerfError::File { path: path.clone(), source })
    }
}

/// Where the bytes of one call come from.
enum Source<'a> {
    /// A block, or a part of the file.
    Bytes(&'a [u8]),
    /// The block, so many times.
    Repeated(&'a [u8], usize),
    /// This many bytes of the block's file, with zero copy.
    Pages(&'a File, usize),
}

impl Source<'_> {
    fn len(&self) -> usize {
        match self {
            Source::Bytes(bytes) => bytes.len(),
            Source::Repeated(block, times) => block.len() * times,
            Source::Pages(_, bytes) => *bytes,
        }
    }

    /// The end of the block that byte `at` is in.
    fn end_of_block(&self, at: usize) -> usize {
        match self {
            Source::Repeated(block, _) => at.next_multiple_of(block.len()),
            Source::Bytes(_) | Source::Pages(..) => self.len(),
        }
    }

    fn write(&self, stream: &Stream, from: usize, to: usize) -> io::Result<usize> {
        match self {
            Source::Bytes(bytes) => (&stream.socket).write(&bytes[from..to]),
            Source::Repeated(block, _) => gather::write_repeated(&stream.socket, block, from, to),
            // The offset within the generated data does not matter.
            Source::Pages(pages, _) => bulk::send_file(&stream.socket, pages, to - from),
        }
    }
}

impl Traffic {
    pub(super) fn write(
        &self,
        stream: &Stream,
        plan: &Plan,
        load: &Load,
        began: Instant,
    ) -> io::Result<()> {
        let pacer = plan.rate.map(|rate| Pacer::new(rate, began));
        let Some(file) = &load.file else {
            return self.write_blocks(stream, plan, load, pacer);
        };
        thread::scope(|scope| {
            let is_over = || self.has_read_file();
            let chunks = Chunks::read(scope, file, stream, plan.chunk, is_over)?;
            self.write_file(stream, plan, chunks, pacer)
        })
    }

    fn write_blocks(
        &self,
        stream: &Stream,
        plan: &Plan,
        load: &Load,
        pacer: Option<Pacer>,
    ) -> io::Result<()> {
        let block = load.block.len();
        let mut copying = match (plan.zerocopy, &load.pages) {
            (None, Some(_)) => ZerocopyTrial::trial(),
            (_, pages) => ZerocopyTrial::settled(pages.is_some()),
        };
        let mut gather = match plan.rate {
            None if self.quota.is_none() => Gather::of(block),
            _ => Gather::single(),
        };
        // Blocks left of the current burst.
        let mut burst = 0;
        while !self.has_sent() {
            let paced = pacer.filter(|_| burst == 0);
            if let Some(pacer) = paced
                && !pacer.wait(stream.bytes(), || self.has_sent())
            {
                return Ok(());
            }
            burst = if burst == 0 { plan.burst } else { burst }.saturating_sub(1);
            let pages = load.pages.as_ref().filter(|_| copying.by_reference());
            let blocks = if pages.is_some() { 1 } else { gather.blocks() };
            // The budget is whole blocks, and only whole blocks are drawn.
            let drawn = self.draw(blocks * block);
            if drawn < block || self.wait_for_quota(drawn, drawn) < drawn {
                return Ok(());
            }
            let smooth = pacer.filter(|_| plan.smooth);
            let source = match pages {
                Some(pages) => Source::Pages(pages, block),
                None => Source::Repeated(&load.block, drawn / block),
            };
            // A block that is always written alone has no call to time.
            let began = (gather.most() > 1).then(clock::now);
            self.write_block(stream, plan, &source, smooth)?;
            if let Some(began) = began {
                gather.took(began.elapsed());
            }
            copying.sent(drawn, || cpu::this_thread().ok());
        }
        Ok(())
    }

    /// Writes the file as it is read, at most a block at once, until it ends or the bytes of the
    /// test are spent: by what is there, as a pipe returns less than a block.
    fn write_file(
        &self,
        stream: &Stream,
        plan: &Plan,
        mut chunks: Chunks,
        pacer: Option<Pacer>,
    ) -> io::Result<()> {
        let smooth = pacer.filter(|_| plan.smooth);
        let mut burst = 0;
        while !self.has_sent() {
            let Some(bytes) = chunks.next(READ_WAIT)? else { continue };
            if bytes.is_empty() {
                self.file_is_sent();
                return Ok(());
            }
            let paced = pacer.filter(|_| burst == 0);
            if let Some(pacer) = paced
                && !pacer.wait(stream.bytes(), || self.has_sent())
            {
                return Ok(());
            }
            burst = if burst == 0 { plan.burst } else { burst }.saturating_sub(1);
            let drawn = self.draw(bytes.len().min(plan.block));
            if drawn == 0 || self.wait_for_quota(drawn, drawn) < drawn {
                return Ok(());
            }
            self.write_block(stream, plan, &Source::Bytes(&bytes[..drawn]), smooth)?;
            chunks.sent(drawn);
        }
        Ok(())
    }

    /// Writes one block, or those of one call. When the test ends, the rest of the block that
    /// is partly written goes at once as far as the socket takes it, or is not sent at all:
    /// [`Plan::finish_block`].
    fn write_block(
        &self,
        stream: &Stream,
        plan: &Plan,
        source: &Source,
        pacer: Option<Pacer>,
    ) -> io::Result<()> {
        let whole = source.len();
        let piece = pacer.map_or(whole, |pacer| pacer.block(whole));
        let mut at = 0;
        while at < whole {
            if let Some(pacer) = pacer {
                pacer.wait(stream.bytes(), || self.has_sent());
            }
            let over = self.has_sent();
            let block_end = source.end_of_block(at);
            if over && (!plan.finish_block || at == block_end) {
                return Ok(());
            }
            let end = if over { block_end } else { whole.min(at + piece) };
            match source.write(stream, at, end) {
                Ok(wrote) => {
                    stream.count(wrote);
                    at += wrote;
                }
                Err(error) if is_pause(&error) && !over => {}
                Err(error) if is_pause(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads until the other end closes or this end shuts down the socket. Data
    /// after the end is read and not counted: a sender blocked on full buffers
    /// could not process the end of the test.
    pub(super) fn read(&self, stream: &Stream, plan: &Plan, load: &Load) -> io::Result<()> {
        let skip = plan.skip_rx_copy && load.received.is_none();
        let mut buffer = if skip { Vec::new() } else { load.reads.buffer() };
        let marked = plan.rate.is_none() && load.reads.have_mark;
        let mut mark =
            marked.then(|| LowWaterMark::new(load.reads.most, plan.limit.is_some(), clock::now()));
        stream.socket.set_read_timeout(mark.is_some().then_some(SOCKET_TIMEOUT))?;
        loop {
            let got = if skip {
                bulk::discard(&stream.socket, load.reads.most)
            } else {
                bulk::read_over(&stream.socket, &mut buffer, load.reads.most)
            };
            match got {
                Ok(0) => return Ok(()),
                Ok(got) if !self.has_ended() => {
                    stream.count(got);
                    if let Some(mark) = &mut mark {
                        mark.read(&stream.socket, got, clock::now());
                    }
                    if let Some(received) = &load.received {
                        received.write(&buffer[..got])?;
                    }
                    if !self.charge(got) {
                        return Ok(());
                    }
                }
                Ok(_) => {}
                Err(error) if is_pause(&error) => {
                    if let Some(mark) = &mut mark {
                        mark.read(&stream.socket, 0, clock::now());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}
