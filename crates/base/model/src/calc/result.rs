//! The result of a calculator: figures with equations, validity, tables and a curve.
//! All calculators share it, so one renderer and one JSON schema serve them.

use crate::figures;
use serde::ser::{Serialize, SerializeMap, Serializer};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// The schema id of [`CalcResult`] in JSON.
pub const SHEET_SCHEMA: &str = "longhaul.calc/1";

/// A figure; in JSON a plain number whose key names the unit.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// bit/s; keys end in `_bps`.
    Rate(BitRate),
    /// Bytes; keys end in `_bytes`.
    Size(ByteCount),
    /// An RTT in ms; keys end in `_ms`.
    Rtt(Rtt),
    /// Seconds; keys end in `_s`.
    Seconds(f64),
    /// Kilometres; keys end in `_km`.
    Kilometres(f64),
    /// A loss ratio, 0 to 1.
    Loss(LossRatio),
    /// A share, 0 to 1.
    Share(f64),
    /// A count.
    Count(u64),
    /// A plain number.
    Number(f64),
    /// Text.
    Text(String),
}

impl Value {
    /// The figure with five digits and its unit.
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
            Value::Kilometres(km) => format!("{} km", figures::digits(*km)),
            Value::Loss(loss) => figures::loss(*loss),
            Value::Share(share) => figures::percent(*share),
            Value::Count(count) => count.to_string(),
            Value::Number(number) => figures::digits(*number),
            Value::Text(text) => text.clone(),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Value {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": ["number", "string"],
            "description": "A figure; its key ends in the unit: _bps, _bytes, _ms, _s, _km."
        })
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Rate(rate) => rate.serialize(serializer),
            Value::Size(size) => size.serialize(serializer),
            Value::Rtt(rtt) => serializer.serialize_f64(rtt.millis_f64()),
            Value::Loss(loss) => loss.serialize(serializer),
            Value::Seconds(number)
            | Value::Kilometres(number)
            | Value::Share(number)
            | Value::Number(number) => serializer.serialize_f64(*number),
            Value::Count(count) => serializer.serialize_u64(*count),
            Value::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// Figures by key, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entries(pub Vec<(&'static str, Option<Value>)>);

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Entries {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Entries".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let value = generator.subschema_for::<Option<Value>>();
        schemars::json_schema!({ "type": "object", "additionalProperties": value })
    }
}

impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// One figure with its equation and source.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Answer {
    /// Its key in JSON, with the unit.
    pub key: &'static str,
    /// Its label in text.
    pub label: String,
    /// The figure; `None` (JSON `null`) if there is none, with the reason in `equation`.
    pub value: Option<Value>,
    /// The equation with its numbers.
    pub equation: String,
    /// RFC section, paper or source file.
    pub source: &'static str,
}

/// A column of a [`Table`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its key in JSON, with the unit.
    pub key: &'static str,
    /// Its label in text.
    pub title: &'static str,
}

/// A row of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// One cell per column; `None` if there is no figure.
    pub cells: Vec<Option<Value>>,
    /// Whether this is the row for the given values.
    pub marked: bool,
}

/// A table of figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: Vec<Row>,
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Table {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Table".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let value = generator.subschema_for::<Option<Value>>();
        schemars::json_schema!({
            "type": "object",
            "properties": {
                "title": { "type": "string" },
                "rows": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": { "marked": { "type": "boolean" } },
                        "required": ["marked"],
                        "additionalProperties": value
                    }
                }
            },
            "required": ["title", "rows"]
        })
    }
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

/// The unit and scale of an axis of a [`Curve`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// bit/s, logarithmic.
    LogRate,
    /// bit/s, linear from zero.
    Rate,
    /// A loss ratio, logarithmic.
    LogLoss,
    /// Seconds, logarithmic.
    LogSeconds,
    /// Seconds, linear from zero.
    Seconds,
    /// Bytes, linear from zero.
    Bytes,
    /// Bytes, logarithmic.
    LogBytes,
}

/// One line of a [`Curve`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Series {
    /// Its name, short enough for a label at its end.
    pub name: &'static str,
    /// Points in base units, left to right.
    pub points: Vec<(f64, f64)>,
}

/// A plot of several series.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Curve {
    /// Its title.
    pub title: String,
    /// The horizontal axis.
    pub x: Scale,
    /// The vertical axis.
    pub y: Scale,
    /// The series.
    pub series: Vec<Series>,
    /// A horizontal rule and its name: the link rate.
    pub rule: Option<(&'static str, f64)>,
    /// The point of the given values.
    pub asked: Option<(f64, f64)>,
}

/// The result of a calculator.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CalcResult {
    /// [`SHEET_SCHEMA`].
    pub schema: &'static str,
    /// The calculator's name.
    pub calculator: &'static str,
    /// The given values, with defaults.
    pub asked: Entries,
    /// The figures, the main one first.
    pub answers: Vec<Answer>,
    /// The validity of the equations, and their conventions.
    pub holds: Vec<String>,
    /// Tables.
    pub tables: Vec<Table>,
    /// A plot, if useful.
    pub curve: Option<Curve>,
}

impl CalcResult {
    /// The figure with this key; `None` if there is none.
    #[must_use]
    pub fn figure(&self, key: &str) -> Option<&Value> {
        self.answers.iter().find(|answer| answer.key == key)?.value.as_ref()
    }
}

/// Logarithmically spaced values, both ends included; at least two.
pub(super) fn by_decades(from: f64, to: f64, count: u32) -> impl Iterator<Item = f64> {
    let (from, to, last) = (from.log10(), to.log10(), f64::from(count.max(2) - 1));
    (0..count.max(2)).map(move |i| 10f64.powf(from + (to - from) * f64::from(i) / last))
}
