//! Whether an option can help a measured transfer, by its diagnosis.

use super::programs::OPENSSH;
use super::situation::{ObservedPorts, SSH_PORT};
use record::{BoostReason, Confidence, Finding, Limit, Measurement, Protocol, Sample};
use units::{BitRate, ByteCount, Rtt};

/// How near to a program's window the data in flight is, where it is the limit.
const NEAR_WINDOW: f64 = 0.15;

/// Samples that are at most this part of an RTT apart show pauses within one, and this share of them
/// is without progress: a window of 2 MiB takes 17 ms of 173 ms at 1 Gbit/s.
const WITHIN_RTT: f64 = 0.75;
const PAUSING: f64 = 0.1;

/// A cause that is at least so probable is considered beside the first one.
const ALSO_LIKELY: f64 = 0.15;

/// What limits a transfer whatever the network does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Why no option helps, or none is predicted.
    pub(super) reason: Option<BoostReason>,
    /// What the program keeps in flight on each connection.
    pub(super) program_window: Option<ByteCount>,
    /// True where another cause may be the limit.
    pub(super) is_uncertain: bool,
}

/// The verdict on a transfer over `count` connections.
pub(super) fn of(
    finding: &Finding,
    m: &Measurement,
    ports: Option<ObservedPorts>,
    count: u32,
) -> Verdict {
    // The port of a test says nothing of its program.
    let is_ssh =
        m.spec.protocol == Protocol::Tcp && ports.is_some_and(|ports| ports.service == SSH_PORT);
    let ssh = OPENSSH.times(u64::from(count));
    let rtt = finding.loaded_rtt.or(finding.min_rtt).filter(|rtt| *rtt > Rtt::ZERO);
    let most = rtt.and_then(|rtt| model::window_rate(ssh, rtt));
    // Another implementation may have a larger window.
    let exceeds = most.is_some_and(|most| most.scaled(1.0 + NEAR_WINDOW) < finding.throughput_bps);
    let program_window = Some(OPENSSH).filter(|_| is_ssh && !exceeds);
    let waits_for_itself = matches!(
        finding.limit,
        None | Some(Limit::Application | Limit::FixedWindow | Limit::SendBuffer | Limit::Unknown)
    );
    let is_near = waits_for_itself
        && program_window.is_some()
        && most.is_some_and(|most| is_near(finding.throughput_bps, most));
    let is_sure = is_near
        && (finding.limit == Some(Limit::FixedWindow)
            || rtt.is_some_and(|rtt| stops_at(finding, m, OPENSSH, rtt)));
    if is_sure {
        let reason = Some(BoostReason::ProgramWindow);
        return Verdict { reason, program_window, is_uncertain: false };
    }
    Verdict {
        reason: reason(finding, m),
        program_window,
        is_uncertain: is_near || is_uncertain(finding),
    }
}

fn is_near(rate: BitRate, of: BitRate) -> bool {
    (rate.as_f64() / of.as_f64().max(1.0) - 1.0).abs() <= NEAR_WINDOW
}

/// Returns true if each sender has `window` in flight, no more, and pauses within each RTT: a source
/// of that rate has as much in flight, but does not pause.
fn stops_at(finding: &Finding, m: &Measurement, window: ByteCount, rtt: Rtt) -> bool {
    let steady = finding.steady;
    let stops = |samples: &[Sample]| {
        let samples: Vec<&Sample> = samples
            .iter()
            .filter(|sample| (steady.from_s..=steady.to_s).contains(&sample.t_s))
            .collect();
        let mut in_flight: Vec<u64> = samples.iter().map(|sample| sample.in_flight_bytes).collect();
        in_flight.sort_unstable();
        let (Some(median), Some(most)) = (in_flight.get(in_flight.len() / 2), in_flight.last())
        else {
            return false;
        };
        let share = |bytes: u64| ByteCount::from_bytes(bytes).as_f64() / window.as_f64();
        let is_flat = share(*median) >= 1.0 - NEAR_WINDOW && share(*most) <= 1.0 + NEAR_WINDOW;
        is_flat && pauses(&samples, rtt)
    };
    !m.streams.is_empty() && m.streams.iter().all(|stream| stops(&stream.sender))
}

/// Returns true if nothing was acknowledged between many of the samples that are less than an RTT
/// apart.
fn pauses(samples: &[&Sample], rtt: Rtt) -> bool {
    let within = samples.windows(2).filter_map(|pair| match pair {
        [before, after] if after.t_s - before.t_s <= WITHIN_RTT * rtt.secs_f64() => {
            Some(after.acked_bytes <= before.acked_bytes)
        }
        _ => None,
    });
    let (all, without) = within
        .fold((0u32, 0u32), |(all, without), is_pause| (all + 1, without + u32::from(is_pause)));
    all > 0 && f64::from(without) >= PAUSING * f64::from(all)
}

