//! A transfer with and without a pair of WAN optimisers.
//!
//! Such a pair splits TCP at both sites: each host talks to the local optimiser over a
//! short RTT, and the optimisers talk to each other. This gives up to three gains, each
//! a step here: a window that fills the path, loss recovery between the optimisers, and
//! data reduction.

use super::result::{
    Answer, CalcResult, Column, Curve, Entries, Row, SHEET_SCHEMA, Scale, Series, Table, Value,
    by_decades,
};
use super::{CalcError, check_mss, check_rtt, check_window};
use crate::{cubic, figures, mathis, window_for, window_rate};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// A path, and the optimisers at its ends.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WanQuestion {
    /// The rate of the link between the sites.
    pub rate: BitRate,
    /// The RTT between the hosts.
    pub rtt: Rtt,
    /// Random loss between the sites.
    pub loss: LossRatio,
    /// The window of the hosts' TCP.
    pub window: ByteCount,
    /// The data reduction ratio: 3.0 is 3:1.
    pub ratio: f64,
    /// The rate of the local networks, an upper bound with data reduction.
    pub lan: BitRate,
    /// Payload of a full segment.
    pub mss: ByteCount,
    /// Whether TCP is Reno; else CUBIC.
    pub reno: bool,
}

/// A rate and its limit.
type Bounded = (BitRate, &'static str);

impl WanQuestion {
    fn check(&self) -> Result<(), CalcError> {
        check_rtt(self.rtt)?;
        check_window(self.window)?;
        check_mss(self.mss)?;
        if !(1.0..=1000.0).contains(&self.ratio) {
            return Err(CalcError::Ratio(self.ratio));
        }
        Ok(())
    }

    /// The rate of TCP over an RTT with a window, or with a sufficient one.
    fn tcp(&self, rtt: Rtt, window: Option<ByteCount>) -> Bounded {
        let law = if self.reno { mathis } else { cubic };
        let by_loss =
            if self.loss == LossRatio::NONE { None } else { law(self.mss, rtt, self.loss) };
        let by_window = window.and_then(|window| window_rate(window, rtt));
        [(by_loss, "loss"), (by_window, "window")]
            .into_iter()
            .filter_map(|(rate, by)| rate.map(|rate| (rate, by)))
            .fold((self.rate, "link"), |least, next| if next.0 < least.0 { next } else { least })
    }

    /// With loss recovery between the optimisers: each lost packet is retransmitted once.
    fn recovered(&self) -> Bounded {
        (self.rate.scaled(1.0 - self.loss.fraction()), "link")
    }

    fn reduced(&self) -> Bounded {
        let rate = self.recovered().0.scaled(self.ratio);
        if rate > self.lan { (self.lan, "local network") } else { (rate, "link x ratio") }
    }
}

/// Computes the rates with and without optimisers, step by step.
///
/// # Errors
/// Where a figure is out of bounds.
pub fn wan(question: &WanQuestion) -> Result<CalcResult, CalcError> {
    question.check()?;
    let &WanQuestion { rate, rtt, loss, window, ratio, lan, mss, reno } = question;
    let steps = [
        ("hosts untuned", question.tcp(rtt, Some(window))),
        ("hosts tuned (larger window)", question.tcp(rtt, None)),
        ("optimisers with loss recovery", question.recovered()),
        ("optimisers with data reduction", question.reduced()),
    ];
    let (without, with) = (steps[0].1, steps[3].1);
    Ok(CalcResult {
        schema: SHEET_SCHEMA,
        calculator: "wan",
        asked: Entries(vec![
            ("rate_bps", Some(Value::Rate(rate))),
            ("rtt_ms", Some(Value::Rtt(rtt))),
            ("loss", Some(Value::Loss(loss))),
            ("window_bytes", Some(Value::Size(window))),
            ("ratio", Some(Value::Number(ratio))),
            ("lan_bps", Some(Value::Rate(lan))),
            ("mss_bytes", Some(Value::Size(mss))),
            ("tcp", Some(Value::Text(tcp_name(reno).to_owned()))),
        ]),
        answers: vec![
            Answer {
                key: "without_bps",
                label: "without".to_owned(),
                value: Some(Value::Rate(without.0)),
                equation: without_equation(question, without.1),
                source: if reno {
                    "RFC 7323, section 1.1; Mathis et al. 1997, equation 3"
                } else {
                    "RFC 7323, section 1.1; RFC 9438, sections 4.3 and 5.1"
                },
            },
            Answer {
                key: "with_bps",
                label: "with".to_owned(),
                value: Some(Value::Rate(with.0)),
                equation: format!(
                    "link x (1 - p) x ratio = {} x (1 - {}) x {}, at most the local network's {}; \
                     limited by {}",
                    figures::rate(rate),
                    figures::loss(loss),
                    figures::digits(ratio),
                    figures::rate(lan),
                    with.1
                ),
                source: "split TCP connections (RFC 3135): an upper bound",
            },
            Answer {
                key: "tuned_bps",
                label: "tuned, without".to_owned(),
                value: Some(Value::Rate(steps[1].1.0)),
                equation: format!(
                    "the same TCP with a window of rate x RTT = {}; limited by {}",
                    figures::bytes(window_for(rate, rtt)),
                    steps[1].1.1
                ),
                source: "RFC 7323, section 1.1",
            },
        ],
        holds: vec![
            "'With' is an upper bound: loss recovery and fairness to other flows vary between \
             products. An optimiser that only splits TCP and uses a larger window reaches the \
             'tuned' row, and so do tuned hosts without an optimiser."
                .to_owned(),
            "The reduction ratio depends on the data: 1:1 for encrypted or compressed data, far \
             more for data sent before. The resulting rate is what users see, and may exceed the \
             link rate."
                .to_owned(),
            "Rates are payload rates, excluding the optimisers' own framing and loss recovery \
             beyond one retransmission."
                .to_owned(),
        ],
        tables: vec![steps_table(&steps, without.0)],
        curve: Some(curve(question)),
    })
}

const fn tcp_name(reno: bool) -> &'static str {
    if reno { "reno" } else { "cubic" }
}

