//! The finding in one sentence: what the limit is, by how much, and what to do. Where
//! another cause is likely, too, a second one names it and the test that would decide.

use crate::{
    causes::{self, Observed},
    deciding::{self, Change},
    phrases, predict, remedy,
};
use record::{Confidence, Limit, Probability};
use units::{Rtt, percent};

/// The sentence for `limit`.
pub(crate) fn of(
    limit: Option<Limit>,
    confidence: Option<Confidence>,
    posterior: &[Probability],
    o: &Observed<'_>,
) -> String {
    let Some(limit) = limit else {
        return without_timers(o);
    };
    let text = causes::of(limit).sentence(o);
    if let Some(alike) = drops_alike(limit, confidence, posterior, o) {
        return text + &alike;
    }
    let other = rival(limit, confidence, posterior);
    text + &other.map_or(String::new(), |other| also_possible(limit, &other, o))
}

/// Where a policer or a shallow queue is not sure: that the other one would drop the same packets,
/// and what tells them apart, unless it was done.
fn drops_alike(
    limit: Limit,
    confidence: Option<Confidence>,
    posterior: &[Probability],
    o: &Observed<'_>,
) -> Option<String> {
    let [policer, queue] = deciding::DROPPING_ALIKE;
    let other = if limit == policer { queue } else { policer };
    let another = rival(limit, confidence, posterior).filter(|rival| rival.limit != other);
    let is_open = deciding::is_dropping_alike(limit) && confidence != Some(Confidence::Sure);
    if !is_open || another.is_some() || deciding::train_ran(o.m) {
        return None;
    }
    let noun = causes::of(other).noun();
    Some(format!(
        " The same packets would be lost to {noun}: a second test that sends a train of datagrams \
         tells the two apart; it needs longhaul at both ends."
    ))
}

/// The most probable other cause, if it is likely and `limit` is not sure.
pub(crate) fn rival(
    limit: Limit,
    confidence: Option<Confidence>,
    posterior: &[Probability],
) -> Option<Probability> {
    let others = posterior.iter().filter(|p| p.limit != limit && remedy::is_likely(p));
    let most = others.max_by(|one, other| one.probability.total_cmp(&other.probability));
    most.copied().filter(|_| confidence != Some(Confidence::Sure))
}

/// ` Also possible: a policer (31 %); a second test with -C bbr would decide.`
fn also_possible(limit: Limit, rival: &Probability, o: &Observed<'_>) -> String {
    let noun = causes::of(rival.limit).noun();
    let share = percent(rival.probability);
    match change(limit, rival.limit, o) {
        Some(options) => {
            format!(" Also possible: {noun} ({share}); a second test with {options} would decide.")
        }
        None => format!(" Also possible: {noun} ({share})."),
    }
}

fn change(limit: Limit, other: Limit, o: &Observed<'_>) -> Option<Change> {
    deciding::deciding_test(limit, other)?.change(o.m, o.e.goodput)
}

fn without_timers(o: &Observed<'_>) -> String {
    let (m, e) = (o.m, o.e);
    if let Some(line) = phrases::line(m, e) {
        return format!("Cannot identify the limit from the samples alone. {line}");
    }
    let mut text = format!(
        "Cannot identify the limit: the sender's TCP_INFO timers are unavailable; {}",
        o.arrived()
    );
    let rtt = e.min_rtt.or(m.path.as_ref().map(|path| path.rtt)).filter(|rtt| *rtt > Rtt::ZERO);
    if let Some((window, rtt, most)) = predict::window_rate(e.window_sum(), rtt, e) {
        text += &if e.streams > 1 {
            format!(
                ", and {} receive windows of {window} in total over {rtt} allow at most {most}",
                e.streams
            )
        } else {
            format!(", and a receive window of {window} over {rtt} allows at most {most}")
        };
    }
    text + "; run longhaul on the sending host to identify it."
}

#[cfg(test)]
mod tests {
    use super::{also_possible, rival};
    use crate::{causes::Observed, example::Example};
    use record::{Confidence, Limit, Probability};

    fn p(limit: Limit, probability: f64) -> Probability {
        Probability { limit, probability }
    }

    #[test]
    fn a_policer_and_a_queue_are_left_to_a_train() {
        let mut example = Example::new(48.0, 20.0);
        let posterior = [p(Limit::Policer, 0.98)];
        let likely = Some(Confidence::Likely);
        let text = |limit, confidence, posterior: &[Probability], o: &Observed<'_>| {
            super::of(Some(limit), confidence, posterior, o)
        };
        let told = text(Limit::Policer, likely, &posterior, &example.observed());
        assert!(told.contains("lost to a shallow queue: a second test"), "{told}");
        let told = text(Limit::ShallowQueue, likely, &posterior, &example.observed());
        assert!(told.contains("lost to a policer: a second test"), "{told}");
        let sure = Some(Confidence::Sure);
        let told = text(Limit::Policer, sure, &posterior, &example.observed());
        assert!(!told.contains("a second test"), "{told}");
        let rival = [p(Limit::Policer, 0.6), p(Limit::Aqm, 0.3)];
        let told = text(Limit::Policer, likely, &rival, &example.observed());
        assert!(told.contains("Also possible") && !told.contains("lost to"), "{told}");
        example.m.decided = Some(record::Decided {
            between: vec![Limit::ShallowQueue, Limit::Policer],
            options: None,
            throughput_bps: None,
            limit: None,
            sentence: String::new(),
        });
        let told = text(Limit::Policer, likely, &posterior, &example.observed());
        assert!(!told.contains("a second test"), "{told}");
    }

    #[test]
    fn the_other_likely_cause_and_the_test_are_named() {
        let example = Example::new(48.0, 20.0);
        let posterior = [p(Limit::Aqm, 0.6), p(Limit::Loss, 0.25), p(Limit::Policer, 0.15)];
        let likely = Some(Confidence::Likely);
        let other = rival(Limit::Aqm, likely, &posterior).unwrap();
        assert_eq!(
            also_possible(Limit::Aqm, &other, &example.observed()),
            " Also possible: random loss (25 %); a second test with -C bbr would decide."
        );
        let shared = p(Limit::SharedBottleneck, 0.3);
        assert_eq!(
            also_possible(Limit::Loss, &shared, &example.observed()),
            " Also possible: other traffic at the bottleneck (30 %)."
        );
        assert_eq!(rival(Limit::Aqm, Some(Confidence::Sure), &posterior), None);
        assert_eq!(rival(Limit::Aqm, likely, &posterior[..1]), None);
        assert_eq!(rival(Limit::Aqm, likely, &[p(Limit::Loss, 0.14)]), None);
        assert_eq!(rival(Limit::Aqm, likely, &[p(Limit::Unknown, 0.4)]), None);
    }
}
