//! TOML as people write it: values with their positions, tables in the order of the file, and
//! errors in one line.

use crate::similar::did_you_mean;
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::ops::Range;
pub use toml::Spanned;

/// Longest part of a line that an error quotes, in characters.
const MAX_QUOTED: usize = 60;
/// Longest message of the TOML parser, in characters.
const MAX_MESSAGE: usize = 300;

/// An error in a file: one line that names the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TomlError {
    /// Line and column, from 1; `None` for the file as a whole.
    pub at: Option<(usize, usize)>,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for TomlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "line {line}, column {column}: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl std::error::Error for TomlError {}

/// The text of a file, and the positions in it. The default is of no file and has no positions.
#[derive(Debug, Default)]
pub struct TomlText<'a> {
    text: &'a str,
    /// Offsets of the first bytes of its lines.
    line_starts: Vec<usize>,
}

impl<'a> TomlText<'a> {
    /// The text of a file.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0).chain(ends.map(|(end, _)| end + 1)).collect();
        TomlText { text, line_starts }
    }

    /// Parses the text.
    ///
    /// # Errors
    /// It is not TOML, lacks a key, or has one that `T` has not: with the line, or with the key
    /// that was probably meant.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, TomlError> {
        toml::from_str(self.text).map_err(|error| {
            let words = error.message().replace('`', "'").replace('\n', ", ");
            let mut problem = short(&words, MAX_MESSAGE);
            let span = error.span();
            match (unknown_field(error.message()), &span) {
                (Some((field, known)), _) => problem += &did_you_mean(field, known),
                (None, Some(span)) => problem += &self.quoted(span),
                (None, None) => {}
            }
            TomlError { at: span.and_then(|span| self.position(&span)), problem }
        })
    }

    /// An error at the first byte of `span`.
    #[must_use]
    pub fn error(&self, span: &Range<usize>, problem: impl fmt::Display) -> TomlError {
        TomlError { at: self.position(span), problem: problem.to_string() }
    }

    /// The line and the column of the first byte of `span`, from 1.
    #[must_use]
    pub fn position(&self, span: &Range<usize>) -> Option<(usize, usize)> {
        let (line, start) = self.line(span)?;
        let before = self.text.get(start..span.start.min(self.text.len()));
        Some((line, 1 + before.map_or(0, |before| before.chars().count())))
    }

    /// The line of `span`, from 1, and the offset of its first byte.
    fn line(&self, span: &Range<usize>) -> Option<(usize, usize)> {
        let line = self.line_starts.partition_point(|start| *start <= span.start);
        Some((line, *self.line_starts.get(line.checked_sub(1)?)?))
    }

    /// ` in 'LINE'`; empty for a line without text.
    fn quoted(&self, span: &Range<usize>) -> String {
        let rest = self.line(span).and_then(|(_, start)| self.text.get(start..));
        let line =
            short(rest.and_then(|rest| rest.lines().next()).unwrap_or("").trim(), MAX_QUOTED);
        if line.is_empty() { line } else { format!(" in '{line}'") }
    }
}

/// The unknown key, and the known ones, of an error of serde's.
fn unknown_field(message: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let (field, known) = message.strip_prefix("unknown field `")?.rsplit_once("`, expected ")?;
    Some((field, known.split('`').skip(1).step_by(2)))
}

/// At most `longest` characters of text from a file, without control characters.
pub(crate) fn short(text: &str, longest: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(longest).collect()
}

/// One value, or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// A string, a number or a truth value (1 or 0), as text.
    One(String),
    /// An array of those.
    List(Vec<(String, Range<usize>)>),
}

/// `key = value`.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key, with those of the tables around it: `net.ipv4.tcp_sack`, with quotes or without.
    pub key: String,
    /// Position of the last part of the key.
    pub key_span: Range<usize>,
    /// The value.
    pub value: Written,
    /// Position of the value.
    pub value_span: Range<usize>,
}

/// The entries of a table in the order of the file; tables within are keys with dots.
#[derive(Debug, Clone, Default)]
pub struct Entries(pub Vec<Entry>);

impl Entries {
    /// A table that is not there.
    #[must_use]
    pub fn none() -> Spanned<Self> {
        Spanned::new(0..0, Entries::default())
    }
}

/// A string, a number or a truth value, as text: `start = 5` and `start = "5"` say the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar(pub String);

