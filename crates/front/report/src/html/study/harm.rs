//! The harm that each congestion control does to each other one (Ware, Mukerjee, Seshan and Sherry
//! 2019, section 4): the share of its solo goodput that a flow loses beside a flow of the other.

use super::heatmap::field;
use crate::html::drawing::{Area, text, turned};
use crate::html::plot::{Chart, Values};
use model::statistics;
use record::{RunStatus, StudyCell, StudyPart, StudyReport, StudyRun};
use std::collections::HashMap;

const ROW: f64 = 26.0;
const TOP: f64 = 30.0;

/// What is compared: the name of a flow's setting.
const CONTROL: &str = "congestion";

/// Settings of a path that must be the same alone and beside another flow.
const PATH: [&str; 3] = ["rate", "rtt", "queue"];
const LOSS: [&str; 2] = ["loss", "up.loss"];

/// The matrix of a part whose two flows have each control, if another part has each control alone
/// over the same path.
pub(super) fn draw(
    report: &StudyReport,
    runs: &[Vec<StudyRun>],
    part: &StudyPart,
    own: &[StudyRun],
) -> Option<Chart> {
    let flows = two_flows(part)?;
    let beside = beside(part, own, &flows);
    let mut controls: Vec<&str> = Vec::new();
    for value in flows.iter().flat_map(|flow| &part.plan.factors[flow.factor].values) {
        if !controls.contains(&value.as_str()) {
            controls.push(value);
        }
    }
    let solo = solo(report, runs, part);
    let harm = |victim: &str, other: &str| {
        let alone = solo.get(victim).copied().filter(|rate| *rate > 0.0)?;
        let with = statistics::mean(beside.get(&(victim, other))?)?;
        Some(((alone - with) / alone).clamp(0.0, 1.0))
    };
    let (all, of) = (&controls, &harm);
    let all = all.iter().flat_map(|one| all.iter().map(move |other| of(one, other)));
    if !all.flatten().any(f64::is_finite) {
        return None;
    }
    let shown =
        |harm: Option<f64>| harm.map_or("–".to_owned(), |harm| format!("{:.0}", harm * 100.0));
    let row = |victim: &&str| {
        let cells = controls.iter().map(|other| shown(harm(victim, other)));
        std::iter::once((*victim).to_owned()).chain(cells).collect()
    };
    let heads = std::iter::once("harm in % to, by".to_owned());
    let heads = heads.chain(controls.iter().map(|one| (*one).to_owned())).collect();
    let values = Values { heads, rows: controls.iter().map(row).collect() };
    let caption = "Harm of each control to each, in % of its solo goodput".to_owned();
    let chart = Chart::new(caption, values, |m, width| {
        let height = controls.len() as f64 * ROW;
        let (left, right) = (width.of(110.0, 72.0), width.pixels() - width.of(20.0, 2.0));
        let area = Area { left, right, top: TOP, bottom: TOP + height };
        let wide = (area.right - area.left) / controls.len().max(1) as f64;
        text(m, "axis-up", (width.of(44.0, 4.0), TOP - 12.0), "harmed ↓, by → (numbers: %)");
        for (row, victim) in controls.iter().enumerate() {
            let y = area.top + row as f64 * ROW;
            text(m, "row", (area.left - 8.0, y + ROW / 2.0 + 4.0), victim);
            for (column, other) in controls.iter().enumerate() {
                let Some(harm) = harm(victim, other) else { continue };
                let at = (area.left + column as f64 * wide, y);
                field(m, at, (wide, ROW), harm, Some(shown(Some(harm))));
            }
        }
        for (column, other) in controls.iter().enumerate() {
            let x = area.left + (column as f64 + 0.5) * wide;
            turned(m, "row", (x + 4.0, area.bottom + 8.0), other);
        }
        area.bottom + 84.0
    });
    Some(chart.with_note(
        "Each row is the control of the flow that loses, each column that of the flow beside it: 0 is \
         no harm, 50 what an equal share costs of a link that it would fill alone. Means of the valid \
         runs, whichever of the two flows started first; solo goodput is that of the same path without \
         loss.",
    ))
}

/// The setting of one of the two flows.
struct VariedFlow<'a> {
    name: &'a str,
    /// The index of its factor.
    factor: usize,
}

/// Both flows of a part that varies the control of each, and nothing else.
fn two_flows(part: &StudyPart) -> Option<[VariedFlow<'_>; 2]> {
    let factors = part.plan.factors.iter().enumerate();
    let flows = factors.map(|(factor, one)| {
        let name = one.name.strip_suffix(CONTROL)?.strip_suffix('.')?;
        Some(VariedFlow { name, factor })
    });
    let flows: Option<Vec<VariedFlow<'_>>> = flows.collect();
    flows?.try_into().ok()
}

/// The goodputs of a control's flow beside a flow of another: by (its own, the other).
fn beside<'a>(
    part: &'a StudyPart,
    runs: &[StudyRun],
    [one, other]: &[VariedFlow<'_>; 2],
) -> HashMap<(&'a str, &'a str), Vec<f64>> {
    let mut all: HashMap<(&str, &str), Vec<f64>> = HashMap::new();
    for run in runs.iter().filter(|run| run.status == RunStatus::Valid) {
        let Some(cell) = part.cells.get(run.cell) else { continue };
        for (own, beside) in [(one, other), (other, one)] {
            let control = |flow: &VariedFlow<'_>| cell.values.get(flow.factor).map(String::as_str);
            if let (Some(first), Some(second), Some(flow)) =
                (control(own), control(beside), run.flow(own.name))
            {
                all.entry((first, second)).or_default().push(flow.throughput_bps);
            }
        }
    }
    all
}

/// A setting of a cell: as it varies, or as it is fixed.
fn setting<'a>(part: &'a StudyPart, cell: &'a StudyCell, name: &str) -> Option<&'a str> {
    let varied = part.plan.factors.iter().position(|factor| factor.name == name);
    match varied {
        Some(at) => cell.values.get(at).map(String::as_str),
        None => {
            let fixed = part.plan.fixed.iter().find(|fixed| fixed.name == name)?;
            fixed.values.first().map(String::as_str)
        }
    }
}

fn is_without_loss(part: &StudyPart, cell: &StudyCell) -> bool {
    LOSS.into_iter().all(|name| {
        let loss = setting(part, cell, name).unwrap_or("0");
        loss.trim_end_matches('%').trim().parse() == Ok(0.0)
    })
}

/// The mean goodput of each control alone, over the path of a part and without loss.
fn solo(report: &StudyReport, runs: &[Vec<StudyRun>], part: &StudyPart) -> HashMap<String, f64> {
    let mut solo = HashMap::new();
    let Some(like) = part.cells.first() else { return solo };
    for (other, runs) in report.parts.iter().zip(runs) {
        let is_alone = |run: &&StudyRun| run.status == RunStatus::Valid && run.flows.len() == 1;
        for cell in &other.cells {
            let same = |name| setting(other, cell, name) == setting(part, like, name);
            let Some(control) = setting(other, cell, CONTROL) else { continue };
            if !PATH.into_iter().all(same) || !is_without_loss(other, cell) {
                continue;
            }
            let own = runs.iter().filter(|run| run.cell == cell.cell).filter(is_alone);
            let rates: Vec<f64> = own.map(StudyRun::throughput_bps).collect();
            if let Some(mean) = statistics::mean(&rates) {
                solo.insert(control.to_owned(), mean);
            }
        }
    }
    solo
}
