//! Which curves are drawn: throughput, data in flight, round trip.

use super::{
    Page, Run,
    chart::{Band, Chart, Curve, HALF, Mark, NARROW, SMALL, WIDE},
    head::capital,
    markup::Markup,
    path,
};
use crate::{
    axis::{Axis, DELAY, RATE, SIZE, said},
    series::{self, Point, Source},
};
use units::{BitRate, ByteCount, Rtt};

/// More rows than this are for a file, not for a page.
const MOST_ROWS: usize = 60;
/// Windows that reach further above the data than this are cut, or the data would lie flat.
const HEADROOM: f64 = 1.5;

/// The style class of a run's colour; one alone wears that of a result.
pub(super) fn run_class(page: &Page<'_>, index: usize) -> String {
    format!("run-{}", if page.runs.len() == 1 { 1 } else { index % 4 })
}

fn until(page: &Page<'_>) -> f64 {
    page.runs.iter().map(|r| series::end_s(r.measurement)).fold(0.0, f64::max)
}

fn rates(run: &Run<'_>) -> Vec<(f64, f64)> {
    let bins = series::throughput(run.measurement).map_or(Vec::new(), |s| s.1);
    bins.iter().map(|b| (b.middle_s(), b.rate.as_f64())).collect()
}

fn sizes(points: Vec<Point<ByteCount>>) -> Vec<(f64, f64)> {
    points.into_iter().map(|p| (p.t_s, p.value.as_f64())).collect()
}

fn top(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|p| p.1).fold(0.0, f64::max)
}

/// All runs on one scale, with what was predicted for each, and the link.
pub(super) fn throughput(m: &mut Markup, page: &Page<'_>) {
    let link = path(page).and_then(|p| p.rate_bps);
    let mut curves = Vec::new();
    let mut marks: Vec<Mark> = link
        .iter()
        .map(|l| Mark { name: format!("link {l}"), class: "link".to_owned(), value: l.as_f64() })
        .collect();
    let mut says = Vec::new();
    for (index, run) in page.runs.iter().enumerate() {
        let class = run_class(page, index);
        let rate = run.finding.throughput_bps;
        curves.push(Curve {
            name: format!("{} {rate}", run.label),
            class: class.clone(),
            points: rates(run),
            filled: true,
        });
        let mut said = format!("{}: {rate}", capital(run.label));
        if let Some(predicted) = run.finding.predicted_bps {
            marks.push(Mark {
                name: format!("predicted {predicted}"),
                class,
                value: predicted.as_f64(),
            });
            said += &format!(" achieved, {predicted} predicted");
        }
        says.push(said);
    }
    says.extend(link.map(|l| format!("The link carries {l}")));
    let highest = curves.iter().map(|c| top(&c.points)).chain(marks.iter().map(|k| k.value));
    let chart = Chart {
        id: "throughput".to_owned(),
        title: "Throughput over time".to_owned(),
        says: says.join(". ") + ".",
        y: Axis::over(highest.fold(0.0, f64::max) * 1.02, RATE, 6.0),
        until_s: until(page),
        curves,
        marks,
        band: match page.runs.as_slice() {
            [only] => Some(Band::steady(only.finding.steady)),
            _ => None,
        },
    };
    section(m, "Throughput over time", &source_note(page), |m| {
        if chart.is_empty() {
            m.leaf("p", &[("class", &"empty")], &"No samples were taken, so there is no curve.");
        } else {
            chart.figure(m, &[WIDE, NARROW], None);
        }
    });
}

fn source_note(page: &Page<'_>) -> String {
    let source = page.runs.iter().find_map(|r| series::throughput(r.measurement)).map(|s| s.0);
    match source {
        Some(Source::Received) => "What the receiving program read, all streams together. \
                                   Dashed: what the equation predicts."
            .to_owned(),
        Some(Source::Delivered) => "What the sending kernel knows to have arrived, all streams \
                                    together. Dashed: what the equation predicts."
            .to_owned(),
        Some(Source::Acknowledged) => "What the receiver acknowledged, all streams together. \
                                       Dashed: what the equation predicts."
            .to_owned(),
        None => String::new(),
    }
}

/// One run of several on its own scale, for its card; the part the verdict speaks of is set off.
pub(super) fn own_scale(m: &mut Markup, page: &Page<'_>, index: usize, run: &Run<'_>) {
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
        says: format!("{} over the steady part.", run.finding.throughput_bps),
        y: Axis::to(highest * 1.3, RATE, 4.0),
        until_s: until(page),
        curves: vec![Curve { name: String::new(), class, points, filled: true }],
        marks,
        band: Some(Band::steady(run.finding.steady)),
    };
    if !chart.is_empty() {
        chart.figure(m, &[SMALL], None);
    }
}

