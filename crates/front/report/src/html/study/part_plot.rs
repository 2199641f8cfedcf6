//! Which plots a part has: what stands on which axis, and the cells of each.

use super::figure::Shown;
use crate::html::plot::{Values, shown};
use record::{PlotKind, StudyCell, StudyFactor, StudyPart, StudyPlot};
use std::collections::HashMap;
use units::ByteCount;

/// Most plots of one kind: each shows one combination of the factors that are on no axis.
const MAX_PLOTS: usize = 6;

/// Values of a factor up to which a surface and a heatmap are drawn.
const MAX_VALUES: usize = 100;

/// The name of an axis that is no factor.
pub(super) const WINDOW_PER_STREAM: &str = "window per stream";

/// Most cells of a plot of rows.
const MAX_ROWS: usize = 40;

/// What is on the axes, as indices of factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plotted {
    /// A line for each value of `series` over the values of `x`, or, where that is the sum of the
    /// windows, over the window of each stream.
    Lines { x: usize, series: Option<usize>, per_stream: bool },
    /// A field for each pair of values.
    Heatmap { x: usize, y: usize },
    /// The same as heights.
    Surface { x: usize, y: usize },
    /// A row for each cell.
    Rows,
}

/// One plot.
#[derive(Debug, Clone)]
pub(super) struct PartPlot {
    pub(super) plotted: Plotted,
    /// The values of the factors that are on no axis, as (factor, value).
    fixed: Vec<(usize, String)>,
    pub(super) shown: Shown,
}

impl PartPlot {
    /// The plots of a part, by the kinds of its factors: lines over a numeric one, and a
    /// surface and its heatmap over two; rows without one.
    pub(super) fn all(part: &StudyPart) -> Vec<Self> {
        let factors = &part.plan.factors;
        if part.cells.iter().all(|cell| cell.throughput_bps.is_none()) {
            return Vec::new();
        }
        // One that is paired is on the axis of the one before it.
        let several = |at: &usize| factors[*at].values.len() > 1 && !factors[*at].paired;
        let mut numeric: Vec<usize> = (0..factors.len())
            .filter(several)
            .filter(|at| factors[*at].numbers.len() == factors[*at].values.len())
            .collect();
        // The one with the most values is drawn along the axis.
        numeric.sort_by_key(|at| std::cmp::Reverse(factors[*at].values.len()));
        let words = (0..factors.len()).filter(several).find(|at| !numeric.contains(at));
        let kinds = match numeric.as_slice() {
            [] => vec![Plotted::Rows],
            [x] => vec![Plotted::Lines { x: *x, series: words, per_stream: false }],
            [x, y, ..] => {
                let lines = Plotted::Lines { x: *x, series: Some(*y), per_stream: false };
                let mut kinds = vec![lines];
                let enough = |at: &usize| (3..=MAX_VALUES).contains(&factors[*at].values.len());
                if enough(x) && enough(y) {
                    kinds.push(Plotted::Surface { x: *x, y: *y });
                    kinds.push(Plotted::Heatmap { x: *x, y: *y });
                }
                kinds
            }
        };
        let goodput = Shown::goodput();
        kinds.into_iter().flat_map(|plotted| PartPlot::of(part, plotted, &goodput)).collect()
    }

    /// The plots of one that the plan names; none of a distribution, which is no plot of cells.
    pub(super) fn named(part: &StudyPart, plot: &StudyPlot) -> Vec<Self> {
        let named = |name: &str| part.plan.factors.iter().position(|factor| factor.name == name);
        let factor = |name: &Option<String>| named(name.as_ref()?);
        let (x, by) = (factor(&plot.x), factor(&plot.by));
        let of_sum = named("total_window").filter(|_| plot.x.as_deref() == Some("window"));
        let plotted = match (plot.kind, x, by) {
            (PlotKind::Lines, Some(x), series) => Plotted::Lines { x, series, per_stream: false },
            (PlotKind::Lines, None, series) => match of_sum {
                Some(x) => Plotted::Lines { x, series, per_stream: true },
                None => return Vec::new(),
            },
            (PlotKind::Surface, Some(x), Some(y)) => Plotted::Surface { x, y },
            (PlotKind::Heatmap, Some(x), Some(y)) => Plotted::Heatmap { x, y },
            (PlotKind::Rows, ..) => Plotted::Rows,
            _ => return Vec::new(),
        };
        PartPlot::of(part, plotted, &Shown::of(plot))
    }

    /// A plot for each combination of the factors that are on no axis.
    fn of(part: &StudyPart, plotted: Plotted, shown: &Shown) -> Vec<Self> {
        let on_axis = match plotted {
            Plotted::Lines { x, series, .. } => vec![Some(x), series],
            Plotted::Heatmap { x, y } | Plotted::Surface { x, y } => vec![Some(x), Some(y)],
            Plotted::Rows => {
                return vec![PartPlot { plotted, fixed: Vec::new(), shown: shown.clone() }];
            }
        };
        let others = (0..part.plan.factors.len()).filter(|at| !on_axis.contains(&Some(*at)));
        let others: Vec<usize> = others.filter(|at| !part.plan.factors[*at].paired).collect();
        let mut plots: Vec<PartPlot> = Vec::new();
        for cell in part.cells.iter().filter(|cell| cell.throughput_bps.is_some_and(f64::is_finite))
        {
            let value = |at: &usize| (*at, cell.values.get(*at).cloned().unwrap_or_default());
            let fixed: Vec<(usize, String)> = others.iter().map(value).collect();
            if !plots.iter().any(|plot| plot.fixed == fixed) {
                if plots.len() == MAX_PLOTS {
                    break;
                }
                plots.push(PartPlot { plotted, fixed, shown: shown.clone() });
            }
        }
        plots
    }