/// A value or a table.
enum Branch {
    Leaf(Written),
    Fork(Vec<Entry>),
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Branch::deserialize(deserializer)? {
            Branch::Fork(mut entries) => {
                entries.sort_by_key(|entry| entry.key_span.start);
                Ok(Entries(entries))
            }
            Branch::Leaf(_) => Err(de::Error::custom("expected a table of KEY = VALUE")),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Branch::deserialize(deserializer)? {
            Branch::Leaf(Written::One(text)) => Ok(Scalar(text)),
            _ => Err(de::Error::custom("expected a string or a number")),
        }
    }
}

impl<'de> Deserialize<'de> for Branch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyBranch)
    }
}

struct AnyBranch;

impl<'de> Visitor<'de> for AnyBranch {
    type Value = Branch;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number, or an array of them")
    }

    fn visit_str<E>(self, text: &str) -> Result<Branch, E> {
        Ok(Branch::Leaf(Written::One(text.to_owned())))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Branch, E> {
        Ok(Branch::Leaf(Written::One(number.to_string())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Branch, E> {
        Ok(Branch::Leaf(Written::One(number.to_string())))
    }

    fn visit_bool<E>(self, on: bool) -> Result<Branch, E> {
        Ok(Branch::Leaf(Written::One(u8::from(on).to_string())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Branch, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Scalar>>()? {
            let span = item.span();
            list.push((item.into_inner().0, span));
        }
        Ok(Branch::Leaf(Written::List(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Branch, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, branch)) = map.next_entry::<Spanned<String>, Spanned<Branch>>()? {
            let (key_span, value_span) = (key.span(), branch.span());
            let key = key.into_inner();
            match branch.into_inner() {
                Branch::Leaf(value) => entries.push(Entry { key, key_span, value, value_span }),
                Branch::Fork(below) => entries.extend(
                    below.into_iter().map(|e| Entry { key: format!("{key}.{}", e.key), ..e }),
                ),
            }
        }
        Ok(Branch::Fork(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[expect(dead_code, reason = "only its name counts")]
        duration: Scalar,
        #[expect(dead_code, reason = "only its name counts")]
        #[serde(default)]
        sysctl: Entries,
    }

    #[test]
    fn an_error_names_the_line_the_column_and_what_stands_there() {
        for (text, at, problem) in [
            ("durration = 1", (1, 1), "; did you mean 'duration'?"),
            ("\nx = 1", (2, 1), "unknown field 'x', expected 'duration' or 'sysctl'"),
            ("duration = 1\n  öl = ", (2, 3), " in 'öl ='"),
            ("duration = 1\n[sysctl", (2, 8), " in '[sysctl'"),
            ("duration = [1]", (1, 12), "expected a string or a number in 'duration = [1]'"),
            (
                "duration = 1\nsysctl = 3",
                (2, 10),
                "expected a table of KEY = VALUE in 'sysctl = 3'",
            ),
        ] {
            let error = TomlText::new(text).read::<File>().unwrap_err();
            assert!(error.problem.ends_with(problem), "{text}: {error}");
            assert_eq!(error.at, Some(at), "{text}: {error}");
        }
        let long = format!("duration = [{}]", "'\u{1b}',".repeat(1000));
        let error = TomlText::new(&long).read::<File>().unwrap_err().to_string();
        assert!(error.len() < 200 && !error.contains(char::is_control), "{error}");
        // A key cannot pass for one of those that are known.
        let hostile = "duration = 1\n\"a`, expected `b\" = 1";
        let error = TomlText::new(hostile).read::<File>().unwrap_err();
        assert!(!error.problem.contains("did you mean"), "{error}");
    }

    #[test]
    fn keys_with_dots_are_in_the_order_of_the_file() {
        let text = "b.c = [1, true]\n\"a.x\" = 0.5\nb.a = 'word'";
        let entries: Entries = TomlText::new(text).read().unwrap();
        let keys: Vec<&str> = entries.0.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["b.c", "a.x", "b.a"]);
        assert_eq!(
            entries.0[0].value,
            Written::List(vec![("1".into(), 7..8), ("1".into(), 10..14)])
        );
        assert_eq!(entries.0[1].value, Written::One("0.5".into()));
        assert_eq!(TomlText::default().position(&(0..0)), None);
    }
}
