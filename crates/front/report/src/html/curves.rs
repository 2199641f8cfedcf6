//! The charts: throughput, bytes in flight, RTT.

use super::{
    Page, PageRun,
    chart::{Band, Chart, Curve, HALF, Mark, NARROW, Naks, SMALL, WIDE},
    header::capital,
    markup::Markup,
    path,
};
use crate::{
    axis::{Axis, DELAY, RATE, SIZE, readable},
    series::{self, Point, Source},
    timeline::Timeline,
};
use record::PathReport;
use units::{BitRate, ByteCount, Rtt};

/// Most rows of a chart's table; longer series are thinned out.
const MAX_ROWS: usize = 60;
/// Height of the axis over the largest value in flight; larger windows are clipped,
/// as they would flatten the curve.
const HEADROOM: f64 = 1.5;
/// A link rate or prediction further above the throughput is not drawn but marked with
/// an arrow, as it would flatten the curve.
const MAX_HEADROOM: f64 = 4.0;

/// The CSS class of a run's colour; a single run has the colour of "after".
pub(super) fn run_class(page: &Page<'_>, index: usize) -> String {
    format!("run-{}", if page.runs.len() == 1 { 1 } else { index % 4 })
}

fn until(page: &Page<'_>) -> f64 {
    page.runs.iter().map(|r| series::end_s(r.measurement)).fold(0.0, f64::max)
}

/// The limits over time of the only run: bands of several runs would cover each other.
fn only_segments(page: &Page<'_>) -> Option<Timeline> {
    match page.runs.as_slice() {
        [only] => Timeline::of(only.finding),
        _ => None,
    }
}

fn rates(run: &PageRun<'_>) -> Vec<(f64, f64)> {
    let bins = series::throughput(run.measurement).map_or(Vec::new(), |s| s.1);
    bins.iter().map(|b| (b.middle_s(), b.rate.as_f64())).collect()
}

/// The NAKs of a run, on its curve.
fn naks(run: &PageRun<'_>) -> impl Iterator<Item = Naks> {
    let bins = series::throughput(run.measurement).map_or(Vec::new(), |s| s.1);
    let counts = series::naks(run.measurement, &bins);
    let marked = bins.into_iter().zip(counts).filter(|(_, count)| *count > 0);
    marked.map(|(bin, count)| Naks { t_s: bin.middle_s(), value: bin.rate.as_f64(), count })
}

/// What was read of the file that is sent, if it is one.
fn disk(run: &PageRun<'_>) -> Option<Curve> {
    let bins = series::disk(run.measurement);
    let points: Vec<(f64, f64)> =
        bins.iter().map(|bin| (bin.middle_s(), bin.rate.as_f64())).collect();
    let name = format!("{} disk", run.label);
    (!points.is_empty()).then(|| Curve { name, class: "disk".to_owned(), points, filled: false })
}

fn sizes(points: Vec<Point<ByteCount>>) -> Vec<(f64, f64)> {
    points.into_iter().map(|p| (p.t_s, p.value.as_f64())).collect()
}

fn top(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|p| p.1).fold(0.0, f64::max)
}

/// All runs on one scale, with their predicted rates and the link rate.
pub(super) fn throughput(m: &mut Markup, page: &Page<'_>) {
    let link = path(page).and_then(|p| p.rate_bps);
    let mut curves = Vec::new();
    let mut marks: Vec<Mark> = link
        .iter()
        .map(|l| Mark {
            name: format!("link rate {l}"),
            class: "link".to_owned(),
            value: l.as_f64(),
        })
        .collect();
    let mut description = Vec::new();
    let mut received: Vec<Naks> = Vec::new();
    for (index, run) in page.runs.iter().enumerate() {
        let class = run_class(page, index);
        received.extend(naks(run));
        curves.extend(disk(run));
        let rate = run.finding.throughput_bps;
        curves.push(Curve {
            name: format!("{} {rate}", run.label),
            class: class.clone(),
            points: rates(run),
            filled: true,
        });
        let mut sentence = format!("{}: {rate}", capital(run.label));
        if let Some(predicted) = run.finding.predicted_bps {
            marks.push(Mark {
                name: format!("predicted {predicted}"),
                class,
                value: predicted.as_f64(),
            });
            sentence += &format!(" achieved, {predicted} predicted");
        }
        description.push(sentence);
    }
    description.extend(link.map(|l| format!("Link rate {l}")));
    let achieved = curves.iter().map(|c| top(&c.points)).fold(0.0, f64::max);
    let highest = marks.iter().map(|k| k.value).filter(|v| *v <= achieved * MAX_HEADROOM);
    let chart = Chart {
        id: "throughput".to_owned(),
        title: "Throughput over time".to_owned(),
        description: description.join(". ") + ".",
        y: Axis::over(highest.fold(achieved, f64::max) * 1.02, RATE, 6.0),
        until_s: until(page),
        curves,
        marks,
        naks: received,
        band: match page.runs.as_slice() {
            [only] => Some(Band::steady(only.finding.steady)),
            _ => None,
        },
        segments: only_segments(page),
    };
    section(m, "Throughput over time", &source_note(page), |m| {
        if chart.is_empty() {
            m.leaf("p", &[("class", &"empty")], &"No samples to plot.");
        } else {
            chart.figure(m, &[WIDE, NARROW], None);
        }
    });
}

