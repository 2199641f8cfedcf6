//! Validity of an emulated run: whether the emulation was accurate enough.

use crate::direction::DirectionCounters;
use crate::driver_choice::ChosenDriver;
use crate::idle::{IdleRtt, constant_rate};
use hdrhistogram::Histogram;
use link::{Loss, Rate};
use record::{
    Achieved, Drops, Lateness, PathChange, PathReport, RequestedDirection, RequestedPath,
};
use std::time::Duration;
use topology::{PathDirection, PathSpec};
use units::{BitRate, Rtt};

/// Largest 99th percentile of the release delay of a valid run: 2 ms, or 5 % of
/// the RTT if that is more. Beyond it a transport would see another path.
const MAX_LATENESS: Duration = Duration::from_millis(2);

/// Largest error of the idle RTT: 1 ms, or 2 % if that is more.
const IDLE_TOLERANCE: Duration = Duration::from_millis(1);

/// Error of the idle RTT that each mode aims at; stated in the report.
const IDLE_TARGET: Duration = Duration::from_micros(300);
const IDLE_TARGET_ACCURATE: Duration = Duration::from_micros(100);

/// Largest relative error of the rate during busy periods.
const RATE_TOLERANCE: f64 = 0.01;

/// Largest difference between the losses and their expected number, in standard
/// deviations.
const MAX_DEVIATIONS: f64 = 5.0;

/// One link, with all that its validity depends on.
pub(crate) struct ValidityCheck<'a> {
    /// As configured at the start.
    pub(crate) path: &'a PathSpec,
    pub(crate) seed: u64,
    pub(crate) accurate: bool,
    pub(crate) driver: &'a ChosenDriver,
    /// Time that was declared not to be covered.
    pub(crate) omit: Option<Duration>,
    /// From when on the run is covered; `None` if it ended before.
    pub(crate) covered_from: Option<Duration>,
    pub(crate) idle_rtt: Option<IdleRtt>,
    pub(crate) changes: &'a [PathChange],
    /// Of this link alone.
    pub(crate) per_direction: Vec<&'a DirectionCounters>,
    /// Packet trains that devices dropped.
    pub(crate) dropped: u64,
    /// CPU use of the busiest emulator thread, as a share of a core.
    pub(crate) cpu: f64,
}

