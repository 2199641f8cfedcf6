//! `cdn`: objects from an origin 170 ms away, and from an edge 4 ms away.

use super::runs::Runs;
use super::{At, BuiltIn, Expected, Measured, Published, StudyTestbed, Trend};
use crate::documents;
use model::statistics;
use record::{FlowFigures, StudyRun};
use std::collections::BTreeMap;
use units::ByteCount;

pub(super) const STUDY: BuiltIn = BuiltIn {
    name: "cdn",
    document: &documents::THROUGHPUT,
    question: "How long do objects take from an origin 170 ms away, and from an edge 4 ms away?",
    testbed: StudyTestbed::Lab,
    parts: &[
        ("origin", include_str!("../../plans/cdn/origin.toml")),
        ("edge", include_str!("../../plans/cdn/edge.toml")),
        ("ranges", include_str!("../../plans/cdn/ranges.toml")),
        ("crowd", include_str!("../../plans/cdn/crowd.toml")),
    ],
    trends: &[
        Trend {
            name: "gain",
            published: Published::Stated(
                "a CDN's node in Frankfurt instead of a server in Los Angeles reduces the RTT from \
                 Munich from ~170 ms to ~4 ms",
                &[At(357, "170", "ms"), At(357, "4", "ms")],
            ),
            expected: Expected::By {
                text: "small objects take round trips: up to 170 / 4 = 42 times less, and large ones \
                       the link's time",
                source: super::INFERENCE,
            },
            parts: &["origin", "edge"],
            measure: gain,
        },
        Trend {
            name: "origin",
            published: Published::Nothing,
            expected: Expected::By { text: WITHIN, source: SOURCE },
            parts: &["origin"],
            measure: |runs| predicted(runs, "origin", &[]),
        },
        Trend {
            name: "cold",
            published: Published::Nothing,
            expected: Expected::By { text: WITHIN, source: SOURCE },
            parts: &["edge"],
            measure: |runs| predicted(runs, "edge", &[("cache_state", "cold")]),
        },
        Trend {
            name: "warm",
            published: Published::Nothing,
            expected: Expected::By { text: WITHIN, source: SOURCE },
            parts: &["edge"],
            measure: |runs| predicted(runs, "edge", &[("cache_state", "warm")]),
        },
        Trend {
            name: "expired",
            published: Published::Nothing,
            expected: Expected::By { text: WITHIN, source: SOURCE },
            parts: &["edge"],
            measure: |runs| predicted(runs, "edge", &[("cache_state", "expired")]),
        },
        Trend {
            name: "ranges",
            published: Published::Nothing,
            expected: Expected::By { text: WITHIN, source: SOURCE },
            parts: &["ranges"],
            measure: |runs| predicted(runs, "ranges", &[]),
        },
        Trend {
            name: "crowd",
            published: Published::Nothing,
            expected: Expected::By {
                text: "the last of 100 clients within the larger of 10 % and 2 ms: one fetches, the \
                       others look every 500 ms",
                source: "nginx, ngx_http_file_cache_lock",
            },
            parts: &["crowd"],
            measure: |runs| predicted(runs, "crowd", &[]),
        },
        Trend {
            name: "once",
            published: Published::Nothing,
            expected: Expected::By {
                text: "each byte of a cold object is fetched once from the origin, whether one client \
                       asks or 100",
                source: "nginx, proxy_cache_lock",
            },
            parts: &["edge", "crowd"],
            measure: once,
        },
        Trend {
            name: "not-modified",
            published: Published::Nothing,
            expected: Expected::By {
                text: "of an object that is fresh, or has expired and not changed, nothing is fetched",
                source: "RFC 9111, section 4.3.4",
            },
            parts: &["edge"],
            measure: nothing,
        },
    ],
};

const WITHIN: &str = "times within the larger of 10 % and 2 ms of the equation";
const SOURCE: &str = "RFC 5681, RFC 6928 and RFC 9111; longhaul calc cdn";

/// A time is predicted within the larger of both.
const NEAR: f64 = 0.10;
const NEAR_S: f64 = 0.002;

/// A flow's seconds, and those that the equation gives.
fn times(runs: &Runs<'_>, part: &str, run: &StudyRun) -> Option<(f64, f64)> {
    let flow = run.flows.first()?;
    let predicted = runs.prediction(part, run)?;
    Some((flow.seconds, flow.throughput_bps * flow.seconds / predicted.as_f64()))
}