fn without_equation(q: &WanQuestion, by: &str) -> String {
    let by_window = window_rate(q.window, q.rtt).unwrap_or(BitRate::ZERO);
    let mut bounds = vec![format!(
        "window / RTT = {} / {} = {}",
        figures::bytes(q.window),
        figures::rtt(q.rtt),
        figures::rate(by_window)
    )];
    let law = if q.reno { mathis } else { cubic };
    if let Some(rate) = law(q.mss, q.rtt, q.loss) {
        let name = if q.reno { "Mathis" } else { "CUBIC" };
        let loss = figures::loss(q.loss);
        bounds.push(format!("{name} at {loss} = {}", figures::rate(rate)));
    }
    bounds.push(format!("link = {}", figures::rate(q.rate)));
    format!("minimum of {}; limited by {by}", bounds.join(", "))
}

fn steps_table(steps: &[(&str, Bounded)], without: BitRate) -> Table {
    let rows = steps.iter().map(|(name, (rate, by))| Row {
        cells: vec![
            Some(Value::Text((*name).to_owned())),
            Some(Value::Rate(*rate)),
            Some(Value::Text((*by).to_owned())),
            Some(Value::Number(rate.as_f64() / without.as_f64().max(1.0))),
        ],
        marked: false,
    });
    Table {
        title: "step by step".to_owned(),
        columns: vec![
            Column { key: "case", title: "case" },
            Column { key: "rate_bps", title: "rate" },
            Column { key: "held_by", title: "limited by" },
            Column { key: "gain", title: "gain" },
        ],
        rows: rows.collect(),
    }
}

