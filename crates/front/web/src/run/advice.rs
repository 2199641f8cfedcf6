//! What would raise the rate: what a step of the run has shown, and what the finding predicts.

mod buffers;

use super::conductor::system;
use super::interval::Interval;
use super::message::{Platform, StepKind};
use super::result::Steps;
use super::step::Outcome;
use longhaul::doctor::{self, CommandsRequest, System};
use record::{Decided, Finding, Limit, Remedy, RemedyCommand, RemedyPlace};
use serde::Serialize;
use units::BitRate;

/// Remedies of a result.
const MAX_REMEDIES: usize = 3;
/// A gain below this is none: two transfers in turn differ by as much.
const MIN_FACTOR: f64 = 1.1;
/// Of remedies with this share of the best one's gain, the simplest comes first.
const NEARLY_BEST: f64 = 0.9;

/// Limits by which a flow that gives way to each loss or mark stays below the rate of the path.
const OF_LOSSES: [Limit; 4] =
    [Limit::Loss, Limit::ClusteredLoss, Limit::ShallowQueue, Limit::EcnMarks];

/// What a remedy changes, the simplest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Action {
    ReceiveBuffer,
    SendBuffer,
    CongestionControl,
    /// A rate that the sender's flows are paced at.
    Pacing,
    /// A program with several connections.
    Flows,
}

/// How a gain is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Basis {
    /// A step of the run tried it.
    Measured,
    /// By the finding's equation.
    Predicted,
}

/// Whose host a remedy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum At {
    Visitor,
    Server,
}

/// By which factor the rate of one flow would rise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Gain {
    #[serde(rename = "where")]
    pub(super) place: At,
    pub(super) factor: f64,
    /// Confidence interval, from those of the rates.
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) basis: Basis,
}

/// Something that would help.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ShownRemedy {
    pub(super) action: Action,
    #[serde(rename = "where")]
    pub(super) place: At,
    pub(super) platform: Option<Platform>,
    /// The line to paste there.
    pub(super) line: Option<String>,
    pub(super) why: String,
    /// `None` where it is unknown.
    pub(super) gain: Option<Gain>,
}

/// Remedies for the transfers of a kind with one flow, the most effective first. What a step has
/// tried is not predicted, and predictions for a limit that the experiments exclude are left out.
pub(super) fn of(
    outcomes: &[Outcome],
    kind: StepKind,
    decided: &[Decided],
    platform: Platform,
) -> Vec<ShownRemedy> {
    let steps = Steps(outcomes);
    let Some(base) = steps.of(kind, false).or(steps.of(kind, true)) else { return Vec::new() };
    let told = decided.iter().rev().find_map(|decided| decided.limit);
    let mut remedies: Vec<_> =
        outcomes.iter().filter_map(|outcome| measured(outcome, base, platform)).collect();
    let stands = |finding: &&Finding| told.is_none() || told == finding.limit;
    let is_window = base.finding().is_some_and(|finding| {
        matches!(finding.limit, Some(Limit::ReceiveWindow | Limit::SendBuffer))
    });
    let found = base.finding().filter(stands);
    let is_lossy =
        found.is_some_and(|finding| finding.limit.is_some_and(|limit| OF_LOSSES.contains(&limit)));
    let of_flows = remedies
        .iter()
        .filter(|remedy| (is_window || is_lossy) && remedy.action == Action::Flows)
        .filter_map(|remedy| remedy.gain)
        .max_by(|a, b| a.factor.total_cmp(&b.factor));
    let buffers = found.filter(|_| is_window).map(|finding| buffers::of(finding, outcomes, base));
    let of_finding = found.iter().flat_map(|finding| &finding.remedies);
    for remedy in of_finding.chain(buffers.iter().flatten()) {
        let Some(mut shown) = predicted(remedy, base, platform) else { continue };
        if matches!(shown.action, Action::ReceiveBuffer | Action::SendBuffer) {
            if found.is_some_and(|finding| finding.limit == Some(Limit::WindowScaling)) {
                // Without the option a window has at most 64 KiB, whatever the buffer (RFC 7323
                // section 2).
                continue;
            }
            shown.gain = as_several_flows(&shown, of_flows.filter(|_| is_window));
        }
        if shown.action == Action::CongestionControl {
            // What each of several flows gave way to, BBR does not (BBR, ACM Queue 2016).
            shown.gain = as_several_flows(&shown, of_flows.filter(|_| is_lossy));
        }
        let is_tried =
            |other: &ShownRemedy| (other.action, &other.line) == (shown.action, &shown.line);
        if !remedies.iter().any(is_tried) {
            remedies.push(shown);
        }
    }
    remedies.retain(|remedy| remedy.gain.is_none_or(|gain| gain.factor >= MIN_FACTOR));
    in_order(remedies)
}

