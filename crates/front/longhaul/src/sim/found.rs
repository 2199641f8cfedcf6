//! The finding on all flows together.

use record::{Finding, Measurement, Steady};

/// Shares of the time by which flows that are alike may start later and end earlier than others.
const APART: f64 = 0.1;

/// When a flow sends, and whether its application limits its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sending {
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    pub(super) at_a_rate: bool,
}

/// What limited flows that send at the same time and as much as they can, as those of a test do: a
/// finding presumes that. Of others it says that it cannot tell.
pub(super) fn of(measurement: &Measurement, flows: &[Sending]) -> Finding {
    let from_s = flows.iter().map(|flow| flow.from_s).fold(f64::INFINITY, f64::min);
    let to_s = flows.iter().map(|flow| flow.to_s).fold(0.0, f64::max);
    let apart = APART * (to_s - from_s);
    let at_a_rate = flows.first().is_some_and(|flow| flow.at_a_rate);
    let are_alike = flows.iter().all(|flow| {
        flow.from_s - from_s <= apart && to_s - flow.to_s <= apart && flow.at_a_rate == at_a_rate
    });
    match are_alike {
        true if from_s.is_finite() && from_s > 0.0 => {
            diagnose::explain(&since(measurement, from_s))
        }
        true => diagnose::explain(measurement),
        false => unlike(measurement),
    }
}

/// The same measurement, begun that much later.
fn since(measurement: &Measurement, start_s: f64) -> Measurement {
    let mut later = measurement.clone();
    later.spec.seconds = (later.spec.seconds - start_s).max(0.0);
    for stream in &mut later.streams {
        stream.sender.iter_mut().for_each(|sample| sample.t_s = (sample.t_s - start_s).max(0.0));
        stream.receiver.iter_mut().for_each(|sample| sample.t_s = (sample.t_s - start_s).max(0.0));
    }
    later
}

fn unlike(measurement: &Measurement) -> Finding {
    let found = diagnose::explain(measurement);
    Finding {
        throughput_bps: found.average_bps,
        steady: Steady { from_s: 0.0, to_s: measurement.spec.seconds },
        predicted_bps: None,
        equation: None,
        limit: None,
        confidence: None,
        shares: None,
        sentence:
            "The flows differ in when or how much they send, so that no single limit is all of \
                   theirs: what each waited for is known, and stands in its row."
                .to_owned(),
        remedies: Vec::new(),
        posterior: Vec::new(),
        segments: Vec::new(),
        bottleneck: None,
        next: None,
        ..found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sending(from_s: f64, to_s: f64, at_a_rate: bool) -> Sending {
        Sending { from_s, to_s, at_a_rate }
    }

    #[test]
    fn flows_that_differ_have_no_limit_together() {
        let measurement = Measurement::default();
        let limits =
            |flows: &[Sending]| of(&measurement, flows).sentence.contains("differ in when");
        assert!(!limits(&[sending(0.0, 10.0, false), sending(0.2, 10.0, false)]));
        assert!(
            limits(&[sending(0.0, 10.0, false), sending(5.0, 10.0, false)]),
            "one starts later"
        );
        assert!(limits(&[sending(0.0, 10.0, false), sending(0.0, 2.0, false)]), "one ends earlier");
        assert!(limits(&[sending(0.0, 10.0, false), sending(0.0, 10.0, true)]), "one has a rate");
        let staggered: Vec<Sending> = (0..9).map(|n| sending(f64::from(n), 10.0, false)).collect();
        assert!(
            limits(&staggered),
            "each begins soon after another, the last long after the first"
        );
    }
}
