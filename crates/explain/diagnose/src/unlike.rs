//! Flows of a simulation that differ in when or how much they send.
//!
//! A finding presumes the flows of a test, which send at the same time and as much as they can. Those
//! of a simulation need not, and of flows that differ no single limit is known.

use record::{Finding, Measurement, PathReport, Sample, Steady, Stream};

/// Shares of the time by which flows that are alike may start later and end earlier than others.
const APART: f64 = 0.1;

/// When a flow sends, and whether its application limits its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sending {
    from_s: f64,
    to_s: f64,
    at_a_rate: bool,
}

/// The flows of a simulation, together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Flows {
    /// They start with the measurement, as those of every test do.
    Alike,
    /// They are alike and start later: the measurement from then on.
    Later(Box<Measurement>),
    /// They differ.
    Unlike,
}

/// How the flows of a measurement compare.
pub(crate) fn flows(m: &Measurement) -> Flows {
    if !m.path.as_ref().is_some_and(PathReport::is_simulated) {
        return Flows::Alike;
    }
    let flows: Vec<Sending> = m.streams.iter().filter_map(sending).collect();
    let from_s = start(&flows);
    match are_alike(&flows) {
        true if from_s.is_finite() && from_s > 0.0 => Flows::Later(Box::new(since(m, from_s))),
        true => Flows::Alike,
        false => Flows::Unlike,
    }
}

/// When the first begins; infinite without any.
fn start(flows: &[Sending]) -> f64 {
    flows.iter().map(|flow| flow.from_s).fold(f64::INFINITY, f64::min)
}

fn are_alike(flows: &[Sending]) -> bool {
    let from_s = start(flows);
    let to_s = flows.iter().map(|flow| flow.to_s).fold(0.0, f64::max);
    let apart = APART * (to_s - from_s);
    let at_a_rate = flows.first().is_some_and(|flow| flow.at_a_rate);
    flows.iter().all(|flow| {
        flow.from_s - from_s <= apart && to_s - flow.to_s <= apart && flow.at_a_rate == at_a_rate
    })
}

/// When a stream has data to send or in flight; `None` if it never has.
fn sending(stream: &Stream) -> Option<Sending> {
    let samples = &stream.sender;
    let has_data = |sample: &Sample| sample.in_flight_bytes > 0 || sample.unsent_bytes > 0;
    let first = samples.iter().position(has_data)?;
    let active = samples.get(first..=samples.iter().rposition(has_data)?)?;
    let limited = active.iter().filter(|sample| sample.delivery_app_limited).count();
    Some(Sending {
        from_s: samples.get(first.saturating_sub(1))?.t_s,
        to_s: active.last()?.t_s,
        at_a_rate: 2 * limited > active.len(),
    })
}

/// The same measurement, begun that much later.
fn since(m: &Measurement, start_s: f64) -> Measurement {
    let mut later = m.clone();
    later.spec.seconds = (later.spec.seconds - start_s).max(0.0);
    for stream in &mut later.streams {
        stream.sender.iter_mut().for_each(|sample| sample.t_s = (sample.t_s - start_s).max(0.0));
        stream.receiver.iter_mut().for_each(|sample| sample.t_s = (sample.t_s - start_s).max(0.0));
    }
    later
}

/// The figures of flows that differ, without a limit.
pub(crate) fn unlike(finding: Finding, m: &Measurement) -> Finding {
    Finding {
        throughput_bps: finding.average_bps,
        steady: Steady { from_s: 0.0, to_s: m.spec.seconds },
        sentence:
            "The flows differ in when or how much they send, so that no single limit is all of \
                   theirs: a simulation's report names the limit of each."
                .to_owned(),
        ..finding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sending(from_s: f64, to_s: f64, at_a_rate: bool) -> Sending {
        Sending { from_s, to_s, at_a_rate }
    }

    #[test]
    fn flows_that_differ_are_told() {
        assert!(are_alike(&[sending(0.0, 10.0, false), sending(0.2, 10.0, false)]));
        let late = [sending(0.0, 10.0, false), sending(5.0, 10.0, false)];
        assert!(!are_alike(&late), "one starts later");
        let early = [sending(0.0, 10.0, false), sending(0.0, 2.0, false)];
        assert!(!are_alike(&early), "one ends earlier");
        let slow = [sending(0.0, 10.0, false), sending(0.0, 10.0, true)];
        assert!(!are_alike(&slow), "one has a rate");
        let staggered: Vec<Sending> = (0..9).map(|n| sending(f64::from(n), 10.0, false)).collect();
        assert!(!are_alike(&staggered), "each begins soon after another, the last long after");
    }
}
