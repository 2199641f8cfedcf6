//! `netherlight`: windows and streams over a lambda from Amsterdam to Chicago.

use super::runs::{Runs, Where, mbit, near};
use super::{At, BuiltIn, Expected, INFERENCE, Measured, Published, StudyTestbed, Trend};
use crate::documents;
use record::StudyRun;
use units::{ByteCount, change, percent};

pub(super) const STUDY: BuiltIn = BuiltIn {
    name: "netherlight",
    document: &documents::NETHERLIGHT,
    question: "How do windows, streams and UDP fill a lambda from Amsterdam to Chicago (assumed: OC-12, \
               100 ms)?",
    testbed: StudyTestbed::Lab,
    parts: &[
        ("pair", include_str!("../../plans/netherlight/pair.toml")),
        ("pair-back", include_str!("../../plans/netherlight/pair-back.toml")),
        ("two-pairs", include_str!("../../plans/netherlight/two-pairs.toml")),
        ("two-pairs-back", include_str!("../../plans/netherlight/two-pairs-back.toml")),
        ("four-to-two", include_str!("../../plans/netherlight/four-to-two.toml")),
        ("four-to-two-back", include_str!("../../plans/netherlight/four-to-two-back.toml")),
        ("udp", include_str!("../../plans/netherlight/udp.toml")),
        ("udp-back", include_str!("../../plans/netherlight/udp-back.toml")),
        ("long-1", include_str!("../../plans/netherlight/long-1.toml")),
        ("long-1-back", include_str!("../../plans/netherlight/long-1-back.toml")),
        ("long-4", include_str!("../../plans/netherlight/long-4.toml")),
        ("long-4-back", include_str!("../../plans/netherlight/long-4-back.toml")),
    ],
    trends: &[
        Trend {
            name: "window-surface",
            published: Published::Stated(
                "before congestion, throughput rises as TCP-Win * RTT has it",
                &[At(17, "before congestion", ""), At(17, "TCP-Win", ""), At(25, "comparable", "")],
            ),
            expected: Expected::By {
                text: "the windows over the RTT: a rate is their quotient, not the product \
                       that is printed",
                source: INFERENCE,
            },
            parts: &["pair"],
            measure: |runs| surface(runs, "pair"),
        },
        Trend {
            name: "window-surface-back",
            published: Published::Stated(
                "the same in the other direction",
                &[At(17, "before congestion", ""), At(25, "comparable", "")],
            ),
            expected: Expected::Nothing,
            parts: &["pair-back"],
            measure: |runs| surface(runs, "pair-back"),
        },
        Trend {
            name: "window-surface-2",
            published: Published::Stated(
                "the same with two hosts to two, of one to eight streams each",
                &[At(8, "one to eight streams", ""), At(17, "before congestion", "")],
            ),
            expected: Expected::Nothing,
            parts: &["two-pairs"],
            measure: |runs| surface(runs, "two-pairs"),
        },
        Trend {
            name: "window-surface-2-back",
            published: Published::Stated(
                "the same in the other direction",
                &[At(17, "before congestion", ""), At(14, "reverse direction", "")],
            ),
            expected: Expected::Nothing,
            parts: &["two-pairs-back"],
            measure: |runs| surface(runs, "two-pairs-back"),
        },
        Trend {
            name: "window-surface-4",
            published: Published::Stated(
                "the same with 4 hosts to 2, of 4 to 32 streams in all",
                &[
                    At(32, "4", "hosts"),
                    At(32, "2", "hosts"),
                    At(31, "4", ""),
                    At(31, "32", "streams"),
                ],
            ),
            expected: Expected::Nothing,
            parts: &["four-to-two"],
            measure: |runs| surface(runs, "four-to-two"),
        },
        Trend {
            name: "window-surface-4-back",
            published: Published::Stated(
                "the same in the other direction",
                &[At(33, "4", "hosts"), At(31, "comparable", "")],
            ),
            expected: Expected::Nothing,
            parts: &["four-to-two-back"],
            measure: |runs| surface(runs, "four-to-two-back"),
        },
        Trend {
            name: "maximum-2-pairs",
            published: Published::Stated(
                "two hosts to two reach at most about 500 Mbit/s",
                &[At(13, "500", "Mbit/s")],
            ),
            expected: Expected::Nothing,
            parts: &["two-pairs", "two-pairs-back"],
            measure: |runs| maximum(runs, &["two-pairs", "two-pairs-back"], 500e6),
        },
        Trend {
            name: "maximum-1-pair",
            published: Published::Stated(
                "at most about 550 Mbit/s \"from figures 7 and 8\", which are those of one pair",
                &[At(34, "550", "Mbit/s"), At(34, "7", ""), At(34, "8", "")],
            ),
            expected: Expected::Nothing,
            parts: &["pair", "pair-back"],
            measure: |runs| maximum(runs, &["pair", "pair-back"], 550e6),
        },
        Trend {
            name: "maximum-4-to-2",
            published: Published::Stated(
                "at most about 550 Mbit/s, in the section on four hosts to two, figures 11 and 12",
                &[At(34, "550", "Mbit/s"), At(32, "11", ""), At(33, "12", "")],
            ),
            expected: Expected::Nothing,
            parts: &["four-to-two", "four-to-two-back"],
            measure: |runs| maximum(runs, &["four-to-two", "four-to-two-back"], 550e6),
        },
        Trend {
            name: "more-hosts",
            published: Published::Stated(
                "with four hosts to two the performance is slightly better than with two to two",
                &[At(31, "slightly better", "")],
            ),
            expected: Expected::Nothing,
            parts: &["two-pairs", "two-pairs-back", "four-to-two", "four-to-two-back"],
            measure: more_hosts,
        },
        Trend {
            name: "more-streams-less-memory",
            published: Published::Stated(
                "more streams perform better: their smaller windows limit the memory that routers \
                        and hosts need",
                &[At(18, "better", ""), At(18, "smaller", ""), At(18, "memory", "")],
            ),
            expected: Expected::Nothing,
            parts: &["pair"],
            measure: more_streams,
        },
        Trend {
            name: "udp-without-loss",
            published: Published::Stated(
                "two UDP streams carry about 550 Mbit/s without loss; at most 700 Mbit/s are offered",
                &[At(23, "550", "Mbit/s"), At(23, "two streams", ""), At(19, "700", "Mbit/s")],
            ),
            expected: Expected::By {
                text: "700 Mbit/s offered lose a part, as they exceed the link of our assumption",
                source: INFERENCE,
            },
            parts: &["udp"],
            measure: |runs| udp(runs, "udp"),
        },
        Trend {
            name: "udp-without-loss-back",
            published: Published::Stated(
                "the same in the other direction",
                &[At(20, "reverse direction", ""), At(23, "550", "Mbit/s")],
            ),
            expected: Expected::By {
                text: "700 Mbit/s offered lose a part, as they exceed the link of our assumption",
                source: INFERENCE,
            },
            parts: &["udp-back"],
            measure: |runs| udp(runs, "udp-back"),
        },
        Trend {
            name: "udp-more-streams",
            published: Published::Stated(
                "with more UDP streams the loss becomes worse, which may be an effect of the hosts",
                &[At(23, "worse", ""), At(23, "host effects", "")],
            ),
            expected: Expected::Nothing,
            parts: &["udp"],
            measure: |runs| more_udp_streams(runs, "udp"),
        },
        Trend {
            name: "udp-more-streams-back",
            published: Published::Stated(
                "the same in the other direction",
                &[At(20, "reverse direction", ""), At(23, "worse", "")],
            ),
            expected: Expected::Nothing,
            parts: &["udp-back"],
            measure: |runs| more_udp_streams(runs, "udp-back"),
        },
        Trend {
            name: "four-streams",
            published: Published::Stated(
                "over 60 minutes four streams are much better than one, and nearer to theory",
                &[
                    At(43, "four streams much better", ""),
                    At(43, "theoretical expectations", ""),
                    At(40, "60", "minutes"),
                ],
            ),
            expected: Expected::Nothing,
            parts: &["long-1", "long-4"],
            measure: |runs| four_streams(runs, ["long-1", "long-4"]),
        },
        Trend {
            name: "four-streams-back",
            published: Published::Stated(
                "the same in the other direction",
                &[At(42, "EVL => SARA", ""), At(43, "four streams much better", "")],
            ),
            expected: Expected::Nothing,
            parts: &["long-1-back", "long-4-back"],
            measure: |runs| four_streams(runs, ["long-1-back", "long-4-back"]),
        },
    ],
};

