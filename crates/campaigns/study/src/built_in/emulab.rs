//! `emulab`: TCP and UDT over 100 Mbit/s to 1 Gbit/s with loss or delay, flows that start one after
//! the other, and a file on a slow disk. Published delays are one-way: the RTT is twice as long.

mod file;
mod flows;
mod udt;

use super::runs::{Runs, mbit};
use super::{BuiltIn, Measured, Trend};
use flows::{FAIR, FAIR_UDT, fair_shares};

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
        ("acks", include_str!("../../plans/emulab/acks.toml")),
        ("file", include_str!("../../plans/emulab/file.toml")),
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
            published: "50 ms each way leaves TCP a small part of the link rate; with tuned \
                        buffers it fills the delayed link, so the buffers were the limit",
            parts: &["grid-tuned"],
            measure: tuned_delay,
        },
        Trend {
            name: "staggered-flows",
            published: "the total of the TCP flows rises with each flow that starts (1 Gbit/s, 25 \
                        ms each way)",
            parts: &["fairness"],
            measure: flows::tcp_total,
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
            measure: udt::loss,
        },
        Trend {
            name: "udt-total",
            published: "the total of the UDT flows stays that of a single flow as more flows start \
                        (1 Gbit/s, 25 ms each way)",
            parts: &["fairness-udt"],
            measure: flows::udt_total,
        },
        Trend {
            name: "udt-fair-shares",
            published: "UDT flows share the link fairly",
            parts: &["fairness-udt"],
            measure: |runs| fair_shares(runs, "fairness-udt", &[("congestion", "udt")], FAIR_UDT),
        },
        Trend {
            name: "bbr-fair-shares",
            published: "flows of one protocol share the link fairly; here UDT with BBR",
            parts: &["fairness-udt"],
            measure: |runs| fair_shares(runs, "fairness-udt", &[("congestion", "bbr")], FAIR_UDT),
        },
        Trend {
            name: "udt-acks",
            published: "UDT acknowledges at fixed intervals: almost each data packet of a slow \
                        network, and a smaller share in a faster one",
            parts: &["acks"],
            measure: udt::acknowledgements,
        },
        Trend {
            name: "udt-increase",
            published: "without negative feedback UDT's rate x rises by alpha(x) = \
                        10^(ceil(log10(L - x)) - 9) x 1500/S packets each SYN of 10 ms",
            parts: &["grid-udt"],
            measure: udt::increase,
        },
        Trend {
            name: "slow-disk",
            published: "a large file: UDT sends buffered data at full speed and then idles until \
                        the disk has read more; TCP is not fast enough to show this",
            parts: &["file"],
            measure: file::slow_disk,
        },
    ],
};

/// A delayed link counts as filled from this share of the same link without delay.
const FILLED: f64 = 0.7;

fn delay_and_loss(runs: &Runs<'_>) -> Option<Measured> {
    let mut holds = true;
    let mut words = Vec::new();
    for rate in runs.values("grid", "rate") {
        let at = |rtt, loss| runs.goodput("grid", &[("rate", &rate), ("rtt", rtt), ("loss", loss)]);
        let (plain, delayed, lossy) = (at("1ms", "0%")?, at("101ms", "0%")?, at("1ms", "1%")?);
        holds &= delayed < lossy && delayed < plain;
        words.push(format!(
            "{rate}: {} plain, {} with 50 ms each way, {} with 1 % loss",
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
        text: format!("{rate}: {} plain, {} with 50 ms each way", mbit(plain), mbit(delayed)),
        holds: delayed > plain * FILLED,
    })
}
