//! The distribution of the bottleneck's queue.

use crate::axis::{MILLIS, SIZE, readable};
use crate::html::drawing::{Area, circle, polyline, text};
use crate::html::plot::{Chart, Range, Values, axis_titles, cdf, in_unit};
use model::statistics::percentile;
use record::SimMoment;

/// Shares that are marked on the curve.
const MARKED: [f64; 3] = [0.5, 0.95, 0.99];

/// `None` without an interval.
pub(super) fn draw(trace: &[SimMoment]) -> Option<Chart> {
    let times: Option<Vec<f64>> =
        trace.iter().map(|moment| Some(moment.queue_time?.as_secs_f64() * 1e3)).collect();
    let has_times = times.is_some();
    let bytes = || trace.iter().map(|moment| moment.queue_bytes as f64).collect();
    let mut values = times.unwrap_or_else(bytes);
    values.sort_by(f64::total_cmp);
    values.last()?;
    let (what, units) = if has_times { ("queueing delay", MILLIS) } else { ("queue", SIZE) };
    let across = Range::over(values.iter().copied().chain([0.0]), units, 6.0);
    let at = |share: f64| percentile(&values, share).unwrap_or_default();
    let shares = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];
    let table = Values {
        heads: vec!["share of the time at or below".to_owned(), what.to_owned()],
        rows: shares
            .map(|share| vec![format!("{:.0} %", share * 100.0), readable(at(share), units)])
            .into(),
    };
    let caption = format!("Cumulative distribution of the bottleneck's {what}");
    let chart = Chart::new(caption, table, |m, width| {
        let (left, right) = (width.of(72.0, 60.0), width.pixels() - width.of(40.0, 14.0));
        let area = Area { left, right, top: 30.0, bottom: width.of(310.0, 260.0) };
        let quarters = [0.0, 0.25, 0.5, 0.75, 1.0].into_iter();
        area.levels(m, quarters.map(|share| (share, format!("{:.0}", share * 100.0))));
        let ticks: Vec<_> = across.shares().collect();
        let every = ticks.len().div_ceil(width.of(12, 6)).max(1);
        for (share, label) in ticks.into_iter().step_by(every) {
            area.tick(m, area.x(share), &label);
        }
        axis_titles(m, &area, &in_unit(what, across.unit), "share of the time, %");
        let corners = cdf(&values);
        let start = [(0.0, 0.0)].into_iter();
        let corners = start.chain(corners);
        polyline(m, "curve all", corners.map(|(x, y)| (area.x(across.share(x)), area.y(y))));
        for share in MARKED {
            let (x, y) = (area.x(across.share(at(share))), area.y(share));
            circle(m, "point hollow all", (x, y), 4.5);
            let name = format!("p{:.0}: {}", share * 100.0, readable(at(share), units));
            let right = x < area.x(0.6);
            let (class, x) = if right { ("key", x + 10.0) } else { ("better", x - 10.0) };
            text(m, class, (x, y + if share > 0.97 { -4.0 } else { 14.0 }), &name);
        }
        area.bottom + 52.0
    });
    let note = match has_times {
        true => {
            "The queue at the end of every 100 ms, as the time in which the link sends it at its \
                 rate then."
        }
        false => "The queue at the end of every 100 ms.",
    };
    Some(chart.with_note(note.to_owned()))
}
