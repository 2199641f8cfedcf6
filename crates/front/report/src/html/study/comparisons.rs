//! Levels of the factors compared: the verdicts, and every comparison in a folded table.

use crate::foremost::{foremost, of_each_factor};
use crate::html::markup::Markup;
use crate::wording;
use record::{LevelComparison, StudyPart};
use units::significant;

/// Rows of a table; JSON has more.
const MAX_ROWS: usize = 400;

const NOTE: &str = "Goodput ratios with all other factors equal, and their 95 % confidence \
                    intervals (Welch, on the logarithms of the runs).";

pub(super) fn write(m: &mut Markup, parts: &[StudyPart]) {
    if parts.iter().all(|part| part.comparisons.is_empty()) {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Comparisons");
        m.leaf("p", &[("class", &"note")], &NOTE);
        for part in parts.iter().filter(|part| !part.comparisons.is_empty()) {
            if parts.len() > 1 {
                m.leaf("h3", &[], &part.name);
            }
            verdicts(m, part, of_each_factor(parts.len()));
            table(m, part);
        }
    });
}

fn verdicts(m: &mut Markup, part: &StudyPart, most: usize) {
    let shown = foremost(&part.comparisons, most);
    if shown.is_empty() {
        let first = part.comparisons.first().map_or("", |one| one.verdict.as_str());
        m.leaf("p", &[("class", &"empty")], &first);
        return;
    }
    m.element("ul", &[("class", &"verdicts")], |m| {
        for one in shown {
            m.leaf("li", &[], &one.verdict);
        }
    });
}

fn table(m: &mut Markup, part: &StudyPart) {
    let count = part.comparisons.len() as u64 + part.more_comparisons;
    m.element("details", &[], |m| {
        let all =
            if count == 1 { "1 comparison".to_owned() } else { format!("{count} comparisons") };
        m.leaf("summary", &[], &all);
        m.element("div", &[("class", &"runs-table")], |m| {
            m.element("table", &[], |m| {
                m.thead(["Levels", "At", "Valid runs", "Ratio", "95 %", "Result"]);
                m.element("tbody", &[], |m| {
                    for one in part.comparisons.iter().take(MAX_ROWS) {
                        m.element("tr", &[], |m| row(m, one));
                    }
                });
            });
        });
        let more = count - part.comparisons.len().min(MAX_ROWS) as u64;
        if more > 0 {
            let note = format!("{more} more, with smaller ratios.");
            m.leaf("p", &[("class", &"note")], &note);
        }
    });
}

fn row(m: &mut Markup, one: &LevelComparison) {
    let [first, second] = &one.levels;
    m.leaf("td", &[], &format!("{}: {first} / {second}", one.factor));
    let at = match &one.at {
        Some(at) if at.is_empty() => "–".to_owned(),
        Some(at) => at.clone(),
        None => format!("{} conditions", one.conditions),
    };
    m.leaf("td", &[], &at);
    m.leaf("td", &[], &format!("{} / {}", one.runs[0], one.runs[1]));
    let ratio = one.ratio.map_or_else(|| "–".to_owned(), |ratio| significant(ratio, 3));
    m.leaf("td", &[], &ratio);
    let interval = one.ratio_low.zip(one.ratio_high);
    let interval = interval.map_or_else(
        || "–".to_owned(),
        |(low, high)| format!("{} to {}", significant(low, 3), significant(high, 3)),
    );
    m.leaf("td", &[], &interval);
    let result = match &one.no_ratio {
        Some(why) => format!("no ratio: {why}"),
        None => wording::significance(one.significant).to_owned(),
    };
    m.leaf("td", &[], &result);
}
