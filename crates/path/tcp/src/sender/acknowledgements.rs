//! What an acknowledgement changes.

use super::Sender;
use super::recovery::News;
use crate::Acknowledgement;
use crate::scoreboard::Delivered;
use control::{Ack, CongestionControl};
use units::{Nanos, Rtt};

/// Times of the packets that one acknowledgement delivered first.
#[derive(Debug, Clone, Copy, Default)]
struct Arrivals {
    packets: u64,
    /// When the earliest and the latest of them were sent, without ambiguous ones.
    oldest: Option<Nanos>,
    latest: Option<Nanos>,
    /// The first of them, likewise.
    first: Option<u64>,
    /// Packets sent once arrived behind packets that were sent later.
    reordered: bool,
}

impl Arrivals {
    fn add(&mut self, delivered: &Delivered, highest_sacked: u64) {
        let transmission = &delivered.transmission;
        self.packets += transmission.run.len();
        if delivered.ambiguous {
            return;
        }
        let sent = transmission.sent;
        self.oldest = Some(self.oldest.map_or(sent, |oldest| oldest.min(sent)));
        self.latest = Some(self.latest.map_or(sent, |latest| latest.max(sent)));
        let start = transmission.run.start;
        self.first = Some(self.first.map_or(start, |first| first.min(start)));
        self.reordered |= transmission.run.end <= highest_sacked;
    }
}

impl<C: CongestionControl> Sender<C> {
    /// An acknowledgement arrived.
    pub fn on_acknowledgement(&mut self, now: Nanos, ack: &Acknowledgement) {
        // The sum of a late one is an earlier one.
        if ack.sent >= self.echo && ack.granted != self.granted {
            self.control.on_router_feedback(ack.granted - self.granted);
            self.granted = ack.granted;
        }
        self.echo = self.echo.max(ack.sent);
        self.edge = self.edge.max(ack.next.saturating_add(ack.window));
        let prior_una = self.board.una();
        let prior_in_flight = self.board.in_flight();
        let highest_sacked = self.board.highest_sacked();
        let min_rtt = self.rtt.min_ns();

        let (rate, rack) = (&mut self.rate, &mut self.rack);
        let mut note = |arrivals: &mut Arrivals, delivered: &Delivered| {
            rate.on_delivered(now, &(&delivered.transmission).into());
            rack.on_delivered(now, &delivered.transmission, delivered.ambiguous, min_rtt);
            arrivals.add(delivered, highest_sacked);
        };
        let (mut in_order, mut sacked) = (Arrivals::default(), Arrivals::default());
        self.board.acknowledge(ack.next, &mut |delivered| note(&mut in_order, &delivered));
        for block in ack.sacks.as_slice() {
            self.board.sack(*block, &mut |delivered| note(&mut sacked, &delivered));
        }
        if in_order.reordered || sacked.reordered {
            self.rack.on_reordering();
            self.feedback.reorderings += 1;
        }
        self.feedback.acknowledgements += 1;
        self.feedback.duplicates += ack.duplicate.len();

        let newly_acked = self.board.una() - prior_una;
        let latest = in_order.latest.max(sacked.latest);
        self.update_rtt(now, newly_acked, &in_order, &sacked, ack.echo);
        let mut sample = self.rate.sample(now, self.rtt.min_ns());
        if !ack.duplicate.is_empty() {
            let prior = sample.map_or_else(|| self.rate.delivered(), |s| s.prior_delivered);
            self.rack.on_duplicate(prior, self.rate.delivered());
        }
        let newly_lost = self.detect_losses(now);
        if let Some(sample) = &mut sample {
            sample.lost += newly_lost;
        }
        let newly_marked = ack.marked.saturating_sub(self.marked);
        self.marked = self.marked.max(ack.marked);
        let delivered = in_order.packets + sacked.packets;
        let news = News {
            advanced: newly_acked > 0,
            delivered,
            sacked: sacked.packets,
            first_original: [in_order.first, sacked.first].into_iter().flatten().min(),
            lost: newly_lost,
            marked: newly_marked,
            duplicates: ack.duplicate.len(),
            echo: ack.echo,
        };
        self.update_recovery(now, &news);
        self.control.on_ack(&Ack {
            now,
            newly_acked,
            newly_delivered: delivered,
            newly_lost,
            delivered: self.rate.delivered(),
            newly_marked,
            acked_to: self.board.una(),
            sent_to: self.board.nxt(),
            in_flight: self.board.in_flight(),
            prior_in_flight,
            cwnd_limited: self.is_cwnd_limited(),
            rtt: latest.map(|sent| Rtt::from_nanos(now.nanos_since(sent))),
            srtt: self.rtt.smoothed(),
            rate: sample,
            receiver: None,
            phase: self.recovery.phase(),
        });
        if self.buffer.is_blocked() && self.leaves_window_unused(now) {
            self.grow_buffer();
        }
        self.restart_timers(now, newly_acked > 0, latest);
    }

    /// The RTT of the earliest packet acknowledged in order, else of the earliest
    /// sacked, else by timestamps (RFC 7323 section 4.1), which Karn's rule leaves.
    fn update_rtt(
        &mut self,
        now: Nanos,
        newly_acked: u64,
        in_order: &Arrivals,
        sacked: &Arrivals,
        echo: Nanos,
    ) {
        //= https://www.rfc-editor.org/rfc/rfc6298#section-3
        //# RTT samples MUST NOT be made using segments that were retransmitted (and thus for
        //# which it is ambiguous whether the reply was for the first instance of the packet or
        //# a later instance).
        let by_echo = (newly_acked > 0 && echo > Nanos(0)).then_some(echo);
        if let Some(sent) = in_order.oldest.or(sacked.oldest).or(by_echo) {
            self.rtt.update(now.nanos_since(sent));
        }
        if let Some(sent) = in_order.latest.max(sacked.latest) {
            self.rtt.observe(now.nanos_since(sent));
        }
    }

    /// The retransmission timer starts anew when data is acknowledged in order, or when
    /// what was sacked was sent before the first missing packet was (re)transmitted.
    fn restart_timers(&mut self, now: Nanos, advanced: bool, latest: Option<Nanos>) {
        let before_head = || match (latest, self.board.head_sent()) {
            (Some(latest), Some(head)) => latest < head,
            _ => false,
        };
        if advanced || before_head() {
            self.restart_retransmission_timer(now);
            self.schedule_tail_probe(now);
        } else if self.board.sacked() > 0 {
            self.timers.tail_probe = None;
        }
    }
}
