//! TCP: writing and reading as fast as it goes, or at a rate.

use super::{Traffic, copying::Copying, is_pause};
use crate::{ProbeError, flow::Flow, pacing::Pacer, plan::Plan};
use host::{bulk, cpu};
use record::Protocol;
use std::{
    fs::File,
    io::{self, Read, Write},
    sync::atomic::Ordering,
    time::Instant,
};

/// Bytes of a read, as of iperf3's default write.
const READ_BLOCK: usize = 128 * 1024;

/// What a test's writers send and its readers fill.
pub(super) struct Load {
    /// A block of made-up bytes; empty where this end only receives.
    pub(super) block: Vec<u8>,
    /// The same block in memory that the kernel can send by reference.
    pages: Option<File>,
    /// The file to send, or to fill with what arrives.
    file: Option<File>,
}

impl Load {
    pub(super) fn prepare(plan: &Plan, flows: usize, senders: usize) -> Result<Self, ProbeError> {
        let (sends, receives) = (senders > 0, flows > senders);
        let block = if sends { plan.payload(plan.block) } else { Vec::new() };
        // A stream held to a rate has time for its copies; among many streams the
        // trials would come to different ends, and some get more than others.
        let alone = flows <= cpu::cores() as usize;
        let worth = alone && plan.rate.is_none() && plan.file.is_none();
        let by_reference =
            sends && plan.zerocopy.unwrap_or(worth) && plan.protocol == Protocol::Tcp;
        let pages = if by_reference { bulk::memory_file(&block).ok() } else { None };
        let file = plan.file.as_ref().map(|path| {
            let file = if sends && !receives { File::open(path) } else { File::create(path) };
            file.map_err(|source| ProbeError::File { path: path.clone(), source })
        });
        Ok(Load { block, pages, file: file.transpose()? })
    }
}

/// Where a block comes from.
enum Source<'a> {
    Bytes(&'a [u8]),
    /// So many bytes of this file, by reference.
    Pages(&'a File, usize),
}

impl Source<'_> {
    fn len(&self) -> usize {
        match self {
            Source::Bytes(bytes) => bytes.len(),
            Source::Pages(_, bytes) => *bytes,
        }
    }

    fn write(&self, flow: &Flow, from: usize, to: usize) -> io::Result<usize> {
        match self {
            Source::Bytes(bytes) => (&flow.socket).write(&bytes[from..to]),
            // Which of the made-up bytes go does not matter.
            Source::Pages(pages, _) => bulk::send_file(&flow.socket, pages, to - from),
        }
    }
}

impl Traffic {
    pub(super) fn write(
        &self,
        flow: &Flow,
        plan: &Plan,
        load: &Load,
        began: Instant,
    ) -> io::Result<()> {
        let block = load.block.len();
        let pacer = plan.rate.map(|rate| Pacer::new(rate, began));
        let mut from_file = vec![0; if load.file.is_some() { block } else { 0 }];
        let mut copying = match (plan.zerocopy, &load.pages) {
            (None, Some(_)) => Copying::to_be_tried(),
            (_, pages) => Copying::settled(pages.is_some()),
        };
        // Blocks of a burst that may go without waiting.
        let mut burst = 0;
        while !self.has_sent() {
            let paced = pacer.filter(|_| burst == 0);
            if let Some(pacer) = paced
                && !pacer.wait(flow.bytes(), || self.has_sent())
            {
                return Ok(());
            }
            burst = if burst == 0 { plan.burst } else { burst }.saturating_sub(1);
            // The budget is whole blocks, and only whole blocks are drawn.
            if self.draw(block) < block {
                return Ok(());
            }
            let source = match (&load.file, &load.pages) {
                (Some(file), _) => {
                    let mut file: &File = file;
                    let got = file.read(&mut from_file)?;
                    if got == 0 {
                        self.exhausted.store(true, Ordering::Relaxed);
                        return Ok(());
                    }
                    Source::Bytes(&from_file[..got])
                }
                (None, Some(pages)) if copying.by_reference() => Source::Pages(pages, block),
                (None, _) => Source::Bytes(&load.block),
            };
            self.write_block(flow, &source, pacer.filter(|_| plan.smooth))?;
            copying.went(block, || cpu::this_thread().ok());
        }
        Ok(())
    }

    /// Writes one block, whole unless the test ends and the path takes no more:
    /// receivers from iperf3 3.16 on count whole blocks only.
    fn write_block(&self, flow: &Flow, source: &Source, pacer: Option<Pacer>) -> io::Result<()> {
        let whole = source.len();
        let piece = pacer.map_or(whole, |pacer| pacer.block(whole));
        let mut at = 0;
        while at < whole {
            if let Some(pacer) = pacer {
                // Once the test is over the rest of the block goes at once.
                pacer.wait(flow.bytes(), || self.has_sent());
            }
            let over = self.has_sent();
            let end = whole.min(at + if over { whole } else { piece });
            match source.write(flow, at, end) {
                Ok(wrote) => {
                    flow.count(wrote);
                    at += wrote;
                }
                Err(error) if is_pause(&error) && !over => {}
                Err(error) if is_pause(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads until the other end closes or this end shuts the socket. What
    /// comes after the end is taken off the network and not counted: a sender
    /// with full buffers could not hear that it is over.
    pub(super) fn read(&self, flow: &Flow, plan: &Plan, load: &Load) -> io::Result<()> {
        let skip = plan.skip_rx_copy && load.file.is_none();
        let mut buffer = vec![0; if skip { 0 } else { READ_BLOCK }];
        loop {
            let got = if skip {
                bulk::discard(&flow.socket, READ_BLOCK)
            } else {
                (&flow.socket).read(&mut buffer)
            };
            match got {
                Ok(0) => return Ok(()),
                Ok(got) if !self.has_ended() => {
                    flow.count(got);
                    if let Some(mut file) = load.file.as_ref() {
                        file.write_all(&buffer[..got])?;
                    }
                }
                Ok(_) => {}
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
