//! From probes to round trips per minute (sections 4.3 and 4.4 of the draft).

use super::probes::ForeignProbe;
use model::statistics::{self, trimmed_mean};
use serde::Serialize;
use units::BitRate;

/// Intervals that a moving average covers, and moving averages that are compared.
pub(super) const AVERAGED: usize = 4;
/// Deviation of moving averages, as a share of the newest, up to which they are stable.
const TOLERANCE: f64 = 0.05;
/// The share of the times that a trimmed mean keeps.
const KEPT: f64 = 0.95;
/// Fewest probes of a kind.
const MIN_PROBES: usize = 5;

/// How far a result is to be relied on (section 4.3).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Goodput and responsiveness were stable.
    High,
    /// The responsiveness was not stable at the end of the time.
    Medium,
    /// Not even the goodput was.
    Low,
}

/// Trimmed means of times, in milliseconds; `None` without probes that have them.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latencies {
    /// The number of probes.
    pub probes: u32,
    /// TCP handshakes.
    pub tcp_ms: Option<f64>,
    /// TLS handshakes.
    pub tls_ms: Option<f64>,
    /// Requests, to the end of the answer.
    pub http_ms: Option<f64>,
}

impl Latencies {
    /// Of probes on connections of their own.
    pub(super) fn of(probes: &[ForeignProbe]) -> Self {
        let mean = |of: fn(&ForeignProbe) -> Option<f64>| {
            let all: Vec<f64> = probes.iter().filter_map(of).collect();
            trimmed_mean(&all, KEPT)
        };
        Latencies {
            probes: u32::try_from(probes.len()).unwrap_or(u32::MAX),
            tcp_ms: mean(|probe| Some(probe.tcp_ms)),
            tls_ms: mean(|probe| probe.tls_ms),
            http_ms: mean(|probe| Some(probe.http_ms)),
        }
    }

    /// Of probes within loaded connections.
    pub(super) fn of_loaded(http_ms: &[f64]) -> Self {
        Latencies {
            probes: u32::try_from(http_ms.len()).unwrap_or(u32::MAX),
            http_ms: trimmed_mean(http_ms, KEPT),
            ..Latencies::default()
        }
    }

    /// Mean of the kinds of round trips that the probes made.
    fn mean(&self) -> Option<f64> {
        let kinds: Vec<f64> =
            [self.tcp_ms, self.tls_ms, self.http_ms].into_iter().flatten().collect();
        let is_enough = self.probes as usize >= MIN_PROBES;
        statistics::mean(&kinds).filter(|mean| is_enough && *mean > 0.0)
    }
}

/// Round trips per minute: the mean of those of foreign and of loaded probes.
pub(super) fn rpm(foreign: &Latencies, loaded: &Latencies) -> Option<f64> {
    Some((60_000.0 / foreign.mean()? + 60_000.0 / loaded.mean()?) / 2.0)
}

/// A figure of each interval, and whether it has settled.
#[derive(Debug, Default)]
pub(super) struct Series {
    values: Vec<f64>,
    averages: Vec<f64>,
}

impl Series {
    pub(super) fn push(&mut self, value: f64) {
        self.values.push(value);
        self.averages.push(self.average());
    }

    /// Mean of the last intervals.
    pub(super) fn average(&self) -> f64 {
        let last = self.values.len().saturating_sub(AVERAGED);
        statistics::mean(self.values.get(last..).unwrap_or_default()).unwrap_or(0.0)
    }

    pub(super) fn is_stable(&self) -> bool {
        let Some(from) = self.averages.len().checked_sub(AVERAGED) else { return false };
        let last = self.averages.get(from..).unwrap_or_default();
        let newest = last.last().copied().unwrap_or(0.0);
        newest > 0.0 && statistics::deviation(last).is_some_and(|it| it <= TOLERANCE * newest)
    }
}

/// Figures of a direction.
#[derive(Debug, Clone)]
pub(super) struct Round {
    pub(super) rpm: Option<f64>,
    pub(super) confidence: Confidence,
    pub(super) rate: BitRate,
    pub(super) connections: u32,
    pub(super) seconds: f64,
    pub(super) foreign: Latencies,
    pub(super) loaded: Latencies,
    pub(super) failed: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_of_round_trips_by_the_drafts_formula() {
        let probe = |scale: f64| ForeignProbe {
            tcp_ms: 50.0 * scale,
            tls_ms: Some(60.0 * scale),
            http_ms: 70.0 * scale,
        };
        // The longest twentieth does not count.
        let mut probes = vec![probe(1.0); 19];
        probes.push(probe(100.0));
        let foreign = Latencies::of(&probes);
        assert_eq!((foreign.probes, foreign.tcp_ms), (20, Some(50.0)));
        let loaded = Latencies::of_loaded(&[200.0; 5]);
        assert!((rpm(&foreign, &loaded).unwrap() - 650.0).abs() < 1e-9, "mean of 1000 and 300");
        assert_eq!(rpm(&foreign, &Latencies::of_loaded(&[200.0; 4])), None);
        // Without TLS there are two kinds of round trips.
        let plain = ForeignProbe { tls_ms: None, ..probe(1.0) };
        let plain = Latencies::of(&[plain; 5]);
        assert!((rpm(&plain, &loaded).unwrap() - 650.0).abs() < 1e-9);
    }

    #[test]
    fn a_series_is_stable_after_four_averages_within_five_percent() {
        let mut series = Series::default();
        for value in [100.0, 101.0, 99.0] {
            series.push(value);
            assert!(!series.is_stable());
        }
        series.push(100.0);
        assert!(series.is_stable());
        for value in [200.0, 200.0] {
            series.push(value);
        }
        assert!(!series.is_stable());
        let mut nothing = Series::default();
        (0..8).for_each(|_| nothing.push(0.0));
        assert!(!nothing.is_stable());
    }
}
