//! A calculator's result: figures with their equations and sources, their validity
//! range, tables, a curve.

use super::{
    Style,
    graph::graph,
    line::{Line, block, columns, labelled, shown},
    style,
};
use model::calc::{Answer, CalcResult, Table, Value};

/// Column of figures and texts.
const COLUMN: usize = 18;

/// Spaces between two columns of a table.
const GAP: usize = 2;

/// A calculator's answer.
#[must_use]
pub fn calc_result(result: &CalcResult, style: &Style) -> String {
    let mut lines = Vec::new();
    for answer in &result.answers {
        lines.extend(answered(answer, style));
    }
    lines.push(Line::new(style));
    for (index, text) in result.holds.iter().enumerate() {
        let label = if index == 0 { "valid for" } else { "" };
        lines.extend(labelled(style, 0, (style::STRONG, label), COLUMN, (style::PLAIN, text)));
    }
    for table in &result.tables {
        lines.push(Line::new(style));
        lines.extend(rows(table, style));
    }
    let curve = result.curve.as_ref().map_or(Vec::new(), |curve| graph(curve, style));
    if !curve.is_empty() {
        lines.push(Line::new(style));
        lines.extend(curve);
    }
    block(lines)
}

/// The figure, its equation below, then the source.
fn answered(answer: &Answer, style: &Style) -> Vec<Line> {
    let value = answer.value.as_ref().map_or("none".to_owned(), Value::text);
    let mut lines =
        labelled(style, 0, (style::STRONG, &answer.label), COLUMN, (style::STRONG, &value));
    lines.extend(labelled(style, 0, (style::PLAIN, ""), COLUMN, (style::PLAIN, &answer.equation)));
    lines.extend(labelled(style, 0, (style::PLAIN, ""), COLUMN, (style::DIM, answer.source)));
    lines
}

fn rows(table: &Table, style: &Style) -> Vec<Line> {
    let cell =
        |value: &Option<Value>| shown(style, &value.as_ref().map_or("-".to_owned(), Value::text));
    let cells: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.cells.iter().map(cell).collect()).collect();
    // Text is aligned left, figures right.
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
    let line = |text_style, mark: &str, texts: &mut dyn Iterator<Item = &str>| {
        let mut line = Line::new(style).put(text_style, mark);
        let mut start = GAP;
        for (i, text) in texts.enumerate() {
            let width = wide.get(i).copied().unwrap_or(0);
            line = if words(i) {
                line.to(start).put(text_style, text)
            } else {
                line.right(text_style, text, start + width)
            };
            start += width + GAP;
        }
        line
    };
    let mut lines = labelled(style, 0, (style::PLAIN, ""), 0, (style::STRONG, &table.title));
    lines.push(line(style::DIM, "", &mut table.columns.iter().map(|column| column.title)));
    for (row, texts) in table.rows.iter().zip(&cells) {
        let (text_style, mark) = if row.marked { (style::GOOD, ">") } else { (style::PLAIN, "") };
        lines.push(line(text_style, mark, &mut texts.iter().map(String::as_str)));
    }
    lines
}
