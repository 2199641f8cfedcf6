//! The family of congestion control that a sender uses, from the bytes in flight of its round
//! trips: how a loss reduces them, how they grow afterwards, and whether they fall without one.
//!
//! | family | after a loss | growth | without a loss |
//! |---|---|---|---|
//! | Reno (RFC 5681) | x 0.5 | one segment in each round trip | never less |
//! | CUBIC (RFC 9438) | x 0.7 | C (t - K)^3 + W, and at least 8/15 segments | never less |
//! | BBR | as before, or x 0.7 beyond 2 % loss (version 3) | by its probes | less after each probe for bandwidth: gains 1.25 and 0.75 (0.9), and a few segments in `ProbeRTT` |
//!
//! CAAI (Yang et al. 2014) and Nebby (Mishra et al. 2024) tell controls apart by the same
//! traits, on paths that they control. Here nothing was prepared, so most short transfers, and
//! those that something else limits, show too little: their family is unknown.

use crate::time_by_cause::Span;
use serde::Serialize;

/// Reductions that are kept of a stream.
const MAX_REDUCTIONS: usize = 512;

/// Least window that tells factors apart: in segments, half a segment is 4 % of it.
const MIN_WINDOW: f64 = 12.0;

/// Round trips that a recovery may take.
const MAX_ROUNDS: u32 = 8;

/// What a congestion control reduces its window to after a loss (Linux's CUBIC: 717/1024), and
/// CUBIC's constant in segments/s^3, and its growth in segments where it is as Reno's.
const RENO_FACTOR: f64 = 0.5;
const CUBIC_FACTOR: f64 = 0.7;
const CUBIC_C: f64 = 0.4;
const CUBIC_MIN_GROWTH: f64 = 8.0 / 15.0;

/// A family of congestion controls.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionFamily {
    /// Additive increase, halved by losses: Reno, NewReno.
    Reno,
    /// CUBIC.
    Cubic,
    /// BBR, of any version.
    Bbr,
}

impl CongestionFamily {
    /// Its name in Linux.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CongestionFamily::Reno => "reno",
            CongestionFamily::Cubic => "cubic",
            CongestionFamily::Bbr => "bbr",
        }
    }
}

/// What a stream shows of its congestion control.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CongestionEvidence {
    /// Round trips in which the window alone was the limit, without loss.
    pub clean_rounds: u32,
    /// Times between losses in which the window followed CUBIC's curve.
    pub cubic_growth: u32,
    /// Of `reductions`, those that fit a factor of 0.7.
    pub cubic_reductions: u32,
    /// How often the time between two falls was that of a probing cycle.
    pub cycles: u32,
    /// How often the bytes in flight fell to a few segments and rose again.
    pub dips: u32,
    /// The median of what remained of the window after a loss.
    pub factor: Option<f64>,
    /// The packets of the last fall.
    pub fall_packets: (u64, u64),
    /// Of `clean_rounds`, how often the bytes in flight fell below those of the one before.
    pub falls: u32,
    /// The family; `None`: unknown.
    pub family: Option<CongestionFamily>,
    /// Of `reductions`, those that fit a factor of 0.5.
    pub halved: u32,
    /// Of `reductions`, those that left the window as it was.
    pub kept: u32,
    /// Times between losses in which the window grew by a segment in each round trip.
    pub linear_growth: u32,
    /// The largest reduction: the packets of the round trips before and after it.
    pub reduction_packets: (u64, u64),
    /// Losses whose reduction was measured.
    pub reductions: u32,
}

/// A round trip, as the estimate needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoundFlight {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// The most segments in flight.
    pub(crate) flight: f64,
    pub(crate) packets: Span,
    /// Whether a loss was repaired in it, or marks were reported.
    pub(crate) is_disturbed: bool,
    /// Whether the receive window or the application limited it.
    pub(crate) is_held: bool,
    /// Recoveries that began in it, and expired timers.
    pub(crate) recoveries: u32,
    pub(crate) timeouts: u32,
}

/// A loss, until its recovery ends.
#[derive(Debug, Clone, Copy)]
struct Loss {
    before: f64,
    packet: u64,
    rounds: u32,
    recoveries: u32,
}

