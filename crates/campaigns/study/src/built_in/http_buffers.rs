//! `http-buffers`: a download over 1 Gbit/s and 200 ms, with the client's buffer limits from
//! Ubuntu's defaults to 2 GB.

use super::runs::{Runs, mbit, near};
use super::{At, BuiltIn, Expected, INFERENCE, Measured, Published, StudyTestbed, Trend};
use crate::documents;
use model::statistics;
use record::{FlowFigures, Limit};
use units::{BitRate, ByteCount, percent};

pub(super) const STUDY: BuiltIn = BuiltIn {
    name: "http-buffers",
    document: &documents::HTTP_DOWNLOADS,
    question: "What do a client's TCP buffer limits give an HTTP download at 200 ms?",
    testbed: StudyTestbed::Lab,
    parts: &[("buffers", include_str!("../../plans/http-buffers/buffers.toml"))],
    trends: &[
        Trend {
            name: "window-over-rtt",
            published: Published::Stated(
                "throughput is buffer over latency: 600000 B * (1/0.2 s), \"~3 MB/s, ~50 \
                 Mbit/s\", for a buffer of 6 MB",
                &[
                    At(20, "latency", ""),
                    At(35, "600000", ""),
                    At(35, "1/0.2", ""),
                    At(35, "3", "MB/s"),
                    At(35, "50", "Mbps"),
                    At(34, "6", "MB"),
                ],
            ),
            expected: Expected::By {
                text: "ten times 600000 is 6 MB, and 3 MB/s are 24 Mbit/s; 6291456 B x 5/s \
                       are 252 Mbit/s",
                source: INFERENCE,
            },
            parts: &["buffers"],
            measure: window_over_rtt,
        },
        Trend {
            name: "gain",
            published: Published::Stated(
                "up to 21 MB/s, over 6 times the 3 to 4 MB/s of the defaults",
                &[At(75, "21", "MB/s"), At(75, "6", "x"), At(75, "3", ""), At(75, "4", "MB/s")],
            ),
            expected: Expected::By {
                text: "21 MB/s are 168 Mbit/s; an emulated link of 1 Gbit/s carries more",
                source: INFERENCE,
            },
            parts: &["buffers"],
            measure: gain,
        },
        Trend {
            name: "plateau",
            published: Published::Stated(
                "no further gain above 64 MB, probably for a limit of a server or of the \
                 network",
                &[At(75, "64", "MB"), At(75, "no further gain", "")],
            ),
            expected: Expected::Nothing,
            parts: &["buffers"],
            measure: plateau,
        },
        Trend {
            name: "at-once",
            published: Published::Stated(
                "four minutes between setting the sysctls and each test, for the settings to apply \
                 (240 s in the script)",
                &[At(69, "four minute", ""), At(69, "properly apply", ""), At(51, "240", "")],
            ),
            expected: Expected::By {
                text: "a connection has the limits that are set when it is opened, so that none of \
                       these minutes is needed",
                source: "Linux, Documentation/networking/ip-sysctl.rst: tcp_rmem and tcp_wmem are \
                         the sizes of the buffers of TCP sockets",
            },
            parts: &["buffers"],
            measure: at_once,
        },
        Trend {
            name: "predicted",
            published: Published::Stated(
                "the maximum throughput is the buffer size over the latency; both hosts have links \
                 of 1 Gbit/s",
                &[
                    At(18, "maximum achievable throughput", ""),
                    At(20, "buffer size", ""),
                    At(39, "1", "Gbps"),
                ],
            ),
            expected: Expected::By {
                text: "the least of the link's payload rate and of what is advertised of the limit, \
                       over the RTT",
                source: INFERENCE,
            },
            parts: &["buffers"],
            measure: predicted,
        },
    ],
};

const FACTOR: &str = "client.net.ipv4.tcp_rmem";

/// The payload rate of the link with segments of 1448 bytes, in bit/s.
const LINK_BPS: f64 = 1e9 * 1448.0 / 1500.0;

/// Windows over RTT up to this share of the link are before the plateau.
const BEFORE: f64 = 0.9;

/// How near a steady rate is to its window over its RTT.
const NEAR: f64 = 0.10;

/// How near the advertised shares of all limits are to their mean.
const SAME_SHARE: f64 = 0.05;

/// A rate that is this near to the next is on the plateau with it.
const FLAT: f64 = 0.05;

/// The means of one buffer limit's runs.
struct Point {
    /// As in the plan.
    buffer: String,
    /// The third number: the limit, in bytes.
    limit: f64,
    /// In bit/s.
    steady: f64,
    /// In bytes, as advertised.
    window: f64,
    /// In seconds.
    rtt: f64,
    /// In bit/s.
    predicted: Option<f64>,
    named: Option<Limit>,
}

impl Point {
    fn window_over_rtt(&self) -> f64 {
        self.window * 8.0 / self.rtt
    }
}

