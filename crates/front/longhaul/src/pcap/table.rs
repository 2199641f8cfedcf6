//! A table of a capture: lines of comma-separated values, or a Parquet file.

use crate::{Fault, Problem};
use parquet_file::{Column, ColumnType, Values, Writer};
use std::fmt::Write as _;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use store::{PendingFile, WriteError};

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// There is none.
    Missing,
    /// Of the file, cleaned.
    Text(String),
    /// Numbers and addresses as text, which are printed as they are.
    Printed(String),
    /// A whole number.
    Whole(u64),
    /// A real number.
    Real(f64),
    /// A rate, without decimals in CSV.
    Rounded(f64),
    /// Nanoseconds, shown as seconds.
    Nanos(i64),
    /// True or false.
    Flag(bool),
}

impl Cell {
    /// Text of a file, cleaned.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Cell::Text(report::untrusted::clean(text))
    }

    /// Nanoseconds.
    #[must_use]
    pub fn nanos(ns: u64) -> Self {
        Cell::Nanos(i64::try_from(ns).unwrap_or(i64::MAX))
    }

    /// The cell of a value that may be missing.
    pub fn maybe<T>(value: Option<T>, cell: impl FnOnce(T) -> Cell) -> Self {
        value.map_or(Cell::Missing, cell)
    }

    fn csv(&self, out: &mut String) {
        // Formatting into a string cannot fail.
        let _ = match self {
            Cell::Missing => Ok(()),
            Cell::Text(text) => {
                field(text, out);
                Ok(())
            }
            Cell::Printed(text) => out.write_str(text),
            Cell::Whole(number) => write!(out, "{number}"),
            Cell::Real(number) => write!(out, "{number}"),
            Cell::Rounded(number) => write!(out, "{number:.0}"),
            Cell::Nanos(ns) => {
                let sign = if *ns < 0 { "-" } else { "" };
                let ns = ns.unsigned_abs();
                write!(out, "{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
            }
            Cell::Flag(flag) => write!(out, "{flag}"),
        };
    }
}

/// A field of clean text. What a spreadsheet would take for a formula begins with an
/// apostrophe.
fn field(text: &str, out: &mut String) {
    let apostrophe = if text.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    if text.contains([',', '"']) {
        out.push('"');
        *out += apostrophe;
        *out += &text.replace('"', "\"\"");
        out.push('"');
    } else {
        *out += apostrophe;
        *out += text;
    }
}

/// The names of columns, units among them, and their types.
pub type Columns = &'static [(&'static str, ColumnType)];

/// Columns, and rows that are made when they are written.
pub struct Table<'a> {
    columns: Columns,
    rows: Box<dyn Iterator<Item = Vec<Cell>> + 'a>,
}

impl<'a> Table<'a> {
    /// A table of rows that are made when they are written.
    pub fn new(columns: Columns, rows: impl Iterator<Item = Vec<Cell>> + 'a) -> Self {
        Table { columns, rows: Box::new(rows) }
    }
}

/// Where the rows of all files go: lines of CSV (RFC 4180), or a Parquet file that is written
/// completely or not at all.
pub struct TableOutput<'a> {
    parquet: Option<&'a Path>,
    table: Option<ParquetTable>,
    text: String,
    has_header: bool,
    rows: usize,
}

/// Bytes of text that are collected before they are printed.
const CHUNK: usize = 32 * 1024;

impl<'a> TableOutput<'a> {
    /// Rows go to this Parquet file, or else to standard output.
    pub fn new(parquet: Option<&'a Path>) -> Self {
        TableOutput { parquet, table: None, text: String::new(), has_header: false, rows: 0 }
    }

    /// Writes the rows of a file, below a header that all have in common.
    pub fn add(&mut self, table: Table<'_>, print: &mut dyn FnMut(&str)) -> Result<(), Problem> {
        if !self.has_header {
            self.has_header = true;
            match self.parquet {
                Some(path) => {
                    let columns = table.columns.iter().map(|(name, it)| ((*name).to_owned(), *it));
                    self.table = Some(ParquetTable::create(path, columns.collect())?);
                }
                None => self.text = header(table.columns),
            }
        }
        for row in table.rows {
            self.rows += 1;
            match &mut self.table {
                Some(file) => file.row(&row)?,
                None => csv_row(&row, &mut self.text),
            }
            if self.text.len() >= CHUNK {
                print(&std::mem::take(&mut self.text));
            }
        }
        Ok(())
    }

