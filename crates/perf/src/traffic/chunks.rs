//! The file that is sent, read by a thread of its own: one chunk is read while the one before it
//! is sent. So a slow disk and the network work at the same time, and the thread that carries a
//! connection never waits for a disk.

use crate::stream::Stream;
use std::{
    fs::File,
    io::{self, Read},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError},
    thread,
    time::Duration,
};

/// Bytes of one read, counted when they are there.
const READ: usize = 64 * 1024;

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
    /// file ends, and when `is_over`.
    pub(super) fn read<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        file: &'scope File,
        stream: &'scope Stream,
        chunk_bytes: usize,
        is_over: impl Fn() -> bool + Send + 'scope,
    ) -> io::Result<Self> {
        stream.begin_source();
        let (full_sender, full) = mpsc::sync_channel(0);
        let (empty, to_fill) = mpsc::channel::<Vec<u8>>();
        for _ in 0..CHUNKS {
            let _ = empty.send(Vec::new());
        }
        let read = move || {
            for mut chunk in to_fill {
                chunk.resize(chunk_bytes.max(1), 0);
                let filled = fill(file, &mut chunk, &is_over, |bytes| stream.count_source(bytes));
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

/// Reads until the chunk is full, the file has no more for now, or the test is over; how much.
fn fill(
    mut file: &File,
    chunk: &mut [u8],
    is_over: &impl Fn() -> bool,
    count: impl Fn(usize),
) -> io::Result<usize> {
    let mut filled = 0;
    while filled < chunk.len() && !is_over() {
        let end = chunk.len().min(filled + READ);
        let wanted = end - filled;
        match file.read(&mut chunk[filled..end]) {
            Ok(got) => {
                count(got);
                filled += got;
                if got < wanted {
                    return Ok(filled);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // What was read before is sent; the next read fails again.
            Err(_) if filled > 0 => return Ok(filled),
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::bulk;
    use std::cell::Cell;
    use std::io::Seek;

    #[test]
    fn a_chunk_is_filled_by_several_reads_until_the_file_ends() {
        let mut file = bulk::memory_file(&vec![7; READ + 5]).unwrap();
        file.rewind().unwrap();
        let counted = Cell::new(0);
        let count = |bytes| counted.set(counted.get() + bytes);
        let mut chunk = vec![0; READ + 1];
        let mut filled = || fill(&file, &mut chunk, &|| false, count).unwrap();
        assert_eq!([filled(), filled(), filled()], [READ + 1, 4, 0]);
        assert_eq!(counted.get(), READ + 5);
        assert_eq!(fill(&file, &mut chunk, &|| true, count).unwrap(), 0, "the test is over");
        let directory = File::open("/").unwrap();
        assert!(fill(&directory, &mut chunk, &|| false, count).is_err());
    }
}
