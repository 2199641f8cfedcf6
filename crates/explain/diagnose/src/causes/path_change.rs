//! The path's rate or route changed during the transfer, as with LEO satellites and
//! cellular handovers.
//!
//! No equation: each part has its own rate and RTT.

use crate::{
    causes::{Cause, Observed},
    evidence::Level,
};
use record::Limit;

/// Two rates or RTTs whose ratio is below this are equal.
const DIFFERS: f64 = 1.25;

pub(super) struct PathChange;

impl Cause for PathChange {
    fn limit(&self) -> Limit {
        Limit::PathChange
    }

    fn noun(&self) -> &'static str {
        "a path change"
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        format!(
            "The path changed during the test{}; {} on average. Run a longer test (-t) to \
             cover several changes, and look for route changes or handovers at these times.",
            levels(o),
            o.arrived()
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        format!("the path changed{}", levels(o))
    }
}

/// `, from 48 Mbit/s to 20 Mbit/s and from an RTT of 30 ms to 60 ms`, as far as they differ.
fn levels(o: &Observed<'_>) -> String {
    let Some([first, last]) = o.e.ends else {
        return String::new();
    };
    let differ = |one: f64, other: f64| one.max(other) >= DIFFERS * one.min(other).max(1e-9);
    let mut parts = Vec::new();
    let Level { goodput: before, rtt: rtt_before } = first;
    let Level { goodput: after, rtt: rtt_after } = last;
    if differ(before.as_f64(), after.as_f64()) {
        parts.push(format!("from {before} to {after}"));
    }
    if let Some((one, other)) = rtt_before.zip(rtt_after)
        && differ(one.secs_f64(), other.secs_f64())
    {
        parts.push(format!("from an RTT of {one} to {other}"));
    }
    if parts.is_empty() { String::new() } else { format!(", {}", parts.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use super::PathChange;
    use crate::{causes::Cause, evidence::Level, example::Example};
    use units::{BitRate, Rtt};

    #[test]
    fn what_changed_is_named() {
        let level = |mbit: u64, ms: u64| Level {
            goodput: BitRate::from_bps(mbit * 1_000_000),
            rtt: Some(Rtt::from_micros(ms * 1_000)),
        };
        let mut example = Example::new(34.0, 30.0);
        let mut said = |ends| {
            example.e.ends = ends;
            PathChange.sentence(&example.observed())
        };
        let both = said(Some([level(48, 30), level(20, 60)]));
        let all = "from 48 Mbit/s to 20 Mbit/s and from an RTT of 30 ms to 60 ms;";
        assert!(both.contains(all), "{both}");
        let route = said(Some([level(48, 30), level(47, 60)]));
        assert!(route.contains("test, from an RTT of 30 ms to 60 ms;"), "{route}");
        for neither in [Some([level(48, 30), level(47, 31)]), None] {
            let text = said(neither);
            assert!(text.starts_with("The path changed during the test; 34 Mbit/s"), "{text}");
        }
    }
}
