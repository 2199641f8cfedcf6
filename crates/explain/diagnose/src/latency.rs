//! RTTs before, during and after a load: the latency under load.

use model::statistics;
use record::{LatencyPhase, LatencyProbe, LatencyUnderLoad};

/// The minimum number of RTTs for a responsiveness in RPM.
const MIN_FOR_RPM: usize = 20;

/// The share of the RTTs that the trimmed mean keeps
/// (draft-ietf-ippm-responsiveness-09, section 4.4: the 95th percentile).
const KEPT: f64 = 0.95;

/// The results of a flow of probes.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeFlow {
    /// `icmp` or `tcp`.
    pub method: String,
    /// The TCP port; `None` for ICMP.
    pub port: Option<u16>,
    /// Probe interval.
    pub interval_ms: f64,
    /// The probes in order, without those that may still be answered.
    pub probes: Vec<LatencyProbe>,
}

/// When there was load, in seconds since it began. Probes sent between `to_s` and
/// `quiet_s` met queues that were still draining, and count in no phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// The end of the warm-up.
    pub from_s: f64,
    /// The end of the load.
    pub to_s: f64,
    /// When all of its data had arrived.
    pub quiet_s: f64,
}

/// Assigns the probes of `flow` to their phases; `connects`, TCP handshakes under load,
/// give the responsiveness.
#[must_use]
pub fn under_load(flow: ProbeFlow, connects: Option<&ProbeFlow>, load: Load) -> LatencyUnderLoad {
    let before = phase(&flow.probes, f64::NEG_INFINITY, 0.0);
    let during = phase(&flow.probes, load.from_s, load.to_s);
    let after = phase(&flow.probes, load.quiet_s, f64::INFINITY);
    let rise_ms = during.mean_ms.zip(before.mean_ms).map(|(loaded, idle)| loaded - idle);
    let rtts = connects.map_or(Vec::new(), |flow| rtts(&flow.probes, load.from_s, load.to_s));
    let enough = rtts.len() >= MIN_FOR_RPM;
    let rpm_tcp = statistics::trimmed_mean(&rtts, KEPT)
        .filter(|mean| enough && *mean > 0.0)
        .map(|mean| 60_000.0 / mean);
    LatencyUnderLoad {
        method: flow.method,
        port: flow.port,
        interval_ms: flow.interval_ms,
        before,
        during,
        after,
        rise_ms,
        grade: rise_ms.map(|rise| grade(rise).to_owned()),
        rpm_tcp,
        rpm_word: rpm_tcp.map(|rpm| word(rpm).to_owned()),
        rpm_port: connects.and_then(|flow| flow.port),
        rpm_count: rtts.len() as u64,
        probes: flow.probes,
        notes: Vec::new(),
    }
}

/// RTTs of the probes sent in `from..to`.
fn rtts(probes: &[LatencyProbe], from: f64, to: f64) -> Vec<f64> {
    let within = probes.iter().filter(|probe| (from..to).contains(&probe.at_s));
    within.filter_map(|probe| probe.rtt_ms).collect()
}

fn phase(probes: &[LatencyProbe], from: f64, to: f64) -> LatencyPhase {
    let count = probes.iter().filter(|probe| (from..to).contains(&probe.at_s)).count();
    let rtts = rtts(probes, from, to);
    let at = |share| statistics::percentile(&rtts, share);
    LatencyPhase {
        count: count as u64,
        lost: (count - rtts.len()) as u64,
        min_ms: at(0.0),
        mean_ms: statistics::mean(&rtts),
        p50_ms: at(0.5),
        p90_ms: at(0.9),
        p95_ms: at(0.95),
        p99_ms: at(0.99),
        max_ms: at(1.0),
    }
}

/// The bufferbloat grade of a latency increase in ms, after DSLReports.
#[must_use]
pub fn grade(rise_ms: f64) -> &'static str {
    match rise_ms {
        rise if rise < 5.0 => "A+",
        rise if rise < 30.0 => "A",
        rise if rise < 60.0 => "B",
        rise if rise < 200.0 => "C",
        rise if rise < 400.0 => "D",
        _ => "F",
    }
}

/// The rating of a responsiveness in RPM (round trips per minute).
#[must_use]
pub fn word(rpm: f64) -> &'static str {
    match rpm {
        rpm if rpm < 300.0 => "poor",
        rpm if rpm < 1000.0 => "fair",
        rpm if rpm < 6000.0 => "good",
        _ => "excellent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(probes: impl IntoIterator<Item = (f64, Option<f64>)>) -> ProbeFlow {
        let probe = |(at_s, rtt_ms)| LatencyProbe { at_s, rtt_ms };
        ProbeFlow {
            method: "icmp".to_owned(),
            port: None,
            interval_ms: 100.0,
            probes: probes.into_iter().map(probe).collect(),
        }
    }

    const LOAD: Load = Load { from_s: 1.0, to_s: 11.0, quiet_s: 12.0 };

    #[test]
    fn each_probe_is_in_one_phase_or_none() {
        let found = under_load(
            flow([
                (-2.0, Some(40.0)),
                (-0.1, Some(42.0)),
                (0.5, Some(999.0)),
                (1.0, Some(100.0)),
                (5.0, Some(140.0)),
                (6.0, None),
                (11.0, Some(999.0)),
                (12.0, Some(41.0)),
                (13.0, None),
            ]),
            None,
            LOAD,
        );
        let counts =
            [found.before, found.during, found.after].map(|phase| (phase.count, phase.lost));
        assert_eq!(counts, [(2, 0), (3, 1), (2, 1)]);
        assert_eq!(found.during.mean_ms, Some(120.0));
        assert_eq!((found.during.min_ms, found.during.max_ms), (Some(100.0), Some(140.0)));
        // 120 less 41.
        assert_eq!((found.rise_ms, found.grade.as_deref()), (Some(79.0), Some("C")));
        assert_eq!(found.rpm_tcp, None);
    }

    #[test]
    fn without_replies_there_are_no_figures() {
        let found = under_load(flow([(-1.0, None), (2.0, None)]), Some(&flow([])), LOAD);
        assert_eq!((found.rise_ms, found.grade, found.rpm_tcp), (None, None, None));
        assert_eq!((found.during.count, found.during.lost, found.during.p99_ms), (1, 1, None));
    }

    #[test]
    fn responsiveness_trims_the_longest_rtts() {
        // Nineteen of 100 ms and one of 5 s: the mean of the lowest 95 % is 100 ms.
        let loaded = (0..20).map(|n| (1.0 + f64::from(n) / 10.0, Some(100.0)));
        let mut connects = flow(loaded);
        connects.probes[7].rtt_ms = Some(5000.0);
        let found = under_load(flow([]), Some(&connects), LOAD);
        assert!((found.rpm_tcp.unwrap() - 600.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.rpm_word.as_deref(), Some("fair"));
        connects.probes.truncate(19);
        assert_eq!(under_load(flow([]), Some(&connects), LOAD).rpm_tcp, None);
    }

    #[test]
    fn grades_change_at_their_thresholds() {
        let grades = [-1.0, 4.9, 5.0, 29.9, 30.0, 59.9, 60.0, 199.9, 200.0, 399.9, 400.0];
        let expected = ["A+", "A+", "A", "A", "B", "B", "C", "C", "D", "D", "F"];
        assert_eq!(grades.map(grade), expected);
        let words = [299.0, 300.0, 999.0, 1000.0, 5999.0, 6000.0].map(word);
        assert_eq!(words, ["poor", "fair", "fair", "good", "good", "excellent"]);
    }
}
