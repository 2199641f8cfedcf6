//! The cells of a part as a table.

use super::cell_page;
use crate::html::limit_colours;
use crate::html::markup::Markup;
use crate::wording;
use record::{StudyCell, StudyPart};
use units::{ByteCount, percent};

/// Cells that are listed; the export has all.
pub(super) const MAX: usize = 1_000;

/// Columns that a part has where one of its cells does.
#[derive(Debug, Clone, Copy)]
struct Further {
    fairness: bool,
    memory: bool,
}

impl Further {
    fn of(part: &StudyPart) -> Self {
        let any = |has: fn(&StudyCell) -> bool| part.cells.iter().any(has);
        Further {
            fairness: any(|cell| cell.fairness.is_some()),
            memory: any(|cell| cell.host_memory_bytes.is_some()),
        }
    }

    fn heads(self) -> Vec<&'static str> {
        let memory = self.memory.then_some(["Buffer at hosts", "Buffer at router"]);
        let fairness = self.fairness.then_some("Jain's index");
        fairness.into_iter().chain(memory.into_iter().flatten()).collect()
    }
}

pub(super) fn table(m: &mut Markup, part: &StudyPart, pages: &[usize]) {
    let further = Further::of(part);
    m.element("section", &[], |m| {
        let title = if part.name.is_empty() {
            "Cells".to_owned()
        } else {
            format!("Cells of {}", part.name)
        };
        m.leaf("h2", &[], &title);
        m.element("div", &[("class", &"runs-table")], |m| {
            m.element("table", &[], |m| {
                head(m, part, further);
                m.element("tbody", &[], |m| {
                    for cell in part.cells.iter().take(MAX) {
                        m.element("tr", &[], |m| row(m, part, (cell, further), pages));
                    }
                });
            });
        });
        if part.cells.len() > MAX {
            let more = part.cells.len() - MAX;
            let note = format!(
                "{} in the export (longhaul study export DIR --csv).",
                wording::counted(more, "more cell")
            );
            m.leaf("p", &[("class", &"note")], &note);
        }
    });
}

fn head(m: &mut Markup, part: &StudyPart, further: Further) {
    let all = ["Valid runs", "Mean goodput", "± 95 %", "Predicted", "Mean / predicted", "Limit"];
    let mut heads = vec!["Cell"];
    heads.extend(part.plan.factors.iter().map(|factor| factor.name.as_str()));
    heads.extend(all);
    heads.extend(further.heads());
    m.thead(heads);
}

fn row(m: &mut Markup, part: &StudyPart, of: (&StudyCell, Further), pages: &[usize]) {
    let (cell, further) = of;
    m.element("td", &[], |m| {
        let number = cell.cell + 1;
        if pages.contains(&cell.cell) {
            m.leaf("a", &[("href", &cell_page(&part.name, cell.cell))], &number);
        } else {
            m.text(&number);
        }
    });
    for value in &cell.values {
        m.leaf("td", &[], value);
    }
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let half = |rate: f64| Some(percent((cell.high_bps? - cell.low_bps?) / 2.0 / rate.max(1.0)));
    let ratio = |rate: f64| Some(format!("{:.2}", rate / cell.predicted_bps?));
    m.leaf("td", &[], &format!("{} of {}", cell.valid, cell.done));
    m.leaf("td", &[], &or_dash(cell.throughput_bps.map(wording::bps)));
    m.leaf("td", &[], &or_dash(cell.throughput_bps.and_then(half)));
    m.leaf(
        "td",
        &[("title", &cell.equation.as_deref().unwrap_or_default())],
        &or_dash(cell.predicted_bps.map(wording::bps)),
    );
    m.leaf("td", &[], &or_dash(cell.throughput_bps.and_then(ratio)));
    m.element("td", &[], |m| match cell.limit {
        Some(limit) => {
            limit_colours::mark(m, limit);
            m.text(&limit.name());
        }
        None => {
            m.text(&"–");
        }
    });
    if further.fairness {
        m.leaf("td", &[], &or_dash(cell.fairness.map(|index| format!("{index:.3}"))));
    }
    if further.memory {
        for bytes in [cell.host_memory_bytes, cell.router_memory_bytes] {
            let text = bytes.map(|bytes| ByteCount::from_bytes(bytes).to_string());
            m.leaf("td", &[], &or_dash(text));
        }
    }
}
