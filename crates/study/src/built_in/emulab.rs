//! `emulab`: TCP and UDT over 100 Mbit/s to 1 Gbit/s with loss or delay, and flows that start
//! one after the other.

use super::runs::{Runs, Where, mbit, seconds};
use super::{BuiltIn, Measured, Trend};
use crate::results::jain;
use record::StudyRun;

pub(super) const STUDY: BuiltIn = BuiltIn {
    name: "emulab",
    question: "What costs TCP more, loss or delay, and how do flows share a link?",
    parts: &[
        ("grid", include_str!("../../plans/emulab/grid.toml")),
        ("grid-tuned", include_str!("../../plans/emulab/grid-tuned.toml")),
        ("fairness", include_str!("../../plans/emulab/fairness.toml")),
        ("fairness-tuned", include_str!("../../plans/emulab/fairness-tuned.toml")),
        ("grid-udt", include_str!("../../plans/emulab/grid-udt.toml")),
        ("fairness-udt", include_str!("../../plans/emulab/fairness-udt.toml")),
    ],
    trends: &[
        Trend {
            name: "delay-and-loss",
            published: "TCP loses more from 50 ms each way than from 1 % loss, at 100, 500 and \
                        1000 Mbit/s",
            parts: &["grid"],
            measure: delay_and_loss,
        },
        Trend {
            name: "tuned-delay",
            published: "delay leaves a small part of the link rate; with tuned buffers TCP fills \
                        the delayed link, so that the buffers were its limit",
            parts: &["grid-tuned"],
            measure: tuned_delay,
        },
        Trend {
            name: "staggered-flows",
            published: "with each flow that starts, the total of the TCP flows rises",
            parts: &["fairness"],
            measure: staggered,
        },
        Trend {
            name: "fair-shares",
            published: "flows of one protocol share the link fairly",
            parts: &["fairness"],
            measure: |runs| fair_shares(runs, "fairness", &[], FAIR),
        },
        Trend {
            name: "udt-loss",
            published: "UDT loses more from 1 % loss than from 50 ms each way",
            parts: &["grid-udt"],
            measure: udt_loss,
        },
        Trend {
            name: "udt-fair-shares",
            published: "UDT flows share the link fairly",
            parts: &["fairness-udt"],
            measure: |runs| fair_shares(runs, "fairness-udt", &[("congestion", "udt")], FAIR_UDT),
        },
        Trend {
            name: "bbr-fair-shares",
            published: "flows of one protocol share the link fairly; here UDT's with BBR",
            parts: &["fairness-udt"],
            measure: |runs| fair_shares(runs, "fairness-udt", &[("congestion", "bbr")], FAIR_UDT),
        },
    ],
};

/// A delayed link counts as filled from this share of the same link without delay.
const FILLED: f64 = 0.7;

/// Each flow that starts adds at least this share of what the first one had alone.
const ADDED: f64 = 0.5;

/// Jain's index from which shares count as fair.
const FAIR: f64 = 0.8;
const FAIR_UDT: f64 = 0.95;

/// UDT's throughput collapses where loss leaves less than this share of it.
const COLLAPSED: f64 = 0.2;

fn udt_loss(runs: &Runs<'_>) -> Option<Measured> {
    let mut holds = true;
    let mut words = Vec::new();
    for rate in runs.values("grid-udt", "rate") {
        let at = |congestion, rtt, loss| {
            let cell =
                [("rate", &rate[..]), ("congestion", congestion), ("rtt", rtt), ("loss", loss)];
            runs.goodput("grid-udt", &cell)
        };
        let udt = |rtt, loss| at("udt", rtt, loss);
        let (plain, delayed, lossy) = (udt("1ms", "0%")?, udt("101ms", "0%")?, udt("1ms", "1%")?);
        holds &= lossy < delayed && lossy < plain * COLLAPSED;
        words.push(format!(
            "{rate}: {} plain, {} with delay, {} with loss, {} with loss and BBR",
            mbit(plain),
            mbit(delayed),
            mbit(lossy),
            mbit(at("bbr", "1ms", "1%")?)
        ));
    }
    Some(Measured { text: words.join("; "), holds: holds && !words.is_empty() })
}

fn delay_and_loss(runs: &Runs<'_>) -> Option<Measured> {
    let mut holds = true;
    let mut words = Vec::new();
    for rate in runs.values("grid", "rate") {
        let at = |rtt, loss| runs.goodput("grid", &[("rate", &rate), ("rtt", rtt), ("loss", loss)]);
        let (plain, delayed, lossy) = (at("1ms", "0%")?, at("101ms", "0%")?, at("1ms", "1%")?);
        holds &= delayed < lossy && delayed < plain;
        words.push(format!(
            "{rate}: {} plain, {} with delay, {} with loss",
            mbit(plain),
            mbit(delayed),
            mbit(lossy)
        ));
    }
    Some(Measured { text: words.join("; "), holds: holds && !words.is_empty() })
}

fn tuned_delay(runs: &Runs<'_>) -> Option<Measured> {
    let rate = runs.values("grid-tuned", "rate").into_iter().next()?;
    let at = |rtt| runs.goodput("grid-tuned", &[("rate", &rate), ("rtt", rtt), ("loss", "0%")]);
    let (plain, delayed) = (at("1ms")?, at("101ms")?);
    Some(Measured {
        text: format!("{rate}: {} plain, {} with delay", mbit(plain), mbit(delayed)),
        holds: delayed > plain * FILLED,
    })
}

/// The goodput of all flows while the first one, two and three of them ran.
fn phases(run: &StudyRun) -> Option<[f64; 3]> {
    let [first, second, third] = ["first", "second", "third"].map(|name| run.flow(name));
    let (first, second, third) = (first?, second?, third?);
    // A second for slow start.
    let spans = [
        (first.began_s + 1.0, second.began_s),
        (second.began_s + 1.0, third.began_s),
        (third.began_s + 1.0, third.began_s + third.series_bps.len() as f64),
    ];
    let sum = |(from, to): (f64, f64)| -> Option<f64> {
        let each = [first, second, third].map(|flow| seconds(flow, from, to));
        each[0]?;
        Some(each.into_iter().flatten().sum())
    };
    let [one, two, three] = spans.map(sum);
    Some([one?, two?, three?])
}

fn staggered(runs: &Runs<'_>) -> Option<Measured> {
    let all: Option<Vec<[f64; 3]>> = runs.valid("fairness", &[]).into_iter().map(phases).collect();
    let [one, two, three] = *all?.first()?;
    let risen = |less: f64, more: f64| more > less + one * ADDED;
    Some(Measured {
        text: format!(
            "{} with one flow, {} with two, {} with three",
            mbit(one),
            mbit(two),
            mbit(three)
        ),
        holds: risen(one, two) && risen(two, three),
    })
}

/// Jain's index over the flows in the last seconds in which all three run.
fn fair_shares(runs: &Runs<'_>, part: &str, cell: Where<'_>, fair: f64) -> Option<Measured> {
    let run = runs.valid(part, cell).into_iter().next()?;
    let third = run.flow("third")?;
    let to = third.began_s + third.series_bps.len() as f64;
    let shares: Option<Vec<f64>> =
        run.flows.iter().map(|flow| seconds(flow, to - third.seconds / 2.0 - 1.0, to)).collect();
    let shares = shares?;
    let index = jain(&shares)?;
    let words: Vec<String> = shares.iter().map(|share| mbit(*share).to_string()).collect();
    Some(Measured {
        text: format!("Jain's index {index:.2} while all three run ({})", words.join(", ")),
        holds: index >= fair,
    })
}