/// The time since a reduction.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    from_ns: u64,
    before: f64,
    first: f64,
    last: f64,
    rounds: u32,
    /// Sums of squared errors: linear, CUBIC, CUBIC with fast convergence.
    errors: [f64; 3],
}

/// Follows the round trips of a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct FamilyEstimate {
    last: Option<RoundFlight>,
    loss: Option<Loss>,
    epoch: Option<Epoch>,
    /// What remained of the window after a loss, and how many segments that was.
    factors: Vec<(f64, f64)>,
    largest_cut: f64,
    reduction_packets: (u64, u64),
    fall_packets: (u64, u64),
    linear_growth: u32,
    cubic_growth: u32,
    clean_rounds: u32,
    falls: u32,
    last_fall: Option<(u64, u32)>,
    cycles: u32,
    dips: u32,
    /// Since when, and from how many segments, the flight is down to a few.
    dip: Option<(u64, f64)>,
}

impl FamilyEstimate {
    pub(crate) fn add(&mut self, round: RoundFlight) {
        if round.timeouts > 0 || (round.is_held && !round.is_disturbed) {
            self.end_epoch();
            (self.last, self.loss, self.dip, self.last_fall) = (None, None, None, None);
            return;
        }
        if round.is_disturbed {
            self.lose(&round);
            return;
        }
        self.clean_rounds = self.clean_rounds.saturating_add(1);
        if let Some(loss) = self.loss.take() {
            self.last_fall = None;
            self.reduce(&loss, &round);
        } else if let Some(last) = self.last {
            self.compare(&last, &round);
            self.grow(&round);
        }
        self.last = Some(round);
    }

    fn lose(&mut self, round: &RoundFlight) {
        self.end_epoch();
        self.dip = None;
        match &mut self.loss {
            Some(loss) => {
                loss.rounds += 1;
                loss.recoveries += round.recoveries;
            }
            None => {
                if let Some(last) = self.last.take() {
                    self.loss = Some(Loss {
                        before: last.flight.max(round.flight),
                        packet: last.packets.packets.0,
                        rounds: 1,
                        recoveries: round.recoveries,
                    });
                }
            }
        }
    }

    fn reduce(&mut self, loss: &Loss, round: &RoundFlight) {
        let is_one = loss.recoveries == 1 && loss.rounds <= MAX_ROUNDS;
        if !is_one || loss.before < MIN_WINDOW {
            return;
        }
        let factor = round.flight / loss.before;
        if self.factors.len() < MAX_REDUCTIONS {
            self.factors.push((factor, loss.before));
        }
        if 1.0 - factor > self.largest_cut {
            self.largest_cut = 1.0 - factor;
            self.reduction_packets = (loss.packet, round.packets.packets.1);
        }
        self.epoch = Some(Epoch {
            from_ns: round.from_ns,
            before: loss.before,
            first: round.flight,
            last: round.flight,
            rounds: 0,
            errors: [0.0; 3],
        });
    }

    /// Whether the flight fell without a loss.
    fn compare(&mut self, last: &RoundFlight, round: &RoundFlight) {
        let few = 5.0;
        match self.dip {
            None if round.flight <= few && last.flight >= 2.0 * few => {
                self.dip = Some((round.from_ns, last.flight));
            }
            Some((since, before)) if round.flight > few => {
                let lasted = round.from_ns.saturating_sub(since);
                let rises = round.flight >= 0.4 * before;
                self.dips += u32::from(rises && (100_000_000..2_000_000_000).contains(&lasted));
                if rises {
                    self.dip = None;
                }
            }
            _ => {}
        }
        if last.flight < MIN_WINDOW || round.flight > FALL * last.flight {
            return;
        }
        self.falls += 1;
        self.fall_packets = (last.packets.packets.0, round.packets.packets.1);
        if let Some((at, rounds)) = self.last_fall {
            let apart = self.clean_rounds - rounds;
            let seconds = round.to_ns.saturating_sub(at) as f64 / 1e9;
            self.cycles += u32::from(CYCLE.contains(&apart) || (1.5..=4.5).contains(&seconds));
        }
        self.last_fall = Some((round.to_ns, self.clean_rounds));
    }

