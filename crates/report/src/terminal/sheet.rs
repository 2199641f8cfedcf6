//! What a calculator answers: figures with their equations and sources, where
//! they hold, tables, a curve.

use super::{
    Style,
    graph::graph,
    ink,
    line::{Line, block, columns, labelled, shown},
};
use model::calc::{Answer, Sheet, Table, Value};

/// Where figures and texts stand beside their labels.
const COLUMN: usize = 18;

/// Columns between two of a table.
const GAP: usize = 2;

/// A calculator's answer.
#[must_use]
pub fn sheet(sheet: &Sheet, style: &Style) -> String {
    let mut lines = Vec::new();
    for answer in &sheet.answers {
        lines.extend(answered(answer, style));
    }
    lines.push(Line::new(style));
    for (index, text) in sheet.holds.iter().enumerate() {
        let label = if index == 0 { "where it holds" } else { "" };
        lines.extend(labelled(style, 0, (ink::STRONG, label), COLUMN, (ink::PLAIN, text)));
    }
    for table in &sheet.tables {
        lines.push(Line::new(style));
        lines.extend(rows(table, style));
    }
    let curve = sheet.curve.as_ref().map_or(Vec::new(), |curve| graph(curve, style));
    if !curve.is_empty() {
        lines.push(Line::new(style));
        lines.extend(curve);
    }
    block(lines)
}

/// The figure, its equation beneath, then the source.
fn answered(answer: &Answer, style: &Style) -> Vec<Line> {
    let value = answer.value.as_ref().map_or("none".to_owned(), Value::text);
    let mut lines = labelled(style, 0, (ink::STRONG, &answer.label), COLUMN, (ink::STRONG, &value));
    lines.extend(labelled(style, 0, (ink::PLAIN, ""), COLUMN, (ink::PLAIN, &answer.equation)));
    lines.extend(labelled(style, 0, (ink::PLAIN, ""), COLUMN, (ink::DIM, answer.source)));
    lines
}

fn rows(table: &Table, style: &Style) -> Vec<Line> {
    let cell =
        |value: &Option<Value>| shown(style, &value.as_ref().map_or("-".to_owned(), Value::text));
    let cells: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.cells.iter().map(cell).collect()).collect();
    // Words begin at the left, figures end at the right.
    let words = |column: usize| {
        table.rows.iter().any(|row| matches!(row.cells.get(column), Some(Some(Value::Text(_)))))
    };
    let wide: Vec<usize> = table
        .columns
        .iter()
        .enumerate()
        .map(|(i, column)| {
            let cells = cells.iter().filter_map(|row| row.get(i)).map(|text| columns(text));
            cells.max().unwrap_or(0).max(columns(column.title))
        })
        .collect();
    let line = |ink, mark: &str, texts: &mut dyn Iterator<Item = &str>| {
        let mut line = Line::new(style).put(ink, mark);
        let mut start = GAP;
        for (i, text) in texts.enumerate() {
            let width = wide.get(i).copied().unwrap_or(0);
            line = if words(i) {
                line.to(start).put(ink, text)
            } else {
                line.right(ink, text, start + width)
            };
            start += width + GAP;
        }
        line
    };
    let mut lines = labelled(style, 0, (ink::PLAIN, ""), 0, (ink::STRONG, &table.title));
    lines.push(line(ink::DIM, "", &mut table.columns.iter().map(|column| column.title)));
    for (row, texts) in table.rows.iter().zip(&cells) {
        let (ink, mark) = if row.marked { (ink::GOOD, ">") } else { (ink::PLAIN, "") };
        lines.push(line(ink, mark, &mut texts.iter().map(String::as_str)));
    }
    lines
}
