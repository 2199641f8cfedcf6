//! One stream: its phases, and the credit of both directions.
//!
//! ```text
//!   receiving:    consumed          received             limit
//!                 ├── held here ────┼── peer may send ───┤      limit - consumed ≤ window
//! ```

use crate::session::MuxError;
use crate::{INITIAL_WINDOW, MAX_WINDOW};

/// A window that its reader keeps up with grows by this factor.
const GROWTH: u64 = 4;

/// Where one direction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Far's direction, until it says whether the target accepted.
    Opening,
    /// Payload may be sent.
    Flowing,
    /// No more payload.
    Ended,
}

/// A stream at one end.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) sending: Phase,
    pub(crate) receiving: Phase,
    sent: u64,
    send_limit: u64,
    received: u64,
    consumed: u64,
    receive_limit: u64,
    window: u64,
    /// Nobody takes what arrives.
    discards: bool,
}

impl Stream {
    pub(crate) const fn new(sending: Phase, receiving: Phase) -> Self {
        Stream {
            sending,
            receiving,
            sent: 0,
            send_limit: INITIAL_WINDOW,
            received: 0,
            consumed: 0,
            receive_limit: INITIAL_WINDOW,
            window: INITIAL_WINDOW,
            discards: false,
        }
    }

    /// True once neither end sends payload.
    pub(crate) fn has_ended(&self) -> bool {
        self.sending == Phase::Ended && self.receiving == Phase::Ended
    }

    /// True once nothing of it is left here.
    pub(crate) fn is_over(&self) -> bool {
        self.has_ended() && self.received == self.consumed
    }

    /// Credit of the window beyond the initial one.
    pub(crate) const fn borrowed(&self) -> u64 {
        self.window.saturating_sub(INITIAL_WINDOW)
    }

    /// Bytes that may be sent now.
    pub(crate) fn credit(&self) -> u64 {
        if self.sending == Phase::Flowing { self.send_limit.saturating_sub(self.sent) } else { 0 }
    }

    pub(crate) fn sent(&mut self, bytes: u64) -> Result<(), MuxError> {
        if bytes > self.credit() {
            return Err(MuxError::OutOfOrder);
        }
        self.sent += bytes;
        Ok(())
    }

    /// The peer takes bytes up to an offset.
    pub(crate) fn grant(&mut self, limit: u64) -> Result<(), MuxError> {
        if limit < self.send_limit || limit > self.sent.saturating_add(MAX_WINDOW) {
            return Err(MuxError::Credit);
        }
        self.send_limit = limit;
        Ok(())
    }

    /// The peer has announced payload.
    pub(crate) fn announced(&mut self, bytes: u64) -> Result<(), MuxError> {
        if self.receiving != Phase::Flowing {
            return Err(MuxError::OutOfOrder);
        }
        let received = self.received.saturating_add(bytes);
        if received > self.receive_limit {
            return Err(MuxError::CreditExceeded);
        }
        self.received = received;
        if self.discards {
            self.consumed = received;
        }
        Ok(())
    }

    /// Bytes were delivered, and so many were announced that have not arrived. The credit to grant, if
    /// it is worth a frame: the window grows while the reader keeps up with what arrives, to no more than
    /// a quarter of what others have left of the pool (dynamic thresholds, Choudhury and Hahne 1998), so
    /// that slow readers leave something to later streams.
    pub(crate) fn consumed(&mut self, bytes: u64, awaited: u64, free: u64) -> Option<u64> {
        self.consumed = self.consumed.saturating_add(bytes).min(self.received);
        if self.receiving != Phase::Flowing || self.discards {
            return None;
        }
        let is_due = |window: u64| (self.consumed + window) - self.receive_limit >= window / 2;
        if !is_due(self.window) {
            return None;
        }
        let share = free.saturating_add(self.borrowed()) / 4;
        let larger = (self.window * GROWTH).min(MAX_WINDOW).min(INITIAL_WINDOW + share);
        if self.consumed + awaited == self.received && larger > self.window {
            self.window = larger;
        }
        self.receive_limit = self.consumed + self.window;
        Some(self.receive_limit)
    }

    /// True once nobody takes what arrives.
    pub(crate) const fn discards(&self) -> bool {
        self.discards
    }

    /// The rest is discarded: nothing more is delivered, and no credit granted.
    pub(crate) const fn discard(&mut self) {
        self.consumed = self.received;
        self.discards = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WINDOW_POOL;

    fn stream() -> Stream {
        Stream::new(Phase::Flowing, Phase::Flowing)
    }

    #[test]
    fn credit_is_granted_as_bytes_are_delivered() {
        let mut stream = stream();
        assert_eq!(stream.announced(INITIAL_WINDOW + 1), Err(MuxError::CreditExceeded));
        stream.announced(INITIAL_WINDOW).unwrap();
        assert_eq!(stream.announced(1), Err(MuxError::CreditExceeded));
        assert_eq!(stream.consumed(INITIAL_WINDOW / 2 - 1, 0, 0), None);
        let half = INITIAL_WINDOW / 2;
        assert_eq!(
            stream.consumed(1, 0, WINDOW_POOL),
            Some(INITIAL_WINDOW + half),
            "it lags: no growth"
        );
        assert_eq!(stream.consumed(half, 0, 0), Some(2 * INITIAL_WINDOW), "nothing is free");
        stream.announced(INITIAL_WINDOW).unwrap();
        let grown = stream.consumed(INITIAL_WINDOW, 0, WINDOW_POOL);
        assert_eq!(grown, Some(2 * INITIAL_WINDOW + GROWTH * INITIAL_WINDOW));
        assert_eq!(stream.borrowed(), (GROWTH - 1) * INITIAL_WINDOW);
        // A quarter of what the others have left, which is more than it has.
        stream.announced(INITIAL_WINDOW * GROWTH).unwrap();
        stream.consumed(INITIAL_WINDOW * GROWTH, 0, INITIAL_WINDOW * 13);
        assert_eq!(stream.borrowed(), INITIAL_WINDOW * 4);
    }

    #[test]
    fn a_window_grows_though_its_bytes_arrive_in_segments() {
        const SEGMENT: u64 = 1448;
        let mut stream = stream();
        let mut limit = INITIAL_WINDOW;
        let mut sent = 0;
        for _ in 0..3 {
            let mut awaited = limit - sent;
            sent = limit;
            stream.announced(awaited).unwrap();
            while awaited > 0 {
                let count = awaited.min(SEGMENT);
                awaited -= count;
                limit = stream.consumed(count, awaited, WINDOW_POOL).unwrap_or(limit);
            }
        }
        assert!(limit - sent >= 8 * INITIAL_WINDOW, "{}", limit - sent);
    }

    #[test]
    fn forged_credit_is_refused() {
        let mut stream = stream();
        for limit in [0, INITIAL_WINDOW - 1, MAX_WINDOW + 1, u64::MAX] {
            assert_eq!(stream.grant(limit), Err(MuxError::Credit), "{limit}");
        }
        stream.grant(MAX_WINDOW).unwrap();
        assert_eq!(stream.sent(MAX_WINDOW + 1), Err(MuxError::OutOfOrder));
        stream.sent(MAX_WINDOW).unwrap();
        assert_eq!(stream.credit(), 0);
        stream.grant(2 * MAX_WINDOW).unwrap();
        assert_eq!(stream.credit(), MAX_WINDOW);
    }
}
