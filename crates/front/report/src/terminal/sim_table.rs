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

/// The median, with the range where it differs: `46.6 Mbit/s (46.5-46.8)`. The ends have a unit of
/// their own only where it is another one.
pub(super) fn spread([median, low, high]: [String; 3]) -> String {
    if low == high {
        return median;
    }
    let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
    let own = unit(&median);
    let end = |text: &str| match unit(text) == own {
        true => text.split(' ').next().unwrap_or(text).to_owned(),
        false => text.to_owned(),
    };
    format!("{median} ({}-{})", end(&low), end(&high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_unit_of_its_median() {
        let of = |texts: [&str; 3]| spread(texts.map(str::to_owned));
        assert_eq!(of(["5 ms", "5 ms", "5 ms"]), "5 ms");
        assert_eq!(of(["46.6 Mbit/s", "46.5 Mbit/s", "47 Mbit/s"]), "46.6 Mbit/s (46.5-47)");
        assert_eq!(of(["1 Mbit/s", "900 kbit/s", "2 Mbit/s"]), "1 Mbit/s (900 kbit/s-2)");
        assert_eq!(of(["42", "38", "44"]), "42 (38-44)");
    }
}
