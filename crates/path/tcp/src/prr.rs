//! Proportional Rate Reduction (RFC 9937).

use crate::kernel_version::KernelVersion;

/// The window during one recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prr {
    /// Window when recovery began.
    prior_cwnd: u64,
    ssthresh: u64,
    delivered: u64,
    sent: u64,
    cwnd: u64,
}

impl Prr {
    /// Recovery begins with `prior_cwnd`, to end with `ssthresh`.
    pub(crate) fn new(prior_cwnd: u64, ssthresh: u64) -> Self {
        Prr { prior_cwnd: prior_cwnd.max(1), ssthresh, delivered: 0, sent: 0, cwnd: prior_cwnd }
    }

    pub(crate) const fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// Packets were sent or retransmitted.
    pub(crate) fn on_send(&mut self, packets: u64) {
        self.sent += packets;
    }

    /// An acknowledgement came. `advanced`: it acknowledged in order and detected no
    /// further loss.
    pub(crate) fn on_ack(
        &mut self,
        kernel: KernelVersion,
        delivered: u64,
        in_flight: u64,
        advanced: bool,
    ) {
        if delivered == 0 && self.sent > 0 {
            return;
        }
        self.delivered += delivered;
        let may_send = if in_flight > self.ssthresh {
            (self.ssthresh * self.delivered).div_ceil(self.prior_cwnd).saturating_sub(self.sent)
        } else {
            let owed = self.delivered.saturating_sub(self.sent);
            kernel.recovery_allowance(owed, delivered, advanced).min(self.ssthresh - in_flight)
        };
        // The fast retransmission is sent in any case.
        let least = u64::from(self.sent == 0);
        self.cwnd = in_flight + may_send.max(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sends_half_of_what_is_delivered_and_ends_at_the_threshold() {
        let mut prr = Prr::new(20, 10);
        // One of 20 lost; the other 19 arrive one by one.
        let (mut in_flight, mut sent) = (19, 0);
        for _ in 0..19 {
            in_flight -= 1;
            prr.on_ack(KernelVersion::V6_18, 1, in_flight, false);
            let now = prr.cwnd().saturating_sub(in_flight);
            prr.on_send(now);
            in_flight += now;
            sent += now;
        }
        assert_eq!((in_flight, sent), (10, 10));
    }

    #[test]
    fn below_the_threshold_it_conserves_packets_and_catches_up_when_advancing() {
        let mut prr = Prr::new(20, 10);
        prr.on_ack(KernelVersion::V6_18, 1, 4, false);
        assert_eq!(prr.cwnd(), 5);
        prr.on_send(1);
        prr.on_ack(KernelVersion::V6_18, 2, 3, true);
        assert_eq!(prr.cwnd(), 6);
    }
}
