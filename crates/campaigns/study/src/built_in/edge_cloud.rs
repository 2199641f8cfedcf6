//! `edge-cloud`: windows, streams and UDP over 100 Mbit/s and 173 ms (Frankfurt to Las Vegas).

use super::runs::{Runs, mbit, near, seconds};
use super::{At, BuiltIn, Expected, INFERENCE, Measured, Published, StudyTestbed, Trend};
use crate::documents;
use model::{RenoPath, linux_rto, loss_from_fraction, pftk};
use record::{FlowFigures, Limit, StudyRun};
use units::{BitRate, ByteCount, Rtt};

pub(super) const STUDY: BuiltIn = BuiltIn {
    name: "edge-cloud",
    document: &documents::THROUGHPUT,
    question: "What do window, streams and UDP achieve between an edge and a cloud 173 ms apart?",
    testbed: StudyTestbed::Lab,
    parts: &[
        ("windows", include_str!("../../plans/edge-cloud/windows.toml")),
        ("streams", include_str!("../../plans/edge-cloud/streams.toml")),
        ("iperf2", include_str!("../../plans/edge-cloud/iperf2.toml")),
        ("udp", include_str!("../../plans/edge-cloud/udp.toml")),
        ("contention", include_str!("../../plans/edge-cloud/contention.toml")),
    ],
    trends: &[
        Trend {
            name: "window-64k",
            published: Published::Stated(
                "one stream, 64 KiB: theory 2.89, measured 2.77 Mbit/s",
                &[At(68, "2.89", "Mbit/s"), At(103, "2.77", "Mbits/sec"), At(99, "64", "KByte")],
            ),
            expected: Expected::Nothing,
            parts: &["windows"],
            measure: |runs| window_over_rtt(runs, "windows", "window", "64KiB", 65_536.0, 1.0),
        },
        Trend {
            name: "window-128k",
            published: Published::Stated(
                "one stream, 128 KiB: theory 5.92, measured 5.35 Mbit/s",
                &[
                    At(131, "5.92", "Mbit/sec"),
                    At(156, "5.35", "Mbits/sec"),
                    At(152, "128", "KByte"),
                ],
            ),
            expected: Expected::By {
                text: "131,072 B over 173 ms are 6.06 Mbit/s; 5.92 counts 1024 x 1000 bit as \
                       1 Mbit",
                source: INFERENCE,
            },
            parts: &["windows"],
            measure: |runs| window_over_rtt(runs, "windows", "window", "128KiB", 131_072.0, 1.0),
        },
        Trend {
            name: "streams-10",
            published: Published::Stated(
                "10 streams of 128 KiB each: 47.8 Mbit/s, nearly 10 times one stream",
                &[
                    At(171, "128", "K"),
                    At(177, "10", ""),
                    At(203, "47.8", "Mbits/sec"),
                    At(205, "10", "x"),
                ],
            ),
            expected: Expected::By {
                text: "10 times the measured 5.35 Mbit/s are 53.5; 10 windows over the RTT \
                       are 60.6 Mbit/s",
                source: INFERENCE,
            },
            parts: &["streams"],
            measure: |runs| window_over_rtt(runs, "streams", "streams", "10", 131_072.0, 10.0),
        },
        Trend {
            name: "iperf2",
            published: Published::Stated(
                "iperf at both ends: 5.35 Mbit/s with one stream of 128 KiB, 47.8 with 10",
                &[
                    At(156, "5.35", "Mbits/sec"),
                    At(152, "128", "KByte"),
                    At(203, "47.8", "Mbits/sec"),
                    At(177, "10", ""),
                ],
            ),
            expected: Expected::Nothing,
            parts: &["iperf2"],
            measure: iperf2,
        },
        Trend {
            name: "window-plateau",
            published: Published::Stated(
                "doubling the window helps until a limit is reached, there that of the \
                 system's buffers",
                &[At(160, "doubling", "")],
            ),
            expected: Expected::By {
                text: "with larger buffers the limit is the bottleneck's rate",
                source: INFERENCE,
            },
            parts: &["windows"],
            measure: |runs| plateau(runs, "windows", "window"),
        },
        Trend {
            name: "streams-plateau",
            published: Published::Stated(
                "streams add up, sharing the link fairly, until no bandwidth is left",
                &[At(167, "fairly", "")],
            ),
            expected: Expected::Nothing,
            parts: &["streams"],
            measure: |runs| plateau(runs, "streams", "streams"),
        },
        Trend {
            name: "udp-overload",
            published: Published::Stated(
                "UDP offered 110 Mbit/s: 98.0 Mbit/s received, 11 % lost",
                &[
                    At(221, "110m", ""),
                    At(229, "110", "Mbits/sec"),
                    At(232, "98.0", "Mbits/sec"),
                    At(232, "11", "%"),
                ],
            ),
            expected: Expected::By {
                text: "1470 of 1498 bytes of the link are 98.1 Mbit/s",
                source: INFERENCE,
            },
            parts: &["udp"],
            measure: udp_overload,
        },
        Trend {
            name: "udp-and-tcp",
            published: Published::Stated(
                "10 UDP streams offering 291 Mbit/s in all beside TCP: UDP 76.331 Mbit/s; TCP \
                 falls from 5.35 to 1.68 Mbit/s",
                &[
                    At(252, "10", ""),
                    At(289, "291", "Mbits/sec"),
                    At(320, "76.331", "Mbit/s"),
                    At(333, "5.35", "Mbits/sec"),
                    At(333, "1.68", "Mbits/sec"),
                ],
            ),
            expected: Expected::By {
                text: "the ten reports of the document's server sum to 95.4 Mbit/s, not to \
                       76.331; UDP and TCP fill the link together",
                source: INFERENCE,
            },
            parts: &["contention"],
            measure: contention,
        },
    ],
};

