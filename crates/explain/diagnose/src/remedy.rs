//! Remedies for what probably limited the transfer.
//!
//! With one cause, they are that cause's, best first. Where several are likely, what
//! helps under all of them comes first, and no gain is promised unless the cause is sure:
//! a prediction that holds under one cause is wrong under another.

use crate::{boxes, causes, causes::Observed, next_limit::NextLimit};
use record::{Confidence, Limit, Measurement, Probability, Remedy, RemedyCommand};
use std::mem::discriminant;
use units::{BitRate, ByteCount, Rtt};

/// The posterior probability from which remedies consider a cause.
pub(crate) const LIKELY: f64 = 0.15;

/// A path to tune for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    /// The bottleneck's rate.
    pub rate: BitRate,
    /// The RTT without queueing delay.
    pub rtt: Rtt,
    /// The bottleneck's queue; zero if unknown.
    pub queue: ByteCount,
}

impl Goal {
    /// The goal that the lab's path sets; `None` outside a lab.
    #[must_use]
    pub fn of_path(m: &Measurement) -> Option<Self> {
        let path = m.path.as_ref()?;
        let rate = path.rate_bps.filter(|rate| *rate > BitRate::ZERO)?;
        let queue = path.queue_bytes.unwrap_or(model::bdp(rate, path.rtt));
        (path.rtt > Rtt::ZERO).then_some(Goal { rate, rtt: path.rtt, queue })
    }
}

/// The remedies for `limit` alone.
pub(crate) fn of(limit: Limit, goal: Option<&Goal>, o: &Observed<'_>) -> Vec<Remedy> {
    causes::of(limit).remedies(&NextLimit::new(goal, *o))
}

/// The remedies for a posterior, in this order: those that help under more of the likely
/// causes, then those of the more probable cause, then as the cause lists them.
pub(crate) fn of_posterior(
    posterior: &[Probability],
    confidence: Option<Confidence>,
    goal: Option<&Goal>,
    o: &Observed<'_>,
) -> Vec<Remedy> {
    let mut likely: Vec<&Probability> = posterior.iter().filter(|p| is_likely(p)).collect();
    likely.sort_by(|one, other| other.probability.total_cmp(&one.probability));
    let mut listed: Vec<(usize, Remedy)> = Vec::new();
    for cause in &likely {
        for remedy in of(cause.limit, goal, o) {
            match listed.iter_mut().find(|(_, known)| is_same(known, &remedy)) {
                Some((helps, _)) => *helps += 1,
                None => listed.push((1, remedy)),
            }
        }
    }
    // Stable: within one count, the more probable cause's remedies stay first.
    listed.sort_by_key(|(helps, _)| std::cmp::Reverse(*helps));
    let is_sure = confidence == Some(Confidence::Sure);
    // What costs most comes last, and only where the cause is certain.
    let boxes = match likely.as_slice() {
        [only] if is_sure => boxes::remedy(only.limit, &NextLimit::new(goal, *o)),
        _ => None,
    };
    listed.extend(boxes.map(|remedy| (likely.len(), remedy)));
    let remedies = listed.into_iter().map(|(helps, remedy)| {
        let partial = helps < likely.len();
        if is_sure && !partial { remedy } else { unpromised(remedy, partial) }
    });
    remedies.collect()
}

/// Returns true if remedies consider a cause.
pub(crate) fn is_likely(p: &Probability) -> bool {
    p.probability >= LIKELY && p.limit != Limit::Unknown
}

/// Returns true if two remedies change the same thing, be it to different values.
fn is_same(one: &Remedy, other: &Remedy) -> bool {
    let same_command = match (&one.command, &other.command) {
        (RemedyCommand::Other(one), RemedyCommand::Other(other)) => one == other,
        (one, other) => discriminant(one) == discriminant(other),
    };
    same_command && one.place == other.place && one.setting == other.setting
}

fn unpromised(remedy: Remedy, partial: bool) -> Remedy {
    if remedy.expects_bps.is_none() {
        return remedy;
    }
    let why = if partial {
        "no prediction: this helps against only one of the likely causes"
    } else {
        "no prediction: the cause is likely, not certain"
    };
    Remedy { expects_bps: None, why: why.to_owned(), ..remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example;

    fn p(limit: Limit, probability: f64) -> Probability {
        Probability { limit, probability }
    }

    fn lossy() -> Example {
        let mut example = Example::new(5.0, 80.0).on_path(100);
        example.e.loss = Some(0.001);
        example
    }

    fn commands(posterior: &[Probability], confidence: Confidence) -> Vec<(String, bool)> {
        let example = lossy();
        let goal = Goal::of_path(&example.m);
        let found = of_posterior(posterior, Some(confidence), goal.as_ref(), &example.observed());
        found.iter().map(|r| (r.command.to_string(), r.expects_bps.is_some())).collect()
    }

    #[test]
    fn what_helps_under_every_likely_cause_comes_first() {
        let alone = commands(&[p(Limit::Policer, 1.0)], Confidence::Likely);
        assert_eq!(alone, [("-b 4750kbit".to_owned(), false)]);
        // BBR helps after an overshoot and under loss, a longer test only after an overshoot.
        let both = [p(Limit::CongestionAvoidance, 0.6), p(Limit::Loss, 0.3)];
        let names: Vec<String> =
            commands(&both, Confidence::Likely).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.first().map(String::as_str), Some("-C bbr"), "{names:?}");
        assert!(names.contains(&"-t 40".to_owned()) && names.contains(&"-P 8".to_owned()));
    }

    #[test]
    fn boxes_are_named_last_and_only_for_a_sure_cause() {
        let boxes = |posterior: &[Probability], confidence| {
            let all = commands(posterior, confidence);
            all.iter().position(|(name, _)| name.contains("boost plan")).map(|at| (at, all.len()))
        };
        let loss = [p(Limit::Loss, 0.97)];
        let (at, count) = boxes(&loss, Confidence::Sure).unwrap();
        assert_eq!(at + 1, count);
        assert_eq!(boxes(&loss, Confidence::Likely), None);
        let both = [p(Limit::Loss, 0.6), p(Limit::ReceiveWindow, 0.4)];
        assert_eq!(boxes(&both, Confidence::Sure), None);
        assert_eq!(boxes(&[p(Limit::Policer, 1.0)], Confidence::Sure), None);
    }

    #[test]
    fn a_gain_is_promised_only_for_a_sure_cause() {
        let one = [p(Limit::Loss, 0.97)];
        assert!(commands(&one, Confidence::Sure).iter().all(|(_, promised)| *promised));
        assert!(commands(&one, Confidence::Likely).iter().all(|(_, promised)| !promised));
    }

    #[test]
    fn causes_below_the_threshold_have_no_remedies() {
        let found = commands(&[p(Limit::Loss, 0.14)], Confidence::Likely);
        assert!(found.is_empty(), "{found:?}");
        let unknown = commands(&[p(Limit::Unknown, 0.9)], Confidence::Likely);
        assert!(unknown.is_empty() && !is_likely(&p(Limit::Loss, f64::NAN)), "{unknown:?}");
        assert_eq!(commands(&[p(Limit::Policer, 0.15)], Confidence::Likely).len(), 1);
    }
}
