//! TCP: writing and reading as fast as it goes, or at a rate.

use super::{Traffic, is_pause};
use crate::{ProbeError, flow::Flow, pacing::Pacer, plan::Plan};
use host::{bulk, clock};
use record::Protocol;
use std::{
    fs::File,
    io::{self, Read, Write},
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

/// Longest a paced writer sleeps without looking for the end.
const LONGEST_NAP: Duration = Duration::from_millis(20);
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
    pub(super) fn prepare(plan: &Plan, sends: bool, receives: bool) -> Result<Self, ProbeError> {
        let block = if sends { plan.payload(plan.block) } else { Vec::new() };
        let by_reference = sends && plan.zerocopy && plan.protocol == Protocol::Tcp;
        let pages = if by_reference { bulk::memory_file(&block).ok() } else { None };
        let file = plan.file.as_ref().map(|path| {
            let file = if sends && !receives { File::open(path) } else { File::create(path) };
            file.map_err(|source| ProbeError::File { path: path.clone(), source })
        });
        Ok(Load { block, pages, file: file.transpose()? })
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
        let pacer = plan.rate.map(|rate| Pacer::new(rate, began));
        let most = pacer.map_or(load.block.len(), |pacer| match plan.burst {
            0 => pacer.block(load.block.len()),
            _ => load.block.len(),
        });
        // Blocks of a burst that may go without waiting.
        let mut burst = 0;
        let mut from_file = vec![0; if load.file.is_some() { most } else { 0 }];
        while !self.has_ended() {
            if let Some(pacer) = pacer.filter(|_| burst == 0) {
                let wait = pacer.wait(flow.bytes(), clock::now());
                if !wait.is_zero() {
                    thread::sleep(wait.min(LONGEST_NAP));
                    continue;
                }
                burst = plan.burst;
            }
            let granted = self.draw(most);
            if granted == 0 {
                return Ok(());
            }
            let wrote = match (&load.file, &load.pages) {
                (Some(file), _) => self.write_file(flow, file, &mut from_file[..granted])?,
                (None, Some(pages)) => bulk::send_file(&flow.socket, pages, granted),
                (None, None) => (&flow.socket).write(&load.block[..granted]),
            };
            let wrote = match wrote {
                Ok(wrote) => wrote,
                Err(error) if is_pause(&error) => 0,
                Err(error) => return Err(error),
            };
            flow.count(wrote);
            self.give_back(granted - wrote);
            burst = burst.saturating_sub(1);
            if self.is_exhausted() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends the file's next piece, whole: what was read cannot be put back.
    /// The outer error is the file's, the inner one the socket's.
    fn write_file(
        &self,
        flow: &Flow,
        mut file: &File,
        room: &mut [u8],
    ) -> io::Result<io::Result<usize>> {
        let got = file.read(room)?;
        if got == 0 {
            self.exhausted.store(true, Ordering::Relaxed);
        }
        let mut rest = &room[..got];
        while !rest.is_empty() && !self.has_ended() {
            match (&flow.socket).write(rest) {
                Ok(wrote) => rest = &rest[wrote..],
                Err(error) if is_pause(&error) => {}
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(got - rest.len()))
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
