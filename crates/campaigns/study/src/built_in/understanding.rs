//! `understanding`: a 2.5 Gbit/s line, delay, loss, full queues, sharing and satellites.

mod handover;
mod loss_budget;
mod loss_sweep;
mod pairs_long;
mod shares_of_bbr;

use super::runs::{Runs, mbit, near};
use super::{At, BuiltIn, Expected, INFERENCE, Measured, Published, StudyTestbed, Trend};
use crate::documents;
use units::BitRate;

pub(super) const STUDY: BuiltIn = BuiltIn {
    name: "understanding",
    document: &documents::UNDERSTANDING,
    question: "What do delay, loss and queues make of a fast line?",
    testbed: StudyTestbed::Lab,
    parts: &[
        ("overhead", include_str!("../../plans/understanding/overhead.toml")),
        ("delay", include_str!("../../plans/understanding/delay.toml")),
        ("places", include_str!("../../plans/understanding/places.toml")),
        ("defaults", include_str!("../../plans/understanding/defaults.toml")),
        ("loss", include_str!("../../plans/understanding/loss.toml")),
        ("loss-sweep", include_str!("../../plans/understanding/loss-sweep.toml")),
        ("loss-budget", include_str!("../../plans/understanding/loss-budget.toml")),
        ("shallow", include_str!("../../plans/understanding/shallow.toml")),
        ("ecn", include_str!("../../plans/understanding/ecn.toml")),
        ("bloat", include_str!("../../plans/understanding/bloat.toml")),
        ("sharing", include_str!("../../plans/understanding/sharing.toml")),
        ("crowd", include_str!("../../plans/understanding/crowd.toml")),
        ("pairs", include_str!("../../plans/understanding/pairs.toml")),
        ("pairs-long", include_str!("../../plans/understanding/pairs-long.toml")),
        ("paced", include_str!("../../plans/understanding/paced.toml")),
        ("sawtooth", include_str!("../../plans/understanding/sawtooth.toml")),
        ("orbit", include_str!("../../plans/understanding/orbit.toml")),
        ("handover", include_str!("../../plans/understanding/handover.toml")),
    ],
    trends: &[
        Trend {
            name: "ipv4-and-ipv6",
            published: Published::Stated(
                "2.32 Gbit/s measured; 2.314 (IPv4) and 2.282 (IPv6) Gbit/s computed",
                &[At(511, "2.32", "Gbits/sec"), At(586, "2.314", "Gbps"), At(588, "2.282", "Gbps")],
            ),
            expected: Expected::By {
                text: "1448 and 1428 of 1538 bytes are 2.354 and 2.321 Gbit/s: an ordinary \
                       segment has no SACK option",
                source: INFERENCE,
            },
            parts: &["overhead"],
            measure: overhead,
        },
        Trend {
            name: "added-delay",
            published: Published::Stated(
                "200 ms added, buffers of 4194304 B: 65.5 Mbit/s over 10.01 s, 157 in the \
                 last second",
                &[
                    At(976, "200", "msec"),
                    At(931, "4194304", ""),
                    At(1017, "65.5", "Mbits/sec"),
                    At(1017, "10.01", "sec"),
                    At(1014, "157", "Mbits/sec"),
                ],
            ),
            expected: Expected::By {
                text: "4 MiB over 215 ms are 156 Mbit/s; the mean of ten seconds has the \
                       ramp-up in it",
                source: INFERENCE,
            },
            parts: &["delay"],
            measure: added_delay,
        },
        Trend {
            name: "four-quarter-buffers",
            published: Published::Nothing,
            expected: Expected::By {
                text: "four flows with buffers of a quarter fill 2.5 Gbit/s to places 84.7, \
                       163.6 and 228.1 ms away, as one with the BDP does (51.1 MB for 163.6 \
                       ms)",
                source: "an intention of the document, which measures neither (lines 908, 917 and \
                 923)",
            },
            parts: &["places", "defaults"],
            measure: four_quarter_buffers,
        },
        Trend {
            name: "one-percent-loss",
            published: Published::Stated(
                "CUBIC at 1 % loss and 100 ms: 3 Mbit/s at most (quoted there from \
                 draft-ietf-ccwg-bbr-00)",
                &[At(1222, "1", "%"), At(1222, "100", "ms"), At(1222, "3", "Mbps")],
            ),
            expected: Expected::By {
                text: "1.42 Mbit/s",
                source: "Mathis et al. 1997, equation 3, which CUBIC follows where windows are small \
                 (RFC 9438, section 4.3)",
            },
            parts: &["loss"],
            measure: |runs| loss(runs, |cubic, _| near(cubic, MATHIS_BPS, 0.30) && cubic < 3e6),
        },
        Trend {
            name: "bbr-and-loss",
            published: Published::Stated(
                "BBR: 10 times the throughput is common on some paths (quoted there from \
                 ESnet)",
                &[At(1228, "10", "X")],
            ),
            expected: Expected::Nothing,
            parts: &["loss"],
            measure: |runs| loss(runs, |cubic, bbr| bbr >= 10.0 * cubic),
        },
        Trend {
            name: "case-for-bbr",
            published: Published::Stated(
                "the case for BBR in one graph, which the text lacks (its source: Cardwell et al., \
                 IETF 97)",
                &[
                    At(1232, "The Case FOR BBR In One Graph", ""),
                    At(1236, "Neal Cardwell", ""),
                    At(1236, "97", ""),
                ],
            ),
            expected: Expected::By {
                text: "throughput over loss: CUBIC collapses from a small loss on, BBR does not",
                source: "Cardwell et al., BBR Congestion Control, IETF 97, Seoul, November 2016",
            },
            parts: &["loss-sweep"],
            measure: loss_sweep::measure,
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
            measure: loss_budget::measure,
        },
        Trend {
            name: "small-switch-buffers",
            published: Published::Stated(
                "BBR works much better than CUBIC where packets are lost in small switch \
                 buffers (quoted there from ESnet)",
                &[At(1228, "small switch buffers", "")],
            ),
            expected: Expected::Nothing,
            parts: &["shallow"],
            measure: small_switch_buffers,
        },
        Trend {
            name: "ecn",
            published: Published::Stated(
                "ECN signals congestion end to end without dropping packets (quoted there \
                 from Wikipedia)",
                &[At(1175, "without dropping packets", "")],
            ),
            expected: Expected::Nothing,
            parts: &["ecn"],
            measure: ecn,
        },
        Trend {
            name: "bufferbloat",
            published: Published::Stated(
                "with fq_codel, or with BBR, bufferbloat is unlikely to be an issue",
                &[At(1483, "FQ_codel", ""), At(1485, "BBR", "")],
            ),
            expected: Expected::Nothing,
            parts: &["bloat"],
            measure: bufferbloat,
        },
        Trend {
            name: "bbr-beside-cubic",
            published: Published::Nothing,
            expected: Expected::By {
                text: "BBR takes the larger share over a shallow queue, CUBIC over a deep one",
                source: "our inference, not published: BBR has two BDPs in flight at most, which a \
                 deep queue exceeds",
            },
            parts: &["sharing"],
            measure: shares_of_bbr::sharing,
        },
        Trend {
            name: "bbr-beside-four-cubic",
            published: Published::Stated(
                "BBR can take far more than its share from loss-based flows (quoted there \
                 from Huston)",
                &[At(1248, "loss-based flows", "")],
            ),
            expected: Expected::Nothing,
            parts: &["crowd"],
            measure: shares_of_bbr::crowd,
        },
        Trend {
            name: "bbr-beside-bbr",
            published: Published::Nothing,
            expected: Expected::By {
                text: "BBR flows converge to equal shares",
                source: "Cardwell et al., BBR: Congestion-Based Congestion Control, 2016. The \
                 document quotes Huston: BBR against BBR is unstable (line 1251)",
            },
            parts: &["pairs", "sharing"],
            measure: shares_of_bbr::pairs,
        },
        Trend {
            name: "bbr-environment",
            published: Published::Stated(
                "an environment of BBR against BBR is unstable (quoted there from Huston)",
                &[At(1251, "BBR vs BBR environment", ""), At(1251, "unstable", "")],
            ),
            expected: Expected::By {
                text: "BBR flows converge to equal shares: of two flows alone, both claims cannot \
                       hold",
                source: "Cardwell et al., BBR: Congestion-Based Congestion Control, 2016, not the \
                         document",
            },
            parts: &["pairs-long"],
            measure: pairs_long::measure,
        },
        Trend {
            name: "paced-streams",
            published: Published::Stated(
                "for parallel streams BBR works much better with paced streams, which do not \
                 step on each other (quoted there from ESnet)",
                &[At(1228, "paced streams", "")],
            ),
            expected: Expected::Nothing,
            parts: &["paced"],
            measure: paced,
        },
        Trend {
            name: "sawtooth",
            published: Published::Stated(
                "after a loss the window is cut, perhaps by 30 or 50 %, depending on the \
                 algorithm",
                &[At(1149, "30", "%"), At(1149, "50", "%")],
            ),
            expected: Expected::By {
                text: "to 0.5 by Reno, to 0.7 by CUBIC",
                source: "RFC 5681, section 3.1, and RFC 9438, section 4.6",
            },
            parts: &["sawtooth"],
            measure: sawtooth,
        },
        Trend {
            name: "geo-and-leo",
            published: Published::Stated(
                "GEO paths have 600 ms or more, LEO paths 25 to 100 ms",
                &[At(1337, "600", "msec"), At(1338, "25", ""), At(1338, "100", "msec")],
            ),
            expected: Expected::By {
                text: "GEO is slower than LEO with each congestion control, and BBR loses \
                       least",
                source: INFERENCE,
            },
            parts: &["orbit"],
            measure: orbit,
        },
        Trend {
            name: "leo-handovers",
            published: Published::Stated(
                "a LEO path is handed over from one satellite to another, often: each serves for some \
                 seconds to over 3 minutes",
                &[
                    At(1338, "frequent handoffs", ""),
                    At(1338, "some seconds", ""),
                    At(1338, "3", ""),
                ],
            ),
            expected: Expected::By {
                text: "with each congestion control, a handover shows as a second below 0.9 of the \
                       median one",
                source: INFERENCE,
            },
            parts: &["handover"],
            measure: handover::measure,
        },
    ],
};