fn reason(finding: &Finding, m: &Measurement) -> Option<BoostReason> {
    if m.spec.protocol != Protocol::Tcp {
        return Some(BoostReason::NotTcp);
    }
    Some(match finding.limit {
        None | Some(Limit::Unknown) => BoostReason::LimitUnknown,
        Some(Limit::Application) => BoostReason::Application,
        Some(Limit::SlowReceiver) => BoostReason::Receiver,
        Some(Limit::Pacing) => BoostReason::Pacing,
        Some(Limit::Cpu | Limit::Memory | Limit::PacingTimers) => BoostReason::Cpu,
        Some(Limit::PathRate | Limit::Aqm) => BoostReason::LineFull,
        Some(Limit::SharedBottleneck) => BoostReason::Shared,
        Some(Limit::Policer) => BoostReason::Policed,
        Some(Limit::Ramp) => BoostReason::TooShort,
        Some(Limit::EcnMarks) => BoostReason::NoModel,
        Some(
            Limit::Reordering
            | Limit::AckPath
            | Limit::PathChange
            | Limit::Outage
            | Limit::PmtuBlackHole,
        ) => BoostReason::PathFault,
        Some(
            Limit::ReceiveWindow
            | Limit::WindowScaling
            | Limit::SendBuffer
            | Limit::FixedWindow
            | Limit::CongestionAvoidance
            | Limit::ShallowQueue
            | Limit::Loss
            | Limit::ClusteredLoss,
        ) => return None,
    })
}

/// Returns true where a cause that no option removes is likely as well, or where the first one is not
/// sure.
fn is_uncertain(finding: &Finding) -> bool {
    let hidden = |limit: Limit| {
        matches!(limit, Limit::Application | Limit::SlowReceiver | Limit::Cpu | Limit::Pacing)
            || limit.is_saturated()
    };
    let also = finding.posterior.iter().filter(|one| Some(one.limit) != finding.limit);
    finding.confidence != Some(Confidence::Sure)
        || also.filter(|one| one.probability >= ALSO_LIKELY).any(|one| hidden(one.limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Stream;

    const RTT_S: f64 = 0.173;

    /// A connection with `in_flight` bytes in flight, of which `burst` of each RTT is sent at once,
    /// and the rest of the RTT is a pause.
    fn measured(in_flight: u64, burst: f64) -> (Measurement, Finding) {
        let sample = |at: u32| {
            let t_s = f64::from(at) * 0.1;
            let rounds = t_s / RTT_S;
            let sent = rounds.floor() + (rounds.fract() / burst).min(1.0);
            Sample {
                t_s,
                acked_bytes: (sent * ByteCount::from_bytes(in_flight).as_f64()) as u64,
                in_flight_bytes: in_flight,
                ..Sample::default()
            }
        };
        let stream = Stream { sender: (0..200).map(sample).collect(), ..Stream::default() };
        let m = Measurement { streams: vec![stream], ..Measurement::default() };
        let rtt = Rtt::from_secs(RTT_S);
        let goodput = model::window_rate(ByteCount::from_bytes(in_flight), rtt).unwrap();
        let mut finding = Finding {
            limit: Some(Limit::Application),
            confidence: Some(Confidence::Sure),
            throughput_bps: goodput,
            min_rtt: Some(rtt),
            loaded_rtt: Some(rtt),
            posterior: Vec::new(),
            ..diagnose::explain(&m)
        };
        (finding.steady.from_s, finding.steady.to_s) = (1.0, 19.0);
        (m, finding)
    }

    const SSH: Option<ObservedPorts> = Some(ObservedPorts { service: SSH_PORT, peer: SSH_PORT });

    #[test]
    fn ssh_stops_at_its_window_and_pauses() {
        for window in [OPENSSH.bytes(), 64 << 15] {
            let (m, finding) = measured(window, 0.1);
            let found = of(&finding, &m, SSH, 1);
            assert_eq!(found.reason, Some(BoostReason::ProgramWindow), "{window}");
            assert!(!found.is_uncertain);
        }
    }

    #[test]
    fn a_source_of_the_same_rate_is_no_window() {
        let (m, finding) = measured(OPENSSH.bytes(), 1.0);
        let found = of(&finding, &m, SSH, 1);
        assert_eq!(found.reason, Some(BoostReason::Application));
        assert!(found.is_uncertain);
        // A test on that port has the limit that it names.
        for ports in [None, Some(ObservedPorts { service: 443, peer: 443 })] {
            let found = of(&finding, &m, ports, 1);
            assert_eq!(
                (found.reason, found.program_window),
                (Some(BoostReason::Application), None)
            );
            assert!(!found.is_uncertain);
        }
    }

    #[test]
    fn another_rate_is_another_limit() {
        for bytes in [OPENSSH.bytes() / 2, OPENSSH.bytes() * 2] {
            let (m, finding) = measured(bytes, 0.1);
            let found = of(&finding, &m, SSH, 1);
            assert_eq!(found.reason, Some(BoostReason::Application), "{bytes}");
            assert_eq!(found.program_window.is_some(), bytes < OPENSSH.bytes());
        }
    }
}
