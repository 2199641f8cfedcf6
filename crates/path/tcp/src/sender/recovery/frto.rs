//! F-RTO: was a retransmission timeout needless (RFC 5682 section 3.1), as Linux asks it?
//!
//! ```text
//! timeout: first packet retransmitted ─> it is acknowledged ─> new packets ─┬─> sacked: a loss
//!                       └─────────── a packet sent once arrives ────────────┴─> needless
//! ```

use super::News;
use crate::sender::Sender;
use control::CongestionControl;

/// F-RTO's state in a recovery.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Frto {
    /// The timeout may still turn out to be needless.
    pub(super) active: bool,
    /// Until the next acknowledgement new packets go before those taken as lost.
    pub(super) new_first: bool,
}

impl<C: CongestionControl> Sender<C> {
    /// Takes F-RTO a step further at an acknowledgement after a timeout. Returns true if the
    /// timeout was needless.
    pub(super) fn is_timeout_needless(&mut self, news: &News) -> bool {
        let point = self.recovery.point;
        let (una, nxt) = (self.board.una(), self.board.nxt());
        let frto = &mut self.recovery.frto;
        frto.new_first = false;
        if !frto.active {
            return false;
        }
        if news.first_original.is_some_and(|packet| packet < point) {
            return true;
        }
        if nxt > point {
            frto.active = news.sacked == 0;
        } else if news.advanced && una < point {
            let has_new = self.buffer.written() > nxt && self.edge > nxt;
            *frto = Frto { active: has_new, new_first: has_new };
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Acknowledgement, Application, BufferCheck, BufferSize, KernelVersion, PacketRun,
        SackBlocks, Segments, Sender, SenderConfig, WriteLimit,
    };
    use control::{Algorithm, CongestionControl, Controller};
    use units::{ByteCount, Nanos, Rtt, WindowChange};

    const MS: u64 = 1_000_000;

    fn sent(sender: &mut Sender<Controller>, now: Nanos) -> Vec<(PacketRun, bool)> {
        let all = std::iter::from_fn(|| sender.transmit(now));
        all.map(|Segments { run, retransmission, .. }| (run, retransmission)).collect()
    }

    /// Acknowledges all before `next` and one block; the timestamp is that of the
    /// retransmission, so that F-RTO alone may tell.
    fn acknowledgement(next: u64, block: PacketRun, now: Nanos, echo: Nanos) -> Acknowledgement {
        let mut sacks = SackBlocks::default();
        if !block.is_empty() {
            sacks.push(block);
        }
        let (window, duplicate) = (1_000, PacketRun::default());
        let granted = WindowChange::NONE;
        Acknowledgement { next, window, sacks, duplicate, marked: 0, granted, sent: now, echo }
    }

    /// Ten packets whose acknowledgements do not come, up to the first one after the
    /// timeout; with the times of the timeout and of the acknowledgement.
    fn after_a_timeout() -> (Sender<Controller>, Nanos, Nanos) {
        let config = SenderConfig {
            mss: 1_000,
            application: Application::Bulk,
            limit: WriteLimit::default(),
            buffer: BufferSize::Fixed(ByteCount::from_bytes(1 << 20)),
            buffer_check: BufferCheck::Always,
            max_pacing_rate: None,
            peer_window: 1_000,
            handshake_rtt: Some(Rtt::from_nanos(40 * MS)),
            kernel: KernelVersion::default(),
        };
        let mut sender = Sender::new(config, Algorithm::NewReno.start(1_000, 1));
        sent(&mut sender, Nanos(0));
        let mut now = Nanos(0);
        while sender.info(now).reductions.timeouts == 0 {
            now = sender.next_timeout().unwrap();
            sender.on_timeout(now);
            let resent = sent(&mut sender, now);
            assert!(resent.iter().map(|(run, _)| run.len()).sum::<u64>() <= 1, "{resent:?}");
        }
        let later = now.plus_nanos(40 * MS);
        sender.on_acknowledgement(later, &acknowledgement(1, PacketRun::default(), later, now));
        (sender, now, later)
    }

    #[test]
    fn new_packets_follow_the_first_and_their_arrival_confirms_the_loss() {
        let (mut sender, timeout, now) = after_a_timeout();
        let nxt = 11; // Ten, and a tail loss probe.
        assert_eq!(sent(&mut sender, now), [(PacketRun::new(nxt, nxt + 2), false)]);
        let later = now.plus_nanos(40 * MS);
        let block = PacketRun::new(nxt, nxt + 1);
        sender.on_acknowledgement(later, &acknowledgement(1, block, later, timeout));
        assert_eq!(sent(&mut sender, later).first(), Some(&(PacketRun::new(1, 2), true)));
    }

    #[test]
    fn a_packet_that_was_sent_once_shows_that_nothing_was_lost() {
        let (mut sender, timeout, now) = after_a_timeout();
        sent(&mut sender, now);
        assert!(sender.control().cwnd() < 10);
        sender.on_acknowledgement(
            now.plus_nanos(MS),
            &acknowledgement(2, PacketRun::default(), now, timeout),
        );
        assert_eq!(sender.info(now).reductions.undone, 1);
        assert!(sender.control().cwnd() >= 10);
    }
}