/// The payload rates of 2.5 Gbit/s Ethernet over IPv4 and over IPv6: 1448 and 1428 of 1538 bytes.
const IPV4_BPS: f64 = 2.5e9 * 1448.0 / 1538.0;
const IPV6_BPS: f64 = 2.5e9 * 1428.0 / 1538.0;
/// 4 MiB over 215 ms.
const WINDOW_BPS: f64 = 4_194_304.0 * 8.0 / 0.215;
/// Mathis et al. 1997, equation 3: 1448 bytes, 100 ms, 1 % loss.
const MATHIS_BPS: f64 = 1.2247 * 1448.0 * 8.0 / (0.1 * 0.1);
/// How near to what the line carries a goodput fills it; a short test has its ramp-up in it.
const FILLED: f64 = 0.15;
/// Mean RTT above the idle one, from which a queue is bloated, and below which it is short.
const BLOATED_MS: f64 = 300.0;
const SHORT_MS: f64 = 60.0;
/// Relative tolerance of a decrease factor: between two samples, 100 ms apart, the window grows.
const SAWTOOTH: f64 = 0.06;

fn overhead(runs: &Runs<'_>) -> Option<Measured> {
    let at = |ip, direction| runs.goodput("overhead", &[("ip", ip), ("direction", direction)]);
    let ipv4 = [at("4", "forward")?, at("4", "reverse")?];
    let ipv6 = [at("6", "forward")?, at("6", "reverse")?];
    let gbit = |rates: [f64; 2]| rates.map(|rate| format!("{:.3}", rate / 1e9)).join(" and ");
    Some(Measured {
        text: format!("IPv4 {} Gbit/s up and down, IPv6 {} Gbit/s", gbit(ipv4), gbit(ipv6)),
        holds: ipv4.iter().all(|rate| near(*rate, IPV4_BPS, 0.01))
            && ipv6.iter().all(|rate| near(*rate, IPV6_BPS, 0.01)),
    })
}

