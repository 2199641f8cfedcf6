//! The target a host is checked against.

use crate::document::DoctorTarget;
use record::CheckCommand;
use units::{BitRate, ByteCount, Rtt};

/// MSS of an unknown path: an MTU of 1500 less the headers of IPv4, TCP and its timestamps.
const USUAL_MSS: u32 = 1_448;

/// The highest loss ratio at which a congestion control reaches a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LossBudget {
    /// Lost packets of those sent, 0 to 1.
    pub(crate) ratio: f64,
    /// The congestion control and its equation, such as `CUBIC, RFC 9438`.
    pub(crate) law: &'static str,
}

impl LossBudget {
    /// As a requirement.
    pub(crate) fn words(&self) -> String {
        format!("below {} ({})", units::percent(self.ratio), self.law)
    }
}

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

    /// The highest loss ratio at which CUBIC gives each stream its share.
    pub(crate) fn loss_budget_cubic(&self) -> Option<LossBudget> {
        let mss = ByteCount::from_bytes(self.mss().into());
        let ratio = model::loss_budget_cubic(self.each(), mss, self.rtt?)?.fraction();
        Some(LossBudget { ratio, law: "CUBIC, RFC 9438" })
    }

    /// How long CUBIC takes to recover each stream's window after a loss, as a clause.
    pub(crate) fn cubic_recovery(&self) -> String {
        let mss = ByteCount::from_bytes(self.mss().into());
        match self.rtt {
            Some(rtt) => format!(
                "needs {} s to recover the window after a loss (RFC 9438, K)",
                units::significant(model::cubic_recovery(mss, rtt, self.each()), 2)
            ),
            None => "needs cbrt(0.75 W) seconds to recover a window of W segments after a loss \
                     (RFC 9438, K)"
                .to_owned(),
        }
    }

    /// The budget with the congestion control of this name; over `link`, where its rate is
    /// known. One without an equation gets Reno's, the smallest.
    pub(crate) fn loss_budget_with(
        &self,
        congestion: &str,
        link: Option<BitRate>,
    ) -> Option<LossBudget> {
        match congestion {
            "cubic" => self.loss_budget_cubic(),
            // BBR delivers what is not lost: the budget is the link's headroom.
            "bbr" => {
                let ratio = model::loss_budget_bbr(self.rate, link?)?.fraction();
                Some(LossBudget { ratio, law: "BBR, ACM Queue 2016" })
            }
            "reno" => Some(LossBudget { ratio: self.loss_budget()?, law: "Reno, Mathis 1997" }),
            _ => Some(LossBudget {
                ratio: self.loss_budget()?,
                law: "Reno, Mathis 1997; this congestion control has no published equation",
            }),
        }
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

    /// The command that applies the plan for this target; `None` without an RTT.
    #[must_use]
    pub fn tune_apply(&self) -> Option<CheckCommand> {
        let rtt = self.rtt.filter(|rtt| *rtt > Rtt::ZERO)?;
        Some(CheckCommand::tune_apply(self.rate, rtt, self.streams()))
    }

    /// The target as reported.
    #[must_use]
    pub fn record(&self) -> DoctorTarget {
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
            loss_budget_cubic: self.loss_budget_cubic().map(|budget| budget.ratio),
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
    fn each_congestion_control_has_its_own_budget() {
        // 51.125 MB in flight are 35 307 segments. Reno: 1.5 / 35307^2 = 1.2e-9. CUBIC:
        // 0.1636 s / (35307 / 1.054)^(4/3) = 1.5e-7, 126 times more.
        let target = target("2.5gbit", "163.6ms", 1);
        let ratio = |name| target.loss_budget_with(name, None).unwrap().ratio;
        let segments = 51_125_000.0 / 1_448.0_f64;
        assert!((ratio("reno") / (1.5 / segments.powi(2)) - 1.0).abs() < 1e-6);
        let cubic = 0.1636 / (segments / 1.054).powf(4.0 / 3.0);
        assert!((ratio("cubic") / cubic - 1.0).abs() < 2e-3, "{}", ratio("cubic"));
        assert!((ratio("cubic") / ratio("reno") - 126.0).abs() < 1.0);
        assert_eq!(units::percent(ratio("cubic")), "0.000015 %");
        assert!((ratio("htcp") - ratio("reno")).abs() < 1e-15);
        // A tenth of a link's rate may be lost where nine tenths are asked.
        let link = Some("10gbit".parse().unwrap());
        let bbr = Target { rate: "9gbit".parse().unwrap(), ..target.clone() };
        assert!((bbr.loss_budget_with("bbr", link).unwrap().ratio - 0.1).abs() < 1e-9);
        assert_eq!(bbr.loss_budget_with("bbr", None), None);
    }

    #[test]
    fn without_an_rtt_there_is_no_plan() {
        assert!(target("1gbit", "1us", 1).tune_apply().is_some());
        assert_eq!(target("1gbit", "0ms", 1).tune_apply(), None);
        assert_eq!(target("1gbit", "0ms", 1).loss_budget(), None);
    }
}
