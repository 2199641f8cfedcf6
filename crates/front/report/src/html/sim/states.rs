//! The states of a sender over time, as spans, and how each is drawn.

use crate::html::limit_colours;
use record::{Limit, SenderState, SimMoment};

/// Most intervals of a drawing: of a longer run several are one, in the state that says most.
const MAX: usize = 600;

/// A state from one time to another, s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    pub(super) state: SenderState,
    pub(super) from_s: f64,
    pub(super) to_s: f64,
}

/// The spans of a flow by its index, from its start to its end.
pub(super) fn spans(trace: &[SimMoment], flow: usize, (start_s, end_s): (f64, f64)) -> Vec<Span> {
    let mut from_ms = 0;
    let mut intervals: Vec<Span> = Vec::new();
    for moment in trace {
        let (from_s, to_s) = (from_ms as f64 / 1e3, moment.to_ms as f64 / 1e3);
        from_ms = moment.to_ms;
        let Some(state) = moment.states.get(flow).copied() else { continue };
        if to_s > start_s && from_s < end_s {
            intervals.push(Span { state, from_s: from_s.max(start_s), to_s: to_s.min(end_s) });
        }
    }
    let weight = |state: SenderState| SenderState::ALL.iter().position(|one| *one == state);
    let step = intervals.len().div_ceil(MAX).max(1);
    let mut spans: Vec<Span> = Vec::new();
    for several in intervals.chunks(step) {
        let (Some(first), Some(last)) = (several.first(), several.last()) else { continue };
        let states = several.iter().map(|one| one.state);
        let state = states.max_by_key(|state| weight(*state)).unwrap_or_default();
        match spans.last_mut().filter(|before| before.state == state) {
            Some(before) => before.to_s = last.to_s,
            None => spans.push(Span { state, from_s: first.from_s, to_s: last.to_s }),
        }
    }
    spans
}

/// The class of a state's colour: that of the limit that it belongs to.
pub(super) fn class(state: SenderState) -> String {
    limit_colours::class(match state {
        SenderState::SlowStart | SenderState::Startup => Limit::Ramp,
        SenderState::CongestionAvoidance | SenderState::ProbeBandwidth => {
            Limit::CongestionAvoidance
        }
        SenderState::Drain => Limit::Pacing,
        SenderState::ProbeRtt => Limit::PathRate,
        SenderState::Recovery => Limit::Loss,
        SenderState::Loss => Limit::Outage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(states: &[SenderState]) -> Vec<SimMoment> {
        let moment = |(index, state): (u64, &SenderState)| SimMoment {
            to_ms: 100 * (index + 1),
            states: vec![*state],
            ..SimMoment::default()
        };
        (0..).zip(states).map(moment).collect()
    }

    #[test]
    fn equal_states_are_one_span_within_the_flow() {
        use SenderState::{CongestionAvoidance, Recovery, SlowStart};
        let trace = trace(&[SlowStart, SlowStart, Recovery, CongestionAvoidance]);
        let spans = spans(&trace, 0, (0.1, 0.35));
        let states: Vec<_> = spans.iter().map(|span| span.state).collect();
        assert_eq!(states, [SlowStart, Recovery, CongestionAvoidance]);
        assert_eq!((spans[0].from_s, spans[0].to_s), (0.1, 0.2));
        assert_eq!(spans[2].to_s, 0.35);
    }

    #[test]
    fn of_a_long_run_a_short_recovery_is_still_shown() {
        let mut states = vec![SenderState::CongestionAvoidance; 10_000];
        states[5_000] = SenderState::Recovery;
        let spans = spans(&trace(&states), 0, (0.0, 1_000.0));
        let recoveries = spans.iter().filter(|span| span.state == SenderState::Recovery);
        assert_eq!((spans.len(), recoveries.count()), (3, 1));
    }
}
