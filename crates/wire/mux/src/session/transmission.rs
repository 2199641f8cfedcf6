//! What a session gives to its connections, and where new ones go on.

use super::{MuxError, Session};

impl Session {
    /// Bytes of the peer that have arrived: where a new connection goes on.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// A new connection has begun, the only one; the peer has received this much.
    ///
    /// # Errors
    /// Less than it has acknowledged, or more than it was sent.
    pub fn resume(&mut self, offset: u64) -> Result<(), MuxError> {
        self.log.resume(offset)
    }

    /// A connection has broken: what was not acknowledged goes to the others again.
    pub fn rewind(&mut self) {
        self.log.rewind();
    }

    /// The offset of [`Session::outgoing`].
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.log.offset()
    }

    /// Bytes that no connection has been given yet, or not again.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.log.unsent()
    }

    /// The next bytes for a connection.
    #[must_use]
    pub fn outgoing(&self) -> &[u8] {
        self.log.next()
    }

    /// A connection was given so many bytes.
    pub fn transmitted(&mut self, count: usize) {
        self.log.sent(count);
    }

    /// Bytes that are kept until they are acknowledged.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.log.len()
    }
}
