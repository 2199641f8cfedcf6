//! A study: its answer, its trends beside the published results, and its cells.

use super::{
    Style,
    line::{Line, block, labelled},
    style,
};
use crate::foremost::{foremost, of_each_factor};
use crate::{study_sources, untrusted::clean, wording};
use record::{StudyCell, StudyPart, StudyReport, StudyTestbed, StudyTrend, places};
use units::{BitRate, percent};

/// Column of the texts.
const COLUMN: usize = 12;

/// Cells of a part that are listed; the others are in the export.
const MAX_CELLS: usize = 60;

/// Verdicts that are listed.
const MAX_VERDICTS: usize = 9;

/// Columns of the values of a cell's factors.
const MAX_LABEL: usize = 26;

/// Right ends of the figures, after the values.
const COLUMNS: [usize; 3] = [13, 21, 35];
/// Columns of the limit and of the bar, after the values.
const LIMIT: usize = 37;
const BARS: usize = 58;

/// Columns of the longest bar, and those below which there is none.
const LONGEST_BAR: usize = 30;
const SHORTEST_BAR: usize = 8;

/// Names and questions of studies, a line each.
#[must_use]
pub fn studies<'a>(known: impl Iterator<Item = (&'a str, &'a str)>, style: &Style) -> String {
    let row = |(name, question): (&str, &str)| {
        labelled(style, 0, (style::STRONG, name), 16, (style::PLAIN, question))
    };
    block(known.flat_map(row).collect())
}

/// The results of a study.
#[must_use]
pub fn study(report: &StudyReport, style: &Style) -> String {
    let mut lines = Vec::new();
    let mut row = |label: &str, text: &str| {
        lines.extend(labelled(style, 0, (style::STRONG, label), COLUMN, (style::PLAIN, text)));
    };
    row("question", &clean(&report.question));
    for citation in study_sources::citations(&report.parts) {
        row("source", &clean(&citation));
    }
    for (index, sentence) in report.answer.iter().enumerate() {
        row(if index == 0 { "answer" } else { "" }, &clean(sentence));
    }
    let (verdicts, more) = verdicts(report);
    for (index, verdict) in verdicts.iter().enumerate() {
        row(if index == 0 { "compared" } else { "" }, &clean(verdict));
    }
    if more > 0 {
        row("", &format!("{more} more on the page (--html) and in --json"));
    }
    row("runs", &runs(report));
    if report.testbed == StudyTestbed::Simulator {
        row("testbed", wording::SIMULATED);
    }
    if !report.not_set.is_empty() {
        row("not set", &clean(&format!("{}: {}", report.not_set.join(", "), wording::NOT_SET)));
    }
    for host in &report.hosts {
        row("host", &clean(&wording::study_host(host)));
    }
    if let Some(skew) = &report.start_skew {
        row("start skew", &wording::start_skew(skew));
    }
    if !report.hosts.is_empty() {
        row("validity", wording::REAL_HOSTS);
    }
    for trend in &report.trends {
        lines.push(Line::new(style));
        lines.extend(self::trend(trend, style));
    }
    let settings = study_sources::rows(&report.parts);
    if !settings.is_empty() {
        lines.push(Line::new(style));
        let form = if report.quick { "settings of the full form" } else { "settings" };
        lines.push(Line::new(style).put(style::STRONG, form));
    }
    for one in settings {
        let (label, text) = ((style::DIM, one.kind()), clean(&one.line()));
        lines.extend(labelled(style, 2, label, COLUMN, (style::PLAIN, &text)));
    }
    for part in &report.parts {
        lines.push(Line::new(style));
        lines.extend(cells(part, style));
    }
    block(lines)
}

/// The comparison of levels: the most important verdicts, and the number of others.
fn verdicts(report: &StudyReport) -> (Vec<String>, u64) {
    let of_part = |part: &StudyPart| -> Vec<String> {
        let prefix = if part.name.is_empty() { "" } else { &format!("{}: ", part.name) };
        let shown = foremost(&part.comparisons, of_each_factor(report.parts.len()));
        shown.into_iter().map(|one| format!("{prefix}{}", one.verdict)).collect()
    };
    let all = report.parts.iter().map(|part| part.comparisons.len() as u64 + part.more_comparisons);
    let all: u64 = all.sum();
    let shown: Vec<String> = report.parts.iter().flat_map(of_part).take(MAX_VERDICTS).collect();
    let more = all.saturating_sub(shown.len() as u64);
    (shown, more)
}

fn runs(report: &StudyReport) -> String {
    let mut text = format!("{} of {} done, {} valid", report.done, report.runs, report.valid);
    for (count, what) in [(report.invalid, "not valid"), (report.failed, "failed")] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text + &format!("; {} in all", wording::long_time(report.took_s))
}

