//! Which leg limits, and by how much.
//!
//! The far leg begins with the near one, so it carries at most as much. Each round gives a ratio of
//! the two rates, which were measured within seconds; the mean of its logarithm has an interval by
//! Student's t. Where the far leg carries nearly all that the near leg does, the near leg limits;
//! where it carries clearly less, what is beyond the near server does. Then the far transfer's own
//! limit, and the queue that stands beyond the near leg, tell the line from what is far away.

use super::words;
use super::{Leg, Round, Transfer};
use model::statistics;
use record::Limit;
use serde::Serialize;

/// The far leg carries nearly all that the near leg does from this ratio on.
pub(super) const EQUAL: f64 = 0.9;
/// Above this the far leg carries more than the near one, which no path does that begins with it.
const ABOVE: f64 = 1.1;
pub(super) const CONFIDENCE: f64 = 0.95;
/// Rounds that an interval needs, and after which more do not help.
pub(super) const MIN_ROUNDS: usize = 3;
pub(super) const MAX_ROUNDS: usize = 5;
/// The increase of the RTT, ms and as a share of the idle RTT, that shows a standing queue, and the
/// factor by which it exceeds the near leg's.
const QUEUE_MS: f64 = 8.0;
const QUEUE_SHARE: f64 = 0.25;
const QUEUE_FACTOR: f64 = 2.0;
/// The far download's rate with six flows by that with one: from the first on, each connection is
/// limited by itself; up to the second, the link is.
const SCALES: f64 = 2.5;
const SCALES_NOT: f64 = 1.4;
/// The share of the rounds that see the same.
const MAJORITY: f64 = 2.0 / 3.0 - 1e-9;

/// What limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Limiting {
    /// The way to the near server: Wi-Fi, or another part of the visitor's network.
    Near,
    /// A saturated link beyond it, which usually is the line.
    Line,
    /// What is farther away: losses, windows over the RTT, the far server.
    Far,
    /// The line, or what is farther away.
    Beyond,
    /// A computer at an end, not the network between.
    Host,
    /// The evidence does not say.
    Unknown,
}

/// A figure and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Estimate {
    pub(super) mean: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// What was found of a direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Direction {
    pub(super) limiting: Limiting,
    /// Geometric means, bit/s.
    pub(super) near_rate: f64,
    pub(super) far_rate: f64,
    /// Far by near.
    pub(super) ratio: Option<Estimate>,
    /// Increase of the RTT under load, ms.
    pub(super) near_increase: Option<f64>,
    pub(super) far_increase: Option<f64>,
    /// What limited most transfers.
    pub(super) near_limit: Option<Limit>,
    pub(super) far_limit: Option<Limit>,
    /// The far rate with several flows by that with one.
    pub(super) far_scaling: Option<f64>,
    /// Rounds that count.
    pub(super) rounds: usize,
    pub(super) sentence: String,
    pub(super) equation: String,
    pub(super) unseen: String,
}

/// The verdict on both directions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Verdict {
    pub(super) download: Option<Direction>,
    pub(super) upload: Option<Direction>,
    /// Median RTTs without load, ms.
    pub(super) near_rtt: Option<f64>,
    pub(super) far_rtt: Option<f64>,
    /// Whether two more rounds may narrow the interval of a direction enough.
    pub(super) more_rounds: bool,
}

/// The verdict on some rounds.
pub(super) fn of(rounds: &[Round]) -> Verdict {
    let median = |of: fn(&Round) -> Leg| {
        let rtts: Vec<f64> = rounds.iter().filter_map(|round| of(round).rtt_idle).collect();
        statistics::median(&rtts)
    };
    let download = direction(rounds, |leg| leg.download, |leg| leg.single);
    let upload = direction(rounds, |leg| leg.upload, |_| None);
    let is_open = |direction: &Option<Direction>| {
        direction.as_ref().is_some_and(|direction| is_straddling(direction.ratio))
    };
    Verdict {
        more_rounds: rounds.len() < MAX_ROUNDS && (is_open(&download) || is_open(&upload)),
        near_rtt: median(|round| round.near),
        far_rtt: median(|round| round.far),
        download,
        upload,
    }
}