/// In seconds.
const RTT_S: f64 = 0.173;
/// What the link carries of datagrams of 1470 bytes, 1498 with their headers, in bit/s.
const DATAGRAM_RATE: f64 = 100e6 * 1470.0 / 1498.0;
/// How far a goodput may be from window over RTT.
const NEAR: f64 = 0.08;
/// How far a carried load may be from the link's payload rate.
const CARRIED: f64 = 0.01;
/// A larger setting that gives less than this more is past the plateau's begin.
const RISE: f64 = 1.05;

/// Goodput against `streams` x window / RTT, in SI units.
fn window_over_rtt(
    runs: &Runs<'_>,
    part: &str,
    factor: &str,
    value: &str,
    window_bytes: f64,
    streams: f64,
) -> Option<Measured> {
    let measured = runs.goodput(part, &[(factor, value)])?;
    let expected = streams * window_bytes * 8.0 / RTT_S;
    Some(Measured {
        text: format!(
            "{}, {:+.1} % of window over RTT ({})",
            mbit(measured),
            (measured / expected - 1.0) * 100.0,
            mbit(expected)
        ),
        holds: near(measured, expected, NEAR),
    })
}

/// iperf 2's transfers, by the kernel's counts after the warm-up, beside what it reports.
fn iperf2(runs: &Runs<'_>) -> Option<Measured> {
    let of = |streams: &str| {
        let values = [("streams", streams)];
        let steady = runs.mean("iperf2", &values, |run| run.flows.first()?.steady_bps)?;
        Some((steady, runs.goodput("iperf2", &values)?))
    };
    let (one, ten) = (of("1")?, of("10")?);
    let window = 131_072.0 * 8.0 / RTT_S;
    Some(Measured {
        text: format!(
            "{} with 1 stream and {} with 10, {:+.1} and {:+.1} % of window over RTT; with the \
             beginning, iperf reports {} and {}",
            mbit(one.0),
            mbit(ten.0),
            (one.0 / window - 1.0) * 100.0,
            (ten.0 / window / 10.0 - 1.0) * 100.0,
            mbit(one.1),
            mbit(ten.1)
        ),
        holds: near(one.0, window, NEAR) && near(ten.0, 10.0 * window, NEAR),
    })
}

