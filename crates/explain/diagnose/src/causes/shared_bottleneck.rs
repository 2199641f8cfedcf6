//! Other traffic shares the saturated bottleneck.
//!
//! > own share = goodput / payload rate of the link
//!
//! If the others are k flows like each of the n own ones, the share is n / (n + k). With
//! f times the streams a share of s becomes f s / (1 + (f - 1) s). Flows over longer RTTs
//! or with another congestion control get a different share, so this is an estimate.

use crate::{
    causes::{Cause, Observed},
    next_limit::{Expectation, NextLimit, call},
    phrases,
    predict::{self, PathPayload},
};
use record::{Limit, Remedy, RemedyCommand};
use units::{BitRate, percent};

/// The number of streams that the remedy adds up to, at most.
const STREAMS: u32 = 8;

/// The factor on the number of streams.
const TIMES: u32 = 4;

pub(super) struct SharedBottleneck;

impl Cause for SharedBottleneck {
    fn limit(&self) -> Limit {
        Limit::SharedBottleneck
    }

    fn noun(&self) -> &'static str {
        "other traffic at the bottleneck"
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let got = match predict::path_payload(o.m, o.e) {
            Some(PathPayload { goodput, .. }) => format!(
                "{}, {} of its rate",
                phrases::of_at_most(o.e.goodput, goodput),
                percent(share(o.e.goodput, goodput))
            ),
            None => o.e.goodput.to_string(),
        };
        format!(
            "Bottleneck saturated, and shared with other traffic: this transfer got {got}{}; \
             reduce the other traffic, or claim a larger share with more streams (-P).",
            phrases::with_queueing(o.e)
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        format!("bottleneck saturated and shared with other traffic: {} of it", o.e.goodput)
    }

    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        let streams = u32::try_from(next.o.e.streams).unwrap_or(u32::MAX).max(1);
        let times = TIMES.min(STREAMS / streams);
        if times < 2 {
            return Vec::new();
        }
        let expected = match next.path() {
            Some(path) => {
                let (own, times) = (share(next.o.e.goodput, path), f64::from(times));
                let larger = times * own / (1.0 + (times - 1.0) * own);
                Expectation {
                    rate: Some(path.scaled(larger)),
                    why: format!(
                        "{} of {path} instead of {}, if the other flows behave like these",
                        percent(larger),
                        percent(own)
                    ),
                }
            }
            None => Expectation::none("no prediction: the path's rate is unknown"),
        };
        vec![call(RemedyCommand::Streams(times * streams), expected)]
    }
}

/// The share of a bottleneck, at most all of it.
fn share(got: BitRate, all: BitRate) -> f64 {
    (got.as_f64() / all.as_f64().max(1.0)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::SharedBottleneck;
    use crate::{causes::Cause, example::Example};

    #[test]
    fn more_streams_claim_a_larger_share() {
        let example = Example::new(48.2667, 40.0).on_path(100);
        let sentence = SharedBottleneck.sentence(&example.observed());
        assert!(sentence.contains("48.3 of at most 96.5 Mbit/s, 50 % of its rate"), "{sentence}");
        let remedies = example.remedies(&SharedBottleneck);
        assert_eq!(remedies[0].command.to_string(), "-P 4");
        // 4 of 5 flows instead of 1 of 2.
        let expected = remedies[0].expects_bps.map_or(0.0, units::BitRate::as_f64);
        assert!((expected / 96.533e6 - 0.8).abs() < 1e-3, "{}", remedies[0].why);
    }

    #[test]
    fn eight_streams_are_not_multiplied() {
        let mut example = Example::new(48.0, 40.0);
        assert!(example.remedies(&SharedBottleneck)[0].expects_bps.is_none());
        example.e.streams = 8;
        assert!(example.remedies(&SharedBottleneck).is_empty());
    }
}