/// In the order of the plan; `None` if one has no valid run.
fn points(runs: &Runs<'_>) -> Option<Vec<Point>> {
    let point = |buffer: String| {
        let of = |figure: fn(&FlowFigures) -> Option<f64>| {
            let values = [(FACTOR, buffer.as_str())];
            runs.mean("buffers", &values, |run| figure(run.flows.first()?))
        };
        let valid = runs.valid("buffers", &[(FACTOR, buffer.as_str())]);
        Some(Point {
            limit: buffer.split(' ').next_back()?.parse().ok()?,
            steady: of(|flow| flow.steady_bps)?,
            window: of(|flow| flow.window_bytes.map(|bytes| bytes as f64))?,
            rtt: of(|flow| flow.mean_rtt_ms)? / 1e3,
            predicted: valid
                .first()
                .and_then(|run| runs.prediction("buffers", run))
                .map(BitRate::as_f64),
            named: valid.first().and_then(|run| run.flows.first()?.limit),
            buffer,
        })
    };
    let points: Option<Vec<Point>> =
        runs.values("buffers", FACTOR).into_iter().map(point).collect();
    points.filter(|points| points.len() > 1)
}

/// Below the plateau each steady rate is the advertised window over the RTT.
fn window_over_rtt(runs: &Runs<'_>) -> Option<Measured> {
    let points = points(runs)?;
    let below: Vec<&Point> =
        points.iter().filter(|point| point.window_over_rtt() < BEFORE * LINK_BPS).collect();
    let ratios: Vec<f64> =
        below.iter().map(|point| point.steady / point.window_over_rtt()).collect();
    let worst =
        ratios.iter().copied().max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs()))?;
    let shares: Vec<f64> = below.iter().map(|point| point.window / point.limit).collect();
    let first = below.first()?;
    Some(Measured {
        text: format!(
            "{} sizes below the plateau: each within {:.1} % of the advertised window over the \
             RTT, {} of the limit; {} advertised of {} give {}",
            below.len(),
            (worst - 1.0).abs() * 100.0,
            percent(statistics::mean(&shares)?),
            ByteCount::from_f64(first.window).decimal(),
            ByteCount::from_f64(first.limit).decimal(),
            mbit(first.steady)
        ),
        holds: below.len() >= 2 && near(worst, 1.0, NEAR),
    })
}

/// The first connection after a limit was set has it: the lab of each test is made for it, its
/// sysctls are set, and the download begins.
fn at_once(runs: &Runs<'_>) -> Option<Measured> {
    let points = points(runs)?;
    let below: Vec<&Point> =
        points.iter().filter(|point| point.window_over_rtt() < BEFORE * LINK_BPS).collect();
    let shares: Vec<f64> = below.iter().map(|point| point.window / point.limit).collect();
    let mean = statistics::mean(&shares)?;
    let windows: Vec<String> =
        below.iter().map(|point| ByteCount::from_f64(point.window).decimal()).collect();
    Some(Measured {
        text: format!(
            "each download began as soon as its limits were set, and advertised {}: {} of its limit \
             in the mean. Sysctls apply to the next connection at once",
            windows.join(", "),
            percent(mean)
        ),
        holds: below.len() >= 2 && shares.iter().all(|share| near(*share, mean, SAME_SHARE)),
    })
}

/// Steady rates over what the limits and the link predict.
fn predicted(runs: &Runs<'_>) -> Option<Measured> {
    let points = points(runs)?;
    let ratios: Option<Vec<f64>> =
        points.iter().map(|point| Some(point.steady / point.predicted?)).collect();
    let ratios = ratios?;
    let within = ratios.iter().filter(|ratio| near(**ratio, 1.0, NEAR)).count();
    let first = points.first()?;
    Some(Measured {
        text: format!(
            "{within} of {} sizes are within {} of the least of the link's payload rate and the \
             advertised {} of the limit over the RTT: {} for {} where {} are predicted",
            ratios.len(),
            percent(NEAR),
            percent(model::STEADY_WINDOW_SHARE),
            mbit(first.steady),
            ByteCount::from_f64(first.limit).decimal(),
            mbit(first.predicted?)
        ),
        holds: within == ratios.len(),
    })
}

/// The best steady rate is several times that of the defaults.
fn gain(runs: &Runs<'_>) -> Option<Measured> {
    let points = points(runs)?;
    let default = points.first()?;
    let best = points.iter().max_by(|a, b| a.steady.total_cmp(&b.steady))?;
    let gain = best.steady / default.steady;
    Some(Measured {
        text: format!(
            "{} by default ({}), {} at best ({}): {gain:.1} times. The default's window allows \
             {}, of which the published path gave 24 to 32 Mbit/s; the best is the link's rate, \
             of which it gave 168 Mbit/s",
            mbit(default.steady),
            default.buffer,
            mbit(best.steady),
            best.buffer,
            mbit(default.window_over_rtt())
        ),
        // At least half of the published one: it depends on where the link ends it.
        holds: gain >= 3.0 && default.named == Some(Limit::ReceiveWindow),
    })
}

/// Rates rise with the buffer up to a plateau, which the path's rate makes.
fn plateau(runs: &Runs<'_>) -> Option<Measured> {
    let points = points(runs)?;
    let last = points.last()?;
    let flat = |point: &&Point| near(point.steady, last.steady, FLAT);
    let first = points.iter().position(|point| flat(&point))?;
    let rises = points[..=first].windows(2).all(|pair| pair[0].steady < pair[1].steady);
    let stays = points[first..].iter().all(|point| flat(&point));
    Some(Measured {
        text: format!(
            "from {} on {}, {} of the link's payload rate; limited by: {}",
            ByteCount::from_f64(points[first].limit).decimal(),
            mbit(last.steady),
            percent(last.steady / LINK_BPS),
            last.named.map_or("no limit named", Limit::name)
        ),
        holds: first > 0
            && first + 1 < points.len()
            && rises
            && stays
            && last.named == Some(Limit::PathRate),
    })
}
