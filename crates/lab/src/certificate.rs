//! Whether an emulated run can be trusted.

use crate::LabError;
use crate::drive::Tally;
use crate::path::{PathSpec, QueueSpec};
use host::netlink::DeviceDrops;
use link::Queue;
use record::{Achieved, PathReport};
use std::time::Duration;
use units::{BitRate, ByteCount, Rtt};

/// The 99th percentile of lateness that a run may have: 2 ms, or 5 % of the
/// round trip where that is more. Beyond it a transport would see another path.
const LATENESS: Duration = Duration::from_millis(2);

/// How far the idle round trip may be off: 1 ms, or 2 % where that is more.
const IDLE: Duration = Duration::from_millis(1);

/// How far the rate over busy time may be off.
const RATE: f64 = 0.01;

pub(crate) struct Certificate<'a> {
    pub(crate) path: &'a PathSpec,
    pub(crate) seed: u64,
    pub(crate) idle_rtt: Option<Duration>,
    pub(crate) tallies: &'a [Tally],
    pub(crate) dropped: DeviceDrops,
}

impl Certificate<'_> {
    pub(crate) fn report(&self) -> PathReport {
        let achieved = self.achieved();
        let reasons = self.reasons(&achieved);
        PathReport { valid: reasons.is_empty(), reasons, achieved, ..self.asked() }
    }

    /// The path as it was asked, and what is known before the first transfer.
    pub(crate) fn asked(&self) -> PathReport {
        PathReport {
            rate_bps: self.path.rate,
            rtt: self.path.rtt,
            loss: self.path.loss,
            queue: self.path.queue_in_words(),
            queue_bytes: match (self.path.queue, self.path.queue()) {
                (QueueSpec::Packets(_), _) | (_, Queue::Packets(_)) => None,
                (_, Queue::Bytes(bytes)) => Some(bytes),
            },
            overhead_bytes: self.path.overhead,
            mtu_bytes: self.path.mtu,
            seed: self.seed,
            valid: true,
            reasons: Vec::new(),
            achieved: Achieved { idle_rtt_ms: self.idle_rtt_ms(), ..Achieved::default() },
        }
    }

    fn idle_rtt_ms(&self) -> Option<f64> {
        self.idle_rtt.map(|rtt| rtt.as_secs_f64() * 1e3)
    }

    fn achieved(&self) -> Achieved {
        let mut achieved = Achieved {
            idle_rtt_ms: self.idle_rtt_ms(),
            unasked_drops: self.dropped.transmit + self.dropped.receive,
            ..Achieved::default()
        };
        let mut busiest = 0;
        for tally in self.tallies {
            let counters = tally.counters;
            achieved.packets += counters.sent - counters.lost;
            achieved.bytes += counters.sent_bytes;
            achieved.lost += counters.lost;
            achieved.queue_drops += counters.queue_drops;
            achieved.unasked_drops += tally.refused + tally.unreadable;
            achieved.lateness_p50_us =
                achieved.lateness_p50_us.max(tally.lateness.value_at_quantile(0.5));
            achieved.lateness_p99_us =
                achieved.lateness_p99_us.max(tally.lateness.value_at_quantile(0.99));
            achieved.lateness_max_us = achieved.lateness_max_us.max(tally.lateness.max());
            if tally.busy_ns > busiest {
                busiest = tally.busy_ns;
                let time = Duration::from_nanos(tally.busy_ns);
                achieved.rate_bps =
                    Some(BitRate::of(ByteCount::from_bytes(tally.busy_bytes), time));
            }
        }
        achieved
    }

    fn reasons(&self, achieved: &Achieved) -> Vec<String> {
        let mut reasons = Vec::new();
        if achieved.unasked_drops > 0 {
            reasons.push(format!(
                "{} packets were lost that nobody asked to lose: the machine is too busy for this path",
                achieved.unasked_drops
            ));
        }
        let bound = LATENESS.max(self.path.rtt.duration() / 20);
        if u128::from(achieved.lateness_p99_us) > bound.as_micros() {
            let (late, most) =
                (Rtt::from_micros(achieved.lateness_p99_us), bound.as_secs_f64() * 1e3);
            let cpu = self.tallies.iter().map(|t| t.cpu).fold(0.0, f64::max) * 100.0;
            reasons.push(format!(
                "1 % of the packets came {late} late or more, over the {most:.1} ms allowed: the machine is too busy for this path (the emulator used {cpu:.0} % of a core)"
            ));
        }
        if let Some(idle) = self.idle_rtt {
            let asked = self.path.rtt.duration();
            let bound = IDLE.max(asked / 50);
            if idle.abs_diff(asked) > bound {
                reasons.push(format!(
                    "the idle round trip was {:.2} ms where {} were asked: the machine was busy at the start",
                    idle.as_secs_f64() * 1e3,
                    self.path.rtt
                ));
            }
        }
        if let Some(rate) = achieved.rate_bps {
            let error = rate.as_f64() / self.path.rate.as_f64() - 1.0;
            if error.abs() > RATE {
                reasons.push(format!(
                    "the bottleneck carried {rate} where {} were asked",
                    self.path.rate
                ));
            }
        }
        reasons
    }
}

/// Refuses a path whose packets in flight could fill the machine's memory.
pub(crate) fn check_memory(path: &PathSpec, available: Option<ByteCount>) -> Result<(), LabError> {
    // Small packets take more memory than they have bytes; hosts need as much
    // again for their sockets. Half of what is free is the most for the wire.
    match available {
        Some(available) if path.memory() > ByteCount::from_bytes(available.bytes() / 2) => {
            Err(LabError::Memory { needed: path.memory(), available })
        }
        _ => Ok(()),
    }
}