fn added_delay(runs: &Runs<'_>) -> Option<Measured> {
    let limited = runs.goodput("delay", &[("window", "4MiB")])?;
    let wider = runs.goodput("delay", &[("window", "40MiB")])?;
    Some(Measured {
        text: format!("{} with 4 MiB, {} with 40 MiB", mbit(limited), mbit(wider)),
        holds: near(limited, WINDOW_BPS, 0.10) && wider > 3.0 * limited,
    })
}

/// One flow with a window of the BDP, four with a quarter each, and the kernel's defaults.
fn four_quarter_buffers(runs: &Runs<'_>) -> Option<Measured> {
    let mut words = Vec::new();
    let mut holds = true;
    for rtt in runs.values("places", "rtt") {
        let at = |window| runs.goodput("places", &[("rtt", rtt.as_str()), ("window", window)]);
        let (one, four) = (at("1 bdp")?, at("0.25 bdp")?);
        let default = runs.goodput("defaults", &[("rtt", rtt.as_str())])?;
        holds &= near(one, IPV4_BPS, FILLED) && near(four, IPV4_BPS, FILLED) && default < one / 2.0;
        words.push(format!("{rtt}: {}, {} and {}", mbit(one), mbit(four), mbit(default)));
    }
    Some(Measured {
        text: format!("one flow, four, and the kernel's default buffers at {}", words.join("; ")),
        holds: holds && words.len() > 1,
    })
}

