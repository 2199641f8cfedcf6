//! Where packets go: a file, files in turn, or a pipe. What is written are whole records; where
//! a disk is full, the file ends with the last whole record.

use crate::CaptureError;
use crate::naming::numbered;
use capture::write::{self, CaptureCounters, CapturedPacket, STATISTICS_LEN, WriteFormat};
use host::capture_file;
use host::privileges::User;
use problem::Field;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use units::ByteCount;

/// Most files in turn: each takes a descriptor.
const MAX_FILES: usize = 500;
/// Smallest size of a file in turn.
const MIN_FILE: ByteCount = ByteCount::from_bytes(64 * 1024);
/// What is buffered until it is written, bytes: few system calls, and within a core's cache.
const BUFFER: usize = 256 * 1024;
/// The most that a record has besides the packet's bytes.
const RECORD_OVERHEAD: u64 = 64;

/// Where packets go.
#[derive(Debug)]
pub enum Output {
    /// One file.
    File(PathBuf),
    /// Files in turn, each up to a size; the oldest is overwritten.
    Rotating {
        /// Their name, without the number.
        path: PathBuf,
        /// How many there are.
        files: usize,
        /// Their size.
        size: ByteCount,
    },
    /// A pipe, such as standard output.
    Pipe(File),
}

/// An open output.
#[derive(Debug)]
pub(crate) struct OpenOutput {
    format: WriteFormat,
    files: Vec<(Option<PathBuf>, File)>,
    /// Size of each file, if they are written in turn.
    size: Option<u64>,
    /// The beginning of each file.
    header: Vec<u8>,
    /// The file that is written, how often it has changed, and its length.
    current: usize,
    rotations: u64,
    length: u64,
    buffer: Vec<u8>,
    /// Where the records in the buffer end.
    ends: Vec<usize>,
    /// Packets in the current file.
    packets: u64,
    /// Packets in all files, also in those that were overwritten.
    pub(crate) written: u64,
}

impl OpenOutput {
    /// Opens every file, each with `header`, for `user` if there is one.
    pub(crate) fn open(
        output: Output,
        format: WriteFormat,
        header: Vec<u8>,
        user: Option<User>,
    ) -> Result<Self, CaptureError> {
        let create = |path: PathBuf| match capture_file::create(&path, user) {
            Ok(file) => Ok((Some(path), file)),
            Err(source) => Err(CaptureError::File { path, source }),
        };
        let (files, size) = match output {
            Output::File(path) => (vec![create(path)?], None),
            Output::Pipe(file) => (vec![(None, file)], None),
            Output::Rotating { path, files, size } => {
                if !(2..=MAX_FILES).contains(&files) || size < MIN_FILE {
                    return Err(CaptureError::Rotation(format!(
                        "{} takes 2 to {MAX_FILES} files of at least {MIN_FILE} each",
                        Field::Ring
                    )));
                }
                let all = (1..=files).map(|number| create(numbered(&path, number, files)));
                (all.collect::<Result<_, _>>()?, Some(size.bytes()))
            }
        };
        let mut open = OpenOutput {
            format,
            files,
            size,
            header,
            current: 0,
            rotations: 0,
            length: 0,
            buffer: Vec::with_capacity(2 * BUFFER),
            ends: Vec::new(),
            packets: 0,
            written: 0,
        };
        // Also files that nothing is captured to can be read.
        for (path, file) in &mut open.files {
            file.write_all(&open.header).map_err(|source| {
                let path = path.clone().unwrap_or_else(|| "standard output".into());
                CaptureError::File { path, source }
            })?;
        }
        open.length = open.header.len() as u64;
        Ok(open)
    }

    /// Whether the next file has to be begun before a packet of so many bytes.
    #[inline]
    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        let Some(size) = self.size else { return false };
        let next = self.length + self.buffer.len() as u64 + bytes as u64 + RECORD_OVERHEAD;
        self.packets + self.ends.len() as u64 > 0 && next + STATISTICS_LEN as u64 > size
    }

    /// Takes a packet, and writes where enough of them have come together.
    #[inline]
    pub(crate) fn push(&mut self, packet: &CapturedPacket<'_>) -> io::Result<()> {
        write::packet(&mut self.buffer, self.format, packet);
        self.ends.push(self.buffer.len());
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// The system error; a file then ends with the last whole record, and with room for the
    /// statistics of the interface where there is some.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Some((path, file)) = self.files.get_mut(self.current) else { return Ok(()) };
        let (mut done, mut outcome) = (0, Ok(()));
        while let Some(rest) = self.buffer.get(done..).filter(|rest| !rest.is_empty()) {
            match file.write(rest) {
                Ok(0) => outcome = Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => done += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => outcome = Err(error),
            }
            if outcome.is_err() {
                break;
            }
        }
        let mut whole = done;
        if outcome.is_err() && path.is_some() {
            let fits = |end: &&usize| **end + STATISTICS_LEN <= done;
            whole = self.ends.iter().rev().find(fits).copied().unwrap_or(0);
            let end = self.length + whole as u64;
            file.set_len(end)?;
            file.seek(SeekFrom::Start(end))?;
        }
        let packets = self.ends.iter().filter(|end| **end <= whole).count() as u64;
        self.packets += packets;
        self.written += packets;
        self.length += whole as u64;
        self.buffer.clear();
        self.ends.clear();
        outcome
    }

    /// Ends the current file with the counters of the interface.
    pub(crate) fn finish(&mut self, counters: &CaptureCounters) -> io::Result<()> {
        self.flush()?;
        self.statistics(counters)
    }

    /// Writes the counters. Also after a failed write, where that has left room.
    pub(crate) fn statistics(&mut self, counters: &CaptureCounters) -> io::Result<()> {
        let counters = CaptureCounters { delivered: self.packets, ..*counters };
        write::statistics(&mut self.buffer, self.format, 0, &counters);
        self.flush()
    }

    /// Begins the next file; the one before must be finished.
    pub(crate) fn rotate(&mut self) -> io::Result<()> {
        self.current = (self.current + 1) % self.files.len().max(1);
        self.rotations += 1;
        (self.packets, self.length) = (0, 0);
        if let Some((_, file)) = self.files.get_mut(self.current) {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
        }
        self.buffer.extend_from_slice(&self.header);
        self.flush()
    }

    /// The files that packets were written to, oldest first.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let count = self.files.len();
        let used = usize::try_from(self.rotations).unwrap_or(usize::MAX).saturating_add(1);
        let first = (self.current + count + 1).saturating_sub(used.min(count)) % count.max(1);
        let order = (0..used.min(count)).map(|number| (first + number) % count);
        order.filter_map(|at| self.files.get(at)?.0.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
