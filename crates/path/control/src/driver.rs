//! A driver of one law for unit tests: acknowledgements of a path with a constant RTT.

use crate::law::{Law, Windowed};
use crate::window::Arithmetic;
use crate::{Ack, Congestion, CongestionControl, Phase};
use units::{Nanos, Rtt};

/// An acknowledgement of one packet at time zero.
pub(crate) fn ack() -> Ack {
    Ack {
        now: Nanos(0),
        newly_acked: 1,
        newly_delivered: 1,
        newly_lost: 0,
        delivered: 0,
        newly_marked: 0,
        acked_to: 0,
        sent_to: 0,
        in_flight: 0,
        prior_in_flight: 0,
        cwnd_limited: true,
        rtt: None,
        srtt: None,
        rate: None,
        receiver: None,
        phase: Phase::Open,
    }
}

/// A controller, and the time and packets that have passed.
pub(crate) struct Driver<L> {
    pub(crate) control: Windowed<L>,
    pub(crate) now: Nanos,
    acked: u64,
}

impl<L: Law> Driver<L> {
    /// In congestion avoidance at a window of `cwnd` packets, at ten seconds.
    pub(crate) fn new(law: L, arithmetic: Arithmetic, cwnd: u64) -> Self {
        let control = Windowed::avoiding_congestion(law, arithmetic, cwnd);
        Driver { control, now: Nanos(10_000_000_000), acked: 0 }
    }

    pub(crate) fn cwnd(&self) -> u64 {
        self.control.cwnd()
    }

    /// Congestion by that many losses, none of them: by marks. Recovery ends at once.
    pub(crate) fn congestion(&mut self, lost: u64) {
        let in_flight = self.control.cwnd();
        let congestion = Congestion {
            now: self.now,
            in_flight,
            is_new: true,
            first_lost: self.acked,
            lost,
            sent_to: self.acked + in_flight,
        };
        self.control.on_congestion(&congestion);
        self.control.on_recovery_end(self.now);
    }

    /// A retransmission timeout.
    pub(crate) fn timeout(&mut self) {
        let congestion = Congestion {
            now: self.now,
            in_flight: 0,
            is_new: true,
            first_lost: self.acked,
            lost: self.control.cwnd(),
            sent_to: self.acked,
        };
        self.control.on_retransmission_timeout(&congestion);
    }

    /// One round trip of `rtt_ms`, each packet acknowledged by itself.
    pub(crate) fn round(&mut self, rtt_ms: u64) {
        self.round_by(rtt_ms, 1);
    }

    /// The same with acknowledgements of `each` packets.
    pub(crate) fn round_by(&mut self, rtt_ms: u64, each: u64) {
        let window = self.control.cwnd();
        let rtt = Rtt::from_micros(rtt_ms * 1_000);
        let mut left = window;
        while left > 0 {
            let packets = left.min(each);
            left -= packets;
            self.acked += packets;
            self.now = self.now.plus_nanos(rtt.nanos() * packets / window);
            self.control.on_ack(&Ack {
                now: self.now,
                newly_acked: packets,
                newly_delivered: packets,
                delivered: self.acked,
                acked_to: self.acked,
                sent_to: self.acked + self.control.cwnd(),
                in_flight: self.control.cwnd(),
                prior_in_flight: self.control.cwnd(),
                rtt: Some(rtt),
                srtt: Some(rtt),
                ..ack()
            });
        }
    }
}