    pub(super) fn caption(&self, part: &StudyPart) -> String {
        let name = |at: usize| part.plan.factors.get(at).map_or("", |factor| factor.name.as_str());
        let title = &self.shown.title;
        let axes = match self.plotted {
            Plotted::Lines { x, series, per_stream } => {
                let x = if per_stream { WINDOW_PER_STREAM } else { name(x) };
                let by = series.map_or(String::new(), |by| format!(", by {}", name(by)));
                format!("{title} over {x}{by}")
            }
            Plotted::Heatmap { x, y } => format!("{title} over {} and {}", name(x), name(y)),
            Plotted::Surface { x, y } => {
                format!("{title} over {} and {}, as a surface", name(x), name(y))
            }
            Plotted::Rows => format!("{title} of each cell"),
        };
        let axes = self.shown.prefix.clone() + &axes;
        let fixed: Vec<String> = self
            .fixed
            .iter()
            .filter(|(at, _)| part.plan.factors[*at].values.len() > 1)
            .map(|(at, value)| format!("{}={value}", name(*at)))
            .collect();
        if fixed.is_empty() { axes } else { format!("{axes} ({})", fixed.join(", ")) }
    }

    /// Its cells that were measured.
    pub(super) fn cells<'a>(
        &'a self,
        part: &'a StudyPart,
    ) -> impl Iterator<Item = &'a StudyCell> + Clone {
        let limit = if self.plotted == Plotted::Rows { MAX_ROWS } else { usize::MAX };
        part.cells
            .iter()
            .filter(|cell| cell.throughput_bps.is_some_and(f64::is_finite))
            .filter(|cell| self.fixed.iter().all(|(at, value)| cell.values.get(*at) == Some(value)))
            .take(limit)
    }

    /// Its cells, with their means.
    pub(super) fn values(&self, part: &StudyPart) -> Values {
        let units = self.shown.units;
        let factors = part.plan.factors.iter().filter(|factor| !factor.paired);
        let figures = [self.shown.title.as_str(), "95 % from", "95 % to", "predicted"];
        let heads = factors.map(|factor| factor.name.clone());
        let row = |cell: &StudyCell| {
            let values = part.values(cell).map(|(_, value)| value.to_owned());
            let figures = [cell.throughput_bps, cell.low_bps, cell.high_bps, cell.predicted_bps];
            values.chain(figures.map(|figure| shown(figure, units))).collect()
        };
        Values {
            heads: heads.chain(figures.map(str::to_owned)).collect(),
            rows: self.cells(part).map(row).collect(),
        }
    }

    /// Its goodputs by the values of two factors.
    pub(super) fn by_values<'a>(&'a self, part: &'a StudyPart, x: usize, y: usize) -> Grid<'a> {
        let entry = |cell: &'a StudyCell| {
            let key = (cell.values.get(x)?.as_str(), cell.values.get(y)?.as_str());
            Some((key, cell.throughput_bps?))
        };
        self.cells(part).filter_map(entry).collect()
    }
}

/// Goodputs by the values of two factors.
pub(super) type Grid<'a> = HashMap<(&'a str, &'a str), f64>;

/// A cell by its part and its values.
pub(super) fn label(part: &StudyPart, cell: &StudyCell) -> String {
    let prefix = if part.name.is_empty() { String::new() } else { format!("{}: ", part.name) };
    prefix + &part.label(cell)
}

/// A value on an axis; of a buffer's three sizes the limit, by which they are compared.
pub(super) fn tick(factor: &StudyFactor, at: usize) -> String {
    let value = &factor.values[at];
    match factor.numbers.get(at) {
        Some(limit) if factor.unit == "bytes" && value.contains(' ') => {
            ByteCount::from_f64(*limit).decimal()
        }
        _ => value.clone(),
    }
}

/// Indices of values whose labels fit: all, or every n-th with the last.
pub(super) fn labelled(factor: &StudyFactor, most: usize) -> Vec<usize> {
    let count = factor.values.len();
    let step = count.div_ceil(most.max(1)).max(1);
    (0..count).filter(|at| at % step == 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_buffers_sizes_the_limit_is_on_the_axis() {
        let factor = |unit: &str, value: &str, number: f64| StudyFactor {
            name: "client.net.ipv4.tcp_rmem".to_owned(),
            values: vec![value.to_owned()],
            numbers: vec![number],
            unit: unit.to_owned(),
            paired: false,
        };
        assert_eq!(tick(&factor("bytes", "4096 131072 6291456", 6_291_456.0), 0), "6.29 MB");
        assert_eq!(tick(&factor("bytes", "64KiB", 65_536.0), 0), "64KiB");
        assert_eq!(tick(&factor("s", "50ms", 0.05), 0), "50ms");
    }
}