fn small_switch_buffers(runs: &Runs<'_>) -> Option<Measured> {
    let mut words = Vec::new();
    let mut gains = Vec::new();
    for queue in runs.values("shallow", "queue") {
        let at = |congestion| {
            runs.goodput("shallow", &[("queue", queue.as_str()), ("congestion", congestion)])
        };
        let (cubic, bbr) = (at("cubic")?, at("bbr")?);
        gains.push(bbr / cubic.max(1.0));
        words.push(format!("{queue}: {} and {}", mbit(cubic), mbit(bbr)));
    }
    Some(Measured {
        text: format!("CUBIC and BBR at queues of {}", words.join("; ")),
        // The smaller the queue, the larger the gain.
        holds: gains.first()? > gains.last()? && gains.iter().all(|gain| *gain > 1.0),
    })
}

/// Retransmitted segments, and the mean RTT above the lowest one.
fn ecn(runs: &Runs<'_>) -> Option<Measured> {
    let of = |ecn, figure: fn(&record::FlowFigures) -> Option<f64>| {
        runs.mean("ecn", &[("ecn", ecn)], |run| figure(run.flows.first()?))
    };
    let resent = |ecn| of(ecn, |flow| flow.retransmits.map(|count| count as f64));
    let added = |ecn| of(ecn, |flow| Some(flow.mean_rtt_ms? - flow.min_rtt_ms?));
    let (without, with) = (resent("no")?, resent("yes")?);
    let queued = [added("no")?, added("yes")?];
    Some(Measured {
        text: format!(
            "{without:.0} segments retransmitted without ECN, {with:.0} with it; {:.0} and {:.0} \
             ms added to the RTT",
            queued[0], queued[1]
        ),
        holds: without > 0.0 && with < without / 2.0 && queued.iter().all(|ms| *ms < SHORT_MS),
    })
}