/// Why a lab need not show a trend: what the document observed is of its hosts, of its network, or
/// of an hour.
pub(super) fn not_reproduced(trend: &str, quick: bool) -> Option<&'static str> {
    match trend {
        "maximum-2-pairs" => Some(
            "The emulated 600 Mbit/s carry 579 Mbit/s of payload; the document does not say what \
             limited it to about 500.",
        ),
        "maximum-1-pair" | "maximum-4-to-2" => Some(
            "The emulated link of 600 Mbit/s carries 579 Mbit/s of payload, whatever the number of hosts.",
        ),
        "more-hosts" => Some(
            "Two hosts to two fill the emulated link already, so that more cannot improve on it.",
        ),
        "more-streams-less-memory" => Some(
            "On a path without loss, the sum of the windows alone decides; more streams recover \
             faster from losses: see four-streams.",
        ),
        "udp-more-streams" | "udp-more-streams-back" => Some(
            "The emulated queue drops by the total rate, whatever the number of streams; the document \
             itself suspects its hosts.",
        ),
        "four-streams" | "four-streams-back" if quick => Some(
            "What an hour of sparse loss does not show in ten seconds; the full form runs the hour.",
        ),
        _ => None,
    }
}

/// In seconds; assumed, as the line rate is.
const RTT_S: f64 = 0.1;
/// What the link carries of segments of 1448 bytes, in bit/s.
const LINK_BPS: f64 = 600e6 * 1448.0 / 1500.0;
/// Sums of windows up to this share of the link are before congestion.
const BEFORE: f64 = 0.9;
/// How near a cell is to the least of both, and the share of cells that must be.
const NEAR: f64 = 0.10;
const CELLS: f64 = 0.90;
/// How near the highest goodput is to "about" the published one.
const ABOUT: f64 = 0.10;
/// What is better, slightly better at most, and much better, as a share.
const BETTER: f64 = 0.01;
const SLIGHTLY: f64 = 0.30;
const MUCH: f64 = 0.20;
/// A loss up to this is none, one above that is a loss, and a difference of two that counts.
const NO_LOSS: f64 = 0.001;
const A_LOSS: f64 = 0.05;
const MORE_LOSS: f64 = 0.005;

