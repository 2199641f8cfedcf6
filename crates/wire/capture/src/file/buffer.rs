//! The one buffer of a reader.

use std::io::{self, Read};

/// Size of the buffer at the start: small enough to stay in a core's second-level
/// cache, so that what was copied from the kernel is read from there.
const START: usize = 256 << 10;

/// Bytes of `source`, as many as asked for at a time.
#[derive(Debug)]
pub(super) struct Buffer<R> {
    source: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the source before `start`.
    position: u64,
    /// Whether what was taken stays where it is, so that nothing is read.
    held: bool,
}

impl<R: Read> Buffer<R> {
    pub(super) fn new(source: R) -> Self {
        Buffer { source, bytes: vec![0; START], start: 0, end: 0, position: 0, held: false }
    }

    /// What is in the buffer.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Bytes of the source that were taken.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Has at least `need` bytes in the buffer, fewer only at the end of the source;
    /// returns how many there are.
    #[inline]
    pub(super) fn fill(&mut self, need: usize) -> io::Result<usize> {
        let have = self.end - self.start;
        if have >= need || self.held { Ok(have) } else { self.read(need) }
    }

    #[cold]
    fn read(&mut self, need: usize) -> io::Result<usize> {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if need > self.bytes.len() {
            self.bytes.resize(need, 0);
        }
        while self.end < need {
            match self.source.read(&mut self.bytes[self.end..]) {
                Ok(0) => break,
                Ok(count) => self.end += count.min(self.bytes.len() - self.end),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.end)
    }

    /// Takes `count` bytes that are in the buffer; returns where they begin.
    #[inline]
    pub(super) fn take(&mut self, count: usize) -> usize {
        let start = self.start;
        self.start = (start + count).min(self.end);
        self.position += (self.start - start) as u64;
        start
    }

    /// From now on nothing is read, until [`Buffer::release`]: what was taken stays.
    pub(super) fn hold(&mut self) {
        self.held = true;
    }

    /// Reads again; what was taken is gone at the next [`Buffer::fill`].
    pub(super) fn release(&mut self) {
        self.held = false;
    }

    /// All of the buffer, of which [`Buffer::take`] gives places.
    #[inline]
    pub(super) fn all(&self) -> &[u8] {
        &self.bytes
    }

    /// Skips `count` bytes, which need not fit into the buffer; returns how many there
    /// were.
    pub(super) fn skip(&mut self, count: usize) -> io::Result<usize> {
        if self.held {
            return Ok(0);
        }
        let mut left = count;
        while left > 0 {
            let have = self.fill(left.min(START))?;
            if have == 0 {
                break;
            }
            let count = have.min(left);
            self.take(count);
            left -= count;
        }
        Ok(count - left)
    }
}
