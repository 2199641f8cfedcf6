//! `[[plots]]`: what a study's page shows.

use super::{Plan, PlanError, reader::Reader};
use crate::cells::numbers;
use crate::written::WrittenPlot;
use record::{Figure, PlotKind, StudyPlot};
use topology::toml_text::Spanned;

/// The most plots of a plan.
const MAX_PLOTS: usize = 50;

impl Reader<'_> {
    pub(super) fn plots(
        &self,
        plan: &Plan,
        written: &[WrittenPlot],
    ) -> Result<Vec<StudyPlot>, PlanError> {
        if let Some(one) = written.get(MAX_PLOTS) {
            return Err(self.error(&one.kind.span(), format!("at most {MAX_PLOTS} plots")));
        }
        written.iter().map(|plot| self.plot(plan, plot)).collect()
    }

    fn plot(&self, plan: &Plan, written: &WrittenPlot) -> Result<StudyPlot, PlanError> {
        let kind = written.kind.get_ref();
        let kind =
            PlotKind::ALL.into_iter().find(|known| known.name() == kind).ok_or_else(|| {
                let known: Vec<&str> = PlotKind::ALL.into_iter().map(PlotKind::name).collect();
                let problem = format!("no plot '{kind}'; plots are {}", known.join(", "));
                self.error(&written.kind.span(), problem)
            })?;
        let (x, by) = (self.axis(plan, &written.x)?, self.axis(plan, &written.by)?);
        let is_missing = match kind {
            PlotKind::Lines => x.is_none(),
            PlotKind::Surface | PlotKind::Heatmap => x.is_none() || by.is_none(),
            PlotKind::Box | PlotKind::Cdf | PlotKind::Rows => false,
        };
        if is_missing {
            let axes = if kind == PlotKind::Lines { "x" } else { "x and by" };
            let problem = format!("{} needs {axes}: factors of the plan", kind.name());
            return Err(self.error(&written.kind.span(), problem));
        }
        let along: &[_] = match kind {
            PlotKind::Lines => &[&written.x],
            PlotKind::Surface => &[&written.x, &written.by],
            PlotKind::Heatmap | PlotKind::Box | PlotKind::Cdf | PlotKind::Rows => &[],
        };
        for axis in along.iter().copied().flatten() {
            let name = axis.get_ref();
            if !is_numeric(plan, name) {
                let problem =
                    format!("{name} cannot be an axis: its values are not numbers of one unit");
                return Err(self.error(&axis.span(), problem));
            }
        }
        let (flow, y) = self.figure(plan, written.y.as_ref(), &written.kind)?;
        let title = written.title.as_ref().map(|title| title.get_ref().clone());
        if let Some(long) = written.title.as_ref().filter(|title| title.get_ref().len() > 100) {
            return Err(self.error(&long.span(), "a title has at most 100 characters"));
        }
        Ok(StudyPlot { title, kind, x, by, flow, y })
    }

    /// A factor of the plan.
    fn axis(
        &self,
        plan: &Plan,
        written: &Option<Spanned<String>>,
    ) -> Result<Option<String>, PlanError> {
        let Some(written) = written else { return Ok(None) };
        let name = written.get_ref();
        if plan.dimensions().any(|factor| factor.setting.to_string() == *name) {
            return Ok(Some(name.clone()));
        }
        let known: Vec<String> = plan.dimensions().map(|f| f.setting.to_string()).collect();
        let problem = format!("no factor '{name}'; factors are {}", known.join(", "));
        Err(self.error(&written.span(), problem))
    }

    /// A column of the export: of a flow, or of the only one.
    fn figure(
        &self,
        plan: &Plan,
        written: Option<&Spanned<String>>,
        kind: &Spanned<String>,
    ) -> Result<(Option<String>, Figure), PlanError> {
        let (column, span) = match written {
            Some(written) => (written.get_ref().as_str(), written.span()),
            None => (Figure::Throughput.name(), kind.span()),
        };
        let flows = plan.flows_of_tests();
        let of_flow = column.rsplit_once('.').filter(|(flow, _)| flows.iter().any(|f| f == flow));
        let (flow, name) = of_flow.map_or((None, column), |(flow, name)| (Some(flow), name));
        let figure = Figure::ALL.into_iter().find(|known| known.name() == name);
        let known = || Figure::ALL.map(Figure::name).join(", ");
        let problem = match figure {
            None => format!("no column '{column}'; columns with numbers are {}", known()),
            Some(figure) if flow.is_none() && flows.len() > 1 && !of_all_flows(figure) => {
                format!("several flows have a {name}; name one, such as {}.{name}", flows[0])
            }
            Some(figure) => return Ok((flow.map(str::to_owned), figure)),
        };
        Err(self.error(&span, problem))
    }
}

/// Returns true if it is of all flows of a run where none is named.
fn of_all_flows(figure: Figure) -> bool {
    matches!(figure, Figure::Throughput | Figure::PerStream)
}

fn is_numeric(plan: &Plan, name: &str) -> bool {
    let factor = plan.dimensions().find(|factor| factor.setting.to_string() == name);
    // Values of several units have no common axis.
    factor.is_some_and(|factor| numbers(&factor.levels).len() == factor.levels.len())
}
