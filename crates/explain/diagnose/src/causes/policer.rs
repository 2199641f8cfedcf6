//! A policer drops traffic above its rate, without a queue (Flach et al., "An
//! Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016).
//!
//! No equation: the goodput is the policer's rate, which nothing else states.

use crate::{
    causes::{Cause, Observed},
    next_limit::NextLimit,
};
use record::{Limit, Remedy};

pub(super) struct Policer;

impl Cause for Policer {
    fn limit(&self) -> Limit {
        Limit::Policer
    }

    fn noun(&self) -> &'static str {
        "a policer"
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        format!(
            "A policer on the path drops traffic above {}: segments are lost in bursts ({:.0} at \
             a time) with no queueing delay before them; pace below that rate (-b).",
            o.e.goodput, o.e.burst
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        format!(
            "policer: drops traffic above {}, {:.0} segments at a time, with no queueing delay",
            o.e.goodput, o.e.burst
        )
    }

    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        let why = "ends the losses; the goodput already equals the policer's rate";
        vec![next.paced_below_goodput(why)]
    }
}

#[cfg(test)]
mod tests {
    use super::Policer;
    use crate::{causes::Cause, example::Example};

    #[test]
    fn each_stream_is_paced_below_its_share() {
        let mut example = Example::new(40.0, 30.0);
        example.e.streams = 2;
        example.e.burst = 12.4;
        assert_eq!(example.remedies(&Policer)[0].command.to_string(), "-b 19000kbit");
        let sentence = Policer.sentence(&example.observed());
        assert!(sentence.contains("above 40 Mbit/s") && sentence.contains("12 at a time"));
    }
}