fn loss(runs: &Runs<'_>, holds: fn(f64, f64) -> bool) -> Option<Measured> {
    let at = |congestion| runs.goodput("loss", &[("congestion", congestion)]);
    let (cubic, reno, bbr) = (at("cubic")?, at("reno")?, at("bbr")?);
    Some(Measured {
        text: format!(
            "CUBIC {}, Reno {}, BBR {}; Mathis {}",
            mbit(cubic),
            mbit(reno),
            mbit(bbr),
            BitRate::from_bps_f64(MATHIS_BPS)
        ),
        holds: holds(cubic, bbr),
    })
}

/// The mean RTT above the lowest one, in ms.
fn bufferbloat(runs: &Runs<'_>) -> Option<Measured> {
    let at = |congestion, queue| {
        runs.mean("bloat", &[("congestion", congestion), ("queue", queue)], |run| {
            let flow = run.flows.first()?;
            Some(flow.mean_rtt_ms? - flow.min_rtt_ms?)
        })
    };
    let full = at("cubic", "1000ms")?;
    let short = [at("cubic", "fq_codel")?, at("bbr", "1000ms")?, at("bbr", "fq_codel")?];
    Some(Measured {
        text: format!(
            "CUBIC adds {full:.0} ms to the RTT over drop-tail and {:.0} ms over fq_codel; BBR \
             {:.0} and {:.0} ms",
            short[0], short[1], short[2]
        ),
        holds: full > BLOATED_MS && short.iter().all(|added| *added < SHORT_MS),
    })
}

/// Eight streams that may each send at the link's rate, or at their share of it.
fn paced(runs: &Runs<'_>) -> Option<Measured> {
    let at = |pacing| {
        let resent = runs.mean("paced", &[("pacing", pacing)], |run| {
            run.flows.first()?.retransmits.map(|count| count as f64)
        });
        Some((runs.goodput("paced", &[("pacing", pacing)])?, resent?))
    };
    let (free, paced) = (at("100mbit")?, at("11.8mbit")?);
    Some(Measured {
        text: format!(
            "8 BBR streams: {} with {:.0} segments retransmitted; paced at 11.8 Mbit/s each: {} with \
             {:.0}",
            mbit(free.0),
            free.1,
            mbit(paced.0),
            paced.1
        ),
        holds: paced.0 > 0.95 * free.0 && paced.1 < free.1 / 2.0,
    })
}

fn sawtooth(runs: &Runs<'_>) -> Option<Measured> {
    let factor = |congestion| {
        runs.mean("sawtooth", &[("congestion", congestion)], |run| {
            run.flows.first()?.decrease_factor
        })
    };
    let (reno, cubic) = (factor("reno")?, factor("cubic")?);
    Some(Measured {
        text: format!("to {reno:.2} of the window by Reno, to {cubic:.2} by CUBIC"),
        holds: near(reno, 0.5, SAWTOOTH) && near(cubic, 0.7, SAWTOOTH),
    })
}

fn orbit(runs: &Runs<'_>) -> Option<Measured> {
    let at = |rtt, congestion| runs.goodput("orbit", &[("rtt", rtt), ("congestion", congestion)]);
    let mut words = Vec::new();
    let mut left = Vec::new();
    for congestion in ["reno", "cubic", "bbr"] {
        let (leo, geo) = (at("40ms", congestion)?, at("600ms", congestion)?);
        words.push(format!("{congestion} {} and {}", mbit(leo), mbit(geo)));
        left.push(geo / leo.max(1.0));
    }
    Some(Measured {
        text: format!("LEO and GEO: {}", words.join("; ")),
        holds: left.iter().all(|share| *share < 1.0) && left[2] > left[0].max(left[1]),
    })
}
