//! `emulab`: TCP and UDT over 100 Mbit/s to 1 Gbit/s with loss or delay, flows that start one after
//! the other, and a file on a slow disk. Delays are taken as one-way: the RTT is twice as long.

mod file;
mod flows;
mod udt;

use super::runs::{Runs, mbit};
use super::{At, BuiltIn, Expected, INFERENCE, Measured, Published, StudyTestbed, Trend};
use crate::documents;
use flows::{FAIR, fair_shares};

pub(super) const STUDY: BuiltIn = BuiltIn {
    name: "emulab",
    document: &documents::COURSE_PROJECT,
    question: "What costs TCP more, loss or delay, and how do flows share a link?",
    testbed: StudyTestbed::Lab,
    parts: &[
        ("grid", include_str!("../../plans/emulab/grid.toml")),
        ("grid-defaults", include_str!("../../plans/emulab/grid-defaults.toml")),
        ("grid-tuned", include_str!("../../plans/emulab/grid-tuned.toml")),
        ("fairness", include_str!("../../plans/emulab/fairness.toml")),
        ("fairness-tuned", include_str!("../../plans/emulab/fairness-tuned.toml")),
        ("grid-udt", include_str!("../../plans/emulab/grid-udt.toml")),
        ("fairness-udt", include_str!("../../plans/emulab/fairness-udt.toml")),
        ("series-udt", include_str!("../../plans/emulab/series-udt.toml")),
        ("acks", include_str!("../../plans/emulab/acks.toml")),
        ("file", include_str!("../../plans/emulab/file.toml")),
    ],
    trends: &[
        Trend {
            name: "delay-and-loss",
            published: Published::Stated(
                "TCP loses more from a delay of 50 ms than from a loss of 0.01, at 100 \
                 Mbit/s, 500 Mbit/s and 1 Gbit/s",
                &[
                    At(218, "50", "ms"),
                    At(217, "0.01", "loss"),
                    At(219, "100", "Mbps"),
                    At(219, "500", "Mbps"),
                    At(219, "1", "Gbps"),
                    At(228, "delay is greater", ""),
                ],
            ),
            expected: Expected::By {
                text: "the delay counts each way",
                source: "our assumption: a link's delay on Emulab; the document says only where it \
                 was added",
            },
            parts: &["grid"],
            measure: delay_and_loss,
        },
        Trend {
            name: "tuned-delay",
            published: Published::Nothing,
            expected: Expected::By {
                text: "with tuned buffers TCP fills the delayed link, so that buffers were \
                       the published limit",
                source: INFERENCE,
            },
            parts: &["grid-tuned"],
            measure: tuned_delay,
        },
        Trend {
            name: "default-buffers",
            published: Published::Nothing,
            expected: Expected::By {
                text: "with today's default buffers TCP carries over the delayed link more than \
                       twice what limits of 174,760 bytes, the hypothesis of this study, leave",
                source: INFERENCE,
            },
            parts: &["grid", "grid-defaults"],
            measure: default_buffers,
        },
        Trend {
            name: "staggered-flows",
            published: Published::Stated(
                "with each flow that starts, the total of the TCP flows rises (1 Gbit/s, 25 \
                 ms)",
                &[
                    At(261, "increased total throughput", ""),
                    At(253, "1", "Gbps"),
                    At(253, "25", "ms"),
                ],
            ),
            expected: Expected::Nothing,
            parts: &["fairness"],
            measure: flows::tcp_total,
        },
        Trend {
            name: "fair-shares",
            published: Published::Stated(
                "flows of one protocol share the link fairly",
                &[At(301, "fairness", "")],
            ),
            expected: Expected::By { text: "Jain's index of 0.8 or more", source: INFERENCE },
            parts: &["fairness"],
            measure: |runs| fair_shares(runs, "fairness", &[], FAIR),
        },
        Trend {
            name: "udt-loss",
            published: Published::Stated(
                "UDT loses more from a loss of 0.01 than from a delay of 50 ms",
                &[At(217, "0.01", "loss"), At(218, "50", "ms"), At(229, "more significantly", "")],
            ),
            expected: Expected::Nothing,
            parts: &["grid-udt"],
            measure: udt::loss,
        },
        Trend {
            name: "udt-total",
            published: Published::Stated(
                "with each flow that starts, the total of the UDT flows stays what a single \
                 one has (1 Gbit/s, 25 ms)",
                &[At(267, "equivalent to", ""), At(253, "1", "Gbps"), At(253, "25", "ms")],
            ),
            expected: Expected::Nothing,
            parts: &["fairness-udt"],
            measure: flows::udt_total,
        },
        Trend {
            name: "udt-share-back",
            published: Published::Nothing,
            expected: Expected::By {
                text: "the first flow has the link to itself again once the others have ended, from \
                       120 to 150 s",
                source: "our inference, not published: it follows from the times of the flows (lines \
                         255 to 258) and from a total that stays that of one flow (lines 265 to 268)",
            },
            parts: &["fairness-udt"],
            measure: flows::share_back,
        },
        Trend {
            name: "udt-fair-shares",
            published: Published::Stated(
                "UDT flows share the link fairly",
                &[At(301, "fairness", "")],
            ),
            expected: Expected::By {
                text: "Jain's index of 0.8 or more; the library UDT 4.11 had 0.70, 0.98, 0.99 and \
                       1.00 in four runs of 100 Mbit/s",
                source: INFERENCE,
            },
            parts: &["fairness-udt"],
            measure: |runs| fair_shares(runs, "fairness-udt", &[("congestion", "udt")], FAIR),
        },
        Trend {
            name: "bbr-fair-shares",
            published: Published::Nothing,
            expected: Expected::By {
                text: "UDT flows with BBR share the link fairly as well",
                source: INFERENCE,
            },
            parts: &["fairness-udt"],
            measure: |runs| fair_shares(runs, "fairness-udt", &[("congestion", "bbr")], FAIR),
        },
        Trend {
            name: "udt-rapid",
            published: Published::Stated(
                "UDT soon has almost all of the bandwidth and keeps it while nothing is lost; a loss \
                 of 0.01 costs it much of that",
                &[
                    At(237, "rapidly utilizes almost all", ""),
                    At(238, "remains at the rate", ""),
                    At(239, "0.01", ""),
                    At(240, "degrades to a large extent", ""),
                ],
            ),
            expected: Expected::By {
                text: "80 % of the link within 12 s, and 75 % in the mean from then on",
                source: INFERENCE,
            },
            parts: &["series-udt"],
            measure: udt::rapid,
        },
        Trend {
            name: "udt-delay-naks",
            published: Published::Stated(
                "with 50 ms of delay and no injected loss, 2 and 3 NAKs make the throughput drop at \
                 two points",
                &[
                    At(241, "50", "ms"),
                    At(242, "2", ""),
                    At(242, "3", "NAKs"),
                    At(240, "two points", ""),
                    At(243, "drop in performance", ""),
                ],
            ),
            expected: Expected::By {
                text: "at least one NAK, and after one a second with less than 0.9 of the goodput \
                       before it; their number and their times depend on the path",
                source: INFERENCE,
            },
            parts: &["series-udt"],
            measure: udt::delay_naks,
        },
        Trend {
            name: "udt-acks",
            published: Published::Stated(
                "UDT acknowledges at fixed intervals: almost each data packet of a slow \
                 network, and a smaller share in a faster one",
                &[
                    At(141, "fixed interval", ""),
                    At(144, "almost an acknowledgement", ""),
                    At(143, "lower ratio", ""),
                ],
            ),
            expected: Expected::By {
                text: "a full acknowledgement each 10 ms at most, a light one each 64 packets",
                source: "Gu and Grossman, draft-gg-udt-03, and UDT 4.11",
            },
            parts: &["acks"],
            measure: udt::acknowledgements,
        },
        Trend {
            name: "udt-increase",
            published: Published::Stated(
                "without negative feedback UDT's rate x rises by alpha(x) = 10^(ceil(log(L - \
                 x)) - tau) x 1500/S each rate control interval, with tau = 9",
                &[
                    At(158, "10", ""),
                    At(158, "1500", ""),
                    At(171, "9", ""),
                    At(154, "rate control interval", ""),
                ],
            ),
            expected: Expected::By {
                text: "the interval, SYN, is 10 ms; the logarithm is that of base 10",
                source: "Gu and Grossman, draft-gg-udt-03",
            },
            parts: &["grid-udt"],
            measure: udt::increase,
        },
        Trend {
            name: "slow-disk",
            published: Published::Stated(
                "a large file: UDT sends what is buffered at full speed and is idle until the \
                 disk has read more; TCP is not fast enough to show this",
                &[
                    At(277, "the peak", ""),
                    At(278, "The trough", ""),
                    At(281, "not observed in TCP", ""),
                ],
            ),
            expected: Expected::Nothing,
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

/// Goodput over the delayed link with the kernel's default buffers and with those of the hypothesis.
fn default_buffers(runs: &Runs<'_>) -> Option<Measured> {
    let (mut holds, mut words) = (true, Vec::new());
    for rate in runs.values("grid-defaults", "rate") {
        let defaults = runs.goodput("grid-defaults", &[("rate", &rate)])?;
        let small = runs.goodput("grid", &[("rate", &rate), ("rtt", "101ms"), ("loss", "0%")])?;
        holds &= defaults > 2.0 * small;
        words.push(format!("{rate}: {} and {}", mbit(defaults), mbit(small)));
    }
    Some(Measured {
        text: format!("today's defaults and the small limits at {}", words.join("; ")),
        holds: holds && !words.is_empty(),
    })
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
