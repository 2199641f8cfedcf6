//! A table of a simulation: text on the left, figures on the right.

use super::{
    Style,
    line::{Line, columns, shown},
    style,
};

/// Spaces between two columns: as many as the terminal has room for.
const GAPS: std::ops::RangeInclusive<usize> = 1..=4;

/// A row: its cells, and the style of the first.
#[derive(Clone)]
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    pub(super) tone: anstyle::Style,
}

/// Whether the table has room for its ranges.
pub(super) fn has_ranges(head: &[&str], rows: &[Row], style: &Style) -> bool {
    total(&widths(head, rows, style)) <= style.width
}

/// The head and the rows; the first column is text, all others are figures, and as wide as their
/// widest cell. Without room for all of it the ranges are left out; if that is not enough,
/// further columns follow below, each time after the first column.
pub(super) fn table(head: &[&str], rows: &[Row], style: &Style) -> Vec<Line> {
    let rows: Vec<Row> = match has_ranges(head, rows, style) {
        true => rows.to_vec(),
        false => rows.iter().map(without_ranges).collect(),
    };
    let wide = widths(head, &rows, style);
    let first = wide.first().copied().unwrap_or_default();
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let mut used = 0;
    for (column, wide) in wide.iter().enumerate().skip(1) {
        used += GAPS.start() + wide;
        match blocks.last_mut().filter(|_| used <= style.width) {
            Some(block) => block.push(column),
            None => {
                blocks.push(vec![0, column]);
                used = first + GAPS.start() + wide;
            }
        }
    }
    let mut lines = Vec::new();
    for block in &blocks {
        if !lines.is_empty() {
            lines.push(Line::new(style));
        }
        lines.extend(part(head, &rows, block, &wide, style));
    }
    lines
}

/// These columns.
fn part(head: &[&str], rows: &[Row], block: &[usize], wide: &[usize], style: &Style) -> Vec<Line> {
    let wide_of = |column: &usize| wide.get(*column).copied().unwrap_or_default();
    let cells: usize = block.iter().map(wide_of).sum();
    let room = style.width.saturating_sub(cells) / block.len().saturating_sub(1).max(1);
    let gap = room.clamp(*GAPS.start(), *GAPS.end());
    let line = |cell: &dyn Fn(usize) -> Option<String>, tone: anstyle::Style, rest| {
        let (mut line, mut start) = (Line::new(style), 0);
        for column in block {
            let text = cell(*column).unwrap_or_default();
            let end = start + wide_of(column);
            line = match column {
                0 => line.put(tone, &text),
                _ => line.right(rest, &text, end),
            };
            start = end + gap;
        }
        line
    };
    let title = |column: usize| head.get(column).map(|title| (*title).to_owned());
    let mut lines = vec![line(&title, style::DIM, style::DIM)];
    lines.extend(
        rows.iter().map(|row| line(&|at| row.cells.get(at).cloned(), row.tone, style::PLAIN)),
    );
    lines
}

/// The row with `90 Mbit/s` in the place of `90 Mbit/s (81-99)`.
fn without_ranges(row: &Row) -> Row {
    let short = |(column, cell): (usize, &String)| match cell.split_once(" (") {
        Some((median, _)) if column > 0 => median.to_owned(),
        _ => cell.clone(),
    };
    Row { cells: row.cells.iter().enumerate().map(short).collect(), tone: row.tone }
}

fn widths(head: &[&str], rows: &[Row], style: &Style) -> Vec<usize> {
    let of = |(column, title): (usize, &&str)| {
        let cells = rows.iter().filter_map(|row| row.cells.get(column));
        cells.map(|cell| columns(&shown(style, cell))).fold(columns(title), usize::max)
    };
    head.iter().enumerate().map(of).collect()
}

/// The columns of the terminal that the table takes at least.
fn total(wide: &[usize]) -> usize {
    wide.iter().sum::<usize>() + wide.len().saturating_sub(1) * GAPS.start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_has_every_column_and_a_wide_one_more_room() {
        let head = ["flow", "goodput", "limited by"];
        let cells = ["1 cubic", "90 Mbit/s (81-99)", "cwnd 98 %"].map(str::to_owned).to_vec();
        let rows = [Row { cells, tone: style::PLAIN }];
        let text = |width| {
            let style = Style { colour: false, width, unicode: true };
            table(&head, &rows, &style).into_iter().map(Line::finish).collect::<Vec<_>>()
        };
        assert_eq!(text(36)[1], "1 cubic 90 Mbit/s (81-99)  cwnd 98 %");
        assert_eq!(text(30)[1], "1 cubic  90 Mbit/s   cwnd 98 %");
        let narrow = [
            "flow       goodput",
            "1 cubic  90 Mbit/s",
            "",
            "flow    limited by",
            "1 cubic  cwnd 98 %",
        ];
        assert_eq!(text(18), narrow);
        assert_eq!(text(200)[1], "1 cubic    90 Mbit/s (81-99)     cwnd 98 %");
    }
}
