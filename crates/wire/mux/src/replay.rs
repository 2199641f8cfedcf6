//! The bytes of one direction that the peer has not acknowledged: unsent ones, and those in flight,
//! which are retransmitted on the next connection.

use crate::session::MuxError;
use std::collections::VecDeque;

/// An empty buffer keeps no more memory than this.
const KEPT: usize = 64 << 10;

/// ```text
///   start            sent            high           end
///   ├── sent, kept ──┼── to be sent (again) ────────┤
/// ```
///
/// `high` is the largest offset that any connection was given.
#[derive(Debug, Default)]
pub struct ReplayLog {
    bytes: VecDeque<u8>,
    start: u64,
    sent: u64,
    high: u64,
}

impl ReplayLog {
    /// Bytes that are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if everything was acknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The offset up to which everything was acknowledged.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// The offset behind the last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn index(&self, offset: u64) -> usize {
        usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX)
    }

    /// The offset of [`ReplayLog::next`].
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.sent
    }

    /// Everything that was not acknowledged is to be retransmitted.
    pub const fn rewind(&mut self) {
        self.sent = self.start;
    }

    /// Bytes that no connection was given yet, or not again.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.len().saturating_sub(self.index(self.sent))
    }

    /// Adds bytes at the end.
    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// The next bytes for a connection: some of them at least, if there are any.
    #[must_use]
    pub fn next(&self) -> &[u8] {
        let from = self.index(self.sent);
        let (first, second) = self.bytes.as_slices();
        match from.checked_sub(first.len()) {
            None => first.get(from..).unwrap_or_default(),
            Some(from) => second.get(from..).unwrap_or_default(),
        }
    }

    /// A connection was given so many bytes.
    pub fn sent(&mut self, count: usize) {
        let count = count.min(self.unsent());
        self.sent += count as u64;
        self.high = self.high.max(self.sent);
    }

    /// The peer has received everything before an offset.
    ///
    /// # Errors
    /// It goes backwards, or beyond what was sent.
    pub fn acknowledge(&mut self, offset: u64) -> Result<(), MuxError> {
        if offset < self.start {
            return Err(MuxError::Backwards);
        }
        if offset > self.high {
            return Err(MuxError::Forwards);
        }
        let count = self.index(offset).min(self.bytes.len());
        self.bytes.drain(..count);
        self.start = offset;
        self.sent = self.sent.max(offset);
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT {
            self.bytes = VecDeque::new();
        }
        Ok(())
    }

    /// A new connection goes on at an offset.
    ///
    /// # Errors
    /// As [`ReplayLog::acknowledge`].
    pub fn resume(&mut self, offset: u64) -> Result<(), MuxError> {
        self.acknowledge(offset)?;
        self.sent = offset;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_sent_again_from_where_the_peer_says() {
        let mut log = ReplayLog::default();
        log.append(b"abcdef");
        assert_eq!((log.next(), log.unsent()), (&b"abcdef"[..], 6));
        log.sent(4);
        assert_eq!(log.next(), b"ef");
        log.acknowledge(1).unwrap();
        log.acknowledge(1).unwrap();
        assert_eq!(log.acknowledge(0), Err(MuxError::Backwards));
        assert_eq!(log.acknowledge(5), Err(MuxError::Forwards), "it was never sent");
        log.resume(2).unwrap();
        assert_eq!((log.next(), log.len()), (&b"cdef"[..], 4));
        assert_eq!(log.resume(1), Err(MuxError::Backwards));
        assert_eq!(log.resume(5), Err(MuxError::Forwards));
        log.sent(1);
        log.acknowledge(4).unwrap();
        assert_eq!(log.next(), b"ef", "an earlier connection has brought it");
        log.sent(100);
        log.rewind();
        assert_eq!((log.next(), log.offset()), (&b"ef"[..], 4));
        log.sent(1);
        log.acknowledge(6).unwrap();
        assert!(log.is_empty() && log.next().is_empty());
        assert_eq!(log.offset(), 6);
    }

    #[test]
    fn wrapped_bytes_are_all_sent() {
        let mut log = ReplayLog::default();
        let mut all = Vec::new();
        let mut got = Vec::new();
        for round in 0..1000_u32 {
            let bytes = round.to_be_bytes();
            log.append(&bytes);
            all.extend_from_slice(&bytes);
            let next = log.next();
            let count = next.len().min(3 + usize::try_from(round % 3).unwrap());
            got.extend_from_slice(&next[..count]);
            log.sent(count);
            log.acknowledge((got.len() as u64).saturating_sub(7)).unwrap();
        }
        while log.unsent() > 0 {
            let next = log.next().to_vec();
            log.sent(next.len());
            got.extend_from_slice(&next);
        }
        assert!(got == all);
    }
}