const WINDOW: &str = "total_window";
const STREAMS: &str = "total_streams";
const RATE: &str = "total_bitrate";

/// A cell's goodput.
struct CellGoodput {
    window: String,
    streams: String,
    /// The sum of the windows over the RTT.
    windows_bps: f64,
    bps: f64,
}

impl CellGoodput {
    /// Those of a part that have valid runs.
    fn all(runs: &Runs<'_>, part: &str) -> Vec<Self> {
        let streams = runs.values(part, STREAMS);
        let of = |window: &String, streams: &String| {
            let bps = runs.goodput(part, &[(WINDOW, window), (STREAMS, streams)])?;
            let windows_bps = runs.number(part, WINDOW, window)? * 8.0 / RTT_S;
            let (window, streams) = (window.clone(), streams.clone());
            Some(CellGoodput { window, streams, windows_bps, bps })
        };
        let windows = runs.values(part, WINDOW);
        let pairs = windows.iter().flat_map(|window| streams.iter().map(move |s| (window, s)));
        pairs.filter_map(|(window, streams)| of(window, streams)).collect()
    }

    /// The highest one of some parts, if each has one.
    fn highest(runs: &Runs<'_>, parts: &[&str]) -> Option<Self> {
        let cells: Vec<Vec<Self>> = parts.iter().map(|part| Self::all(runs, part)).collect();
        let has_all = cells.iter().all(|cells| !cells.is_empty());
        let highest = cells.into_iter().flatten().max_by(|a, b| a.bps.total_cmp(&b.bps));
        highest.filter(|_| has_all)
    }
}

/// Goodput against the windows of all streams over the RTT.
fn surface(runs: &Runs<'_>, part: &str) -> Option<Measured> {
    let cells = CellGoodput::all(runs, part);
    let before: Vec<&CellGoodput> =
        cells.iter().filter(|cell| cell.windows_bps <= BEFORE * LINK_BPS).collect();
    let agreeing = before.iter().filter(|cell| near(cell.bps, cell.windows_bps, NEAR)).count();
    let ratios = before.iter().map(|cell| cell.bps / cell.windows_bps);
    let highest = ratios.fold(0.0, f64::max);
    (!before.is_empty()).then(|| Measured {
        text: format!(
            "{agreeing} of {} cells before congestion are within 10 % of windows over RTT; at \
             most {} of it",
            before.len(),
            percent(highest)
        ),
        holds: agreeing as f64 >= CELLS * before.len() as f64,
    })
}

/// The highest goodput of both directions.
fn maximum(runs: &Runs<'_>, parts: &[&str], published_bps: f64) -> Option<Measured> {
    let highest = CellGoodput::highest(runs, parts)?;
    Some(Measured {
        text: format!(
            "at most {}, with {} of window and {} streams in all",
            mbit(highest.bps),
            highest.window,
            highest.streams
        ),
        holds: near(highest.bps, published_bps, ABOUT),
    })
}

fn more_hosts(runs: &Runs<'_>) -> Option<Measured> {
    let two = CellGoodput::highest(runs, &["two-pairs", "two-pairs-back"])?;
    let four = CellGoodput::highest(runs, &["four-to-two", "four-to-two-back"])?;
    let gain = four.bps / two.bps - 1.0;
    Some(Measured {
        text: format!(
            "at most {} with four hosts to two, {} with two to two ({})",
            mbit(four.bps),
            mbit(two.bps),
            change(gain)
        ),
        holds: (BETTER..=SLIGHTLY).contains(&gain),
    })
}