/// The gain of a remedy for one flow that lifts what each of several flows was limited by: at least
/// theirs.
fn as_several_flows(remedy: &ShownRemedy, of_flows: Option<Gain>) -> Option<Gain> {
    let Some(flows) = of_flows else { return remedy.gain };
    let least = Gain { place: remedy.place, basis: Basis::Predicted, ..flows };
    Some(remedy.gain.filter(|own| own.factor >= least.factor).unwrap_or(least))
}

/// The most effective first; among nearly equal ones the simplest.
fn in_order(mut remedies: Vec<ShownRemedy>) -> Vec<ShownRemedy> {
    let factor = |remedy: &ShownRemedy| remedy.gain.map_or(1.0, |gain| gain.factor);
    remedies.sort_by(|a, b| factor(b).total_cmp(&factor(a)));
    let mut seen = Vec::new();
    remedies.retain(|remedy| {
        let is_new = !seen.contains(&(remedy.action, remedy.line.clone()));
        seen.push((remedy.action, remedy.line.clone()));
        is_new
    });
    let best = remedies.first().map_or(1.0, factor);
    let nearly = remedies.iter().take_while(|it| factor(it) >= NEARLY_BEST * best).count();
    if let Some(best) = remedies.get_mut(..nearly) {
        best.sort_by_key(|remedy| remedy.action);
    }
    remedies.truncate(MAX_REMEDIES);
    remedies
}

/// A remedy that a step has tried: more flows, or another congestion control.
fn measured(outcome: &Outcome, base: &Outcome, platform: Platform) -> Option<ShownRemedy> {
    let are_valid = outcome.result.valid && base.result.valid;
    if !are_valid || outcome.plan.kind != base.plan.kind {
        return None;
    }
    let (rate, of_base) = (outcome.result.rate?, base.result.rate?);
    let gain = |place| Gain {
        place,
        basis: Basis::Measured,
        ..over(rate, outcome.result.interval, of_base, base.result.interval, place)
    };
    let [rate, of_base] = [rate, of_base].map(|rate| BitRate::from_bps(rate.max(0.0) as u64));
    if let Some(paced) = outcome.plan.pacing {
        let place = sender(base.plan.kind);
        return Some(ShownRemedy {
            action: Action::Pacing,
            place,
            platform: None,
            line: None,
            why: format!(
                "pace the sender at {paced} (SO_MAX_PACING_RATE, or maxrate of fq): with it this \
                 run had {rate}, without {of_base}"
            ),
            gain: Some(gain(place)),
        });
    }
    match &outcome.plan.congestion {
        None if outcome.plan.flows > base.plan.flows => Some(ShownRemedy {
            action: Action::Flows,
            place: At::Visitor,
            platform: None,
            line: None,
            why: format!(
                "use a program with several connections: {} had {rate} in this run, one had {of_base}",
                outcome.plan.flows
            ),
            gain: Some(gain(At::Visitor)),
        }),
        Some(name) if outcome.plan.flows == base.plan.flows => {
            let place = sender(base.plan.kind);
            Some(ShownRemedy {
                action: Action::CongestionControl,
                place,
                platform: (place == At::Visitor).then_some(platform),
                line: Some(congestion_line(name)),
                why: format!("with {name} this run had {rate}, without {of_base}"),
                gain: Some(gain(place)),
            })
        }
        _ => None,
    }
}