impl ValidityCheck<'_> {
    pub(crate) fn report(&self) -> PathReport {
        let achieved = self.achieved();
        let reasons = self.reasons(&achieved);
        PathReport { valid: reasons.is_empty(), reasons, achieved, cpu: self.cpu, ..self.asked() }
    }

    /// The configured path, and what is known before the first transfer.
    pub(crate) fn asked(&self) -> PathReport {
        let path = self.path;
        let [up, down] = path.directions().map(|direction| RequestedDirection {
            rate_bps: direction.rate(),
            delay_ms: direction.delay().millis_f64(),
            queue: direction.queue_in_words(),
            effects: direction.effects(),
        });
        let meant = if self.accurate { IDLE_TARGET_ACCURATE } else { IDLE_TARGET };
        PathReport {
            rate_bps: path.rate(),
            rtt: path.rtt(),
            loss: path.directions()[0].mean_loss(),
            queue: path.directions()[0].queue_in_words(),
            queue_bytes: Some(path.directions()[0])
                .filter(|up| !up.counts_packets() && up.rate().is_some())
                .map(PathDirection::queue_bytes),
            overhead_bytes: path.overhead(),
            mtu_bytes: path.mtu(),
            seed: self.seed,
            valid: true,
            reasons: Vec::new(),
            asked: RequestedPath {
                link: path.to_spec(),
                up,
                down,
                accurate: self.accurate,
                omit_s: self.omit.unwrap_or_default().as_secs_f64(),
                driver: self.driver.driver,
                driver_reason: self.driver.reason.clone(),
                mean_rtt_ms: millis(path.mean_rtt()),
                idle_rtt_within_ms: millis(meant),
                changes: self.changes.to_vec(),
            },
            achieved: self.idle(),
            cpu: 0.0,
        }
    }

    /// The facts known before the first transfer.
    fn idle(&self) -> Achieved {
        let idle = self.idle_rtt;
        Achieved {
            idle_rtt_ms: idle.map(|idle| millis(idle.rtt)),
            idle_rtt_error_ms: idle.and_then(|idle| idle.standard_error).map(millis),
            ..Achieved::default()
        }
    }

    fn achieved(&self) -> Achieved {
        let mut did = self.idle();
        did.drops.unintended = self.dropped;
        did.from_s = self.covered_from.unwrap_or_default().as_secs_f64();
        let (mut busiest, mut expected, mut sent) = (Duration::ZERO, 0.0, 0);
        for totals in &self.per_direction {
            let counters = totals.counters;
            let gone = counters.lost + counters.burst_lost + counters.blackhole_lost;
            did.packets += counters.sent - gone;
            did.bytes += counters.sent_bytes;
            did.lost += counters.lost;
            did.drops = Drops {
                queue: did.drops.queue + counters.queue_drops,
                aqm: did.drops.aqm + counters.aqm_drops,
                policer: did.drops.policer + counters.policed,
                too_long: did.drops.too_long + counters.too_long,
                bursts: did.drops.bursts + counters.burst_lost,
                blackhole: did.drops.blackhole + counters.blackhole_lost,
                unintended: did.drops.unintended + totals.refused + totals.unreadable,
            };
            did.marked += counters.marked;
            did.duplicated += counters.duplicated;
            did.corrupted += counters.corrupted;
            did.reordered += counters.reordered;
            did.lateness_us = worse(did.lateness_us, &totals.lateness);
            expected += counters.loss_expected;
            sent += counters.sent;
            if totals.busy > busiest {
                busiest = totals.busy;
                did.rate_bps = Some(BitRate::of(totals.busy_bytes, totals.busy));
            }
        }
        if sent > 0 {
            #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
            let share = |lost: f64| Some(lost / sent as f64);
            #[expect(clippy::cast_precision_loss, reason = "as above")]
            let lost = did.lost as f64;
            (did.loss, did.loss_expected) =
                (share(lost), self.long_term_loss().or(share(expected)));
        }
        did
    }

    /// The mean of the loss models of the packets sent; `None` where it changes or is that of
    /// listed packets. The draws of a Gilbert-Elliott model depend on its states, which differ
    /// from run to run.
    fn long_term_loss(&self) -> Option<f64> {
        let [up, down] = self.path.directions();
        let is_list = [up, down]
            .iter()
            .any(|at| matches!(at.config().loss, Loss::List(_) | Loss::DataList(_)));
        if is_list || !self.changes.is_empty() || self.path.has_schedule() {
            return None;
        }
        let ratios = [up, down].map(|direction| direction.mean_loss().fraction());
        let [up, down] = ratios;
        if (up - down).abs() < f64::EPSILON {
            return Some(up);
        }
        let (lost, sent) = self.per_direction.iter().fold((0.0, 0.0), |(lost, sent), totals| {
            let ratio = ratios[usize::from(totals.direction == crate::LinkDirection::Down)];
            #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 packets")]
            let packets = totals.counters.sent as f64;
            (lost + packets * ratio, sent + packets)
        });
        (sent > 0.0).then(|| lost / sent)
    }

    fn reasons(&self, did: &Achieved) -> Vec<String> {
        let mut reasons = Vec::new();
        if let (Some(omit), None) = (self.omit, self.covered_from) {
            let seconds = omit.as_secs_f64();
            reasons.push(format!("the run ended within the {seconds} s that the report omits"));
        }
        if did.drops.unintended > 0 {
            reasons.push(format!(
                "{} packets were lost unintentionally: the machine is too busy to emulate this path",
                did.drops.unintended
            ));
        }
        let uncounted: u64 = self.per_direction.iter().map(|totals| totals.uncounted).sum();
        if uncounted > 0 {
            reasons.push(format!(
                "{uncounted} segmentation-offload packets were treated as one packet each, as happens in tunnels and with IPv6 extension headers: use the TUN driver"
            ));
        }
        let bound = MAX_LATENESS.max(self.path.rtt().duration() / 20);
        if u128::from(did.lateness_us.p99) > bound.as_micros() {
            let (late, most) = (Rtt::from_micros(did.lateness_us.p99), bound.as_secs_f64() * 1e3);
            let cpu = self.cpu * 100.0;
            reasons.push(format!(
                "1 % of the packets were released {late} late or more (limit {most:.1} ms): the machine is too busy to emulate this path (the emulator used {cpu:.0} % of a core)"
            ));
        }
        if let Some(IdleRtt { rtt: idle, .. }) = self.idle_rtt {
            let asked = self.path.rtt().duration();
            if !varies(self.path) && idle.abs_diff(asked) > IDLE_TOLERANCE.max(asked / 50) {
                reasons.push(format!(
                    "the idle RTT was {:.2} ms instead of {}: the machine was busy at the start",
                    idle.as_secs_f64() * 1e3,
                    self.path.rtt()
                ));
            }
        }
        reasons.extend(self.rate_error());
        reasons.extend(self.loss_error());
        reasons
    }

    /// A constant rate is compared with that of the busy periods.
    fn rate_error(&self) -> Option<String> {
        if !self.changes.is_empty() || self.path.has_schedule() || varies(self.path) {
            return None;
        }
        self.per_direction.iter().find_map(|totals| {
            let direction =
                self.path.directions()[usize::from(totals.direction == crate::LinkDirection::Down)];
            let asked = constant_rate(direction).filter(|_| !totals.busy.is_zero())?;
            let did = BitRate::of(totals.busy_bytes, totals.busy);
            let off = (did.as_f64() / asked.as_f64() - 1.0).abs() > RATE_TOLERANCE;
            off.then(|| format!("the bottleneck sent {did} instead of {asked}"))
        })
    }

    fn loss_error(&self) -> Option<String> {
        self.per_direction.iter().find_map(|totals| {
            let counters = totals.counters;
            #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 packets")]
            let off = (counters.lost as f64 - counters.loss_expected).abs();
            // A small number of losses is not normally distributed: it may exceed
            // its mean by as many packets as by deviations (Bernstein). Without
            // variance, half a packet allows for rounding.
            let slack = if counters.loss_variance > 0.0 { MAX_DEVIATIONS } else { 0.5 };
            (off > MAX_DEVIATIONS * counters.loss_variance.sqrt() + slack).then(|| {
                format!(
                    "{} packets were lost at random instead of the expected {:.0}",
                    counters.lost, counters.loss_expected
                )
            })
        })
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Returns true if the configured RTT varies from packet to packet: then neither the RTT
/// nor the spacing of deliveries shows the error of the emulator.
fn varies(path: &PathSpec) -> bool {
    let varies = |direction: &PathDirection| {
        let config = direction.config();
        let traced = matches!(config.rate, Rate::Trace(_));
        config.jitter.is_some() || config.reorder.is_some() || traced
    };
    path.directions().into_iter().any(varies)
}

fn worse(so_far: Lateness, histogram: &Histogram<u64>) -> Lateness {
    Lateness {
        p50: so_far.p50.max(histogram.value_at_quantile(0.5)),
        p99: so_far.p99.max(histogram.value_at_quantile(0.99)),
        max: so_far.max.max(histogram.max()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkDirection;
    use crate::interval_log::IntervalLog;
    use link::Counters;

    /// What a direction did that sent `sent` packets and drew losses with the given sum.
    fn direction(direction: LinkDirection, sent: u64, drawn: f64) -> DirectionCounters {
        DirectionCounters {
            link: 0,
            direction,
            counters: Counters { sent, loss_expected: drawn, ..Counters::default() },
            lateness: Histogram::new(3).unwrap(),
            refused: 0,
            unreadable: 0,
            uncounted: 0,
            busy_bytes: units::ByteCount::ZERO,
            busy: Duration::ZERO,
            samples: Vec::new(),
            intervals: IntervalLog::default(),
        }
    }

    fn report(link: &str) -> PathReport {
        let path: PathSpec = link.parse().unwrap();
        let directions =
            [direction(LinkDirection::Up, 3000, 104.0), direction(LinkDirection::Down, 1000, 20.0)];
        let check = ValidityCheck {
            path: &path,
            seed: 1,
            accurate: false,
            driver: &ChosenDriver::tun("a test"),
            omit: None,
            covered_from: None,
            idle_rtt: None,
            changes: &[],
            per_direction: directions.iter().collect(),
            dropped: 0,
            cpu: 0.0,
        };
        check.report()
    }

    #[test]
    fn the_expected_loss_is_the_configured_one_whatever_states_were_drawn() {
        let expected = |link: &str| report(link).achieved.loss_expected.unwrap();
        let path = report("rate=1gbit,rtt=40ms,loss=ge:1%:30%");
        assert_eq!(path.achieved.loss_expected, Some(path.loss.fraction()));
        assert!(path.asked.up.effects[0].starts_with("loss 3.226 % in bursts"), "{path:?}");
        assert_eq!(path.loss.to_string(), "3.226 %");
        // By the packets of each direction: 3 of 4 up.
        let one = expected("rate=1gbit,rtt=40ms,up.loss=ge:1%:30%");
        assert!((one - 0.75 * 0.03226).abs() < 1e-12, "{one}");
        // A list or a schedule has no mean: what was drawn.
        for link in ["rate=1gbit,rtt=40ms,loss=list:3+7", "rate=1gbit,rtt=40ms,loss=1%,@5s.loss=2%"]
        {
            assert!((expected(link) - 124.0 / 4000.0).abs() < 1e-12, "{link}");
        }
    }

    #[test]
    fn the_configured_mean_of_the_rtt_has_the_mean_of_jitter() {
        let mean = |link: &str| report(link).asked.mean_rtt_ms;
        assert!((mean("rate=1gbit,rtt=40ms") - 40.0).abs() < 1e-6);
        assert!((mean("rate=1gbit,rtt=40ms,jitter=5ms") - 40.0).abs() < 1e-3);
        assert!((mean("rate=1gbit,rtt=40ms,jitter=exponential:5ms") - 50.0).abs() < 1e-6);
        assert!((mean("rate=1gbit,rtt=40ms,down.jitter=exponential:5ms") - 45.0).abs() < 1e-6);
    }
}
