//! The receiver's times, as acknowledgements report them: when packets arrived, and how
//! their one-way delay varies. The clocks of both ends count from different moments, but
//! at the same rate.

use super::packet::{Ack, expand};
use units::{Nanos, Rtt};

/// What is known of the receiver's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// The last time of arrival on the receiver's clock, us.
    arrived_us: u64,
    /// Our time less the receiver's at the first acknowledgement, ns.
    offset_ns: Option<i64>,
    /// The least difference of times of arrival and sending, us, modulo 2^32, and how far
    /// the last one was above it.
    least_us: Option<u32>,
    queueing_us: u32,
}

impl Clocks {
    /// An acknowledgement came. Gives the time on our clock at which its newest packet
    /// arrived, plus what the first acknowledgement took: times between arrivals are exact,
    /// also where acknowledgements are delayed or come together.
    pub(crate) fn on_ack(&mut self, now: Nanos, ack: &Ack<'_>) -> Nanos {
        let delay_us = ack.arrived_us.wrapping_sub(ack.timestamp_us);
        let above_us = delay_us.wrapping_sub(*self.least_us.get_or_insert(delay_us)).cast_signed();
        if above_us < 0 {
            self.least_us = Some(delay_us);
        }
        self.queueing_us = above_us.max(0).cast_unsigned();
        self.arrived_us = expand(ack.arrived_us, self.arrived_us);
        // A day bounds what a peer can claim of its clock; 2^63 ns are 292 years.
        let arrived_ns = self.arrived_us.saturating_mul(1_000).min(1 << 62).cast_signed();
        let offset_ns = now.0.cast_signed().saturating_sub(arrived_ns);
        // A better one would shorten the time since the arrivals before it.
        let offset_ns = *self.offset_ns.get_or_insert(offset_ns);
        Nanos(arrived_ns.saturating_add(offset_ns).max(0).cast_unsigned())
    }

    /// One-way delay of the newest packet above the least.
    pub(crate) fn queueing(&self) -> Option<Rtt> {
        self.least_us.map(|_| Rtt::from_nanos(u64::from(self.queueing_us) * 1_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runs::PacketRun;

    #[test]
    fn arrivals_are_as_far_apart_as_at_the_receiver() {
        let mut clocks = Clocks::default();
        let mut room = Vec::new();
        let mut at = |now_ms: u64, sent_ms: u32, arrived_ms: u32| {
            let ack = Ack::new([PacketRun::new(0, 1)].into_iter(), &mut room, 99).unwrap();
            // The receiver's clock is 1 s ahead of a wrap.
            let arrived_us = (u32::MAX - 999_999).wrapping_add(arrived_ms * 1_000);
            let ack = Ack { timestamp_us: sent_ms * 1_000, arrived_us, ..ack };
            let arrived = clocks.on_ack(Nanos(now_ms * 1_000_000), &ack);
            (arrived.0 / 1_000_000, clocks.queueing().unwrap().nanos() / 1_000_000)
        };
        assert_eq!(at(100, 50, 75), (100, 0));
        // Acknowledgements that wait and come together.
        assert_eq!(at(1_500, 1_000, 1_025), (1_050, 0));
        assert_eq!(at(1_500, 1_010, 1_055), (1_080, 20));
        assert_eq!(at(1_505, 1_450, 1_475), (1_500, 0));
    }
}
