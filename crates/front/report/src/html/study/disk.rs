//! The rates of disk and network over time, for the cells that send a file: a
//! disk-limited flow has peaks, and troughs in which it waits for the disk.

use crate::axis::{Axis, ELAPSED, RATE};
use crate::html::drawing::polyline;
use crate::html::labels::{self, Label};
use crate::html::plot::{Chart, Scale, Values, Width, area, grid, steps};
use crate::wording;
use record::{FlowFigures, Limit, RunStatus, StudyPart, StudyRun};

const BOTTOM: f64 = 290.0;

/// Flows that are told apart.
const MAX: usize = 4;

/// Steps of a drawing: of a longer run the first ones.
const MAX_STEPS: usize = 600;

/// A flow that sends a file.
struct Sender<'a> {
    name: String,
    flow: &'a FlowFigures,
}

/// The flows of the first valid run of each cell that send a file, in one chart; `None` without.
pub(super) fn draw(part: &StudyPart, runs: &[StudyRun]) -> Option<Chart> {
    let senders = senders(part, runs);
    let series =
        || senders.iter().flat_map(|one| [&one.flow.series_bps, &one.flow.disk_series_bps]);
    let seconds = series().map(Vec::len).max()?.clamp(1, MAX_STEPS);
    let most = series().flatten().copied().fold(0.0, f64::max);
    let up = Scale::Linear(Axis::over(most, RATE, 5.0));
    let columns = senders.iter().flat_map(|one| {
        let column = |what, series: &[f64]| {
            (format!("{}, {what}", one.name), series.iter().copied().take(seconds).collect())
        };
        let (network, disk) = (&one.flow.series_bps, &one.flow.disk_series_bps);
        [column("network", network), column("disk", disk)]
    });
    let values = Values::over_time(&columns.collect::<Vec<_>>(), 1);
    let caption = "Disk and network over time of flows that send a file".to_owned();
    let chart = Chart::new(caption, values, |m, width| {
        let area = area(width, BOTTOM);
        let across = Axis::to(seconds as f64, ELAPSED, width.of(8.0, 4.0));
        grid(m, &up, &area);
        area.seconds(m, &across);
        let place = |(step, value): (usize, f64)| {
            (area.x(across.share(step as f64)), area.y(up.share(value)))
        };
        let mut names = Vec::new();
        for (index, one) in senders.iter().enumerate() {
            let class = format!("q-{index}");
            let curves = [
                ("curve", "network", &one.flow.series_bps),
                ("predicted", "disk", &one.flow.disk_series_bps),
            ];
            for (kind, what, series) in curves {
                let series = &series[..series.len().min(seconds)];
                polyline(m, &format!("{kind} {class}"), steps(series).map(place));
                let end = series.last().map(|last| place((0, *last)).1);
                let text = format!("{}, {what}", one.name);
                names.extend(end.map(|from| Label { text, class: class.clone(), from }));
            }
        }
        labels::write(m, names, &area, width == Width::Wide);
        area.bottom + 50.0
    });
    let limits = senders.iter().map(|one| {
        let disk = one.flow.disk_bps.map(wording::bps).unwrap_or_default();
        let is_limit = one.flow.limit == Some(Limit::Application);
        let limited = if is_limit { "disk-limited" } else { "not disk-limited" };
        let rate = wording::bps(one.flow.throughput_bps);
        format!("{}: {rate}, {limited} (the disk gave {disk}).", one.name)
    });
    let note = format!(
        "Goodput per second, and the rate at which the file was read (dashed). {}",
        limits.collect::<Vec<_>>().join(" ")
    );
    Some(chart.with_note(note))
}

fn senders<'a>(part: &StudyPart, runs: &'a [StudyRun]) -> Vec<Sender<'a>> {
    let mut found: Vec<Sender<'a>> = Vec::new();
    let mut cells: Vec<usize> = Vec::new();
    for run in runs.iter().filter(|run| run.status == RunStatus::Valid) {
        if run.cell >= part.cells.len() || cells.contains(&run.cell) {
            continue;
        }
        cells.push(run.cell);
        for flow in run.flows.iter().filter(|flow| !flow.disk_series_bps.is_empty()) {
            let mut words = values(part, run.cell);
            words.extend((run.flows.len() > 1).then(|| flow.name.clone()));
            let name = if words.is_empty() { part.name.clone() } else { words.join(" ") };
            found.push(Sender { name, flow });
        }
    }
    found.truncate(MAX);
    found
}

/// The values of a cell's factors, but for what is sent: a file.
fn values(part: &StudyPart, cell: usize) -> Vec<String> {
    let Some(cell) = part.cells.get(cell) else { return Vec::new() };
    let pairs = part.plan.factors.iter().zip(&cell.values);
    let others = pairs.filter(|(factor, _)| factor.name != "source" && factor.values.len() > 1);
    others.map(|(_, value)| value.clone()).collect()
}