fn trend(trend: &StudyTrend, style: &Style) -> Vec<Line> {
    let reason = trend.not_reproduced.as_deref();
    let (mark, tone) = match (trend.holds, reason) {
        (Some(true), _) => ("holds", style::GOOD),
        (Some(false), Some(_)) => ("not reproduced", style::WARN),
        (Some(false), None) => ("fails", style::BAD),
        (None, _) => ("not measured", style::WARN),
    };
    let mut lines = vec![
        Line::new(style)
            .put(style::STRONG, &clean(&trend.name))
            .put(style::PLAIN, "  ")
            .put(tone, mark),
    ];
    let measured = trend.measured.as_deref().unwrap_or("no valid run of the cells that it needs");
    let place = (!trend.cited.is_empty()).then(|| places(&trend.cited));
    for (label, text) in [
        ("published", trend.published.as_deref()),
        ("at", place.as_deref()),
        ("expected", trend.expected.as_deref()),
        ("by", trend.expected_by.as_deref()),
        ("measured", Some(measured)),
        ("because", reason),
    ] {
        let Some(text) = text.map(clean) else { continue };
        lines.extend(labelled(style, 2, (style::DIM, label), COLUMN, (style::PLAIN, &text)));
    }
    lines
}

/// A line for each cell: its values, its goodput and confidence interval, how it compares with
/// the prediction or how equal the flows' shares are, its limit, and the goodput as a bar.
fn cells(part: &StudyPart, style: &Style) -> Vec<Line> {
    let most = MAX_LABEL.max(style.text_width().saturating_sub(BARS + SHORTEST_BAR));
    let (labels, longest) = labels(part, most);
    let width = longest.clamp(part.name.chars().count(), most.max(part.name.len()));
    let most = part.cells.iter().filter_map(|cell| cell.throughput_bps).fold(0.0, f64::max);
    let third = Third::of(part);
    let heads = ["mean goodput", "±95 %", third.head()];
    let mut head = Line::new(style).put(style::STRONG, &clean(&part.name));
    for (name, column) in heads.into_iter().zip(COLUMNS) {
        head = head.right(style::DIM, name, width + column);
    }
    let mut lines = vec![head.to(width + LIMIT).put(style::DIM, "limit")];
    for (cell, text) in part.cells.iter().zip(&labels) {
        let text: String = text.chars().take(width).collect();
        lines.push(figures(cell, third, most, width, Line::new(style).put(style::PLAIN, &text)));
    }
    if part.cells.len() > MAX_CELLS {
        let more = format!(
            "{}: longhaul study export",
            wording::counted(part.cells.len() - MAX_CELLS, "more cell")
        );
        lines.push(Line::new(style).put(style::DIM, &more));
    }
    lines
}

/// The cells' values, with the names of their factors if that fits into `most` columns, and the
/// columns of the longest.
fn labels(part: &StudyPart, most: usize) -> (Vec<String>, usize) {
    let longest =
        |labels: &[String]| labels.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let cells = || part.cells.iter().take(MAX_CELLS);
    let named: Vec<String> = cells().map(|cell| clean(&part.label(cell))).collect();
    let columns = longest(&named);
    if columns <= most {
        return (named, columns);
    }
    let values = |cell| part.values(cell).map(|(_, value)| value).collect::<Vec<_>>().join(", ");
    let values: Vec<String> = cells().map(|cell| clean(&values(cell))).collect();
    let columns = longest(&values);
    (values, columns)
}

/// The heading of the third column: no rate is predicted for several flows, so it shows their
/// shares.
#[derive(Debug, Clone, Copy)]
enum Third {
    OfPredicted,
    Fairness,
}

impl Third {
    fn of(part: &StudyPart) -> Self {
        let is_predicted = part.cells.iter().any(|cell| cell.predicted_bps.is_some());
        let has_shares = part.cells.iter().any(|cell| cell.fairness.is_some());
        if has_shares && !is_predicted { Third::Fairness } else { Third::OfPredicted }
    }

    const fn head(self) -> &'static str {
        match self {
            Third::OfPredicted => "of predicted",
            Third::Fairness => "Jain's index",
        }
    }

    fn text(self, cell: &StudyCell, rate: f64) -> Option<String> {
        match self {
            Third::OfPredicted => {
                cell.predicted_bps.map(|predicted| percent(rate / predicted.max(1.0)))
            }
            Third::Fairness => cell.fairness.map(|index| format!("{index:.2}")),
        }
    }
}

fn figures(cell: &StudyCell, third: Third, most: f64, width: usize, line: Line) -> Line {
    let Some(rate) = cell.throughput_bps else {
        let why = cell.reasons.first().map_or("not run yet", String::as_str);
        return line.to(width + 2).put(style::WARN, &clean(why));
    };
    let interval = cell.low_bps.zip(cell.high_bps);
    let half = interval.map(|(low, high)| percent((high - low) / 2.0 / rate.max(1.0)));
    let ratio = third.text(cell, rate);
    let [at_rate, at_half, at_ratio] = COLUMNS.map(|column| width + column);
    let line = line
        .right(style::STRONG, &BitRate::from_bps_f64(rate).to_string(), at_rate)
        .right(style::DIM, &half.unwrap_or_default(), at_half)
        .right(style::PLAIN, &ratio.unwrap_or_default(), at_ratio)
        .to(width + LIMIT)
        .put(style::PLAIN, cell.limit.map_or("", record::Limit::name));
    let mark = if line.style().unicode { "█" } else { "#" };
    let begin = width + BARS;
    let columns = line.style().text_width().saturating_sub(begin).min(LONGEST_BAR);
    if columns < SHORTEST_BAR {
        return line;
    }
    let length = ((rate / most.max(1.0) * columns as f64).round() as usize).max(1);
    line.to(begin).put(style::run(1), &mark.repeat(length))
}