/// What was in flight, against what the path holds and what the windows allowed;
/// one chart a run, all on one scale.
pub(super) fn in_flight(m: &mut Markup, page: &Page<'_>) {
    let bdp = path(page).and_then(|p| Some(p.rate_bps?.bytes_in(p.rtt.duration())));
    let data: Vec<Vec<(f64, f64)>> =
        page.runs.iter().map(|r| sizes(series::in_flight(r.measurement))).collect();
    if data.iter().all(Vec::is_empty) {
        return;
    }
    let highest = data.iter().map(|d| top(d)).chain(bdp.map(ByteCount::as_f64)).fold(0.0, f64::max);
    let y = Axis::over(highest * HEADROOM, SIZE, 4.0);
    let note = "Bytes sent and not yet acknowledged. To fill the path, they must reach rate × \
                round trip; the congestion window and the receiver's window both hold them down. \
                An arrow marks what lies above the chart.";
    section(m, "Data in flight", note, |m| {
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
    run: &Run<'_>,
    flight: Vec<(f64, f64)>,
    (y, bdp): (Axis, Option<ByteCount>),
) -> Chart {
    let named = |what: &str, points: &[(f64, f64)]| match points.last() {
        Some(last) => format!("{what} {}", said(last.1, SIZE)),
        None => what.to_owned(),
    };
    let cwnd = sizes(series::congestion_window(run.measurement));
    let window = sizes(series::receive_window(run.measurement));
    let says = format!("At most {} in flight.", said(top(&flight), SIZE));
    // The windows are dashed and drawn last: where they hold the data down they lie on it.
    let curves = vec![
        Curve {
            name: named("in flight", &flight),
            class: run_class(page, index),
            points: flight,
            filled: true,
        },
        Curve {
            name: named("congestion window", &cwnd),
            class: "cwnd".to_owned(),
            points: cwnd,
            filled: false,
        },
        Curve {
            name: named("receiver's window", &window),
            class: "rwnd".to_owned(),
            points: window,
            filled: false,
        },
    ];
    let marks = bdp.map(|b| Mark {
        name: format!("rate × round trip {}", said(b.as_f64(), SIZE)),
        class: "link".to_owned(),
        value: b.as_f64(),
    });
    Chart {
        id: format!("flight{index}"),
        title: format!("Data in flight, {}", run.label),
        says,
        y,
        until_s: until(page),
        curves,
        marks: marks.into_iter().collect(),
        band: None,
    }
}

/// The round trip: what stands above the path's own is queueing.
pub(super) fn round_trip(m: &mut Markup, page: &Page<'_>) {
    let mut curves = Vec::new();
    for (index, run) in page.runs.iter().enumerate() {
        let points: Vec<(f64, f64)> = series::round_trip(run.measurement)
            .into_iter()
            .map(|p: Point<Rtt>| (p.t_s, p.value.secs_f64()))
            .collect();
        let name = match run.finding.loaded_rtt {
            Some(rtt) => format!("{} {rtt}", run.label),
            None => run.label.to_owned(),
        };
        curves.push(Curve { name, class: run_class(page, index), points, filled: false });
    }
    let own = path(page).map(|p| p.rtt);
    let least = page.runs.iter().filter_map(|r| r.finding.min_rtt).min();
    let base = own.map(|r| ("the path's own", r)).or(least.map(|r| ("least seen", r)));
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
        title: "Round trip over time".to_owned(),
        says: "Smoothed round trip as the sending kernel saw it.".to_owned(),
        y: Axis::over(highest.fold(0.0, f64::max) * 1.1, DELAY, 4.0),
        until_s: until(page),
        curves,
        marks,
        band: None,
    };
    if !chart.is_empty() {
        let note = "Smoothed, as the sending kernel saw it. What stands above the path's own \
                    round trip is time spent in queues.";
        section(m, "Round trip over time", note, |m| chart.figure(m, &[WIDE, NARROW], None));
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
    let every = longest.points.len().div_ceil(MOST_ROWS).max(1);
    m.element("details", &[], |m| {
        m.leaf("summary", &[], &"Figures");
        m.element("div", &[("class", &"scroll")], |m| {
            m.element("table", &[("class", &"figures")], |m| {
                m.element("tr", &[], |m| {
                    m.leaf("th", &[("scope", &"col")], &"s");
                    for curve in &chart.curves {
                        let name = if curve.name.is_empty() { "throughput" } else { &curve.name };
                        let head = format!("{name}, in {}", chart.y.unit);
                        m.leaf("th", &[("scope", &"col")], &head);
                    }
                });
                for (t_s, _) in longest.points.iter().step_by(every) {
                    m.element("tr", &[], |m| {
                        m.leaf("th", &[("scope", &"row")], &format!("{t_s:.2}"));
                        for curve in &chart.curves {
                            let upto = curve.points.partition_point(|p| p.0 <= *t_s);
                            let value = upto.checked_sub(1).and_then(|i| curve.points.get(i));
                            let text = value.map_or("–".to_owned(), |p| chart.y.number(p.1));
                            m.leaf("td", &[], &text);
                        }
                    });
                }
            });
        });
    });
}
