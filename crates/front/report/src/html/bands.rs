//! The segments of a finding: bands behind a chart, their legend, and a table.

use super::{
    Page,
    chart::Frame,
    curves::{run_class, section},
    drawing::{self, Area},
    limit_colours,
    markup::Markup,
};
use crate::{
    timeline::{Part, Timeline, certainty, cost},
    wording::{self, whole_percent},
};

/// Height of the strip above the plot, in pixels.
const STRIP: f64 = 6.0;
/// Width of a character of a band's name, in pixels, at most.
const CHARACTER: f64 = 7.0;

/// `loss from 3.1 s to 10 s`.
fn named(part: &Part) -> String {
    let (from, to) = (wording::seconds(part.from_s), wording::seconds(part.to_s));
    format!("{} from {from} to {to}", part.limit.name())
}

/// A text alternative: all bands in one sentence.
pub(super) fn description(timeline: &Timeline) -> String {
    let bands: Vec<String> = timeline.parts.iter().map(named).collect();
    format!(" Limits: {}.", bands.join(", "))
}

/// A tint behind the plot, a strip above it, and the limit's name where it fits.
pub(super) fn draw(m: &mut Markup, timeline: &Timeline, f: &Frame) {
    let top = f.area.top;
    for part in &timeline.parts {
        let (from, to) = (f.across(part.from_s), f.across(part.to_s));
        m.element("g", &[("class", &limit_colours::class(part.limit))], |m| {
            m.leaf("title", &[], &named(part));
            let tint = Area { left: from, right: to, ..f.area };
            let strip = Area { top: top - STRIP - 1.0, bottom: top - 1.0, ..tint };
            drawing::rect(m, "tint", &tint);
            drawing::rect(m, "strip", &strip);
            let name = part.limit.name();
            if CHARACTER * name.len() as f64 + 4.0 <= to - from {
                drawing::text(m, "segment-name", (from + 1.0, top - STRIP - 6.0), name);
            }
        });
    }
}

/// The limits, in their colours, with what each cost.
pub(super) fn legend(m: &mut Markup, timeline: &Timeline) {
    m.element("ul", &[("class", &"legend")], |m| {
        for total in &timeline.totals {
            m.element("li", &[], |m| {
                limit_colours::mark(m, total.limit);
                m.leaf("b", &[], &total.limit.name());
                m.text(&" ").text(&cost(total));
            });
        }
    });
}

/// The segments of every run in numbers.
pub(super) fn tables(m: &mut Markup, page: &Page<'_>) {
    let runs = page.runs.iter().enumerate();
    let timelines: Vec<(usize, &str, Timeline)> = runs
        .filter_map(|(index, run)| Some((index, run.label, Timeline::of(run.finding)?)))
        .collect();
    if timelines.is_empty() {
        return;
    }
    let note = "The limit of each part of the transfer and its cost: goodput below the rate that \
                the path would have carried.";
    section(m, "Limits over time", note, |m| {
        for (index, label, timeline) in &timelines {
            if page.runs.len() > 1 {
                m.leaf("h3", &[("class", &run_class(page, *index))], label);
            }
            table(m, timeline);
        }
    });
}

fn table(m: &mut Markup, timeline: &Timeline) {
    m.element("div", &[("class", &"segments")], |m| {
        m.element("table", &[("class", &"figures")], |m| {
            m.heads(["from, s", "to, s", "limit", "probability", "goodput", "lost goodput"]);
            for part in &timeline.parts {
                row(m, part);
            }
        });
    });
    if timeline.left_out > 0 {
        let text = format!("{} not shown.", wording::counted(timeline.left_out, "later segment"));
        m.leaf("p", &[("class", &"note")], &text);
    }
}

fn row(m: &mut Markup, part: &Part) {
    m.element("tr", &[], |m| {
        for t_s in [part.from_s, part.to_s] {
            m.leaf("td", &[], &wording::seconds(t_s).trim_end_matches(" s"));
        }
        m.element("th", &[("scope", &"row")], |m| {
            limit_colours::mark(m, part.limit);
            m.text(&part.limit.name());
        });
        let probability = part.probability.map_or_else(|| "–".to_owned(), certainty);
        for text in [probability, part.rate.to_string(), whole_percent(part.lost)] {
            m.leaf("td", &[], &text);
        }
    });
}
