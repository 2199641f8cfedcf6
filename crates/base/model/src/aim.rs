//! Cloudflare's Aggregated Internet Measurement (AIM) scores: points for figures of a connection,
//! and from their sums a verdict for uses (cloudflare/speedtest, `src/utils/scores`).

use serde::{Deserialize, Serialize};

/// What a connection was measured to be; what is missing counts no points.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// Idle RTT, ms.
    pub latency_ms: Option<f64>,
    /// Mean difference of successive RTTs, ms.
    pub jitter_ms: Option<f64>,
    /// RTT under load less the idle one, ms.
    pub increase_ms: Option<f64>,
    /// Lost packets, 0 to 1.
    pub loss: Option<f64>,
    /// Download rate, bit/s.
    pub download_bps: Option<f64>,
}

/// How well a connection serves a use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Hardly.
    Bad,
    /// With interruptions.
    Poor,
    /// Mostly.
    Average,
    /// Well.
    Good,
    /// Without any limitation.
    Great,
}

/// Verdicts for the uses that AIM knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdicts {
    /// Video streams.
    pub streaming: Verdict,
    /// Games.
    pub gaming: Verdict,
    /// Calls with video.
    pub calls: Verdict,
}

/// Points of the first bound that a value is below, else the last ones.
fn points<const N: usize>(value: Option<f64>, bounds: [(f64, i32); N], otherwise: i32) -> i32 {
    let Some(value) = value else { return 0 };
    bounds.iter().find(|(bound, _)| value < *bound).map_or(otherwise, |(_, points)| *points)
}

fn latency(ms: Option<f64>) -> i32 {
    points(ms, [(10.0, 20), (20.0, 10), (50.0, 5), (100.0, 0), (500.0, -10)], -20)
}

fn jitter(ms: Option<f64>) -> i32 {
    points(ms, [(10.0, 10), (20.0, 5), (100.0, 0), (500.0, -10)], -20)
}

fn loss(ratio: Option<f64>) -> i32 {
    points(ratio, [(0.01, 10), (0.05, 5), (0.25, 0), (0.5, -10)], -20)
}

fn download(bps: Option<f64>) -> i32 {
    points(bps, [(1e6, 0), (1e7, 5), (5e7, 10), (1e8, 20)], 30)
}

fn verdict(sum: i32, steps: [i32; 4]) -> Verdict {
    let all = [Verdict::Bad, Verdict::Poor, Verdict::Average, Verdict::Good];
    let below = steps.iter().zip(all).find(|(step, _)| sum < **step);
    below.map_or(Verdict::Great, |(_, verdict)| verdict)
}

/// The verdicts; `None` without a latency, from which all of them are made.
#[must_use]
pub fn verdicts(figures: &Figures) -> Option<Verdicts> {
    figures.latency_ms?;
    let common = latency(figures.latency_ms) + loss(figures.loss) + latency(figures.increase_ms);
    Some(Verdicts {
        streaming: verdict(common + download(figures.download_bps), [15, 20, 40, 60]),
        gaming: verdict(common, [5, 15, 25, 30]),
        calls: verdict(common + jitter(figures.jitter_ms), [5, 15, 25, 40]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_change_at_their_bounds() {
        let at = |of: fn(Option<f64>) -> i32, values: &[f64]| -> Vec<i32> {
            values.iter().map(|value| of(Some(*value))).collect()
        };
        let ms = [9.9, 10.0, 19.9, 20.0, 49.9, 50.0, 99.9, 100.0, 499.0, 500.0];
        assert_eq!(at(latency, &ms), [20, 10, 10, 5, 5, 0, 0, -10, -10, -20]);
        assert_eq!(at(jitter, &ms), [10, 5, 5, 0, 0, 0, 0, -10, -10, -20]);
        let ratios = [0.0, 0.0099, 0.01, 0.049, 0.05, 0.249, 0.25, 0.49, 0.5];
        assert_eq!(at(loss, &ratios), [10, 10, 5, 5, 0, 0, -10, -10, -20]);
        let rates = [0.0, 9.9e5, 1e6, 9.9e6, 1e7, 4.9e7, 5e7, 9.9e7, 1e8, 1e9];
        assert_eq!(at(download, &rates), [0, 0, 5, 5, 10, 10, 20, 20, 30, 30]);
        assert_eq!([latency(None), jitter(None), loss(None), download(None)], [0; 4]);
    }

    #[test]
    fn sums_become_verdicts() {
        let steps = [5, 15, 25, 40];
        let got = [4, 5, 14, 15, 24, 25, 39, 40].map(|sum| verdict(sum, steps));
        use Verdict::{Average, Bad, Good, Great, Poor};
        assert_eq!(got, [Bad, Poor, Poor, Average, Average, Good, Good, Great]);
        let best = Figures {
            latency_ms: Some(5.0),
            jitter_ms: Some(1.0),
            increase_ms: Some(2.0),
            loss: Some(0.0),
            download_bps: Some(1e9),
        };
        let all = verdicts(&best).unwrap();
        assert_eq!((all.streaming, all.gaming, all.calls), (Great, Great, Great));
        assert_eq!(verdicts(&Figures { latency_ms: None, ..best }), None);
        let bloated = Figures { increase_ms: Some(600.0), latency_ms: Some(60.0), ..best };
        let all = verdicts(&bloated).unwrap();
        assert_eq!((all.streaming, all.gaming, all.calls), (Average, Bad, Bad));
    }
}