/// Whether an interval does not say on which side of [`EQUAL`] the ratio is.
pub(super) fn is_straddling(ratio: Option<Estimate>) -> bool {
    ratio.is_none_or(|ratio| ratio.low < EQUAL && ratio.high >= EQUAL)
}

/// One of a leg's transfers.
type Choice = fn(&Leg) -> Option<Transfer>;

/// A round of one direction.
struct Pair {
    near: Transfer,
    far: Transfer,
    near_rate: f64,
    far_rate: f64,
    near_idle: Option<f64>,
    far_idle: Option<f64>,
    /// The far leg's rate with one flow.
    far_single: Option<f64>,
}

impl Pair {
    fn of(round: &Round, of: Choice, single: Choice) -> Option<Self> {
        let (near, far) = (of(&round.near)?, of(&round.far)?);
        let both = near.valid && far.valid;
        Some(Pair {
            near,
            far,
            near_rate: near.rate.filter(|_| both)?,
            far_rate: far.rate?,
            near_idle: round.near.rtt_idle,
            far_idle: round.far.rtt_idle,
            far_single: single(&round.far).filter(|single| single.valid).and_then(|it| it.rate),
        })
    }

    fn near_increase(&self) -> Option<f64> {
        Some((self.near.rtt_loaded? - self.near_idle?).max(0.0))
    }

    fn far_increase(&self) -> Option<f64> {
        Some((self.far.rtt_loaded? - self.far_idle?).max(0.0))
    }
}

fn direction(rounds: &[Round], transfer: Choice, single: Choice) -> Option<Direction> {
    let pairs: Vec<Pair> =
        rounds.iter().filter_map(|round| Pair::of(round, transfer, single)).collect();
    let logs = |of: fn(&Pair) -> f64| pairs.iter().map(|pair| of(pair).ln()).collect::<Vec<f64>>();
    let near_rate = statistics::mean(&logs(|pair| pair.near_rate))?.exp();
    let far_rate = statistics::mean(&logs(|pair| pair.far_rate))?.exp();
    let median = |of: fn(&Pair) -> Option<f64>| {
        statistics::median(&pairs.iter().filter_map(of).collect::<Vec<f64>>())
    };
    let ratio = statistics::mean_interval(&logs(|pair| pair.far_rate / pair.near_rate), CONFIDENCE)
        .filter(|_| pairs.len() >= MIN_ROUNDS)
        .map(|interval| Estimate {
            mean: far_rate / near_rate,
            low: interval.low.exp(),
            high: interval.high.exp(),
        });
    let mut found = Direction {
        limiting: Limiting::Unknown,
        near_rate,
        far_rate,
        ratio,
        near_increase: median(Pair::near_increase),
        far_increase: median(Pair::far_increase),
        near_limit: most(pairs.iter().map(|pair| pair.near.limit)),
        far_limit: most(pairs.iter().map(|pair| pair.far.limit)),
        far_scaling: median(|pair| Some(pair.far_rate / pair.far_single?)),
        rounds: pairs.len(),
        sentence: String::new(),
        equation: String::new(),
        unseen: String::new(),
    };
    let far_idle = median(|pair| pair.far_idle);
    let limits: Vec<Option<Limit>> = pairs.iter().map(|pair| pair.far.limit).collect();
    found.limiting = limiting(&found, &limits, queue(&found, far_idle));
    found.equation = words::equation(&found);
    found.unseen = words::unseen(found.limiting).to_owned();
    found.sentence = words::sentence(&found);
    Some(found)
}