/// The median time of each cell beside its equation.
fn predicted(runs: &Runs<'_>, part: &str, of: super::runs::Where<'_>) -> Option<Measured> {
    let mut cells: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    for run in runs.valid(part, of) {
        cells.entry(run.cell).or_default().push(times(runs, part, run)?);
    }
    let median = |of: &[(f64, f64)]| {
        let times: Vec<f64> = of.iter().map(|(time, _)| *time).collect();
        Some((statistics::median(&times)?, of.first()?.1))
    };
    let times: Option<Vec<(f64, f64)>> = cells.values().map(|of| median(of)).collect();
    let times = times.filter(|times| !times.is_empty())?;
    let is_within =
        |(time, predicted): &&(f64, f64)| (time - predicted).abs() <= NEAR_S.max(NEAR * predicted);
    let within = times.iter().filter(is_within).count();
    let error = |(time, predicted): &(f64, f64)| time / predicted - 1.0;
    let worst = times.iter().max_by(|a, b| error(a).abs().total_cmp(&error(b).abs()))?;
    Some(Measured {
        text: format!(
            "{within} of {} median times are within it; the farthest one is {:.4} s where {:.4} s are \
             predicted ({:+.1} %)",
            times.len(),
            worst.0,
            worst.1,
            100.0 * error(worst)
        ),
        holds: within == times.len(),
    })
}

/// Bytes that the client received, and that the origin sent for them.
fn bytes(flow: &FlowFigures) -> (f64, f64) {
    (flow.throughput_bps * flow.seconds / 8.0, flow.sent_bps * flow.seconds / 8.0)
}

/// Half a byte: sums of whole ones, over times.
fn same(one: f64, other: f64) -> bool {
    (one - other).abs() < 0.5
}

fn once(runs: &Runs<'_>) -> Option<Measured> {
    let crowd = runs.valid("crowd", &[]);
    let one = runs.valid("edge", &[("cache_state", "cold")]);
    let flows: Vec<(f64, f64)> =
        crowd.iter().chain(&one).filter_map(|run| run.flows.first()).map(bytes).collect();
    if crowd.is_empty() || one.is_empty() {
        return None;
    }
    let exact = flows.iter().filter(|(object, fetched)| same(*object, *fetched)).count();
    let of_crowd = crowd.last()?.flows.first().map(bytes)?;
    Some(Measured {
        text: format!(
            "{exact} of {} objects are fetched once to the byte; 100 clients got {} each, of which \
             the origin sent {} in all",
            flows.len(),
            ByteCount::from_f64(of_crowd.0).decimal(),
            ByteCount::from_f64(of_crowd.1).decimal(),
        ),
        holds: exact == flows.len(),
    })
}

fn nothing(runs: &Runs<'_>) -> Option<Measured> {
    let of = |state| runs.valid("edge", &[("cache_state", state)]);
    let (warm, expired) = (of("warm"), of("expired"));
    if warm.is_empty() || expired.is_empty() {
        return None;
    }
    let flows = warm.iter().chain(&expired).filter_map(|run| run.flows.first());
    let fetched: Vec<f64> = flows.map(|flow| bytes(flow).1).collect();
    let none = fetched.iter().filter(|bytes| same(**bytes, 0.0)).count();
    Some(Measured {
        text: format!(
            "{none} of {} objects without a byte from the origin, {} in all",
            fetched.len(),
            ByteCount::from_f64(fetched.iter().sum()).decimal()
        ),
        holds: none == fetched.len(),
    })
}

fn gain(runs: &Runs<'_>) -> Option<Measured> {
    let sizes = runs.values("origin", "object");
    let gains: Option<Vec<(String, f64, f64)>> = sizes
        .iter()
        .map(|size| {
            let bits = runs.number("origin", "object", size)? * 8.0;
            let direct = bits / runs.goodput("origin", &[("object", size)])?;
            let warm = bits / runs.goodput("edge", &[("object", size), ("cache_state", "warm")])?;
            Some((size.clone(), direct, warm))
        })
        .collect();
    let gains = gains.filter(|gains| !gains.is_empty())?;
    let text: Vec<String> = gains
        .iter()
        .map(|(size, direct, warm)| {
            format!("{size}: {direct:.3} s and {warm:.3} s ({:.1} times)", direct / warm)
        })
        .collect();
    let factors: Vec<f64> = gains.iter().map(|(_, direct, warm)| direct / warm).collect();
    let least = factors.iter().copied().fold(f64::INFINITY, f64::min);
    Some(Measured {
        text: text.join("; "),
        holds: factors.first().is_some_and(|first| *first >= 10.0) && least > 1.0,
    })
}
