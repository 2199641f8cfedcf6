//! HyStart++ (RFC 9406): slow start gives way to five round trips of slower growth when the RTT
//! rises, and returns when it falls again.

use crate::Ack;

/// The threshold is an eighth of the last round trip's least RTT, held between these, ns
/// (section 4.3: `MIN_RTT_THRESH`, `MAX_RTT_THRESH`, `MIN_RTT_DIVISOR`).
const THRESHOLD_NS: (u64, u64) = (4_000_000, 16_000_000);
const DIVISOR: u64 = 8;
/// RTT samples of a round trip before they are judged (`N_RTT_SAMPLE`).
const SAMPLES: u32 = 8;
/// Growth in conservative slow start is a quarter (`CSS_GROWTH_DIVISOR`).
const GROWTH_DIVISOR: u64 = 4;
/// Round trips of conservative slow start (`CSS_ROUNDS`).
const ROUNDS: u32 = 5;
/// Packets that one acknowledgement may add where the sender is not paced (`L`).
const LIMIT: u64 = 8;

/// The state of the initial slow start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HyStartPlusPlus {
    /// The packet whose acknowledgement ends the round trip; `None` before the first.
    end: Option<u64>,
    /// Least RTT of the last round trip and of this one, ns.
    last_ns: Option<u64>,
    least_ns: Option<u64>,
    samples: u32,
    /// Acknowledged packets that have yet to count, below `GROWTH_DIVISOR`.
    credit: u64,
    conservative: Option<Conservative>,
}

/// Conservative slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Conservative {
    /// Least RTT of the round trip in which it began, ns.
    baseline_ns: u64,
    /// Round trips of it, that in which it began included.
    rounds: u32,
}

/// What an acknowledgement does to the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// It grows by that many packets.
    By(u64),
    /// Congestion avoidance begins.
    End,
}

impl HyStartPlusPlus {
    /// Judges an acknowledgement in slow start.
    pub(crate) fn observe(&mut self, ack: &Ack) -> Growth {
        if self.end.is_none_or(|end| ack.acked_to > end) {
            self.end = Some(ack.sent_to);
            self.last_ns = self.least_ns.take();
            self.samples = 0;
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                if conservative.rounds > ROUNDS {
                    return Growth::End;
                }
            }
        }
        if let Some(rtt) = ack.rtt {
            let rtt_ns = rtt.nanos();
            self.samples += 1;
            self.least_ns = Some(self.least_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
        }
        self.judge();
        let acked = ack.newly_delivered.min(LIMIT);
        if self.conservative.is_none() {
            return Growth::By(acked);
        }
        self.credit += acked;
        let grown = self.credit / GROWTH_DIVISOR;
        self.credit %= GROWTH_DIVISOR;
        Growth::By(grown)
    }

    fn judge(&mut self) {
        let Some(least_ns) = self.least_ns.filter(|_| self.samples >= SAMPLES) else { return };
        match (self.conservative, self.last_ns) {
            (Some(conservative), _) if least_ns < conservative.baseline_ns => {
                self.conservative = None;
            }
            (None, Some(last_ns)) => {
                let (low, high) = THRESHOLD_NS;
                if least_ns >= last_ns + (last_ns / DIVISOR).clamp(low, high) {
                    self.conservative = Some(Conservative { baseline_ns: least_ns, rounds: 1 });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::ack;
    use units::Rtt;

    /// Growth in each round trip of 100 packets with these RTTs, ms, until slow start ends.
    fn growth(rtts_ms: &[u64]) -> Vec<u64> {
        let mut hystart = HyStartPlusPlus::default();
        let mut acked = 0;
        let mut grown = Vec::new();
        for rtt_ms in rtts_ms {
            let mut round = 0;
            for _ in 0..100 {
                acked += 1;
                let rtt = Some(Rtt::from_micros(rtt_ms * 1_000));
                let seen = Ack { acked_to: acked, sent_to: acked + 99, rtt, ..ack() };
                match hystart.observe(&seen) {
                    Growth::By(packets) => round += packets,
                    Growth::End => return grown,
                }
            }
            grown.push(round);
        }
        grown
    }

    #[test]
    fn a_steady_rtt_grows_by_every_packet() {
        assert_eq!(growth(&[100; 8]), vec![100; 8]);
    }

    #[test]
    fn a_risen_rtt_quarters_growth_for_five_round_trips() {
        let grown = growth(&[100, 113, 113, 113, 113, 113, 113, 113]);
        // Seven packets count in full before the eighth sample.
        assert_eq!(grown, vec![100, 30, 25, 25, 25, 25]);
        assert_eq!(growth(&[100, 112, 112]), vec![100; 3]);
    }

    #[test]
    fn a_fallen_rtt_resumes_slow_start() {
        let grown = growth(&[100, 113, 100, 100]);
        assert_eq!(grown[3], 100, "{grown:?}");
    }
}
