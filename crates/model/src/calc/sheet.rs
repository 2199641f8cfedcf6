//! What a calculator answers: figures with their equations, where they hold,
//! tables and a curve. One form for all, so that one drawing and one JSON
//! document serve them.

use crate::figures;
use serde::ser::{Serialize, SerializeMap, Serializer};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// The version of [`Sheet`] in JSON.
pub const SHEET_SCHEMA: &str = "longhaul.calc/1";

/// A figure, in JSON a plain number whose key names the unit.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// bit/s; keys end in `_bps`.
    Rate(BitRate),
    /// Bytes; keys end in `_bytes`.
    Size(ByteCount),
    /// A round trip in ms; keys end in `_ms`.
    Rtt(Rtt),
    /// Seconds; keys end in `_s`.
    Seconds(f64),
    /// A share of packets lost, of 1.
    Loss(LossRatio),
    /// A share of 1.
    Share(f64),
    /// So many.
    Count(u64),
    /// A plain number.
    Number(f64),
    /// Words.
    Text(String),
}

impl Value {
    /// The figure as a reader would write it: five digits and its unit.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Value::Rate(rate) => figures::rate(*rate),
            Value::Size(size) => figures::bytes(*size),
            Value::Rtt(rtt) => figures::rtt(*rtt),
            Value::Seconds(seconds) if *seconds == 0.0 || *seconds >= 1.0 => {
                format!("{} s", figures::digits(*seconds))
            }
            Value::Seconds(seconds) => figures::seconds(*seconds),
            Value::Loss(loss) => figures::loss(*loss),
            Value::Share(share) => figures::percent(*share),
            Value::Count(count) => count.to_string(),
            Value::Number(number) => figures::digits(*number),
            Value::Text(text) => text.clone(),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Rate(rate) => rate.serialize(serializer),
            Value::Size(size) => size.serialize(serializer),
            Value::Rtt(rtt) => serializer.serialize_f64(rtt.millis_f64()),
            Value::Loss(loss) => loss.serialize(serializer),
            Value::Seconds(number) | Value::Share(number) | Value::Number(number) => {
                serializer.serialize_f64(*number)
            }
            Value::Count(count) => serializer.serialize_u64(*count),
            Value::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// Figures by their keys, in their order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entries(pub Vec<(&'static str, Option<Value>)>);

impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// One figure and where it comes from.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Answer {
    /// Its name in JSON, with its unit.
    pub key: &'static str,
    /// Its name for a reader.
    pub label: String,
    /// The figure; `None` (JSON `null`) where there is none, and the equation says why.
    pub value: Option<Value>,
    /// The equation with its numbers in.
    pub equation: String,
    /// RFC section, paper or source file.
    pub source: &'static str,
}

/// A column of a [`Table`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name in JSON, with its unit.
    pub key: &'static str,
    /// Its name for a reader.
    pub title: &'static str,
}

/// A row of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// A cell for each column; `None` where there is no answer.
    pub cells: Vec<Option<Value>>,
    /// Whether this is the row that was asked for.
    pub marked: bool,
}

/// Figures in rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, a cell for each column.
    pub rows: Vec<Row>,
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Titled<'a>(&'a [Column], &'a Row);
        impl Serialize for Titled<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                for (column, cell) in self.0.iter().zip(&self.1.cells) {
                    map.serialize_entry(column.key, cell)?;
                }
                map.serialize_entry("marked", &self.1.marked)?;
                map.end()
            }
        }
        let rows: Vec<_> = self.rows.iter().map(|row| Titled(&self.columns, row)).collect();
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("title", &self.title)?;
        map.serialize_entry("rows", &rows)?;
        map.end()
    }
}

/// What an axis of a [`Curve`] counts, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// bit/s by decades.
    LogRate,
    /// bit/s from zero.
    Rate,
    /// A share of 1 by decades.
    LogLoss,
    /// Seconds by decades.
    LogSeconds,
    /// Seconds from zero.
    Seconds,
    /// Bytes from zero.
    Bytes,
}

/// One line of a [`Curve`].
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Series {
    /// Its name, short enough to stand beside its end.
    pub name: &'static str,
    /// Points in base units, left to right.
    pub points: Vec<(f64, f64)>,
}

/// Lines over an axis.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Curve {
    /// What it shows.
    pub title: String,
    /// Across.
    pub x: Scale,
    /// Up.
    pub y: Scale,
    /// The lines.
    pub series: Vec<Series>,
    /// A line across and its name: the link's rate.
    pub rule: Option<(&'static str, f64)>,
    /// The point that was asked for.
    pub asked: Option<(f64, f64)>,
}

/// Everything a calculator answers.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Sheet {
    /// [`SHEET_SCHEMA`].
    pub schema: &'static str,
    /// Which calculator.
    pub calculator: &'static str,
    /// What was asked, defaults included.
    pub asked: Entries,
    /// The figures, the first of them what was asked for.
    pub answers: Vec<Answer>,
    /// Where the equations hold, where not, and how things are counted.
    pub holds: Vec<String>,
    /// Tables.
    pub tables: Vec<Table>,
    /// A curve, where one helps.
    pub curve: Option<Curve>,
}

impl Sheet {
    /// The figure under a key; `None` where it has none.
    #[must_use]
    pub fn figure(&self, key: &str) -> Option<&Value> {
        self.answers.iter().find(|answer| answer.key == key)?.value.as_ref()
    }
}

/// Values spaced evenly by decades, both ends included; at least two.
pub(super) fn by_decades(from: f64, to: f64, count: u32) -> impl Iterator<Item = f64> {
    let (from, to, last) = (from.log10(), to.log10(), f64::from(count.max(2) - 1));
    (0..count.max(2)).map(move |i| 10f64.powf(from + (to - from) * f64::from(i) / last))
}
