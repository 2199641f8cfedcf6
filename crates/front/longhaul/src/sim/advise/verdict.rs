//! The answer to which congestion control a path is best used with.
//!
//! A control is a candidate if its goodput is not clearly below the best: the ranges overlap, or
//! the medians differ by at most 2 %. Of the candidates, those that harm a CUBIC neighbour by more
//! than another CUBIC flow would (Ware 2019), and 10 points more, are left out unless all do. The one
//! whose queueing delay is clearly the lowest is the answer.

use record::AdvisedControl;
use units::{BitRate, percent, significant};

/// Goodputs within this share are alike.
const ALIKE: f64 = 0.02;

/// Harm beyond that of a CUBIC flow that makes a control unfair.
const UNFAIR: f64 = 0.1;

/// Queueing delays within this many ms are alike.
const ALIKE_MS: f64 = 1.0;

/// The kernel's default.
const DEFAULT: &str = "cubic";

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) best: Option<String>,
    pub(super) sentence: String,
    pub(super) price: String,
}

/// The answer for controls that were run over one path.
pub(super) fn of(controls: &[AdvisedControl]) -> Answer {
    let by_goodput = |a: &&AdvisedControl, b: &&AdvisedControl| {
        a.goodput_bps.median.total_cmp(&b.goodput_bps.median)
    };
    let Some(fastest) = controls.iter().max_by(by_goodput) else {
        return no_winner("no control was run", String::new());
    };
    let alike = |one: &&AdvisedControl| {
        one.goodput_bps.overlaps(&fastest.goodput_bps)
            || one.goodput_bps.median >= fastest.goodput_bps.median * (1.0 - ALIKE)
    };
    let candidates: Vec<&AdvisedControl> = controls.iter().filter(alike).collect();
    let fair = fair_harm(controls);
    let fair_ones: Vec<&AdvisedControl> = candidates
        .iter()
        .filter(|one| fair.is_none_or(|harm| one.harm.median <= harm + UNFAIR))
        .copied()
        .collect();
    let unfair = candidates.len() - fair_ones.len();
    let left = if fair_ones.is_empty() { &candidates } else { &fair_ones };
    let Some(best) = lowest_delay(left) else {
        let names: Vec<&str> = left.iter().map(|one| one.control.as_str()).collect();
        let price = left.first().map_or_else(String::new, |one| price(one, fair));
        return no_winner(&alike_words(&names), price);
    };
    let others = controls.iter().filter(|one| one.control != best.control);
    let sentence = if left.len() == 1 && (unfair == 0 || fair_ones.is_empty()) {
        faster(best, others.max_by(by_goodput))
    } else if left.len() == 1 {
        format!(
            "{}: {}, as much as the fastest to within {}, without more harm to a CUBIC neighbour \
             than another CUBIC flow does.",
            best.control,
            goodput(best),
            percent(1.0 - best.goodput_bps.median / fastest.goodput_bps.median.max(1.0))
        )
    } else {
        format!(
            "{}: {}, which {} of {} controls reach, and the shortest queue of them, {}.",
            best.control,
            goodput(best),
            candidates.len(),
            controls.len(),
            delay(best)
        )
    };
    Answer { best: Some(best.control.clone()), sentence, price: price(best, fair) }
}

/// What another CUBIC flow does to a CUBIC neighbour.
fn fair_harm(controls: &[AdvisedControl]) -> Option<f64> {
    Some(controls.iter().find(|one| one.control == DEFAULT)?.harm.median)
}

/// The only one, or the one whose queueing delay is clearly the lowest.
fn lowest_delay<'a>(candidates: &[&'a AdvisedControl]) -> Option<&'a AdvisedControl> {
    let by_delay = |a: &&&AdvisedControl, b: &&&AdvisedControl| {
        a.queueing_ms.median.total_cmp(&b.queueing_ms.median)
    };
    let best = *candidates.iter().min_by(by_delay)?;
    let clearly = |other: &&AdvisedControl| {
        other.control == best.control
            || !other.queueing_ms.overlaps(&best.queueing_ms)
                && other.queueing_ms.median > best.queueing_ms.median + ALIKE_MS
    };
    candidates.iter().all(clearly).then_some(best)
}

