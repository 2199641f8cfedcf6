//! Distributions of the runs: boxes with quartiles, and cumulative distributions.

use super::figure::{self, Shown};
use crate::html::drawing::{Area, circle, line, polyline, rect, text};
use crate::html::labels::{self, Label};
use crate::html::markup::Markup;
use crate::html::plot::{Chart, Scale, Values, Width, area, cdf, grid};
use model::statistics;
use record::{StudyPart, StudyPlot, StudyRun};
use std::collections::BTreeMap;

const BOTTOM: f64 = 350.0;

/// Groups that are drawn; of more, the first.
const MAX_BOXES: usize = 24;
const MAX_CURVES: usize = 8;

/// Beyond so many interquartile ranges from the box a value is an outlier (Tukey 1977).
const WHISKER: f64 = 1.5;

/// The values of the runs, by the values of a factor in the order of the plan.
type Groups = Vec<(String, Vec<f64>)>;

fn groups(part: &StudyPart, runs: &[StudyRun], plot: &StudyPlot, by: Option<&String>) -> Groups {
    let factor = by.and_then(|name| part.plan.factors.iter().position(|f| f.name == *name));
    let of_cells = figure::values(part, plot, runs);
    let Some(at) = factor else {
        return vec![("all runs".to_owned(), of_cells.into_values().flatten().collect())];
    };
    let mut by_value: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for cell in &part.cells {
        let value = cell.values.get(at).map_or("", String::as_str);
        by_value.entry(value).or_default().extend(of_cells.get(&cell.cell).into_iter().flatten());
    }
    let factor = &part.plan.factors[at];
    let group = |value: &String| {
        let values = by_value.remove(value.as_str()).unwrap_or_default();
        (format!("{}={value}", factor.name), values)
    };
    let groups = factor.values.iter().map(group);
    groups.filter(|(_, values)| !values.is_empty()).collect()
}

fn by_name(groups: &Groups) -> impl Iterator<Item = (&str, &[f64])> {
    groups.iter().map(|(name, values)| (name.as_str(), values.as_slice()))
}

/// A box for each value of a factor.
pub(super) fn boxes(part: &StudyPart, runs: &[StudyRun], plot: &StudyPlot) -> Chart {
    let mut groups = groups(part, runs, plot, plot.x.as_ref());
    groups.truncate(MAX_BOXES);
    let shown = Shown::of(plot);
    let caption = match &plot.x {
        Some(x) => format!("{} of the runs, by {x}", shown.title),
        None => format!("{} of the runs", shown.title),
    };
    let up = Scale::of_values(groups.iter().flat_map(|group| group.1.iter().copied()), shown.units);
    let caption = shown.prefix.clone() + &caption;
    let table = Values::of_groups(by_name(&groups), shown.units);
    let chart = Chart::new(caption, table, |m, width| {
        let area = area(width, BOTTOM);
        grid(m, &up, &area);
        let wide = (area.right - area.left) / groups.len().max(1) as f64;
        let every = groups.len().div_ceil(width.of(MAX_BOXES, 5)).max(1);
        for (at, (name, values)) in groups.iter().enumerate() {
            let middle = area.left + (at as f64 + 0.5) * wide;
            one_box(m, values, middle, (wide * 0.5).min(60.0), |value| area.y(up.share(value)));
            // The factor's name is in the caption.
            let label = name.split_once('=').map_or(name.as_str(), |(_, value)| value);
            let fits = (wide * every as f64 / 7.0).max(3.0) as usize;
            let label: String = label.chars().take(fits).collect();
            if at % every == 0 {
                area.tick(m, middle, &label);
            }
        }
        area.bottom + 50.0
    });
    let note = "Boxes: quartiles and median. Whiskers: the outermost runs within 1.5 times the \
                height of the box. Points: the others.";
    chart.with_note(note)
}

fn one_box(m: &mut Markup, values: &[f64], x: f64, wide: f64, y: impl Fn(f64) -> f64) {
    let quartile = |share| statistics::percentile(values, share).unwrap_or_default();
    let (low, high) = (quartile(0.25), quartile(0.75));
    let median = statistics::median(values).unwrap_or_default();
    let reach = WHISKER * (high - low);
    let inside = |value: &&f64| (low - reach..=high + reach).contains(*value);
    let outermost =
        |start: f64, of: fn(f64, f64) -> f64| values.iter().filter(inside).copied().fold(start, of);
    let (least, most) = (outermost(low, f64::min), outermost(high, f64::max));
    line(m, "whisker q-1", (x, y(least)), (x, y(low)));
    line(m, "whisker q-1", (x, y(high)), (x, y(most)));
    let (left, right, top) = (x - wide / 2.0, x + wide / 2.0, y(high));
    rect(m, "stack q-1", &Area { left, right, top, bottom: y(low).max(top + 1.0) });
    line(m, "whisker q-1", (left, y(median)), (right, y(median)));
    for value in values.iter().filter(|value| !inside(value)) {
        circle(m, "point q-1", (x, y(*value)), 3.0);
    }
}

/// The share of the runs at or below each value, a curve for each value of a factor.
pub(super) fn cumulative(part: &StudyPart, runs: &[StudyRun], plot: &StudyPlot) -> Chart {
    let mut groups = groups(part, runs, plot, plot.by.as_ref());
    groups.truncate(MAX_CURVES);
    groups.iter_mut().for_each(|group| group.1.sort_by(f64::total_cmp));
    let shown = Shown::of(plot);
    let caption = match &plot.by {
        Some(by) => format!("Cumulative distribution of the {}, by {by}", lower(&shown.title)),
        None => format!("Cumulative distribution of the {}", lower(&shown.title)),
    };
    let across =
        Scale::of_values(groups.iter().flat_map(|group| group.1.iter().copied()), shown.units);
    let caption = shown.prefix.clone() + &caption;
    let table = Values::of_groups(by_name(&groups), shown.units);
    Chart::new(caption, table, |m, width| {
        let area = area(width, BOTTOM);
        let quarters = [0.0, 0.25, 0.5, 0.75, 1.0].into_iter();
        area.levels(m, quarters.map(|share| (share, format!("{} %", share * 100.0))));
        let ticks = across.value_ticks();
        let every = ticks.len().div_ceil(width.of(12, 4)).max(1);
        for (value, label) in ticks.into_iter().step_by(every) {
            area.tick(m, area.x(across.share(value)), &label);
        }
        text(m, "axis", (area.x(0.5), area.bottom + 42.0), &shown.title);
        let mut names = Vec::new();
        for (index, (name, values)) in groups.iter().enumerate() {
            let class = format!("q-{index}");
            let steps =
                cdf(values).map(|(value, share)| (area.x(across.share(value)), area.y(share)));
            polyline(m, &format!("curve {class}"), steps);
            let middle = statistics::median(values).unwrap_or_default();
            let from = area.y(0.5 + 0.4 * (across.share(middle) - 0.5));
            names.push(Label { text: name.clone(), class, from });
        }
        labels::write(m, names, &area, width == Width::Wide);
        area.bottom + 50.0
    })
}

fn lower(title: &str) -> String {
    // An acronym keeps its capitals.
    let mut letters = title.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    }
}
