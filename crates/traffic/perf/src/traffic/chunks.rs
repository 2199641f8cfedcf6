//! The file that is sent, read by a thread of its own: one chunk is read while the one before it
//! is sent. So a slow disk and the network work at the same time, and the thread that carries a
//! connection never waits for a disk.

use crate::stream::Stream;
use host::wait;
use std::{
    fs::File,
    io::{self, Read},
    os::fd::AsFd,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError},
    thread,
    time::Duration,
};

/// Bytes of one read, counted when they are there.
const READ: usize = 64 * 1024;

/// How often a reader that waits for a pipe or a terminal looks for the end of the test.
const DATA_WAIT: Duration = Duration::from_millis(50);

/// Chunks of a stream: one is read, the other one is sent.
pub(super) const CHUNKS: usize = 2;

/// What was read, and its place in the chunk that is being sent.
pub(super) struct Chunks {
    full: Receiver<io::Result<Vec<u8>>>,
    empty: Sender<Vec<u8>>,
    chunk: Vec<u8>,
    sent: usize,
    ended: bool,
}

impl Chunks {
    /// Starts the thread that reads chunks of `chunk_bytes`. It ends when this is dropped, when the
    /// file ends, and when `is_over`, which looks to the sender like the end of the file.
    pub(super) fn read<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        file: &'scope File,
        stream: &'scope Stream,
        chunk_bytes: usize,
        is_over: impl Fn() -> bool + Send + 'scope,
    ) -> io::Result<Self> {
        stream.begin_source();
        let may_wait = !file.metadata()?.is_file();
        let source = FileSource { file, may_wait };
        let (full_sender, full) = mpsc::sync_channel(0);
        let (empty, to_fill) = mpsc::channel::<Vec<u8>>();
        for _ in 0..CHUNKS {
            let _ = empty.send(Vec::new());
        }
        let read = move || {
            for mut chunk in to_fill {
                chunk.resize(chunk_bytes.max(1), 0);
                let filled = source.fill(&mut chunk, &is_over, |bytes| stream.count_source(bytes));
                let is_last = !matches!(filled, Ok(1..));
                let filled = filled.map(|length| {
                    chunk.truncate(length);
                    chunk
                });
                if full_sender.send(filled).is_err() || is_last {
                    return;
                }
            }
        };
        let name = format!("file of stream {}", stream.id);
        thread::Builder::new().name(name).stack_size(128 * 1024).spawn_scoped(scope, read)?;
        Ok(Chunks { full, empty, chunk: Vec::new(), sent: 0, ended: false })
    }

    /// What is to be sent next: empty at the end of the file, `None` if it is not read yet after
    /// waiting for `at_most`.
    pub(super) fn next(&mut self, at_most: Duration) -> io::Result<Option<&[u8]>> {
        if self.sent == self.chunk.len() && !self.ended {
            let full = if at_most.is_zero() {
                self.full.try_recv().map_err(|error| error == TryRecvError::Empty)
            } else {
                let waited = self.full.recv_timeout(at_most);
                waited.map_err(|error| error == RecvTimeoutError::Timeout)
            };
            match full {
                Ok(chunk) => {
                    let sent = std::mem::replace(&mut self.chunk, chunk?);
                    self.sent = 0;
                    self.ended = self.chunk.is_empty();
                    // The first ones are not chunks yet.
                    if sent.capacity() > 0 {
                        let _ = self.empty.send(sent);
                    }
                }
                Err(is_reading) => {
                    self.ended = !is_reading;
                    return Ok((!is_reading).then_some(&[]));
                }
            }
        }
        Ok(Some(&self.chunk[self.sent..]))
    }

    /// The first so many bytes of those were sent.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent = (self.sent + bytes).min(self.chunk.len());
    }
}

/// What the chunks are read from.
struct FileSource<'a> {
    file: &'a File,
    /// Whether a read may wait for whoever writes: from anything but a regular file.
    may_wait: bool,
}

impl FileSource<'_> {
    /// Reads until the chunk is full, the file has no more for now, or the test is over; how much.
    fn fill(
        &self,
        chunk: &mut [u8],
        is_over: &impl Fn() -> bool,
        count: impl Fn(usize),
    ) -> io::Result<usize> {
        let mut filled = 0;
        while filled < chunk.len() && !is_over() {
            if !self.is_readable(filled == 0)? {
                if filled > 0 {
                    return Ok(filled);
                }
                continue;
            }
            let end = chunk.len().min(filled + READ);
            let wanted = end - filled;
            let mut file = self.file;
            match file.read(&mut chunk[filled..end]) {
                Ok(got) => {
                    count(got);
                    filled += got;
                    if got < wanted {
                        return Ok(filled);
                    }
                }
                // Another stream may have read what was there.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                    ) => {}
                // What was read before is sent; the next read fails again.
                Err(_) if filled > 0 => return Ok(filled),
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Whether a read returns at once, after a short wait if `waits`.
    fn is_readable(&self, waits: bool) -> io::Result<bool> {
        let at_most = if waits { DATA_WAIT } else { Duration::ZERO };
        Ok(!self.may_wait || wait::readable([self.file.as_fd()], Some(at_most))? == [true])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::bulk;
    use std::cell::Cell;
    use std::io::{Seek, Write};
    use std::os::fd::OwnedFd;

    #[test]
    fn a_chunk_is_filled_by_several_reads_until_the_file_ends() {
        let mut file = bulk::memory_file(&vec![7; READ + 5]).unwrap();
        file.rewind().unwrap();
        let source = FileSource { file: &file, may_wait: false };
        let counted = Cell::new(0);
        let count = |bytes| counted.set(counted.get() + bytes);
        let mut chunk = vec![0; READ + 1];
        let mut filled = || source.fill(&mut chunk, &|| false, count).unwrap();
        assert_eq!([filled(), filled(), filled()], [READ + 1, 4, 0]);
        assert_eq!(counted.get(), READ + 5);
        assert_eq!(source.fill(&mut chunk, &|| true, count).unwrap(), 0, "the test is over");
        let directory = FileSource { file: &File::open("/").unwrap(), may_wait: true };
        assert!(directory.fill(&mut chunk, &|| false, count).is_err());
    }

    #[test]
    fn a_pipe_that_nothing_is_written_to_is_left_when_the_test_is_over() {
        let (reader, mut writer) = io::pipe().unwrap();
        let file = File::from(OwnedFd::from(reader));
        let source = FileSource { file: &file, may_wait: true };
        let mut chunk = vec![0; READ];
        let looks = Cell::new(0);
        let after_three = || looks.replace(looks.get() + 1) == 3;
        assert_eq!(source.fill(&mut chunk, &after_three, |_| ()).unwrap(), 0);
        // What is there goes at once, and the end of the file is none of the test.
        for bytes in [5, 7] {
            writer.write_all(&chunk[..bytes]).unwrap();
            assert_eq!(source.fill(&mut chunk, &|| false, |_| ()).unwrap(), bytes);
        }
        drop(writer);
        assert_eq!(source.fill(&mut chunk, &|| false, |_| ()).unwrap(), 0);
    }
}
