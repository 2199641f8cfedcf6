//! The loss equations with their numbers, sources and validity.

use super::{Answer, Law, LossQuestion, Value};
use crate::{
    BBR_CWND_GAIN, RenoPath, bbr, bbr_inflight, cubic, cubic_recovery, cubic_region, figures,
    loss_budget_bbr, loss_budget_cubic, loss_budget_mathis_for, loss_budget_pftk,
    mathis_constant_for, mathis_for, pftk, pftk_simple, window_rate,
};
use units::{BitRate, LossRatio, Rtt};

const MATHIS: &str = "Mathis, Semke, Mahdavi, Ott 1997, equation 3";
const PFTK: &str = "Padhye, Firoiu, Towsley, Kurose, SIGCOMM 1998, section 2.3: the full model";
const TFRC: &str = "the approximation in the same paper; RFC 5348, section 3.1";
const CUBIC: &str = "RFC 9438, sections 4.3 and 5.1";
const BBR: &str = "Cardwell et al., ACM Queue 14(5), 2016, and Cardwell on bbr-dev";

impl Law {
    pub(super) const ALL: [Law; 4] = [Law::Mathis, Law::Pftk, Law::Cubic, Law::Bbr];

    pub(super) fn name(self) -> &'static str {
        match self {
            Law::Mathis => "mathis",
            Law::Pftk => "pftk",
            Law::Cubic => "cubic",
            Law::Bbr => "bbr",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Law::Mathis => "Mathis' equation",
            Law::Pftk => "Padhye's model",
            Law::Cubic => "CUBIC's response",
            Law::Bbr => "BBR's model",
        }
    }

    pub(super) fn key(self) -> &'static str {
        match self {
            Law::Mathis => "mathis_bps",
            Law::Pftk => "pftk_bps",
            Law::Cubic => "cubic_bps",
            Law::Bbr => "bbr_bps",
        }
    }

    /// The equation without the bounds of link and window.
    fn free(self, q: &LossQuestion, p: LossRatio) -> Option<BitRate> {
        match self {
            Law::Mathis => mathis_for(q.packets_per_ack, q.mss, q.rtt, p),
            Law::Pftk => pftk(&reno(q), p),
            Law::Cubic => cubic(q.mss, q.rtt, p),
            Law::Bbr => bbr(q.link?, p),
        }
    }

    /// The equation, capped at the rates of link and window.
    pub(super) fn bounded(self, q: &LossQuestion, p: LossRatio) -> Option<BitRate> {
        let window = q.window.and_then(|window| window_rate(window, q.rtt));
        let free = self.free(q, p)?;
        Some([q.link, window].into_iter().flatten().fold(free, BitRate::min))
    }

    pub(super) fn budget(self, q: &LossQuestion, rate: BitRate) -> Option<LossRatio> {
        // If the window is too small for the rate, no loss is small enough.
        if q.window.and_then(|window| window_rate(window, q.rtt)).is_some_and(|most| most < rate) {
            return None;
        }
        match self {
            Law::Mathis => loss_budget_mathis_for(q.packets_per_ack, rate, q.mss, q.rtt),
            Law::Pftk => loss_budget_pftk(&reno(q), rate),
            Law::Cubic => loss_budget_cubic(rate, q.mss, q.rtt),
            Law::Bbr => loss_budget_bbr(rate, q.link?),
        }
    }

    pub(super) fn rate_answers(self, q: &LossQuestion, p: LossRatio) -> Vec<Answer> {
        let answer = |key, label: &str, rate: Option<BitRate>, equation, source| Answer {
            key,
            label: label.to_owned(),
            value: rate.map(Value::Rate),
            equation,
            source,
        };
        let (mss, rtt, loss) =
            (format!("{} B", q.mss.bytes()), figures::rtt(q.rtt), figures::loss(p));
        let bound = self.bound(q, p);
        let rate = self.bounded(q, p);
        match self {
            Law::Mathis => {
                let c = figures::digits(mathis_constant_for(q.packets_per_ack));
                let b = q.packets_per_ack;
                let text = format!(
                    "C MSS / (RTT sqrt(p)) = {c} x {mss} / ({rtt} x sqrt({loss})), C = \
                     sqrt(3/(2b)), b = {b}{bound}"
                );
                vec![answer("rate_bps", "rate", rate, text, MATHIS)]
            }
            Law::Pftk => {
                let window = q.window.map_or("unlimited".to_owned(), figures::bytes);
                let text = format!(
                    "B(p) with timeouts and window; p = {loss}, b = {}, RTT = {rtt}, T0 = {}, \
                     Wmax = {window}, MSS = {mss}{bound}",
                    q.packets_per_ack,
                    figures::rtt(q.rto())
                );
                let simple = format!(
                    "MSS / (RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2)), p = {loss}"
                );
                let second = pftk_simple(&reno(q), p);
                vec![
                    answer("rate_bps", "rate", rate, text, PFTK),
                    answer("simple_rate_bps", "simple form", second, simple, TFRC),
                ]
            }
            Law::Cubic => {
                let own = cubic_region(q.mss, q.rtt, p);
                let reno = mathis_for(1, q.mss, q.rtt, p);
                let which = if own > reno { "CUBIC region" } else { "Reno-friendly region" };
                vec![
                    answer(
                        "rate_bps",
                        "rate",
                        rate,
                        format!("maximum of the two below: {which}{bound}"),
                        CUBIC,
                    ),
                    answer(
                        "cubic_region_bps",
                        "CUBIC region",
                        own,
                        format!(
                            "1.054 (RTT/p)^(3/4) MSS / RTT = 1.054 x ({rtt} / {loss})^(3/4) x \
                             {mss} / {rtt}"
                        ),
                        "RFC 9438, section 5.1, equation 6: C = 0.4, beta = 0.7",
                    ),
                    answer(
                        "reno_friendly_bps",
                        "Reno-friendly",
                        reno,
                        format!(
                            "sqrt(3/2) MSS / (RTT sqrt(p)) = 1.2247 x {mss} / ({rtt} x sqrt({loss}))"
                        ),
                        "RFC 9438, section 4.3: the rate of Reno",
                    ),
                ]
            }
            Law::Bbr => {
                let link = q.link.map_or(String::new(), figures::rate);
                let text = match rate {
                    Some(_) => format!("link x (1 - p) = {link} x (1 - {loss}){bound}"),
                    None => format!(
                        "no model above 1 - 1/1.25 = 20 %: at {loss} the flow cannot sustain its \
                         bandwidth estimate of {link}, which decays"
                    ),
                };
                vec![answer("rate_bps", "rate", rate, text, BBR)]
            }
        }
    }

    /// The bound that caps the equation's rate.
    fn bound(self, q: &LossQuestion, p: LossRatio) -> String {
        let (Some(free), Some(rate)) = (self.free(q, p), self.bounded(q, p)) else {
            return String::new();
        };
        if free <= rate {
            return String::new();
        }
        let by = if q.link == Some(rate) { "link" } else { "window / RTT" };
        format!("; {} alone, capped at {} by the {by}", figures::rate(free), figures::rate(rate))
    }

    pub(super) fn budget_answer(self, q: &LossQuestion, target: BitRate) -> Answer {
        let rate = figures::rate(target);
        let budget = self.budget(q, target);
        let mut equation = match (self, budget) {
            (_, None) => format!("the window is too small for {rate}"),
            (Law::Mathis, _) => {
                format!("p for {rate} = (C MSS / (rate RTT))^2, C = sqrt(3/(2b))")
            }
            (Law::Pftk, _) => format!("the p with B(p) = {rate}, by bisection"),
            (Law::Cubic, _) => {
                format!("p for {rate} = RTT / (rate RTT / (1.054 MSS))^(4/3), or Reno's if larger")
            }
            (Law::Bbr, _) => format!("p for {rate} = 1 - rate / link, at most 20 %"),
        };
        if budget == Some(LossRatio::NONE) && self != Law::Bbr {
            equation += "; below 10^-12, the resolution";
        }
        let source = match self {
            Law::Mathis => MATHIS,
            Law::Pftk => PFTK,
            Law::Cubic => CUBIC,
            Law::Bbr => BBR,
        };
        Answer {
            key: "loss_budget",
            label: "maximum loss".to_owned(),
            value: budget.map(Value::Loss),
            equation,
            source,
        }
    }

    pub(super) fn inflight_answer(self, rtt: Rtt, link: BitRate) -> Option<Answer> {
        (self == Law::Bbr).then(|| Answer {
            key: "inflight_bytes",
            label: "in flight".to_owned(),
            value: Some(Value::Size(bbr_inflight(link, rtt))),
            equation: format!(
                "at most cwnd_gain x BDP = {BBR_CWND_GAIN} x {} x {}, which windows and buffers \
                 must hold",
                figures::rate(link),
                figures::rtt(rtt)
            ),
            source: BBR,
        })
    }

    /// The mean time between two losses at a rate.
    pub(super) fn interval_answer(self, q: &LossQuestion) -> Option<Answer> {
        if !matches!(self, Law::Mathis | Law::Cubic) {
            return None;
        }
        let (p, rate) = match q.loss {
            Some(p) => (p, self.bounded(q, p)?),
            None => (self.budget(q, q.target()?)?, q.target()?),
        };
        let bits = q.mss.as_f64() * 8.0;
        let seconds = bits / (p.fraction() * rate.as_f64());
        Some(Answer {
            key: "loss_interval_s",
            label: "time between losses".to_owned(),
            value: seconds.is_finite().then_some(Value::Seconds(seconds)),
            equation: format!(
                "MSS / (p rate) = {} B x 8 / ({} x {})",
                q.mss.bytes(),
                figures::loss(p),
                figures::rate(rate)
            ),
            source: "one loss every 1/p packets",
        })
    }

    /// How long CUBIC takes to regain the window that fills the link.
    pub(super) fn recovery_answer(self, q: &LossQuestion) -> Option<Answer> {
        let link = q.link.filter(|_| self == Law::Cubic)?;
        let segments = link.as_f64() * q.rtt.secs_f64() / (q.mss.as_f64() * 8.0);
        Some(Answer {
            key: "recovery_s",
            label: "recovery after a loss".to_owned(),
            value: Some(Value::Seconds(cubic_recovery(q.mss, q.rtt, link))),
            equation: format!(
                "K = cbrt(W (1 - beta) / C) = cbrt({} x 0.3 / 0.4), W = {} x {} / (8 x {} B)",
                figures::digits(segments),
                figures::rate(link),
                figures::rtt(q.rtt),
                q.mss.bytes()
            ),
            source: "RFC 9438, section 4.2, equation 2: C = 0.4, beta = 0.7",
        })
    }

    /// The validity of the law.
    pub(super) fn holds(self) -> Vec<String> {
        let text = match self {
            Law::Mathis => {
                "Valid for Reno in congestion avoidance with periodic losses and no timeouts, up to \
                 p of about 2 %; above that, 'calc pftk' is more accurate. b = 1 fits Linux even \
                 with delayed ACKs, because it counts the bytes acknowledged (RFC 3465). Expect \
                 measured rates within a factor of two."
            }
            Law::Pftk => {
                "Valid for Reno with fast retransmit and timeouts, at any p. It assumes that after \
                 a loss the rest of the round is also lost, so it is pessimistic for isolated \
                 losses with SACK. The rate includes retransmissions. T0 defaults to RTT + 200 ms, \
                 as in Linux, where no timeout is given; RFC 6298 requires at least 1 s, RFC 5348 \
                 uses 4 RTT."
            }
            Law::Cubic => {
                "Valid for one flow in steady state without timeouts, up to p of about 2 %. At \
                 short RTTs and high loss CUBIC is in its Reno-friendly region. The model is \
                 deterministic: one loss every 1/p packets."
            }
            Law::Bbr => {
                "Valid for one BBRv1 flow (bbr in Linux) alone on its link. It does not react to \
                 loss, and up to 20 % it can sustain its bandwidth estimate; measured flows fall \
                 below the model from about 10 %. Not included: ProbeRTT (200 ms at four packets \
                 every 10 s, at most 2 %) and competing flows. No closed form is known above 20 %. \
                 BBRv3 reacts to loss above 2 % and is not covered."
            }
        };
        vec![text.to_owned()]
    }
}

fn reno(q: &LossQuestion) -> RenoPath {
    RenoPath {
        mss: q.mss,
        rtt: q.rtt,
        rto: q.rto(),
        window: q.window,
        packets_per_ack: q.packets_per_ack,
    }
}