/// A remedy of the finding that a visitor with this system, or whoever runs the server, can carry
/// out: the length and the limits of a test are the server's own.
fn predicted(remedy: &Remedy, base: &Outcome, platform: Platform) -> Option<ShownRemedy> {
    let (finding, kind) = (base.finding()?, base.plan.kind);
    let place = match remedy.place {
        RemedyPlace::Sender => sender(kind),
        RemedyPlace::Receiver => receiver(kind),
        RemedyPlace::Call if matches!(remedy.command, RemedyCommand::Streams(_)) => At::Visitor,
        RemedyPlace::Call => sender(kind),
        // Nobody who runs a speed test has boxes on the path.
        RemedyPlace::Boxes => return None,
    };
    let at_visitor = place == At::Visitor;
    let is_linux = !at_visitor || system(platform) == Some(System::Linux);
    let (action, line) = match &remedy.command {
        RemedyCommand::Sysctl { .. } if remedy.place == RemedyPlace::Receiver && !is_linux => {
            (Action::ReceiveBuffer, receive_buffer(finding, platform)?)
        }
        RemedyCommand::Sysctl { key, .. } if is_linux => {
            let is_receiver = key.ends_with("rmem") || key.ends_with("rmem_max");
            let action = if is_receiver { Action::ReceiveBuffer } else { Action::SendBuffer };
            (action, format!("sudo {}", remedy.command))
        }
        RemedyCommand::CongestionControl(name) if is_linux => {
            (Action::CongestionControl, congestion_line(name))
        }
        RemedyCommand::Streams(streams) => {
            return Some(ShownRemedy {
                action: Action::Flows,
                place,
                platform: None,
                line: None,
                why: format!("use a program with {streams} connections: {}", remedy.why),
                gain: expected(remedy, base, place),
            });
        }
        _ => return None,
    };
    Some(ShownRemedy {
        action,
        place,
        platform: at_visitor.then_some(platform),
        line: Some(line),
        why: remedy.why.clone(),
        gain: expected(remedy, base, place),
    })
}

fn expected(remedy: &Remedy, base: &Outcome, place: At) -> Option<Gain> {
    let finding = base.finding()?;
    let (expects, now) = (remedy.expects_bps?.as_f64(), finding.throughput_bps.as_f64());
    let gain = over(expects, None, now, base.result.interval, place);
    gain.factor.is_finite().then_some(gain)
}

/// The gain of a predicted or measured rate over that of the base, with their intervals.
fn over(
    rate: f64,
    interval: Option<Interval>,
    base: f64,
    of_base: Option<Interval>,
    place: At,
) -> Gain {
    let [least, most] = interval.unwrap_or([rate, rate]);
    let ends = of_base.filter(|of_base| of_base[0] > 0.0);
    Gain {
        place,
        factor: rate / base,
        low: ends.map(|ends| least / ends[1]),
        high: ends.map(|ends| most / ends[0]),
        basis: Basis::Predicted,
    }
}

fn congestion_line(name: &str) -> String {
    format!("sudo sysctl -w net.ipv4.tcp_congestion_control={name}")
}

const fn sender(kind: StepKind) -> At {
    if matches!(kind, StepKind::Upload) { At::Visitor } else { At::Server }
}

const fn receiver(kind: StepKind) -> At {
    if matches!(kind, StepKind::Upload) { At::Server } else { At::Visitor }
}

/// The line that raises the receive window on a visitor's system other than Linux.
fn receive_buffer(finding: &Finding, platform: Platform) -> Option<String> {
    let system = system(platform)?;
    let wanted = match system {
        System::Linux => return None,
        System::MacOs => "autorcvbufmax",
        System::Windows => "autotuninglevel",
    };
    let rate = finding.bottleneck.map_or(finding.throughput_bps, |estimate| estimate.rate_bps);
    let rate = rate.max(BitRate::from_bps(1_000_000));
    let request = CommandsRequest::new(system, rate, finding.min_rtt?);
    let recipes = doctor::commands(&request).ok()?.recipes;
    recipes
        .into_iter()
        .flat_map(|recipe| recipe.apply)
        .find(|line| line.to_ascii_lowercase().contains(wanted))
}

