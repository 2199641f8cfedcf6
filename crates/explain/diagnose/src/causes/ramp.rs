//! The test ended during ramp-up.
//!
//! > slow start: log2(BDP / (10 x MSS)) RTTs (RFC 6928, RFC 5681)

use crate::{
    causes::{Cause, Observed},
    next_limit::NextLimit,
};
use record::{Limit, Remedy};
use units::Rtt;

pub(super) struct Ramp;

impl Cause for Ramp {
    fn limit(&self) -> Limit {
        Limit::Ramp
    }

    fn noun(&self) -> &'static str {
        "the ramp-up"
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let needed = o.m.path.as_ref().zip(o.e.mss).and_then(|(path, mss)| {
            model::slow_start_time(model::bdp(path.rate_bps?, path.rtt), mss, path.rtt)
        });
        let remedy = match needed {
            Some(time) => format!(
                "slow start alone takes {} on this path; run a much longer test (-t)",
                Rtt::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
            ),
            None => "run a longer test (-t)".to_owned(),
        };
        format!(
            "The test ended during ramp-up: after {:.1} s the congestion window was still \
             growing, without loss, at {}; {remedy}.",
            o.e.steady.to_s, o.e.goodput
        )
    }

    fn one_line(&self, _: &Observed<'_>) -> String {
        "ramp-up: the congestion window is still growing, without loss".to_owned()
    }

    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        Vec::from_iter(next.longer())
    }
}

#[cfg(test)]
mod tests {
    use super::Ramp;
    use crate::{causes::Cause, example::Example};

    #[test]
    fn the_known_path_gives_the_time_of_slow_start() {
        let example = Example::new(20.0, 173.0);
        assert!(!Ramp.sentence(&example.observed()).contains("alone"));
        let example = example.on_path(100);
        // 8 RTTs to 2.16 MB.
        let sentence = Ramp.sentence(&example.observed());
        assert!(sentence.contains("slow start alone takes 1384 ms"), "{sentence}");
        assert_eq!(example.remedies(&Ramp)[0].command.to_string(), "-t 40");
    }
}