fn source_note(page: &Page<'_>) -> String {
    let source = page.runs.iter().find_map(|r| series::throughput(r.measurement)).map(|s| s.0);
    let note = match source {
        Some(Source::Received) => "Bytes read by the receiving application, all streams.",
        Some(Source::Delivered) if path(page).is_some_and(PathReport::is_simulated) => {
            "Bytes that the sender knows to be delivered, all flows."
        }
        Some(Source::Delivered) => {
            "Bytes delivered according to the sender's TCP_INFO, or its UDT connection, all streams."
        }
        Some(Source::Acknowledged) => "Bytes acknowledged by the receiver, all streams.",
        None => return String::new(),
    };
    let reads = page.runs.iter().any(|run| !series::disk(run.measurement).is_empty());
    let disk = if reads { ", and the rate at which the file is read" } else { "" };
    format!("{note} Dashed: predicted rate{disk}.")
}

/// One of several runs on its own scale, for its card, with the steady state highlighted.
pub(super) fn own_scale(m: &mut Markup, page: &Page<'_>, index: usize, run: &PageRun<'_>) {
    if page.runs.len() == 1 {
        return;
    }
    let class = run_class(page, index);
    let points = rates(run);
    let predicted = run.finding.predicted_bps;
    let marks: Vec<Mark> = predicted
        .iter()
        .map(|p| Mark { name: format!("predicted {p}"), class: class.clone(), value: p.as_f64() })
        .collect();
    let highest = top(&points).max(predicted.unwrap_or(BitRate::ZERO).as_f64());
    let chart = Chart {
        id: format!("run{index}"),
        title: format!("Throughput of {} on its own scale", run.label),
        description: format!("{} in the steady state.", run.finding.throughput_bps),
        y: Axis::to(highest * 1.3, RATE, 4.0),
        until_s: until(page),
        curves: vec![Curve { name: String::new(), class, points, filled: true }],
        marks,
        naks: Vec::new(),
        band: Some(Band::steady(run.finding.steady)),
        segments: Timeline::of(run.finding),
    };
    if !chart.is_empty() {
        chart.figure(m, &[SMALL], None);
    }
}

/// Bytes in flight, compared with the BDP and the windows; one chart per run, all on
/// one scale.
pub(super) fn in_flight(m: &mut Markup, page: &Page<'_>) {
    let bdp = path(page).and_then(|p| Some(p.rate_bps?.bytes_in(p.rtt.duration())));
    let data: Vec<Vec<(f64, f64)>> =
        page.runs.iter().map(|r| sizes(series::in_flight(r.measurement))).collect();
    if data.iter().all(Vec::is_empty) {
        return;
    }
    let highest = data.iter().map(|d| top(d)).chain(bdp.map(ByteCount::as_f64)).fold(0.0, f64::max);
    let y = Axis::over(highest * HEADROOM, SIZE, 4.0);
    let note = "Bytes sent and not yet acknowledged. Filling the path takes one BDP (rate × RTT); \
                the congestion window (cwnd) and the receive window (rwnd) are upper bounds. An \
                arrow marks a value above the chart.";
    section(m, "Bytes in flight", note, |m| {
        m.element("div", &[("class", if page.runs.len() > 1 { &"pair" } else { &"alone" })], |m| {
            for (index, (run, flight)) in page.runs.iter().zip(data).enumerate() {
                let chart = flight_chart(page, index, run, flight, (y, bdp));
                let shapes: &[_] = if page.runs.len() > 1 { &[HALF] } else { &[WIDE, NARROW] };
                let caption = (page.runs.len() > 1).then(|| (run.label, run_class(page, index)));
                chart.figure(m, shapes, caption);
            }
        });
    });
}

