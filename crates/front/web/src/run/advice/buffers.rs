//! Larger buffers for a window that limits a path whose rate nobody knows.

use super::Outcome;
use diagnose::Goal;
use record::{Finding, Remedy, RemedyCommand};
use units::{BitRate, ByteCount};

/// The rate of a path of which nothing is known.
const ASSUMED_RATE: BitRate = BitRate::from_bps(1_000_000_000);

/// Larger buffers for a window that is the limit, where the finding has none because nobody knows
/// the rate of the path: large enough for a path of [`ASSUMED_RATE`], or of twice the fastest rate
/// of this run. A maximum is a bound of autotuning, not memory in use. They predict no rate.
pub(super) fn of(finding: &Finding, outcomes: &[Outcome], base: &Outcome) -> Vec<Remedy> {
    let is_buffer = |remedy: &Remedy| matches!(remedy.command, RemedyCommand::Sysctl { .. });
    let known = base.measurement.as_ref().zip(finding.min_rtt);
    let Some((measurement, rtt)) = known.filter(|_| !finding.remedies.iter().any(is_buffer)) else {
        return Vec::new();
    };
    let of_kind = outcomes.iter().filter(|outcome| outcome.plan.kind == base.plan.kind);
    let fastest = of_kind.filter_map(|outcome| outcome.result.rate).fold(0.0, f64::max);
    let rate = BitRate::from_bps_f64(2.0 * fastest).max(ASSUMED_RATE);
    let goal = Goal { rate, rtt, queue: ByteCount::ZERO };
    let mut buffers = diagnose::explain_for(measurement, Some(goal)).remedies;
    buffers.retain(is_buffer);
    for remedy in &mut buffers {
        remedy.expects_bps = None;
        remedy.why = "the window is the limit; no prediction, as the rate of the path is unknown: \
                      autotuning takes of this maximum what it needs"
            .to_owned();
    }
    buffers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::advice::{Action, ShownRemedy, outcome_of};
    use crate::run::message::{Platform, StepKind};
    use record::Limit;

    /// What the server sees of a download through a window of 64 KiB over 100 Mbit/s x 100 ms.
    fn through_a_window(flows: usize) -> Outcome {
        let rate = BitRate::from_bps(100_000_000);
        let delay = std::time::Duration::from_millis(50);
        let limit = link::Limit::Bytes(ByteCount::from_bytes(1 << 21));
        let queue = link::Queue::drop_tail(limit);
        let link = || link::LinkConfig::new(link::Rate::Constant(rate), delay, queue);
        let window = tcp::WindowSize::Fixed(ByteCount::from_bytes(1 << 16));
        let connection = twin::ConnectionConfig { window, ..twin::ConnectionConfig::default() };
        let scenario = twin::Scenario {
            connections: vec![connection; flows],
            ..twin::Scenario::new(link(), link(), std::time::Duration::from_secs(10))
        };
        let measurement = twin::run(&scenario).measurement;
        let finding = diagnose::explain(&measurement);
        let mut outcome = outcome_of(flows as u32, None, finding.throughput_bps.as_f64());
        outcome.measurement = Some(measurement);
        outcome.result.finding = Some(finding);
        outcome
    }

    #[test]
    fn a_window_on_a_path_of_unknown_rate_is_enlarged_before_flows_are_added() {
        let all = [through_a_window(1), through_a_window(6)];
        let limit = all[0].finding().unwrap().limit;
        assert_eq!(limit, Some(Limit::ReceiveWindow));
        let told = advice(&all);
        let actions: Vec<_> = told.iter().map(|remedy| remedy.action).collect();
        assert_eq!(actions, [Action::ReceiveBuffer, Action::Flows], "{told:?}");
        let gain = told[0].gain.unwrap();
        assert!((5.0..7.0).contains(&gain.factor), "{gain:?}");
        // Alone, it is advised without a figure.
        let told = advice(&all[..1]);
        assert_eq!((told[0].action, told[0].gain), (Action::ReceiveBuffer, None));
        assert!(told[0].line.as_deref().unwrap().contains("tcp_rmem"), "{told:?}");
    }

    fn advice(outcomes: &[Outcome]) -> Vec<ShownRemedy> {
        crate::run::advice::of(outcomes, StepKind::Download, &[], Platform::Linux)
    }
}
