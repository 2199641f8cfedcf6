//! `zoo`: every congestion control of the simulator over the same paths.

mod recovery;
mod xcp;

use super::runs::{Runs, mbit, near};
use super::{At, BuiltIn, Expected, INFERENCE, Measured, Published, StudyTestbed, Trend};
use crate::documents;
use control::{Algorithm, NamedControl};
use model::{cubic, mathis};
use units::{ByteCount, Rtt};

pub(super) const STUDY: BuiltIn = BuiltIn {
    name: "zoo",
    document: &documents::UNDERSTANDING,
    question: "Which congestion control suits which path?",
    testbed: StudyTestbed::Simulator,
    parts: &[
        ("queues", include_str!("../../plans/zoo/queues.toml")),
        ("recovery", include_str!("../../plans/zoo/recovery.toml")),
        ("loss-budget", include_str!("../../plans/zoo/loss-budget.toml")),
        ("harm", include_str!("../../plans/zoo/harm.toml")),
        ("xcp", include_str!("../../plans/zoo/xcp.toml")),
    ],
    trends: &[
        Trend {
            name: "reno-and-loss",
            published: Published::Nothing,
            expected: Expected::By {
                text: "Reno's goodput at 0.1 and 1 % loss within a quarter of the equation",
                source: "Mathis et al. 1997, equation 3",
            },
            parts: &["queues"],
            measure: reno_and_loss,
        },
        Trend {
            name: "psockets-and-loss",
            published: Published::Nothing,
            expected: Expected::By {
                text: "at 1 % loss eight connections have eight times the goodput of one by the \
                       equation, within a quarter; at 0.01 % they fill the link",
                source: "Mathis et al. 1997, equation 3, for each connection of PSockets \
                         (Sivakumar, Bailey and Grossman 2000)",
            },
            parts: &["queues"],
            measure: psockets_and_loss,
        },
        Trend {
            name: "bbr-and-loss",
            published: Published::Stated(
                "BBR: 10 times the throughput is common on some paths (quoted there from ESnet)",
                &[At(1228, "10", "X")],
            ),
            expected: Expected::By {
                text: "BBR keeps the link at 1 % loss, CUBIC a tenth of it at most",
                source: "Cardwell et al., BBR: Congestion-Based Congestion Control, ACM Queue 2016, \
                         figure 8",
            },
            parts: &["queues"],
            measure: bbr_and_loss,
        },
        Trend {
            name: "small-switch-buffers",
            published: Published::Stated(
                "BBR works much better than CUBIC where packets are lost in small switch \
                 buffers (quoted there from ESnet)",
                &[At(1228, "small switch buffers", "")],
            ),
            expected: Expected::Nothing,
            parts: &["queues"],
            measure: small_switch_buffers,
        },
        Trend {
            name: "short-queues",
            published: Published::Stated(
                "with fq_codel bufferbloat is unlikely to be an issue",
                &[At(1483, "FQ_codel", "")],
            ),
            expected: Expected::By {
                text: "under fq_codel CUBIC's queueing delay is a third at most of that in a \
                       queue of 1 BDP",
                source: INFERENCE,
            },
            parts: &["queues"],
            measure: short_queues,
        },
        Trend {
            name: "recovery",
            published: Published::Nothing,
            expected: Expected::By {
                text: "seconds from one loss back to 10 Gbit/s over 100 ms: Reno 4167, CUBIC \
                       39.7 (33.8 to 99.9 % of the rate), H-TCP 25.3, within a tenth; \
                       HighSpeed 12.0 with an acknowledgement for each packet",
                source: "the controls' own equations: RFC 5681, RFC 9438, Leith and Shorten 2004, \
                         RFC 3649",
            },
            parts: &["recovery"],
            measure: recovery::measure,
        },
        Trend {
            name: "loss-budget",
            published: Published::Stated(
                "CUBIC sustains 10 Gbit/s at 100 ms only while the loss rate is below \
                 0.000003 % (quoted there from draft-ietf-ccwg-bbr-00)",
                &[At(1222, "10", "Gbps"), At(1222, "100", "ms"), At(1222, "0.000003", "%")],
            ),
            expected: Expected::By {
                text: "the loss rate at which CUBIC's mean window is the path's BDP",
                source: "RFC 9438, section 5.1, equation 6",
            },
            parts: &["loss-budget"],
            measure: loss_budget,
        },
        Trend {
            name: "xcp",
            published: Published::Nothing,
            expected: Expected::By {
                text: "XCP with its router keeps the link full, whatever the round trip and the \
                       number of flows, without a drop; here: 95 %, and a mean queue of at most \
                       5 ms or a twentieth of the RTT",
                source: "Katabi, Handley and Rohrs, Congestion Control for High Bandwidth-Delay \
                         Product Networks, SIGCOMM 2002, section 5",
            },
            parts: &["xcp"],
            measure: xcp::measure,
        },
    ],
};

/// Payload of a segment with timestamps.
const MSS: ByteCount = ByteCount::from_bytes(1_448);

/// Share of a link's payload rate from which it counts as filled.
const FILLED: f64 = 0.8;

/// Payload of an IP packet of 1500 bytes, as a share.
const PAYLOAD: f64 = 1_448.0 / 1_500.0;

/// The RTT of the part `queues`.
const QUEUES_RTT: Rtt = Rtt::from_micros(40_000);

/// Deviation from Reno's equation that counts as agreement.
const EQUATION_TOLERANCE: f64 = 0.25;

/// The text that stands for every control of the simulator in a plan; XCP, which needs a router,
/// has a part of its own.
const CONTROLS: &str = "\"{controls}\"";