/// What limits, by the ratio first.
fn limiting(found: &Direction, far_limits: &[Option<Limit>], queue: Option<bool>) -> Limiting {
    let Some(ratio) = found.ratio else { return Limiting::Unknown };
    let is_open = is_straddling(Some(ratio)) && !(ratio.mean >= EQUAL && has_one_queue(found));
    if ratio.low > ABOVE || is_open {
        return Limiting::Unknown;
    }
    if ratio.high < EQUAL {
        return beyond(far_limits, queue, found.far_scaling);
    }
    match found.near_limit.map(place) {
        Some(Bottleneck::Ends) => Limiting::Host,
        _ => Limiting::Near,
    }
}

/// Whether the same queue fills in both transfers: that of the near leg, which both have.
pub(super) fn has_one_queue(found: &Direction) -> bool {
    let (Some(near), Some(far)) = (found.near_increase, found.far_increase) else { return false };
    let alike = 1.0 / QUEUE_FACTOR..=QUEUE_FACTOR;
    near >= QUEUE_MS && alike.contains(&(far / near))
}

/// Where a limit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bottleneck {
    /// A link that carries all it can.
    Link,
    /// The path's losses, or a window over its RTT.
    Distance,
    /// A computer.
    Ends,
    /// It says nothing of the place.
    Nowhere,
}

const fn place(limit: Limit) -> Bottleneck {
    match limit {
        Limit::PathRate | Limit::Aqm | Limit::SharedBottleneck | Limit::Policer => Bottleneck::Link,
        Limit::Loss
        | Limit::ClusteredLoss
        | Limit::Reordering
        | Limit::ReceiveWindow
        | Limit::WindowScaling
        | Limit::FixedWindow
        | Limit::SendBuffer => Bottleneck::Distance,
        Limit::SlowReceiver
        | Limit::Application
        | Limit::Cpu
        | Limit::Memory
        | Limit::Pacing
        | Limit::PacingTimers => Bottleneck::Ends,
        // In seconds, losses of a shallow queue and random ones look alike, and growth is slow
        // after both.
        Limit::ShallowQueue
        | Limit::CongestionAvoidance
        | Limit::Ramp
        | Limit::EcnMarks
        | Limit::AckPath
        | Limit::PathChange
        | Limit::Outage
        | Limit::PmtuBlackHole
        | Limit::Unknown => Bottleneck::Nowhere,
    }
}

/// Whether a queue stands beyond the near leg under load; `None` if it was not measured.
fn queue(found: &Direction, far_idle: Option<f64>) -> Option<bool> {
    let (far, near) = (found.far_increase?, found.near_increase.unwrap_or(0.0));
    let least = QUEUE_MS.max(far_idle? * QUEUE_SHARE);
    Some(far >= least && far >= near * QUEUE_FACTOR)
}

/// The line, or what is far away: the limits of the far transfers, the queue, and whether several
/// flows carry more than one.
fn beyond(limits: &[Option<Limit>], queue: Option<bool>, scaling: Option<f64>) -> Limiting {
    let placed: Vec<Bottleneck> = limits
        .iter()
        .flatten()
        .map(|limit| place(*limit))
        .filter(|place| *place != Bottleneck::Nowhere)
        .collect();
    let share = |wanted: &[Bottleneck]| {
        let count = placed.iter().filter(|place| wanted.contains(place)).count();
        count as f64 / placed.len().max(1) as f64
    };
    // The near leg carried more to the same browser: what limits at an end is at the far one.
    let is_link = share(&[Bottleneck::Link]) >= MAJORITY;
    let is_far = share(&[Bottleneck::Distance, Bottleneck::Ends]) >= MAJORITY;
    // What disagrees with itself says nothing.
    if !placed.is_empty() && !is_link && !is_far {
        return Limiting::Beyond;
    }
    // Losses and windows leave a queue empty; nothing but a saturated link holds one.
    let is_queued = queue == Some(true);
    let scales = scaling.is_some_and(|scaling| scaling >= SCALES);
    let scales_not = scaling.is_some_and(|scaling| scaling <= SCALES_NOT);
    let for_link = [is_link, is_queued, scales_not].contains(&true);
    let for_far = [is_far, scales].contains(&true);
    match (for_link, for_far) {
        (true, false) => Limiting::Line,
        (false, true) => Limiting::Far,
        // A finding on a saturated link outweighs a single flow that was slow to ramp up.
        (true, true) if is_link && is_queued => Limiting::Line,
        _ => Limiting::Beyond,
    }
}

