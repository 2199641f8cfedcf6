//! `netherlight`: windows and streams over a lambda from Amsterdam to Chicago.

use super::runs::{Runs, mbit, near};
use super::{At, BuiltIn, Expected, INFERENCE, Measured, Published, Trend};
use crate::documents;

pub(super) const STUDY: BuiltIn = BuiltIn {
    name: "netherlight",
    document: &documents::NETHERLIGHT,
    question: "How do windows, streams and UDP fill a lambda from Amsterdam to Chicago (assumed: OC-12, \
               100 ms)?",
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
            measure: |runs| surface(runs, "pair", 1.0),
        },
        Trend {
            name: "window-surface-back",
            published: Published::Stated(
                "the same in the other direction",
                &[At(17, "before congestion", ""), At(25, "comparable", "")],
            ),
            expected: Expected::Nothing,
            parts: &["pair-back"],
            measure: |runs| surface(runs, "pair-back", 1.0),
        },
        Trend {
            name: "window-surface-2",
            published: Published::Stated(
                "the same with two hosts to two, of one to eight streams each",
                &[At(8, "one to eight streams", ""), At(17, "before congestion", "")],
            ),
            expected: Expected::Nothing,
            parts: &["two-pairs"],
            measure: |runs| surface(runs, "two-pairs", 2.0),
        },
        Trend {
            name: "window-surface-2-back",
            published: Published::Stated(
                "the same in the other direction",
                &[At(17, "before congestion", ""), At(14, "reverse direction", "")],
            ),
            expected: Expected::Nothing,
            parts: &["two-pairs-back"],
            measure: |runs| surface(runs, "two-pairs-back", 2.0),
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
            measure: |runs| surface(runs, "four-to-two", 4.0),
        },
        Trend {
            name: "window-surface-4-back",
            published: Published::Stated(
                "the same in the other direction",
                &[At(33, "4", "hosts"), At(31, "comparable", "")],
            ),
            expected: Expected::Nothing,
            parts: &["four-to-two-back"],
            measure: |runs| surface(runs, "four-to-two-back", 4.0),
        },
        Trend {
            name: "udp-without-loss",
            published: Published::Stated(
                "two UDP streams carry about 550 Mbit/s without loss; at most 700 Mbit/s are \
                 offered",
                &[At(23, "550", "Mbit/s"), At(23, "two streams", ""), At(19, "700", "Mbit/s")],
            ),
            expected: Expected::By {
                text: "700 Mbit/s offered lose a part, as they exceed the link of our \
                       assumption",
                source: INFERENCE,
            },
            parts: &["udp"],
            measure: udp,
        },
    ],
};

/// In seconds; assumed, as the line rate is.
const RTT_S: f64 = 0.1;
/// What the link carries of segments of 1448 bytes, in bit/s.
const LINK_BPS: f64 = 600e6 * 1448.0 / 1500.0;
/// Sums of windows up to this share of the link are before congestion.
const BEFORE: f64 = 0.9;
/// How near a cell is to the least of both, and the share of cells that must be.
const NEAR: f64 = 0.10;
const CELLS: f64 = 0.90;

/// Goodput against the windows of all streams of that many clients over the RTT.
fn surface(runs: &Runs<'_>, part: &str, clients: f64) -> Option<Measured> {
    let (mut agreeing, mut all) = (0, 0);
    let mut most: f64 = 0.0;
    for window in runs.values(part, "window") {
        for streams in runs.values(part, "streams") {
            let values = [("window", window.as_str()), ("streams", streams.as_str())];
            let Some(goodput) = runs.goodput(part, &values) else { continue };
            most = most.max(goodput);
            let bytes = runs.number(part, "window", &window)?;
            let streams = clients * runs.number(part, "streams", &streams)?;
            let windows = bytes * streams * 8.0 / RTT_S;
            if windows <= BEFORE * LINK_BPS {
                all += 1;
                agreeing += u32::from(near(goodput, windows.min(LINK_BPS), NEAR));
            }
        }
    }
    (all > 0).then(|| Measured {
        text: format!(
            "{agreeing} of {all} cells before congestion are within 10 % of windows over RTT; at \
             most {}",
            mbit(most)
        ),
        holds: f64::from(agreeing) >= CELLS * f64::from(all),
    })
}

fn udp(runs: &Runs<'_>) -> Option<Measured> {
    let loss = |bitrate| {
        runs.mean("udp", &[("streams", "2"), ("bitrate", bitrate)], |run| run.flows.first()?.loss)
    };
    let (carried, over) = (loss("275mbit")?, loss("350mbit")?);
    Some(Measured {
        text: format!(
            "2 streams: {:.2} % lost of 550 Mbit/s, {:.1} % of 700 Mbit/s",
            carried * 100.0,
            over * 100.0
        ),
        holds: carried < 0.001 && over > 0.05,
    })
}
