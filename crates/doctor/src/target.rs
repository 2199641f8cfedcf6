//! The target a host is checked against.

use record::DoctorTarget;
use units::{BitRate, ByteCount, Rtt};

/// MSS of an unknown path: an MTU of 1500 less the headers of IPv4, TCP and its timestamps.
const USUAL_MSS: u32 = 1_448;

/// A rate at an RTT.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The rate of all streams together.
    pub rate: BitRate,
    /// Where the rate is from, in words.
    pub rate_from: String,
    /// The RTT; `None` where neither given nor measured.
    pub rtt: Option<Rtt>,
    /// Where it is from, in words.
    pub rtt_from: String,
    /// Connections that share the rate; 0 counts as 1.
    pub streams: u32,
    /// Payload bytes of a segment; `None` for that of an MTU of 1500.
    pub mss: Option<u32>,
}

impl Target {
    /// Connections, 1 or more.
    #[must_use]
    pub fn streams(&self) -> u32 {
        self.streams.max(1)
    }

    /// Each stream's share of the rate.
    #[must_use]
    pub fn each(&self) -> BitRate {
        BitRate::from_bps(self.rate.bps().div_ceil(u64::from(self.streams())))
    }

    /// The window that each stream needs.
    #[must_use]
    pub fn window(&self) -> Option<ByteCount> {
        self.rtt.map(|rtt| model::per_stream(model::window_for(self.rate, rtt), self.streams()))
    }

    /// Payload of a segment.
    #[must_use]
    pub fn mss(&self) -> u32 {
        self.mss.filter(|mss| *mss > 0).unwrap_or(USUAL_MSS)
    }

    /// The highest loss ratio at which Mathis' equation gives each stream its share.
    #[must_use]
    pub fn loss_budget(&self) -> Option<f64> {
        self.budget(model::mathis_constant())
    }

    /// `(C MSS / (rate RTT))^2`, not rounded to the places of a `LossRatio`:
    /// 100 Gbit/s over 100 ms leaves 2e-12.
    fn budget(&self, constant: f64) -> Option<f64> {
        let in_flight = self.each().as_f64() * self.rtt?.secs_f64() / 8.0;
        let loss = (constant * f64::from(self.mss()) / in_flight).powi(2);
        (loss.is_finite() && loss > 0.0).then_some(loss.min(1.0))
    }

    /// The target as text.
    #[must_use]
    pub fn words(&self) -> String {
        let mut text = self.rate.to_string();
        if let Some(rtt) = self.rtt {
            text += &format!(" over {rtt}");
        }
        if self.streams() > 1 {
            text += &format!(", {} streams", self.streams());
        }
        text
    }

    /// The target as options of `longhaul tune`; `None` without an RTT.
    #[must_use]
    pub fn flags(&self) -> Option<String> {
        let rtt = self.rtt.filter(|rtt| *rtt > Rtt::ZERO)?;
        let bps = self.rate.bps();
        let rate = [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit")]
            .into_iter()
            .find(|(unit, _)| bps > 0 && bps.is_multiple_of(*unit))
            .map_or_else(|| format!("{bps}bit"), |(unit, name)| format!("{}{name}", bps / unit));
        // Rounded up to a tenth of a millisecond: a measured RTT is never the longest.
        let tenths = rtt.nanos().div_ceil(100_000);
        let time = match tenths % 10 {
            0 => format!("{}ms", tenths / 10),
            rest => format!("{}.{rest}ms", tenths / 10),
        };
        let mut flags = format!("--rate {rate} --rtt {time}");
        if self.streams() > 1 {
            flags += &format!(" --streams {}", self.streams());
        }
        Some(flags)
    }

    /// The target as reported.
    #[must_use]
    pub fn record(&self) -> DoctorTarget {
        let cubic = self.rtt.and_then(|rtt| {
            model::loss_budget_cubic(self.each(), ByteCount::from_bytes(self.mss().into()), rtt)
        });
        DoctorTarget {
            rate_bps: self.rate,
            rate_from: self.rate_from.clone(),
            rtt_ms: self.rtt.map(Rtt::millis_f64),
            rtt_from: self.rtt_from.clone(),
            streams: self.streams(),
            mss_bytes: self.mss(),
            bdp_bytes: self.rtt.map(|rtt| model::bdp(self.rate, rtt)),
            window_bytes: self.window(),
            window_scale: self.window().and_then(|window| model::window_scale(window).ok()),
            loss_budget_mathis: self.loss_budget(),
            loss_budget_cubic: cubic.map(units::LossRatio::fraction),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(rate: &str, rtt: &str, streams: u32) -> Target {
        Target {
            rate: rate.parse().unwrap(),
            rate_from: String::new(),
            rtt: Some(rtt.parse().unwrap()),
            rtt_from: String::new(),
            streams,
            mss: None,
        }
    }

    #[test]
    fn npads_budget() {
        // NPAD: 4 Mb/s with a 1448 byte MSS over 200 ms: loss below 0.0103 %, with C = 0.7.
        let loss = target("4mbit", "200ms", 1).budget(0.7).unwrap();
        assert!((loss * 100.0 - 0.0103).abs() < 1e-4, "{loss}");
        let ours = target("4mbit", "200ms", 1).loss_budget().unwrap();
        assert!((ours / loss - 1.5 / 0.49).abs() < 1e-9);
    }

    #[test]
    fn streams_share_the_rate_and_bear_more() {
        let (one, four) = (target("2.5gbit", "163.6ms", 1), target("2.5gbit", "163.6ms", 4));
        assert_eq!(one.window().unwrap().bytes(), 51_125_000);
        assert_eq!(four.window().unwrap().bytes(), 51_125_000_u64.div_ceil(4));
        let more = four.loss_budget().unwrap() / one.loss_budget().unwrap();
        assert!((more - 16.0).abs() < 1e-6, "{more}");
    }

    #[test]
    fn flags_are_what_tune_takes() {
        assert_eq!(target("10gbit", "200ms", 1).flags().unwrap(), "--rate 10gbit --rtt 200ms");
        assert_eq!(
            target("2500mbit", "163.61ms", 4).flags().unwrap(),
            "--rate 2500mbit --rtt 163.7ms --streams 4"
        );
        assert_eq!(target("1bit", "1us", 1).flags().unwrap(), "--rate 1bit --rtt 0.1ms");
        assert_eq!(target("1gbit", "0ms", 1).flags(), None);
        assert_eq!(target("1gbit", "0ms", 1).loss_budget(), None);
    }
}
