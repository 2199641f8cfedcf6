//! What sender and receiver tell each other.

use crate::PacketRun;
use units::{Nanos, WindowChange};

/// Most SACK blocks beside timestamps in one segment (RFC 2018 section 3).
pub const MAX_SACK_BLOCKS: usize = 3;

/// Data packets sent back to back, all of the maximum segment size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments {
    /// Which; empty in a window probe.
    pub run: PacketRun,
    /// When they were sent: the timestamp value (RFC 7323).
    pub sent: Nanos,
    /// The newest timestamp value of the receiver's.
    pub echo: Nanos,
    /// They were sent before.
    pub retransmission: bool,
    /// The last of them has PSH: the sender may have nothing to send after it for a while
    /// (RFC 9293 section 3.9.1.2).
    pub pushed: bool,
}

impl Segments {
    /// Some of them: what reached the receiver together. PSH stays with the last packet.
    #[must_use]
    pub const fn part(self, run: PacketRun) -> Self {
        Segments { run, pushed: self.pushed && run.end == self.run.end, ..self }
    }
}

/// An acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The next packet expected: all before it arrived.
    pub next: u64,
    /// Receive window in packets, from `next` on.
    pub window: u64,
    /// Packets that arrived beyond `next`, the newest block first (RFC 2018).
    pub sacks: SackBlocks,
    /// Packets that arrived twice (RFC 2883).
    pub duplicate: PacketRun,
    /// Packets with a CE mark since the connection began (as AccECN counts them).
    pub marked: u64,
    /// What routers granted with the packets that arrived since then (XCP).
    pub granted: WindowChange,
    /// When it was sent.
    pub sent: Nanos,
    /// The sender's timestamp value that the receiver holds (RFC 7323 section 4.3): of
    /// the earliest segment that this one acknowledges in order.
    pub echo: Nanos,
}

/// The SACK blocks of an acknowledgement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [PacketRun; MAX_SACK_BLOCKS],
    count: usize,
}

impl SackBlocks {
    /// Adds a block if there is room and it is not there yet.
    pub(crate) fn push(&mut self, block: PacketRun) {
        if self.count < MAX_SACK_BLOCKS && !self.as_slice().contains(&block) {
            self.blocks[self.count] = block;
            self.count += 1;
        }
    }

    /// The blocks.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[PacketRun] {
        &self.blocks[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psh_stays_with_the_last_packet() {
        let run = PacketRun::new(4, 8);
        let (sent, echo) = (Nanos(1), Nanos(0));
        let burst = Segments { run, sent, echo, retransmission: false, pushed: true };
        assert!(!burst.part(PacketRun::new(4, 7)).pushed);
        assert!(burst.part(PacketRun::new(7, 8)).pushed);
        let single = Segments { pushed: false, ..burst };
        assert!(!single.part(run).pushed);
    }
}
