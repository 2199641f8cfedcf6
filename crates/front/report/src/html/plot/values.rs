//! The values of a chart as a table, for readers and for machines that do not see the drawing.

use crate::axis::{RATE, Unit, readable};
use crate::html::markup::Markup;
use model::statistics;

/// Rows of a table; of more, some are left out.
const MAX_ROWS: usize = 240;

/// A table: the first column names the rows.
#[derive(Debug, Default)]
pub(in crate::html) struct Values {
    pub(in crate::html) heads: Vec<String>,
    pub(in crate::html) rows: Vec<Vec<String>>,
}

impl Values {
    /// Groups of runs by their quartiles.
    pub(in crate::html) fn of_groups<'a>(
        groups: impl Iterator<Item = (&'a str, &'a [f64])>,
        units: &'static [Unit],
    ) -> Self {
        let quartiles = [0.0, 0.25, 0.5, 0.75, 1.0];
        let heads = ["runs of", "runs", "least", "25 %", "median", "75 %", "most"];
        let row = |(name, values): (&str, &[f64])| {
            let figures = quartiles.map(|share| match share {
                0.5 => statistics::median(values),
                share => statistics::percentile(values, share),
            });
            let figures = figures.map(|figure| shown(figure, units));
            [name.to_owned(), values.len().to_string()].into_iter().chain(figures).collect()
        };
        Values { heads: heads.map(str::to_owned).into(), rows: groups.map(row).collect() }
    }

    /// Goodputs over time: a column for each series, a row for each of its steps of `step_s`.
    pub(in crate::html) fn over_time(series: &[(String, Vec<f64>)], step_s: usize) -> Self {
        let steps = series.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        let row = |step: usize| {
            let at = |(_, values): &(String, Vec<f64>)| shown(values.get(step).copied(), RATE);
            let time = (step * step_s).to_string();
            std::iter::once(time).chain(series.iter().map(at)).collect()
        };
        let heads = std::iter::once("s".to_owned()).chain(series.iter().map(|one| one.0.clone()));
        Values { heads: heads.collect(), rows: (0..steps).map(row).collect() }
    }

    pub(in crate::html) fn write(&self, m: &mut Markup) {
        if self.rows.is_empty() {
            return;
        }
        let every = self.rows.len().div_ceil(MAX_ROWS);
        let rows: Vec<_> = self.rows.iter().step_by(every).cloned().collect();
        m.values(&self.heads, &rows);
    }
}

/// A value in a readable unit; a dash if there is none.
pub(in crate::html) fn shown(value: Option<f64>, units: &'static [Unit]) -> String {
    let value = value.filter(|value| value.is_finite());
    value.map_or_else(|| "–".to_owned(), |value| readable(value, units))
}