/// The fewest and the most streams, of the same largest sum of windows.
fn more_streams(runs: &Runs<'_>) -> Option<Measured> {
    const PART: &str = "pair";
    let windows = runs.values(PART, WINDOW);
    let window = windows.last()?;
    let streams = runs.values(PART, STREAMS);
    let (fewest, most) = (streams.first()?, streams.last()?);
    let one = |streams: &str| {
        let values = [(WINDOW, window.as_str()), (STREAMS, streams)];
        let goodput = runs.goodput(PART, &values)?;
        let each = runs.number(PART, WINDOW, window)? / runs.number(PART, STREAMS, streams)?;
        let queue = runs.mean(PART, &values, queued_bytes);
        let queue = queue.map_or(String::new(), |bytes| {
            format!(", {} in the router's queue", ByteCount::from_f64(bytes))
        });
        let each = ByteCount::from_f64(each);
        Some((goodput, format!("{} with {streams} of {each}{queue}", mbit(goodput))))
    };
    let ((few_bps, few), (many_bps, many)) = (one(fewest)?, one(most)?);
    let gain = many_bps / few_bps - 1.0;
    let text = format!("of the same {window} at the hosts: {many}; {few} ({})", change(gain));
    Some(Measured { text, holds: gain >= BETTER })
}

/// The mean queue of a run, from what the RTT exceeds that of the path by.
fn queued_bytes(run: &StudyRun) -> Option<f64> {
    let waited_s = run.flows.first()?.mean_rtt_ms? / 1e3 - RTT_S;
    Some((waited_s.max(0.0) * run.throughput_bps() / 8.0 / 1e3).round() * 1e3)
}

fn loss(runs: &Runs<'_>, part: &str, values: Where<'_>) -> Option<f64> {
    runs.mean(part, values, StudyRun::loss)
}

fn udp(runs: &Runs<'_>, part: &str) -> Option<Measured> {
    let loss = |rate| loss(runs, part, &[(STREAMS, "2"), (RATE, rate)]);
    let (carried, over) = (loss("550mbit")?, loss("700mbit")?);
    Some(Measured {
        text: format!(
            "2 streams: {:.2} % lost of 550 Mbit/s, {:.1} % of 700 Mbit/s",
            carried * 100.0,
            over * 100.0
        ),
        holds: carried < NO_LOSS && over > A_LOSS,
    })
}

/// The loss of the fewest and of the most streams at each rate.
fn more_udp_streams(runs: &Runs<'_>, part: &str) -> Option<Measured> {
    let streams = runs.values(part, STREAMS);
    let (fewest, most) = (streams.first()?, streams.last()?);
    let (mut texts, mut is_worse, mut is_better) = (Vec::new(), false, false);
    for rate in runs.values(part, RATE) {
        let of = |streams: &str| loss(runs, part, &[(STREAMS, streams), (RATE, &rate)]);
        let (few, many) = (of(fewest)?, of(most)?);
        is_worse |= many > few + MORE_LOSS;
        is_better |= many < few - MORE_LOSS;
        texts.push(format!("{:.1} and {:.1} % of {rate}", few * 100.0, many * 100.0));
    }
    let text = format!("lost with {fewest} and {most} streams: {}", texts.join(", "));
    (!texts.is_empty()).then_some(Measured { text, holds: is_worse && !is_better })
}

/// One stream and four over an hour: at the largest sum of windows, and how far all cells are from
/// theory.
fn four_streams(runs: &Runs<'_>, parts: [&str; 2]) -> Option<Measured> {
    let mut largest = [0.0; 2];
    let mut distances = [0.0; 2];
    let windows = runs.values(parts[0], WINDOW);
    for window in &windows {
        for (at, part) in parts.iter().enumerate() {
            let goodput = runs.goodput(part, &[(WINDOW, window)])?;
            let theory = (runs.number(part, WINDOW, window)? * 8.0 / RTT_S).min(LINK_BPS);
            largest[at] = goodput;
            distances[at] += (goodput / theory - 1.0).abs() / windows.len() as f64;
        }
    }
    let [one, four] = largest;
    let gain = four / one - 1.0;
    let text = format!(
        "with {} of window: {} with four streams, {} with one ({}); in the mean of all windows, {} \
         and {} from theory",
        windows.last()?,
        mbit(four),
        mbit(one),
        change(gain),
        percent(distances[1]),
        percent(distances[0])
    );
    Some(Measured { text, holds: gain >= MUCH && distances[1] < distances[0] })
}