    fn grow(&mut self, round: &RoundFlight) {
        let Some(epoch) = &mut self.epoch else { return };
        epoch.rounds += 1;
        epoch.last = round.flight;
        let rounds = f64::from(epoch.rounds);
        let seconds = round.from_ns.saturating_sub(epoch.from_ns) as f64 / 1e9;
        let (first, before) = (epoch.first, epoch.before);
        let cubic = |most: f64| {
            let most = most.max(first);
            let k = ((most - first) / CUBIC_C).cbrt();
            let curve = CUBIC_C * (seconds - k).powi(3) + most;
            curve.max(first + rounds * CUBIC_MIN_GROWTH)
        };
        let models =
            [first + rounds, cubic(before), cubic(before * f64::midpoint(1.0, CUBIC_FACTOR))];
        for (error, model) in epoch.errors.iter_mut().zip(models) {
            *error += (round.flight - model).powi(2);
        }
    }

    fn end_epoch(&mut self) {
        if let Some(epoch) = self.epoch.take() {
            match epoch.growth() {
                Some(CongestionFamily::Reno) => self.linear_growth += 1,
                Some(CongestionFamily::Cubic) => self.cubic_growth += 1,
                Some(CongestionFamily::Bbr) | None => {}
            }
        }
    }

    /// What was found so far.
    pub(crate) fn evidence(&self) -> CongestionEvidence {
        let mut ended = self.clone();
        ended.end_epoch();
        let count = |fits: &dyn Fn(f64, f64) -> bool| {
            let fitting = self.factors.iter().filter(|(factor, window)| fits(*factor, *window));
            u32::try_from(fitting.count()).unwrap_or(u32::MAX)
        };
        let near = |center: f64| {
            move |factor: f64, window: f64| (factor - center).abs() <= NEAR + 1.0 / window
        };
        let mut factors: Vec<f64> = self.factors.iter().map(|(factor, _)| *factor).collect();
        factors.sort_by(f64::total_cmp);
        let mut evidence = CongestionEvidence {
            family: None,
            reductions: u32::try_from(factors.len()).unwrap_or(u32::MAX),
            factor: factors.get(factors.len() / 2).copied(),
            halved: count(&near(RENO_FACTOR)),
            cubic_reductions: count(&near(CUBIC_FACTOR)),
            kept: count(&|factor, _| factor >= KEPT),
            linear_growth: ended.linear_growth,
            cubic_growth: ended.cubic_growth,
            clean_rounds: self.clean_rounds,
            falls: self.falls,
            cycles: self.cycles,
            dips: self.dips,
            reduction_packets: self.reduction_packets,
            fall_packets: self.fall_packets,
        };
        evidence.family = decide(&evidence);
        evidence
    }
}

/// How far a factor may be from a family's, beside a segment.
const NEAR: f64 = 0.06;

/// What remains of a window that was not reduced.
const KEPT: f64 = 0.87;

/// A round trip with less of the flight before it is a fall.
const FALL: f64 = 0.9;

/// Round trips between two falls of BBR's first version, whose cycle has eight.
const CYCLE: std::ops::RangeInclusive<u32> = 5..=11;

impl Epoch {
    /// The model that the growth follows, if it grew enough to tell.
    fn growth(&self) -> Option<CongestionFamily> {
        let rounds = f64::from(self.rounds);
        if self.rounds < 5 {
            return None;
        }
        let [linear, cubic, fast] = self.errors.map(|error| (error / rounds).sqrt());
        let cubic = cubic.min(fast);
        let allowed = 1.0 + 0.02 * self.last;
        if linear <= allowed && 2.0 * linear < cubic {
            Some(CongestionFamily::Reno)
        } else if cubic <= allowed && 2.0 * cubic < linear {
            Some(CongestionFamily::Cubic)
        } else {
            None
        }
    }
}

/// Losses that must agree, and the share of all that were measured.
const MIN_LOSSES: u32 = 2;
const AGREEING: f64 = 0.7;

/// Cycles between falls that must be those of BBR, and their share.
const MIN_CYCLES: u32 = 2;
const CYCLIC: f64 = 0.5;

/// Round trips without loss in which cycles are looked for: an application's rhythm repeats, too.
const MIN_CLEAN: u32 = 32;

/// Share of the losses up to which a sender that reduces its window may be BBR.
const FEW: f64 = 0.3;

