//! Whether an emulated run can be trusted.

use crate::way::Tally;
use hdrhistogram::Histogram;
use link::Rate;
use record::{Achieved, Asked, AskedWay, Drops, Lateness, PathChange, PathReport};
use std::time::Duration;
use topology::{PathSpec, Way};
use units::{BitRate, ByteCount, Rtt};

/// The 99th percentile of lateness that a run may have: 2 ms, or 5 % of the
/// round trip where that is more. Beyond it a transport would see another path.
const LATENESS: Duration = Duration::from_millis(2);

/// How far the idle round trip may be off: 1 ms, or 2 % where that is more.
const IDLE: Duration = Duration::from_millis(1);

/// How close the idle round trip is meant to be, by mode: promised figures,
/// said in the certificate.
const IDLE_MEANT: Duration = Duration::from_micros(300);
const IDLE_MEANT_ACCURATE: Duration = Duration::from_micros(100);

/// How far the rate over busy time may be off.
const RATE: f64 = 0.01;

/// By how many standard deviations the losses may differ from what the model
/// drew with.
const DEVIATIONS: f64 = 5.0;

/// One link, to be certified.
pub(crate) struct Certificate<'a> {
    /// As it was asked at the beginning.
    pub(crate) path: &'a PathSpec,
    pub(crate) seed: u64,
    pub(crate) accurate: bool,
    pub(crate) idle_rtt: Option<Duration>,
    pub(crate) changes: &'a [PathChange],
    /// Of this link alone.
    pub(crate) tallies: Vec<&'a Tally>,
    /// Trains that devices dropped.
    pub(crate) dropped: u64,
    /// Of the emulator's busiest thread, as a share of a core.
    pub(crate) cpu: f64,
}

