//! The segments of a finding as bands on the time axis, and what each limit cost.

use super::{
    Style,
    line::{Line, columns},
    style,
};
use crate::{
    timeline::{Timeline, cost},
    wording,
};

/// Fill characters by rank; further limits share the last one.
const UNICODE: [char; 6] = ['█', '▒', '░', '▚', '╳', '·'];
const ASCII: [char; 6] = ['#', '=', '.', '+', 'x', '-'];

fn texture(rank: usize, style: &Style) -> char {
    let textures = if style.unicode { UNICODE } else { ASCII };
    textures[rank.min(textures.len() - 1)]
}

/// The bands `width` columns wide from `column` on, names and times below them, and a line
/// per limit.
pub(super) fn lines(timeline: &Timeline, column: usize, label: Line, style: &Style) -> Vec<Line> {
    let width = style.text_width().saturating_sub(column).max(1);
    let scale = Scale { from_s: timeline.start_s(), to_s: timeline.end_s(), width };
    let mut lines = vec![bands(timeline, &scale, label.to(column))];
    let mut names = Line::new(style);
    let mut times = Line::new(style);
    let end = wording::seconds(scale.to_s);
    let last = width.saturating_sub(columns(&end));
    for (index, part) in timeline.parts.iter().enumerate() {
        let start = scale.column(part.from_s);
        let next = timeline.parts.get(index + 1).map_or(width, |next| scale.column(next.from_s));
        let free = |line: &Line| line.used() == 0 || line.used() < column + start;
        let name = part.limit.name();
        if free(&names) && start + name.len() < next.max(start + 1) {
            let colour = style::band(timeline.rank(part.limit));
            names = names.to(column + start).put(colour, name);
        }
        let time = wording::seconds(part.from_s);
        if free(&times) && start + columns(&time) < last {
            times = times.to(column + start).put(style::DIM, &time);
        }
    }
    if names.used() > 0 {
        lines.push(names);
    }
    lines.push(times.to(column + last).put(style::DIM, &end));
    lines.extend(legend(timeline, column, style));
    lines
}

/// The time axis, in columns.
struct Scale {
    from_s: f64,
    to_s: f64,
    width: usize,
}

impl Scale {
    /// The column of a time, from 0 on.
    fn column(&self, t_s: f64) -> usize {
        let share = (t_s - self.from_s) / (self.to_s - self.from_s);
        // A share is between 0 and 1; NaN becomes 0.
        ((share * self.width as f64).round().max(0.0) as usize).min(self.width)
    }
}

/// The bands; time without a segment is blank.
fn bands(timeline: &Timeline, scale: &Scale, mut line: Line) -> Line {
    let style = *line.style();
    let column = line.used();
    for part in &timeline.parts {
        let (from, to) = (scale.column(part.from_s), scale.column(part.to_s));
        let rank = timeline.rank(part.limit);
        let band = texture(rank, &style).to_string().repeat(to.saturating_sub(from));
        line = line.to(column + from).put(style::band(rank), &band);
    }
    line
}

fn legend(timeline: &Timeline, column: usize, style: &Style) -> Vec<Line> {
    let totals = timeline.totals.iter().enumerate();
    let longest = timeline.totals.iter().map(|total| total.limit.name().len()).max().unwrap_or(0);
    let mut lines: Vec<Line> = totals
        .map(|(rank, total)| {
            let line = Line::new(style).to(column);
            line.put(style::band(rank), &texture(rank, style).to_string())
                .put(style::PLAIN, " ")
                .put(style::PLAIN, total.limit.name())
                .to(column + 2 + longest + 2)
                .put(style::PLAIN, &cost(total))
        })
        .collect();
    if timeline.left_out > 0 {
        let text = format!("{} not shown", wording::counted(timeline.left_out, "later segment"));
        lines.push(Line::new(style).to(column).put(style::DIM, &text));
    }
    lines
}