fn no_winner(why: &str, price: String) -> Answer {
    let sentence = format!("No clear winner: {why}.");
    Answer { best: None, sentence, price }
}

fn alike_words(names: &[&str]) -> String {
    let default = if names.contains(&DEFAULT) { ", so keep the default, cubic" } else { "" };
    format!("goodput and queueing delay of {} overlap{default}", names.join(", "))
}

fn faster(best: &AdvisedControl, second: Option<&AdvisedControl>) -> String {
    let beside = second.map_or_else(String::new, |second| {
        format!(", where {}, the next, has {}", second.control, goodput(second))
    });
    format!("{}: {}{beside}.", best.control, goodput(best))
}

fn goodput(one: &AdvisedControl) -> String {
    BitRate::from_bps_f64(one.goodput_bps.median).to_string()
}

fn delay(one: &AdvisedControl) -> String {
    format!("{} ms", significant(one.queueing_ms.median, 2))
}

/// What the control costs others.
fn price(one: &AdvisedControl, fair: Option<f64>) -> String {
    let yardstick = fair
        .filter(|_| one.control != DEFAULT)
        .map_or_else(String::new, |fair| format!(" (another CUBIC flow takes {})", percent(fair)));
    format!(
        "{} takes {} of a CUBIC neighbour's goodput{yardstick}, and keeps the queue at {} (p95).",
        one.control,
        percent(one.harm.median),
        delay(one)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::RunRange;

    fn around(median: f64, spread: f64) -> RunRange {
        RunRange { median, low: median - spread, high: median + spread }
    }

    fn control(name: &str, mbit: f64, delay: f64, harm: f64) -> AdvisedControl {
        AdvisedControl {
            control: name.to_owned(),
            goodput_bps: around(mbit * 1e6, 1e4),
            queueing_ms: around(delay, 0.5),
            retransmitted: around(0.01, 0.001),
            beside_cubic_bps: around(mbit * 5e5, 1e5),
            harm: around(harm, 0.05),
        }
    }

    fn best(controls: &[AdvisedControl]) -> (Option<String>, String) {
        let answer = of(controls);
        (answer.best, answer.sentence)
    }

    #[test]
    fn goodput_decides_then_fairness_then_delay() {
        let lossy = [control("cubic", 12.0, 0.0, 0.5), control("bbr", 90.0, 5.0, 0.55)];
        let (name, sentence) = best(&lossy);
        assert_eq!(name.as_deref(), Some("bbr"), "{sentence}");
        assert!(sentence.contains("cubic, the next, has 12 Mbit/s"), "{sentence}");

        let unfair = [control("cubic", 94.0, 40.0, 0.5), control("bbr", 94.5, 10.0, 0.9)];
        assert_eq!(best(&unfair).0.as_deref(), Some("cubic"), "{}", best(&unfair).1);

        let fair = [control("cubic", 94.0, 40.0, 0.5), control("bbr", 94.5, 10.0, 0.45)];
        let (name, sentence) = best(&fair);
        assert_eq!(name.as_deref(), Some("bbr"));
        assert!(sentence.contains("the shortest queue"), "{sentence}");
    }

    #[test]
    fn an_answer_that_harms_others_is_not_called_harmless() {
        let greedy = [control("cubic", 12.0, 4.0, 0.1), control("bbr", 90.0, 18.0, 0.4)];
        let answer = of(&greedy);
        assert_eq!(answer.best.as_deref(), Some("bbr"));
        assert!(!answer.sentence.contains("without more harm"), "{}", answer.sentence);
        assert!(answer.price.contains("40 %") && answer.price.contains("10 %"), "{}", answer.price);
    }

    #[test]
    fn where_all_is_alike_there_is_no_winner() {
        let alike = [control("cubic", 94.0, 10.0, 0.5), control("reno", 94.1, 10.4, 0.4)];
        let answer = of(&alike);
        assert_eq!(answer.best, None);
        assert!(answer.sentence.contains("keep the default, cubic"), "{}", answer.sentence);
        assert!(answer.price.contains("50 %"), "{}", answer.price);
        assert_eq!(of(&[]).best, None);
    }
}