impl Certificate<'_> {
    pub(crate) fn report(&self) -> PathReport {
        let achieved = self.achieved();
        let reasons = self.reasons(&achieved);
        PathReport { valid: reasons.is_empty(), reasons, achieved, cpu: self.cpu, ..self.asked() }
    }

    /// The path as it was asked, and what is known before the first transfer.
    pub(crate) fn asked(&self) -> PathReport {
        let path = self.path;
        let [up, down] = path.ways().map(|way| AskedWay {
            rate_bps: way.rate(),
            delay_ms: way.delay().millis_f64(),
            queue: way.queue_in_words(),
            effects: way.effects(),
        });
        let meant = if self.accurate { IDLE_MEANT_ACCURATE } else { IDLE_MEANT };
        PathReport {
            rate_bps: path.rate(),
            rtt: path.rtt(),
            loss: path.ways()[0].mean_loss(),
            queue: path.ways()[0].queue_in_words(),
            queue_bytes: Some(path.ways()[0])
                .filter(|up| !up.counts_packets() && up.rate().is_some())
                .map(Way::queue_bytes),
            overhead_bytes: path.overhead(),
            mtu_bytes: path.mtu(),
            seed: self.seed,
            valid: true,
            reasons: Vec::new(),
            asked: Asked {
                link: path.to_spec(),
                up,
                down,
                accurate: self.accurate,
                idle_rtt_within_ms: meant.as_secs_f64() * 1e3,
                changes: self.changes.to_vec(),
            },
            achieved: Achieved { idle_rtt_ms: self.idle_rtt_ms(), ..Achieved::default() },
            cpu: 0.0,
        }
    }

    fn idle_rtt_ms(&self) -> Option<f64> {
        self.idle_rtt.map(|rtt| rtt.as_secs_f64() * 1e3)
    }

    fn achieved(&self) -> Achieved {
        let mut did = Achieved { idle_rtt_ms: self.idle_rtt_ms(), ..Achieved::default() };
        did.drops.unasked = self.dropped;
        let (mut busiest, mut expected, mut sent) = (0, 0.0, 0);
        for tally in &self.tallies {
            let counters = tally.counters;
            let gone = counters.lost + counters.burst_lost + counters.dark_lost;
            did.packets += counters.sent - gone;
            did.bytes += counters.sent_bytes;
            did.lost += counters.lost;
            did.drops = Drops {
                queue: did.drops.queue + counters.queue_drops,
                aqm: did.drops.aqm + counters.aqm_drops,
                policer: did.drops.policer + counters.policed,
                too_long: did.drops.too_long + counters.too_long,
                bursts: did.drops.bursts + counters.burst_lost,
                blackhole: did.drops.blackhole + counters.dark_lost,
                unasked: did.drops.unasked + tally.refused + tally.unreadable,
            };
            did.marked += counters.marked;
            did.duplicated += counters.duplicated;
            did.corrupted += counters.corrupted;
            did.reordered += counters.reordered;
            did.lateness_us = worse(did.lateness_us, &tally.lateness);
            expected += counters.loss_expected;
            sent += counters.sent;
            if tally.busy_ns > busiest {
                busiest = tally.busy_ns;
                let time = Duration::from_nanos(tally.busy_ns);
                did.rate_bps = Some(BitRate::of(ByteCount::from_bytes(tally.busy_bytes), time));
            }
        }
        if sent > 0 {
            #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
            let share = |lost: f64| Some(lost / sent as f64);
            #[expect(clippy::cast_precision_loss, reason = "as above")]
            let lost = did.lost as f64;
            (did.loss, did.loss_expected) = (share(lost), share(expected));
        }
        did
    }

    fn reasons(&self, did: &Achieved) -> Vec<String> {
        let mut reasons = Vec::new();
        if did.drops.unasked > 0 {
            reasons.push(format!(
                "{} packets were lost that nobody asked to lose: the machine is too busy for this path",
                did.drops.unasked
            ));
        }
        let bound = LATENESS.max(self.path.rtt().duration() / 20);
        if u128::from(did.lateness_us.p99) > bound.as_micros() {
            let (late, most) = (Rtt::from_micros(did.lateness_us.p99), bound.as_secs_f64() * 1e3);
            let cpu = self.cpu * 100.0;
            reasons.push(format!(
                "1 % of the packets came {late} late or more, over the {most:.1} ms allowed: the machine is too busy for this path (the emulator used {cpu:.0} % of a core)"
            ));
        }
        if let Some(idle) = self.idle_rtt {
            let asked = self.path.rtt().duration();
            if !varies(self.path) && idle.abs_diff(asked) > IDLE.max(asked / 50) {
                reasons.push(format!(
                    "the idle round trip was {:.2} ms where {} were asked: the machine was busy at the start",
                    idle.as_secs_f64() * 1e3,
                    self.path.rtt()
                ));
            }
        }
        reasons.extend(self.wrong_rate());
        reasons.extend(self.wrong_loss());
        reasons
    }

    /// A rate that stays the same is checked over the time it was used.
    fn wrong_rate(&self) -> Option<String> {
        if !self.changes.is_empty() || self.path.has_schedule() || varies(self.path) {
            return None;
        }
        self.tallies.iter().find_map(|tally| {
            let way = self.path.ways()[usize::from(tally.way == crate::Way::Down)];
            let asked = constant_rate(way).filter(|_| tally.busy_ns > 0)?;
            let time = Duration::from_nanos(tally.busy_ns);
            let did = BitRate::of(ByteCount::from_bytes(tally.busy_bytes), time);
            let off = (did.as_f64() / asked.as_f64() - 1.0).abs() > RATE;
            off.then(|| format!("the bottleneck carried {did} where {asked} were asked"))
        })
    }

    fn wrong_loss(&self) -> Option<String> {
        self.tallies.iter().find_map(|tally| {
            let counters = tally.counters;
            #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 packets")]
            let off = (counters.lost as f64 - counters.loss_expected).abs();
            // Few losses are not spread as a bell: they may exceed their mean by
            // as many packets as they may by deviations (after Bernstein). Where
            // nothing varies half a packet is what rounding makes.
            let slack = if counters.loss_variance > 0.0 { DEVIATIONS } else { 0.5 };
            (off > DEVIATIONS * counters.loss_variance.sqrt() + slack).then(|| {
                format!(
                    "{} packets were lost where the model expects {:.0}",
                    counters.lost, counters.loss_expected
                )
            })
        })
    }
}

/// A rate that is the same at every moment.
pub(crate) fn constant_rate(way: &Way) -> Option<BitRate> {
    match way.config().rate {
        Rate::Constant(rate) => Some(rate),
        _ => None,
    }
}

/// Whether the round trip differs from packet to packet, as asked: then
/// neither it nor the spacing of deliveries tells of the emulator.
fn varies(path: &PathSpec) -> bool {
    let varies = |way: &Way| {
        let config = way.config();
        let traced = matches!(config.rate, Rate::Trace(_));
        config.jitter.is_some() || config.reorder.is_some() || traced
    };
    path.ways().into_iter().any(varies)
}

fn worse(so_far: Lateness, histogram: &Histogram<u64>) -> Lateness {
    Lateness {
        p50: so_far.p50.max(histogram.value_at_quantile(0.5)),
        p99: so_far.p99.max(histogram.value_at_quantile(0.99)),
        max: so_far.max.max(histogram.max()),
    }
}