/// Goodput rises with each value up to a plateau, which the network limits.
fn plateau(runs: &Runs<'_>, part: &str, factor: &str) -> Option<Measured> {
    let mut points = Vec::new();
    for value in runs.values(part, factor) {
        let rate = runs.goodput(part, &[(factor, &value)])?;
        let limit = limit(&runs.valid(part, &[(factor, &value)]));
        points.push((value, rate, limit));
    }
    // The first value that is not followed by a clear rise.
    let rises = |at: usize| points.get(at + 1).is_some_and(|next| next.1 > points[at].1 * RISE);
    let top = (0..points.len()).find(|at| !rises(*at))?;
    let (value, rate, _) = points.get(top)?;
    let (first, last) = (points.first()?, points.last()?);
    let below = first.2 == Some(Limit::ReceiveWindow);
    // At the edge of the plateau both limit: the largest value is clear of it.
    let network = last.2.is_some_and(|limit| limit != Limit::ReceiveWindow);
    Some(Measured {
        text: format!(
            "rises from {} ({factor}={}, {}) to {} at {factor}={value}; {factor}={}: {}",
            mbit(first.1),
            first.0,
            name(first.2),
            mbit(*rate),
            last.0,
            name(last.2)
        ),
        holds: top > 0 && below && network,
    })
}

/// The limit that most findings name.
fn limit(runs: &[&StudyRun]) -> Option<Limit> {
    let limits: Vec<Limit> =
        runs.iter().flat_map(|run| &run.flows).filter_map(|flow| flow.limit).collect();
    let count = |limit: &Limit| limits.iter().filter(|other| *other == limit).count();
    limits.iter().copied().max_by_key(count)
}

fn name(limit: Option<Limit>) -> &'static str {
    limit.map_or("no limit named", Limit::name)
}

fn udp_overload(runs: &Runs<'_>) -> Option<Measured> {
    let values = [("bitrate", "110mbit")];
    let rate = runs.goodput("udp", &values)?;
    let loss = runs.mean("udp", &values, |run| run.flows.first()?.loss)?;
    Some(Measured {
        text: format!("{} received, {:.1} % lost", mbit(rate), loss * 100.0),
        holds: near(rate, DATAGRAM_RATE, CARRIED) && (loss - 0.108).abs() <= 0.01,
    })
}

/// TCP before and beside UDP, by its series of seconds.
fn contention(runs: &Runs<'_>) -> Option<Measured> {
    let of = |figure: fn(&FlowFigures, &FlowFigures) -> Option<f64>| {
        runs.mean("contention", &[], |run| figure(run.flow("tcp")?, run.flow("udp")?))
    };
    let alone = of(|tcp, udp| seconds(tcp, 1.0, udp.began_s))?;
    // The queue fills, and TCP notices, within a few round trips.
    let beside = of(|tcp, udp| seconds(tcp, udp.began_s + 2.0, udp.began_s + udp.seconds))?;
    let udp = of(|_, udp| Some(udp.throughput_bps))?;
    let loss = of(|_, udp| udp.loss)?;
    Some(Measured {
        text: format!(
            "UDP {} ({:.0} % lost) and TCP {} are {} in all; TCP alone had {}. Of TCP's segments \
             and of their retransmissions as many are lost as of the datagrams, so that it waits \
             for timeouts: at that loss, Padhye's equation gives {}. The published {} over {} s \
             are no rate at such a loss; {} during {:.1} of them would give it, before UDP began \
             and after it ended",
            mbit(udp),
            loss * 100.0,
            mbit(beside),
            mbit(udp + beside),
            mbit(alone),
            under_loss(loss).map_or("nothing".to_owned(), |rate| rate.to_string()),
            mbit(PUBLISHED_BESIDE_BPS),
            PUBLISHED_S,
            mbit(PUBLISHED_ALONE_BPS),
            PUBLISHED_S * PUBLISHED_BESIDE_BPS / PUBLISHED_ALONE_BPS
        ),
        holds: near(udp + beside, DATAGRAM_RATE, CARRIED) && beside < alone / 2.0,
    })
}

/// TCP's published goodput alone and beside UDP, in bit/s, and the length of the latter test.
const PUBLISHED_ALONE_BPS: f64 = 5.35e6;
const PUBLISHED_BESIDE_BPS: f64 = 1.68e6;
const PUBLISHED_S: f64 = 10.6;

/// What a TCP stream of 128 KiB reaches at that share of lost packets: with more than every second
/// one lost, most rounds end in a timeout, each twice as long as the one before it.
fn under_loss(loss: f64) -> Option<BitRate> {
    let rtt = Rtt::from_secs(RTT_S);
    let path = RenoPath {
        mss: ByteCount::from_bytes(1_448),
        rtt,
        rto: linux_rto(rtt),
        window: Some(ByteCount::from_bytes(131_072)),
        packets_per_ack: 1,
    };
    pftk(&path, loss_from_fraction(loss)?)
}