/// A plan with the names of the simulator's controls.
pub(super) fn with_controls(plan: &str) -> String {
    let names: Vec<String> =
        NamedControl::all().map(|control| format!("\"{}\"", control.name())).collect();
    plan.replace(CONTROLS, &names.join(", "))
}

/// The mean goodput of a control in the part `queues`, in bit/s.
fn goodput(
    runs: &Runs<'_>,
    control: impl Into<NamedControl>,
    queue: &str,
    loss: &str,
) -> Option<f64> {
    let control = control.into();
    runs.goodput("queues", &[("congestion", control.name()), ("queue", queue), ("up.loss", loss)])
}

/// The payload rate of the link of a part, in bit/s.
fn link_bps(runs: &Runs<'_>, part: &str) -> Option<f64> {
    let run = runs.valid(part, &[]).into_iter().next()?;
    Some(runs.link_bps(part, run)? * PAYLOAD)
}

fn reno_and_loss(runs: &Runs<'_>) -> Option<Measured> {
    let of = |loss: &str| {
        let measured = goodput(runs, Algorithm::NewReno, "1bdp", loss)?;
        Some((measured, mathis(MSS, QUEUES_RTT, loss.parse().ok()?)?))
    };
    let (low, low_equation) = of("0.1%")?;
    let (high, high_equation) = of("1%")?;
    let is_near = |measured: f64, equation: units::BitRate| {
        near(measured, equation.as_f64(), EQUATION_TOLERANCE)
    };
    Some(Measured {
        text: format!(
            "{} at 0.1 % loss, where the equation gives {low_equation}; {} at 1 % ({high_equation})",
            mbit(low),
            mbit(high)
        ),
        holds: is_near(low, low_equation) && is_near(high, high_equation),
    })
}

fn psockets_and_loss(runs: &Runs<'_>) -> Option<Measured> {
    let control = NamedControl::PSOCKETS;
    let lossy = goodput(runs, control, "1bdp", "1%")?;
    let clean = goodput(runs, control, "1bdp", "0.01%")?;
    let equation =
        mathis(MSS, QUEUES_RTT, "1%".parse().ok()?)?.as_f64() * f64::from(control.connections());
    let link = link_bps(runs, "queues")?;
    Some(Measured {
        text: format!(
            "{} connections: {} at 1 % loss, where the equation gives {}; {} at 0.01 %",
            control.connections(),
            mbit(lossy),
            mbit(equation),
            mbit(clean)
        ),
        holds: near(lossy, equation, EQUATION_TOLERANCE) && clean >= FILLED * link,
    })
}

fn bbr_and_loss(runs: &Runs<'_>) -> Option<Measured> {
    let bbr = goodput(runs, Algorithm::Bbr, "1bdp", "1%")?;
    let cubic = goodput(runs, Algorithm::Cubic, "1bdp", "1%")?;
    let link = link_bps(runs, "queues")?;
    Some(Measured {
        text: format!("BBR {} and CUBIC {} at 1 % loss", mbit(bbr), mbit(cubic)),
        holds: bbr >= FILLED * link && cubic <= link / 10.0,
    })
}

fn small_switch_buffers(runs: &Runs<'_>) -> Option<Measured> {
    let [bbr, cubic] =
        [Algorithm::Bbr, Algorithm::Cubic].map(|one| goodput(runs, one, "0.1bdp", "0%"));
    let (bbr, cubic) = (bbr?, cubic?);
    Some(Measured {
        text: format!("BBR {} and CUBIC {} with a queue of 0.1 BDP", mbit(bbr), mbit(cubic)),
        holds: bbr > cubic,
    })
}

fn short_queues(runs: &Runs<'_>) -> Option<Measured> {
    const IDLE_MS: f64 = 40.0;
    let delay = |queue: &str| {
        let values = [("congestion", "cubic"), ("queue", queue), ("up.loss", "0%")];
        let rtt = runs.mean("queues", &values, |run| run.flows.first()?.mean_rtt_ms)?;
        Some(rtt - IDLE_MS)
    };
    let (deep, managed) = (delay("1bdp")?, delay("fq_codel")?);
    Some(Measured {
        text: format!(
            "CUBIC's mean queueing delay: {deep:.1} ms in a queue of 1 BDP, {managed:.1} ms under \
             fq_codel"
        ),
        holds: managed * 3.0 <= deep,
    })
}

/// CUBIC's goodput at a tenth of its budget, at the budget and at ten times the budget.
fn loss_budget(runs: &Runs<'_>) -> Option<Measured> {
    const PART: &str = "loss-budget";
    const RTT: Rtt = Rtt::from_micros(100_000);
    // Over few losses.
    const TOLERANCE: f64 = 0.5;
    let losses = runs.values(PART, "up.loss");
    let [tenth, budget, tenfold] = &losses[..] else { return None };
    let goodput = |loss: &str| runs.goodput(PART, &[("congestion", "cubic"), ("up.loss", loss)]);
    let (least, at_budget, most) = (goodput(tenth)?, goodput(budget)?, goodput(tenfold)?);
    let equation = cubic(MSS, RTT, tenfold.parse().ok()?)?;
    let link = link_bps(runs, PART)?;
    let is_near = (most / equation.as_f64()).ln().abs() <= (1.0 + TOLERANCE).ln();
    Some(Measured {
        text: format!(
            "CUBIC: {} at {tenth} loss, {} at {budget}, {} at {tenfold}, where the equation gives \
             {equation}",
            mbit(least),
            mbit(at_budget),
            mbit(most)
        ),
        holds: least >= FILLED * link && most < at_budget && is_near,
    })
}
