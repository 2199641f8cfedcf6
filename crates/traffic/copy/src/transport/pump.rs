//! Between the queues of a session and the bytes of one connection.

use super::Session;
use crate::CopyError;
use crate::protocol::frame::Decoder;
use crate::protocol::message::Carrier;
use host::clock;
use host::lock::lock;
use std::sync::atomic::Ordering;

/// Frames are gathered until they have so many bytes.
const GATHER_BYTES: usize = 64 << 10;

/// Memory of a message besides its bytes: in a queue that has grown to twice its items, and of
/// the least allocation.
pub(super) const MESSAGE_COST: usize = 256;

/// One connection's frames in both directions.
#[derive(Debug)]
pub(super) struct Pump<'a> {
    session: &'a Session,
    /// What this connection is.
    carrier: Carrier,
    /// This connection carries the control messages.
    carries_control: bool,
    /// Something may be sent: the peer has this connection too.
    is_used: bool,
    out: Vec<u8>,
    written: usize,
    decoder: Decoder,
}

impl<'a> Pump<'a> {
    /// With `is_used`, the peer is known to have this connection; else it is once something
    /// came over it.
    pub(super) fn new(
        session: &'a Session,
        carrier: Carrier,
        is_used: bool,
        carries_control: bool,
    ) -> Self {
        Pump {
            session,
            carrier,
            carries_control,
            is_used,
            out: Vec::new(),
            written: 0,
            decoder: Decoder::default(),
        }
    }

    /// Bytes to write next; empty if there are none now.
    pub(super) fn pending(&mut self) -> &[u8] {
        if self.written == self.out.len() {
            self.gather();
        }
        &self.out[self.written..]
    }

    /// So many of them were written.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.written += bytes;
    }

    fn gather(&mut self) {
        self.out.clear();
        self.written = 0;
        while self.is_used && self.out.len() < GATHER_BYTES {
            let control = if self.carries_control { self.session.control.try_pop() } else { None };
            let Some(frame) = control.or_else(|| self.next_data()) else { break };
            if self.out.is_empty() {
                self.out = frame;
            } else {
                self.out.extend_from_slice(&frame);
            }
        }
    }

    fn next_data(&self) -> Option<Vec<u8>> {
        if !self.session.data_path.includes(self.carrier) {
            return None;
        }
        let mut limiter = lock(&self.session.limiter);
        let Some(limiter) = limiter.as_mut() else { return self.session.data.try_pop() };
        let now = clock::now();
        if !limiter.is_open(now) {
            return None;
        }
        let frame = self.session.data.try_pop()?;
        limiter.sent(now, frame.len());
        Some(frame)
    }

    /// Whether this connection takes anything to send.
    pub(super) fn is_sending(&self) -> bool {
        self.carries_control || self.session.data_path.includes(self.carrier)
    }

    /// Whether the session has room for more of the peer's messages.
    pub(super) fn has_room(&self) -> bool {
        !self.session.incoming.is_full()
    }

    /// Bytes came from the peer. On an error the session has failed.
    pub(super) fn received(&mut self, bytes: &[u8]) {
        self.is_used = true;
        self.session.has_begun.store(true, Ordering::Relaxed);
        self.decoder.push(bytes);
        loop {
            match self.decoder.next_message() {
                Ok(Some(message)) => {
                    // A little more than the queue holds is taken, so this never waits.
                    let cost = self.decoder.last_length() + MESSAGE_COST;
                    if self.session.incoming.force(message, cost).is_err() {
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    self.session.fail(CopyError::Protocol(error.to_string()));
                    return;
                }
            }
        }
    }

    /// Whether all was written that will ever be.
    pub(super) fn is_done(&self) -> bool {
        self.written == self.out.len()
            && self.session.data.is_over()
            && self.session.control.is_over()
    }

    /// Whether the session failed: the connection is of no use any more.
    pub(super) fn has_failed(&self) -> bool {
        self.session.stop.is_raised() || self.session.is_closed.load(Ordering::Relaxed)
    }

    /// The connection ended. What came is still read; where more was to be sent, that fails.
    pub(super) fn ended(&self) {
        self.session.control.close();
        self.session.data.close();
        self.session.incoming.finish();
    }
}