fn flight_chart(
    page: &Page<'_>,
    index: usize,
    run: &PageRun<'_>,
    flight: Vec<(f64, f64)>,
    (y, bdp): (Axis, Option<ByteCount>),
) -> Chart {
    let named = |what: &str, points: &[(f64, f64)]| match points.last() {
        Some(last) => format!("{what} {}", readable(last.1, SIZE)),
        None => what.to_owned(),
    };
    let cwnd = sizes(series::congestion_window(run.measurement));
    let window = sizes(series::receive_window(run.measurement));
    let description = format!("At most {} in flight.", readable(top(&flight), SIZE));
    // The windows are dashed and drawn last: where one is the limit, it covers the curve.
    let curves = vec![
        Curve {
            name: named("in flight", &flight),
            class: run_class(page, index),
            points: flight,
            filled: true,
        },
        Curve { name: named("cwnd", &cwnd), class: "cwnd".to_owned(), points: cwnd, filled: false },
        Curve {
            name: named("rwnd", &window),
            class: "rwnd".to_owned(),
            points: window,
            filled: false,
        },
    ];
    let marks = bdp.map(|b| Mark {
        name: format!("BDP {}", readable(b.as_f64(), SIZE)),
        class: "link".to_owned(),
        value: b.as_f64(),
    });
    Chart {
        id: format!("flight{index}"),
        title: format!("Bytes in flight, {}", run.label),
        description,
        y,
        until_s: until(page),
        curves,
        marks: marks.into_iter().collect(),
        naks: Vec::new(),
        band: None,
        segments: Timeline::of(run.finding),
    }
}

/// The smoothed RTT, with the base RTT of the path.
pub(super) fn rtt(m: &mut Markup, page: &Page<'_>) {
    let mut curves = Vec::new();
    for (index, run) in page.runs.iter().enumerate() {
        let points: Vec<(f64, f64)> = series::rtt(run.measurement)
            .into_iter()
            .map(|p: Point<Rtt>| (p.t_s, p.value.secs_f64()))
            .collect();
        let name = match run.finding.loaded_rtt {
            Some(rtt) => format!("{} {rtt}", run.label),
            None => run.label.to_owned(),
        };
        curves.push(Curve { name, class: run_class(page, index), points, filled: false });
    }
    let configured = path(page).map(|p| p.rtt);
    let least = page.runs.iter().filter_map(|r| r.finding.min_rtt).min();
    let base = configured.map(|r| ("base RTT", r)).or(least.map(|r| ("min RTT", r)));
    let marks: Vec<Mark> = base
        .map(|(what, rtt)| Mark {
            name: format!("{what} {rtt}"),
            class: "link".to_owned(),
            value: rtt.secs_f64(),
        })
        .into_iter()
        .collect();
    let highest = curves.iter().map(|c| top(&c.points)).chain(marks.iter().map(|k| k.value));
    let chart = Chart {
        id: "rtt".to_owned(),
        title: "RTT over time".to_owned(),
        description: "Smoothed RTT (SRTT) of the sender's kernel.".to_owned(),
        y: Axis::over(highest.fold(0.0, f64::max) * 1.1, DELAY, 4.0),
        until_s: until(page),
        curves,
        marks,
        naks: Vec::new(),
        band: None,
        segments: only_segments(page),
    };
    if !chart.is_empty() {
        let note = "Smoothed RTT (SRTT) of the sender's kernel. The excess over the base RTT is \
                    queueing delay.";
        section(m, "RTT over time", note, |m| chart.figure(m, &[WIDE, NARROW], None));
    }
}

pub(super) fn section(m: &mut Markup, title: &str, note: &str, inside: impl FnOnce(&mut Markup)) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &title);
        if !note.is_empty() {
            m.leaf("p", &[("class", &"note")], &note);
        }
        inside(m);
    });
}

/// The chart's numbers, for readers and for machines that do not see it.
pub(super) fn table(m: &mut Markup, chart: &Chart) {
    let Some(longest) = chart.curves.iter().max_by_key(|c| c.points.len()) else { return };
    let every = longest.points.len().div_ceil(MAX_ROWS).max(1);
    let head = |curve: &Curve| {
        let name = if curve.name.is_empty() { "throughput" } else { &curve.name };
        format!("{name}, in {}", chart.y.unit)
    };
    let heads: Vec<_> =
        std::iter::once("s".to_owned()).chain(chart.curves.iter().map(head)).collect();
    let row = |(t_s, _): &(f64, f64)| {
        let value = |curve: &Curve| {
            let upto = curve.points.partition_point(|p| p.0 <= *t_s);
            let value = upto.checked_sub(1).and_then(|i| curve.points.get(i));
            value.map_or("–".to_owned(), |p| chart.y.number(p.1))
        };
        std::iter::once(format!("{t_s:.2}")).chain(chart.curves.iter().map(value)).collect()
    };
    let rows: Vec<_> = longest.points.iter().step_by(every).map(row).collect();
    m.values(&heads, &rows);
}