    /// Completes the output; returns the rows of a Parquet file, and the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self, print: &mut dyn FnMut(&str)) -> Result<Option<(usize, &'a Path)>, Problem> {
        if !self.text.is_empty() {
            print(&self.text);
        }
        if let (Some(table), Some(path)) = (self.table, self.parquet) {
            table.finish()?;
            return Ok(Some((self.rows, path)));
        }
        Ok(None)
    }
}

/// The first line of the CSV.
pub fn header(columns: Columns) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    format!("{}\n", names.join(","))
}

/// Appends a row's line.
pub fn csv_row(row: &[Cell], out: &mut String) {
    for (index, cell) in row.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        cell.csv(out);
    }
    out.push('\n');
}

/// Rows of a group: a group of packets takes some 10 MB.
const GROUP: usize = 1 << 16;

/// A Parquet file that is written row by row.
pub struct ParquetTable {
    path: PathBuf,
    writer: Writer<BufWriter<PendingFile>>,
    values: Vec<Values>,
    rows: usize,
}

impl ParquetTable {
    /// Begins the file, which appears when it is finished.
    pub fn create(path: &Path, columns: Vec<(String, ColumnType)>) -> Result<Self, Problem> {
        let file = PendingFile::create(path).map_err(failed)?;
        let values = columns.iter().map(|(_, kind)| Values::empty(*kind)).collect();
        let columns = columns.into_iter().map(|(name, kind)| Column { name, kind }).collect();
        let writer = Writer::new(BufWriter::new(file), columns);
        let writer = writer.map_err(|source| cannot_write(path, source))?;
        Ok(ParquetTable { path: path.to_owned(), writer, values, rows: 0 })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn row(&mut self, row: &[Cell]) -> Result<(), Problem> {
        for (values, cell) in self.values.iter_mut().zip(row) {
            match values {
                Values::Text(values) => values.push(match cell {
                    Cell::Text(text) | Cell::Printed(text) => Some(text.clone()),
                    _ => None,
                }),
                Values::Whole(values) => values.push(match cell {
                    Cell::Whole(number) => i64::try_from(*number).ok(),
                    _ => None,
                }),
                Values::Real(values) => values.push(match cell {
                    Cell::Real(number) | Cell::Rounded(number) => Some(*number),
                    Cell::Nanos(ns) => Some(*ns as f64 / 1e9),
                    _ => None,
                }),
                Values::Flag(values) => values.push(match cell {
                    Cell::Flag(flag) => Some(*flag),
                    _ => None,
                }),
            }
        }
        self.rows += 1;
        if self.rows.is_multiple_of(GROUP) { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Problem> {
        let written = self.writer.group(&self.values);
        written.map_err(|source| cannot_write(&self.path, source))?;
        for values in &mut self.values {
            *values = Values::empty(values.kind());
        }
        Ok(())
    }

    /// Completes the file, and puts it in its place.
    pub fn finish(mut self) -> Result<(), Problem> {
        self.flush()?;
        let path = self.path;
        let out = self.writer.finish().map_err(|source| cannot_write(&path, source))?;
        let file = out.into_inner().map_err(|error| cannot_write(&path, error.into_error()))?;
        file.commit().map_err(failed)
    }
}

fn failed(error: impl std::fmt::Display) -> Problem {
    Problem::new(Fault::Internal, error)
}

fn cannot_write(path: &Path, source: io::Error) -> Problem {
    failed(WriteError { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_no_formulas() {
        let row = [
            Cell::text("=1+1"),
            Cell::text("a \"b\", c\u{1b}"),
            Cell::Missing,
            Cell::Nanos(-1_500_000_000),
            Cell::Rounded(2.6),
            Cell::Flag(true),
        ];
        let mut text = String::new();
        csv_row(&row, &mut text);
        assert_eq!(text, "'=1+1,\"a \"\"b\"\", c\",,-1.500000000,3,true\n");
    }
}