/// A download at a rate, for tests.
#[cfg(test)]
pub(super) fn outcome_of(flows: u32, congestion: Option<&str>, rate: f64) -> Outcome {
    use super::message::{Plan, StepResult};
    let congestion = congestion.map(str::to_owned);
    let kind = StepKind::Download;
    let plan = Plan { congestion, ..super::conductor::planned(kind, flows, 1.0, "") };
    let result = StepResult {
        step: 0,
        kind,
        congestion: None,
        rate: Some(rate),
        interval: None,
        average: None,
        bytes: 0,
        seconds: 1.0,
        flows,
        valid: true,
        invalid_because: Vec::new(),
        rtt_idle: None,
        rtt_loaded: None,
        jitter: None,
        rtt_interval: None,
        jitter_interval: None,
        finding: None,
        sentence: None,
    };
    Outcome {
        plan,
        result,
        measurement: None,
        own: Vec::new(),
        loaded: Vec::new(),
        total: Vec::new(),
        loss: None,
        machine_busy: None,
        datagrams: None,
        gaps: None,
    }
}

#[cfg(test)]
mod tests {
    use super::outcome_of as outcome;
    use super::*;
    use record::Measurement;

    /// A download of 10 Mbit/s, which a larger receive window is predicted to raise to 25.
    fn windowed(limit: Limit) -> Outcome {
        let mut base = outcome(1, None, 10e6);
        let mut finding = diagnose::explain(&Measurement::default());
        finding.limit = Some(limit);
        finding.throughput_bps = BitRate::from_bps(10_000_000);
        finding.min_rtt = Some(units::Rtt::from_secs(0.1));
        let value = "4096 131072 16777216".to_owned();
        finding.remedies = vec![Remedy {
            place: RemedyPlace::Receiver,
            command: RemedyCommand::Sysctl { key: "net.ipv4.tcp_rmem".to_owned(), value },
            setting: None,
            expects_bps: Some(BitRate::from_bps(25_000_000)),
            why: "window / RTT".to_owned(),
        }];
        base.result.finding = Some(finding);
        base
    }

    fn advice(outcomes: &[Outcome], platform: Platform) -> Vec<ShownRemedy> {
        of(outcomes, StepKind::Download, &[], platform)
    }

    #[test]
    fn a_remedy_is_a_line_for_the_visitors_system() {
        let all = [windowed(Limit::ReceiveWindow)];
        let line = |platform| advice(&all, platform)[0].line.clone().unwrap();
        assert_eq!(
            line(Platform::Linux),
            r#"sudo sysctl -w net.ipv4.tcp_rmem="4096 131072 16777216""#
        );
        assert!(line(Platform::MacOs).contains("autorcvbufmax"));
        assert!(line(Platform::Windows).contains("netsh"));
        // No setting of a phone does this, so it is neither shown nor a gain.
        assert_eq!(advice(&all, Platform::Ios), Vec::new());
        let gain = advice(&all, Platform::Linux)[0].gain.unwrap();
        assert!((gain.factor - 2.5).abs() < 1e-9 && gain.place == At::Visitor);
        let mut longer = windowed(Limit::ReceiveWindow);
        longer.result.finding.as_mut().unwrap().remedies[0].command = RemedyCommand::Seconds(60);
        assert_eq!(advice(&[longer], Platform::Linux), Vec::new());
    }

    #[test]
    fn what_the_run_has_measured_comes_before_a_smaller_prediction() {
        let base = windowed(Limit::Loss);
        let six = outcome(6, None, 58e6);
        let bbr = outcome(1, Some("bbr"), 10.2e6);
        let all = advice(&[base, bbr, six], Platform::Linux);
        let actions: Vec<_> = all.iter().map(|remedy| remedy.action).collect();
        // BBR has been tried and gained nothing.
        assert_eq!(actions, [Action::Flows, Action::ReceiveBuffer]);
        let gain = all[0].gain.unwrap();
        assert!((gain.factor - 5.8).abs() < 1e-9 && gain.basis == Basis::Measured);
    }

