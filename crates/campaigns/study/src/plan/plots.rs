//! `[[plots]]`: what a study's page shows.

use super::{Factor, Plan, PlanError, reader::Reader};
use crate::cells::numbers;
use crate::level::Level;
use crate::setting::Setting;
use crate::written::WrittenPlot;
use record::{Figure, PlotKind, Reference, StudyPlot};
use topology::toml_text::Spanned;

/// The most plots of a plan.
const MAX_PLOTS: usize = 50;

/// The longest texts of a plot, in bytes.
const MAX_TITLE: usize = 100;
const MAX_NOTE: usize = 300;

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
        let per_stream = is_window_per_stream(plan, written.x.as_ref());
        if let Some(x) = written.x.as_ref().filter(|_| per_stream && kind != PlotKind::Lines) {
            return Err(self.error(&x.span(), "the window of each stream is an axis of lines only"));
        }
        let x = match &written.x {
            Some(x) if per_stream => Some(x.get_ref().clone()),
            x => self.axis(plan, x)?,
        };
        let by = self.axis(plan, &written.by)?;
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
        for axis in along.iter().copied().flatten().filter(|_| !per_stream) {
            let name = axis.get_ref();
            if !is_numeric(plan, name) {
                let problem =
                    format!("{name} cannot be an axis: its values are not numbers of one unit");
                return Err(self.error(&axis.span(), problem));
            }
        }
        let (flow, y) = self.figure(plan, written.y.as_ref(), &written.kind)?;
        let title = self.words(written.title.as_ref(), "a title", MAX_TITLE)?;
        let note = self.words(written.note.as_ref(), "a note", MAX_NOTE)?;
        let plot = StudyPlot { title, kind, x, by, flow, y, reference: None, note };
        let reference = self.reference(plan, &plot, written.reference.as_ref())?;
        Ok(StudyPlot { reference, ..plot })
    }

    fn words(
        &self,
        written: Option<&Spanned<String>>,
        what: &str,
        most: usize,
    ) -> Result<Option<String>, PlanError> {
        if let Some(long) = written.filter(|words| words.get_ref().len() > most) {
            return Err(self.error(&long.span(), format!("{what} has at most {most} characters")));
        }
        Ok(written.map(|words| words.get_ref().clone()))
    }

    /// The line that a plot is compared with. Window over RTT is one of each stream over its window,
    /// and of all streams over the sum of their windows.
    fn reference(
        &self,
        plan: &Plan,
        plot: &StudyPlot,
        written: Option<&Spanned<String>>,
    ) -> Result<Option<Reference>, PlanError> {
        let Some(written) = written else { return Ok(None) };
        let name = written.get_ref();
        let known = Reference::ALL.into_iter().find(|known| known.name() == name);
        let is_comparable = match plot.x.as_deref().filter(|_| plot.kind == PlotKind::Lines) {
            Some("window") => plot.y == Figure::PerStream,
            Some("total_window") => plot.y == Figure::Throughput && plot.flow.is_none(),
            _ => false,
        };
        let has_bytes = |factor: &&Factor| !factor.levels.iter().any(Level::per_bdp);
        let windows = [Setting::Window, Setting::TotalWindow];
        let mut varied = plan.factors.iter().filter(|factor| windows.contains(&factor.setting));
        let rtt =
            plan.fixed.iter().find(|(setting, _)| *setting == Setting::Path("rtt".to_owned()));
        let rtt = rtt.and_then(|(_, level)| level.number());
        let problem = if known.is_none() {
            format!("no reference '{name}'; the only one is {}", Reference::ALL[0].name())
        } else if !is_comparable {
            format!(
                "{name} is a reference of lines of per_stream_bps over window, and of \
                 throughput_bps over total_window"
            )
        } else if rtt.is_none_or(|rtt| rtt <= 0.0) {
            format!("{name} needs an rtt in [path]")
        } else if !varied.all(|factor| has_bytes(&factor)) {
            format!("{name} needs windows in bytes, not in bdp")
        } else {
            return Ok(known);
        };
        Err(self.error(&written.span(), problem))
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
            // The clients' flows are alike, so that their losses are one.
            Some(Figure::Loss) if flow.is_none() && plan.flows.is_empty() => {
                return Ok((None, Figure::Loss));
            }
            Some(figure) if flow.is_none() && flows.len() > 1 && !of_all_flows(figure) => {
                format!("several flows have a {name}; name one, such as {}.{name}", flows[0])
            }
            Some(figure) => return Ok((flow.map(str::to_owned), figure)),
        };
        Err(self.error(&span, problem))
    }
}

/// Returns true if an axis is the window of each stream, which follows from the factor
/// `total_window` and the number of streams.
fn is_window_per_stream(plan: &Plan, axis: Option<&Spanned<String>>) -> bool {
    let varies = |setting| plan.dimensions().any(|factor| factor.setting == setting);
    axis.is_some_and(|axis| axis.get_ref() == "window")
        && varies(Setting::TotalWindow)
        && !varies(Setting::Window)
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