fn curve(q: &WanQuestion) -> Curve {
    let over = |rate: &dyn Fn(Rtt) -> BitRate| {
        let most = q.rtt.secs_f64().max(1.0);
        let points = by_decades(1e-3_f64.min(q.rtt.secs_f64()), most, 121).map(|seconds| {
            let nanos = ByteCount::from_f64(seconds * 1e9).bytes().max(1);
            (seconds, rate(Rtt::from_nanos(nanos)).as_f64())
        });
        points.collect()
    };
    Curve {
        title: "rate against RTT (log-log)".to_owned(),
        x: Scale::LogSeconds,
        y: Scale::LogRate,
        series: vec![
            Series { name: "without", points: over(&|rtt| q.tcp(rtt, Some(q.window)).0) },
            Series { name: "tuned", points: over(&|rtt| q.tcp(rtt, None).0) },
            Series { name: "with", points: over(&|_| q.reduced().0) },
        ],
        rule: Some(("link", q.rate.as_f64())),
        asked: Some((q.rtt.secs_f64(), q.tcp(q.rtt, Some(q.window)).0.as_f64())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(rate: &str, rtt: &str, loss: &str) -> WanQuestion {
        WanQuestion {
            rate: rate.parse().unwrap(),
            rtt: rtt.parse().unwrap(),
            loss: loss.parse().unwrap(),
            window: ByteCount::from_bytes(65_536),
            ratio: 1.0,
            lan: "1gbit".parse().unwrap(),
            mss: ByteCount::from_bytes(1448),
            reno: false,
        }
    }

    fn mbit(result: &CalcResult, key: &str) -> f64 {
        let Some(Value::Rate(rate)) = result.figure(key) else { panic!("{key}") };
        rate.as_f64() / 1e6
    }

    #[test]
    fn frankfurt_to_las_vegas_without_and_with() {
        let result = wan(&asked("100mbit", "173ms", "0")).unwrap();
        assert!((mbit(&result, "without_bps") - 3.0306).abs() < 1e-3);
        assert!((mbit(&result, "with_bps") - 100.0).abs() < 1e-9);
        // Without loss, tuned hosts reach the rate of the optimisers.
        assert!((mbit(&result, "tuned_bps") - 100.0).abs() < 1e-9);
    }

    #[test]
    fn optimisers_recover_losses() {
        let result = wan(&asked("100mbit", "173ms", "1%")).unwrap();
        assert!(mbit(&result, "without_bps") < 1.0);
        assert!((mbit(&result, "tuned_bps") - mbit(&result, "without_bps")).abs() < 1e-9);
        assert!((mbit(&result, "with_bps") - 99.0).abs() < 1e-9);
    }

    #[test]
    fn reduction_exceeds_the_link_but_not_the_local_network() {
        let three = WanQuestion { ratio: 3.0, ..asked("100mbit", "173ms", "0") };
        assert!((mbit(&wan(&three).unwrap(), "with_bps") - 300.0).abs() < 1e-9);
        let thirty = WanQuestion { ratio: 30.0, ..three };
        assert!((mbit(&wan(&thirty).unwrap(), "with_bps") - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn bounds_are_named() {
        let good = asked("100mbit", "173ms", "0");
        for (question, says) in [
            (WanQuestion { ratio: 0.5, ..good }, "3:1"),
            (WanQuestion { ratio: f64::NAN, ..good }, "3:1"),
            (WanQuestion { rtt: Rtt::ZERO, ..good }, "round trip"),
            (WanQuestion { window: ByteCount::ZERO, ..good }, "window of zero"),
        ] {
            let error = wan(&question).unwrap_err().to_string();
            assert!(error.contains(says) && error.lines().count() == 1, "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn optimisers_never_slow_a_path_within_the_lan_rate(mbit in 1u64..1000, us in 100u64..1_000_000,
                                                          p in 0.0..0.01_f64, ratio in 1.0..10.0_f64) {
            let question = WanQuestion {
                rate: BitRate::from_bps(mbit * 1_000_000), rtt: Rtt::from_micros(us),
                loss: crate::loss_from_fraction(p).unwrap(), ratio, ..asked("1mbit", "1ms", "0")
            };
            let without = question.tcp(question.rtt, Some(question.window)).0;
            proptest::prop_assert!(question.tcp(question.rtt, None).0 >= without);
            proptest::prop_assert!(question.reduced().0.as_f64() >= without.as_f64() * 0.98);
        }
    }
}