    #[test]
    fn a_larger_window_gains_what_several_windows_do() {
        let all =
            advice(&[windowed(Limit::ReceiveWindow), outcome(6, None, 58e6)], Platform::Linux);
        let actions: Vec<_> = all.iter().map(|remedy| remedy.action).collect();
        assert_eq!(actions, [Action::ReceiveBuffer, Action::Flows]);
        let gain = all[0].gain.unwrap();
        assert!((gain.factor - 5.8).abs() < 1e-9 && gain.basis == Basis::Predicted);
        // An experiment with four comes before the step with six.
        let all = [windowed(Limit::ReceiveWindow), outcome(4, None, 39e6), outcome(6, None, 58e6)];
        let all = advice(&all, Platform::Linux);
        assert_eq!(all[0].action, Action::ReceiveBuffer);
        assert!((all[0].gain.unwrap().factor - 5.8).abs() < 1e-9, "{all:?}");
    }

    #[test]
    fn no_buffer_enlarges_a_window_without_window_scaling() {
        let all = [windowed(Limit::WindowScaling), outcome(6, None, 58e6)];
        let actions: Vec<_> =
            advice(&all, Platform::Linux).iter().map(|remedy| remedy.action).collect();
        assert_eq!(actions, [Action::Flows]);
    }

    #[test]
    fn bbr_gains_what_several_flows_do_where_losses_are_the_limit() {
        let with = |limit| {
            let mut base = windowed(limit);
            let command = RemedyCommand::CongestionControl("bbr".to_owned());
            let finding = base.result.finding.as_mut().unwrap();
            finding.remedies[0].command = command;
            finding.remedies[0].place = RemedyPlace::Sender;
            finding.remedies[0].expects_bps = None;
            advice(&[base, outcome(6, None, 58e6)], Platform::Linux)
        };
        let told = with(Limit::Loss);
        assert_eq!((told[0].action, told[1].action), (Action::CongestionControl, Action::Flows));
        let gain = told[0].gain.unwrap();
        assert!((gain.factor - 5.8).abs() < 1e-9 && gain.basis == Basis::Predicted);
        assert_eq!(with(Limit::CongestionAvoidance)[0].action, Action::Flows);
    }

    #[test]
    fn several_flows_are_advised_once() {
        let all = [outcome(1, None, 10e6), outcome(4, None, 38e6), outcome(6, None, 55e6)];
        let told = advice(&all, Platform::Linux);
        assert_eq!(told.len(), 1);
        assert!((told[0].gain.unwrap().factor - 5.5).abs() < 1e-9);
    }

    #[test]
    fn of_nearly_equal_remedies_the_simplest_is_first() {
        let all = [windowed(Limit::ReceiveWindow), outcome(6, None, 26e6)];
        let actions: Vec<_> =
            advice(&all, Platform::Linux).iter().map(|remedy| remedy.action).collect();
        assert_eq!(actions, [Action::ReceiveBuffer, Action::Flows]);
    }

    #[test]
    fn a_prediction_for_an_excluded_limit_is_not_made() {
        let all = [windowed(Limit::ReceiveWindow), outcome(1, Some("bbr"), 90e6)];
        let decided = Decided {
            between: vec![Limit::ReceiveWindow, Limit::Loss],
            options: None,
            throughput_bps: None,
            limit: Some(Limit::Loss),
            sentence: String::new(),
        };
        let told = of(&all, StepKind::Download, &[decided], Platform::Linux);
        let actions: Vec<_> = told.iter().map(|remedy| remedy.action).collect();
        assert_eq!(actions, [Action::CongestionControl]);
        assert_eq!(told[0].place, At::Server);
    }

    #[test]
    fn an_invalid_step_shows_nothing() {
        let mut six = outcome(6, None, 58e6);
        six.result.valid = false;
        assert_eq!(advice(&[outcome(1, None, 10e6), six], Platform::Linux), Vec::new());
    }
}