/// The limit of most transfers; `None` if there is none of two thirds.
fn most(limits: impl Iterator<Item = Option<Limit>>) -> Option<Limit> {
    let limits: Vec<Option<Limit>> = limits.collect();
    let count = |limit: Limit| limits.iter().filter(|other| **other == Some(limit)).count();
    let often = limits.iter().flatten().copied().max_by_key(|limit| count(*limit))?;
    (count(often) as f64 >= limits.len() as f64 * MAJORITY).then_some(often)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(rate: f64, rtt_loaded: f64, limit: Limit) -> Transfer {
        let (rate, rtt_loaded, limit) = (Some(rate * 1e6), Some(rtt_loaded), Some(limit));
        Transfer { rate, rtt_loaded, limit, valid: true }
    }

    /// Rounds of downloads: near and far rates in Mbit/s; RTTs under load, of 2 and 40 ms.
    fn rounds(rates: &[(f64, f64)], loaded: (f64, f64), limits: (Limit, Limit)) -> Vec<Round> {
        let leg = |rtt, download| Leg {
            rtt_idle: Some(rtt),
            single: None,
            download: Some(download),
            upload: None,
        };
        rates
            .iter()
            .map(|(near, far)| Round {
                near: leg(2.0, transfer(*near, loaded.0, limits.0)),
                far: leg(40.0, transfer(*far, loaded.1, limits.1)),
            })
            .collect()
    }

    fn found(rates: &[(f64, f64)], loaded: (f64, f64), limits: (Limit, Limit)) -> Direction {
        of(&rounds(rates, loaded, limits)).download.unwrap()
    }

    const EQUAL_RATES: [(f64, f64); 3] = [(50.0, 49.0), (52.0, 50.5), (48.0, 47.5)];
    const SLOWER_FAR: [(f64, f64); 3] = [(300.0, 50.0), (280.0, 49.0), (310.0, 50.5)];

    #[test]
    fn equal_rates_are_the_near_leg() {
        let limits = (Limit::PathRate, Limit::PathRate);
        let found = found(&EQUAL_RATES, (60.0, 100.0), limits);
        assert_eq!(found.limiting, Limiting::Near);
        let ratio = found.ratio.unwrap();
        assert!(ratio.low < 0.98 && ratio.high > 0.98 && ratio.low >= EQUAL, "{ratio:?}");
        assert!(found.equation.contains("0.98"), "{}", found.equation);
        assert!(!found.unseen.is_empty());
    }

    #[test]
    fn a_slower_far_leg_is_the_line_or_far_away() {
        let limiting =
            |loaded, limit| found(&SLOWER_FAR, loaded, (Limit::PathRate, limit)).limiting;
        assert_eq!(limiting((5.0, 200.0), Limit::PathRate), Limiting::Line);
        assert_eq!(limiting((5.0, 42.0), Limit::Aqm), Limiting::Line);
        assert_eq!(limiting((5.0, 41.0), Limit::Loss), Limiting::Far);
        assert_eq!(limiting((5.0, 41.0), Limit::ReceiveWindow), Limiting::Far);
        // A queue alone; nothing; evidence that conflicts.
        assert_eq!(limiting((5.0, 200.0), Limit::Unknown), Limiting::Line);
        assert_eq!(limiting((5.0, 41.0), Limit::Unknown), Limiting::Beyond);
        assert_eq!(limiting((5.0, 200.0), Limit::Loss), Limiting::Beyond);
        assert_eq!(limiting((5.0, 41.0), Limit::ShallowQueue), Limiting::Beyond);
        // The queue of the near leg is no evidence of one beyond it.
        assert_eq!(limiting((150.0, 200.0), Limit::Unknown), Limiting::Beyond);
    }

    #[test]
    fn one_flow_beside_several_tells_a_link_from_its_flows() {
        let limiting = |single: f64, limit| {
            let mut all = rounds(&SLOWER_FAR, (5.0, 41.0), (Limit::PathRate, limit));
            for round in &mut all {
                round.far.single = Some(transfer(single, 41.0, Limit::Unknown));
            }
            of(&all).download.unwrap().limiting
        };
        assert_eq!(limiting(9.0, Limit::ShallowQueue), Limiting::Far);
        assert_eq!(limiting(45.0, Limit::ShallowQueue), Limiting::Line);
        assert_eq!(limiting(45.0, Limit::CongestionAvoidance), Limiting::Line);
        assert_eq!(limiting(25.0, Limit::ShallowQueue), Limiting::Beyond);
        // Evidence that conflicts.
        assert_eq!(limiting(45.0, Limit::Loss), Limiting::Beyond);
        assert_eq!(limiting(9.0, Limit::Aqm), Limiting::Beyond);
    }

    #[test]
    fn rounds_that_disagree_do_not_decide() {
        let mut all = rounds(&SLOWER_FAR, (5.0, 41.0), (Limit::PathRate, Limit::Loss));
        let saturated = rounds(&SLOWER_FAR, (5.0, 41.0), (Limit::PathRate, Limit::PathRate));
        all.extend(saturated);
        assert_eq!(of(&all).download.unwrap().limiting, Limiting::Beyond);
    }

    #[test]
    fn what_the_interval_does_not_tell_is_unknown() {
        let limits = (Limit::PathRate, Limit::PathRate);
        let wide = [(50.0, 49.0), (80.0, 50.0), (40.0, 50.0)];
        let straddling = of(&rounds(&wide, (3.0, 100.0), limits));
        assert_eq!(straddling.download.unwrap().limiting, Limiting::Unknown);
        assert!(straddling.more_rounds);
        // The same queue in both transfers decides, but not against the mean.
        let near = found(&[(50.0, 49.0), (80.0, 70.0), (40.0, 45.0)], (60.0, 100.0), limits);
        assert_eq!(near.limiting, Limiting::Near);
        assert!(near.sentence.contains("same queue"), "{}", near.sentence);
        let slower = found(&[(50.0, 44.0), (80.0, 60.0), (40.0, 36.0)], (60.0, 100.0), limits);
        assert_eq!(slower.limiting, Limiting::Unknown);
        // Two rounds have no interval; faster than its first part no path is.
        assert_eq!(found(&EQUAL_RATES[..2], (60.0, 100.0), limits).limiting, Limiting::Unknown);
        let faster = [(50.0, 90.0), (52.0, 91.0), (51.0, 90.0)];
        let faster = found(&faster, (60.0, 100.0), limits);
        assert_eq!(faster.limiting, Limiting::Unknown);
        assert!(faster.sentence.contains("more"), "{}", faster.sentence);
        let decided = of(&rounds(&EQUAL_RATES, (60.0, 100.0), limits));
        assert!(!decided.more_rounds);
    }

    #[test]
    fn a_computer_is_no_leg() {
        let limits = (Limit::Cpu, Limit::Cpu);
        assert_eq!(found(&EQUAL_RATES, (3.0, 41.0), limits).limiting, Limiting::Host);
    }

    #[test]
    fn disturbed_rounds_do_not_count() {
        let mut all = rounds(&EQUAL_RATES, (60.0, 100.0), (Limit::PathRate, Limit::PathRate));
        if let Some(far) = &mut all[0].far.download {
            far.valid = false;
        }
        let found = of(&all).download.unwrap();
        assert_eq!((found.rounds, found.limiting), (2, Limiting::Unknown));
        assert!(of(&all).more_rounds);
        assert_eq!(of(&all).upload, None);
    }
}