/// The family that all evidence agrees on.
fn decide(found: &CongestionEvidence) -> Option<CongestionFamily> {
    let all = f64::from(found.reductions.max(1));
    let share = |count: u32| f64::from(count) / all;
    let agree = |count: u32| count >= MIN_LOSSES && share(count) >= AGREEING;
    let between = found.falls.saturating_sub(1).max(1);
    let is_cyclic = found.clean_rounds >= MIN_CLEAN
        && found.cycles >= MIN_CYCLES
        && f64::from(found.cycles) / f64::from(between) >= CYCLIC;
    let dipped = found.dips > 0 && found.falls > 0;
    if (is_cyclic || dipped) && share(found.halved + found.cubic_reductions) <= FEW {
        return Some(CongestionFamily::Bbr);
    }
    // A window that losses reduce does not fall without one.
    let falls_often = f64::from(found.falls) > 0.02 * f64::from(found.clean_rounds) + 1.0;
    if falls_often {
        None
    } else if agree(found.halved) && found.linear_growth > 0 && found.cubic_growth == 0 {
        Some(CongestionFamily::Reno)
    } else if agree(found.cubic_reductions) && found.cubic_growth > 0 && found.linear_growth == 0 {
        Some(CongestionFamily::Cubic)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips of 100 ms; `None`: a loss is repaired.
    fn found(flights: impl IntoIterator<Item = Option<f64>>) -> CongestionEvidence {
        let mut estimate = FamilyEstimate::default();
        for (index, flight) in (0..).zip(flights) {
            estimate.add(RoundFlight {
                from_ns: index * 100_000_000,
                to_ns: (index + 1) * 100_000_000,
                flight: flight.unwrap_or(20.0),
                packets: Span { packets: (10 * index + 1, 10 * index + 10), ns: 0 },
                is_disturbed: flight.is_none(),
                is_held: false,
                recoveries: u32::from(flight.is_none()),
                timeouts: 0,
            });
        }
        estimate.evidence()
    }

    /// Two losses that leave `factor` of the window; in between it grows for 30 round trips.
    fn sawtooth(factor: f64, grow: impl Fn(f64) -> f64) -> CongestionEvidence {
        let mut flights = vec![Some(98.0), Some(100.0), None];
        flights.extend((0..30).map(|round| Some(100.0 * factor + grow(f64::from(round)))));
        let last = 100.0 * factor + grow(29.0);
        flights.extend([None, Some(factor * last)]);
        found(flights)
    }

    #[test]
    fn reno_halves_and_grows_by_a_segment() {
        let evidence = sawtooth(0.5, |round| round);
        assert_eq!(evidence.family, Some(CongestionFamily::Reno), "{evidence:?}");
        assert_eq!((evidence.halved, evidence.linear_growth), (2, 1));
        assert_eq!(evidence.reduction_packets.0, 11);
    }

    #[test]
    fn cubic_leaves_seven_tenths() {
        let k = (30.0f64 / 0.4).cbrt();
        let evidence = sawtooth(0.7, |round| 30.0 + 0.4 * (round * 0.1 - k).powi(3));
        assert_eq!(evidence.family, Some(CongestionFamily::Cubic), "{evidence:?}");
        assert_eq!((evidence.cubic_reductions, evidence.cubic_growth), (2, 1));
        // One loss is not enough, and neither is a factor in between.
        let once = found([Some(98.0), Some(100.0), None, Some(70.0)]);
        assert_eq!((once.family, once.reductions), (None, 1));
        assert_eq!(sawtooth(0.6, |round| round).family, None);
    }

    #[test]
    fn bbr_falls_after_each_probe() {
        let cycle = [125.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0];
        let evidence = found((0..40).map(|round| Some(cycle[round % 8])));
        assert_eq!(evidence.family, Some(CongestionFamily::Bbr), "{evidence:?}");
        assert_eq!((evidence.falls, evidence.cycles), (5, 4));
        // Falls without a rhythm are unknown.
        let once = found((0..40).map(|round| Some(if round < 20 { 125.0 } else { 100.0 })));
        assert_eq!((once.family, once.falls), (None, 1));
    }

    #[test]
    fn a_window_that_is_held_shows_nothing() {
        assert_eq!(found((0..50).map(|_| Some(64.0))).family, None);
        assert_eq!(FamilyEstimate::default().evidence(), CongestionEvidence::default());
    }
}
