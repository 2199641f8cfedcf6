//! A table of a simulation: text on the left, figures on the right.

use super::{
    Style,
    line::{Line, columns, shown},
    style,
};

/// Spaces between two columns.
const GAP: usize = 2;

/// A row: its cells, and the style of the first.
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    pub(super) tone: anstyle::Style,
}

/// The head and the rows; the first column is text, all others are figures, and as wide as their
/// widest cell.
pub(super) fn table(head: &[&str], rows: &[Row], style: &Style) -> Vec<Line> {
    let wide: Vec<usize> = head
        .iter()
        .enumerate()
        .map(|(column, title)| {
            let cells = rows.iter().filter_map(|row| row.cells.get(column));
            cells.map(|cell| columns(&shown(style, cell))).fold(columns(title), usize::max)
        })
        .collect();
    let line = |cells: &mut dyn Iterator<Item = &str>, tone: anstyle::Style, rest| {
        let (mut line, mut start) = (Line::new(style), 0);
        for ((column, cell), wide) in cells.enumerate().zip(&wide) {
            line = match column {
                0 => line.put(tone, cell),
                _ => line.right(rest, cell, start + wide),
            };
            start += wide + GAP;
        }
        line
    };
    let mut lines = vec![line(&mut head.iter().copied(), style::DIM, style::DIM)];
    lines.extend(
        rows.iter()
            .map(|row| line(&mut row.cells.iter().map(String::as_str), row.tone, style::PLAIN)),
    );
    lines
}
